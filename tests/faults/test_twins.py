"""Row 48: two robots with one identity, such as those of a copied disk, and what only looks like it."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.two_planes import Sandbox
from tests import planes
from tests.api import Api
from tests.link.link import Link
from tests.system.bed import LABEL, ROBOT, Bed, SideBed, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import account
from tests.system.travel import BootId, snapshot

MINE = {LABEL: ROBOT}
TWIN = "crsyncer-deadbeef"


async def report(bed: Bed, name: str, status: dict[str, Any], *, manager: str = TWIN) -> None:
    """Another agent writes a status in the cloud."""
    goal = bed.cloud.goal(name)
    code, answer = await bed.cloud.api.request(
        "PATCH",
        bed.cloud.api.path(goal, subresource="status"),
        params={"fieldManager": manager},
        json={"status": status},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert code == 200, answer


def duplicates(status: dict[str, Any]) -> list[dict[str, str]]:
    return [reason for reason in status["reasons"] if reason["code"] == "DuplicateInstance"]


async def past(bed: Bed) -> None:
    """Let the server's clock, which counts seconds, go on."""
    since = await bed.cloud.create("clock")
    created = since["metadata"]["creationTimestamp"]

    async def later() -> bool:
        await bed.cloud.delete("clock")
        again = await bed.cloud.create("clock")
        return bool(again["metadata"]["creationTimestamp"] > created)

    await eventually(later, what="a second has passed")
    await bed.cloud.delete("clock")


@pytest.mark.fault_48
async def test_an_agent_with_our_identity_is_reported(make_bed: MakeBed):
    """On the least rights there are in the cloud."""
    bed = await make_bed(filtered="true", start=False)
    rules = [
        {"apiGroups": [bed.group], "resources": ["goals"], "verbs": ["list", "watch"]},
        {"apiGroups": [bed.group], "resources": ["goals/status"], "verbs": ["update"]},
    ]
    token = await account(bed.cloud.api, f"robot-{bed.group[:7]}", rules)
    bed.cloud.link.kubeconfig(bed.directory / "cloud.yaml", token=token)
    await bed.cloud.create("a", spec={"x": 1}, labels=MINE)
    await report(bed, "a", {"phase": "FROM ANOTHER LIFE"})
    await past(bed)
    await bed.start()
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.settled()
    assert duplicates(await bed.agent.status()) == []
    await past(bed)
    await report(bed, "a", {"phase": "TWO OF US"})

    def is_reported(status: dict[str, Any]) -> bool:
        told = [reason["message"] + reason["hint"] for reason in duplicates(status)]
        words = (ROBOT, TWIN, "default/a", "--robot-name")
        return status["health"] == "attention" and len(told) == 1 and all(word in told[0] for word in words)

    await bed.agent.until(is_reported)
    assert (await bed.agent.crsyncer("status"))[0] == 12


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_48
async def test_what_only_looks_like_an_agent_with_our_identity_is_not_reported(make_bed: MakeBed, tmp_path: Path):
    boot = BootId(tmp_path)
    bed = await make_bed(filtered="true", flags=boot.flags)
    await bed.cloud.create("a", spec={"x": 1}, labels=MINE)
    for step in ("first", "restart", "reboot"):
        if step != "first":
            async with bed.stopped(kill=True):
                # The last words of the one before us, or of an agent that we replace, reach us late.
                await report(bed, "a", {"phase": f"BEFORE {step}"}, manager="crsyncer-00000001")
                await past(bed)
                if step == "reboot":
                    boot.renew()
        await bed.robot.shows("a", spec={"x": 1})
        await bed.robot.set_status("a", {"phase": step})
        await bed.cloud.shows("a", status={"phase": step})
    # An object that another robot has reported on becomes ours.
    await bed.cloud.create("b", spec={"x": 1}, labels={LABEL: "robot-2"})
    await report(bed, "b", {"phase": "ROBOT 2"})
    await past(bed)
    await bed.cloud.patch("b", {"metadata": {"labels": MINE}})
    await bed.robot.shows("b", spec={"x": 1})
    await report(bed, "b", {"phase": "KUBECTL"}, manager="kubectl-edit")
    await bed.settled()
    assert duplicates(await bed.agent.status()) == []


@pytest.mark.nightly("to be shown by the model")
async def test_a_kind_that_every_robot_writes_shows_no_duplicate(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await past(bed)
    for phase in ("ONE", "TWO"):
        await report(bed, "a", {"phase": phase})
        await past(bed)
    await bed.settled()
    assert duplicates(await bed.agent.status()) == []


@pytest.fixture
def second_robot(sandbox: Sandbox, tmp_path: Path) -> Iterator[Plane]:
    """A third plane, for a copy of the robot's disk; not started."""
    plane = Plane(
        "clone", tmp_path / "clone", apiserver=sandbox.programs.kube_apiserver, datastore=sandbox.robot.datastore
    )
    yield plane
    plane.stop(graceful=False)


@pytest.mark.nightly
@pytest.mark.fault_48
@pytest.mark.parametrize("source", ["cloud", "robot"])
async def test_a_robot_and_a_copy_of_its_disk_report_each_other(
    make_bed: MakeBed, second_robot: Plane, tmp_path: Path, source: str
):
    boot = BootId(tmp_path)
    bed = await make_bed(filtered="true", source=source, flags=boot.flags)
    up = bed.cloud if source == "cloud" else bed.robot
    down = bed.robot if source == "cloud" else bed.cloud
    await up.create("a", spec={"x": 1}, labels=MINE)
    await down.shows("a", spec={"x": 1})
    await bed.settled()
    home = tmp_path / "second"
    async with bed.stopped():
        shutil.copytree(bed.agent.state_dir, home / "state")
        disk = await snapshot(bed.robot, tmp_path)
    await asyncio.to_thread(planes.restore, second_robot, disk)
    plane = second_robot
    async with Api(plane.server, ca_file=plane.ca_file, token=plane.admin_token) as api, Link(plane) as link:
        api.learn(bed.robot.resource)
        other: SideBed = replace(bed.robot, api=api, plane=plane, link=link)
        (home / "boot").mkdir()
        twin = AgentProcess(
            home,
            cloud_kubeconfig=bed.cloud.link.kubeconfig(home / "cloud.yaml"),
            robot_kubeconfig=link.kubeconfig(home / "robot.yaml"),
            robot_name=ROBOT,
            flags=BootId(home / "boot").flags,
        )
        await twin.start()
        try:
            await twin.until(lambda status: any(kind["state"] == "syncing" for kind in status["kinds"]))

            async def both() -> bool:
                # Either goes on as it would alone: with statuses of its own, or with a spec of its own.
                for number, robot in enumerate((bed.robot, other)):
                    if source == "cloud":
                        await robot.set_status("a", {"phase": f"robot {number}, {asyncio.get_running_loop().time()}"})
                    else:
                        await robot.patch("a", {"spec": {"x": f"{number}, {asyncio.get_running_loop().time()}"}})
                    await asyncio.sleep(0.5)
                seen = [await agent.status() for agent in (bed.agent, twin)]
                return all(duplicates(status) for status in seen)

            await eventually(both, seconds=90, what="each reports the other")
        finally:
            await twin.kill()
