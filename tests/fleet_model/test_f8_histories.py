"""Random histories of rollouts break no limit, and each ends well, also where steps are made in parts (F8)."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest

from crsyncer.fleet.controllers import placement_steps
from crsyncer.fleet.controllers.replica_queue import Replicas
from tests.fleet_model.rolling import rolling
from tests.fleet_model.rollout_machine import run


@contextmanager
def in_parts(most: int, seconds: Callable[[], float], act: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Steps are made so many robots at a time, with pauses of so many seconds, in which something happens."""

    async def pause() -> None:
        act()
        await asyncio.sleep(seconds())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement_steps, "PART", most)
        patch.setattr(placement_steps, "give_way", pause)
        yield


def once(act: Callable[[], None]) -> Callable[[], None]:
    """What happens at the first call alone."""
    acts = [act]
    return lambda: acts.pop()() if acts else None


@pytest.mark.parametrize("seed", range(8))
def test_F8_no_history_of_a_fleet_breaks_the_limits_and_each_one_ends_well(seed):
    run(seed)


@pytest.mark.parametrize("seed", range(20, 28))
def test_F8_no_history_of_a_fleet_whose_steps_take_long_breaks_the_limits(seed: int):
    chance = Random(f"in-parts-{seed}")
    with in_parts(chance.randint(1, 2), lambda: chance.uniform(0, 2.0)):
        run(seed)


def test_F8_2_a_step_is_begun_again_where_its_placement_was_edited_in_a_pause():
    with rolling(5) as fleet:
        limits = fleet.world.placement()["spec"]["rollout"]
        with in_parts(1, lambda: 1.0, once(lambda: fleet.world.edit("p", rollout={**limits, "paused": True}))):
            fleet.change(2)
            fleet.settle()
            assert fleet.with_content(2) == set()
            fleet.world.edit("p", rollout=limits)
            fleet.settle()
            assert set(fleet.states().values()) == {"Ready"}


def test_F8_1_no_robot_is_begun_while_it_is_looked_at_what_others_shall_have():
    with rolling(5) as fleet, pytest.MonkeyPatch.context() as patch:
        is_looking = False

        def look() -> None:
            nonlocal is_looking
            is_looking = True

        patch.setattr(Replicas, "is_idle", lambda _: not is_looking)
        with in_parts(1, lambda: 1.0, once(look)):
            fleet.change(2, seconds=30.0)
            assert fleet.with_content(2) == set()
            is_looking = False
            fleet.settle()
            assert fleet.with_content(2) == {f"o{number}" for number in range(1, 6)}


def test_F8_2_a_robot_that_has_failed_gets_new_content_only_once_it_is_begun_with_that():
    with rolling(6, maxFailures=1) as fleet:
        fleet.change("bad")
        fleet.settle()
        failed = [name for name, state in fleet.states().items() if state == "Failed"]
        assert failed

        def touch() -> None:
            for name in failed:
                phase = f"Bad at {fleet.world.clock.now}"
                fleet.world.cloud.set_status("dock", {"phase": phase}, namespace=f"robot-{name}")

        with in_parts(1, lambda: 1.0, touch):
            fleet.change(2, seconds=60.0)
        fleet.settle()
        assert fleet.with_content(2) == {f"o{number}" for number in range(1, 7)}
