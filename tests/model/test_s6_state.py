"""S6 on virtual time: what a restart, a kill and a lost or refusing disk cost, to the last request."""

import pytest

from tests.model.scene import changes, copy, full_lists, original, scene, synced
from tests.model.world import World

SIDES = ("cloud", "robot")
NAMES = [f"g{number}" for number in range(12)]


def lived(world: World) -> None:
    """A dozen objects on both sides, each with a status."""
    world.start()
    for name in NAMES:
        world.cloud.create(name, spec={"x": 1})
    world.settle()
    for name in NAMES:
        world.robot.set_status(name, {"phase": "RUNNING"})
    world.settle()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_S6_2_a_restart_writes_nothing_and_lists_nothing(kill: bool) -> None:
    with scene() as world:
        lived(world)
        (world.crash if kill else world.stop)()
        since, before = world.clock.now, len(world.writes)
        world.start()
        world.settle()
        assert world.writes[before:] == []
        assert [full_lists(world, side, since) for side in SIDES] == [[], []]
        (kind,) = world.status()["kinds"]
        assert (kind["resumes"], kind["relists"]) == ({"cloud": 1, "robot": 1}, {"cloud": 0, "robot": 0})


def test_S6_4_a_lost_database_costs_one_list_a_side_and_no_write() -> None:
    with scene() as world:
        lived(world)
        world.stop()
        world.lose_database()
        since, before = world.clock.now, len(world.writes)
        world.start()
        world.settle()
        assert world.writes[before:] == []
        assert [len(full_lists(world, side, since)) for side in SIDES] == [1, 1]


def test_S6_4_what_happened_while_there_was_no_database_still_arrives() -> None:
    with scene() as world:
        lived(world)
        world.crash()
        world.lose_database()
        world.cloud.delete("g0")
        world.cloud.set("g1", spec={"x": 2})
        world.robot.set_status("g2", {"phase": "DONE"})
        world.start()
        world.settle()
        assert set(world.robot.objects()) == set(NAMES[1:])
        assert copy(world, "g1")["spec"] == {"x": 2}
        assert original(world, "g2")["status"] == {"phase": "DONE"}


@pytest.mark.parametrize("database", ["kept", "lost"])
def test_S6_3_each_status_of_an_outage_is_sent_once_after_a_kill_and_only_the_newest(database: str) -> None:
    with scene() as world:
        lived(world)
        world.cut("cloud")
        for phase in ("STARTED", "BUSY", "DONE"):
            for name in NAMES:
                world.robot.set_status(name, {"phase": phase, "whose": name})
            world.pass_time(1.0)
        world.crash()
        if database == "lost":
            world.lose_database()
        before = len(world.writes)
        world.start()
        world.pass_time(30.0)
        world.mend("cloud")
        world.settle()
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
            world.robot.set_status("a", {"n": number})
            world.pass_time(2.0)
            assert (copy(world)["spec"], original(world)["status"]) == ({"x": number}, {"n": number}), since
            world.pass_time(600.0)
        assert [reason["code"] for reason in world.status()["reasons"]] == ["StateDegraded"]
        world.disk.refuses = False
        world.pass_time(30.0)
        assert (world.status()["reasons"], world.status()["store"]["state"]) == ([], "ok")
        world.crash()
        before = changes(world)
        world.start()
        world.settle()
        assert changes(world) == before
