"""The fleet controller on a real API server: facts that only a server can show (F1 to F6)."""

import signal

from tests.system.fleet_bed import HOME, OURS, FleetBed, condition, marks


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
    assert condition(status, "Stamped")[0] == "True"


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
