"""Robots that report nothing, beside the controller: with the Go cr-syncer, and with an agent of an earlier version."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.plane import Plane
from tests.api import Api, ApiError, Object
from tests.system.bed import crd, eventually
from tests.system.fleet_bed import FleetBed, condition, marks
from tests.system.one_way_syncer import REMOTE_VERSION, finalizer, one_way_syncers

READY = "returned.status.drives == obj.spec.speed"
ROLLOUT = {"groups": [{"matchLabels": {"canary": "yes"}}], "maxConcurrency": 1, "minReadySeconds": 0}


@contextlib.asynccontextmanager
async def driving(fleet: FleetBed, robot_api: Api, *, subresource: bool = True) -> AsyncIterator[None]:
    """The controllers on the robots: each goal is driven, and says so in its status."""

    async def drive() -> None:
        while True:
            for goal in (await robot_api.list(fleet.goals))["items"]:
                wanted = {"drives": goal["spec"]["speed"], "observedGeneration": goal["metadata"]["generation"]}
                if goal.get("status") != wanted:
                    with contextlib.suppress(ApiError):  # it is gone meanwhile
                        change: Object = {"status": wanted}
                        await robot_api.patch(goal, change, subresource="status" if subresource else "")
            await asyncio.sleep(0.1)

    task = asyncio.create_task(drive())
    try:
        yield
        assert not task.done(), task.exception()
    finally:
        task.cancel()


async def speeds(fleet: FleetBed, robot_api: Api) -> dict[str, int]:
    """The speed of each robot's copy."""
    found = (await robot_api.list(fleet.goals))["items"]
    return {each["metadata"]["name"]: each["spec"]["speed"] for each in found}


async def until_driven(fleet: FleetBed, robot_api: Api, speed: int, *names: str) -> None:
    """Wait until these copies have a speed, and all robots are Ready with it; they gate nothing."""

    async def driven() -> bool:
        replicas = (await fleet.replicas()).values()
        drives = [(each.get("status") or {}).get("drives") for each in replicas]
        return drives == [speed] * len(names) and await speeds(fleet, robot_api) == dict.fromkeys(names, speed)

    await eventually(driven, what=f"speed {speed} at {names}, and its status in the cloud")
    status = await fleet.until_status(
        lambda status: status["counts"]["ready"] == len(names) and condition(status, "RolledOut")[0] == "True"
    )
    assert condition(status, "RolledOut") == ("True", "Ungated")
    assert status["counts"]["unreported"] == len(names)
    assert not status.get("errors")


@pytest.mark.parametrize("subresource", [True, False], ids=["status subresource", "none"])
async def test_F8_5_the_go_cr_syncer_works_beside_the_controller_and_neither_disturbs_the_other(
    fleet: FleetBed, robot_api: Api, subresource: bool
) -> None:
    definition = crd(fleet.group, filtered="true", status=subresource)
    await asyncio.gather(*(api.apply_crd(definition) for api in (fleet.api, robot_api)))
    robots = ("r1", "r2", "r3")
    names = [f"dock-{robot}" for robot in robots]
    await fleet.robots("r1", canary="yes")
    await fleet.robots(*robots[1:])
    source = await fleet.api.create(fleet.goal(speed=1))
    await fleet.place(target="Same", readyWhen=READY, rollout=ROLLOUT)  # it syncs the namespace default alone
    fleet.start()
    async with (
        one_way_syncers(fleet.api, robot_api, fleet.goals, *robots, subresource=subresource),
        driving(fleet, robot_api, subresource=subresource),
    ):
        await until_driven(fleet, robot_api, 1, *names)
        replica = (await fleet.replicas())["default/dock-r1"]
        assert (REMOTE_VERSION in replica["metadata"]["annotations"]) is not subresource
        await fleet.api.patch(replica, {"metadata": {"finalizers": [finalizer("r1")]}})

        async def taken_off() -> bool:
            return "finalizers" not in (await fleet.api.get(replica))["metadata"]

        await eventually(taken_off, what="the finalizer of an earlier cr-syncer is taken off")
        for speed in (2, 3):
            await fleet.api.patch(source, {"spec": {"speed": speed}})
            await until_driven(fleet, robot_api, speed, *names)
        found = await fleet.replicas()
        assert {place: marks(each)["n"] for place, each in found.items()} == {f"default/{name}": 3 for name in names}

        placement = await fleet.placement()
        await fleet.api.patch(placement, {"spec": {"robotSelectors": [], "robotNames": ["r1", "r2"]}})

        async def left() -> bool:
            return set(await speeds(fleet, robot_api)) == set(names[:2])

        await eventually(left, what="the copy of a robot that is not selected any more is gone")
        await fleet.api.delete(placement)

        async def empty() -> bool:
            return not await speeds(fleet, robot_api) and not await fleet.replicas()

        await eventually(empty, what="replicas and copies go with their placement")


async def test_F8_5_F9_6_an_agent_that_does_not_report_works_beside_the_controller_and_counts_once_it_does(
    fleet: FleetBed, robot_api: Api, robot: Plane, tmp_path: Path
) -> None:
    await robot_api.apply_crd(crd(fleet.group, filtered="true"))
    await fleet.robots("r1")
    source = await fleet.api.create(fleet.goal(speed=1))
    await fleet.place(readyWhen=READY, rollout=ROLLOUT)
    fleet.start()

    def agent(*flags: str) -> AgentProcess:
        return AgentProcess(
            tmp_path,
            cloud_kubeconfig=fleet.cloud.kubeconfig(tmp_path / "cloud.yaml"),
            robot_kubeconfig=robot.kubeconfig(tmp_path / "robot.yaml"),
            robot_name="r1",
            flags=("--namespace-map", "robot-r1=default", *flags),
        )

    earlier, later = agent("--report-namespace", "off"), agent()
    try:
        async with driving(fleet, robot_api):
            await earlier.start()
            await until_driven(fleet, robot_api, 1, "dock")
            await fleet.api.patch(source, {"spec": {"speed": 2}})
            await until_driven(fleet, robot_api, 2, "dock")
            await earlier.stop()
            await later.start()
            status = await fleet.until_status(
                lambda status: not status["counts"]["unreported"] and status["counts"]["ready"] == 1
            )
            assert condition(status, "RolledOut") == ("True", "RolledOut")
            await fleet.api.delete(source)

            async def empty() -> bool:
                return not await speeds(fleet, robot_api) and not await fleet.replicas()

            await eventually(empty, what="replica and copy go with their source")
    finally:
        await earlier.kill()
        await later.kill()
