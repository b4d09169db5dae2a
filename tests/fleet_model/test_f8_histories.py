"""Random histories of rollouts break no limit, and each ends well (F8)."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from crsyncer.fleet.controllers import placement_steps
from crsyncer.fleet.controllers.replica_queue import Replicas
from tests.fleet_model.rolling import rolling
from tests.fleet_model.rollout_machine import run

Slow = Callable[[int, float], None]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """`slow(seed, seconds)`: steps are made one or two robots at a time, with pauses in which much happens."""

    def begin(seed: int, seconds: float) -> None:
        chance = Random(f"slow-{seed}")

        async def pause() -> None:
            await asyncio.sleep(chance.uniform(0, seconds))

        monkeypatch.setattr(placement_steps, "PART", chance.randint(1, 2))
        monkeypatch.setattr(placement_steps, "give_way", pause)

    return begin


@pytest.mark.parametrize("seed", range(8))
def test_F8_no_history_of_a_fleet_breaks_the_limits_and_each_one_ends_well(seed):
    run(seed)


@pytest.mark.parametrize("seed", range(20, 32))
def test_F8_no_history_of_a_fleet_whose_steps_take_long_breaks_the_limits(seed: int, slow: Slow):
    slow(seed, 2.0)
    run(seed)


def _paused(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Steps are made one robot at a time; in the first pause something happens, which a second is enough to show."""
    done = False

    async def pause() -> None:
        nonlocal done
        if not done:
            done = True
            act()
        await asyncio.sleep(1.0)

    monkeypatch.setattr(placement_steps, "PART", 1)
    monkeypatch.setattr(placement_steps, "give_way", pause)


def test_F8_2_a_step_is_begun_again_where_its_placement_was_edited_in_a_pause(monkeypatch: pytest.MonkeyPatch):
    with rolling(5) as fleet:
        limits = fleet.world.placement()["spec"]["rollout"]
        _paused(monkeypatch, lambda: fleet.world.edit("p", rollout={**limits, "paused": True}))
        fleet.change(2)
        fleet.settle()
        assert fleet.with_content(2) == set()
        fleet.world.edit("p", rollout=limits)
        fleet.settle()
        assert set(fleet.states().values()) == {"Ready"}


def test_F8_1_no_robot_is_begun_while_it_is_looked_at_what_others_shall_have(monkeypatch: pytest.MonkeyPatch):
    with rolling(5) as fleet:
        is_looking = False

        def look() -> None:
            nonlocal is_looking
            is_looking = True

        _paused(monkeypatch, look)
        monkeypatch.setattr(Replicas, "is_idle", lambda _: not is_looking)
        fleet.change(2, seconds=30.0)
        assert fleet.with_content(2) == set()
        is_looking = False
        fleet.settle()
        assert fleet.with_content(2) == {f"o{number}" for number in range(1, 6)}


def test_F8_2_a_robot_that_has_failed_gets_new_content_only_once_it_is_begun_with_that(
    monkeypatch: pytest.MonkeyPatch,
):
    with rolling(6, maxFailures=1) as fleet:
        fleet.change("bad")
        fleet.settle()
        failed = [name for name, state in fleet.states().items() if state == "Failed"]
        assert failed

        def touch() -> None:
            for name in failed:
                fleet.world.cloud.set_status("dock", {"phase": "Odd"}, namespace=f"robot-{name}")

        _paused(monkeypatch, touch)
        fleet.change(2)
        fleet.settle()
        assert fleet.with_content(2) == {f"o{number}" for number in range(1, 7)}
