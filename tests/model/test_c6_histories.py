"""Random histories of blocking deletion: no copy without the finalizer, and no object stays or goes for no reason."""

from random import Random

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Json
from tests.model.blocking import LOCAL, MINE, block, blocking, finalizer_rows, finalizers
from tests.model.judge import stamp
from tests.model.plane import Plane
from tests.model.policies import delete_policy, policies
from tests.model.scene import roles
from tests.model.world import World, Write

NAMES = "abc"
FOREIGN = "example.com/owner"


class History:
    """What users, controllers, operators and the weather do; `strict`: the policy is always the same."""

    def __init__(self, world: World, source: str, seed: int, *, strict: bool) -> None:
        self.chance = Random(seed)
        self.world = world
        self.up, self.down = roles(world, source)
        self.strict = strict
        self.mode = "blocking"
        self.number = 0
        self.wrong: list[str] = []
        world.witnesses.append(self._witness)

    def act(self) -> None:
        """Something happens."""
        self.number += 1
        acts = [self._object, self._object, self._label, self._keep_copy, self._keep_copy, self._keep, self._status]
        name = self.chance.choice(NAMES)
        self.chance.choice([*acts, self._away, *([] if self.strict else [self._policy])])(name)
        self.world.pass_time(self.chance.choice([0.0, 0.05, 0.5, 5.0]))

    def end(self) -> None:
        """Everybody else lets go of everything."""
        for plane in (self.up, self.down):
            for name in [*plane.objects()]:
                self._release(plane, name)
        self.world.pass_time(60)
        self.world.settle()
        for name in [*self.down.objects()]:
            self._release(self.down, name)
        self.world.settle()

    def agrees(self) -> None:
        """Living objects with the label have a copy, and the finalizer if deletion is blocking; others have none."""
        originals, copies = self.up.objects(), self.down.objects()
        mine = {name for name, each in originals.items() if labelled(each)}
        assert not [name for name, each in originals.items() if "deletionTimestamp" in each["metadata"]]
        assert copies.keys() == mine
        for name in originals:
            assert finalizers(self.up, name) == ([MINE] if name in mine and self.mode == "blocking" else [])
        assert finalizer_rows(self.world) == []
        assert self.wrong == []

    def _witness(self, write: Write) -> None:
        if self.strict and write.side is self.down.side and write.verb == "create" and write.after is not None:
            original = self.up.objects().get(write.name)
            ours = original is not None and original["metadata"]["uid"] == stamp(write.after) and labelled(original)
            if ours and MINE not in finalizers(self.up, write.name):
                self.wrong.append(f"{write}: a copy without the finalizer")
        if self.strict and write.side is self.up.side and write.verb == "patch" and write.before is not None:
            had, has = (MINE in names_of(each) for each in (write.before, write.after))
            if not had or has or not labelled(write.before):
                return
            if "deletionTimestamp" not in write.before["metadata"]:
                self.wrong.append(f"{write}: the finalizer of a living object was removed")
            copy = self.down.objects().get(write.name)
            if copy is not None and stamp(copy) == write.before["metadata"]["uid"]:
                self.wrong.append(f"{write}: there still is a copy")

    def _object(self, name: str) -> None:
        found = self.up.objects().get(name)
        if found is None:
            self.up.create(name, spec={"x": self.number}, labels={ROBOT_LABEL: "robot-1"})
        elif self.chance.random() < 0.4:
            self.up.delete(name)
        else:
            self.up.set(name, spec={"x": self.number})

    def _label(self, name: str) -> None:
        if name in self.up.objects() and self.chance.random() < 0.5:
            self.up.label(name, robot=self.chance.choice(["robot-1", "robot-2"]))

    def _keep_copy(self, name: str) -> None:
        found = self.down.objects().get(name)
        if found is None:
            return
        if found["metadata"].get("finalizers"):
            self.down.finalize(name)
        elif "deletionTimestamp" not in found["metadata"]:
            self.down.finalize(name, LOCAL)

    def _keep(self, name: str) -> None:
        found = self.up.objects().get(name)
        if found is None:
            return
        others = [each for each in found["metadata"].get("finalizers") or [] if each != FOREIGN]
        if len(others) < len(found["metadata"].get("finalizers") or []):
            self.up.finalize(name, *others)
        elif "deletionTimestamp" not in found["metadata"]:
            self.up.finalize(name, *self.chance.choice([[FOREIGN, *others], [*others, FOREIGN]]))

    def _release(self, plane: Plane, name: str) -> None:
        others = [each for each in finalizers(plane, name) if each not in (LOCAL, FOREIGN)]
        if others != finalizers(plane, name):
            plane.finalize(name, *others)

    def _status(self, name: str) -> None:
        found = self.down.objects().get(name)
        if found is not None and stamp(found):
            self.down.set_status(name, {"n": self.number, "of": stamp(found)})

    def _policy(self, _: str) -> None:
        self.mode = self.chance.choice(["blocking", "blocking", "async", "none"])
        if self.mode == "none" and policies(self.world.robot):
            delete_policy(self.world.robot)
        elif self.mode != "none":
            block(self.world, mode=self.mode, grace="720h")

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


def names_of(obj: Json | None) -> list[str]:
    """The finalizers of an object; none, where it is gone."""
    return list((obj or {"metadata": {}})["metadata"].get("finalizers") or [])


def labelled(original: Json) -> bool:
    """Whether an object is this robot's."""
    return (original["metadata"].get("labels") or {}).get(ROBOT_LABEL) == "robot-1"


@pytest.mark.parametrize("strict", [True, False], ids=["one policy", "policies"])
@pytest.mark.parametrize("source", ["cloud", "robot"])
@pytest.mark.parametrize("seed", range(5))
def test_C6_3_whatever_happens_objects_wait_for_their_copies_and_not_for_ever(
    seed: int, source: str, strict: bool
) -> None:
    with blocking(source=source, seed=seed, grace="720h", filtered="true") as world:
        world.start()
        history = History(world, source, seed, strict=strict)
        for _ in range(50):
            history.act()
        history.end()
        history.agrees()
