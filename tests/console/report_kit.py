"""Rows of the status document of a sound agent, to be changed by tests."""

import json

from crsyncer.console.screens.reasons import hold_hint, with_health
from crsyncer.console.screens.report import SCHEMA, bare_kind, stopped_document, writes_row
from crsyncer.core.content.annotations import DRIFT
from crsyncer.core.model import Cursor, Json, Key, Loaded, Pending, Side, View
from crsyncer.core.pair.actions import NAME_TAKEN, ODD_STATUS, SECRET_UNKNOWN, duplicate, mutation_failed
from crsyncer.core.related.relate import related_failed
from crsyncer.core.reports.text import rfc3339

NOW = 1_795_248_000.0  # 2026-11-21T08:00:00Z
GOALS = "goals.lab.example.com"


CONTRACT = json.loads("""
{"schema": "crsyncer.status/v1", "version": "0.1.0", "robot": "robot-1",
 "agent": {"state": "running", "pid": 812, "since": "2026-11-21T08:00:00Z"},
 "health": "healthy", "reasons": [{"code": "CloudOffline", "level": "offline", "message": "...", "hint": "..."}],
 "sides": {"cloud": {"state": "connected", "since": "...", "lastOk": "...", "server": "https://...", "identity": "...",
                     "reconnects": 0, "error": null, "hint": null, "clockOffsetSeconds": null},
           "robot": {"state": "connected", "since": "...", "lastOk": "...", "server": "https://...", "identity": "...",
                     "reconnects": 0, "error": null, "hint": null, "clockOffsetSeconds": null}},
 "kinds": [{"resource": "goals.lab.example.com", "version": "v1", "scope": "Namespaced", "specSource": "cloud",
            "filterByRobotName": true, "statusSubtree": null, "state": "syncing", "message": null, "rule": null,
            "objects": {"cloud": 12, "robot": 12}, "cursor": {"cloud": "1234", "robot": "987"},
            "relists": {"cloud": 1, "robot": 1}, "resumes": {"cloud": 0, "robot": 0},
            "pending": {"spec": 0, "status": 0}, "held": 0, "aliases": [], "selector": null, "policy": null,
            "cloudResource": null, "cloudScope": null, "api": null, "massDeletion": null}],
 "policies": [], "stoppedKinds": [], "formerNames": [], "formerCopies": [], "unknownAnnotations": [],
 "outbox": {"depth": 0, "oldestSeconds": null, "deadLetters": 0},
 "holds": [{"id": "h1", "resource": "goals.lab.example.com", "reason": "MassDeletion", "objects": 215, "since": "...",
            "hint": "...", "message": "...", "names": ["default/a"]}],
 "writes": {"cloud": {"create": 0, "update": 0, "delete": 0, "status": 0},
            "robot": {"create": 12, "update": 0, "delete": 0, "status": 0}},
 "store": {"path": "...", "bytes": 65536, "schema": 1, "state": "ok"}}
""")
"""The example in the interface: the contract, and what was added to it."""


def shape(value):
    """Keys only: of a list of objects, those of the first one; of anything else, nothing."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None


def side(state="connected", *, since=NOW - 3600, last_ok: float | None = NOW - 2, **changes) -> Json:
    return {
        "state": state,
        "since": rfc3339(since),
        "lastOk": rfc3339(last_ok),
        "server": "https://cloud.example.com",
        "identity": "uid-1",
        "reconnects": 0,
        "error": None,
        "hint": None,
        "clockOffsetSeconds": None,
    } | changes


def kind(resource=GOALS, **changes) -> Json:
    known = {
        "version": "v1",
        "filterByRobotName": True,
        "state": "syncing",
        "objects": {"cloud": 12, "robot": 12},
        "cursor": {"cloud": "1234", "robot": "987"},
        "relists": {"cloud": 1, "robot": 1},
    }
    return bare_kind(resource) | known | changes


_HINTS = {
    "NameTaken": NAME_TAKEN.hint,
    "StatusNotAnObject": ODD_STATUS.hint,
    "MutationFailed": mutation_failed("").hint,
    "Duplicate": duplicate(Key("default", "b")).hint,
    "SecretUnknown": SECRET_UNKNOWN.hint,
    "RelatedFailed": related_failed("").hint,
    "Contested": f"find who changes spec.x of default/a, or annotate the CRD with {DRIFT}: keep",
}
"""What the hold itself says."""


def hold(reason="MassDeletion", name="h1", *, resource=GOALS, **changes) -> Json:
    row = {
        "id": name,
        "resource": resource,
        "reason": reason,
        "objects": 215,
        "since": rfc3339(NOW - 300),
        "hint": _HINTS.get(reason) or hold_hint(reason, name, resource),
        "message": "",
        "names": ["default/a"],
    }
    return row | changes


def outbox(depth=0, oldest: int | None = None, dead=0) -> Json:
    return {"depth": depth, "oldestSeconds": oldest, "deadLetters": dead}


def store(state="ok", size=65536) -> Json:
    return {"path": "/state/state.db", "bytes": size, "schema": 1, "state": state}


def facts(cloud: Json | None = None, robot: Json | None = None, **changes) -> Json:
    """The document's parts that differ among tests, and what else its health depends on."""
    return {"sides": {"cloud": cloud or side(), "robot": robot or side(server="https://robot.example.com")}} | changes


def document(facts: Json, now=NOW) -> Json:
    """The status document of an agent with these facts."""
    content = {
        "schema": SCHEMA,
        "version": "0.1.0",
        "robot": "robot-1",
        "agent": {"state": "running", "pid": 812, "since": rfc3339(NOW - 3600)},
        "health": "",
        "reasons": [],
        "kinds": [kind()],
        "policies": [],
        "stoppedKinds": [],
        "formerNames": [],
        "formerCopies": [],
        "unknownAnnotations": [],
        "outbox": outbox(),
        "holds": [],
        "writes": writes_row({Side.ROBOT: {"create": 12}}),
        "store": store(),
    }
    parts = {name: facts[name] for name in facts if name in (*content, "sides")}
    return with_health(content | parts, now=now, **{name: facts[name] for name in facts.keys() - parts.keys()})


def _cursor(version: str) -> Cursor:
    return Cursor("uid-1", "/path", "", version)


_VIEW = View("u-1", "1", 1, False, "content", "", False)
STORED = {
    GOALS: Loaded(
        views={
            side: {Key("default", f"g{n}"): _VIEW for n in range(number)}
            for side, number in zip(Side, (9, 8), strict=True)
        },
        pending={Key("default", f"g{n}"): Pending(n, "u-1", "d", {}, NOW - 60) for n in range(3)},
        cursors={(Side.CLOUD, ""): _cursor("77")},
    )
}
"""What the store of a stopped agent has, by kind."""


def stopped(saved: object, stored: dict[str, Loaded] = STORED) -> Json:
    """The status document of an agent that stopped 30 s before NOW."""
    return stopped_document(saved, stored, NOW, store=store(size=4096), last_write=NOW - 30)
