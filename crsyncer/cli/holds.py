"""`crsyncer holds`: deletions that are held back for a human, and how they go on."""

import time
from pathlib import Path
from typing import Any

import click

from crsyncer.cli.output import confirmed, output_options, show, yes_option
from crsyncer.cli.shared import chosen_state_dir, order, settings_options
from crsyncer.cli.status import look
from crsyncer.console.screen import table
from crsyncer.core.model import Json
from crsyncer.core.text import count, duration, plain, unix

SCHEMA = "crsyncer.holds/v1"
_SHOWN = 5
_MOST_NAMES = 50


@click.group()
def holds() -> None:
    """Show and release deletions that are held back for a human, because they may be a mistake.

    A hold ends when its objects come back, or when it is released. Ids stay the same across a restart.
    """


@holds.command("list")
@settings_options("state_dir")
@output_options
def list_(output: str, **flags: Any) -> int:
    """Show what is held, since when, and what to do about it. Needs no running agent."""
    found = look(chosen_state_dir(flags))["holds"]
    content = {"schema": SCHEMA, "holds": found}
    names = [hold["id"] for hold in found]
    show(content, output, names=names, text=lambda: _list(found, _SHOWN), wide=lambda: _list(found, _MOST_NAMES))
    return 0


def _list(found: list[Json], most: int) -> str:
    if not found:
        return "nothing is held"
    now = time.time()
    rows = [
        (hold["id"], hold["reason"], hold["resource"] or "-", str(hold["objects"]), duration(now - unix(hold["since"])))
        for hold in found
    ]
    lines = [table(("ID", "REASON", "RESOURCE", "OBJECTS", "FOR"), rows)]
    for hold in found:
        lines += ["", plain(f"{hold['id']}: {hold.get('message') or hold['reason']}")]
        names = hold.get("names", [])[:most]
        if names:
            rest = f" and {hold['objects'] - len(names)} more" if hold["objects"] > len(names) else ""
            lines.append(plain(f"    {', '.join(names)}{rest}"))
        lines.append(plain(f"    -> {hold['hint']}"))
    return "\n".join(lines)


@holds.command()
@click.argument("hold_id", metavar="ID")
@yes_option
@settings_options("state_dir")
@output_options
def release(hold_id: str, yes: bool, output: str, **flags: Any) -> int:
    """Release a hold: what it keeps back is deleted. Shows that first, and asks.

    Without a terminal and without --yes it only shows what would be deleted. The id `cloud` or `robot` accepts that
    this side is another cluster than before: it is listed anew, and what is missing there is held once more before
    it is deleted.
    """
    directory = chosen_state_dir(flags)
    planned = order(directory, command="release", id=hold_id, dryRun=True)
    if not yes:
        click.echo(_plan(planned), err=output != "text")
    released = confirmed(f"release {hold_id}?", yes=yes)
    done = order(directory, command="release", id=hold_id) if released else planned
    content = {"schema": "crsyncer.release/v1", **done, "names": planned["names"], "released": released}
    if released or output != "text":
        show(content, output, names=[hold_id], text=lambda: _done(done))
    return 0


def _plan(planned: Json) -> str:
    match planned["reason"]:
        case "IdentityChanged":
            return f"{planned['id']}: accepted as the right cluster; what it lacks is held before it is deleted"
        case "Manual":
            return f"{planned['id']}: deletions of {planned['resource']} are carried out again"
    names = planned["names"]
    lines = [f"{planned['id']}: {count(planned['objects'], 'object')} of {planned['resource']} will be deleted:"]
    lines += [f"    {plain(name)}" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        lines.append(f"    and {len(names) - _MOST_NAMES} more: -o json shows all")
    return "\n".join(lines)


def _done(done: Json) -> str:
    match done["reason"]:
        case "IdentityChanged":
            return f"released {done['id']}: the cluster is accepted; what it lacks is held: crsyncer status"
        case "Manual":
            return f"released {done['id']}: deletions of {done['resource']} are carried out again"
    return f"released {done['id']}: {count(done['objects'], 'object')} of {done['resource']} will be deleted"


@holds.command()
@click.argument("resource")
@settings_options("state_dir")
@output_options
def add(resource: str, output: str, **flags: Any) -> None:
    """Hold back every deletion of a kind, until it is released.

    RESOURCE is a kind in any spelling that kubectl takes: goals.lab.example.com, goals, goal or a short name.
    """
    directory: Path = chosen_state_dir(flags)
    done = order(directory, command="hold", resource=resource)
    text = f"{done['id']}: deletions of {done['resource']} are held until: crsyncer holds release {done['id']}"
    show({"schema": "crsyncer.hold/v1", **done}, output, names=[done["id"]], text=lambda: text)
