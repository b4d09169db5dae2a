"""C5.1 on virtual time: after a restart, what selectors select is watched on, and listed only where it has to be."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from crsyncer.core.model import Key, Side
from tests.model.scenes.config_maps import data, delete_map, put_map
from tests.model.scenes.policies import apply_policy
from tests.model.scenes.related import BOTH, EDGE, ends, entry, related
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import full_lists, restart
from tests.model.simulation.world import World

_TIER = {"tier": "edge"}


@contextmanager
def selected(origin: str = "cloud", *, kind: str = "configmaps", count: int = 2) -> Iterator[World]:
    """A goal selects some objects of a kind, and has their copies; there is one more that it does not select."""
    with related(origin, object=EDGE, resource={"group": "", "resource": kind}) as world:
        here, there = ends(world, origin)
        for number in range(count):
            put_map(here, f"m{number}", kind=kind, labels=_TIER, x="eA==")
        put_map(here, "other", kind=kind, labels={"tier": "cloud"}, x="eA==")
        world.add("g", spec={})
        assert len(data(there, kind=kind)) == min(count, 100)
        world.pass_time(5)
        yield world


def _lists(world: World, since: float, origin: str = "cloud", *, kind: str = "configmaps") -> int:
    return sum(1 for request in full_lists(world, origin, since, kind=kind) if "continue" not in request.query)


@BOTH
@pytest.mark.parametrize("kill", [False, True])
def test_C5_1_S6_2_after_a_restart_nothing_is_listed_for_selectors(origin: str, kill: bool) -> None:
    with selected(origin) as world:
        here, there = ends(world, origin)
        for _ in range(2):
            began, made = world.clock.now, len(world.writes)
            restart(world, kill=kill)
            world.pass_time(60)
            assert (_lists(world, began, origin), len(world.writes)) == (0, made)
        put_map(here, "other", labels=_TIER, x="eA==")
        put_map(here, "m0", labels={}, x="eA==")
        world.settle()
        assert set(data(there)) == {"m1", "other"}
        world.remove("g")
        assert data(there) == {}
        restart(world, kill=kill)
        world.add("g", spec={})
        assert set(data(there)) == {"m1", "other"}


def test_C5_1_C5_3_nothing_is_listed_as_long_as_another_primary_selects_the_same() -> None:
    with related(object={**EDGE, "namespace": "shared"}) as world:
        for name in ("shared", "other"):
            world.cloud.make_namespace(name)
            world.robot.make_namespace(name)
        put_map(world.cloud, "m", namespace="shared", labels=_TIER, x="1")
        world.cloud.create("g", spec={})
        world.add("h", namespace="other", spec={})
        world.remove("h", namespace="other")
        began = world.clock.now
        restart(world)
        assert (_lists(world, began), set(data(world.robot, "shared"))) == (0, {"m"})


def _begins(plane: Plane) -> None:
    put_map(plane, "other", labels=_TIER, x="eA==")


def _is_made(plane: Plane) -> None:
    put_map(plane, "new", labels=_TIER, x="eA==")


def _ceases(plane: Plane) -> None:
    put_map(plane, "m0", labels={"tier": "cloud"}, x="eA==")


def _is_deleted(plane: Plane) -> None:
    delete_map(plane, "m0")


CHANGES = pytest.mark.parametrize(
    ("change", "then"),
    [
        (_begins, {"m0", "m1", "other"}),
        (_is_made, {"m0", "m1", "new"}),
        (_ceases, {"m1"}),
        (_is_deleted, {"m1"}),
    ],
)
"""What happens to an original, and of which there are copies then."""


@BOTH
@CHANGES
def test_C5_1_what_changed_while_the_agent_was_down_is_found_by_the_watch(
    origin: str, change: Callable[[Plane], None], then: set[str]
) -> None:
    with selected(origin) as world:
        here, there = ends(world, origin)
        with world.down(kill=True):
            change(here)
        world.settle()
        assert set(data(there)) == then


def test_C5_1_what_begins_to_match_before_the_primaries_are_known_again_is_found() -> None:
    with related("cloud", object=EDGE) as world:
        for plane in (world.cloud, world.robot):
            plane.make_namespace("last")
        world.add(*(f"g{number}" for number in range(300)), spec={})
        world.add("g", namespace="last", spec={})
        world.pass_time(5)
        with world.down(kill=True):
            put_map(world.cloud, "new", namespace="last", labels=_TIER, x="eA==")
        world.settle()
        assert set(data(world.robot, "last")) == {"new"}


@BOTH
@pytest.mark.parametrize("down", [False, True])
def test_C5_1_what_another_selector_selects_is_listed(origin: str, down: bool) -> None:
    with selected(origin) as world:
        with world.down(down, kill=True):
            apply_policy(world.robot, related=[entry(origin, object={"selector": {"matchLabels": {"tier": "cloud"}}})])
        world.settle()
        assert set(data(ends(world, origin)[1])) == {"other"}


def test_C5_1_after_a_restart_a_selector_that_is_back_is_listed() -> None:
    with selected() as world:
        world.remove("g")
        put_map(world.cloud, "new", labels=_TIER, x="eA==")
        world.settle()
        world.crash()
        world.begin("g", spec={})
        assert set(data(world.robot)) == {"m0", "m1", "new"}


@pytest.mark.parametrize("how", ["lost", "salvaged", "forged", "expired"])
def test_C5_1_S6_4_what_is_selected_is_found_whatever_becomes_of_the_store(how: str) -> None:
    with selected() as world:
        began = world.clock.now
        world.crash()
        if how == "lost":
            world.lose_database()
        elif how == "salvaged":
            world.disk.rows = [row for row in world.disk.rows if row[0] not in ("copy", "cursor")]
        elif how == "forged":
            name = ("meta", "", "selected:configmaps")
            world.disk.rows = [(*row[:3], '{"a": [1]}' if row[:3] == name else row[3]) for row in world.disk.rows]
        else:
            world.cloud.restart()
            world.cloud.others_write(5)
            world.cloud.compact()
        delete_map(world.cloud, "m0")
        put_map(world.cloud, "other", labels=_TIER, x="eA==")
        world.begin()
        assert _lists(world, began) > 0
        assert set(data(world.robot)) == {"m1", "other"}


def test_C5_1_S6_5_what_the_store_cannot_read_any_more_is_listed() -> None:
    with selected() as world:
        world.inject("robot", INTERNAL_ERROR, verb="create", part="/configmaps", times=math.inf, seconds=60)
        delete_map(world.robot, "m0")
        world.pass_time(5)
        with world.down(kill=True):
            place = (Side.CLOUD, Key("default", "m0"))
            world.disk.rows = [
                (*row[:3], (row[3][0], "null") if row[2] == place else row[3]) for row in world.disk.rows
            ]
        world.pass_time(600)
        assert set(data(world.robot)) == {"m0", "m1"}


def test_C5_1_an_older_store_goes_on_from_where_it_was() -> None:
    with selected() as world:
        backup = world.disk.copied()
        world.cloud.delete("g")
        put_map(world.cloud, "other", labels=_TIER, x="eA==")
        world.settle()
        world.add("h", spec={})
        with world.down():
            delete_map(world.cloud, "m0")
            world.put_back(backup)
        world.settle()
        assert set(data(world.robot)) == {"m1", "other"}


def test_C5_1_C5_6_secrets_are_listed_after_a_restart() -> None:
    with selected(kind="secrets") as world:
        began = world.clock.now
        restart(world)
        assert _lists(world, began, kind="secrets") == 1
        assert set(data(world.robot, kind="secrets")) == {"m0", "m1"}


def test_C5_1_of_too_many_those_that_the_cache_lacks_are_listed_after_a_restart() -> None:
    with selected(count=100) as world:
        put_map(world.cloud, "more", labels=_TIER, x="eA==")
        world.settle()
        for _ in range(2):
            began = world.clock.now
            restart(world)
            assert (_lists(world, began) > 0, len(data(world.robot))) == (True, 100)
            assert [hold["reason"] for hold in world.status()["holds"]] == ["RelatedFailed"]
        with world.down(kill=True):
            delete_map(world.cloud, "m7")
        world.settle()
        assert (world.status()["holds"], set(data(world.robot))) == ([], set(data(world.cloud)) - {"other"})


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_C5_1_S6_2_a_crash_at_any_point_loses_nothing_that_is_selected(steps: int) -> None:
    with related(object=EDGE) as world:
        for name in ("a", "b"):
            put_map(world.cloud, name, labels=_TIER, x="1")
        world.crash_after(steps)
        world.add("g", spec={}, seconds=1)
        put_map(world.cloud, "c", labels=_TIER, x="1")
        world.pass_time(1)
        if world.life is not None:
            world.crash()
        put_map(world.cloud, "d", labels=_TIER, x="1")
        delete_map(world.cloud, "a")
        world.begin()
        assert set(data(world.robot)) == {"b", "c", "d"}
