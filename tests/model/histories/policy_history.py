"""Random histories of a kind with a SyncPolicy: names, local fields, related objects and blocking deletion (C2 to C6).

As in `history`, every step can be taken in any state, so that a failing list shrinks by leaving steps out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from crsyncer.core.model import Json
from tests.model.histories.history import OTHERS, Step
from tests.model.scenes.projected import FLEET, JOBS, NONES, PROJECTION
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.plane import GROUP

NAMES = ("a", "b", "c")
"""Primaries."""
ORIGINALS = ("m0", "m1", "m2", "a-0", "a-1", "b-0")
"""Objects that may be related to them."""
SETS = (
    (),
    ("m0",),
    ("m0", "m1"),
    ("m1", "m2"),
    ("m2", "none"),
    (*ORIGINALS, *(f"m{number}" for number in range(3, 9))),
)
"""What a primary may refer to."""
NAMINGS: tuple[Json, ...] = (
    {"name": "{robot}-{name}"},
    {"namespace": "copies", "name": "{namespace}-{name}"},
    {"name": "{name}-{hash}"},
    {"namespace": "others"},
)
PLACES = ("default", "copies", "others")
"""The namespaces of both sides."""
_OTHER_NAMINGS: Mapping[tuple[bool, bool], tuple[Json, ...]] = {
    (True, True): ({"name": "{robot}-{name}"}, {"name": "{name}-{hash}"}),
    (False, True): ({"name": "{namespace}-{name}"}, {"name": "{name}-{hash}"}, {"name": "{robot}-{namespace}-{name}"}),
    (True, False): ({"namespace": "copies"}, {"namespace": "others", "name": "{name}-{hash}"}, {"namespace": "others"}),
}
"""What copies may be called where objects are cluster-scoped upstream, downstream, or on both sides (C7)."""
RELATED_NAMINGS: tuple[Json, ...] = (
    {"name": "{robot}-{name}"},
    {"namespace": "others"},
    {"namespace": "copies", "name": "{namespace}-{name}"},
    {"name": "{name}-{namespace}"},
)
"""What copies of related objects may be called (C5.2)."""
NAMESPACES = ("others", "{/spec/home}")
"""Where related objects may be, but in the namespace of their primary (C5.1)."""
GRACES = ("1m", "720h")
PROPAGATIONS = ("background", "foreground", "orphan")
RESOURCES = ("configmaps", "secrets")
PARTS = f"parts.{GROUP}"
"""Related objects that have a status."""
IN_CLOUD: Mapping[str, str] = {"goals": "tasks", "configmaps": "parts", "secrets": "keys", "parts": "pieces"}
"""What kinds that are projected are called in the cloud, in a group of its own (C7)."""
FORMS: tuple[Json, ...] = ({}, PROJECTION, JOBS, JOBS | {"version": "v2"}, NONES)
"""What goals may come to be in the cloud; the last of these it does not serve."""
_FORMS: Mapping[str, Json] = {
    "reference": {"reference": "/spec/{}/*"},
    "name": {"name": "{{name}}-{{/spec/n}}"},
    "selector": {"selector": {"matchLabels": {"tier": "edge"}}},
}

_Draw = Callable[[Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What the policy of goals says, and may come to say."""

    source: str
    filtered: bool
    namings: tuple[Json, ...]
    """The templates that there may be, the first of them at the beginning; none: copies have their originals' names."""
    keep_local: bool
    blocking: bool
    steps: tuple[Json, ...]
    entries: tuple[Json, ...]
    projected: tuple[str, ...] = ()
    """The kinds that have other names in the cloud (C7): "goals", and those of related objects."""
    api: str = ""
    """The side whose CRD of goals travels to the other (C8); empty: it does not."""
    bare: tuple[str, ...] = ()
    """The sides where parts have no `/status`."""
    edits_deletion: bool = False
    """What the policy says of deletion is edited."""
    edits_subtree: bool = False
    """Which part of the status goes up is edited: all of it, or "part"."""
    clusters: tuple[str, ...] = ()
    """The sides where goals are cluster-scoped."""
    says_scope: bool = False
    """The policy says which scope goals have in the cloud; else its discovery does."""
    edits_projection: bool = False
    """What goals are in the cloud is edited."""
    selected: bool = False
    """A selector says which goals are synced, too: those with the label tier=edge."""
    maps_generation: bool = False
    """Statuses show upstream's generation (S4.7)."""
    up: tuple[Json, ...] = ()
    """The steps that statuses take."""
    orphans: str = "keep"
    """What becomes of orphans, where no template names copies."""

    @property
    def forms(self) -> tuple[Json, ...]:
        """What goals may be in the cloud, the first of it at the beginning; none: that is not edited."""
        return FORMS[1 if "goals" in self.projected else 0 :] if self.edits_projection else ()


@dataclass(frozen=True, slots=True)
class PolicyHistory:
    """Under which policy it happens, and what."""

    seed: int
    setup: Setup
    steps: tuple[Step, ...]

    @property
    def settings(self) -> AgentSettings:
        """What the agent is told."""
        return AgentSettings()

    def __str__(self) -> str:
        return str(self.setup)


def _name(chance: Random) -> str:
    return chance.choice(NAMES)


def _refers(chance: Random) -> tuple[Any, ...]:
    return chance.randrange(len(SETS)), chance.randrange(len(SETS)), chance.randrange(2)


_OF_POLICIES: Mapping[str, tuple[float, _Draw]] = {
    "create": (12, lambda c: (_name(c), c.randrange(9), *_refers(c))),
    "change": (5, lambda c: (_name(c), c.randrange(9))),
    "refer": (7, lambda c: (_name(c), *_refers(c))),
    "remove": (5, lambda c: (_name(c),)),
    "replace": (3, lambda c: (_name(c), c.randrange(9), *_refers(c))),
    "relabel": (2, lambda c: (_name(c), c.choice(["", "robot-2", ROBOT, ROBOT]))),
    "report": (5, lambda c: (_name(c),)),
    "drift": (4, lambda c: (_name(c), c.randrange(9))),
    "lose_copy": (3, lambda c: (_name(c),)),
    "keep_copy": (2, lambda c: (_name(c), c.randrange(2))),
    "tear": (2, lambda c: (_name(c), c.randrange(6))),
    "by_hand": (3, lambda c: (_name(c), c.randrange(3), c.randrange(2))),
    "rename": (3, lambda c: (c.randrange(4),)),
    "entries": (2, lambda c: (c.randrange(8),)),
    "drop_policy": (1, lambda _: ()),
    "lose_store": (2, lambda _: ()),
}
"""Steps about what a policy is for: how often they come, and their arguments."""

_OF_RELATED: Mapping[str, tuple[float, _Draw]] = {
    "put": (14, lambda c: (c.choice(ORIGINALS), c.randrange(9), c.randrange(2), c.randrange(4))),
    "unput": (5, lambda c: (c.choice(ORIGINALS),)),
    "drift_related": (3, lambda c: (c.choice(ORIGINALS), c.randrange(9))),
    "lose_related": (3, lambda c: (c.choice(ORIGINALS),)),
    "tear_related": (1, lambda c: (c.choice(ORIGINALS), c.randrange(6))),
    "by_hand_related": (2, lambda c: (c.choice(ORIGINALS), c.randrange(9), c.randrange(2))),
}
"""Steps about one kind of related objects: how often they come, and their further arguments."""

_OF_BLOCKED: Mapping[str, tuple[float, _Draw]] = {
    "keep_related": (3, lambda c: (c.choice(ORIGINALS), c.randrange(2))),
}
"""The same, where upstream's objects wait for related copies."""

_OF_STATUSES: Mapping[str, tuple[float, _Draw]] = {
    "show": (12, lambda c: (c.randrange(6),)),
    "hide": (3, lambda c: (c.randrange(6),)),
    "drift_shown": (2, lambda c: (c.randrange(6),)),
    "follow": (3, lambda c: (c.randrange(2),)),
}
"""Steps about the statuses of related objects."""

_OF_DELETION: Mapping[str, tuple[float, _Draw]] = {
    "delete_by": (6, lambda c: (c.randrange(2), c.choice(GRACES), c.choice(PROPAGATIONS))),
}
"""Steps about what the policy says of deletion."""

_OF_SUBTREE: Mapping[str, tuple[float, _Draw]] = {
    "resubtree": (6, lambda c: (c.randrange(2),)),
    "neighbour": (6, lambda c: (_name(c),)),
    "blank": (3, lambda c: (_name(c), c.randrange(2))),
}
"""Steps about which part of the status goes up."""

_OF_PROJECTION: Mapping[str, tuple[float, _Draw]] = {
    "project": (6, lambda c: (c.randrange(5),)),
    "behind": (6, lambda c: (_name(c), c.randrange(4), c.randrange(9), *_refers(c))),
}
"""Steps about what goals are in the cloud."""

_OF_APIS: Mapping[str, tuple[float, _Draw]] = {
    "define": (6, lambda c: (c.randrange(5),)),
    "choose": (1, lambda c: (c.randrange(5),)),
    "drop_set": (1, lambda _: ()),
    "travel": (2, lambda c: (c.randrange(2), c.choice([0, 0, 0, 1]))),
}
"""Steps about a CRD that travels."""

_AROUND = (
    *("wait", "crash", "crash_after", "stop", "kill", "start", "slow_disk", "cut", "silence", "mend", "delay"),
    *("close_slowly", "lag", "repeat", "end_watches", "befall", "deny", "restart", "compact", "others_write"),
)
"""Steps of `history` that happen here, too."""


def policy_history_of(seed: int) -> PolicyHistory:
    """The history of a seed."""
    chance = Random(f"policy-history-{seed}")
    setup = _more(_setup(chance), Random(f"policy-history-more-{seed}"))
    setup = _with_statuses(setup, Random(f"policy-history-statuses-{seed}"))
    setup = replace(setup, edits_deletion=Random(f"policy-history-deletion-{seed}").random() < 0.2)
    setup = replace(setup, edits_subtree=Random(f"policy-history-subtree-{seed}").random() < 0.15)
    setup = _with_clusters(setup, Random(f"policy-history-scope-{seed}"))
    edits_projection = not setup.api and Random(f"policy-history-projection-{seed}").random() < 0.15
    setup = replace(setup, edits_projection=edits_projection)
    setup = _with_rest(setup, Random(f"policy-history-rest-{seed}"))
    around = {what: OTHERS[what] for what in _AROUND}
    may_block = setup.blocking or setup.edits_deletion
    related = {**(_OF_RELATED if setup.entries else {}), **(_OF_BLOCKED if setup.entries and may_block else {})}
    resources = [resource_of(each) for each in setup.entries]
    rare = {**(_OF_APIS if setup.api else {}), **(_OF_STATUSES if PARTS in resources else {})}
    rare |= {**(_OF_DELETION if setup.edits_deletion else {}), **(_OF_SUBTREE if setup.edits_subtree else {})}
    rare |= _OF_PROJECTION if setup.edits_projection else {}
    table = {**_OF_POLICIES, **around, **related, **rare}
    weights = {what: weight * chance.choice([0, 1, 1, 1, 3]) for what, (weight, _) in table.items()}
    for what in ("create", "wait", "start", "mend"):
        weights[what] = table[what][0]
    names = chance.choices(list(weights), list(weights.values()), k=chance.randint(5, 45))
    if chance.random() < 0.7:  # it begins with something that is synced
        put = ["put"] * (6 if setup.entries else 0)
        shown = ["show"] * (4 if PARTS in resources else 0)
        names = [*put, "create", "create", "wait", *shown, *names]
    if setup.edits_deletion and seed % 2:  # at last something waits
        names = [*names, "delete_by", "create", "create", "wait", "keep_copy", "keep_copy", "remove", "remove"]
    if setup.edits_subtree and seed % 3:  # and the status changes in between
        edits = chance.choices(("report", "neighbour", "wait", "resubtree", "blank"), (4, 4, 4, 2, 1), k=20)
        names = [*names, "create", "create", "start", "mend", "mend", "wait", "resubtree", "wait", *edits]
    if setup.edits_projection and seed % 3:  # and there are objects of each kind
        edits = chance.choices(("project", "behind", "wait", "create", "report"), (2, 2, 4, 1, 2), k=16)
        names = [*names, "create", "create", "start", "mend", "mend", "wait", *edits]
    steps = []
    for what in names:
        about = (chance.choice(resources),) if what in related else ()
        steps.append(Step(what, (*about, *table[what][1](chance))))
    return PolicyHistory(seed, setup, tuple(steps))


def _setup(chance: Random) -> Setup:
    form = chance.choice(["names", "related", "related", "blocking"])
    named = chance.random() < (0.3 if form == "related" else 0.8)
    return Setup(
        source=chance.choice(["cloud", "cloud", "robot"]),
        filtered=chance.random() < 0.3,
        namings=tuple(chance.sample(NAMINGS, len(NAMINGS))) if named else (),
        keep_local=chance.random() < 0.3,
        blocking=form == "blocking",
        steps=({"path": "/spec/mode", "set": {"value": "m"}},) if chance.random() < 0.3 else (),
        entries=_entries(chance) if form == "related" else (),
    )


def _more(setup: Setup, chance: Random) -> Setup:
    """What comes seldom. It is drawn from numbers of its own, so that all other histories stay as they are."""
    if setup.entries and chance.random() < 0.25:
        setup = replace(setup, blocking=True)
    if setup.entries and chance.random() < 0.3:
        setup = replace(setup, entries=_same_naming(_elsewhere(each, chance) for each in setup.entries))
    if chance.random() < 0.15:
        kinds = {"goals", *map(resource_of, setup.entries)}
        projected = tuple(kind for kind in IN_CLOUD if kind in kinds and chance.random() < 0.6)
        entries = tuple(_projected(each, projected) for each in setup.entries)
        setup = replace(setup, projected=projected, entries=entries)
    if "goals" not in setup.projected and chance.random() < 0.08:
        setup = replace(setup, api=chance.choice(["cloud", "robot"]))
    return setup


def _with_statuses(setup: Setup, chance: Random) -> Setup:
    """Now and then, related objects with a status in place of ConfigMaps."""
    if "configmaps" not in {resource_of(each) for each in setup.entries} or chance.random() > 0.5:
        return setup
    return replace(
        setup,
        entries=tuple(_part(each) for each in setup.entries),
        projected=tuple("parts" if kind == "configmaps" else kind for kind in setup.projected),
        bare=chance.choice([(), (), (), (), ("cloud",), ("robot",)]),
    )


def _with_clusters(setup: Setup, chance: Random) -> Setup:
    """Now and then, cluster-scoped primaries, on one side or both; what is related to them stays in namespaces."""
    if setup.api or chance.random() > 0.3:
        return setup
    entries = tuple(each if chance.random() < 0.2 else _placed(each, chance) for each in setup.entries)
    clusters = chance.choice([("cloud", "robot"), ("cloud",), ("robot",)])
    names = _OTHER_NAMINGS[setup.source in clusters, {"cloud": "robot", "robot": "cloud"}[setup.source] in clusters]
    is_other = len(clusters) == 1
    return replace(
        setup,
        clusters=clusters,
        entries=entries,
        namings=tuple(chance.sample(names, len(names))) if is_other or setup.namings else (),
        projected=tuple(dict.fromkeys(("goals", *setup.projected))) if is_other else setup.projected,
        says_scope=is_other and chance.random() < 0.5,
    )


def _with_rest(setup: Setup, chance: Random) -> Setup:
    """What a policy may say besides."""
    whole = not setup.edits_subtree
    word: Json = {"path": "/status/word", "template": "{name} {/status/n}"}
    return replace(
        setup,
        selected=not setup.api and chance.random() < 0.15,
        maps_generation=whole and chance.random() < 0.15,
        up=(word,) if whole and chance.random() < 0.15 else (),
        orphans="delete" if not setup.namings and chance.random() < 0.3 else "keep",
    )


def _part(entry: Json) -> Json:
    """An entry about ConfigMaps, as one about parts."""
    if resource_of(entry) != "configmaps":
        return entry
    named = {"reference": "/spec/parts/*"} if "reference" in entry["object"] else {}
    changed: Json = {
        "id": entry["id"].replace("configmaps", "parts"),
        "resource": {"group": GROUP, "resource": "parts"},
        "object": entry["object"] | named,
        "status": True,
    }
    return entry | changed | ({"projection": projection("parts")} if "projection" in entry else {})


def resource_of(entry: Json) -> str:
    """The kind that an entry is about, by its full name on the robot."""
    resource = entry["resource"]
    return ".".join(filter(None, (resource["resource"], resource["group"])))


def _projected(entry: Json, projected: tuple[str, ...]) -> Json:
    """The entry, with other names in the cloud if its kind has such there."""
    resource = entry["resource"]["resource"]
    return entry | ({"projection": projection(resource)} if resource in projected else {})


def projection(kind: str) -> Json:
    """What the policy says of a kind that has other names in the cloud."""
    plural = IN_CLOUD[kind]
    return {"group": FLEET, "resource": plural, "kind": plural.removesuffix("s").capitalize()}


def name_of_form(form: Json) -> str:
    """The full name of what goals are in the cloud."""
    return f"{form['resource']}.{form['group']}" if form else f"goals.{GROUP}"


def _elsewhere(entry: Json, chance: Random) -> Json:
    """The entry with originals or copies somewhere else."""
    named = {"naming": chance.choice(RELATED_NAMINGS)} if chance.random() < 0.6 else {}
    return (entry if chance.random() < 0.5 else _placed(entry, chance)) | named


def _same_naming(entries: Iterable[Json]) -> tuple[Json, ...]:
    """The entries with one naming for each kind (C5.2)."""
    found = [*entries]
    namings = {resource_of(each): each.get("naming") for each in reversed(found)}
    return tuple(
        {**{k: v for k, v in each.items() if k != "naming"}, **({"naming": naming} if naming else {})}
        for each in found
        for naming in [namings[resource_of(each)]]
    )


def _placed(entry: Json, chance: Random) -> Json:
    """The entry with originals in a namespace that it says."""
    return entry | {"object": entry["object"] | {"namespace": chance.choice(NAMESPACES)}}


def _entries(chance: Random) -> tuple[Json, ...]:
    found: list[Json] = []
    for resource in chance.choice([RESOURCES, RESOURCES, RESOURCES[:1], RESOURCES[1:]]):
        shared: Json = {
            "origin": chance.choice(["cloud", "robot"]),
            "cleanup": chance.choice(["delete"] * 3 + ["keep"]),
        }
        for form in chance.sample(sorted(_FORMS), chance.choice([1, 1, 2, 3])):
            objects = {k: v.format(resource) if isinstance(v, str) else v for k, v in _FORMS[form].items()}
            more = {"id": f"{resource}-{form}", "resource": {"group": "", "resource": resource}, "object": objects}
            found.append({**more, **shared})
    return tuple(found)
