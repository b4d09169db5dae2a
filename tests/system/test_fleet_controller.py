"""The fleet controller on a real API server: facts that only a server can show (F1 to F6)."""

import signal

import pytest
import yaml

from crsyncer.cli.crds import SYNC_POLICY
from tests.api import ApiError
from tests.core.sync_policies import placeable
from tests.system.bed import crd, eventually
from tests.system.fleet_bed import HOME, OURS, FleetBed, marks


def condition(status, kind):
    return next((each for each in status.get("conditions", ()) if each["type"] == kind), {"status": "", "reason": ""})


async def test_F3_1_F3_2_each_robot_gets_a_replica_that_follows_its_source(fleet: FleetBed):
    await fleet.robots("r1", "r2", site="berlin")
    await fleet.robots("lonely", site="paris")
    source = await fleet.api.create(fleet.goal(speed=1))
    overrides = [
        {"robotSelector": {"matchLabels": {"site": "paris"}}, "steps": [{"path": "/spec/x", "set": {"value": 2}}]}
    ]
    await fleet.place(overrides=overrides)
    fleet.start()
    await fleet.until_specs(r1={"speed": 1}, r2={"speed": 1}, lonely={"speed": 1, "x": 2})
    replica = (await fleet.replicas())["robot-r1/dock"]
    assert replica["metadata"]["labels"]["cloudrobotics.com/robot-name"] == "r1"
    assert marks(replica)["source"] == f"{HOME}/dock"
    assert "ownerReferences" not in replica["metadata"]
    assert "finalizers" not in replica["metadata"]
    namespace = await fleet.api.get({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "robot-lonely"}})
    assert namespace["metadata"]["labels"][OURS + "robot-name"] == "lonely"
    await fleet.api.patch(source, {"spec": {"speed": 9}})
    await fleet.until_specs(r1={"speed": 9}, r2={"speed": 9}, lonely={"speed": 9, "x": 2})
    status = await fleet.until_status(lambda status: status["counts"]["stamped"] == 3)
    assert condition(status, "Stamped")["status"] == "True"


async def test_F5_2_the_kind_of_placements_is_deleted_and_no_replica_goes(fleet: FleetBed):
    await fleet.robots("r1")
    await fleet.api.create(fleet.goal(speed=1))
    await fleet.place()
    fleet.start()
    await fleet.until_specs(r1={"speed": 1})
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "robotplacements.fleet.crsyncer.cloudrobotics.com"},
    }
    await fleet.api.delete(crd)
    await fleet.until_status(lambda status: any(each["reason"] == "KindNotServed" for each in status["holds"]))
    assert list(await fleet.replicas()) == ["robot-r1/dock"]
    await fleet.stop()
    await fleet.api.patch(await fleet.placement(), {"metadata": {"finalizers": None}})


async def test_F1_2_a_standby_leads_when_the_leader_gives_the_lease_back_or_stands_still(fleet: FleetBed):
    await fleet.robots("r1")
    source = await fleet.api.create(fleet.goal(speed=1))
    await fleet.place()
    first = fleet.start("first")
    await fleet.until_specs(r1={"speed": 1})
    second = fleet.start("second")
    first.send(signal.SIGSTOP)
    await fleet.api.patch(source, {"spec": {"speed": 2}})
    await fleet.until_specs(r1={"speed": 2})
    first.send(signal.SIGCONT)
    assert await first.ended() == 1
    fleet.start("third")
    assert await second.stop() == 0
    await fleet.api.patch(source, {"spec": {"speed": 3}})
    await fleet.until_specs(r1={"speed": 3})


async def test_F2_3_config_maps_are_placed_by_a_sync_policy(fleet: FleetBed):
    await fleet.robots("r1")
    policies = yaml.safe_load(SYNC_POLICY.read_text())
    await fleet.api.apply_crd(policies)
    try:
        await fleet.place(resources=[{"group": "", "resource": "configmaps", "names": ["nav"]}])
        nav = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "nav", "namespace": HOME},
            "data": {"a": "b"},
        }
        await fleet.api.create(nav)
        fleet.start()
        await fleet.until_status(lambda status: condition(status, "Resolved")["reason"] == "NotPlaceable")
        await fleet.api.create(placeable("configmaps"))

        async def placed() -> bool:
            found = await fleet.api.find({**nav, "metadata": {"name": "nav", "namespace": "robot-r1"}})
            return found is not None and found["data"] == {"a": "b"}

        await eventually(placed, what="the ConfigMap in robot-r1")
        placement = await fleet.placement()
        await fleet.api.delete(placement)
        await fleet.api.until_gone(placement)
        await fleet.api.delete(nav)
    finally:
        await fleet.api.remove_crds(policies)


async def test_a_replica_that_the_server_refuses_blocks_its_robot_alone(fleet: FleetBed):
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"speed": {"type": "integer", "maximum": 5}}}},
    }
    await fleet.api.apply_crd(crd(fleet.group, filtered="true", schema=schema))

    async def refused() -> bool:  # a server validates by the old schema for a while
        path = fleet.api.path(fleet.goal(), name=False)
        answer = await fleet.api.request("POST", path, params={"dryRun": "All"}, json=fleet.goal(speed=9))
        return answer[0] == 422

    await eventually(refused, what="the schema is in force")
    await fleet.robots("r1")
    await fleet.robots("r2", kind="fast")
    await fleet.api.create(fleet.goal(speed=1))
    steps = [{"path": "/spec/speed", "set": {"value": 9}}]
    await fleet.place(overrides=[{"robotSelector": {"matchLabels": {"kind": "fast"}}, "steps": steps}])
    fleet.start()
    status = await fleet.until_status(lambda status: status["counts"]["blocked"] == 1)
    assert [(each["robot"], each["reason"]) for each in status["errors"]] == [("r2", "Refused")]
    await fleet.until_specs(r1={"speed": 1})
    with pytest.raises(ApiError):
        await fleet.api.create(fleet.goal("other", speed=9))
