"""`crsyncer pending`: the outbox, and what was refused for good."""

import json
import time
from pathlib import Path
from typing import Any

import click

from crsyncer.cli.output import confirmed, namespace_option, object_name, output_options, show, yes_option
from crsyncer.cli.shared import ask_or, chosen_state_dir, order, settings_options
from crsyncer.console.screen import table
from crsyncer.console.target import split_target
from crsyncer.core.model import Json
from crsyncer.core.text import count, duration, plain, rfc3339, unix

SCHEMA = "crsyncer.pending/v1"


@click.group()
def pending() -> None:
    """Show the outbox: what waits for the other side, since when, and how often it was tried.

    A dead letter is what was refused for good. It is tried again hourly, and when the object or its schema changes.
    """


@pending.command("list")
@namespace_option
@settings_options("state_dir")
@output_options
def list_(namespace: str, output: str, **flags: Any) -> int:
    """Show the outbox, oldest first. Needs no running agent, which alone knows of copies that were refused."""
    directory = chosen_state_dir(flags)
    content = ask_or(directory, {"command": "pending"}, lambda: _stored(directory))
    rows = sorted(content["pending"], key=lambda row: (row["since"] or "", row["resource"], row["name"]))
    rows = [row for row in rows if namespace in ("", row["namespace"])]
    names = [f"{row['resource']}/{object_name(row)}" for row in rows]
    show({"schema": SCHEMA, "pending": rows}, output, names=names, text=lambda: _list(rows))
    return 0


def _list(rows: list[Json]) -> str:
    if not rows:
        return "nothing is pending"
    now = time.time()
    heads = ("RESOURCE", "OBJECT", "WHAT", "FOR", "TRIED", "NEXT TRY", "LAST ANSWER")
    return table(heads, [_cells(row, now) for row in rows])


@pending.command()
@click.argument("resource", required=False, default="")
@click.argument("name", metavar="[[NAMESPACE/]NAME]", required=False, default="")
@namespace_option
@settings_options("state_dir")
@output_options
def retry(resource: str, name: str, namespace: str, output: str, **flags: Any) -> None:
    """Try dead letters again now: all, those of a kind, or what is pending of one object."""
    resource, name = split_target(resource, name, namespace)
    done = order(chosen_state_dir(flags), command="retry", resource=resource, name=name)["revived"]
    text = f"{count(len(done), 'object')} tried again; crsyncer pending list shows what became of it"
    names = [f"{row['resource']}/{object_name(row)}" for row in done]
    content = {"schema": "crsyncer.retry/v1", "revived": done}
    show(content, output, names=names, text=lambda: text if done else "there are no dead letters")


@pending.command()
@click.argument("resource")
@click.argument("name", metavar="[NAMESPACE/]NAME", required=False, default="")
@namespace_option
@yes_option
@settings_options("state_dir")
@output_options
def drop(resource: str, name: str, namespace: str, yes: bool, output: str, **flags: Any) -> int:
    """Give a dead letter up: this status never reaches the other side. Shows what would be lost first, and asks.

    Without a terminal and without --yes it only shows that. The object's next status is sent again.
    """
    resource, name = split_target(resource, name, namespace)
    if not name:
        raise click.UsageError("Missing argument '[NAMESPACE/]NAME'")
    directory = chosen_state_dir(flags)
    found = order(directory, command="drop", resource=resource, name=name, confirmed=False)
    what = plain(f"{found['resource']} {object_name(found)}")
    if not yes:
        lost = plain(json.dumps(found["status"], ensure_ascii=False))
        click.echo(
            f"this status of {what}, waiting since {found['since']}, would never reach the {found['to']}:\n{lost}\n"
            + plain(f"it was refused: {found['refusal']}"),
            err=output != "text",
        )
    if confirmed(f"drop the status of {what}?", yes=yes):
        found = order(directory, command="drop", resource=found["resource"], name=object_name(found), confirmed=True)
    if found["dropped"] or output != "text":
        names = [f"{found['resource']}/{object_name(found)}"]
        content = {"schema": "crsyncer.drop/v1", **found}
        show(content, output, names=names, text=lambda: f"dropped: the status of {what}")
    return 0


def _stored(directory: Path) -> Json:
    from crsyncer.adapters.store.offline import read_pending  # SQLite is not needed while the agent answers

    if not (directory / "state.db").exists():
        return {"pending": []}
    return {
        "pending": [
            {
                "resource": resource,
                "namespace": key.namespace,
                "name": key.name,
                "what": "status",
                "to": None,
                "since": rfc3339(row.since),
                "attempts": row.attempts,
                "error": row.error or None,
                "dead": row.dead,
                "nextTry": None,
            }
            for resource, key, row in read_pending(directory)
        ]
    }


def _cells(row: Json, now: float) -> tuple[str, ...]:
    return (
        row["resource"],
        object_name(row),
        row["what"],
        duration(now - unix(row["since"])) if row["since"] else "-",
        "-" if row["attempts"] is None else str(row["attempts"]),
        f"in {duration(unix(row['nextTry']) - now)}" if row["nextTry"] else "-",
        ("dead letter: " if row["dead"] else "") + (row["error"] or ""),
    )
