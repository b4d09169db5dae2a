"""C6.5 on virtual time: what becomes of the dependents of a copy that is deleted."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import PROPAGATION, ROBOT_LABEL
from tests.model.scenes.policies import apply_policy, delete_policy, edit_policy
from tests.model.scenes.shapes import shaped
from tests.model.simulation.scene import SOURCES, roles, scene
from tests.model.simulation.world import World

BOTH = pytest.mark.parametrize("source", SOURCES)
FINALIZER = "example.com/wait"


def asked(world: World) -> list[str]:
    """The propagation of each deletion that was asked for."""
    return [each.call.body["propagationPolicy"] for each in world.journal.asked(verb="delete", kind="goals")]


def propagate(world: World, propagation: str) -> None:
    """Give goals a policy with this propagation."""
    apply_policy(world.robot, deletion={"propagation": propagation})


@BOTH
@pytest.mark.parametrize("propagation", ["background", "foreground", "orphan"])
def test_C6_5_the_policy_says_what_becomes_of_a_copys_dependents(source: str, propagation: str) -> None:
    with shaped(source=source) as world:
        _, down = roles(world, source)
        propagate(world, propagation)
        world.begin("a", source=source)
        world.remove("a", source=source)
        assert (down.objects(), asked(world)) == ({}, [propagation.capitalize()])


@pytest.mark.parametrize(
    "end",
    ["deleted", "terminating", "relabelled", "re-created", "while the agent was killed", "as another subtree is named"],
)
def test_C6_5_the_annotation_of_an_object_overrides_the_policy_however_it_leaves(end: str) -> None:
    with shaped(filtered="true") as world:
        propagate(world, "foreground")
        world.start()
        finalizers = [FINALIZER] if end == "terminating" else []
        world.add("a", labels={ROBOT_LABEL: "robot-1"}, finalizers=finalizers)
        world.cloud.annotate("a", {PROPAGATION: "orphan"})
        world.settle()
        if end == "while the agent was killed":
            world.crash()
        if end in ("re-created", "as another subtree is named"):
            world.cut("cloud", seconds=60)
        if end == "as another subtree is named":
            edit_policy(world, deletion={"propagation": "foreground"}, subtree="part", seconds=60)
        if end == "relabelled":
            world.cloud.label("a", robot="robot-2")
        else:
            world.cloud.delete("a")
        if end == "re-created":
            world.cloud.create("a", spec={"x": 2}, labels={ROBOT_LABEL: "robot-1"})
        world.mend("cloud")
        if end == "while the agent was killed":
            world.start()
        world.settle()
        assert asked(world) == ["Orphan"]
        made: dict[str, Any] = world.robot.objects()
        assert [found["spec"] for found in made.values()] == ([{"x": 2}] if end == "re-created" else [])


def test_C6_5_an_annotation_is_remembered_while_the_robot_is_away_and_the_agent_is_killed() -> None:
    with shaped() as world:
        world.begin("a", annotations={PROPAGATION: "orphan"})
        world.cut("robot", seconds=60)
        world.remove("a", seconds=60)
        world.crash()
        world.start()
        world.heal("robot")
        assert (world.robot.objects(), asked(world)) == ({}, ["Orphan"])


@pytest.mark.parametrize(
    ("text", "propagation"),
    [
        ("", "Foreground"),
        ("sometimes", "Foreground"),
        ("background foreground", "Foreground"),
        ("orphan", "Background"),
    ],
)
def test_C6_5_an_annotation_that_says_nothing_leaves_it_to_the_policy_and_without_one_none_counts(
    text: str, propagation: str
) -> None:
    with shaped() if propagation == "Foreground" else scene() as world:
        if propagation == "Foreground":
            propagate(world, "foreground")
        world.begin("a", annotations={PROPAGATION: text})
        world.remove("a")
        assert asked(world) == [propagation]


def test_C6_5_a_policy_that_comes_later_counts_for_the_objects_of_before() -> None:
    with shaped() as world:
        delete_policy(world.robot)
        world.start()
        for name in ("a", "b"):
            world.cloud.create(name, spec={"x": 1}, annotations={PROPAGATION: "orphan"} if name == "a" else {})
        world.settle()
        propagate(world, "foreground")
        world.settle()
        for name in ("a", "b"):
            world.remove(name)
        assert asked(world) == ["Orphan", "Foreground"]
