"""`crsyncer pending`: the outbox and the dead letters."""

import json
import time
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.store.statedir import DATABASE
from crsyncer.cli.output import confirmed, full_name, namespace_option, object_name, output_options, show, yes_option
from crsyncer.cli.shared import ask_agent_or_store, find_state_dir, object_target, send_command, settings_options
from crsyncer.console.explained.target import split_target
from crsyncer.console.screens.report import object_fields, pending_finalizer, pending_status
from crsyncer.console.screens.screen import cut, table
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, duration, plain, unix

SCHEMA = "crsyncer.pending/v1"
_SHOWN = 4000
"""So many characters of a status are shown that is about to be dropped; `-o json` shows all."""


@click.group()
def pending() -> None:
    """Show the outbox: what waits for the other side, for how long, and how often it was tried.

    A status waits to be sent, a finalizer of blocking deletion to be removed.

    A dead letter is a write that the server rejected permanently. It is retried hourly, and when the object or its
    schema changes.
    """


@pending.command("list", params=settings_options("state_dir"))
@namespace_option
@output_options
def list_(namespace: str, output: str, **flags: Any) -> int:
    """Show the outbox, oldest first. Works without an agent, but then rejected copies are not listed."""
    directory = find_state_dir(flags)
    content = ask_agent_or_store(directory, {"command": "pending"}, lambda: _read_stored_pending(directory))
    rows = sorted(content["pending"], key=lambda row: (row["since"] or "", row["resource"], row["name"]))
    rows = [row for row in rows if namespace in ("", row["namespace"])]
    show({"schema": SCHEMA, "pending": rows}, output, names=map(full_name, rows), text=lambda: _list(rows))
    return 0


def _list(rows: list[Json]) -> str:
    if not rows:
        return "nothing is pending"
    now = time.time()
    heads = ("RESOURCE", "OBJECT", "WHAT", "AGE", "TRIED", "NEXT TRY", "LAST ANSWER")
    cells = [
        (
            row["resource"],
            object_name(row),
            row["what"],
            duration(now - unix(row["since"])) if row["since"] else "-",
            "-" if row["attempts"] is None else str(row["attempts"]),
            f"in {duration(unix(row['nextTry']) - now)}" if row["nextTry"] else "-",
            ("dead letter: " if row["dead"] else "") + (row["error"] or ""),
        )
        for row in rows
    ]
    return table(heads, cells)


@pending.command(params=settings_options("state_dir"))
@click.argument("resource", required=False, default="")
@click.argument("name", metavar="[[NAMESPACE/]NAME]", required=False, default="")
@namespace_option
@output_options
def retry(resource: str, name: str, namespace: str, output: str, **flags: Any) -> None:
    """Retry dead letters now: all, those of a kind, or everything that is pending of one object."""
    resource, name = split_target(resource, name, namespace)
    retried = send_command(find_state_dir(flags), command="retry", resource=resource, name=name)["revived"]
    text = f"retrying {count(len(retried), 'object')}; crsyncer pending list shows the result"
    content = {"schema": "crsyncer.retry/v1", "revived": retried}
    names = map(full_name, retried)
    show(content, output, names=names, text=lambda: text if retried else "there are no dead letters")


@pending.command(params=settings_options("state_dir"))
@click.argument("resource")
@click.argument("name", metavar="[NAMESPACE/]NAME", required=False, default="")
@namespace_option
@yes_option
@output_options
def drop(resource: str, name: str, namespace: str, yes: bool, output: str, **flags: Any) -> int:
    """Discard a dead letter: its status is not sent. Shows it and asks first.

    Without a terminal and without --yes it only shows it. The object's next status is sent again.
    """
    resource, name = object_target(resource, name, namespace)
    directory = find_state_dir(flags)
    letter = send_command(directory, command="drop", resource=resource, name=name, confirmed=False)
    what = plain(f"{letter['resource']} {object_name(letter)}")
    preview = (
        f"this status of {what}, waiting since {letter['since']}, will not be sent to the {letter['to']}:",
        cut(json.dumps(letter["status"], ensure_ascii=False), _SHOWN),
        plain(f"it was rejected: {letter['refusal']}"),
    )
    if confirmed(f"drop the status of {what}?", "\n".join(preview), yes=yes, output=output):
        resource, name = letter["resource"], object_name(letter)
        letter = send_command(directory, command="drop", resource=resource, name=name, confirmed=True)
    text = f"dropped: the status of {what}" if letter["dropped"] else ""
    show({"schema": "crsyncer.drop/v1", **letter}, output, names=[full_name(letter)], text=lambda: text)
    return 0


def _read_stored_pending(directory: Path) -> Json:
    from crsyncer.adapters.store.offline import read_offline  # SQLite is not needed while the agent answers

    kinds = read_offline(directory).kinds if (directory / DATABASE).exists() else {}
    stored = [(row, resource, key) for resource, kind in kinds.items() for key, row in kind.pending.items()]
    stored.sort(key=lambda found: found[0].since)
    rows = [object_fields(resource, key) | pending_status(row, None) for row, resource, key in stored]
    rows += [
        object_fields(resource, key) | pending_finalizer(row)
        for resource, kind in kinds.items()
        for key, row in kind.finalizers.items()
        if row.since
    ]
    return {"pending": rows}
