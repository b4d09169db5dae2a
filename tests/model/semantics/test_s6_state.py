"""S6 on virtual time: what a restart, a kill and a lost or refusing disk cost, to the last request."""

import pytest

from crsyncer.ports import Reply
from tests.model.simulation.scene import changes, copy, full_lists, original, scene, synced
from tests.model.simulation.world import World

SIDES = ("cloud", "robot")
NAMES = [f"g{number}" for number in range(12)]


def lived(world: World) -> None:
    """A dozen objects on both sides, each with a status."""
    world.begin(*NAMES)
    for name in NAMES:
        world.robot.set_status(name, {"phase": "RUNNING"})
    world.settle()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_S6_2_a_restart_writes_nothing_and_lists_nothing(kill: bool) -> None:
    with scene() as world:
        lived(world)
        (world.crash if kill else world.stop)()
        since, before = world.clock.now, len(world.writes)
        world.begin()
        assert world.writes[before:] == []
        assert [full_lists(world, side, since) for side in SIDES] == [[], []]
        (kind,) = world.status()["kinds"]
        assert (kind["resumes"], kind["relists"]) == ({"cloud": 1, "robot": 1}, {"cloud": 0, "robot": 0})


def test_S6_4_a_lost_database_costs_one_list_a_side_and_no_write() -> None:
    with scene() as world:
        lived(world)
        with world.down():
            world.lose_database()
            since, before = world.clock.now, len(world.writes)
        world.settle()
        assert world.writes[before:] == []
        assert [len(full_lists(world, side, since)) for side in SIDES] == [1, 1]


@pytest.mark.parametrize("database", ["kept", "lost"])
def test_S6_3_each_status_of_an_outage_is_sent_once_after_a_kill_and_only_the_newest(database: str) -> None:
    with scene() as world:
        lived(world)
        world.cut("cloud")
        for phase in ("STARTED", "BUSY", "DONE"):
            for name in NAMES:
                world.robot.set_status(name, {"phase": phase, "whose": name})
            world.pass_time(1.0)
        with world.down(kill=True):
            if database == "lost":
                world.lose_database()
            before = len(world.writes)
        world.pass_time(30.0)
        world.heal("cloud")
        sent = [(write.verb, write.name, (write.after or {})["status"]) for write in world.writes[before:]]
        assert sorted(sent, key=str) == sorted(
            (("status", name, {"phase": "DONE", "whose": name}) for name in NAMES), key=str
        )


def test_S6_5_a_disk_that_refuses_for_an_hour_delays_nothing_and_takes_everything_then() -> None:
    with synced() as world:
        world.disk.refuses = True
        for number in range(2, 8):
            since = world.clock.now
            world.cloud.set("a", spec={"x": number})
            world.report("a", {"n": number}, seconds=2.0)
            assert (copy(world)["spec"], original(world)["status"]) == ({"x": number}, {"n": number}), since
            world.pass_time(600.0)
        assert [reason["code"] for reason in world.status()["reasons"]] == ["StateDegraded"]
        world.disk.refuses = False
        world.pass_time(30.0)
        assert (world.status()["reasons"], world.status()["store"]["state"]) == ([], "ok")
        with world.down(kill=True):
            before = changes(world)
        world.settle()
        assert changes(world) == before


def test_S4_4_a_status_that_is_acknowledged_while_the_disk_is_waited_for_reaches_the_new_copy() -> None:
    for seed in range(40):
        with synced(seed) as world:
            world.disk.commit_seconds = 1.0
            world.inject("cloud", Reply(500, {"message": "storm"}), part="/status")
            world.robot.set_status("a", {"phase": "DONE"})
            world.robot.delete("a")
            world.settle()
            assert (copy(world).get("status"), original(world)["status"]) == ({"phase": "DONE"}, {"phase": "DONE"})


def test_S6_1_what_upstream_deletes_while_the_disk_is_waited_for_is_not_copied(world: World) -> None:
    world.cut("robot")
    world.cloud.create("b", spec={"x": 1})
    world.cloud.set_status("b", {"phase": "DONE"})
    world.pass_time(30)
    world.disk.commit_seconds = 100.0
    world.heal("robot", seconds=10)
    world.remove("b", seconds=300)
    world.settle()
    assert [write for write in changes(world) if " b " in write] == []


def test_S5_what_upstream_has_again_when_the_disk_was_waited_for_is_not_deleted(world: World) -> None:
    world.disk.commit_seconds = 100.0
    backup = world.cloud.snapshot()
    world.remove("a", seconds=1)
    world.cloud.restore(backup)
    world.heal("cloud", seconds=300)
    world.settle()
    assert set(world.robot.objects()) == {"a"}
    assert [write for write in changes(world) if "delete" in write] == []
