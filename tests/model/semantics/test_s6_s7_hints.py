"""S6 and S7 on virtual time: an older store is a hint, a bad disk delays nobody, absent sides are waited for."""

import pytest

from crsyncer.core.model import Side
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.scene import (
    SOURCES,
    changes,
    copy,
    full_lists,
    holds,
    original,
    restart,
    roles,
    scene,
    state,
    synced,
)
from tests.model.simulation.world import World
from tests.system.bed import LABEL


def statuses(world: World, side: Side) -> list[tuple[str, object]]:
    """Every status that was written on a side, in order."""
    return [(w.name, (w.after or {}).get("status")) for w in world.writes if w.side is side and w.before != w.after]


@pytest.mark.parametrize("source", SOURCES)
def test_S4_1_a_status_that_waited_in_an_older_store_never_goes_over_a_newer_one(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        world.begin("a", "b", "c", source=source)
        world.cut(str(up.side))
        for name in "ab":
            down.set_status(name, {"phase": "OLD"})
        world.pass_time(5)
        with world.down():
            backup = world.disk.copied()
            world.mend(str(up.side))
        world.settle()
        down.set_status("a", {"phase": "NEW"})
        up.delete("c")
        world.remove("b", source=source)
        for name in "bd":  # one of them under an old name
            up.create(name, spec={"x": 2})
        world.settle()
        uids = {name: each["metadata"]["uid"] for name, each in down.objects().items()}
        with world.down():
            before = len(statuses(world, up.side))
            world.put_back(backup)
            world.weather[down.side].lag = 5.0  # upstream may be heard first
        world.order("retry")
        world.pass_time(60)
        world.heal(str(down.side))
        assert statuses(world, up.side)[before:] == []
        assert {name: each["metadata"]["uid"] for name, each in down.objects().items()} == uids
        assert (up.objects()["a"]["status"], set(up.objects())) == ({"phase": "NEW"}, {"a", "b", "d"})
        assert world.status()["health"] == "healthy"


@pytest.mark.parametrize("source", SOURCES)
def test_S6_4_a_deletion_in_an_older_store_is_about_the_object_of_that_time(source: str) -> None:
    with scene(goals={"source": source}) as world:
        _, down = roles(world, source)
        world.begin("a", "b", source=source)
        world.cut(str(down.side), seconds=30)
        world.remove("a", source=source, seconds=5)
        with world.down():
            backup = world.disk.copied()
            world.mend(str(down.side))
        world.settle()
        world.add("a", source=source, spec={"x": 2})
        kept = down.objects()["a"]["metadata"]["uid"]
        with world.down():
            world.put_back(backup)
        world.settle()
        assert down.objects()["a"]["metadata"]["uid"] == kept
        assert (set(down.objects()), holds(world)) == ({"a", "b"}, [])


@pytest.mark.parametrize("copies", ["there", "gone"])
def test_S4_1_an_older_store_without_cursors_sends_no_older_status(copies: str) -> None:
    with synced() as world:
        world.cut("cloud")
        world.report("a", {"phase": "OLD"}, seconds=5)
        with world.down():
            backup = world.disk.copied()
            world.mend("cloud")
        world.settle()
        world.report("a", {"phase": "DONE"})
        with world.down():
            backup.rows = [each for each in backup.rows if each[0] != "cursor"]
            backup.durable = len(backup.rows)
            world.put_back(backup)
            if copies == "gone":
                world.robot.delete("a")
            before = len(statuses(world, Side.CLOUD))
        world.settle()
        assert statuses(world, Side.CLOUD)[before:] == []
        assert copy(world)["status"] == original(world)["status"] == {"phase": "DONE"}
        assert world.status()["outbox"]["depth"] == 0


@pytest.mark.parametrize("lost", [(), ("cursor",), ("cursor", "copy")], ids=["nothing", "cursors", "copies too"])
def test_S6_3_the_final_status_of_a_copy_that_is_gone_is_sent_after_a_restart(lost: tuple[str, ...]) -> None:
    with scene() as world:
        world.begin("a")
        world.report("a", {"phase": "RUNNING"})
        world.cut("cloud")
        world.report("a", {"phase": "DONE"}, seconds=5)
        with world.down():
            world.robot.delete("a")
            world.disk.rows = [each for each in world.disk.rows if each[0] not in lost]
            world.disk.durable = len(world.disk.rows)
            world.mend("cloud")
        world.settle()
        assert original(world)["status"] == copy(world)["status"] == {"phase": "DONE"}


def test_S6_2_an_older_store_is_only_older_and_costs_no_list_and_no_write_downstream() -> None:
    with scene() as world:
        world.begin("a", "b", "c")
        with world.down():
            backup = world.disk.copied()
        for name in "abc":
            world.robot.set_status(name, {"phase": "RUNNING"})
        world.settle()
        with world.down(kill=True):
            world.put_back(backup)
            since, before = world.clock.now, changes(world)
        world.settle()
        assert changes(world) == before
        assert [full_lists(world, side, since) for side in ("cloud", "robot")] == [[], []]
        assert world.journal.asked("robot", verb="write", kind="goals", since=since) == []


def test_S6_2_a_cursor_of_another_selector_is_worth_nothing() -> None:
    with World(kinds={"goals": {"filtered": "true"}}) as world:
        world.start()
        world.cloud.create("mine", spec={"x": 1}, labels={LABEL: "robot-1"})
        world.add("yours", labels={LABEL: "robot-2"})
        with world.down():
            world.settings = AgentSettings("robot-2")
        world.settle()
        # What another robot's copy was is not this robot's any more: local, and never touched.
        assert set(world.robot.objects()) == {"mine", "yours"}
        assert world.journal.asked(verb="delete", kind="goals") == []


def test_S6_3_the_outbox_keeps_one_row_an_object_and_its_first_dirty_time(world: World) -> None:
    world.cut("cloud")
    begun = world.clock.now
    for step in range(6):
        world.report("a", {"n": step}, seconds=10)
    outbox = world.status()["outbox"]
    assert (outbox["depth"], world.clock.now - begun - outbox["oldestSeconds"] < 2) == (1, True)
    restart_offline(world)
    outbox = world.status()["outbox"]
    assert (outbox["depth"], world.clock.now - begun - outbox["oldestSeconds"] < 2) == (1, True)
    before = len(statuses(world, Side.CLOUD))
    world.heal("cloud")
    assert statuses(world, Side.CLOUD)[before:] == [("a", {"n": 5})]


def restart_offline(world: World) -> None:
    """The agent is killed and started; the cloud is out of reach."""
    restart(world, kill=True, seconds=10)


@pytest.mark.fault_43
def test_S6_1_killed_while_the_disk_refuses_it_resumes_where_the_disk_was() -> None:
    with scene() as world:
        world.begin(*"abcd")
        world.disk.refuses = True
        world.cloud.set("a", spec={"x": 2})
        world.report("b", {"n": 1})
        assert (copy(world)["spec"], original(world, "b")["status"]) == ({"x": 2}, {"n": 1})
        world.robot.set_status("c", {"phase": "DONE"})
        with world.down(kill=True):
            world.cloud.delete("d")
            since = world.clock.now
        world.pass_time(60)
        assert (set(world.robot.objects()), original(world, "c")["status"]) == (set("abc"), {"phase": "DONE"})
        assert [full_lists(world, side, since) for side in ("cloud", "robot")] == [[], []]
        world.disk.refuses = False
        world.pass_time(30)
        assert world.status()["health"] == "healthy"


@pytest.mark.fault_44
def test_S6_1_a_live_change_does_not_wait_for_a_disk_that_syncs_slowly(world: World) -> None:
    world.disk.commit_seconds = 100_000.0
    for step in range(2, 7):
        world.cloud.set("a", spec={"x": step})
        world.report("a", {"n": step}, seconds=1)
        assert (copy(world)["spec"], original(world)["status"]) == ({"x": step}, {"n": step})


@pytest.mark.parametrize("step", range(1, 40, 3))
def test_S6_1_kill_9_at_any_moment_is_followed_by_a_replay_that_changes_nothing(step: int) -> None:
    with synced(step) as world:
        for number in range(2, 5):
            world.crash_after(step)
            world.cloud.set("a", spec={"x": number})
            world.report("a", {"n": number}, seconds=1)
            world.crash()
            world.start()
        world.settle()
        assert (copy(world)["spec"], original(world)["status"]) == ({"x": 4}, {"n": 4})
        before = changes(world)
        restart(world, kill=True)
        assert changes(world) == before


# S7


def test_S7_1_statuses_are_collected_with_the_cloud_absent_since_boot() -> None:
    with synced() as world:
        world.add("b")
        with world.down():
            world.cut("cloud")
        world.pass_time(60)
        for name in "ab":
            world.robot.set_status(name, {"phase": "DONE"})
        world.pass_time(5)
        status = world.status()
        assert (status["health"], status["outbox"]["depth"], status["kinds"][0]["pending"]["status"]) == (
            "offline",
            2,
            2,
        )
        world.heal("cloud")
        assert [original(world, name)["status"] for name in "ab"] == [{"phase": "DONE"}] * 2


@pytest.mark.fault_52
def test_S7_2_final_statuses_go_before_periodic_ones_the_newest_of_each_once() -> None:
    with scene() as world:
        world.start()
        names = [f"g{number:03}" for number in range(200)]
        world.add(*names)
        periodic = names[::10]
        world.cut("cloud", seconds=5)
        for name in names:
            world.robot.set_status(name, {"n": 1})
        world.pass_time(5)
        world.cut("robot")  # in a long outage everything has been looked at again, and was worth something else then
        world.pass_time(30)
        world.connect("robot")
        world.pass_time(30)
        for beat in range(2, 8):
            for name in periodic:
                world.robot.set_status(name, {"n": beat})
            world.pass_time(5)
        before = len(statuses(world, Side.CLOUD))
        world.heal("cloud")
        sent = statuses(world, Side.CLOUD)[before:]
        assert sorted(name for name, _ in sent) == names
        assert dict(sent) == {name: {"n": 7 if name in periodic else 1} for name in names}
        early = [name for name, _ in sent[: len(names) - len(periodic)] if name in periodic]
        assert len(early) <= 16, "as many as are on their way at a time"


@pytest.mark.parametrize("when", ["at start", "while running"])
def test_S7_3_a_robot_that_is_absent_is_waited_for_and_its_watch_goes_on(world: World, when: str) -> None:
    if when == "at start":
        with world.down():
            world.cut("robot")
    else:
        world.cut("robot")
    world.pass_time(60)
    assert (world.status()["health"], [r["code"] for r in world.status()["reasons"]]) == ("degraded", ["RobotOffline"])
    assert world.status()["sides"]["cloud"]["state"] == "connected"
    if when == "while running":
        assert state(world) == "waiting"
    world.cloud.set("a", spec={"x": 2})
    since = world.clock.now
    world.heal("robot")
    assert (copy(world)["spec"], full_lists(world, "robot", since)) == ({"x": 2}, [])
    assert world.status()["health"] == "healthy"


def test_S7_1_an_agent_that_starts_offline_knows_when_the_cloud_last_answered(world: World) -> None:
    world.pass_time(600)
    known = world.status()["sides"]["cloud"]["lastOk"]
    with world.down():
        world.cut("cloud")
    world.pass_time(60)
    status = world.status()
    assert status["health"] == "offline"
    assert known[:15] == status["sides"]["cloud"]["lastOk"][:15] <= status["agent"]["since"]
    assert not any("never" in reason["message"] for reason in status["reasons"])


@pytest.mark.parametrize("killed", [False, True])
def test_S7_1_a_recorded_deletion_is_carried_out_although_the_cloud_has_left_since(world: World, killed: bool) -> None:
    world.cut("robot", seconds=30)
    world.remove("a", seconds=5)  # whether the kind is alive is asked while the cloud can still answer
    with world.down(killed, kill=True):
        world.cut("cloud")
    world.pass_time(30)
    world.heal("robot", seconds=60)
    assert world.robot.objects() == {}
