"""`crsyncer pending`: the outbox, and what was refused for good."""

import json
import time
from pathlib import Path
from typing import Any

import click

from crsyncer.cli.shared import as_json_option, ask_or, chosen_state_dir, order, settings_options, show_json, table
from crsyncer.core.model import Json
from crsyncer.core.text import count, duration, plain, rfc3339, unix


@click.group()
def pending() -> None:
    """What waits for the other side, since when, and how often it was tried.

    A dead letter is what was refused for good. It is tried again hourly, and when the object or its schema changes.
    """


@pending.command("list")
@settings_options("state_dir")
@as_json_option
def list_(as_json: bool, **flags: Any) -> int:
    """The outbox, oldest first. Needs no running agent, which alone knows of copies that were refused."""
    directory = chosen_state_dir(flags)
    content = ask_or(directory, {"command": "pending"}, lambda: _stored(directory))
    rows = sorted(content["pending"], key=lambda row: (row["since"] or "", row["resource"], row["name"]))
    if as_json:
        show_json({"pending": rows})
        return 0
    if not rows:
        click.echo("nothing is pending")
        return 0
    now = time.time()
    heads = ("RESOURCE", "OBJECT", "WHAT", "FOR", "TRIED", "NEXT TRY", "LAST ANSWER")
    click.echo(table(heads, [_cells(row, now) for row in rows]))
    return 0


@pending.command()
@click.argument("resource", required=False, default="")
@click.argument("name", metavar="[[NAMESPACE/]NAME]", required=False, default="")
@settings_options("state_dir")
def retry(resource: str, name: str, **flags: Any) -> None:
    """Try dead letters again now: all, those of a kind, or what is pending of one object."""
    done = order(chosen_state_dir(flags), command="retry", resource=resource, name=name)["revived"]
    if not done:
        click.echo("there are no dead letters")
        return
    click.echo(f"{count(len(done), 'object')} tried again; crsyncer pending list shows what became of it")


@pending.command()
@click.argument("resource")
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.option("--yes", is_flag=True, help="Do it. Without this, it is only said what would be lost.")
@settings_options("state_dir")
def drop(resource: str, name: str, yes: bool, **flags: Any) -> int:
    """Give a dead letter up: this status never reaches the other side. The next one is sent again."""
    done = order(chosen_state_dir(flags), command="drop", resource=resource, name=name, confirmed=yes)
    what = plain(f"{done['resource']} {_name(done)}")
    if done["dropped"]:
        click.echo(f"dropped: the status of {what}")
        return 0
    click.echo(f"this status of {what}, waiting since {done['since']}, would never reach the {done['to']}:")
    click.echo(plain(json.dumps(done["status"], ensure_ascii=False)))
    click.echo(plain(f"it was refused: {done['refusal']}"))
    click.echo("hint: to drop it, say it again with --yes", err=True)
    return 1


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


def _name(row: Json) -> str:
    return f"{row['namespace']}/{row['name']}" if row["namespace"] else str(row["name"])


def _cells(row: Json, now: float) -> tuple[str, ...]:
    return (
        row["resource"],
        _name(row),
        row["what"],
        duration(now - unix(row["since"])) if row["since"] else "-",
        "-" if row["attempts"] is None else str(row["attempts"]),
        f"in {duration(unix(row['nextTry']) - now)}" if row["nextTry"] else "-",
        ("dead letter: " if row["dead"] else "") + (row["error"] or ""),
    )
