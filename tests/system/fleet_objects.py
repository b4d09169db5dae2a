"""Objects of the fleet's kinds, right and wrong; each wrong one has one mistake, which an API server refuses."""

from typing import Any

from crsyncer.core.model import Json
from tests.core.sync_policies import GONE, edited

API_VERSION = "fleet.crsyncer.cloudrobotics.com/v1alpha1"


def made(kind: str, *, namespace: str = "default", **fields: Any) -> Json:
    """An object of a kind, with what it has beside its metadata."""
    metadata = {"name": "a", "namespace": namespace} if namespace else {"name": "a"}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **fields}


SELECTOR: Json = {
    "matchLabels": {"site": "x", "lab.example.com/tier": ""},
    "matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
        {"key": "draft", "operator": "DoesNotExist"},
    ],
}
MINIMAL = made("RobotPlacement", spec={})
DEFAULTS: Json = {
    "robotSelectors": [],
    "robotNames": [],
    "mode": "Replica",
    "target": "PerRobot",
    "resources": [],
    "templates": [],
    "overrides": [],
    "expand": False,
    "statusReturn": "PerRobot",
    "statusCollectors": [],
    "deletionPolicy": "Delete",
}
"""What the server makes of an empty spec."""
SHORT = made(
    "RobotPlacement",
    spec={
        "robotSelectors": [{}],
        "resources": [{"group": "", "resource": "configmaps", "names": ["nav"]}],
        "templates": [{"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"x": 1}}}],
        "overrides": [{"steps": [{"path": "/spec/x", "property": {"name": "speed"}}]}],
        "readyWhen": "true",
        "rollout": {},
    },
)
SHORT_WITH_DEFAULTS: Json = {
    **DEFAULTS,
    "robotSelectors": [{}],
    "resources": [{"group": "", "resource": "configmaps", "names": ["nav"], "selectors": [], "strategy": "Update"}],
    "templates": [{**SHORT["spec"]["templates"][0], "strategy": "Update"}],
    "overrides": [
        {"robotSelector": {}, "steps": [{"path": "/spec/x", "property": {"name": "speed", "type": "string"}}]}
    ],
    "readyWhen": "true",
    "rollout": {
        "groups": [],
        "maxConcurrency": "5%",
        "maxFailures": 0,
        "minReadySeconds": 60,
        "progressDeadlineSeconds": 1800,
        "offline": "Defer",
        "paused": False,
    },
}
FULL = made(
    "RobotPlacement",
    spec={
        "robotSelectors": [SELECTOR, {}],
        "robotNames": ["r1", "r2"],
        "mode": "Replica",
        "target": "Same",
        "resources": [
            {
                "group": "lab.example.com",
                "resource": "goals",
                "names": ["nav"],
                "selectors": [SELECTOR],
                "strategy": "CreateOnly",
            }
        ],
        "templates": [
            {
                "name": "t-1",
                "group": "lab.example.com",
                "resource": "goals",
                "strategy": "Update",
                "object": {"metadata": {"labels": {"a": "b"}}, "spec": {"any": [1, {"x": None}]}},
            }
        ],
        "overrides": [
            {
                "robotSelector": SELECTOR,
                "steps": [
                    {"path": "/spec/x", "set": {"value": {"deep": [1, True]}}},
                    {"path": "/spec/y", "remove": True},
                    {"path": "/spec/z", "property": {"name": "_Speed1", "type": "number"}},
                    {"path": "/metadata/labels/lab.example.com~1robot", "set": {"value": "x"}},
                ],
            }
        ],
        "expand": True,
        "readyWhen": "returned.status.phase == 'Ready'",
        "statusReturn": "Singleton",
        "statusCollectors": ["health"],
        "rollout": {
            "groups": [SELECTOR, {}],
            "maxConcurrency": 3,
            "maxFailures": 2,
            "minReadySeconds": 0,
            "progressDeadlineSeconds": 1,
            "offline": "Stamp",
            "paused": True,
        },
        "deletionPolicy": "KeepReplicas",
    },
)
_SHARED: Json = {"mode": "Shared", "robotSelectors": [{}], "resources": FULL["spec"]["resources"], "readyWhen": "true"}
SHARED = made("RobotPlacement", spec=DEFAULTS | _SHARED)
RETURNED = made(
    "RobotObjectStatus",
    spec={
        "source": {"group": "lab.example.com", "resource": "goals", "namespace": "default", "name": "nav", "uid": "u"},
        "returned": {"phase": "Ready", "any": [{"x": 1}]},
        "lastUpdate": "2026-01-01T00:00:00Z",
    },
)
STATUS: Json = {
    "observedGeneration": 1 << 40,
    "conditions": [
        {
            "type": "Held",
            "status": "True",
            "reason": "MassDeletion",
            "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ],
    "counts": {
        "selected": 1,
        "replicas": 1,
        "offline": 1,
        "unreported": 1,
        "blocked": 1,
        "deferred": 1,
        "waiting": 1,
        "failed": 1,
        "ready": 1,
        "inFlight": 1,
        "stamped": 1,
    },
    "group": 1,
    "errors": [{"robot": "r1", "source": "default/nav", "reason": "Refused", "message": "m"}],
    "errorCount": 1,
    "holds": [{"id": "a" * 24, "reason": "MassDeletion", "objects": 7, "message": "m"}],
    "singletons": [{"source": "goals.lab.example.com/nav", "robot": "r1"}],
}
DECISION = made(
    "RobotPlacementDecision",
    placement={"name": "a", "uid": "u"},
    robots=[{"name": "r1", "state": "Ready", "since": "2026-01-01T00:00:00Z", "stamp": "a" * 24, "message": "m"}],
)
STRIP = made(
    "FieldStrip",
    namespace="",
    spec={"group": "lab.example.com", "resource": "goals", "remove": ["/spec/internal", "/spec/items/*/note"]},
)
ROWS = made("StatusCollector", namespace="", spec={"select": [{"name": "robot", "def": "inventory.name"}]})
COMBINED = made(
    "StatusCollector",
    namespace="",
    spec={
        "filter": "inventory.online",
        "groupBy": [{"name": "site", "def": "inventory.labels.site"}],
        "combinedFields": [
            {"name": "robots", "type": "COUNT"},
            {"name": "battery", "type": "AVG", "subject": "returned.status.battery"},
        ],
        "limit": 500,
    },
)
GATHERED = made(
    "CombinedStatus",
    source={"group": "lab.example.com", "resource": "goals", "name": "nav"},
    placement="a",
    results=[
        {
            "collector": "health",
            "columns": ["robot", "n"],
            "rows": [[{"type": "String", "value": "r1"}, {"type": "Null"}], [{"type": "Object", "value": {"a": [1]}}]],
            "total": 2,
            "truncated": False,
            "rowErrors": ["r2: no such key"],
        }
    ],
)
REPORT = made(
    "RobotSyncState",
    spec={"robot": "r1", "beat": 1 << 40, "agentVersion": "0.1.0", "health": "healthy", "applied": {"u": "a" * 24}},
)
RIGHT = {
    "a placement with every field": FULL,
    "a placement in mode Shared": SHARED,
    "a decision": DECISION,
    "a strip": STRIP,
    "a collector of rows": {**ROWS, "spec": {**ROWS["spec"], "limit": 20}},
    "a collector by groups": COMBINED,
    "a combined status": GATHERED,
    "a report": REPORT,
    "a returned status": RETURNED,
    "an empty decision": made("RobotPlacementDecision"),
    "an empty combined status": made("CombinedStatus"),
    "an empty report": made("RobotSyncState"),
    "an empty returned status": made("RobotObjectStatus"),
}
"""What is stored as it was sent."""
_CEL = "returned.status.items.map(x, x)"
_STEPS = ("spec", "overrides", 0, "steps")
_ROBOTS = {"matchLabels": {f"k{number}": "" for number in range(17)}}


def _expression(**fields: Any) -> Json:
    return {"matchExpressions": [{"key": "a", **fields}]}


def _many(number: int, of: Any = "x") -> list[Any]:
    return [of] * number


WRONG = {
    "no spec": edited(MINIMAL, "spec", value=GONE),
    "a name of 249 characters": edited(MINIMAL, "metadata", "name", value="a" * 249),
    "21 selectors": edited(FULL, "spec", "robotSelectors", value=_many(21, {})),
    "17 labels": edited(FULL, "spec", "robotSelectors", 0, value=_ROBOTS),
    "a label of 64 characters": edited(FULL, "spec", "robotSelectors", 0, value={"matchLabels": {"a": "b" * 64}}),
    "17 expressions": edited(
        FULL, "spec", "robotSelectors", 0, value={"matchExpressions": _many(17, {"key": "a", "operator": "Exists"})}
    ),
    "an expression without a key": edited(
        FULL, "spec", "robotSelectors", 0, value={"matchExpressions": [{"operator": "Exists"}]}
    ),
    "a key of 318 characters": edited(
        FULL, "spec", "robotSelectors", 0, value=_expression(key="a" * 318, operator="Exists")
    ),
    "an expression without an operator": edited(FULL, "spec", "robotSelectors", 0, value=_expression()),
    "another operator": edited(FULL, "spec", "robotSelectors", 0, value=_expression(operator="Gt", values=["1"])),
    "In without values": edited(FULL, "spec", "robotSelectors", 0, value=_expression(operator="In")),
    "NotIn with an empty list": edited(
        FULL, "spec", "robotSelectors", 0, value=_expression(operator="NotIn", values=[])
    ),
    "Exists with values": edited(FULL, "spec", "robotSelectors", 0, value=_expression(operator="Exists", values=["a"])),
    "65 values": edited(FULL, "spec", "robotSelectors", 0, value=_expression(operator="In", values=_many(65))),
    "a value of 64 characters": edited(
        FULL, "spec", "robotSelectors", 0, value=_expression(operator="In", values=["a" * 64])
    ),
    "501 robots": edited(FULL, "spec", "robotNames", value=[f"r{number}" for number in range(501)]),
    "a robot twice": edited(FULL, "spec", "robotNames", value=["r1", "r1"]),
    "a robot's name of 58 characters": edited(FULL, "spec", "robotNames", value=["r" * 58]),
    "another mode": edited(FULL, "spec", "mode", value="Same"),
    **{
        f"mode Shared with {name}": edited(SHARED, "spec", name, value=FULL["spec"][name])
        for name in ("templates", "overrides", "expand", "rollout")
    },
    "another target": edited(FULL, "spec", "target", value="Other"),
    "21 resources": edited(FULL, "spec", "resources", value=_many(21, FULL["spec"]["resources"][0])),
    "a resource without a group": edited(FULL, "spec", "resources", 0, "group", value=GONE),
    "a group of 254 characters": edited(FULL, "spec", "resources", 0, "group", value="g" * 254),
    "a group in upper case": edited(FULL, "spec", "resources", 0, "group", value="Lab"),
    "a resource without a resource": edited(FULL, "spec", "resources", 0, "resource", value=GONE),
    "an empty resource": edited(FULL, "spec", "resources", 0, "resource", value=""),
    "a kind for a resource": edited(FULL, "spec", "resources", 0, "resource", value="Goal"),
    "a resource that ends with a dash": edited(FULL, "spec", "resources", 0, "resource", value="goals-"),
    "a resource of 64 characters": edited(FULL, "spec", "resources", 0, "resource", value="g" * 64),
    "501 names": edited(FULL, "spec", "resources", 0, "names", value=_many(501)),
    "a name of 254 characters": edited(FULL, "spec", "resources", 0, "names", value=["n" * 254]),
    "21 selectors of sources": edited(FULL, "spec", "resources", 0, "selectors", value=_many(21, {})),
    "neither names nor selectors": edited(
        FULL, "spec", "resources", 0, value={"group": "lab.example.com", "resource": "goals"}
    ),
    "another strategy": edited(FULL, "spec", "resources", 0, "strategy", value="Adopt"),
    "21 templates": edited(
        FULL,
        "spec",
        "templates",
        value=[{**FULL["spec"]["templates"][0], "name": f"t{number}"} for number in range(21)],
    ),
    "a template twice": edited(FULL, "spec", "templates", value=_many(2, FULL["spec"]["templates"][0])),
    "a template without a name": edited(FULL, "spec", "templates", 0, "name", value=GONE),
    "a template with a dotted name": edited(FULL, "spec", "templates", 0, "name", value="a.b"),
    "a template's name of 64 characters": edited(FULL, "spec", "templates", 0, "name", value="t" * 64),
    "a template without a group": edited(FULL, "spec", "templates", 0, "group", value=GONE),
    "a template without a resource": edited(FULL, "spec", "templates", 0, "resource", value=GONE),
    "a template without an object": edited(FULL, "spec", "templates", 0, "object", value=GONE),
    "a template whose object is a text": edited(FULL, "spec", "templates", 0, "object", value="x"),
    "51 overrides": edited(FULL, "spec", "overrides", value=_many(51, FULL["spec"]["overrides"][0])),
    "an override without steps": edited(FULL, *_STEPS, value=GONE),
    "no step": edited(FULL, *_STEPS, value=[]),
    "21 steps": edited(FULL, *_STEPS, value=_many(21, {"path": "/spec/y", "remove": True})),
    "a step without a path": edited(FULL, *_STEPS, 0, "path", value=GONE),
    "a step without a verb": edited(FULL, *_STEPS, 0, "set", value=GONE),
    "a step with two verbs": edited(FULL, *_STEPS, 0, "remove", value=True),
    "another verb": edited(FULL, *_STEPS, 0, value={"path": "/spec/x", "cel": "1"}),
    "set without a value": edited(FULL, *_STEPS, 0, "set", value={}),
    "set null": edited(FULL, *_STEPS, 0, "set", "value", value=None),
    "remove false": edited(FULL, *_STEPS, 1, "remove", value=False),
    "a property without a name": edited(FULL, *_STEPS, 2, "property", "name", value=GONE),
    "a property with a dash": edited(FULL, *_STEPS, 2, "property", "name", value="a-b"),
    "a property's name of 64 characters": edited(FULL, *_STEPS, 2, "property", "name", value="p" * 64),
    "another type": edited(FULL, *_STEPS, 2, "property", "type", value="date"),
    **{
        f"the path {path[:20]}": edited(FULL, *_STEPS, 0, "path", value=path)
        for path in ("spec", "", "/", "/spec/~2", "/status/x", "/metadata/name", "/kind", f"/spec/{'x' * 251}")
    },
    "readyWhen with map": edited(FULL, "spec", "readyWhen", value=_CEL),
    "readyWhen with filter": edited(FULL, "spec", "readyWhen", value="x . filter (y, true)"),
    "an empty readyWhen": edited(FULL, "spec", "readyWhen", value=""),
    "readyWhen of 2049 characters": edited(FULL, "spec", "readyWhen", value="a" * 2049),
    "another statusReturn": edited(FULL, "spec", "statusReturn", value="All"),
    "11 collectors": edited(FULL, "spec", "statusCollectors", value=[f"c{number}" for number in range(11)]),
    "a collector twice": edited(FULL, "spec", "statusCollectors", value=["c", "c"]),
    "a collector's name of 254 characters": edited(FULL, "spec", "statusCollectors", value=["c" * 254]),
    "a rollout without readyWhen": edited(FULL, "spec", "readyWhen", value=GONE),
    "21 groups": edited(FULL, "spec", "rollout", "groups", value=_many(21, {})),
    **{
        f"maxConcurrency {value!r}": edited(FULL, "spec", "rollout", "maxConcurrency", value=value)
        for value in (0, -1, "0%", "101%", "5", "05%", True, 1.5)
    },
    "maxFailures -1": edited(FULL, "spec", "rollout", "maxFailures", value=-1),
    "minReadySeconds -1": edited(FULL, "spec", "rollout", "minReadySeconds", value=-1),
    "minReadySeconds 3601": edited(
        FULL, "spec", "rollout", value={"minReadySeconds": 3601, "progressDeadlineSeconds": 7200}
    ),
    "progressDeadlineSeconds 0": edited(FULL, "spec", "rollout", "progressDeadlineSeconds", value=0),
    "progressDeadlineSeconds 604801": edited(FULL, "spec", "rollout", "progressDeadlineSeconds", value=604_801),
    "a deadline that minReadySeconds cannot meet": edited(FULL, "spec", "rollout", "minReadySeconds", value=1),
    "another offline": edited(FULL, "spec", "rollout", "offline", value="Wait"),
    "paused as a text": edited(FULL, "spec", "rollout", "paused", value="yes"),
    "another deletionPolicy": edited(FULL, "spec", "deletionPolicy", value="KeepOnRobot"),
    "a decision of 501 robots": edited(DECISION, "robots", value=_many(501, DECISION["robots"][0])),
    "a decision with a robot without a name": edited(DECISION, "robots", 0, "name", value=GONE),
    "a decision with a long name": edited(DECISION, "robots", 0, "name", value="r" * 58),
    "a decision without a state": edited(DECISION, "robots", 0, "state", value=GONE),
    "a decision with another state": edited(DECISION, "robots", 0, "state", value="Offline"),
    "a decision with a bad time": edited(DECISION, "robots", 0, "since", value="today"),
    "a decision with a long stamp": edited(DECISION, "robots", 0, "stamp", value="a" * 25),
    "a decision with a long message": edited(DECISION, "robots", 0, "message", value="m" * 257),
    "a strip without a spec": edited(STRIP, "spec", value=GONE),
    "a strip without a group": edited(STRIP, "spec", "group", value=GONE),
    "a strip without a resource": edited(STRIP, "spec", "resource", value=GONE),
    "a strip without paths": edited(STRIP, "spec", "remove", value=GONE),
    "a strip with no path": edited(STRIP, "spec", "remove", value=[]),
    "a strip with 101 paths": edited(STRIP, "spec", "remove", value=_many(101, "/spec/x")),
    "a strip of the status": edited(STRIP, "spec", "remove", value=["/status/x"]),
    "a strip of a long path": edited(STRIP, "spec", "remove", value=[f"/{'x' * 256}"]),
    "a collector without a spec": edited(ROWS, "spec", value=GONE),
    "a collector that selects nothing": edited(ROWS, "spec", value={}),
    "a collector that does both": edited(COMBINED, "spec", "select", value=ROWS["spec"]["select"]),
    "groupBy without combinedFields": edited(ROWS, "spec", "groupBy", value=COMBINED["spec"]["groupBy"]),
    "21 columns": edited(ROWS, "spec", "select", value=_many(21, ROWS["spec"]["select"][0])),
    "a column without a name": edited(ROWS, "spec", "select", 0, "name", value=GONE),
    "a column's name of 64 characters": edited(ROWS, "spec", "select", 0, "name", value="c" * 64),
    "a column without a definition": edited(ROWS, "spec", "select", 0, "def", value=GONE),
    "a column with map": edited(ROWS, "spec", "select", 0, "def", value=_CEL),
    "a filter with map": edited(COMBINED, "spec", "filter", value=_CEL),
    "an empty filter": edited(COMBINED, "spec", "filter", value=""),
    "6 groups": edited(COMBINED, "spec", "groupBy", value=_many(6, COMBINED["spec"]["groupBy"][0])),
    "21 combined fields": edited(
        COMBINED, "spec", "combinedFields", value=_many(21, COMBINED["spec"]["combinedFields"][0])
    ),
    "a combined field without a name": edited(COMBINED, "spec", "combinedFields", 0, "name", value=GONE),
    "a combined field without a type": edited(COMBINED, "spec", "combinedFields", 0, "type", value=GONE),
    "MEDIAN": edited(COMBINED, "spec", "combinedFields", 1, "type", value="MEDIAN"),
    "COUNT with a subject": edited(COMBINED, "spec", "combinedFields", 0, "subject", value="obj.a"),
    "AVG without a subject": edited(COMBINED, "spec", "combinedFields", 1, "subject", value=GONE),
    "limit 0": edited(COMBINED, "spec", "limit", value=0),
    "limit 501": edited(COMBINED, "spec", "limit", value=501),
    "11 results": edited(GATHERED, "results", value=_many(11, GATHERED["results"][0])),
    "26 columns of results": edited(GATHERED, "results", 0, "columns", value=_many(26)),
    "501 rows": edited(GATHERED, "results", 0, "rows", value=_many(501, [])),
    "a row of 26 cells": edited(GATHERED, "results", 0, "rows", value=[_many(26, {"type": "Null"})]),
    "a cell of another type": edited(GATHERED, "results", 0, "rows", value=[[{"type": "Date"}]]),
    "11 errors of rows": edited(GATHERED, "results", 0, "rowErrors", value=_many(11)),
    "a report of a long name": edited(REPORT, "spec", "robot", value="r" * 58),
    "a report with a beat that is a text": edited(REPORT, "spec", "beat", value="1"),
    "a report of a long version": edited(REPORT, "spec", "agentVersion", value="v" * 65),
    "a report of another health": edited(REPORT, "spec", "health", value="fine"),
    "a report of 501 placements": edited(REPORT, "spec", "applied", value={f"u{number}": "" for number in range(501)}),
    "a report of a long stamp": edited(REPORT, "spec", "applied", value={"u": "a" * 25}),
}
"""What a server refuses, by its mistake."""
