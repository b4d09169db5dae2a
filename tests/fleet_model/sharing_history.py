"""Random histories of a fleet whose robots share sources on several shards: from one seed, a step at a time (F10.3).

As in `fleet_history`, each step can be taken in any state: a failing history shrinks by leaving steps out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from crsyncer.core.model import Json
from tests.fleet_model.returned_judge import READY_WHEN
from tests.model.histories.history import Step
from tests.model.simulation.plane import GROUP

SHARDS = ("b", "c")
ROBOTS = ("r0", "rb", "rc", "rd", "re")
SOURCES = ("dock", "lift", "hall")
PLACEMENTS = ("p", "q")
_PLACES = ("root", *SHARDS)
_SECONDS = (0.02, 0.1, 0.3, 1.0, 3.0, 6.0, 12.0, 35.0, 70.0)
_VERBS = ("", "create", "patch", "delete", "list", "watch", "get", "update")
_PARTS = ("", "/goals", "/robotplacements", "/robotplacementdecisions", "/robotobjectstatuses", "/robots", "/leases")
_Draw = Callable[[Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class SharingHistory:
    """What happens."""

    seed: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"sharing {self.seed}"


def shared_spec(chance: Random) -> Json:
    """A Shared placement that users write."""
    chosen: Json = {"selectors": [{}]}
    if chance.random() < 0.3:
        chosen = {"names": chance.sample(SOURCES, 2)}
    elif chance.random() < 0.3:
        chosen = {"selectors": [{"matchLabels": {"use": "yes"}}]}
    strategy = {"strategy": "CreateOnly"} if chance.random() < 0.1 else {}
    spec: Json = {"mode": "Shared", "resources": [{"group": GROUP, "resource": "goals", **chosen, **strategy}]}
    if chance.random() < 0.3:
        spec["robotNames"] = chance.sample(ROBOTS, 2)
    else:
        spec["robotSelectors"] = [{}]
    if chance.random() < 0.5:
        spec["readyWhen"] = READY_WHEN
    if chance.random() < 0.2:
        spec["statusReturn"] = "Singleton"
    if chance.random() < 0.15:
        spec["deletionPolicy"] = "KeepReplicas"
    return spec


def _robot(chance: Random) -> str:
    return chance.choice(ROBOTS)


def _source(chance: Random) -> str:
    return chance.choice(SOURCES)


def _placement(chance: Random) -> str:
    return chance.choice(PLACEMENTS)


def _shard(chance: Random) -> str:
    return chance.choice(SHARDS)


def _place(chance: Random) -> str:
    return chance.choice(_PLACES)


def _labels(chance: Random) -> Json:
    return {"use": "yes"} if chance.random() < 0.6 else {}


def _who(chance: Random) -> str:
    return chance.choice(["a", "a", "a", "b"])


def _link(chance: Random) -> str:
    return chance.choice(["a", "a@b", "a@b", "a@c", "b", "b@b"])


def _nothing(_: Random) -> tuple[Any, ...]:
    return ()


TABLE: Mapping[str, tuple[float, _Draw]] = {
    "enrol": (5, lambda c: (_robot(c), _place(c))),
    "lose_robot": (3, lambda c: (_robot(c),)),
    "move": (2, lambda c: (_robot(c), _place(c))),
    "add_source": (8, lambda c: (_source(c), c.randrange(4), _labels(c))),
    "edit_source": (8, lambda c: (_source(c), c.randrange(4), _labels(c))),
    "lose_source": (4, lambda c: (_source(c),)),
    "replace_source": (2, lambda c: (_source(c), c.randrange(4))),
    "own_source": (2, lambda c: (_source(c), c.choice([None, "r0"]))),
    "hold_source": (1, lambda c: (_source(c),)),
    "place": (8, lambda c: (_placement(c), shared_spec(c))),
    "edit": (6, lambda c: (_placement(c), shared_spec(c))),
    "unplace": (4, lambda c: (_placement(c),)),
    "replace_placement": (3, lambda c: (_placement(c), shared_spec(c))),
    "strip": (1, _nothing),
    "unstrip": (1, _nothing),
    "drift": (3, lambda c: (_shard(c), _source(c), c.randrange(9))),
    "unmark": (2, lambda c: (_place(c), _source(c))),
    "lose_copy": (3, lambda c: (_shard(c), _source(c))),
    "rival": (1, lambda c: (_shard(c), _source(c))),
    "return_status": (10, lambda c: (_robot(c), _source(c), c.choice(["Ready", "Ready", "Driving"]))),
    "lose_status": (2, lambda c: (_robot(c), _source(c))),
    "drive": (2, lambda c: (_shard(c), _source(c))),
    "delete_kind": (0.7, lambda c: (_place(c),)),
    "define_kind": (2, _nothing),
    "filter_kind": (0.7, lambda c: (_place(c),)),
    "share_kind": (2, _nothing),
    "back_up": (1.5, lambda c: (_place(c),)),
    "restore": (1, lambda c: (_place(c), c.choice([-1, -1, 3]))),
    "restart_server": (1, lambda c: (_place(c),)),
    "compact": (1, lambda c: (_place(c),)),
    "release": (2, _nothing),
    "wait": (40, lambda c: (c.choice(_SECONDS),)),
    "start": (6, lambda c: (_who(c),)),
    "kill": (4, lambda c: (_who(c),)),
    "kill_after": (6, lambda c: (_who(c), c.randrange(1, 80))),
    "terminate": (1.5, lambda c: (_who(c),)),
    "stand_still": (1, lambda c: (_who(c),)),
    "go_on": (2, lambda c: (_who(c),)),
    "cut": (3, lambda c: (_link(c),)),
    "silence": (1, lambda c: (_link(c),)),
    "mend": (6, lambda c: (_link(c),)),
    "delay": (2, lambda c: (_link(c), c.choice([0.0, 0.1, 0.5, 2.0]), c.choice([0.0, 0.1, 0.5]))),
    "lag": (2, lambda c: (_link(c), c.choice([0.0, 0.1, 2.0, 8.0]))),
    "repeat": (1, lambda c: (_link(c), c.randrange(1, 4))),
    "end_watches": (1, lambda c: (_link(c), c.randrange(1, 4))),
    "befall": (7, lambda c: (_link(c), c.choice(_VERBS), c.choice(_PARTS), c.randrange(60), c.randrange(1, 4))),
}


def sharing_history_of(seed: int) -> SharingHistory:
    """The history of a seed."""
    chance = Random(f"sharing-{seed}")
    # Each history has a mood: some things happen in it often, and others not at all.
    weights = {what: weight * chance.choice([0, 1, 1, 1, 3]) for what, (weight, _) in TABLE.items()}
    weights |= {what: TABLE[what][0] for what in ("wait", "start", "mend", "place", "add_source", "enrol")}
    names = chance.choices(list(weights), list(weights.values()), k=chance.randint(10, 60))
    begin = [
        Step("edit", ("p", shared_spec(chance))),
        Step("start", ("a",)),
        Step("wait", (chance.choice([0.5, 12.0]),)),
    ]
    return SharingHistory(seed, (*begin, *(Step(what, TABLE[what][1](chance)) for what in names)))
