"""F9 in random histories: a beat only rises, and what is acknowledged is true."""

from collections.abc import Callable
from random import Random

import pytest

from crsyncer.core.content.replica_mark import read_replica_mark
from crsyncer.core.reports.robot_report import applied_digest
from tests.model.histories.environment import ANSWERS, Environment, calm_down, mishaps
from tests.model.scenes.reporting import PART, PLACEMENT, STATES, acked, fleet, place, rewrite
from tests.model.simulation.answers import NO_LISTS
from tests.model.simulation.life import ROBOT
from tests.model.simulation.world import World, Write

NAMES = ("dock", "gate", "lift")


class Controller:
    """Writes replicas by chance, as a fleet controller does, and judges each report that the agent writes."""

    def __init__(self, world: World, chance: Random) -> None:
        self.world = world
        self.chance = chance
        self.number = 0
        self.wrong: list[str] = []
        self._beat = 0
        world.witnesses.append(self._judge)

    def pairs(self) -> list[tuple[str, int]]:
        """The replicas that are there, by uid and number."""
        marks = {raw["metadata"]["uid"]: read_replica_mark(raw, ROBOT) for raw in self.world.cloud.objects().values()}
        return [(uid, mark.number) for uid, mark in marks.items() if mark is not None]

    def write(self) -> None:
        """A replica is made, rewritten (also with the content that it has) or deleted."""
        self.number += 1
        name = self.chance.choice(NAMES)
        found = self.world.cloud.get(f"{name}-{ROBOT}")
        if found is None:
            place(self.world, name, number=self.number)
        elif self.chance.random() < 0.2:
            self.world.cloud.delete(f"{name}-{ROBOT}")
        elif self.chance.random() < 0.4:
            rewrite(self.world, name, self.number)
        else:
            rewrite(self.world, name, self.number, spec={"x": self.chance.randint(0, 2)})

    def _judge(self, write: Write) -> None:
        if write.resource != STATES or write.status >= 300 or write.after is None:
            return
        spec = write.after["spec"]
        if spec["beat"] <= self._beat:
            self.wrong.append(f"the beat went from {self._beat} to {spec['beat']}")
        self._beat = spec["beat"]
        current = {name: raw["spec"] for name, raw in self.world.cloud.objects().items()}
        copies = {name: raw["spec"] for name, raw in self.world.robot.objects().items() if name in current}
        says_all = spec["applied"].get(PLACEMENT) == applied_digest(self.pairs())
        if says_all and not write.late and current != copies:
            self.wrong.append(f"acknowledged is {current}, the robot has {copies}")


def steps(world: World, controller: Controller, chance: Random) -> list[Callable[[], None]]:
    """What may happen next."""
    around = Environment(world, part=chance.choice([PART, "/goals"]))
    return [
        controller.write,
        controller.write,
        controller.write,
        lambda: around.wait(chance.choice([0.1, 1.0, 8.0, 15.0, 100.0])),
        lambda: around.wait(chance.choice([0.1, 1.0, 8.0, 15.0, 400.0])),
        *mishaps(world, around, chance, part=PART, answers=(*ANSWERS, *NO_LISTS)),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_F9_2_F9_5_whatever_happens_a_beat_rises_and_what_is_acknowledged_is_true(seed: int) -> None:
    chance = Random(seed)
    with fleet(by_chance=True) as world:
        controller = Controller(world, chance)
        world.start()
        for _ in range(60):
            chance.choice(steps(world, controller, chance))()
            world.pass_time(chance.uniform(0.0, 5.0))
        calm_down(world)
        place(world, "last", number=1000)
        world.pass_time(4500)
        assert controller.wrong == []
        assert acked(world, *controller.pairs())
