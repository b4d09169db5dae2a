"""The status document (schema `crsyncer.status/v1`): the rows that it has of any agent, and that of a stopped agent."""

from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import TypeVar

from crsyncer import __version__
from crsyncer.console.screens.reasons import hold_hint, with_health
from crsyncer.core.holds.hold_list import DELETION_HOLDS, HeldGroup
from crsyncer.core.model import FinalizerRow, Json, Key, Loaded, Pending, Side
from crsyncer.core.reports.event_ring import Event
from crsyncer.core.reports.text import rfc3339

SCHEMA = "crsyncer.status/v1"
EXIT_CODES = {"healthy": 0, "degraded": 10, "offline": 11, "attention": 12}
STOPPED = 13
SAVED_STATUS_KEY = "status"
"""The store's key of the last status document of a running agent."""
_NAMES = 50
_BARE_SIDE = {"lastOk": None, "server": "", "identity": None, "reconnects": 0, "clockOffsetSeconds": None}
_SINCE_STOP = "unknown since the agent stopped"

Value = TypeVar("Value")


def both(value: Value) -> dict[str, Value]:
    """The same value for each side."""
    return {side.value: value for side in Side}


def bare_kind(resource: str) -> Json:
    """The row of a kind of which only the name is known. None as its number of objects: it was never listed."""
    return {
        "resource": resource,
        "version": None,
        "scope": "Namespaced",
        "specSource": "cloud",
        "filterByRobotName": False,
        "selector": None,
        "statusSubtree": None,
        "state": "waiting",
        "message": None,
        "rule": None,
        "objects": both(None),
        "cursor": both(None),
        "relists": both(0),
        "resumes": both(0),
        "pending": {"spec": 0, "status": 0},
        "held": 0,
        "aliases": [],
        "policy": None,
        "cloudResource": None,
        "cloudScope": None,
        "api": None,
        "massDeletion": None,
    }


def hold_row(group: HeldGroup) -> Json:
    """A hold on objects of one kind, with the names of the first of them, and the command that explains one."""
    names = [*map(str, nsmallest(_NAMES, group.keys))]
    hint = group.hint or hold_hint(group.reason, group.id, group.resource)
    if names and group.reason not in DELETION_HOLDS:
        hint += f"; to see the object on both sides: crsyncer explain {group.resource} {names[0]}"
    return {
        "id": group.id,
        "resource": group.resource,
        "reason": group.reason.value,
        "objects": len(group.keys),
        "since": rfc3339(group.since),
        "hint": hint,
        "message": group.message,
        "names": names,
    }


def object_fields(resource: str, key: Key) -> Json:
    """The fields that name one object in a document."""
    return {"resource": resource, "namespace": key.namespace, "name": key.name}


def event_row(event: Event) -> Json:
    """Something that the agent did or refused, as a row of `crsyncer events`. A whole kind has no name."""
    fact = event.fact
    return {
        "time": rfc3339(event.last),
        "firstTime": rfc3339(event.first),
        "count": event.count,
        "side": fact.side.value,
        **object_fields(fact.resource, fact.key or Key("", "")),
        "several": event.many,
        "action": fact.action.value,
        "rule": fact.rule,
        "message": fact.message,
    }


def pending_status(row: Pending, to: Side | None, *, next_try: float | None = None) -> Json:
    """A status that waits for the side `to` (None: not known). `next_try` is Unix time."""
    return _waiting("status", row, to and to.value, next_try) | {"dead": row.dead}


def pending_finalizer(row: FinalizerRow, *, next_try: float | None = None) -> Json:
    """A finalizer of ours that has to be removed. `next_try` is Unix time."""
    return _waiting("finalizer", row, row.side, next_try)


def _waiting(what: str, row: Pending | FinalizerRow, to: str | None, next_try: float | None) -> Json:
    return {
        "what": what,
        "to": to,
        "since": rfc3339(row.since),
        "attempts": row.attempts,
        "error": row.error or None,
        "dead": False,
        "nextTry": rfc3339(next_try),
    }


def rejected_row(what: str, message: str, to: Side, *, next_try: float | None) -> Json:
    """The content of a copy that the side `to` rejects, or a finalizer of ours, so that there is no copy (C6.2).

    `next_try` is Unix time.
    """
    row: Json = {"what": what, "to": to.value, "since": None, "attempts": None, "error": message, "dead": True}
    return row | {"nextTry": rfc3339(next_try)}


def outbox_row(waiting: Iterable[Pending], now: float, *, rejected: int = 0) -> Json:
    """The statuses that wait, and all dead letters: `rejected` copies and finalizers are, too. `now` is Unix time."""
    rows = list(waiting)
    return {
        "depth": len(rows),
        "oldestSeconds": max(0, int(now - min(row.since for row in rows))) if rows else None,
        "deadLetters": rejected + sum(row.dead for row in rows),
    }


def writes_row(counted: Mapping[Side, Mapping[str, int]]) -> Json:
    """The number of writes of each sort that each side has acknowledged."""
    verbs = ("create", "update", "delete", "status")
    return {side.value: {verb: counted.get(side, {}).get(verb, 0) for verb in verbs} for side in Side}


def stopped_document(
    saved: object,
    stored: Mapping[str, Loaded],
    now: float,
    *,
    store: Json,
    last_write: float | None = None,
    store_message: str | None = None,
) -> Json:
    """The status document of an agent that does not run: the last one that it saved, updated from its store.

    What only a running agent knows, such as the state of a connection, is not repeated. `last_write` is the Unix time
    of the last change to the store: the agent was alive then.
    """
    old = saved if isinstance(saved, dict) and saved.get("schema") == SCHEMA else {}
    old_sides, old_kinds = old.get("sides", {}), {kind["resource"]: kind for kind in old.get("kinds", [])}
    # The store also has kinds that are no longer synced.
    owing = {resource for resource, kind in stored.items() if kind.pending or not old}
    lost = {"state": "offline", "since": rfc3339(last_write), "error": _SINCE_STOP, "hint": None}
    content: Json = {
        "schema": SCHEMA,
        "version": old.get("version", __version__),
        "robot": old.get("robot", ""),
        "agent": {"state": "stopped", "pid": None, "since": rfc3339(last_write)},
        "health": "",
        "reasons": [],
        "sides": {side.value: _BARE_SIDE | old_sides.get(side, {}) | lost for side in Side},
        "kinds": [
            _stopped_kind(old_kinds.get(resource) or bare_kind(resource), stored.get(resource))
            for resource in sorted(old_kinds.keys() | owing)
        ],
        "policies": old.get("policies", []),
        "stoppedKinds": old.get("stoppedKinds", []),
        "formerNames": old.get("formerNames", []),
        "formerCopies": old.get("formerCopies", []),
        "unknownAnnotations": old.get("unknownAnnotations", []),
        "outbox": outbox_row((row for kind in stored.values() for row in kind.pending.values()), now),
        "holds": old.get("holds", []),
        "writes": old.get("writes") or writes_row({}),
        "store": store,
    }
    return with_health(content, now=now, store_message=store_message)


def _stopped_kind(row: Json, stored: Loaded | None) -> Json:
    if row["state"] in ("syncing", "listing", "waiting"):
        row = row | {"state": "waiting", "message": _SINCE_STOP}
    if stored is None:
        return row
    versions = {
        side: [
            each.resource_version for (place, _), each in stored.cursors.items() if place is side and each.is_finished
        ]
        for side in Side
    }
    return row | {
        # Zero objects without a cursor means: never listed.
        "objects": {
            side.value: len(stored.views[side]) if stored.views[side] or versions[side] else None for side in Side
        },
        "cursor": {side.value: ",".join(versions[side]) or None for side in Side},
        "pending": {"spec": 0, "status": len(stored.pending)},
    }


def exit_code(content: Json) -> int:
    """The exit code of `crsyncer status` for a document."""
    return STOPPED if content["agent"]["state"] == "stopped" else EXIT_CODES[content["health"]]
