"""`crsyncer fleet doctor`: is everything set up for the fleet controller, and if not, what do I do?"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from crsyncer.cli.fleet.cloud import cloud, cloud_options, load_cloud, shards
from crsyncer.cli.output import output_options, show
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json, Side
from crsyncer.errors import ConfigError, SyncError

if TYPE_CHECKING:
    from crsyncer.adapters.config import FleetSettings
    from crsyncer.cli.fleet.cloud import Shards
    from crsyncer.cli.fleet.shard_checks import ShardSeen
    from crsyncer.console.set_up.doctor_report import Check
    from crsyncer.fleet.domain.values import PlacedKind, Placement
    from crsyncer.fleet.rights import Right
    from crsyncer.ports import Send

_SERVER_SECONDS = 14.0
_AT_SHARDS = ("robotsyncstates", "robotobjectstatuses")
"""The files of the fleet's kinds that a shard beside the root has to serve."""
_AT_ONCE = 16
"""Requests under way at a time."""


@click.command("doctor", params=cloud_options())
@output_options
def fleet_doctor(output: str, **flags: Any) -> int:
    """Is everything set up for the fleet controller, and if not, what do I do?

    Checks the login, certificates and clock, the CRDs, the Lease, the rights by access reviews, Robots and their
    properties, the kinds and placements, and looks for objects that nobody cares for. Reads every object of the placed
    kinds and changes nothing. The rights are those of the account that asks: run it with the controller's. Of each
    --shard: whether it answers, serves the placed kinds, and gives the rights; and which labels name none of them.

    Exit codes: 12 attention (a check fails), else 13 no controller runs, else 11 offline (the cloud does not answer),
    10 degraded (a warning), 0 healthy; 1 error, 2 usage.
    """
    settings = load_cloud(flags)

    import asyncio  # slow; `--help` and usage errors must stay fast

    from crsyncer.cli.doctor import render
    from crsyncer.console.set_up.doctor_report import document, exit_code, with_offline

    checks, is_running = asyncio.run(_examine(settings))
    content = with_offline(document(checks, pid=None if is_running is False else 0), checks)
    if is_running is None:
        content["agent"]["state"] = None
    names = ["/".join(filter(None, (check["name"], check["resource"]))) for check in content["checks"]]
    show(content, output, names=names, text=lambda: "\n".join(render(content, what="controller")))
    return exit_code(content)


async def _examine(settings: "FleetSettings") -> tuple[list["Check"], bool | None]:
    """All checks, and whether a controller runs, None: not known; of a cloud that does not answer only that."""
    import time
    from functools import partial

    from crsyncer.adapters.expressions import Expressions
    from crsyncer.adapters.kube.visit import KubeVisit
    from crsyncer.cli.fleet.fleet_checks import judge_leader
    from crsyncer.cli.fleet.read_facts import read_clock, read_leader
    from crsyncer.console.set_up.doctor_report import Check, Mark
    from crsyncer.console.set_up.questions import SetUp, examine_server
    from crsyncer.core.kinds.namespaces import EVERYWHERE

    login = (settings.cloud_kubeconfig, settings.cloud_context)
    load = partial(KubeVisit.enter, *login, insecure=settings.insecure_skip_tls_verify)
    checks = await examine_server(load, SetUp("", EVERYWHERE, time.time, Expressions), seconds=_SERVER_SECONDS)
    if any(check.state is Mark.FAIL and check.name in ("login", "server") for check in checks):
        return checks, None
    async with cloud(settings) as send, shards(settings) as others:
        now, is_running = await read_clock(send), None
        try:
            leader = await read_leader(send, settings)
        except SyncError as error:
            checks.append(
                Check("controller", Mark.UNKNOWN, f"the Lease cannot be read: {error}", error.hint, Side.CLOUD)
            )
        else:
            checks.append(judge_leader(leader, now, settings.controller_namespace))
            is_running = leader.is_running(now)
        checks += await _crds(send)
        checks += await _fleet(send, settings, others)
    return checks, is_running


async def _crds(send: "Send") -> list["Check"]:
    from crsyncer.cli.fleet.fleet_checks import judge_crd
    from crsyncer.cli.fleet.fleet_crds import KINDS
    from crsyncer.cli.fleet.placed_kinds import read_crd

    checks = []
    for shipped in map(_shipped, KINDS):
        stored: Json | SyncError | None
        try:
            stored = await read_crd(send, shipped["metadata"]["name"])
        except SyncError as error:
            stored = error
        checks.append(judge_crd(shipped, stored))
    return checks


def _shipped(name: str) -> Json:
    """A CRD of the fleet, as this version has it."""
    import yaml

    from crsyncer.cli.fleet.fleet_crds import SCHEMAS

    content: Json = yaml.safe_load((SCHEMAS / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


async def _fleet(send: "Send", settings: "FleetSettings", shards: "Shards") -> list["Check"]:
    import asyncio

    from crsyncer.cli.fleet.fleet_checks import judge_fleet
    from crsyncer.cli.fleet.read_facts import read_reports
    from crsyncer.cli.fleet.shard_checks import judge_labels, judge_shard
    from crsyncer.cli.fleet.whole_fleet import load_fleet
    from crsyncer.console.set_up.doctor_report import Check, Mark
    from crsyncer.core.requests.calls import Call
    from crsyncer.fleet.domain.values import PROPERTIES_NAMESPACE, Verdict
    from crsyncer.fleet.rights import kind_rights, own_rights

    rights = own_rights(controller_namespace=settings.controller_namespace, robots=settings.robots)
    try:
        found = await load_fleet(send, settings, shards)
        reports, _ = await read_reports(send, settings, found.fleet.index.robots, shards, now=found.now)
        namespace = await send(Call("get", "GET", f"/api/v1/namespaces/{PROPERTIES_NAMESPACE}"))
    except SyncError as error:
        unread = Check("fleet", Mark.FAIL, f"it cannot be read: {error}", error.hint or "see above", Side.CLOUD)
        return [*await _rights(send, rights), unread]
    index = found.fleet.index
    placements = index.placements.values()
    named = index.named_kinds()
    # What all robots get often may be placed by what its CRD says: who places none needs no right.
    placeable = [kind for kind in index.kinds.values() if kind.verdict is Verdict.PLACEABLE and kind.shard == ROOT]
    kinds = [kind for kind in placeable if kind.resource in named or not kind.shared]
    missing = _expressions()
    problems = {} if missing else {each.text: _problem(each) for each in placements}
    exists = namespace.status != 404
    rest = judge_fleet(
        found,
        {name: reports.of(name) for name in index.robots},
        has_properties=exists,
        expressions=missing,
        problems=problems,
    )
    checks = [*await _rights(send, [*rights, *kind_rights(kinds)]), *rest, *judge_labels(index.robots.values(), shards)]
    seen = await asyncio.gather(*(_shard(each, kinds) for each in shards.values()))
    for shard, each in zip(shards, seen, strict=True):
        checks += judge_shard(shard, each, crds=[*map(_shipped, _AT_SHARDS)])
    return checks


async def _shard(send: "Send | SyncError", kinds: Iterable["PlacedKind"]) -> "ShardSeen | SyncError":
    """A shard beside the root, or why it cannot be read. `kinds` are those that are placed."""
    from crsyncer.cli.fleet.placed_kinds import PlacedKinds, read_crd
    from crsyncer.cli.fleet.shard_checks import ShardSeen
    from crsyncer.fleet.rights import shard_rights

    if isinstance(send, SyncError):
        return send
    there = PlacedKinds(send, (), inventory="")  # Robots are not among them
    try:
        return ShardSeen(
            kinds=[await there.kind(each.group, each.plural) for each in kinds],
            crds=[await read_crd(send, _shipped(name)["metadata"]["name"]) for name in _AT_SHARDS],
            rights=await _reviews(send, shard_rights(kinds)),
        )
    except SyncError as error:
        return error


async def _rights(send: "Send", rights: Iterable["Right"]) -> list["Check"]:
    from crsyncer.cli.fleet.fleet_checks import judge_rights

    return [*judge_rights(await _reviews(send, rights))]


async def _reviews(send: "Send", rights: Iterable["Right"]) -> dict[str, dict[str, bool | None]]:
    """Ask by access reviews for every right; the answers as `judge_rights` takes them."""
    import asyncio

    from crsyncer.core.accounts.access import Act
    from crsyncer.core.pair.object_calls import access_review

    gate, found = asyncio.Semaphore(_AT_ONCE), dict[str, dict[str, bool | None]]()

    async def ask(act: Act, namespace: str) -> bool | None:
        try:
            async with gate:
                reply = await send(access_review(act, namespace))
        except SyncError:
            return None
        return bool((reply.body.get("status") or {}).get("allowed")) if reply.status == 201 else None

    for right in rights:
        plural, _, subresource = right.resource.partition("/")
        resource = f"{plural}.{right.group}".rstrip(".")
        place = "/".join(filter(None, (resource, subresource, right.namespace)))
        acts = [Act(verb, right.group, right.resource, next(iter(right.names), "")) for verb in right.verbs]
        answers = await asyncio.gather(*(ask(act, right.namespace) for act in acts))
        found.setdefault(place, {}).update(zip(right.verbs, answers, strict=True))
    return found


def _problem(placement: "Placement") -> str:
    """Why the `readyWhen` of a placement cannot be used; empty: it can."""
    from crsyncer.adapters.expressions import Expressions
    from crsyncer.fleet.domain.returned.placement_outcomes import Outcomes

    outcomes = Outcomes(placement.uid)
    outcomes.take_up(placement, Expressions)
    return outcomes.problem


def _expressions() -> str:
    """Why there is no CEL here; empty: there is."""
    from crsyncer.adapters.expressions import Expressions

    try:
        Expressions().program("true", {})
    except ConfigError as error:
        return str(error)
    return ""
