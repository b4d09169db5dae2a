"""What several commands share: the options of the contract, and how an error is said."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from crsyncer.adapters.config import OPTIONS, Option, state_dir
from crsyncer.adapters.control import ask
from crsyncer.core.model import Json
from crsyncer.core.text import plain
from crsyncer.errors import ConfigError, Locked, SyncError, Unsure

Command = TypeVar("Command", bound=Callable[..., Any])
Answer = TypeVar("Answer")
_PATIENCE = 3.0
"""Seconds that an agent that is just starting gets until it has opened its socket."""


def settings_options(*fields: str) -> Callable[[Command], Command]:
    """Add `--config` and the options of these settings, all of them where none is named.

    The values arrive as texts under the settings' names, as `config.load` wants them: click checks nothing, so that
    a wrong flag is answered like a wrong variable or key.
    """
    chosen = [option for option in OPTIONS if not fields or option.field in fields]

    def decorate(command: Command) -> Command:
        for option in reversed(chosen):
            if option.switch:
                command = click.option(option.flag, option.field, flag_value="true", help=_help(option))(command)
                continue
            command = click.option(
                option.flag, option.field, metavar=option.metavar, multiple=option.many, help=_help(option)
            )(command)
        return click.option(
            "--config",
            metavar="FILE",
            help="Configuration file (YAML), watched and loaded again on change. [CRSYNCER_CONFIG; default: none]",
        )(command)

    return decorate


def _help(option: Option) -> str:
    names = ", then ".join(option.variables)
    return f"{option.help} [{names}; key: {option.key}; default: {option.default}]"


def chosen_state_dir(flags: Mapping[str, Any]) -> Path:
    """The state directory that a command looks at."""
    return state_dir(flags, os.environ)


def ask_or(directory: Path, request: Json, otherwise: Callable[[], Answer]) -> Json | Answer:
    """What the agent of a state directory answers; where none runs, what `otherwise` finds in the directory.

    `otherwise` raises Locked while an agent that is starting, or stuck, has the directory but no socket.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        if content := ask(directory, request):
            return content
        try:
            return otherwise()
        except Locked as error:
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            raise Unsure(
                f"the agent (pid {error.pid or 'unknown'}) is running, but does not answer",
                hint="it may still be starting; if this stays, see its log and restart it",
            ) from None


def order(directory: Path, **request: Any) -> Json:
    """What the agent of a state directory answers to an order; raises SyncError where none runs."""

    def nobody() -> Json:
        from crsyncer.adapters.store.statedir import Lock

        lock = Lock(directory)
        lock.peek()
        lock.release()
        raise SyncError(
            f"no agent is running on {directory}, and this needs one",
            hint="systemctl start crsyncer (or crsyncer run); is this the right --state-dir?",
        )

    return ask_or(directory, request, nobody)


def explain(error: BaseException) -> int:
    """Say an error on stderr and return the exit code: 2 for what was asked, 1 for what went wrong."""
    if isinstance(error, click.UsageError):
        of = f" {error.ctx.command_path}" if error.ctx else " crsyncer"
        return _say(f"{error.format_message().rstrip('.')} (see{of} --help)", code=2)
    if isinstance(error, click.ClickException):
        return _say(error.format_message(), code=error.exit_code)
    if isinstance(error, ConfigError):
        # One line, whatever happens: scripts read the last line, and so do people.
        return _say(f"{error} ({error.hint})" if error.hint else str(error), code=2)
    if isinstance(error, SyncError):
        return _say(str(error), hint=error.hint)
    raise error


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report out of those that ended tasks together: one we know, if all are known; else the group."""
    leaves = list(_leaves([group]))
    known = [leaf for leaf in leaves if isinstance(leaf, SyncError)]
    return known[0] if len(known) == len(leaves) else group


def _leaves(errors: Iterable[BaseException]) -> Iterable[BaseException]:
    for error in errors:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error.exceptions)
        else:
            yield error


def _say(message: str, *, hint: str = "", code: int = 1) -> int:
    for label, text in (("crsyncer", message), ("hint", hint)):
        if text:
            print(f"{label}: {' '.join(plain(text).split())}", file=sys.stderr)
    return code
