"""`crsyncer fleet plan`: every write of a replica that would follow."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crsyncer.cli.fleet.cloud import cloud, cloud_options, file_option, load_cloud, placement_name, shards
from crsyncer.cli.output import full_name, namespace_option, object_name, output_options, show
from crsyncer.cli.shared import report_error
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, plain
from crsyncer.errors import SyncError, first_error

if TYPE_CHECKING:
    from crsyncer.adapters.config import FleetSettings

_NOT_KNOWN = 2


@click.command("plan", params=cloud_options())
@file_option
@click.option("--without", metavar="[NAMESPACE/]PLACEMENT", default="", help="A placement that counts as deleted.")
@namespace_option
@output_options
def fleet_plan(file: Path | None, without: str, namespace: str, output: str, **flags: Any) -> int:
    """Print every create, update and delete of a replica that would follow from what is stored.

    With -f and --without, from what would be stored then: so the cost of an edit is seen before it is made. Reads the
    cloud with your kubeconfig and changes nothing. Objects of FILE are tried on the cloud as a dry run. The replicas of
    a shard's robots are read there, with --shard as `fleet run` has it.

    Each write is made now, inTurn (a rollout lets its robot wait for others), deferred (until its robot is online
    again) or held (until somebody releases the hold).

    Exit codes, as of crsyncer diff: 0 no write, 1 writes, 2 usage, or not everything is known.
    """
    settings = load_cloud(flags)
    deleted = placement_name(without, namespace) if without else ""

    import asyncio  # slow; `--help` and usage errors must stay fast

    try:
        content, notes, failures = asyncio.run(_plan(settings, file, namespace, deleted))
    except (SyncError, BaseExceptionGroup) as error:
        # Not 1, which means that the writes are known.
        report_error(first_error(error))
        return _NOT_KNOWN
    names = [f"{each['verb']} {full_name(each)}" for each in content["writes"]]
    show(content, output, names=names, text=lambda: "\n".join(map(plain, _lines(content))))
    for note in notes:
        click.echo(f"crsyncer: note: {plain(note)}", err=True)
    for failure in failures:
        report_error(failure)
    return _NOT_KNOWN if failures else int(bool(content["writes"]))


async def _plan(
    settings: "FleetSettings", file: Path | None, namespace: str, deleted: str
) -> tuple[Json, list[str], list[SyncError]]:
    from crsyncer.cli.fleet.given import read_objects
    from crsyncer.cli.fleet.read_facts import read_turns
    from crsyncer.cli.fleet.tried import given_placements, try_deletion, try_objects
    from crsyncer.cli.fleet.whole_fleet import load_fleet
    from crsyncer.fleet.domain.shown.planning import plan

    given = read_objects(file, settings, namespace or "default") if file is not None else ()
    async with cloud(settings) as send, shards(settings) as others:
        found = await load_fleet(send, settings, others, named=given_placements(given))
        notes = await try_objects(send, found, given) if given else []
        turns = await read_turns(send, found, others)
    if deleted:
        try_deletion(found, deleted)
    unknown = found.unknown()
    content = plan(found.fleet, found.losses, found.fleet.all_keys(), now=found.now, turns=turns)
    return content, notes, unknown


def _lines(content: Json) -> list[str]:
    lines = []
    for each in content["writes"]:
        by = f", by {each['placement']}" if each["placement"] else ""
        when = "" if each["when"] == "now" else f" ({each['when']})"
        where = "" if each["shard"] == ROOT else f" on shard {each['shard']}"
        lines.append(f"{each['verb']} {each['resource']} {object_name(each)}{where}: of {each['source']}{by}{when}")
    lines += [
        f"blocked {each['source']} for {each['robot'] or 'all robots'}: {each['reason']}: {each['message']}"
        for each in content["blocked"]
    ]
    counts = [count(content["counts"][verb], verb) for verb in content["counts"]]
    later = [each["when"] for each in content["writes"] if each["when"] != "now"]
    rest = [f"{later.count(when)} {when}" for when in dict.fromkeys(later)]
    if content["blocked"]:
        rest.append(f"{len(content['blocked'])} blocked")
    return [*lines, ", ".join(counts) + (f"; {', '.join(rest)}" if rest else "")]
