"""S8: a cluster that was restored or built anew is noticed though what would tell of it first is gone."""

import pytest

from crsyncer.core.model import Side
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, copy, holds, release, roles, scene
from tests.model.simulation.world import World
from tests.system.bed import LABEL, ROBOT, SYNCER, crd


def test_S5_5c_an_accepted_cluster_costs_no_copy_though_the_agent_was_killed_before_a_list_gave_it_a_cursor(
    world: World,
) -> None:
    world.cloud.label("a", robot=ROBOT)
    world.add("b", labels={LABEL: ROBOT})
    world.weather[Side.CLOUD].latency = 5.0
    world.robot.annotate_kind({SYNCER + "filter-by-robot-name": "true"})
    world.pass_time(4.0)
    with world.down(kill=True):
        world.weather[Side.CLOUD].latency = 0.0
        world.cloud.rebuild(revision=100_000)
    world.pass_time(60)
    assert world.status()["sides"]["cloud"]["state"] == "identity-changed"
    world.order("release", id="cloud")
    world.pass_time(300)
    assert set(world.robot.objects()) == {"a", "b"}
    assert holds(world) == [("Restored", 2)]


@pytest.mark.parametrize("revision", [10, 100_000])
def test_S8_3_a_cluster_that_takes_the_place_of_another_between_a_list_and_its_watch_is_another(revision: int) -> None:
    with scene() as world:
        world.cloud.create("a", spec={"x": 1})
        world.weather[Side.CLOUD].latency = 1.0
        world.start()
        while not world.journal.asked("cloud", verb="watch", kind="goals"):
            world.pass_time(0.1)
        world.cloud.rebuild(revision=revision)
        world.weather[Side.CLOUD].latency = 0.0
        world.pass_time(300)
        assert world.status()["sides"]["cloud"]["state"] == "identity-changed"
        assert set(world.robot.objects()) == {"a"}


def test_S8_3_a_cluster_that_is_restored_between_a_list_and_its_watch_is_noticed_while_the_watch_is_open() -> None:
    with scene() as world:
        backup = world.cloud.snapshot()
        world.cloud.create("a", spec={"x": 1})
        world.weather[Side.CLOUD].latency = 1.0
        world.start()
        while not world.journal.asked("cloud", verb="watch", kind="goals"):
            world.pass_time(0.1)
        world.cloud.restore(backup)
        world.weather[Side.CLOUD].latency = 0.0
        world.pass_time(90)
        assert set(world.robot.objects()) == {"a"}
        assert holds(world) == [("Restored", 1)]


def test_S8_3_an_object_that_a_restore_brought_back_tells_of_it_when_nothing_else_can(world: World) -> None:
    backup = world.cloud.snapshot()
    world.cloud.create("b", spec={"x": 1})
    world.remove("a")
    with world.down():
        world.cloud.restore(backup, overtaken_by=40)
        world.cloud.restart()
    world.pass_time(300)
    assert set(world.robot.objects()) == {"a", "b"}
    assert holds(world) == [("Restored", 1)]


def test_S8_3_another_object_in_the_very_version_of_a_known_one_tells_of_a_restore(world: World) -> None:
    world.remove("a")
    backup = world.cloud.snapshot()
    world.add("a")
    uid = copy(world)["metadata"]["uid"]
    with world.down():
        world.cloud.restore(backup)
        world.cloud.create("a", spec={"x": 2})
        world.cloud.restart()
    world.pass_time(300)
    assert copy(world)["metadata"]["uid"] == uid
    assert holds(world) == [("Restored", 1)]


def test_S8_3_an_object_that_is_missing_too_early_tells_of_a_restore(world: World) -> None:
    backup = world.cloud.snapshot()
    world.add("b")
    with world.down():
        world.cloud.restore(backup)
        world.cloud.delete("a")
        world.cloud.restart()
    world.pass_time(300)
    assert set(world.robot.objects()) == {"a", "b"}
    assert holds(world) == [("Restored", 2)]


def test_S8_3_what_is_missing_was_not_deleted_by_a_write_that_the_list_shows(world: World) -> None:
    backup = world.cloud.snapshot()
    world.add("b")
    with world.down():
        world.cloud.restore(backup)
        world.cloud.others_write(1)
        world.cloud.set("a", spec={"x": 2})
        world.cloud.restart()
    world.pass_time(300)
    assert set(world.robot.objects()) == {"a", "b"}
    assert holds(world) == [("Restored", 1)]


def test_S8_2_a_server_that_forgot_the_way_and_shows_what_is_known_was_not_restored(world: World) -> None:
    world.add("b")
    world.cloud.others_write(40)
    world.cloud.set("a", spec={"x": 2})
    world.cloud.restart()
    world.remove("b")
    assert set(world.robot.objects()) == {"a"}
    assert holds(world) == []


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("connected", [True, False], ids=["at the start", "later"])
def test_S8_3_a_status_that_waited_reaches_a_restored_upstream_though_its_copy_is_gone(
    source: str, connected: bool
) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        up.create("a", spec={"x": 1})
        world.start()
        world.settle()
        down.set_status("a", {"phase": "STARTED"})
        world.settle()
        backup = up.snapshot()
        down.set_status("a", {"phase": "HALF"})
        world.settle()
        world.cut(up.side)
        world.pass_time(20)
        down.set_status("a", {"phase": "DONE"})
        world.pass_time(5)
        world.stop()
        up.restore(backup)
        down.delete("a")
        if connected:
            world.mend(up.side)
        world.start()
        world.pass_time(30)
        world.mend(up.side)
        world.settle()
        assert (up.objects()["a"]["status"], down.objects()["a"]["status"]) == ({"phase": "DONE"}, {"phase": "DONE"})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kill", [False, True], ids=["running", "killed"])
@pytest.mark.parametrize("released", [False, True], ids=["held", "released"])
def test_S8_4_S5_5a_what_went_with_its_crd_stays_held_or_released_where_a_restore_brings_its_copy_back(
    source: str, kill: bool, released: bool
) -> None:
    with World(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        world.begin("a", "b", "c", "d", source=source)
        up.drop_kind()
        up.apply(crd(GROUP, source=source))
        world.pass_time(60)
        assert holds(world) == [("KindMissing", 4)]
        backup = down.snapshot()
        for name in "abc":
            down.delete(name)
        up.create("c", spec={"x": 2})
        world.pass_time(60)
        assert (set(down.objects()), holds(world)) == ({"c", "d"}, [("KindMissing", 1)])
        if released:
            release(world)
            world.pass_time(30)
        with world.down(kill, kill=kill):
            down.restore(backup)
        world.pass_time(120)
        assert down.objects()["c"]["spec"] == {"x": 2}
        if not released:
            assert (set(down.objects()), holds(world)) == ({"a", "b", "c", "d"}, [("KindMissing", 3)])
            release(world)
            world.pass_time(30)
        assert (set(down.objects()), holds(world)) == ({"c"}, [])


def test_S8_3_what_a_list_showed_before_it_told_of_a_restore_can_be_written(world: World) -> None:
    world.add("z")
    backup = world.robot.snapshot()
    world.remove("z")
    with world.down():
        world.robot.restore(backup, overtaken_by=40)
        world.robot.restart()
    world.pass_time(300)
    world.edit("a", spec={"x": 2}, seconds=10)
    assert copy(world)["spec"] == {"x": 2}
