"""What somebody has stopped stays stopped: holds and annotations count until the very moment of a write (S5, S1.8)."""

import asyncio

import pytest

from crsyncer.core.model import Key, Side
from crsyncer.core.watching.queue import Priority
from crsyncer.runtime.dispatcher import Job
from crsyncer.runtime.waits import Waits
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import define, scene
from tests.model.simulation.world import World
from tests.system.bed import crd

NAMES = [f"n{number}" for number in range(24)]
_UNDER_WAY_SECONDS = 0.1
"""What was sent before is carried out by then."""


def many(world: World) -> None:
    world.begin(*NAMES)


@pytest.mark.parametrize("seconds", [0.02, 3.0])
@pytest.mark.parametrize("after", [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_S5_5_after_a_hold_was_answered_no_copy_of_the_kind_is_deleted(after: float, seconds: float) -> None:
    with scene() as world:
        many(world)
        world.disk.commit_seconds = seconds
        for name in NAMES[:16]:
            world.cloud.delete(name)
        world.pass_time(after)
        world.order("hold", resource="goals")
        left = set(world.robot.objects())
        world.pass_time(600)
        assert set(world.robot.objects()) == left


@pytest.mark.parametrize("seconds", [0.02, 3.0])
@pytest.mark.parametrize("after", [0.02, 0.1, 0.3, 1.0, 2.0, 3.0])
def test_S1_8_after_the_annotation_was_removed_nothing_is_written(seconds: float, after: float) -> None:
    with scene() as world:
        many(world)
        world.disk.commit_seconds = seconds
        for name in NAMES[:4]:
            world.cloud.delete(name)
        world.robot.set_status(NAMES[4], {"phase": "DONE"})
        world.robot.delete(NAMES[4])
        world.edit(NAMES[5], spec={"x": 2}, seconds=after)
        world.robot.apply(crd(GROUP, source=None))
        while world.life is not None and world.life.engine.kinds.entries:
            world.pass_time(0.001)
        told = world.clock.now
        world.pass_time(60)
        assert [str(write) for write in world.writes if write.time > told + _UNDER_WAY_SECONDS] == []


def test_S1_8_a_kind_that_has_stopped_writes_nothing_although_its_tasks_have_not_ended_yet() -> None:
    with scene() as world:
        many(world)
        assert world.life is not None
        kind = world.life.engine.kinds.entries[f"goals.{GROUP}"].kind
        assert kind is not None
        kind.reconciler.stopped = True
        before = world.robot.objects()
        world.cloud.delete(NAMES[0])
        world.cloud.set(NAMES[1], spec={"x": 2})
        world.add("new", seconds=60)
        assert world.robot.objects() == before


def test_S1_8_a_kind_that_is_annotated_again_carries_out_what_was_stopped() -> None:
    with scene() as world:
        many(world)
        world.disk.commit_seconds = 3.0
        for name in NAMES[:4]:
            world.cloud.delete(name)
        world.pass_time(0.1)
        define(world, "robot", source=None, seconds=10)
        define(world, "robot")
        assert set(world.robot.objects()) == set(NAMES[4:])


@pytest.mark.parametrize("what", ["job", "probe"])
def test_an_engine_that_is_ended_the_moment_a_wait_of_it_is_over_ends(world: World, what: str) -> None:
    life = world.life
    assert life is not None

    job = Job("goals", "content", Key("default", "a"))

    async def end() -> None:
        for side in Side:  # a worker that waits for nothing but news has no time limit
            life.engine.dispatchers[side].later(job, 60)
        await asyncio.sleep(1)
        for side in Side:
            if what == "job":
                life.engine.dispatchers[side].add(job, Priority.SPEC)
            else:
                life.engine.connections[side].probe_soon("the server may be gone")
        life.task.cancel()
        await asyncio.wait([life.task], timeout=60)

    world.clock.run(end())
    assert life.task.done()
    world.crash()


def test_a_wait_that_is_cancelled_the_moment_it_is_over_is_cancelled(world: World) -> None:
    waits = Waits()
    sleep = world.clock.loop.create_task(waits.sleep(60))
    world.pass_time(1)
    waits.end()
    sleep.cancel()
    world.clock.run(asyncio.wait([sleep]))
    assert sleep.cancelled()
