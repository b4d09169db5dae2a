"""The event loop of a leader has its turns, however many robots a placement has: else the Lease is lost (F1.2)."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from crsyncer.fleet.controllers import placement_steps
from crsyncer.fleet.controllers.inputs import Inputs
from crsyncer.fleet.controllers.tallies import Tallies
from crsyncer.fleet.domain.index import Index
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.returned import evaluations
from crsyncer.fleet.domain.rollout import placement_progress
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.sharing import NEW, returned, shared

ROBOTS, PART = 40, 10


class Turns:
    """How much of a kind of work was done at most in one turn of the event loop, and how much in all."""

    def __init__(self, world: FleetWorld, patch: pytest.MonkeyPatch) -> None:
        self.most, self.all = Counter[str](), Counter[str]()
        self._turn, self._now = 0, Counter[tuple[int, str]]()
        self._patch = patch
        loop: Any = world.clock.loop
        once = loop._run_once

        def turn() -> None:
            self._turn += 1
            once()

        patch.setattr(loop, "_run_once", turn)

    def count(self, place: Any, name: str, amount: Callable[..., int] = lambda *_, **__: 1) -> None:
        """Count the calls of a function, or what `amount` makes of each."""
        real = getattr(place, name)

        def counted(*args: Any, **keywords: Any) -> Any:
            done = amount(*args, **keywords)
            self.all[name] += done
            self._now[self._turn, name] += done
            self.most[name] = max(self.most[name], self._now[self._turn, name])
            return real(*args, **keywords)

        self._patch.setattr(place, name, counted)


@pytest.mark.parametrize("rollout", [None, {"maxConcurrency": "100%"}])
def test_F1_2_a_turn_of_the_event_loop_works_on_a_part_of_a_placements_robots(
    rollout: dict[str, Any] | None,
) -> None:
    with fleet(robots=ROBOTS, start=False) as world, pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement_steps, "PART", PART)
        turns = Turns(world, patch)
        turns.count(Tallies, "tally")
        turns.count(placement_progress, "looked_at")
        turns.count(placement_progress, "begin")
        world.edit(readyWhen="true", rollout=rollout)
        world.start()
        world.agree()
        world.cloud.set("dock", spec={"x": 2})
        world.agree()
        assert set(map(str, world.specs().values())) == {"{'x': 2}"}
        assert turns.most == dict.fromkeys(turns.all, PART)
        wanted = {"tally": 2, "looked_at": 2, **({"begin": 2} if rollout else {})}
        assert {name: turns.all[name] >= times * ROBOTS for name, times in wanted.items()} == dict.fromkeys(
            wanted, True
        )


def test_F1_2_at_a_start_each_source_has_a_turn_and_each_replica_is_judged_once() -> None:
    sources, robots = 5, 8
    with fleet(robots=robots) as world, pytest.MonkeyPatch.context() as patch:
        for number in range(1, sources):
            world.source(f"s{number}")
        world.agree()
        world.kill()
        turns = Turns(world, patch)
        turns.count(Index, "put_source")
        turns.count(Losses, "_is_lost")
        sources_at_once = 0
        informer = Inputs._informer

        def listing(inputs: Inputs, name: str, *args: Any, **keywords: Any) -> Any:
            nonlocal sources_at_once
            if name.startswith("goals"):
                sources_at_once = turns.most["put_source"]
            return informer(inputs, name, *args, **keywords)

        patch.setattr(Inputs, "_informer", listing)
        world.start()
        world.agree()
        assert sources_at_once == 1
        assert turns.all["_is_lost"] == sources * robots


def test_F1_2_F10_3_an_edit_of_a_source_looks_at_what_its_robots_return_some_at_a_time() -> None:
    with shared(readyWhen="returned.status.phase == 'Ready'") as fleet, pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluations, "LOOKS", PART, raising=False)
        robots = [f"n{number}" for number in range(ROBOTS)]
        for robot in robots:
            fleet.enrol(robot, "b")
        fleet.agree()
        for robot in robots:
            returned(fleet, robot, {"phase": "Ready"}, at=fleet["b"].cloud)
        fleet.agree()
        assert fleet.world.status()["counts"]["ready"] == ROBOTS
        turns = Turns(fleet.world, patch)
        turns.count(evaluations.Evaluations, "_select", lambda *_, again=False: again)
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree()
        assert turns.most["_select"] == PART
        assert turns.all["_select"] >= ROBOTS
        assert fleet.world.status()["counts"]["ready"] == ROBOTS
