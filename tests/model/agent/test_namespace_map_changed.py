"""The agent is started with another namespace map: copies stay where they are, and none is deleted for that."""

import pytest

from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.model import Side
from tests.model.scenes.maps import HOME, HOUR, mapped, remap
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, holds, restart, roles, row


@pytest.mark.parametrize("source", SOURCES)
def test_S1_7_where_a_map_is_made_narrower_copies_stay_as_they_are(source: str) -> None:
    two = Namespaces(("robot-r1", "theirs"), ("default", "ours"))
    with mapped(two, source=source) as world:
        up, down = roles(world, source)
        place = {Side.CLOUD: "theirs", Side.ROBOT: "ours"}
        for plane in (up, down):
            plane.make_namespace(place[plane.side])
        up.create("a", spec={"x": 1})
        world.begin("b", source=source, namespace=place[up.side])
        remap(world, HOME)
        up.delete("b", namespace=place[up.side])
        world.remove("a", source=source, seconds=HOUR)
        assert set(down.objects(namespace=place[down.side])) == {"b"}
        assert down.objects() == {}
        assert holds(world) == []


CHANGED = {
    "another name in the cloud": (HOME, Namespaces(("robot-r2",), ("default",))),
    "another name on the robot": (HOME, Namespaces(("robot-r1",), ("apps",))),
    "the first map": (EVERYWHERE, HOME),
    "no map any more": (HOME, EVERYWHERE),
    "crossed": (Namespaces(("one", "two"), ("one", "two")), Namespaces(("one", "two"), ("two", "one"))),
}


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("change", CHANGED)
def test_S8_3_another_map_deletes_and_overwrites_no_copy_before_a_human_says_so(
    change: str, source: str, kill: bool
) -> None:
    before, after = CHANGED[change]
    with mapped(before, source=source) as world:
        up, down = roles(world, source)
        for place in before.on(up.side) or (up.home,):
            up.make_namespace(place)
            up.create("a", namespace=place, spec={"in": place})
            up.create("b", namespace=place, spec={"in": place})
        world.begin()
        for place in before.on(down.side) or (down.home,):
            down.set_status("a", {"n": 1}, namespace=place)
        world.settle()
        copies = dict(down.server.storage.of(f"goals.{GROUP}"))
        originals = dict(up.server.storage.of(f"goals.{GROUP}"))
        if kill:
            world.crash()
            world.start()
        remap(world, after)
        world.pass_time(HOUR)
        stored = down.server.storage.of(f"goals.{GROUP}")
        assert {where: stored.get(where) for where in copies} == copies
        assert dict(up.server.storage.of(f"goals.{GROUP}")) == originals
        remap(world, before)
        world.pass_time(HOUR)
        assert {where: stored.get(where) for where in copies} == copies
        assert dict(up.server.storage.of(f"goals.{GROUP}")) == originals
        # Without a map every namespace is synced, also that in which the map has had copies made.
        of_nothing = (change, source) == ("the first map", "robot")
        assert holds(world) == ([("Restored", 2)] if of_nothing else [])


@pytest.mark.parametrize("source", SOURCES)
def test_S8_3_what_another_map_would_delete_is_held_and_released_by_a_human(source: str) -> None:
    with mapped(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        other = Namespaces(("robot-r1",), ("apps",)) if source == "robot" else Namespaces(("robot-r2",), ("default",))
        up.make_namespace(other.on(up.side)[0])
        up.create("b", namespace=other.on(up.side)[0], spec={"x": 2})
        remap(world, other)
        (hold,) = world.status()["holds"]
        assert (hold["reason"], hold["names"]) == ("Restored", [f"{other.on(up.side)[0]}/a"])
        assert set(down.objects()) == {"a", "b"}
        restart(world, kill=True)
        world.order("release", id=world.status()["holds"][0]["id"])
        world.settle()
        assert set(down.objects()) == {"b"}
        assert set(up.objects()) == {"a"}
        world.remove("b", namespace=other.on(up.side)[0], source=source)
        assert down.objects() == {}


@pytest.mark.parametrize("source", SOURCES)
def test_S4_3_a_copy_in_another_place_blanks_no_status(source: str) -> None:
    with mapped(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        world.report("a", {"n": 1}, source=source)
        other = Namespaces(("robot-r1",), ("apps",)) if source == "cloud" else Namespaces(("robot-r2",), ("default",))
        remap(world, other)
        place = other.on(down.side)[0]
        assert down.objects(namespace=place)["a"]["status"] == {"n": 1}
        assert up.objects()["a"]["status"] == {"n": 1}
        down.set_status("a", {"n": 2}, namespace=place)
        world.report("a", {"n": 3}, source=source, seconds=HOUR)
        assert up.objects()["a"]["status"] == {"n": 2}
        assert down.objects()["a"]["status"] == {"n": 3}


@pytest.mark.parametrize("source", SOURCES)
def test_S6_3_a_status_that_waits_goes_up_also_where_the_map_has_lost_its_namespace(source: str) -> None:
    with mapped(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        world.cut(str(up.side), seconds=5)
        world.report("a", {"n": 1}, source=source, seconds=5)
        world.mend(str(up.side))
        remap(world, Namespaces(("robot-r9",), ("else",)))
        world.pass_time(600)
        assert up.objects()["a"]["status"] == {"n": 1}
        assert set(down.objects()) == {"a"}
        assert row(world)["pending"] == {"spec": 0, "status": 0}
