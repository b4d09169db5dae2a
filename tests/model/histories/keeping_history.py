"""Random histories of what keeps copies: holds, restores, CRDs made anew, edits of a policy, on a kind that refers.

As in `history`, every step can be taken in any state, so that a failing list shrinks by leaving steps out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.model.histories.history import OTHERS, Step
from tests.model.simulation.life import AgentSettings

_Draw = Callable[[Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the policy of goals says in the beginning."""

    source: str
    origin: str
    """The side of the ConfigMaps that goals refer to; empty: they refer to none."""
    objects: int
    """How many goals there are in the beginning."""
    cleanup: str = "delete"


@dataclass(frozen=True, slots=True)
class KeepingHistory:
    """Under which policy it happens, and what."""

    seed: int
    setup: Keeping
    steps: tuple[Step, ...]

    @property
    def settings(self) -> AgentSettings:
        """What the agent is told."""
        return AgentSettings()

    def __str__(self) -> str:
        return str(self.setup)


def _nothing(_: Random) -> tuple[Any, ...]:
    return ()


def _number(chance: Random) -> int:
    return chance.randrange(12)


def _gap(chance: Random) -> str:
    return chance.choice(["seen", "cut", "stopped"])


_STEPS: Mapping[str, tuple[float, _Draw]] = {
    "create": (6, lambda c: (_number(c), c.randrange(9))),
    "change": (3, lambda c: (_number(c), c.randrange(9))),
    "relabel": (3, lambda c: (_number(c), c.randrange(3))),
    "remove": (4, lambda c: (_number(c),)),
    "replace": (3, lambda c: (_number(c), c.randrange(9))),
    "clear_out": (3, lambda c: (c.choice([2, 5, 12]),)),
    "report": (4, lambda c: (_number(c),)),
    "refer": (3, lambda c: (_number(c), _number(c))),
    "put": (3, lambda c: (_number(c), c.randrange(9))),
    "unput": (1, lambda c: (_number(c),)),
    "keep_copy": (2, lambda c: (_number(c), c.randrange(2))),
    "drift": (2, lambda c: (_number(c), c.randrange(9))),
    "hold": (4, _nothing),
    "release": (2, _nothing),
    "snapshot": (4, lambda c: (c.choice(["cloud", "robot"]),)),
    "restore": (4, lambda c: (c.choice(["cloud", "robot"]), _gap(c))),
    "make_anew": (4, lambda c: (c.choice(["cloud", "robot"]), _gap(c), c.choice([0, 0, 3, 12]))),
    "delete_kind": (2, lambda c: (c.choice(["cloud", "cloud", "robot"]),)),
    "define_kind": (3, lambda c: (c.choice(["cloud", "robot"]),)),
    "select": (4, lambda c: (c.randrange(2), c.randrange(3) == 0)),
    "mutate": (3, lambda c: (c.randrange(3),)),
    "name": (2, lambda c: (c.randrange(3),)),
    "project": (2, lambda c: (c.randrange(2),)),
    "point": (4, lambda c: (c.choice([0, 0, 1]),)),
    "refuse_lists": (2, lambda c: (c.choice([5.0, 30.0, 120.0]),)),
}
"""Steps about what is kept: how often they come, and their arguments."""

_AROUND = ("wait", "crash", "crash_after", "stop", "kill", "start", "cut", "mend", "delay", "lag", "befall", "compact")
"""Steps of `history` that happen here, too."""

_TOGETHER: tuple[tuple[Step, ...], ...] = (
    (Step("hold"), Step("wait", (5.0,)), Step("clear_out", (12,)), Step("wait", (20.0,))),
    (Step("snapshot", ("cloud",)), Step("wait", (5.0,)), Step("create", (11, 1)), Step("create", (10, 1))),
    (Step("point", (1,)), Step("wait", (20.0,)), Step("point", (0,))),
    (Step("delete_kind", ("cloud",)), Step("wait", (20.0,)), Step("define_kind", ("cloud",))),
    (Step("mend", ("robot",)), Step("wait", (100.0,)), Step("make_anew", ("robot", "cut", 0)), Step("wait", (20.0,))),
    (Step("refuse_lists", (120.0,)), Step("clear_out", (12,)), Step("wait", (20.0,))),
)
"""Steps that mean more one after the other."""


def keeping_history_of(seed: int) -> KeepingHistory:
    """The history of a seed."""
    chance = Random(f"keeping-history-{seed}")
    setup = Keeping(
        source=chance.choice(["cloud", "cloud", "robot"]),
        origin=chance.choice(["cloud", "robot", ""]),
        objects=chance.choice([2, 8, 12]),
        cleanup=chance.choice(["delete", "delete", "delete", "keep"]),
    )
    table = {**_STEPS, **{what: OTHERS[what] for what in _AROUND}}
    weights = {what: weight * chance.choice([0, 1, 1, 3]) for what, (weight, _) in table.items()}
    for what in ("wait", "start", "mend"):
        weights[what] = table[what][0]
    names = chance.choices(list(weights), list(weights.values()), k=chance.randint(4, 25))
    steps = [Step(what, table[what][1](chance)) for what in names]
    if chance.random() < 0.5:
        start = chance.randint(0, len(steps))
        steps[start:start] = chance.choice(_TOGETHER)
    return KeepingHistory(seed, setup, tuple(steps))
