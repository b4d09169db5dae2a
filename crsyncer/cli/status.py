"""`crsyncer status`: is my robot in sync, and if not, what do I do?"""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from crsyncer import __version__
from crsyncer.adapters.config import state_dir
from crsyncer.adapters.store.statedir import DATABASE
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import ask_agent_or_store, report_error, settings_options
from crsyncer.console.report import OutboxFacts, StoredFacts, StoredKind, StoreFacts, exit_code, stopped_document
from crsyncer.console.screen import render
from crsyncer.core.model import Json, Side
from crsyncer.errors import StoreError, Unsure

STATUS_REQUEST = {"command": "status"}
"""The agent answers it with the status document."""
SAVED_STATUS_KEY = "status"
"""The store's key of the last status document."""
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
    directory = state_dir(flags)
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
                if sys.stdout.isatty() and output in ("text", "wide"):
                    click.clear()
                _show(content, output, stream=True)
            time.sleep(1.0)
    except KeyboardInterrupt:
        return 0


def read_status(directory: Path) -> Json:
    """The status document of the agent of a state directory, running or not."""

    def stored() -> Json:
        saved, found = _stored(directory)
        return stopped_document(saved, found, time.time(), version=__version__)

    return ask_agent_or_store(directory, STATUS_REQUEST, stored)


def _show(content: Json, output: str, *, stream: bool = False) -> None:
    def screen(*, wide: bool) -> str:
        health, colon, rest = render(content, time.time(), wide=wide).partition(":")
        # click removes the colour when the output is not a terminal.
        return click.style(health, fg=_COLOURS[content["health"]], bold=True) + colon + rest

    names = [kind["resource"] for kind in content["kinds"]]
    text, wide = partial(screen, wide=False), partial(screen, wide=True)
    show(content, output, names=names, text=text, wide=wide, stream=stream)


def _stored(directory: Path) -> tuple[Json | None, StoredFacts]:
    """The last status document that the agent saved, and the store's content. Raises Locked while an agent owns it."""
    from crsyncer.adapters.store.offline import read_offline  # SQLite is not needed while the agent answers

    path = directory / DATABASE
    if not os.path.exists(path):
        return None, StoredFacts(StoreFacts(str(path), state="missing"))
    try:
        found = read_offline(directory)
    except StoreError as error:
        return None, StoredFacts(StoreFacts(str(path), state="unreadable", message=str(error)))
    kinds = {}
    for resource, kind in found.kinds.items():
        versions = {side: {c.resource_version for (s, _), c in kind.cursors.items() if s is side} for side in Side}
        kinds[resource] = StoredKind(
            # Zero objects without a cursor means: never listed.
            objects={side: len(kind.views[side]) if kind.views[side] or versions[side] else None for side in Side},
            cursor={side: max(versions[side], key=_as_number, default=None) for side in Side},
            pending_status=len(kind.pending),
        )
    waiting = [row for kind in found.kinds.values() for row in kind.pending.values()]
    oldest = min((row.since for row in waiting), default=None)
    saved = found.meta.get(SAVED_STATUS_KEY)
    return saved if isinstance(saved, dict) else None, StoredFacts(
        store=StoreFacts(str(found.path), bytes=found.bytes, schema=found.schema),
        outbox=OutboxFacts(len(waiting), oldest, sum(row.dead for row in waiting)),
        kinds=kinds,
        last_write=max(file.stat().st_mtime for file in directory.glob(f"{DATABASE}*")),
    )


def _as_number(text: str) -> int:
    return int(text) if text.isdigit() else 0
