"""S1 on real API servers: CRDs that come, go and change while the agent runs; tests/model shows the rest."""

from dataclasses import replace

import pytest

from crsyncer.sandbox.resource import CRD, NAMESPACE
from tests.system.bed import LABEL, ROBOT, Bed, crd, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import annotate, another, row, until_row

SLOW = 90.0
"""Seconds in which a kind must have come back: longer than a few steps of an exponential back-off."""
MINE = {LABEL: ROBOT}


async def test_S1_1_a_changed_annotation_takes_effect_while_the_agent_runs(bed: Bed):
    for name, labels in (("mine", MINE), ("other", {LABEL: "robot-2"})):
        await bed.cloud.create(name, spec={"x": 1}, labels=labels)
        await bed.robot.shows(name)
    await annotate(bed, filter_by_robot_name="true")
    await until_row(bed, state="syncing", filterByRobotName=True, objects={"cloud": 1, "robot": 1})
    await bed.cloud.create("later", spec={"x": 2}, labels=MINE)
    await bed.robot.shows("later", spec={"x": 2})
    await annotate(bed, filter_by_robot_name="yes")
    wrong = await until_row(bed, state="misconfigured")
    assert '"yes"' in wrong["message"]


async def test_S1_5_a_version_that_the_cloud_stops_serving_is_left_for_one_that_it_serves(make_bed: MakeBed):
    bed = await make_bed(versions=("v1", "v2"), storage="v1", cloud_crd={"versions": ("v1",), "storage": "v1"})
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    name = CRD.object(bed.resource)
    await bed.cloud.api.apply_crd(crd(bed.group, versions=("v1", "v2"), storage="v2"))
    await bed.cloud.api.patch(name, [{"op": "replace", "path": "/spec/versions/0/served", "value": False}])
    await until_row(bed, version="v2", state="syncing", seconds=SLOW)
    await bed.robot.shows("a", spec={"x": 1})
    cloud = replace(bed.cloud, resource=replace(bed.cloud.resource, version="v2"))
    await cloud.create("b", spec={"x": 2})
    await bed.robot.shows("b", spec={"x": 2})


async def test_S1_6_a_kind_that_the_cloud_does_not_serve_waits_without_harm_and_starts_when_it_comes(
    make_bed: MakeBed,
):
    bed = await make_bed(cloud_crd=False, start=False)
    await bed.robot.create("by-hand", spec={"x": 0})
    cloud_tasks, robot_tasks = await another(bed)
    await bed.start(state="kind-missing")
    await cloud_tasks.create("t", spec={"x": 1})
    await robot_tasks.shows("t", spec={"x": 1})
    await bed.agent.until(lambda status: status["health"] == "degraded")
    await bed.cloud.api.apply_crd(crd(bed.group))
    await bed.cloud.create("a", spec={"x": 1})
    await bed.until_kind("syncing", seconds=SLOW)
    await bed.robot.shows("a", spec={"x": 1})


async def test_S1_7_all_namespaces_are_synced_and_one_missing_on_the_robot_is_made_and_kept(bed: Bed):
    name = f"made-{bed.group.partition('.')[0]}"
    await bed.cloud.api.ensure_namespace(name)
    for namespace in ("default", name):
        await bed.cloud.create("a", spec={"in": namespace}, namespace=namespace)
    await bed.robot.shows("a", spec={"in": "default"}, namespace="default")
    await bed.robot.shows("a", spec={"in": name}, namespace=name)
    await bed.cloud.delete("a", namespace=name)
    await bed.robot.gone("a", namespace=name)
    assert (await bed.robot.api.get(NAMESPACE.object(name)))["status"]["phase"] == "Active"


async def test_S1_2_S1_7_cluster_scoped_kinds_whose_spec_comes_from_the_robot_are_synced(make_bed: MakeBed):
    bed = await make_bed(cluster=True, source="robot", filtered="true")
    up, down = bed.robot, bed.cloud
    await up.create("a", spec={"x": 1}, labels={LABEL: ROBOT})
    await down.shows("a", spec={"x": 1})
    await down.set_status("a", {"done": True})
    await up.shows("a", status={"done": True})
    assert (await bed.kind())["scope"] == "Cluster"
    await up.delete("a")
    await down.gone("a")


@pytest.mark.fault_18
async def test_S1_8_a_crd_deleted_on_the_robot_stops_its_kind_and_comes_back_with_everything(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    raw = await bed.robot.api.get(CRD.object(bed.resource))
    await bed.robot.api.delete(CRD.object(bed.resource))

    async def stopped() -> bool:
        return await row(bed) is None

    await eventually(stopped, what="the kind is not ours any more")
    await bed.robot.api.until_gone(CRD.object(bed.resource))
    assert await bed.cloud.names() == {"a"}
    metadata = {"name": bed.resource, "annotations": raw["metadata"]["annotations"]}
    await bed.robot.api.apply_crd(raw | {"metadata": metadata})
    await bed.robot.shows("a", spec={"x": 1})
    assert await bed.cloud.names() == {"a"}
