"""`crsyncer holds`: what is held back for a human, and how it goes on."""

import time
from typing import Any

import click

from crsyncer.cli.shared import as_json_option, chosen_state_dir, order, settings_options, show_json, table
from crsyncer.cli.status import look
from crsyncer.core.text import count, duration, plain, unix

_SHOWN = 5


@click.group()
def holds() -> None:
    """Deletions that are held back for a human, because they may be a mistake.

    A hold ends when its objects come back, or when it is released. Ids stay the same across a restart.
    """


@holds.command("list")
@settings_options("state_dir")
@as_json_option
def list_(as_json: bool, **flags: Any) -> int:
    """What is held, since when, and what to do about it. Needs no running agent."""
    found = look(chosen_state_dir(flags))["holds"]
    if as_json:
        show_json({"holds": found})
        return 0
    if not found:
        click.echo("nothing is held")
        return 0
    now = time.time()
    rows = [
        (hold["id"], hold["reason"], hold["resource"] or "-", str(hold["objects"]), duration(now - unix(hold["since"])))
        for hold in found
    ]
    click.echo(table(("ID", "REASON", "RESOURCE", "OBJECTS", "FOR"), rows))
    for hold in found:
        click.echo(plain(f"\n{hold['id']}: {hold.get('message') or hold['reason']}"))
        names = hold.get("names", [])
        if names:
            rest = f" and {hold['objects'] - _SHOWN} more" if hold["objects"] > _SHOWN else ""
            click.echo(plain(f"    {', '.join(names[:_SHOWN])}{rest}"))
        click.echo(plain(f"    -> {hold['hint']}"))
    return 0


@holds.command()
@click.argument("hold_id", metavar="ID")
@settings_options("state_dir")
def release(hold_id: str, **flags: Any) -> None:
    """Let go on what a hold keeps back: its copies are deleted.

    The ID `cloud` or `robot` accepts that this side is another cluster than before: it is listed anew, and what is
    missing there is held once more before it is deleted.
    """
    done = order(chosen_state_dir(flags), command="release", id=hold_id)
    if done["reason"] == "IdentityChanged":
        click.echo(
            f"released {hold_id}: it is the right cluster from now on; what it lacks will be held: crsyncer status"
        )
    elif done["reason"] == "Manual":
        click.echo(f"released {hold_id}: deletions of {done['resource']} are carried out again")
    else:
        click.echo(f"released {hold_id}: {count(done['objects'], 'object')} of {done['resource']} will be deleted")


@holds.command()
@click.argument("resource")
@settings_options("state_dir")
def add(resource: str, **flags: Any) -> None:
    """Hold back every deletion of a kind, until it is released.

    RESOURCE is a CRD's name, such as goals.lab.example.com; where only one kind has it, the plural will do.
    """
    done = order(chosen_state_dir(flags), command="hold", resource=resource)
    click.echo(f"{done['id']}: deletions of {done['resource']} are held until: crsyncer holds release {done['id']}")
