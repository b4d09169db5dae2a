"""The fleet controller on three real API servers: the root, and two shards of which one is killed (F1.1, F10.2)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL, SHARD_LABEL
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import PlacedKind
from crsyncer.fleet.rights import shard_rights
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import Resource
from tests.api import Api
from tests.system.bed import crd, eventually
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_bed import FleetBed
from tests.system.fleet_objects import made
from tests.system.kinds import account

REPORTS = (FLEET_CRDS["robotsyncstates"], FLEET_CRDS["robotobjectstatuses"])


def rules(goals: Resource) -> list[Any]:
    """The rights that the controller needs at a shard, and no others."""
    kind = PlacedKind(f"{goals.plural}.{goals.group}", goals.group, goals.plural, "Goal", "v1", namespaced=True)
    return [
        {"apiGroups": [each.group], "resources": [each.resource], "verbs": each.verbs, "resourceNames": each.names}
        for each in shard_rights([kind])
    ]


async def until_shown(fleet: FleetBed, *words: str, robots: dict[str, int], codes: list[str]) -> None:
    """Wait until `fleet status` counts the reports of so many robots, and says so of shards."""

    async def same() -> bool:
        shown = await fleet.asked("status", *words, code=None)
        said = [each["code"] for each in shown["reasons"] if each["code"].startswith("Shard")]
        return shown["robots"] == {"all": 3, "offline": 0, **robots} and said == codes

    await eventually(same, what=f"status {robots}, {codes}")


def resolved(status: Json) -> str:
    """What the condition Resolved complains of; empty: nothing."""
    found = [each for each in status.get("conditions") or () if each["type"] == "Resolved"]
    return next(("" if each["status"] == "True" else str(each["message"]) for each in found), "not known yet")


@pytest.mark.nightly("the demo of shards kills one, and test_f10_shards has each case on virtual time")
async def test_F10_2_a_robots_replicas_are_on_its_shard_and_a_shard_that_is_killed_stops_no_other(
    fleet: FleetBed, plane_b: Plane, robot: Plane, robot_api: Api, group: str, tmp_path: Path
):
    async with Api(plane_b.server, ca_file=plane_b.ca_file, token=plane_b.admin_token) as api_b:
        kind = crd(group, filtered="true")
        on_b = FleetBed(api_b, plane_b, tmp_path, group, await api_b.apply_crd(kind))
        for api in (api_b, robot_api):
            await asyncio.gather(*map(api.apply_crd, REPORTS))
        try:
            await fleet.robots("r0")
            await fleet.robots("rb", **{SHARD_LABEL: "b"})
            await fleet.robots("rc", **{SHARD_LABEL: "c"})
            source = await fleet.api.create(fleet.goal(speed=1))
            await fleet.place()
            token = await account(api_b, "fleet", rules(on_b.goals))
            files = [
                f"b={plane_b.kubeconfig(tmp_path / 'b.kubeconfig', token=token)}",
                f"c={robot.kubeconfig(tmp_path / 'c.kubeconfig')}",
            ]
            fleet.start("fleet", "--shard", files[0], "--shard", files[1])
            await fleet.until_specs(r0={"speed": 1})
            await on_b.until_specs(rb={"speed": 1})
            await fleet.until_status(
                lambda status: resolved(status) == f"shard c: the cloud does not serve goals.{group}"
            )
            assert (await fleet.checked("--shard", files[1]))["kind", f"c/goals.{group}"]["state"] == "fail"
            on_c = FleetBed(robot_api, robot, tmp_path, group, await robot_api.apply_crd(kind))
            await on_c.until_specs(rc={"speed": 1})
            await fleet.until_status(lambda status: resolved(status) == "")
            old = (await on_b.replicas())["robot-rb/dock"]["metadata"]["uid"]

            marks = {"labels": {ROBOT_LABEL: "rb"}, "annotations": {ROBOT: "rb"}}
            report = made("RobotSyncState", spec={"robot": "rb", "beat": 1})
            await api_b.create({**report, "metadata": {"name": "rb", "namespace": "robot-rb", **marks}})
            given = ("--shard", files[0], "--shard", files[1])
            await until_shown(fleet, *given, robots={"online": 1, "unreported": 2}, codes=[])
            await until_shown(fleet, *given[:2], robots={"online": 1, "unreported": 1}, codes=["ShardNotGiven"])
            await until_shown(fleet, robots={"online": 0, "unreported": 1}, codes=["ShardNotGiven"] * 2)
            checks = await fleet.checked(*given[:2])
            assert [checks["shard", name]["state"] for name in "bc"] == ["ok", "fail"]
            assert {each["state"] for (_, name), each in checks.items() if name.startswith("b/")} == {"ok"}
            assert {("kind", f"b/goals.{group}"), ("permissions", f"b/goals.{group}")} <= checks.keys()

            assert (await fleet.asked("plan", *given, code=None))["writes"] == []
            for name, known in (("rb", True), ("rc", False)):
                [shown] = (await fleet.asked("explain", "all", "--robot", name, *given[:2], code=None))["replicas"]
                assert (shown["shard"], shown["reason"]) == (name[1], "Current" if known else "NotRead")
                assert (shown["uid"] == old) is known
            [rendered] = (await fleet.asked("render", "all", "--robot", "rb", *given, code=None))["items"]
            assert rendered["metadata"]["namespace"] == "robot-rb"

            plane_b.stop("apiserver", graceful=False)
            await until_shown(fleet, *given, robots={"online": 0, "unreported": 2}, codes=["ShardAway"])
            assert (await fleet.checked(*given))["shard", "b"]["state"] == "fail"
            await fleet.api.patch(source, {"spec": {"speed": 2}})
            await fleet.until_specs(r0={"speed": 2})
            await on_c.until_specs(rc={"speed": 2})
            await fleet.until_status(lambda status: status["counts"]["waiting"] == 1 and not status["holds"])

            plane_b.start()
            await on_b.until_specs(rb={"speed": 2})
            assert (await on_b.replicas())["robot-rb/dock"]["metadata"]["uid"] == old
            await fleet.until_status(lambda status: status["counts"]["waiting"] == 0)

            await fleet.api.delete(await fleet.placement())

            async def none_left() -> bool:
                return not (await on_b.replicas() or await on_c.replicas() or await fleet.replicas())

            await eventually(none_left, what="no replica on any shard")
        finally:
            await fleet.stop()
            await robot_api.remove_crds(*REPORTS)
