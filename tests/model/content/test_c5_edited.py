"""C5.4 on virtual time: entries that are edited, and edited back, around a crash and other edits."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crsyncer.core.model import Json
from tests.model.scenes.config_maps import data, put_map
from tests.model.scenes.policies import EDGE, apply_policy, edit_policy, serve_policies
from tests.model.scenes.projected import FLEET, PROJECTION
from tests.model.scenes.related import entry
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.scene import holds, refuse_lists, restart, scene
from tests.model.simulation.world import World
from tests.system.bed import crd

GOALS = [f"g{number}" for number in range(8)]
TYPO = {"reference": "/spec/mpas/*"}
OTHERS = {"reference": "/spec/others/*"}


@contextmanager
def goals(*names: str) -> Iterator[World]:
    """Eight goals, of which those of these names refer to a ConfigMap each, and a task."""
    with scene(goals={"source": "cloud"}, tasks={"source": "cloud"}) as world:
        serve_policies(world.robot)
        world.cloud.apply(crd(FLEET, plural="tasks", source=None))
        apply_policy(world.robot, "q", kind="tasks", related=[entry()])
        apply_policy(world.robot, related=[entry()])
        for name in ("t", *names):
            put_map(world.cloud, name, x=name)
        for name in GOALS:
            spec = {"maps": [name], "others": [name]} if name in names else {}
            world.cloud.create(name, spec=spec)
        world.begin("t", kind="tasks", spec={"maps": ["t"]})
        yield world


@pytest.mark.parametrize("more", [{"projection": PROJECTION}, {"filter": EDGE}], ids=["projection", "selector"])
@pytest.mark.parametrize("count", [1, 5])
def test_C5_4_a_typo_that_is_undone_after_a_crash_takes_nothing_from_copies_that_are_held(
    more: Json, count: int
) -> None:
    with goals(*GOALS[:count]) as world:
        before = data(world.robot)
        refused = world.inject("robot", INTERNAL_ERROR, verb="delete", part="/configmaps", times=math.inf)
        edit_policy(world, related=[entry(object=TYPO)], seconds=5)
        world.crash()
        read = [number for number, row in enumerate(world.disk.rows) if row[0] == "reference"]
        del world.disk.rows[read[-count] + 1 :]  # the crash came when the first of them had been read with the typo
        refused.times = 0
        undone: Json = {"related": [entry()], **more}
        apply_policy(world.robot, **undone)
        world.begin(seconds=120)
        assert ("SelectionChanged", len(GOALS)) in holds(world)
        assert (set(world.robot.objects()), data(world.robot)) == (set(GOALS), before)
        edit_policy(world, related=[entry()], seconds=120)
        assert ([write for write in world.writes if write.verb == "delete"], holds(world)) == ([], [])
        for name in GOALS:
            world.cloud.delete(name)
        world.pass_time(90)
        assert (world.robot.objects(), set(data(world.robot)), holds(world)) == ({}, {"t"}, [])


def test_C5_4_C6_3_what_an_edited_entry_leaves_unknown_keeps_related_copies_and_delays_no_deletion() -> None:
    with goals(*GOALS) as world:
        edit_policy(world, related=[entry(object=OTHERS)], filter=EDGE, seconds=60)
        assert holds(world) == [("SelectionChanged", len(GOALS))]
        world.remove("t", kind="tasks", seconds=10)
        assert (world.robot.objects("tasks"), set(data(world.robot))) == ({}, {*GOALS, "t"})
        edit_policy(world, related=[entry(object=OTHERS)])
        assert (set(data(world.robot)), holds(world)) == (set(GOALS), [])


def test_C5_4_no_edit_of_an_entry_leaves_unknown_what_is_needed_by_copies_of_primaries_that_are_gone() -> None:
    with goals(*GOALS) as world:
        refuse_lists(world)
        for name in GOALS:
            world.cloud.delete(name)
        world.pass_time(60)
        edit_policy(world, related=[entry(object=OTHERS)], seconds=60)
        assert holds(world) == [("MassDeletion", len(GOALS))]
        restart(world, kill=True, seconds=60)
        world.remove("t", kind="tasks", seconds=10)
        assert (set(world.robot.objects()), set(data(world.robot))) == (set(GOALS), set(GOALS))
