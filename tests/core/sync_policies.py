"""SyncPolicies, right and wrong. The reader refuses each wrong one; an API server those that are marked so."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from crsyncer.core.model import Json

Place = tuple[str | int, ...]
GONE = object()

MINIMAL: Json = {
    "apiVersion": "crsyncer.cloudrobotics.com/v1alpha1",
    "kind": "SyncPolicy",
    "metadata": {"name": "orders"},
    "spec": {"resource": {"group": "lab.example.com", "resource": "orders"}},
}


def placeable(plural: str, group: str = "", **spec: Any) -> Json:
    """The SyncPolicy by which a kind without annotations is placed; its name is the kind's."""
    placed = {"resource": {"group": group, "resource": plural}, "specSource": "cloud", "filter": {"byRobotName": True}}
    return {**MINIMAL, "metadata": {"name": plural}, "spec": {**placed, **spec}}


FULL: Json = {
    **MINIMAL,
    "spec": {
        "resource": {"group": "lab.example.com", "resource": "orders", "version": "v1"},
        "specSource": "cloud",
        "filter": {
            "byRobotName": True,
            "selector": {
                "matchLabels": {"tier": "edge", "lab.example.com/site": ""},
                "matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a", "b"]},
                    {"key": "draft", "operator": "DoesNotExist"},
                ],
            },
        },
        "subtree": "progress",
        "observedGeneration": "map",
        "orphans": "keep",
        "conflict": "keepLocal",
        "naming": {"namespace": "robot-{robot}", "name": "{namespace}-{name}"},
        "projection": {
            "group": "shop.example.com",
            "version": "v2",
            "resource": "purchases",
            "kind": "Purchase",
            "scope": "Namespaced",
        },
        "mutations": {
            "down": [
                {"path": "/spec/priority", "set": {"value": {"level": 1, "why": [None, "x"]}}},
                {"path": "/spec/internal", "remove": True},
                {"path": "/spec/url", "regex": {"pattern": "^http:(.*)", "replacement": "https:$1"}},
                {"path": "/metadata/labels/lab.example.com~1robot", "template": "{robot}-{/spec/name}"},
                {"path": "/spec/items/*/count", "cel": "value + self.spec.offset"},
            ],
            "up": [{"path": "/status/message", "template": "{{{robot}}}: {/status/message}"}],
        },
        "related": [
            {
                "id": "secret",
                "origin": "cloud",
                "resource": {"group": "", "resource": "secrets", "version": "v1"},
                "object": {"reference": "/spec/secretName", "namespace": "{namespace}"},
                "naming": {"name": "{name}-{hash}"},
                "filterByRobotName": False,
                "cleanup": "keep",
            },
            {
                "id": "map",
                "origin": "robot",
                "resource": {"group": "lab.example.com", "resource": "maps"},
                "projection": {"scope": "Namespaced"},
                "object": {"name": "{name}-{/spec/floor}"},
                "naming": {"namespace": "maps"},
                "status": True,
            },
            {
                "id": "parts",
                "origin": "cloud",
                "resource": {"group": "lab.example.com", "resource": "parts"},
                "object": {"selector": {"matchLabels": {"part": "yes"}}},
                "cleanup": "delete",
            },
        ],
        "deletion": {"mode": "blocking", "gracePeriod": "1h30m", "propagation": "foreground"},
        "api": {"source": "robot", "versions": ["v1", "v2"], "paused": True, "allowBreaking": False},
    },
}

STEP: Place = ("spec", "mutations", "down", 0)
UP: Place = ("spec", "mutations", "up", 0)


def edited(policy: Json, *place: str | int, value: Any) -> Json:
    """The policy with another value at a place; GONE: without what is there."""
    whole = deepcopy(policy)
    *parents, last = place
    parent: Any = whole
    for name in parents:
        parent = parent[name]
    if value is GONE:
        del parent[last]
    elif isinstance(parent, list) and last == len(parent):
        parent.append(value)
    else:
        parent[last] = value
    return whole


@dataclass(frozen=True, slots=True)
class Wrong:
    """A policy with one mistake, what is said of it, and whether API servers refuse it as well."""

    policy: Json
    said: str
    server: bool

    def __str__(self) -> str:
        return self.said[:60]


def _servers(said: str, *place: str | int, value: Any = GONE) -> Wrong:
    return Wrong(edited(FULL, *place, value=value), said, server=True)


def _ours(said: str, *place: str | int, value: Any = GONE) -> Wrong:
    return Wrong(edited(FULL, *place, value=value), said, server=False)


def _step(path: str, **verbs: Any) -> Json:
    return {"path": path, **verbs}


SPEC: Place = ("spec",)
SECRETS = {"group": "", "resource": "secrets"}
RELATED: Place = ("spec", "related", 0)
MANY = 33
WRONG = [
    _servers("spec is missing", "spec"),
    _servers("spec.resource is missing", *SPEC, "resource"),
    _servers('spec.resource.group is "Lab"; allowed: an API group', *SPEC, "resource", "group", value="Lab"),
    _servers("spec.resource.group is missing", *SPEC, "resource", "group"),
    _servers("at most 253 characters", *SPEC, "resource", "group", value="a" * 254),
    _servers("spec.resource.resource is missing", *SPEC, "resource", "resource"),
    _servers("the plural of a kind", *SPEC, "resource", "resource", value="Orders"),
    _servers("at most 63 characters", *SPEC, "resource", "resource", value="a" * 64),
    _servers("spec.resource.version is", *SPEC, "resource", "version", value=""),
    _servers("1 to 63 characters", *SPEC, "resource", "version", value="v" * 64),
    _servers("neither namespaces nor", *SPEC, "resource", value={"group": "", "resource": "namespaces"}),
    _servers("neither namespaces nor", *SPEC, "resource", "group", value="crsyncer.cloudrobotics.com"),
    _servers("neither namespaces nor", *SPEC, "resource", "group", value="apiextensions.k8s.io"),
    _servers('spec.specSource is "both"; allowed: cloud, robot', *SPEC, "specSource", value="both"),
    _servers('spec.filter.byRobotName is "yes"; allowed: true, false', *SPEC, "filter", "byRobotName", value="yes"),
    _servers("spec.filter is a list of 0", *SPEC, "filter", value=[]),
    _servers(
        'matchExpressions[0].operator is "Is"',
        *SPEC,
        "filter",
        "selector",
        "matchExpressions",
        0,
        "operator",
        value="Is",
    ),
    _servers("matchExpressions[0].key is missing", *SPEC, "filter", "selector", "matchExpressions", 0, "key"),
    _servers(
        "matchExpressions is a list of 17; allowed: a list of at most 16",
        *(*SPEC, "filter", "selector", "matchExpressions"),
        value=[{"key": f"k{number}", "operator": "Exists"} for number in range(17)],
    ),
    _servers('values is "a"; allowed: a list', *SPEC, "filter", "selector", "matchExpressions", 0, "values", value="a"),
    _servers('spec.subtree is "a.b"; allowed: one top-level key', *SPEC, "subtree", value="a.b"),
    _servers("spec.subtree is", *SPEC, "subtree", value=""),
    _servers("1 to 253 characters", *SPEC, "subtree", value="a" * 254),
    _servers("spec.observedGeneration is", *SPEC, "observedGeneration", value="translate"),
    _servers("allowed: delete, keep", *SPEC, "orphans", value="adopt"),
    _servers("spec.orphans is delete; allowed with naming: keep", *SPEC, "orphans", value="delete"),
    _servers("spec.conflict is", *SPEC, "conflict", value="downstream"),
    _servers("spec.conflict is keepLocal; allowed for secrets: upstream", *SPEC, "resource", value=SECRETS),
    _servers("spec.naming is empty", *SPEC, "naming", value={}),
    _servers("spec.naming.name is", *SPEC, "naming", "name", value=""),
    _servers("1 to 253 characters", *SPEC, "naming", "namespace", value="x" * 254),
    _servers("spec.projection.scope is", *SPEC, "projection", "scope", value="Global"),
    _servers("spec.projection.group is", *SPEC, "projection", "group", value="a" * 254),
    _servers("spec.mutations.down[0].path is missing", *STEP, "path"),
    _servers('spec.mutations.down[0].path is "spec/url"', *STEP, "path", value="spec/url"),
    _servers('.path is "/spec/"', *STEP, "path", value="/spec/"),
    _servers('.path is "/"', *STEP, "path", value="/"),
    _servers('.path is "/spec/a~2"', *STEP, "path", value="/spec/a~2"),
    _servers("at most 256 characters", *STEP, "path", value="/" + "a" * 256),
    *(
        _servers("allowed: a path to content", *STEP, "path", value=path)
        for path in ("/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/labels", "/status", "/status/x")
    ),
    *(
        _servers("allowed: a path below /status", *UP, "path", value=path)
        for path in ("/status", "/statuses/x", "/spec/url")
    ),
    _servers("has no verb; allowed: one of set, remove", *STEP, value=_step("/spec/a")),
    _servers("has set and remove; allowed", *STEP, value=_step("/spec/a", set={"value": 1}, remove=True)),
    _servers("up[0] has template and cel", *UP, value=_step("/status/a", template="", cel="1")),
    _servers("set.value is missing", *STEP, "set", "value"),
    _servers("set.value is missing", *STEP, "set", "value", value=None),
    _servers("remove is false; allowed: true", *STEP, value=_step("/spec/a", remove=False)),
    _servers("regex.pattern is missing", *STEP, value=_step("/spec/a", regex={"replacement": ""})),
    _servers("regex.replacement is missing", *STEP, value=_step("/spec/a", regex={"pattern": "a"})),
    _servers("regex.pattern is", *STEP, value=_step("/spec/a", regex={"pattern": "", "replacement": ""})),
    _servers("regex.pattern is", *STEP, value=_step("/spec/a", regex={"pattern": "a" * 257, "replacement": ""})),
    _servers("regex.replacement is", *STEP, value=_step("/spec/a", regex={"pattern": "a", "replacement": "a" * 257})),
    _servers("template is", *STEP, value=_step("/spec/a", template="a" * 1025)),
    _servers("cel is", *STEP, value=_step("/spec/a", cel="")),
    _servers("cel is", *STEP, value=_step("/spec/a", cel="a" * 1025)),
    _servers("cel calls map", *STEP, value=_step("/spec/a", cel="self.spec.map(x, x)")),
    _servers("cel calls filter", *STEP, value=_step("/spec/a", cel="self.spec .\n filter (x, x)")),
    _servers("a list of at most 32", *STEP[:-1], value=[_step("/spec/a", remove=True)] * MANY),
    _servers("a list of at most 32", *UP[:-1], value=[_step("/status/a", remove=True)] * MANY),
    _servers(
        "spec.related is a list of 17",
        *(*SPEC, "related"),
        value=[{**FULL["spec"]["related"][2], "id": f"r{number}"} for number in range(17)],
    ),
    _servers("spec.related[0].id is missing", *RELATED, "id"),
    _servers('spec.related[0].id is "Secret"', *RELATED, "id", value="Secret"),
    _servers("at most 63 characters", *RELATED, "id", value="a" * 64),
    _servers('spec.related[1].id is "secret" again', *SPEC, "related", 1, "id", value="secret"),
    _servers("spec.related[0].origin is missing", *RELATED, "origin"),
    _servers("spec.related[0].origin is", *RELATED, "origin", value="both"),
    _servers("spec.related[0].resource is missing", *RELATED, "resource"),
    _servers("spec.related[0].resource.group is missing", *RELATED, "resource", value={"resource": "secrets"}),
    _servers("neither namespaces", *RELATED, "resource", value={"group": "", "resource": "namespaces"}),
    _servers("neither namespaces", *RELATED, "resource", "group", value="apiextensions.k8s.io"),
    _servers("is the kind of the policy itself", *RELATED, "resource", value=MINIMAL["spec"]["resource"]),
    _servers("spec.related[0].object is missing", *RELATED, "object"),
    _servers("object has none of them; allowed: one of", *RELATED, "object", value={"namespace": "a"}),
    _servers("object has reference and name", *RELATED, "object", "name", value="a"),
    _servers("object.reference is", *RELATED, "object", "reference", value="spec"),
    _servers("object.namespace is", *RELATED, "object", "namespace", value=""),
    _servers("spec.related[0].naming is empty", *RELATED, "naming", value={}),
    _servers("spec.related[0].filterByRobotName is", *RELATED, "filterByRobotName", value="true"),
    _servers("spec.related[0].status is", *RELATED, "status", value=1),
    _servers("spec.related[0].cleanup is", *RELATED, "cleanup", value="drop"),
    _servers("spec.deletion.mode is", *SPEC, "deletion", "mode", value="sync"),
    *(
        _servers("allowed: 1m to 720h", *SPEC, "deletion", "gracePeriod", value=text)
        for text in ("59s", "720h1s", "1", "an hour", "-1h", "1h 30m", "")
    ),
    _servers("at most 20 characters", *SPEC, "deletion", "gracePeriod", value="1h" + "0" * 19 + "m"),
    _servers("allowed: background, foreground, orphan", *SPEC, "deletion", "propagation", value="Background"),
    _servers("spec.api.source is missing", *SPEC, "api", "source"),
    _servers("spec.api.source is", *SPEC, "api", "source", value="both"),
    _servers("has a version twice", *SPEC, "api", "versions", value=["v1", "v1"]),
    _servers("a list of at most 16", *SPEC, "api", "versions", value=[f"v{number}" for number in range(17)]),
    _servers("spec.api.paused is", *SPEC, "api", "paused", value="no"),
    # The agent checks the rest.
    _ours('kind is "Policy"; allowed: SyncPolicy', "kind", value="Policy"),
    _ours("apiVersion is", "apiVersion", value="v1"),
    _ours("metadata.name is missing", "metadata", "name"),
    _ours("mutation is not a field; allowed: resource, specSource", *SPEC, "mutation", value={}),
    _ours("spec.mutations.down[0].when is not a field; allowed: path, set", *STEP, "when", value="always"),
    _ours("the key of a label", *SPEC, "filter", "selector", "matchLabels", "a b", value="x"),
    _ours("the value of a label", *SPEC, "filter", "selector", "matchLabels", "tier", value="a b"),
    _ours("allowed with In: at least one", *SPEC, "filter", "selector", "matchExpressions", 0, "values", value=[]),
    _ours("DoesNotExist: no values", *SPEC, "filter", "selector", "matchExpressions", 1, "values", value=["a"]),
    _ours("spec.naming.name has {nam}; allowed: {namespace}, {name}", *SPEC, "naming", "name", value="{nam}"),
    _ours("spec.naming.name has {/spec/x}", *SPEC, "naming", "name", value="{/spec/x}"),
    _ours('spec.naming.name has a single "{"', *SPEC, "naming", "name", value="{name"),
    _ours("related[1].object.name has {it}", *SPEC, "related", 1, "object", "name", value="{it}"),
    _ours("down[3].template has {/spec/*/a}", *STEP[:-1], 3, "template", value="{/spec/*/a}"),
    _ours('regex.replacement has a single "$"', *STEP[:-1], 2, "regex", "replacement", value="$x"),
    _ours("cel calls map", *STEP, value=_step("/spec/a", cel="[1]. // as it is\nmap(x, x)")),
    _ours("cel calls filter", *STEP, value=_step("/spec/a", cel="['//'] . // '\nfilter(x, true)")),
    _ours("value/a is a number over 64 bits", *STEP, "set", "value", value={"a": 2**63}),
    *(
        _ours("allowed: a path to content", *STEP, "path", value=path)
        for path in ("/*", "/*/name", "/metadata/labels/a/b")
    ),
    *(
        _ours("allowed: labels that the filter does not use", *STEP[:-1], 3, "path", value=f"/metadata/labels/{key}")
        for key in ("cloudrobotics.com~1robot-name", "tier", "zone", "*")
    ),
]
