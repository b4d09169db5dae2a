"""The fleet controller on a real API server: facts that only a server can show (F1 to F6)."""

import signal
from pathlib import Path

import pytest
import yaml

from crsyncer.cli.crds import SYNC_POLICY
from crsyncer.sandbox.plane import Plane
from tests.api import Api, ApiError
from tests.system.bed import crd, eventually
from tests.system.fleet_bed import HOME, OURS, FleetBed, make_bed, marks


@pytest.fixture
async def bed(fleet_api: Api, cloud: Plane, tmp_path: Path, group: str):
    bed = await make_bed(fleet_api, cloud, tmp_path, group)
    try:
        yield bed
    finally:
        await bed.stop()


def condition(status, kind):
    return next((each for each in status.get("conditions", ()) if each["type"] == kind), {"status": "", "reason": ""})


async def test_F3_1_F3_2_each_robot_gets_a_replica_that_follows_its_source(bed: FleetBed):
    await bed.robots("r1", "r2", site="berlin")
    await bed.robots("r3", site="paris")
    source = await bed.api.create(bed.goal(speed=1))
    overrides = [
        {"robotSelector": {"matchLabels": {"site": "paris"}}, "steps": [{"path": "/spec/x", "set": {"value": 2}}]}
    ]
    await bed.place(overrides=overrides)
    bed.start()
    await bed.until_specs(r1={"speed": 1}, r2={"speed": 1}, r3={"speed": 1, "x": 2})
    replica = (await bed.replicas())["robot-r1/dock"]
    assert replica["metadata"]["labels"]["cloudrobotics.com/robot-name"] == "r1"
    assert marks(replica)["source"] == f"{HOME}/dock"
    assert "ownerReferences" not in replica["metadata"]
    assert "finalizers" not in replica["metadata"]
    namespace = await bed.api.get({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "robot-r1"}})
    assert namespace["metadata"]["labels"][OURS + "robot-name"] == "r1"
    await bed.api.patch(source, {"spec": {"speed": 9}})
    await bed.until_specs(r1={"speed": 9}, r2={"speed": 9}, r3={"speed": 9, "x": 2})
    status = await bed.until_status(lambda status: status["counts"]["stamped"] == 3)
    assert condition(status, "Stamped")["status"] == "True"


async def test_F3_5_F5_1_drift_is_undone_and_what_is_not_selected_any_more_goes(bed: FleetBed):
    await bed.robots("r1", "r2", site="berlin")
    await bed.api.create(bed.goal(speed=1))
    placement = await bed.place(robotSelectors=[{"matchLabels": {"site": "berlin"}}])
    bed.start()
    await bed.until_specs(r1={"speed": 1}, r2={"speed": 1})
    await bed.api.patch((await bed.replicas())["robot-r1/dock"], {"spec": {"speed": 7}})
    await bed.until_specs(r1={"speed": 1}, r2={"speed": 1})
    await bed.api.patch(placement, {"spec": {"robotSelectors": [], "robotNames": ["r2"]}})
    await bed.until_specs(r2={"speed": 1})
    await bed.api.delete(placement)
    await bed.api.until_gone(placement)
    assert await bed.replicas() == {}


async def test_F3_7_another_object_of_the_name_is_handed_over_by_its_label(bed: FleetBed):
    await bed.robots("r1")
    await bed.api.ensure_namespace("robot-r1")
    other = await bed.api.create(bed.goal(namespace="robot-r1", own=True))
    await bed.api.create(bed.goal(speed=1))
    await bed.place()
    bed.start()
    status = await bed.until_status(lambda status: status["counts"]["blocked"] == 1)
    [error] = status["errors"]
    assert error["reason"] == "NameTaken"
    identity = error["message"].partition(OURS + "source=")[2][:24]
    await bed.api.patch(other, {"metadata": {"labels": {OURS + "source": identity}}})
    await bed.until_specs(r1={"speed": 1})
    assert (await bed.replicas())["robot-r1/dock"]["metadata"]["uid"] == other["metadata"]["uid"]


async def test_F5_2_robots_that_vanish_in_masses_keep_their_replicas_until_a_release(bed: FleetBed):
    robots = [f"r{number}" for number in range(8)]
    await bed.robots(*robots)
    await bed.api.create(bed.goal(speed=1))
    placement = await bed.place()
    bed.start()
    await bed.until_specs(**{robot: {"speed": 1} for robot in robots})
    for robot in robots[2:]:
        metadata = {"name": robot, "namespace": HOME}
        await bed.api.delete(
            {"apiVersion": "registry.cloudrobotics.com/v1alpha1", "kind": "Robot", "metadata": metadata}
        )
    status = await bed.until_status(lambda status: bool(status["holds"]) and status["holds"][0]["objects"] == 6)
    assert condition(status, "Held")["status"] == "True"
    release = {"fleet.crsyncer.cloudrobotics.com/release": status["holds"][0]["id"]}
    await bed.api.patch(placement, {"metadata": {"annotations": release}})
    await bed.until_specs(r0={"speed": 1}, r1={"speed": 1})
    await bed.until_status(lambda status: status["holds"] == [])

    async def taken_off() -> bool:
        return "annotations" not in (await bed.placement())["metadata"]

    await eventually(taken_off, what="a placement without the annotation of the release")


async def test_F5_2_the_kind_of_placements_is_deleted_and_no_replica_goes(bed: FleetBed):
    await bed.robots("r1")
    await bed.api.create(bed.goal(speed=1))
    await bed.place()
    bed.start()
    await bed.until_specs(r1={"speed": 1})
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "robotplacements.fleet.crsyncer.cloudrobotics.com"},
    }
    await bed.api.delete(crd)
    await bed.until_status(lambda status: any(each["reason"] == "KindNotServed" for each in status["holds"]))
    assert list(await bed.replicas()) == ["robot-r1/dock"]
    await bed.stop()
    await bed.api.patch(await bed.placement(), {"metadata": {"finalizers": None}})


async def test_F1_2_a_standby_leads_when_the_leader_gives_the_lease_back_or_stands_still(bed: FleetBed):
    await bed.robots("r1")
    source = await bed.api.create(bed.goal(speed=1))
    await bed.place()
    first = bed.start("first")
    await bed.until_specs(r1={"speed": 1})
    second = bed.start("second")
    first.send(signal.SIGSTOP)
    await bed.api.patch(source, {"spec": {"speed": 2}})
    await bed.until_specs(r1={"speed": 2})
    first.send(signal.SIGCONT)
    assert await first.ended() == 1
    bed.start("third")
    assert await second.stop() == 0
    await bed.api.patch(source, {"spec": {"speed": 3}})
    await bed.until_specs(r1={"speed": 3})


async def test_F2_3_config_maps_are_placed_by_a_sync_policy(bed: FleetBed):
    await bed.robots("r1")
    policies = yaml.safe_load(SYNC_POLICY.read_text())
    resource = await bed.api.apply_crd(policies)
    try:
        spec = {
            "resource": {"group": "", "resource": "configmaps"},
            "specSource": "cloud",
            "filter": {"byRobotName": True},
        }
        policy = {"apiVersion": resource.api_version, "kind": "SyncPolicy", "metadata": {"name": "maps"}, "spec": spec}
        await bed.place(resources=[{"group": "", "resource": "configmaps", "names": ["nav"]}])
        nav = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "nav", "namespace": HOME},
            "data": {"a": "b"},
        }
        await bed.api.create(nav)
        bed.start()
        await bed.until_status(lambda status: condition(status, "Resolved")["reason"] == "NotPlaceable")
        await bed.api.create(policy)

        async def placed() -> bool:
            found = await bed.api.find({**nav, "metadata": {"name": "nav", "namespace": "robot-r1"}})
            return found is not None and found["data"] == {"a": "b"}

        await eventually(placed, what="the ConfigMap in robot-r1")
        placement = await bed.placement()
        await bed.api.delete(placement)
        await bed.api.until_gone(placement)
        await bed.api.delete(nav)
    finally:
        await bed.api.remove_crds(policies)


async def test_a_replica_that_the_server_refuses_blocks_its_robot_alone(bed: FleetBed):
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"speed": {"type": "integer", "maximum": 5}}}},
    }
    await bed.api.apply_crd(crd(bed.group, filtered="true", schema=schema))

    async def refused() -> bool:  # a server validates by the old schema for a while
        path = bed.api.path(bed.goal(), name=False)
        answer = await bed.api.request("POST", path, params={"dryRun": "All"}, json=bed.goal(speed=9))
        return answer[0] == 422

    await eventually(refused, what="the schema is in force")
    await bed.robots("r1")
    await bed.robots("r2", kind="fast")
    await bed.api.create(bed.goal(speed=1))
    steps = [{"path": "/spec/speed", "set": {"value": 9}}]
    await bed.place(overrides=[{"robotSelector": {"matchLabels": {"kind": "fast"}}, "steps": steps}])
    bed.start()
    status = await bed.until_status(lambda status: status["counts"]["blocked"] == 1)
    assert [(each["robot"], each["reason"]) for each in status["errors"]] == [("r2", "Refused")]
    await bed.until_specs(r1={"speed": 1})
    with pytest.raises(ApiError):
        await bed.api.create(bed.goal("other", speed=9))
