"""S5.3: whose an object without an upstream counterpart is: on the robot, and in the cloud."""

import asyncio

import pytest

from crsyncer.sandbox.agent import AgentProcess
from crsyncer.sandbox.datastore import etcd
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.sandbox import Sandbox
from tests.api import Api
from tests.link.link import Link
from tests.system.asked import deletes
from tests.system.bed import LABEL, OURS, Bed, SideBed, crd
from tests.system.conftest import MakeBed
from tests.system.state_dir import remove_database

UPSTREAM_UID = OURS + "upstream-uid"


async def test_S5_3_orphans_on_the_robot_are_deleted_by_default_also_when_made_by_hand(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    await bed.robot.create("by-hand", spec={"x": 1})
    await bed.robot.gone("by-hand")
    assert await bed.robot.names() == {"a"}


@pytest.mark.nightly("to be shown by the model")
async def test_S5_3_a_hand_made_object_is_deleted_after_a_restart_too(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    await bed.settled()
    async with bed.stopped():
        await bed.robot.create("by-hand", spec={"x": 1})
    await bed.robot.gone("by-hand")


@pytest.mark.nightly("to be shown by the model")
async def test_S5_3_orphans_keep_deletes_only_copies_that_carry_our_annotation(make_bed: MakeBed):
    bed = await make_bed(orphans="keep")
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    await bed.robot.create("by-hand", spec={"x": 1})
    await bed.cloud.delete("a")
    await bed.robot.gone("a")
    async with bed.stopped():
        remove_database(bed.agent.state_dir)
    await bed.until_kind("syncing")
    await bed.settled()
    assert await bed.robot.names() == {"by-hand"}


@pytest.mark.nightly("to be shown by the model")
async def test_S5_3_unlabelled_objects_of_a_filtered_kind_are_local(make_bed: MakeBed):
    bed = await make_bed(filtered="true", start=False)
    local = await bed.robot.create("local", spec={"x": 1})
    other = await bed.robot.create("other", spec={"x": 1}, labels={LABEL: "robot-2"})
    await bed.robot.create("ours", spec={"x": 1}, labels={LABEL: "robot-1"})
    await bed.start()
    await bed.robot.gone("ours")
    await bed.settled()
    assert await bed.robot.get("local") == local
    assert await bed.robot.get("other") == other
    assert [name for name, _ in deletes(bed.robot.link)] == ["ours"]


async def test_S5_3_in_the_cloud_only_what_this_robot_signed_is_ever_touched(make_bed: MakeBed):
    bed = await make_bed(source="robot", start=False)
    stamps = {
        "stranger": {},
        "half-signed": {UPSTREAM_UID: "1-2-3"},
        "of-robot-2": {UPSTREAM_UID: "1-2-3", OURS + "robot": "robot-2"},
        "taken": {UPSTREAM_UID: "1-2-3", OURS + "robot": "robot-2"},
    }
    before = {n: await bed.cloud.create(n, spec={"x": 0}, annotations=each) for n, each in stamps.items()}
    await bed.cloud.create("lost", annotations={UPSTREAM_UID: "1-2-3", OURS + "robot": "robot-1"})
    await bed.robot.create("taken", spec={"x": 1})
    await bed.start()
    await bed.cloud.gone("lost")
    status = await bed.agent.until(lambda status: bool(status["holds"]))
    assert [(hold["reason"], hold["objects"]) for hold in status["holds"]] == [("NameTaken", 1)]
    assert status["health"] == "attention"
    assert {name: await bed.cloud.get(name) for name in stamps} == before
    assert [name for name, _ in deletes(bed.cloud.link)] == ["lost"]


@pytest.mark.nightly("to be shown by the model")
async def test_S5_3_two_robots_on_one_cloud_kind_leave_each_other_alone(make_bed: MakeBed, sandbox: Sandbox):
    bed = await make_bed(source="robot")
    programs = sandbox.programs
    plane = Plane("robot-2", bed.directory / "plane", apiserver=programs.kube_apiserver, datastore=etcd(programs.etcd))
    await asyncio.to_thread(plane.start)
    try:
        async with (
            Link(plane) as link,
            Link(sandbox.cloud) as cloud_link,
            Api(plane.server, ca_file=plane.ca_file, token=plane.admin_token) as api,
        ):
            resource = await api.apply_crd(crd(bed.group, source="robot"))
            (bed.directory / "second").mkdir()
            agent = AgentProcess(
                bed.directory / "second",
                cloud_kubeconfig=cloud_link.kubeconfig(bed.directory / "second/cloud.yaml"),
                robot_kubeconfig=link.kubeconfig(bed.directory / "second/robot.yaml"),
                robot_name="robot-2",
            )
            second = Bed(bed.group, agent.directory, bed.cloud, SideBed(api, plane, link, resource), agent)
            await bed.robot.create("mine", spec={"x": 1})
            await bed.robot.create("both", spec={"x": 1})
            await bed.cloud.shows("mine")
            await bed.cloud.shows("both", spec={"x": 1})
            await second.robot.create("yours", spec={"x": 2})
            await second.robot.create("both", spec={"x": 2})
            try:
                await second.start(state=None)
                await second.cloud.shows("yours")
                await agent.until(lambda status: [h["reason"] for h in status["holds"]] == ["NameTaken"])
                await bed.robot.delete("mine")
                await bed.cloud.gone("mine")
                await second.robot.delete("both")
                await agent.until(lambda status: not status["holds"])
                await second.settled()
                await bed.settled()
                assert await bed.cloud.names() == {"yours", "both"}
                assert (await bed.cloud.get("both"))["spec"] == {"x": 1}
                assert deletes(cloud_link) == []
            finally:
                await agent.kill()
    finally:
        await asyncio.to_thread(plane.stop, graceful=False)
