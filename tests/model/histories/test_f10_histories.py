"""F10.3 in random histories: whatever happens, a status ends where its object's mark says, and nowhere else."""

from collections.abc import Callable
from random import Random

import pytest

from crsyncer.core.content.annotations import SHARED
from tests.model.histories.environment import ANSWERS, Environment, calm_down, mishaps
from tests.model.scenes.shared import PART, crd_of_statuses, mark, own_name, own_statuses, returned
from tests.model.simulation.check import Checker, specs
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.world import World

NAMES = ("dock", "gate", "lift")


class People:
    """Change objects, their marks and their statuses by chance."""

    def __init__(self, world: World, chance: Random) -> None:
        self.world = world
        self.chance = chance
        self.number = 0

    def edit(self) -> None:
        """An object is made, changed or deleted."""
        self.number += 1
        name = self.chance.choice(NAMES)
        if self.world.cloud.get(name) is None:
            self.world.cloud.create(name, spec={"x": self.number})
            mark(self.world, name, marked=self.chance.random() < 0.7)
        elif self.chance.random() < 0.3:
            self.world.cloud.delete(name)
        else:
            self.world.cloud.set(name, spec={"x": self.number})

    def mark(self) -> None:
        """A placement begins or ends to govern an object."""
        name = self.chance.choice(NAMES)
        if self.world.cloud.get(name) is not None:
            mark(self.world, name, marked=self.chance.random() < 0.5)

    def report(self) -> None:
        """A controller on the robot writes a status."""
        name = self.chance.choice(NAMES)
        copy = self.world.robot.get(name)
        if copy is not None:
            self.number += 1
            uid = copy["metadata"]["annotations"]["crsyncer.cloudrobotics.com/upstream-uid"]
            self.world.robot.set_status(name, {"n": self.number, "of": uid})

    def drop_copy(self) -> None:
        """Somebody deletes a copy."""
        name = self.chance.choice(NAMES)
        if self.world.robot.get(name) is not None:
            self.world.robot.delete(name)


def steps(world: World, people: People, chance: Random) -> list[Callable[[], None]]:
    """What may happen next."""
    around = Environment(world, part=chance.choice([PART, "/goals"]))
    return [
        people.edit,
        people.mark,
        people.mark,
        people.report,
        people.report,
        people.report,
        people.drop_copy,
        lambda: around.wait(chance.choice([0.1, 1.0, 8.0, 100.0])),
        *mishaps(world, around, chance, part=PART, answers=ANSWERS),
    ]


@pytest.mark.parametrize("seed", range(30))
def test_F10_3_whatever_happens_a_status_ends_where_the_mark_says(seed: int) -> None:
    chance = Random(seed)
    with World(kinds={"goals": {}}, by_chance=True, settings=AgentSettings(audit_interval=3600)) as world:
        checker = Checker(world, specs(world.kinds))
        world.cloud.apply(crd_of_statuses())
        people = People(world, chance)
        world.start()
        for _ in range(80):
            chance.choice(steps(world, people, chance))()
            world.pass_time(chance.uniform(0.0, 5.0))
        calm_down(world)
        world.pass_time(6000)
        wanted = set()
        for name, original in world.cloud.objects().items():
            status = world.robot.objects()[name].get("status")
            marked = SHARED in (original["metadata"].get("annotations") or {})
            if marked and status:
                wanted.add(own_name(name))
                assert returned(world, name) == status
            elif not marked:
                assert original.get("status") == status or not status
        assert set(own_statuses(world)) >= wanted
        there = {own_name(name) for name, raw in world.cloud.objects().items() if SHARED in str(raw["metadata"])}
        assert set(own_statuses(world)) <= there
        assert checker.violations == []
