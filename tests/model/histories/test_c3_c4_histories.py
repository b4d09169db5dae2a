"""Random histories under a policy that changes: at last both sides are as the last policy has it."""

from random import Random
from typing import Any

import pytest

from crsyncer.core.model import Json
from tests.model.scenes.shapes import reshape, shaped
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import restart, roles
from tests.model.simulation.world import World

NAMES = "abc"
_DOWN: dict[str, list[Json]] = {
    "none": [],
    "mode": [{"path": "/spec/mode", "set": {"value": "m"}}],
    "next": [{"path": "/spec/x", "cel": "value + 1"}, {"path": "/spec/mode", "remove": True}],
}
_UP: dict[str, list[Json]] = {"none": [], "word": [{"path": "/status/word", "template": "{name} {/status/n}"}]}


def desired(spec: Json, down: str) -> Json | None:
    """What the steps make of a spec; None: they fail on it."""
    if down == "next":
        return {"x": spec["x"] + 1} if isinstance(spec.get("x"), int) else None
    return spec | {"mode": "m"} if down == "mode" else spec


def shown(status: Json, name: str, up: str) -> Json:
    """What the steps make of a status."""
    return status | {"word": f"{name} {status['n']}"} if up == "word" else status


class History:
    """What users, controllers, operators and the weather do."""

    def __init__(self, world: World, source: str, seed: int) -> None:
        self.chance = Random(seed)
        self.world = world
        self.up, self.down = roles(world, source)
        self.policy = ("none", "none")
        self.number = 0

    def act(self) -> None:
        """Something happens."""
        self.number += 1
        name = self.chance.choice(NAMES)
        self.chance.choice([self._spec, self._spec, self._drift, self._status, self._policy, self._policy, self._away])(
            name
        )
        self.world.pass_time(self.chance.choice([0.0, 0.05, 0.5, 5.0]))

    def _spec(self, name: str) -> None:
        spec: Any = {"x": self.chance.choice([self.number, self.number, "text"])}
        if name not in self.up.objects():
            self.up.create(name, spec=spec)
        elif self.chance.random() < 0.2:
            self.up.delete(name)
        else:
            self.up.set(name, spec=spec)

    def _drift(self, name: str) -> None:
        if name in self.down.objects():
            self.down.set(name, spec={"x": -self.number, "drift": 1})

    def _status(self, name: str) -> None:
        if name in self.down.objects():
            self.down.set_status(name, {"n": self.number})

    def _policy(self, _: str) -> None:
        down, up = self.chance.choice([*_DOWN]), self.chance.choice([*_UP])
        self.policy = (down, up)
        reshape(self.world, down=_DOWN[down], up=_UP[up])

    def _away(self, _: str) -> None:
        what = self.chance.choice(["crash", "soon", "stop", "cloud", "robot"])
        if what in ("cloud", "robot"):
            self.world.cut(what)
            self.world.pass_time(self.chance.uniform(0, 20))
            self.world.mend(what)
        elif what == "soon":
            self.world.crash_after(self.chance.randint(1, 30))
            self.world.pass_time(2)
        if what in ("crash", "soon"):
            self.world.crash()
        elif what == "stop":
            self.world.stop()
        if self.world.life is None:
            self.world.start()

    def agrees(self) -> None:
        """Both sides are as the policy has it."""
        down, up = self.policy
        originals, copies = self.up.objects(), self.down.objects()
        held = {name for name, each in originals.items() if desired(each["spec"], down) is None}
        assert originals.keys() - held <= copies.keys() <= originals.keys()
        for name in copies.keys() - held:
            assert copies[name]["spec"] == desired(originals[name]["spec"], down)
        for name, each in copies.items():
            if "status" in each and uid_of(each) == originals[name]["metadata"]["uid"]:
                assert originals[name]["status"] == shown(each["status"], name, up)
        held_names = {name for hold in self.world.status()["holds"] for name in hold["names"]}
        assert held_names == {f"default/{name}" for name in held}


def uid_of(copy: Json) -> str:
    """Of which object a copy is."""
    return str(copy["metadata"]["annotations"]["crsyncer.cloudrobotics.com/upstream-uid"])


def unchanged(plane: Plane) -> dict[str, str]:
    """The versions of objects."""
    return {name: each["metadata"]["resourceVersion"] for name, each in plane.objects().items()}


@pytest.mark.parametrize("source", ["cloud", "robot"])
@pytest.mark.parametrize("seed", range(5))
def test_C4_1_C4_4_whatever_happens_both_sides_are_as_the_last_policy_has_it(seed: int, source: str) -> None:
    with shaped(source=source, seed=seed) as world:
        world.start()
        history = History(world, source, seed)
        for _ in range(40):
            history.act()
        world.settle()
        history.agrees()
        before = [unchanged(plane) for plane in world.planes.values()]
        world.pass_time(3600)
        restart(world)
        assert [unchanged(plane) for plane in world.planes.values()] == before
