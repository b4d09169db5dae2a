"""Shared by several commands: common options, requests to the agent, and error output."""

import errno
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from crsyncer.adapters.config import CONFIG, OPTIONS, Settings, load, state_dir, with_unit
from crsyncer.adapters.control import ask
from crsyncer.console.explained.target import split_target
from crsyncer.console.screens.reason_texts import START_HINT
from crsyncer.core.model import Json
from crsyncer.core.reports.text import plain
from crsyncer.errors import DISK_ERRORS, ConfigError, Locked, SyncError, Unsure

Command = TypeVar("Command", bound=Callable[..., Any])
Answer = TypeVar("Answer")
_START_TIMEOUT_SECONDS = 3.0
"""How long to wait until an agent that is starting has opened its socket."""


def settings_options(*fields: str) -> list[click.Parameter]:
    """`--config` and the options of these settings, or of all settings, for click's `params`.

    The command gets the values by the settings' names, as `config.load` takes them.
    """
    return [CONFIG, *(option for option in OPTIONS.values() if not fields or option.name in fields)]


def load_settings(flags: Mapping[str, Any]) -> Settings:
    """The settings of a command: flags, variables, the package's unit, file, defaults. Raises ConfigError."""
    known = with_unit(flags)
    try:
        return load(known, os.environ)
    except ConfigError as error:
        if known is flags or os.geteuid() == 0 or os.strerror(errno.EACCES) not in str(error):
            raise
        raise ConfigError(f"{error}; the service's credentials are root's: run this with sudo") from None


def find_state_dir(flags: Mapping[str, Any]) -> Path:
    """The state directory alone, by the same order, so that other settings may be wrong. Raises ConfigError."""
    return state_dir(with_unit(flags))


def object_target(resource: str, name: str, namespace: str) -> tuple[str, str]:
    """RESOURCE and [NAMESPACE/]NAME of the one object that the arguments name. Raises UsageError without a name."""
    resource, name = split_target(resource, name, namespace)
    if not resource:
        raise click.UsageError("Missing argument 'RESOURCE'")
    if not name.rpartition("/")[2]:
        raise click.UsageError("Missing argument '[NAMESPACE/]NAME'")
    return resource, name


def ask_agent_or_store(directory: Path, request: Json, fallback: Callable[[], Answer]) -> Json | Answer:
    """The answer of the agent of a state directory; without an agent, the result of `fallback`, which reads the store.

    `fallback` raises Locked while an agent that is starting, or stuck, has the directory but no socket. Raises Unsure
    when that lasts.
    """
    if content := ask(directory, request):
        return content
    from crsyncer.adapters.retries import retried  # slow: imports asyncio

    @retried(Locked, seconds=_START_TIMEOUT_SECONDS, interval=0.1)
    def ask_again() -> Json | Answer:
        return ask(directory, request) or fallback()

    try:
        return ask_again()
    except Locked as error:
        raise Unsure(
            f"the agent (pid {error.pid or 'unknown'}) is running, but does not answer",
            hint="it may still be starting; if this lasts, read its log and restart it",
        ) from None


def send_command(directory: Path, **request: Any) -> Json:
    """The answer of the agent of a state directory to a control command. Raises SyncError without an agent."""

    def no_agent() -> Json:
        from crsyncer.adapters.store.statedir import Lock

        lock = Lock(directory)
        lock.peek()  # raises Locked while an agent is starting
        lock.release()
        raise SyncError(
            f"no agent is running on {directory}, and this command needs one",
            hint=f"{START_HINT}; is this the right --state-dir?",
        )

    return ask_agent_or_store(directory, request, no_agent)


def report_error(error: BaseException) -> int:
    """Print an error to stderr and return the exit code: 2 for usage and configuration, 1 for everything else.

    One line, and a line with the hint: scripts read the last line.
    """
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "crsyncer"
        return _print_error(f"{error.format_message().rstrip('.')} (see {command} --help)", code=2)
    if isinstance(error, click.ClickException):
        return _print_error(error.format_message(), code=error.exit_code)
    if isinstance(error, ConfigError):
        return _print_error(f"{error} ({error.hint})" if error.hint else str(error), code=2)
    if isinstance(error, SyncError):
        return _print_error(str(error), hint=error.hint)
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        return _print_error(str(error))  # often the disk that the output goes to
    raise error


def _print_error(message: str, *, hint: str = "", code: int = 1) -> int:
    for label, text in (("crsyncer", message), ("hint", hint)):
        if text:
            print(f"{label}: {' '.join(plain(text).split())}", file=sys.stderr)
    return code
