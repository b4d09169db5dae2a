"""`crsyncer holds`: deletions and conflicts that wait for your decision."""

import time
from typing import Any

import click

from crsyncer.cli.output import confirmed, output_options, show, yes_option
from crsyncer.cli.shared import find_state_dir, send_command, settings_options
from crsyncer.cli.status import read_status
from crsyncer.console.screens.screen import table
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, duration, plain, unix
from crsyncer.errors import SyncError

SCHEMA = "crsyncer.holds/v1"
_DEFAULT_NAMES = 5
_MAX_NAMES = 50


@click.group()
def holds() -> None:
    """Show what waits for your decision, and release deletions that are held because they may be a mistake.

    A hold on deletions ends when the objects reappear upstream or when you release it. Other holds, such as NameTaken
    or Contested, end when their conflict is fixed. Ids stay the same across a restart.
    """


@holds.command("list", params=settings_options("state_dir"))
@output_options
def list_(output: str, **flags: Any) -> int:
    """Show what is held, since when, and what to do about it. Works without an agent."""
    status = read_status(find_state_dir(flags))
    found = status["holds"]
    if not found and status["store"]["state"] == "unreadable":
        raise SyncError("the store cannot be read, so it is not known what is held", hint=status["reasons"][-1]["hint"])
    content = {"schema": SCHEMA, "holds": found}
    names = [hold["id"] for hold in found]
    show(content, output, names=names, text=lambda: _list(found, _DEFAULT_NAMES), wide=lambda: _list(found, _MAX_NAMES))
    return 0


def _list(found: list[Json], limit: int) -> str:
    if not found:
        return "nothing is held"
    now = time.time()
    rows = [
        (hold["id"], hold["reason"], hold["resource"] or "-", str(hold["objects"]), duration(now - unix(hold["since"])))
        for hold in found
    ]
    lines = [table(("ID", "REASON", "RESOURCE", "OBJECTS", "AGE"), rows)]
    for hold in found:
        lines += ["", plain(f"{hold['id']}: {hold.get('message') or hold['reason']}")]
        names = hold.get("names", [])[:limit]
        if names:
            rest = f" and {hold['objects'] - len(names)} more" if hold["objects"] > len(names) else ""
            lines.append(plain(f"    {', '.join(names)}{rest}"))
        lines.append(plain(f"    -> {hold['hint']}"))
    return "\n".join(lines)


@holds.command(params=settings_options("state_dir"))
@click.argument("hold_id", metavar="ID")
@yes_option
@output_options
def release(hold_id: str, yes: bool, output: str, **flags: Any) -> int:
    """Release a hold and carry out the deletions it blocks. Shows them and asks first.

    Without a terminal and without --yes it only shows what would be deleted. The id `cloud` or `robot` accepts that
    this side is another cluster now: it is listed again, and deletions that follow from its content are held.
    """
    directory = find_state_dir(flags)
    planned = send_command(directory, command="release", id=hold_id, dryRun=True)
    names, shown = planned["names"], planned.pop("shown", None)
    lines = [_effect(planned) + (":" if names else ""), *(f"    {plain(name)}" for name in names[:_MAX_NAMES])]
    if len(names) > _MAX_NAMES:
        lines.append(f"    and {len(names) - _MAX_NAMES} more: -o json shows all")
    released = confirmed(f"release {hold_id}?", "\n".join(lines), yes=yes, output=output)
    agreed = {} if yes or shown is None else {"shown": shown}
    done = send_command(directory, command="release", id=hold_id, **agreed) if released else planned
    content = {"schema": "crsyncer.release/v1", **done, "names": names, "released": released}
    show(content, output, names=[hold_id], text=lambda: f"released {_effect(done)}" if released else "")
    return 0


def _effect(release: Json) -> str:
    """What the release of a hold does."""
    match release["reason"]:
        case "IdentityChanged":
            return f"{release['id']}: the cluster will be accepted, and deletions that follow from its content held"
        case "Manual":
            return f"{release['id']}: deletions of {release['resource']} will be carried out again"
        case "KindMissing" if "message" in release:
            return f"{release['id']}: {release['message']}"
        case "APIHeld":
            follows = f"the CRD {release['resource']} will follow {release['revision']}"
            return f"{release['id']}: {follows}; {release['message']}"
    return f"{release['id']}: {count(release['objects'], 'object')} of {release['resource']} will be deleted"


@holds.command(params=settings_options("state_dir"))
@click.argument("resource")
@output_options
def add(resource: str, output: str, **flags: Any) -> None:
    """Hold every deletion of a kind until you release it.

    RESOURCE is a kind in any spelling that kubectl takes: goals.lab.example.com, goals, goal or a short name.
    """
    done = send_command(find_state_dir(flags), command="hold", resource=resource)
    text = f"{done['id']}: deletions of {done['resource']} are held. To end this: crsyncer holds release {done['id']}"
    if not done.get("saved", True):
        text += (
            "\nwarning: the agent cannot write to its disk, so a restart of the agent ends this hold; crsyncer status "
            "shows what is wrong with the disk"
        )
    show({"schema": "crsyncer.hold/v1", **done}, output, names=[done["id"]], text=lambda: text)
