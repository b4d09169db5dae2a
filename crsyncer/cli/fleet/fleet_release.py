"""`crsyncer fleet release`: let the controller remove what it holds back for a human."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from crsyncer.cli.fleet.cloud import cloud, cloud_options, load_cloud, shards
from crsyncer.cli.output import confirmed, output_options, show, yes_option
from crsyncer.cli.shared import report_error
from crsyncer.core.reports.text import count, plain
from crsyncer.errors import SyncError

if TYPE_CHECKING:
    from crsyncer.adapters.config import FleetSettings
    from crsyncer.fleet.domain.shown.release_document import HeldHere
    from crsyncer.ports import Send

_MOST_NAMES = 50
_TRIES = 15
_PERIOD_SECONDS = 2.0
"""A placement carries the release of one hold at a time; the next waits until the controller has taken it."""


@click.command("release", params=cloud_options())
@click.argument("ids", metavar="ID...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every hold that there is.")
@yes_option
@output_options
def fleet_release(ids: tuple[str, ...], everything: bool, yes: bool, output: str, **flags: Any) -> int:
    """Release holds: the controller removes the replicas that it holds back because their loss may be a mistake.

    Shows the replicas and asks first; without a terminal and without --yes it only shows them. Those of a shard's
    robots are read there, with --shard as `fleet run` has it. Sets the annotation
    fleet.crsyncer.cloudrobotics.com/release on the placement, or on its Decision if the placement is gone. A release
    removes exactly what its ID has shown: where that has changed meanwhile, the hold has another ID, and stays.

    Exit codes: 0 done, 1 there is no such hold, or one could not be released, 2 usage.
    """
    if bool(ids) == everything:
        raise click.UsageError("either IDs, as crsyncer fleet status shows them, or --all is needed")
    settings = load_cloud(flags)

    import asyncio  # slow; `--help` and usage errors must stay fast

    from crsyncer.fleet.domain.shown.release_document import release_document

    found, unknown = asyncio.run(_find(settings, ids, named=not yes))
    for error in unknown:
        report_error(error)
    if not found:
        show(release_document((), released=False), output, names=(), text=lambda: "" if unknown else "nothing is held")
        return int(bool(unknown))
    question = f"release {count(len(found), 'hold')}?"
    released = confirmed(question, "\n".join(map(plain, _preview(found))), yes=yes, output=output)
    failures: dict[str, SyncError] = asyncio.run(_release(settings, found)) if released else {}
    done = [each for each in found if each.id not in failures]
    lines = [f"released {each.id}: {count(each.objects, 'replica')} will be removed" for each in done]
    content = release_document(done if released else found, released=released)
    show(content, output, names=[each.id for each in found], text=lambda: "\n".join(lines) if released else "")
    for error in failures.values():
        report_error(error)
    return int(bool(failures or (everything and unknown)))


def _preview(found: Sequence["HeldHere"]) -> list[str]:
    lines = []
    for each in found:
        owner = f"RobotPlacement {each.namespace}/{each.placement}" + (" (gone)" if each.decision else "")
        lines += [f"{each.id}: {count(each.objects, 'replica')} of {owner} will be removed: {each.message}"]
        if each.names is None:
            lines.append("    they cannot be named: the status may be behind, or not everything can be listed")
        lines += [f"    {name}" for name in (each.names or ())[:_MOST_NAMES]]
        if len(each.names or ()) > _MOST_NAMES:
            lines.append(f"    and {len(each.names or ()) - _MOST_NAMES} more: -o json shows all")
    return lines


async def _find(
    settings: "FleetSettings", ids: Sequence[str], *, named: bool
) -> tuple[list["HeldHere"], list[SyncError]]:
    """The holds of these IDs, or (none given) all, and what is not known. Raises SyncError for an ID of none.

    The id of a hold is made of all replicas that it keeps: where a shard cannot be read, a placement that is gone, and
    so shows no ids itself, may have others than are found here.
    """
    from crsyncer.cli.fleet.whole_fleet import load_fleet
    from crsyncer.console.compare import lister
    from crsyncer.fleet.domain.fleet_calls import DECISIONS, PLACEMENTS
    from crsyncer.fleet.domain.read_objects import placement_of
    from crsyncer.fleet.domain.rollout.decisions import decision_of
    from crsyncer.fleet.domain.shown.release_document import orphan_holds, orphans, shown_holds, with_names

    unknown: list[SyncError] = []
    async with cloud(settings) as send, shards(settings) as others:
        placements = [placement_of(raw) async for raw in lister.objects(send, PLACEMENTS)]
        decisions = [decision_of(raw) async for raw in lister.objects(send, DECISIONS)]
        holds, gone = shown_holds(placements), orphans(decisions, placements)
        known = {each.id for each in holds}
        if (gone and not known.issuperset(ids or ("all",))) or (named and holds):
            fleet = await load_fleet(send, settings, others)
            unknown = fleet.unknown()
            holds += orphan_holds(fleet.losses, gone) if not unknown else []
            holds = [with_names(each, fleet.fleet, fleet.losses) for each in holds]
    by_id = {each.id: each for each in holds}
    for each in ids:
        if each not in by_id:
            there = ", ".join(sorted(by_id)) or "none"
            missing = f"; {unknown[0]}, {unknown[0].hint}" if unknown else ""
            hint = f"what is held may have changed; there are: {there}{missing}"
            raise SyncError(f"there is no hold {each}", hint=hint)
    return ([by_id[each] for each in dict.fromkeys(ids)] if ids else holds), unknown if gone else []


async def _release(settings: "FleetSettings", found: Sequence["HeldHere"]) -> dict[str, SyncError]:
    """Ask for the release of each; by ID, what could not be asked for."""
    failures = {}
    async with cloud(settings) as send:
        for each in found:
            try:
                await _annotate(send, each)
            except SyncError as error:
                failures[each.id] = SyncError(f"{each.id} is not released: {error}", hint=error.hint)
    return failures


async def _annotate(send: "Send", held: "HeldHere") -> None:
    """Set the annotation of one hold, when no other one is on its way. Raises SyncError."""
    import asyncio

    from crsyncer.core.model import Key
    from crsyncer.core.requests.calls import MERGE_PATCH, Call
    from crsyncer.fleet.domain.fleet_calls import DECISIONS, PLACEMENTS, item
    from crsyncer.fleet.domain.values import RELEASE

    name = Key(held.namespace, held.decision or held.placement)
    path = item(DECISIONS if held.decision else PLACEMENTS, name)
    for _ in range(_TRIES):
        metadata = (await send(Call("get", "GET", path))).shown()["metadata"]
        other = (metadata.get("annotations") or {}).get(RELEASE, held.id)
        if other == held.id:
            break
        await asyncio.sleep(_PERIOD_SECONDS)
    else:
        raise SyncError(f"the release of {other} is still to be carried out", hint="does a controller run? try again")
    body = {"metadata": {"uid": metadata["uid"], "annotations": {RELEASE: held.id}}}
    (await send(Call("patch", "PATCH", path, body=body, content_type=MERGE_PATCH))).happened(patch=True)
