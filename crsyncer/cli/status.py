"""`crsyncer status`: is my robot in sync, and if not, what do I do?"""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.store.statedir import DATABASE
from crsyncer.cli.output import TEXTS, output_options, show
from crsyncer.cli.shared import ask_agent_or_store, find_state_dir, report_error, settings_options
from crsyncer.console.screens.report import SAVED_STATUS_KEY, exit_code, stopped_document
from crsyncer.console.screens.screen import render
from crsyncer.core.model import Json
from crsyncer.errors import StoreError, Unsure

STATUS_REQUEST = {"command": "status"}
"""The agent answers it with the status document."""
_COLOURS = {"healthy": "green", "degraded": "yellow", "offline": "cyan", "attention": "red"}


@click.command(params=settings_options("state_dir"))
@click.option("-w", "--watch", is_flag=True, help="Repeat every second until Ctrl-C; with --json one line each time.")
@output_options
def status(output: str, watch: bool, **flags: Any) -> int:
    """Is my robot in sync, and if not, what do I do?

    Asks the running agent; without one, reads its store.

    Exit codes: 0 healthy, 10 degraded (it works, with a problem), 11 offline (the cloud cannot be reached, the robot
    keeps working), 12 attention (your action is needed), 13 the agent is not running, 1 error, 2 usage.
    """
    directory = find_state_dir(flags)
    if not watch:
        content = read_status(directory)
        _show(content, output)
        return exit_code(content)
    try:
        while True:
            try:
                content = read_status(directory)
            except Unsure as error:  # such as an agent that is restarted: the watch continues
                report_error(error)
            else:
                if sys.stdout.isatty() and output in TEXTS:
                    click.clear()
                _show(content, output, stream=True)
            time.sleep(1.0)
    except KeyboardInterrupt:
        return 0


def read_status(directory: Path) -> Json:
    """The status document of the agent of a state directory, running or not."""

    return ask_agent_or_store(directory, STATUS_REQUEST, lambda: _stored(directory))


def _show(content: Json, output: str, *, stream: bool = False) -> None:
    def screen(*, wide: bool = False) -> str:
        health, colon, rest = render(content, time.time(), wide=wide).partition(":")
        # click removes the colour when the output is not a terminal.
        return click.style(health, fg=_COLOURS[content["health"]], bold=True) + colon + rest

    names = [kind["resource"] for kind in content["kinds"]]
    show(content, output, names=names, text=screen, wide=partial(screen, wide=True), stream=stream)


def _stored(directory: Path) -> Json:
    """The document of an agent that does not run. Raises Locked while one owns the store."""
    from crsyncer.adapters.store.offline import (
        OfflineState,
        read_offline,
    )  # SQLite is not needed while an agent answers

    found, state, message = OfflineState(directory / DATABASE), "missing", None
    if os.path.exists(found.path):
        try:
            found, state = read_offline(directory), "ok"
        except StoreError as error:
            state, message = "unreadable", str(error)
    return stopped_document(
        found.meta.get(SAVED_STATUS_KEY),
        found.kinds,
        time.time(),
        store={"path": str(found.path), "bytes": found.bytes, "schema": found.schema, "state": state},
        store_message=message,
        last_write=found.last_write,
    )
