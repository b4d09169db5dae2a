"""Reads what `fleet status` shows of the cloud: no object of a placed kind, and of Robots their metadata alone."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.fleet.stored import dead_kinds, robots_place
from crsyncer.console.compare import lister
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import JSON, PARTIAL_LIST, Collection
from crsyncer.errors import NotServed, SyncError
from crsyncer.fleet.domain import lease
from crsyncer.fleet.domain.fleet_calls import DECISIONS, PLACEMENTS, STRIPS, SYNC_STATES
from crsyncer.fleet.domain.read_objects import placement_of, robot_of
from crsyncer.fleet.domain.rollout.decisions import decision_of
from crsyncer.fleet.domain.rollout.reports import Reports
from crsyncer.fleet.domain.shown.fleet_facts import FleetFacts, FleetReports, Leader, last_edit, leader_of
from crsyncer.fleet.domain.shown.turns import Turns
from crsyncer.fleet.domain.values import Robot

if TYPE_CHECKING:
    from crsyncer.cli.fleet.cloud import Shards
    from crsyncer.cli.fleet.whole_fleet import WholeFleet
    from crsyncer.ports import Send


async def read_facts(send: "Send", settings: FleetSettings, shards: "Shards") -> FleetFacts:
    """The fleet as the cloud and its shards show it. Raises SyncError where the root cannot be read.

    A kind that is not served is dead, and has no objects; one that is being deleted is dead, too.
    """
    now, dead = await read_clock(send), set[str]()
    place = await robots_place(send, settings)
    if place is None:
        dead.add(settings.robots)
    found = [] if place is None else [raw async for raw in _objects(send, place, dead, accept=PARTIAL_LIST)]
    robots = {each.name: each for each in map(robot_of, found) if not each.terminating}
    placements = [raw async for raw in _objects(send, PLACEMENTS, dead)]
    decisions = [decision_of(raw) async for raw in _objects(send, DECISIONS, dead)]
    dead |= await dead_kinds(send, *(each for each in (place, PLACEMENTS, DECISIONS, STRIPS) if each is not None))
    reports, unread = await read_reports(send, settings, robots, shards, now=now)
    shown = [*map(placement_of, placements)]
    edits = {each.text: last_edit(raw) for each, raw in zip(shown, placements, strict=True)}
    return FleetFacts(
        placements=shown,
        robots=robots,
        reports={name: reports.of(name) for name in robots},
        decisions=decisions,
        leader=await read_leader(send, settings),
        now=now,
        dead=dead,
        edited={name: when for name, when in edits.items() if when is not None},
        unread=unread,
    )


async def read_reports(
    send: "Send", settings: FleetSettings, robots: Mapping[str, Robot], shards: "Shards", *, now: float
) -> tuple[FleetReports, dict[str, str]]:
    """The reports on all shards, and why those of others are not known, by shard; empty: it is not given.

    There are none where RobotSyncState is not served. Raises SyncError for the root alone.
    """

    async def read(there: "Send | SyncError") -> tuple[Reports, float] | SyncError:
        if isinstance(there, SyncError):
            return there
        try:
            clock = await read_clock(there)
            return await _read_reports(there, settings, clock), clock
        except SyncError as error:
            return error

    def shard_of(robot: str) -> str:
        return robots[robot].shard if robot in robots else ROOT

    reports, clocks = {ROOT: await _read_reports(send, settings, now)}, {ROOT: now}
    unread = {each.shard: "" for each in robots.values() if each.shard not in (ROOT, *shards)}
    for name, answer in zip(shards, await asyncio.gather(*map(read, shards.values())), strict=True):
        if isinstance(answer, SyncError):
            unread[name] = str(answer)
        else:
            reports[name], clocks[name] = answer
    return FleetReports(reports, shard_of, clocks.__getitem__), unread


async def read_turns(send: "Send", found: "WholeFleet", shards: "Shards") -> Turns:
    """When each replica of a fleet is written, by the Decisions and the reports on all shards. Raises SyncError."""
    reports, _ = await read_reports(send, found.settings, found.fleet.index.robots, shards, now=found.now)
    return Turns(found.fleet, decisions=found.decisions, reports=reports.of_placement, now=found.now)


async def _read_reports(send: "Send", settings: FleetSettings, now: float) -> Reports:
    reports = Reports(robots_namespace=settings.robots_namespace)
    async for raw in _objects(send, SYNC_STATES, set()):
        reports.shown(raw, now=now)
    return reports


async def read_clock(send: "Send") -> float:
    """Unix time by the API server's clock. Raises SyncError where it does not answer."""
    date = (await lister.first_answer(send)).date
    return time.time() if date is None else date


async def read_leader(send: "Send", settings: FleetSettings) -> Leader:
    """Who leads, as the Lease in the controller's namespace says. Raises SyncError."""
    reply = await send(lease.read(settings.controller_namespace))
    return leader_of(None if reply.status == 404 else reply.shown())


async def _objects(send: "Send", place: Collection, dead: set[str], *, accept: str = JSON) -> AsyncIterator[Json]:
    try:
        async for raw in lister.objects(send, place, accept=accept):
            yield raw
    except NotServed:
        dead.add(place.resource)
