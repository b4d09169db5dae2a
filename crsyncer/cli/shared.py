"""What several commands share: the options of the contract, and how an error is said."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from crsyncer.edges.config import OPTIONS, Option, state_dir
from crsyncer.errors import ConfigError, SyncError

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_options(*fields: str) -> Callable[[Command], Command]:
    """Add `--config` and the options of these settings, all of them where none is named.

    The values arrive as texts under the settings' names, as `config.load` wants them: click checks nothing, so that
    a wrong flag is answered like a wrong variable or key.
    """
    chosen = [option for option in OPTIONS if not fields or option.field in fields]

    def decorate(command: Command) -> Command:
        for option in reversed(chosen):
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
            line = "".join(character if character.isprintable() else " " for character in text)
            print(f"{label}: {' '.join(line.split())}", file=sys.stderr)
    return code
