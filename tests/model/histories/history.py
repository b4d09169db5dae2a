"""Random histories: what users, controllers, networks, disks and operators do to an agent, a step at a time.

A history is a list of steps that comes from its seed, not a Hypothesis state machine: every step can be taken in any
state (one that means nothing then does nothing), so a failing list shrinks by leaving steps out, it is told to others
as one number, and it costs a tenth, so that there can be thousands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from crsyncer.core.kinds.namespaces import Namespaces
from tests.model.simulation.life import ROBOT, AgentSettings

HOME = Namespaces(("robot-1-home",), ("default",))
NAMES = ("a", "b", "c")
KINDS: Mapping[str, Mapping[str, Any]] = {
    "goals": {},
    "tasks": {"filtered": "true"},
    "reports": {"source": "robot"},
    "views": {"source": "robot", "filtered": "true"},
    "parts": {"subtree": "robot"},
    "plains": {"status": False},
    "flips": {},
}
"""The kinds there may be, as the keywords of `bed.crd`."""

_Draw = Callable[[Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens."""

    what: str
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.what}({', '.join(map(repr, self.arguments))})"


@dataclass(frozen=True, slots=True)
class History:
    """Where it happens, and what."""

    seed: int
    kinds: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def settings(self) -> AgentSettings:
        """What the agent is told. In every fourth history the robot's namespace has another name in the cloud."""
        return AgentSettings(namespaces=HOME) if self.seed % 4 == 0 else AgentSettings()

    def __str__(self) -> str:
        return f"kinds: {', '.join(self.kinds)}; {self.settings.namespaces}"


def _name(chance: Random) -> str:
    return chance.choice(NAMES)


def _side(chance: Random) -> str:
    return chance.choice(["cloud", "cloud", "robot"])


def _nothing(_: Random) -> tuple[Any, ...]:
    return ()


def _verb(chance: Random) -> str:
    return chance.choice(["", "create", "update", "delete", "patch", "list", "watch", "get"])


_OF_OBJECTS: Mapping[str, tuple[float, _Draw]] = {
    "create": (12, lambda c: (_name(c), c.randrange(9), c.randrange(60))),
    "change": (7, lambda c: (_name(c), c.randrange(9))),
    "remove": (7, lambda c: (_name(c),)),
    "replace": (4, lambda c: (_name(c), c.randrange(9))),
    "relabel": (2, lambda c: (_name(c), c.choice(["", "robot-2", ROBOT, ROBOT]))),
    "keep": (2, lambda c: (_name(c), c.choice(["upstream", "downstream"]), c.randrange(2))),
    "rival": (2, lambda c: (_name(c),)),
    "report": (14, lambda c: (_name(c),)),
    "blank": (3, lambda c: (_name(c), c.randrange(2))),
    "drift": (3, lambda c: (_name(c), c.randrange(9))),
    "lose_copy": (4, lambda c: (_name(c),)),
    "by_hand": (2, lambda c: (_name(c), c.randrange(2))),
    "delete_kind": (1.5, lambda c: (_side(c), c.randrange(2))),
    "define_kind": (2, lambda c: (_side(c),)),
    "hold": (0.7, _nothing),
    "resync": (1, _nothing),
    "retry": (1, _nothing),
    "drop": (1, lambda c: (_name(c),)),
    "annotate": (3, lambda c: (c.choice([0, 0, 0, 1, 1, 2, 3]),)),
    "filter": (2, lambda c: (c.randrange(2),)),
    "describe": (1, lambda c: (_side(c), c.randrange(100))),
    "version": (1, lambda c: (_side(c), c.choice([0, 1, 1, 2]))),
    "crowd": (2, lambda c: (c.choice([6, 12, 24]),)),
    "clear_out": (3, lambda c: (c.randrange(20), c.choice([0, 1, 2, 6, 6]))),
}
"""Steps that are about one kind: how often they come, and their further arguments."""

_TOGETHER = (
    ("create", "report", "wait", "back_up_store", "replace", "wait", "put_back_store"),
    ("create", "wait", "delete_kind", "wait", "define_kind", "crash_after", "wait", "crash", "wait"),
    ("crowd", "wait", "clear_out", "wait", "hold", "wait"),
    ("create", "wait", "cut", "report", "wait", "lose_copy", "filter", "wait", "mend"),
    ("crowd", "wait", "deny", "clear_out", "wait"),
)
"""Steps that mean more one after the other, of one kind and one object, than by chance among others."""

OTHERS: Mapping[str, tuple[float, _Draw]] = {
    "wait": (30, lambda c: (c.choice([0.005, 0.02, 0.02, 0.05, 0.1, 0.3, 1.0, 5.0, 20.0, 100.0]),)),
    "crash": (3, _nothing),
    "crash_after": (4, lambda c: (c.randrange(1, 60),)),
    "stop": (1, _nothing),
    "kill": (1, _nothing),
    "start": (5, _nothing),
    "lose_database": (1, _nothing),
    "slow_disk": (2, lambda c: (c.choice([0.02, 1.0, 10.0]),)),
    "cut": (3, lambda c: (_side(c),)),
    "silence": (1, lambda c: (_side(c),)),
    "mend": (5, lambda c: (_side(c),)),
    "delay": (4, lambda c: (_side(c), c.choice([0.0, 0.1, 0.5, 2.0]), c.choice([0.0, 0.1, 0.5, 2.0]))),
    "close_slowly": (1, lambda c: (_side(c), c.choice([0.0, 0.5, 5.0]))),
    "lag": (2, lambda c: (_side(c), c.choice([0.0, 0.1, 2.0, 20.0]))),
    "repeat": (1, lambda c: (_side(c), c.randrange(1, 4))),
    "end_watches": (1, lambda c: (_side(c), c.randrange(1, 4))),
    "befall": (7, lambda c: (_side(c), _verb(c), c.randrange(60), c.randrange(1, 4))),
    "deny": (1, lambda c: (_side(c), c.choice(["", "", "list", _verb(c)]), c.randrange(2), c.randrange(1, 9))),
    "hide_kinds": (2, lambda c: (_side(c), c.randrange(20), c.choice([1.0, 10.0, 60.0]))),
    "restart": (2, lambda c: (_side(c),)),
    "compact": (2, lambda c: (_side(c), c.randrange(2))),
    "others_write": (2, lambda c: (_side(c), c.randrange(1, 50))),
    "snapshot": (3, lambda c: (_side(c),)),
    "restore": (1.5, lambda c: (_side(c),)),
    "rebuild": (0.3, lambda c: (_side(c), c.choice([10, 100_000]))),
    "release": (1, _nothing),
    "back_up_store": (2, _nothing),
    "put_back_store": (2, _nothing),
    "refuse_disk": (2, lambda c: (c.choice([0, 1]),)),
    "refuse_for_good": (1, lambda c: (_side(c), c.randrange(3))),
}


def history_of(seed: int) -> History:
    """The history of a seed."""
    chance = Random(f"history-{seed}")
    kinds = tuple(chance.sample(sorted(KINDS), chance.choice([1, 1, 2])))
    table = {**_OF_OBJECTS, **OTHERS}
    # Each history has a mood: some things happen in it often, and others not at all.
    weights = {what: weight * chance.choice([0, 1, 1, 1, 3]) for what, (weight, _) in table.items()}
    for what in ("create", "wait", "start", "mend"):
        weights[what] = table[what][0]
    names = chance.choices(list(weights), list(weights.values()), k=chance.randint(5, 40))
    steps = [_step(what, chance.choice(kinds), chance) for what in names]
    if chance.random() < 0.3:
        start, name, together = chance.randint(0, len(steps)), _name(chance), chance.choice(_TOGETHER)
        kind = "flips" if "filter" in together else chance.choice(kinds)
        kinds = kinds if kind in kinds else (*kinds, kind)
        steps[start:start] = [_about(name, _step(what, kind, chance)) for what in together]
    return History(seed, kinds, tuple(steps))


def _step(what: str, kind: str, chance: Random) -> Step:
    if what in _OF_OBJECTS:
        return Step(what, (kind, *_OF_OBJECTS[what][1](chance)))
    return Step(what, OTHERS[what][1](chance))


def _about(name: str, step: Step) -> Step:
    """The same step, about the object of this name where it is about one."""
    return replace(step, arguments=tuple(name if argument in NAMES else argument for argument in step.arguments))
