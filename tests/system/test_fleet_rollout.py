"""A rollout of bad content on a real API server: what is announced is what is written, and good content mends it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.model import Json
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.sandbox.resource import Resource
from tests.api import Object
from tests.system.bed import LABEL, eventually
from tests.system.fleet_bed import FleetBed, condition, marks
from tests.system.fleet_objects import made

GROUP = "fleet.crsyncer.cloudrobotics.com"
STATES = Resource(GROUP, "v1alpha1", "robotsyncstates", "RobotSyncState")
DECISIONS = Resource(GROUP, "v1alpha1", "robotplacementdecisions", "RobotPlacementDecision")
GOOD, BAD, BETTER = 1, 2, 3
ROLLOUT = {"maxConcurrency": 5, "maxFailures": 2, "minReadySeconds": 0, "progressDeadlineSeconds": 45}
READY = "returned.status.drives == obj.spec.speed"


def report(robot: str, beat: int, applied: Json) -> Object:
    """A report, as the agent of a robot writes it."""
    named = {"name": robot, "namespace": f"robot-{robot}", "labels": {LABEL: robot}, "annotations": {ROBOT: robot}}
    spec = {"robot": robot, "beat": beat, "applied": applied}
    return {**made("RobotSyncState", spec=spec), "metadata": named}


async def take(fleet: FleetBed, robot: str, replica: Object, beat: int) -> None:
    """A robot takes up its replica: it drives, unless the content is bad, and its agent reports."""
    speed, metadata = replica["spec"]["speed"], replica["metadata"]
    await fleet.api.patch_status(replica, {"drives": 0 if speed == BAD else speed})
    said = marks(replica)
    applied = {said["placement"]: applied_digest([(metadata["uid"], said["n"])])}
    if await fleet.api.find(report(robot, beat, applied)) is None:
        await fleet.api.create(report(robot, beat, applied))
    else:
        await fleet.api.patch(report(robot, beat, applied), {"spec": {"beat": beat, "applied": applied}})


@asynccontextmanager
async def agents(fleet: FleetBed, *robots: str) -> AsyncIterator[None]:
    """These robots are online: each takes up what it has not yet taken up."""

    async def live() -> None:
        taken: Json = {}
        for beat in range(1, 1_000_000):
            replicas = await fleet.replicas()
            for robot in robots:
                found = replicas.get(f"robot-{robot}/dock")
                now = None if found is None else (found["metadata"]["uid"], marks(found)["n"])
                if found is not None and taken.get(robot) != now:
                    await take(fleet, robot, found, beat)
                    taken[robot] = now
            await asyncio.sleep(0.5)

    living = asyncio.create_task(live())
    try:
        yield
        assert not living.done(), living.exception()
    finally:
        living.cancel()


async def backdate(fleet: FleetBed, robot: str) -> None:
    """Date a report back, so that its robot is offline. A server keeps the times that a request has of other managers,
    if something else changes as well.
    """
    found = await fleet.api.get(report(robot, 0, {}))
    time = (datetime.now(UTC) - timedelta(minutes=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = [{**each, "time": time, "manager": robot} for each in found["metadata"]["managedFields"]]
    await fleet.api.patch(found, {"metadata": {"annotations": {"dated": "back"}, "managedFields": fields}})


async def decided(fleet: FleetBed) -> dict[str, str]:
    """What the Decisions say of each robot."""
    found = (await fleet.api.list(DECISIONS))["items"]
    return {robot["name"]: robot["state"] for each in found for robot in each["robots"]}


@pytest.mark.nightly
async def test_F8_bad_content_fails_on_few_robots_that_the_decision_names_and_good_content_mends_them(
    fleet: FleetBed,
) -> None:
    online, offline, silent = ([f"{kind}{number}" for number in range(many)] for kind, many in (
        ("on", 100), ("off", 10), ("silent", 10),
    ))  # fmt: skip
    await fleet.robots(*online, *offline, *silent)
    source = await fleet.api.create(fleet.goal(speed=GOOD))
    await fleet.place(readyWhen=READY)
    first = fleet.start("first")
    async with agents(fleet, *online):
        async with agents(fleet, *offline):
            await fleet.until_status(lambda status: status["counts"]["ready"] == 110)
        await first.stop()
        for robot in offline:
            await backdate(fleet, robot)
        await fleet.api.patch(await fleet.placement(), {"spec": {"rollout": ROLLOUT}})
        fleet.start("second")
        await fleet.until_status(lambda status: status["counts"]["offline"] == 10)

        await fleet.api.patch(source, {"spec": {"speed": BAD}})
        status = await fleet.until_status(
            lambda status: (
                condition(status, "RolledOut") == ("False", "TooManyFailures") and not status["counts"]["inFlight"]
            )
        )
        states = await decided(fleet)
        failed = {name for name, state in states.items() if state == "Failed"}
        assert len(failed) == status["counts"]["failed"] <= 5 + 2 + 1
        assert failed <= set(online)
        assert {states[name] for name in offline} == {"Deferred"}

        async def named() -> bool:
            bad = {place for place, each in (await fleet.replicas()).items() if each["spec"]["speed"] == BAD}
            return bad == {f"robot-{name}/dock" for name in failed}

        await eventually(named, what="the robots with bad content are those that the Decision calls Failed")
        await fleet.api.patch(source, {"spec": {"speed": BETTER}})
        await fleet.until_status(lambda status: status["counts"]["ready"] == 100 and not status["counts"]["waiting"])

        async def better() -> bool:
            found = Counter(each["spec"]["speed"] for each in (await fleet.replicas()).values())
            return found == {BETTER: 110, GOOD: 10}

        await eventually(better, what="good content everywhere but on the robots that are offline")
