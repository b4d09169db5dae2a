"""`crsyncer run`: the agent, in the foreground."""

import os
import signal
import sys
from functools import partial
from types import FrameType
from typing import Any

import click

from crsyncer.adapters.config import load
from crsyncer.adapters.memory import return_freed_memory
from crsyncer.cli import logs
from crsyncer.cli.shared import settings_options
from crsyncer.errors import SyncError


@click.command()
@settings_options()
def run(**flags: Any) -> int:
    """The agent, in the foreground.

    What is synced is said by the annotations of the robot's CRDs. A setting is taken from its flag, else from its
    variable, else from the configuration file, else it has its default.

    SIGTERM and SIGINT stop it within 10 seconds, exit code 0. SIGHUP loads configuration and credentials again.
    """
    return_freed_memory()
    again = partial(load, flags, dict(os.environ))
    settings = again()
    # Until the agent handles these itself: a stop is a stop, and what a reload would read has only just been read.
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Statuses and specs are nobody else's business: whatever is created from here on is the agent's own.
    os.umask(0o077)
    # API servers take JSON nested 10,000 levels deep: one such object shall be synced, not stop all the others.
    sys.setrecursionlimit(50_000)
    logs.set_up(settings.log_format, settings.log_level)

    import asyncio  # these take half a second, and `--help` and wrong flags shall not wait for them

    from crsyncer.agent import run as run_agent

    try:
        return asyncio.run(run_agent(settings, again, set_up_logs=logs.set_up))
    except Exception as error:
        if _lacks_memory(error):
            raise SyncError(
                "out of memory; nothing is lost, the next start goes on where this one was",
                hint="raise the limit (MemoryMax= of the unit, the pod's memory limit, ulimit -v)",
            ) from None
        raise


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether it all began with a MemoryError: what fails next for the same want is raised over it."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__ or error.__context__
    return error is not None


def _stop(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)
