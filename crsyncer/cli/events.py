"""`crsyncer events`: the latest things that the agent did or refused."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.store.statedir import DATABASE
from crsyncer.cli.output import full_name, namespace_option, object_name, output_options, show
from crsyncer.cli.shared import ask_agent_or_store, find_state_dir, report_error, settings_options
from crsyncer.console.explained.target import split_target, synced_resource
from crsyncer.console.screens.report import SAVED_STATUS_KEY, event_row
from crsyncer.console.screens.screen import table
from crsyncer.core.model import Json
from crsyncer.core.reports.event_ring import load_events
from crsyncer.core.reports.text import count
from crsyncer.errors import Unsure

SCHEMA = "crsyncer.events/v1"
_HEADS = ("TIME", "SIDE", "RESOURCE", "OBJECT", "ACTION", "RULE", "MESSAGE")
_WIDE_HEADS = ("TIME", "FIRST TIME", "COUNT", *_HEADS[1:])


@click.command(params=settings_options("state_dir"))
@click.argument("targets", metavar="[RESOURCE[/[NAMESPACE/]NAME]]...", nargs=-1)
@namespace_option
@click.option("-w", "--watch", is_flag=True, help="Continue with new events until Ctrl-C; JSON is one line each time.")
@output_options
def events(targets: tuple[str, ...], namespace: str, output: str, watch: bool, **flags: Any) -> int:
    """Show the latest hundred things that the agent did or refused, the latest last: of all kinds, or of these.

    What repeats is one line with a count, and of many objects at once only the first are named. Statuses that were
    sent, and tries that failed and are repeated, are not listed: crsyncer pending list shows what waits, the log at
    level debug each of them. Works without an agent.
    """
    directory = find_state_dir(flags)

    def read() -> list[Json]:
        content = ask_agent_or_store(directory, {"command": "events"}, lambda: _read_stored(directory))
        return _selected(content, targets, namespace)

    rows = read()
    _show(rows, output, stream=watch)
    try:
        while watch:
            time.sleep(1.0)
            try:
                known, rows = rows, read()
            except Unsure as error:  # such as an agent that is restarted: the watch continues
                report_error(error)
                continue
            if new := [row for row in rows if row not in known]:
                _show(new, output, stream=True, heads=False)
    except KeyboardInterrupt:
        pass
    return 0


def _selected(content: Json, targets: Sequence[str], namespace: str) -> list[Json]:
    """The rows that were asked for; raises SyncError for a kind that there is not."""
    rows: list[Json] = [row for row in content["events"] if namespace in ("", row["namespace"])]
    kinds = {row["resource"]: () for row in content["events"]} | content["kinds"]
    wanted = []
    for target in targets:
        resource, name = split_target(target, "", namespace)
        wanted.append((synced_resource(resource, kinds), name))

    def is_wanted(row: Json) -> bool:
        names = ("", row["name"], object_name(row))
        return any(row["resource"] == resource and name in names for resource, name in wanted)

    return [row for row in rows if not wanted or is_wanted(row)]


def _show(rows: Sequence[Json], output: str, *, stream: bool, heads: bool = True) -> None:
    def text(*, wide: bool = False) -> str:
        if not rows:
            return "" if stream else "no events"
        shown = table(_WIDE_HEADS if wide else _HEADS, [_cells(row, wide=wide) for row in rows])
        return shown if heads else shown.partition("\n")[2]

    names = dict.fromkeys(full_name(row) if row["name"] else row["resource"] for row in rows)
    show(
        {"schema": SCHEMA, "events": rows},
        output,
        names=names,
        text=text,
        wide=lambda: text(wide=True),
        stream=stream,
    )


def _cells(row: Json, *, wide: bool) -> tuple[str, ...]:
    name = object_name(row) if row["name"] else "-"
    about = (row["side"], row["resource"], f"{name} and others" if row["several"] else name, row["action"], row["rule"])
    if wide:
        return (row["time"], row["firstTime"], str(row["count"]), *about, row["message"])
    repeated = f"({count(row['count'], 'time')}) " if row["count"] > 1 else ""
    return (row["time"], *about, repeated + row["message"])


def _read_stored(directory: Path) -> Json:
    from crsyncer.adapters.store.offline import read_meta  # SQLite is not needed while the agent answers

    meta = read_meta(directory) if (directory / DATABASE).exists() else {}
    found = sorted(load_events(meta.get).values(), key=lambda event: event.last)
    saved = meta.get(SAVED_STATUS_KEY) or {"kinds": []}
    kinds = {kind["resource"]: kind.get("aliases", ()) for kind in saved["kinds"]}
    return {"events": [event_row(event) for event in found], "kinds": kinds}
