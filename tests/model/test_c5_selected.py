"""C5.1 on virtual time: related objects that a selector selects."""

import pytest

from crsyncer.core.model import Side
from tests.model.config_maps import data, delete_map, put_map
from tests.model.related import BOTH, EDGE, ends, related
from tests.model.scene import restart


@BOTH
def test_C5_1_a_selector_selects_all_that_it_matches_in_the_namespace(origin: str) -> None:
    with related(origin, object=EDGE) as world:
        here, there = ends(world, origin)
        for plane in (here, there):
            plane.make_namespace("other")
        for name in ("a", "b"):
            put_map(here, name, labels={"tier": "edge"}, x=name)
        put_map(here, "c", labels={"tier": "cloud"}, x="c")
        put_map(here, "a", namespace="other", labels={"tier": "edge"}, x="a")
        world.add("g", spec={})
        assert (data(there), data(there, "other")) == ({"a": {"x": "a"}, "b": {"x": "b"}}, {})
        put_map(here, "a", labels={"tier": "cloud"}, x="a")
        put_map(here, "c", labels={"tier": "edge"}, x="c")
        put_map(here, "d", labels={"tier": "edge"}, x="d")
        world.pass_time(3)
        assert data(there) == {"b": {"x": "b"}, "c": {"x": "c"}, "d": {"x": "d"}}
        made = len(world.writes)
        restart(world)
        world.pass_time(60)
        assert len(world.writes) == made
        with world.down(kill=True):
            delete_map(here, "b")
        world.settle()
        assert set(data(there)) == {"c", "d"}
        world.add("h", spec={})
        world.remove("g")
        assert set(data(there)) == {"c", "d"}
        world.remove("h")
        assert (data(there), set(data(here))) == ({}, {"a", "c", "d"})


def test_C5_1_more_than_100_selected_objects_are_reported() -> None:
    with related(object=EDGE) as world:
        for number in range(100):
            put_map(world.cloud, f"m{number}", labels={"tier": "edge"}, x="1")
        world.add("g", spec={})
        assert (len(data(world.robot)), world.status()["holds"]) == (100, [])
        put_map(world.cloud, "more", labels={"tier": "edge"}, x="1")
        world.settle()
        [hold] = world.status()["holds"]
        assert (hold["reason"], "there are 101 of them; allowed: 100" in hold["message"]) == ("RelatedFailed", True)
        assert len(data(world.robot)) == 100
        world.add("h", spec={})
        assert world.status()["holds"][0]["objects"] == 2
        delete_map(world.cloud, "m1")
        world.settle()
        assert (world.status()["holds"], set(data(world.robot))) == ([], set(data(world.cloud)))


@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_C5_1_C5_6_what_is_selected_stays_after_a_restart(kind: str) -> None:
    with related(object=EDGE, resource={"group": "", "resource": kind}) as world:
        for name in "abcdefg":
            put_map(world.cloud, name, kind=kind, labels={"tier": "edge"}, x="eA==")
        world.add("g", spec={})
        made = len(world.writes)
        restart(world)
        world.pass_time(60)
        assert (set(data(world.robot, kind=kind)), len(world.writes)) == (set("abcdefg"), made)
        put_map(world.cloud, "a", kind=kind, labels={"tier": "x"}, x="eA==")
        world.settle()
        assert set(data(world.robot, kind=kind)) == set("bcdefg")


def test_C5_1_what_is_made_by_hand_under_the_name_of_a_copy_refers_to_nothing() -> None:
    with related("cloud", source="robot", object=EDGE) as world:
        put_map(world.cloud, "a", labels={"tier": "edge"}, x="a")
        world.cloud.create("g", spec={})
        world.add("g", source="robot")
        assert [hold["reason"] for hold in world.status()["holds"]] == ["NameTaken"]
        world.robot.set("g", spec={"x": 2})
        world.edit("g", spec={"y": 1})
        assert data(world.robot) == {}
        world.remove("g")
        assert data(world.robot) == {"a": {"x": "a"}}


def test_C5_1_what_is_selected_anew_while_its_list_is_under_way_is_listed_again() -> None:
    with related(object=EDGE) as world:
        put_map(world.cloud, "a", labels={"tier": "edge"}, x="a")
        for number in range(150):
            put_map(world.cloud, f"z{number:03}", x="1")
        world.settle()
        world.weather[Side.CLOUD].latency = 5.0
        world.cloud.create("g", spec={})
        world.pass_time(26)  # the first of two pages is about to arrive
        world.cloud.delete("g")
        world.pass_time(2)
        world.cloud.create("g", spec={})
        world.pass_time(600)
        assert data(world.robot) == {"a": {"x": "a"}}
