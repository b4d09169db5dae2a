"""C5.6 and C1.7 on virtual time: copies of Secrets that stay after their kind is no Secret any more."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.model.scenes.config_maps import annotate_map, maps, put_map, strip_map
from tests.model.scenes.policies import EDGE, apply_policy, serve_policies
from tests.model.scenes.related import diff, entry
from tests.model.scenes.secrets import (
    AS_SECRETS,
    FIRST,
    LABELS,
    LOCAL,
    SECOND,
    as_secrets,
    holds,
    logging_everything,
    passwords,
    put,
    told,
)
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.scene import release, restart, scene
from tests.model.simulation.world import World

GOALS = f"goals.{GROUP}"
APPLIED = "crsyncer.cloudrobotics.com/applied"
NAMES = ["a", *(f"a{number}" for number in range(11))]


@contextmanager
def goals() -> Iterator[World]:
    """Goals on the robot were made of Secrets, which their policy does not name any more."""
    with as_secrets() as world:
        for name in NAMES:
            put(world.cloud, FIRST, name)
        world.begin()
        assert world.robot.objects()["a"]["data"] == {"password": FIRST}
        with world.down():
            world.robot.set_status("a", {"echo": SECOND})
            world.robot.annotate("a", {"note": LOCAL})
            apply_policy(world.robot, filter=EDGE)
        world.pass_time(60)
        yield world


@contextmanager
def config_maps() -> Iterator[World]:
    """ConfigMaps on the robot were made of Secrets, which their entry does not name any more."""
    with logging_everything(), scene(goals={"source": "cloud"}) as world:
        serve_policies(world.robot)
        apply_policy(world.robot, related=[entry(projection=AS_SECRETS)])
        for name in NAMES:
            put(world.cloud, FIRST, name)
        world.cloud.create("g", spec={"maps": NAMES})
        world.begin()
        assert maps(world.robot)["a"]["data"] == {"password": FIRST}
        with world.down():
            annotate_map(world.robot, "a", {"note": LOCAL})
            apply_policy(world.robot, related=[entry()])
        world.pass_time(60)
        yield world


Left = Callable[[], AbstractContextManager[World]]
LEFT = pytest.mark.parametrize(("left", "resource"), [(goals, GOALS), (config_maps, "configmaps")])


def copies(world: World, resource: str) -> set[str]:
    """The names of the copies on the robot."""
    return set(world.robot.objects() if resource == GOALS else maps(world.robot))


def values_told(world: World, resource: str) -> list[str]:
    """The values that the agent says, or has written down."""
    text = told(world, resource) + json.dumps(diff(world, resource))
    return [value for value in (FIRST, SECOND, LOCAL) if value in text]


@LEFT
def test_C5_6_C1_7_no_value_is_told_of_copies_that_are_held_after_their_kind_is_no_secret_any_more(
    left: Left, resource: str
) -> None:
    with left() as world:
        assert (holds(world), len(copies(world, resource))) == (["SelectionChanged"], len(NAMES))
        assert values_told(world, resource) == []
        restart(world, kill=True, seconds=60)
        assert (holds(world), values_told(world, resource)) == (["SelectionChanged"], [])
        release(world)
        world.pass_time(60)
        assert (holds(world), copies(world, resource), values_told(world, resource)) == ([], set(), [])


@LEFT
@pytest.mark.parametrize("how", ["all", "broken"])
def test_C5_6_C1_7_nor_where_somebody_has_removed_what_says_that_they_are_of_secrets(
    left: Left, resource: str, how: str
) -> None:
    with left() as world:
        robot: Plane = world.robot
        if resource != GOALS:
            strip_map(robot, "a") if how == "all" else annotate_map(robot, "a", {APPLIED: "x"})
        elif how == "all":
            robot.annotate("a", dict.fromkeys(robot.objects()["a"]["metadata"]["annotations"]))
        else:
            robot.annotate("a", {APPLIED: "x"})
        world.pass_time(10)
        restart(world, kill=True, seconds=60)
        text = told(world, resource)
        assert [value for value in (FIRST, SECOND, LOCAL) if value in text] == []
        assert "a" in copies(world, resource)


def test_C5_6_C1_7_no_value_is_told_of_secrets_that_are_left_where_copies_were_before() -> None:
    with as_secrets(source="robot") as world:
        for name in NAMES:
            world.robot.create(name, labels=LABELS, data={"password": FIRST})
        world.begin()
        assert set(passwords(world.cloud).values()) == {FIRST}
        with world.down():
            put_map(world.cloud, "a", labels=None, kind="secrets", password=LOCAL)
            apply_policy(world.robot, filter=EDGE)
        world.pass_time(60)
        assert (holds(world), passwords(world.cloud)["a"]) == (["SelectionChanged"], LOCAL)
        assert LOCAL not in told(world, GOALS)
        release(world)
        world.pass_time(60)
        assert (holds(world), passwords(world.cloud), LOCAL in told(world, GOALS)) == ([], {}, False)


def test_C5_6_C1_7_what_takes_the_place_of_a_secrets_copy_is_told_and_is_no_secret() -> None:
    with goals() as world:
        world.cloud.create("a", labels=LABELS, spec={"x": SECOND})
        release(world)
        world.pass_time(60)
        world.report("a", {"phase": "done"})
        assert (copies(world, GOALS), holds(world)) == ({"a"}, [])
        assert world.cloud.objects()["a"]["status"] == {"phase": "done"}
        assert values_told(world, GOALS) == [SECOND]
