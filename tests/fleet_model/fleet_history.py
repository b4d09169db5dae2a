"""Random histories of a fleet: what users, links and machines do to it, a step at a time, all from one seed.

As in `tests/model/histories`, each step can be taken in any state: a failing history shrinks by leaving steps out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from crsyncer.core.model import Json
from tests.fleet_model.cloud_steps import OWN
from tests.fleet_model.return_steps import PHASES
from tests.fleet_model.returned_judge import COLLECTORS, READY_WHEN
from tests.model.histories.history import Step
from tests.model.simulation.plane import GROUP

KINDS: Mapping[str, Mapping[str, Any]] = {"goals": {}, "maps": {"cluster": True}, "plans": {"status": False}}
ROBOTS = ("r1", "r2", "r3", "r4", "r5", "r6")
SOURCES = ("dock", "lift", "hall")
PLACEMENTS = ("p", "q")
_FIRST = (("goals", "dock"), ("goals", "lift"), ("maps", "dock"), ("plans", "hall"))
_SITES = ("north", "south")
_SECONDS = (0.02, 0.1, 0.3, 1.0, 3.0, 6.0, 12.0, 35.0, 70.0)
_Draw = Callable[[Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class FleetHistory:
    """What happens."""

    seed: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"fleet {self.seed}"


def placement_spec(chance: Random) -> Json:
    """A spec that users write."""
    kinds = chance.sample(sorted(KINDS), chance.choice([1, 1, 2]))
    entries = [_entry(kind, chance) for kind in kinds]
    spec: Json = {"resources": entries, **_chosen_robots(chance)}
    if chance.random() < 0.3:
        spec["target"] = "Same"
    if chance.random() < 0.4:
        spec["overrides"] = [_override(chance) for _ in range(chance.choice([1, 2]))]
    if chance.random() < 0.2:
        spec["expand"] = True
    if chance.random() < 0.15:
        spec["deletionPolicy"] = "KeepReplicas"
    if chance.random() < 0.2:
        content = {"spec": {"x": chance.randrange(4)}, "metadata": {"labels": {"l": "t"}}}
        spec["templates"] = [{"name": "made", "group": GROUP, "resource": "goals", "object": content}]
    return spec


def whole_spec(chance: Random) -> Json:
    """A spec that also says what is made of the statuses that robots return, and may have a rollout."""
    spec = placement_spec(chance)
    if chance.random() < 0.2:
        spec["statusReturn"] = "Singleton"
        if chance.random() < 0.7:
            spec |= {"robotSelectors": [], "robotNames": [_robot(chance)]}
    if chance.random() < 0.25:
        spec["statusCollectors"] = chance.sample(sorted(COLLECTORS), chance.choice([1, 2, 3]))
    if chance.random() < 0.4:
        spec["readyWhen"] = READY_WHEN
        if chance.random() < 0.5:
            spec["rollout"] = {"maxConcurrency": chance.choice([1, 3]), "minReadySeconds": 2}
    return spec


def _chosen_robots(chance: Random) -> Json:
    match chance.randrange(5):
        case 0:
            return {"robotNames": chance.sample(ROBOTS, 2)}
        case 1:
            return {"robotSelectors": [{"matchLabels": {"site": chance.choice(_SITES)}}]}
        case 2:
            choice = {"key": "site", "operator": chance.choice(["Exists", "DoesNotExist"])}
            return {"robotSelectors": [{"matchExpressions": [choice]}], "robotNames": ["r1", "nobody"]}
    return {"robotSelectors": [{}]}


def _entry(kind: str, chance: Random) -> Json:
    chosen: Json = {"selectors": [{}]}
    if chance.random() < 0.3:
        chosen = {"names": chance.sample(SOURCES, 2)}
    elif chance.random() < 0.3:
        chosen = {"selectors": [{"matchLabels": {"use": "yes"}}]}
    strategy = {"strategy": "CreateOnly"} if chance.random() < 0.15 else {}
    return {"group": GROUP, "resource": kind, **chosen, **strategy}


def _override(chance: Random) -> Json:
    steps: list[Json] = [
        {"path": "/spec/x", "set": {"value": chance.randrange(9)}},
        {"path": "/spec/deep/y", "set": {"value": ["{{ .robotName }}"]}},
        {"path": "/metadata/labels/o", "set": {"value": "o"}},
        {"path": "/spec/site", "property": {"name": "site"}},
        {"path": "/spec/number", "property": {"name": "number", "type": "integer"}},
    ]
    selector: Json = {} if chance.random() < 0.6 else {"matchLabels": {"site": chance.choice(_SITES)}}
    return {"robotSelector": selector, "steps": chance.sample(steps, chance.choice([1, 1, 2]))}


def content(chance: Random) -> Json:
    """The spec of a source."""
    spec: Json = {"x": chance.randrange(4)}
    if chance.random() < 0.3:
        spec["text"] = chance.choice(["{{ .site }}", '{{ .site | default "none" }}', "plain", "{{ broken"])
    if chance.random() < 0.3:
        spec["z"] = {"deep": [1, {"y": 2}]}
    return spec


def _kind(chance: Random) -> str:
    return chance.choice(["goals", "goals", "goals", "maps", "plans"])


def _robot(chance: Random) -> str:
    return chance.choice(ROBOTS)


def _source(chance: Random) -> str:
    return chance.choice(SOURCES)


def _nothing(_: Random) -> tuple[Any, ...]:
    return ()


def _labels(chance: Random) -> Json:
    return {"use": "yes"} if chance.random() < 0.6 else {}


def _who(chance: Random) -> str:
    return chance.choice(["a", "a", "a", "b"])


_VERBS = ("", "create", "patch", "delete", "list", "watch", "get", "update")
_PARTS = (
    *("", "", "/goals", "/maps", "/robots", "/robotplacements", "/robotplacementdecisions", "/fieldstrips"),
    *("/configmaps", "/leases", "/customresourcedefinitions", "/apis/lab.example.com/v1"),
)

TABLE: Mapping[str, tuple[float, _Draw]] = {
    "add_robot": (8, lambda c: (_robot(c), c.choice(["", *_SITES]))),
    "lose_robot": (4, lambda c: (_robot(c),)),
    "move_robot": (5, lambda c: (_robot(c), c.choice(["", *_SITES]))),
    "lose_many_robots": (1, lambda c: (c.randrange(2, 7),)),
    "empty_inventory": (0.3, _nothing),
    "add_source": (10, lambda c: (_kind(c), _source(c), content(c), _labels(c))),
    "edit_source": (8, lambda c: (_kind(c), _source(c), content(c), _labels(c))),
    "lose_source": (4, lambda c: (_kind(c), _source(c))),
    "replace_source": (2, lambda c: (_kind(c), _source(c), content(c))),
    "hold_source": (1, lambda c: (_kind(c), _source(c))),
    "place": (8, lambda c: (c.choice(PLACEMENTS), whole_spec(c))),
    "edit": (8, lambda c: (c.choice(PLACEMENTS), whole_spec(c))),
    "unplace": (3, lambda c: (c.choice(PLACEMENTS),)),
    "replace_placement": (1, lambda c: (c.choice(PLACEMENTS), whole_spec(c))),
    "strip": (
        1,
        lambda c: (c.choice(["s", "t"]), _kind(c), c.choice(["/spec/text", "/spec/z/deep", "/metadata/labels/use"])),
    ),
    "unstrip": (1, lambda c: (c.choice(["s", "t"]),)),
    "set_properties": (3, lambda c: (_robot(c), {"site": c.choice(["n", "s"]), "number": c.choice(["1", "2", "x"])})),
    "lose_properties": (1, lambda c: (_robot(c),)),
    "drift": (4, lambda c: (_kind(c), c.randrange(9), c.randrange(9))),
    "lose_replica": (3, lambda c: (_kind(c), c.randrange(9))),
    "keep_replica": (1, lambda c: (_kind(c), c.randrange(9))),
    "free_replicas": (1, _nothing),
    "rival": (1, lambda c: (_robot(c), _source(c), c.randrange(2))),
    "delete_namespace": (1, lambda c: (_robot(c),)),
    "sweep_namespaces": (2, _nothing),
    "delete_kind": (1.4, lambda c: (c.choice(["goals", "maps", *OWN]),)),
    "define_kind": (2, _nothing),
    "unmark_kind": (0.7, lambda c: (c.choice(["goals", "plans"]),)),
    "mark_kind": (2, _nothing),
    "back_up": (1.5, _nothing),
    "restore": (0.7, lambda c: (c.choice([-1, -1, 3]),)),
    "return_status": (8, lambda c: (_kind(c), c.randrange(9), c.choice(["", *PHASES]))),
    "return_all": (2, lambda c: (c.choice(PHASES),)),
    "collect": (2, lambda c: (c.choice(sorted(COLLECTORS)),)),
    "uncollect": (1, lambda c: (c.choice(sorted(COLLECTORS)),)),
    "release": (2, _nothing),
    "wait": (40, lambda c: (c.choice(_SECONDS),)),
    "start": (6, lambda c: (_who(c),)),
    "kill": (4, lambda c: (_who(c),)),
    "kill_after": (5, lambda c: (_who(c), c.randrange(1, 60))),
    "terminate": (1.5, lambda c: (_who(c),)),
    "stand_still": (1, lambda c: (_who(c),)),
    "go_on": (2, lambda c: (_who(c),)),
    "cut": (2, lambda c: (_who(c),)),
    "silence": (1, lambda c: (_who(c),)),
    "mend": (6, lambda c: (_who(c),)),
    "delay": (2, lambda c: (_who(c), c.choice([0.0, 0.1, 0.5, 2.0]), c.choice([0.0, 0.1, 0.5, 2.0]))),
    "lag": (2, lambda c: (_who(c), c.choice([0.0, 0.1, 2.0, 8.0]))),
    "repeat": (1, lambda c: (_who(c), c.randrange(1, 4))),
    "end_watches": (1, lambda c: (_who(c), c.randrange(1, 4))),
    "befall": (7, lambda c: (_who(c), c.choice(_VERBS), c.choice(_PARTS), c.randrange(60), c.randrange(1, 4))),
    "deny": (3, lambda c: (_who(c), c.choice(_PARTS), c.randrange(3), c.choice([1.0, 10.0, 60.0]))),
    "restart_server": (1, _nothing),
    "compact": (1, _nothing),
}


def fleet_history_of(seed: int) -> FleetHistory:
    """The history of a seed."""
    chance = Random(f"fleet-{seed}")
    # Each history has a mood: some things happen in it often, and others not at all.
    weights = {what: weight * chance.choice([0, 1, 1, 1, 3]) for what, (weight, _) in TABLE.items()}
    for what in ("wait", "start", "mend", "place", "add_source", "add_robot"):
        weights[what] = TABLE[what][0]
    names = chance.choices(list(weights), list(weights.values()), k=chance.randint(10, 60))
    begin = [Step("add_robot", (name, chance.choice(["", *_SITES]))) for name in ROBOTS[: chance.randint(2, 6)]]
    begin += [Step("add_source", (kind, name, content(chance), _labels(chance))) for kind, name in _FIRST]
    begin += [Step("place", ("p", whole_spec(chance) | {"robotSelectors": [{}]})), Step("start", ("a",))]
    begin.append(Step("wait", (chance.choice([0.5, 12.0, 40.0]),)))
    return FleetHistory(seed, (*begin, *(Step(what, TABLE[what][1](chance)) for what in names)))
