"""`crsyncer fleet explain`: why is each replica of a placement for a robot as it is?"""

from typing import TYPE_CHECKING, Any

import click

from crsyncer.cli.fleet.cloud import cloud, cloud_options, load_cloud, placement_name, shards
from crsyncer.cli.output import full_name, namespace_option, object_name, output_options, show
from crsyncer.cli.shared import report_error
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, plain
from crsyncer.errors import SyncError

if TYPE_CHECKING:
    from crsyncer.adapters.config import FleetSettings

_MARKS = {"current": "ok", "due": "..", "missing": "..", "deferred": "..", "held": "NO", "blocked": "NO"}


@click.command("explain", params=cloud_options())
@click.argument("placement", metavar="[NAMESPACE/]PLACEMENT")
@click.option("--robot", metavar="NAME", required=True, help="The robot.")
@namespace_option
@output_options
def fleet_explain(placement: str, robot: str, namespace: str, output: str, **flags: Any) -> int:
    """Why is each replica of a RobotPlacement for a robot as it is?

    Reads the cloud with your kubeconfig and decides about each replica as the controller does: current, due, missing,
    deferred (its robot is offline), held (its removal waits for a human) or blocked. The rule in brackets is that of
    the documentation. -o wide also shows digests. The replicas of a shard's robots are read there, with --shard as
    `fleet run` has it.

    Exit codes: 0 done, 1 there is no such placement, or something cannot be read, 2 usage.
    """
    settings = load_cloud(flags)
    name = placement_name(placement, namespace)

    import asyncio  # slow; `--help` and usage errors must stay fast

    content, failures = asyncio.run(_explain(settings, name, robot))
    names = [full_name(each) for each in content["replicas"]]
    show(content, output, names=names, text=lambda: _text(content), wide=lambda: _text(content, wide=True))
    for failure in failures:
        report_error(failure)
    return int(bool(failures))


async def _explain(settings: "FleetSettings", name: str, robot: str) -> tuple[Json, list[SyncError]]:
    from crsyncer.cli.fleet.read_facts import read_turns
    from crsyncer.cli.fleet.whole_fleet import load_fleet, stored_placement
    from crsyncer.fleet.domain.shown.explain_document import fleet_explain as document

    async with cloud(settings) as send, shards(settings) as others:
        found = await load_fleet(send, settings, others)
        turns = await read_turns(send, found, others)
    stored_placement(found, name)
    placement = found.fleet.index.placements[name]
    return document(found.fleet, found.losses, placement, robot, turns=turns, now=found.now), found.unknown(robot)


def _text(content: Json, *, wide: bool = False) -> str:
    placement, replicas = content["placement"], content["replicas"]
    which = "selects" if content["selected"] else "does not select"
    state = f", which is {content['state']}" if content["state"] else ""
    lines = [f"RobotPlacement {placement['namespace']}/{placement['name']} {which} robot {content['robot']}{state}."]
    if not content["robotKnown"]:
        lines = [f"There is no Robot {content['robot']}: nothing is placed for it."]
    if not replicas:
        none = "it selects no source that it may place" if content["selected"] else "none is left there"
        lines.append(f"There are no replicas: {none}.")
    for each in replicas:
        where = "" if each["shard"] == ROOT else f" on shard {each['shard']}"
        name = f"{each['resource']} {object_name(each)}{where}"
        lines += ["", f"{_MARKS[each['verdict']]}  {name}: {each['verdict']}: {each['reason']} [{each['rule']}]"]
        lines.append(f"    {each['message']}")
        other = each["governedBy"] not in (None, f"{placement['namespace']}/{placement['name']}")
        by = f", governed by {each['governedBy']}" if other else ""
        acked = {True: ", applied by the robot", False: ", not applied by the robot yet", None: ""}[each["acked"]]
        lines.append(f"    of {each['source']}{by}{acked}")
        if wide:
            lines.append(f"    uid {each['uid'] or '-'}, must be {each['stamp'] or '-'}, is {each['written'] or '-'}")
            lines.append(f"    SOURCEID {each['sourceId']}")
    verdicts = [each["verdict"] for each in replicas]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
    return "\n".join(
        plain(line) for line in [*lines, *(["", f"{count(len(replicas), 'replica')}: {counts}"] * bool(replicas))]
    )
