"""Builds the status document (schema `crsyncer.status/v1`) from the agent's facts."""

from dataclasses import dataclass, field

from crsyncer.console.reasons import hold_hint, with_health
from crsyncer.core.duplicates import DuplicateAgent
from crsyncer.core.model import Json, Key, Pending, Side
from crsyncer.core.text import rfc3339

SCHEMA = "crsyncer.status/v1"
EXIT_CODES = {"healthy": 0, "degraded": 10, "offline": 11, "attention": 12}
STOPPED = 13


_VERBS = ("create", "update", "delete", "status")


def _zeros() -> dict[Side, int]:
    return dict.fromkeys(Side, 0)


def _unlisted() -> dict[Side, int | None]:
    return dict.fromkeys(Side)


def _no_cursors() -> dict[Side, str | None]:
    return dict.fromkeys(Side)


@dataclass(frozen=True, slots=True)
class SideFacts:
    """One side's connection. Times are Unix time, in seconds."""

    state: str
    """connected, connecting, offline, unauthorized or identity-changed."""
    since: float
    server: str
    last_ok: float | None = None
    identity: str | None = None
    reconnects: int = 0
    error: str | None = None
    hint: str = ""
    """What to do about the error, if the error has a hint."""
    clock_offset: float | None = None
    """By how many seconds the side's clock is ahead of this machine's; None: not known."""


@dataclass(frozen=True, slots=True)
class KindFacts:
    """One annotated CRD, also a wrongly annotated one."""

    resource: str
    version: str | None
    scope: str
    spec_source: str
    state: str
    """syncing, listing, waiting, misconfigured, kind-missing, version-mismatch, forbidden or held."""
    filtered: bool = False
    subtree: str | None = None
    message: str | None = None
    objects: dict[Side, int | None] = field(default_factory=_unlisted)
    """The number of objects on a side; None: it was never listed."""
    cursor: dict[Side, str | None] = field(default_factory=_no_cursors)
    relists: dict[Side, int] = field(default_factory=_zeros)
    resumes: dict[Side, int] = field(default_factory=_zeros)
    pending_spec: int = 0
    pending_status: int = 0
    pending_seconds: dict[str, float] = field(default_factory=dict)
    """For how many seconds the oldest spec, status, unverified deletion, finalizer and list have waited; 0: none."""
    held: int = 0
    aliases: tuple[str, ...] = ()
    """Its singular, kind and short names."""


@dataclass(frozen=True, slots=True)
class HoldFacts:
    """One hold. `reason` is its code: MassDeletion, Restored, NameTaken, Contested, ..."""

    id: str
    resource: str
    reason: str
    objects: int
    since: float
    hint: str = ""
    message: str = ""
    names: tuple[str, ...] = ()
    """The objects, as NAMESPACE/NAME; the first of them where they are many."""


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """The state of the store: ok, rebuilt (at start), degraded (the disk fails, with `message`).

    For an agent that does not run also missing and unreadable.
    """

    path: str
    bytes: int = 0
    schema: int | None = None
    state: str = "ok"
    message: str | None = None


@dataclass(frozen=True, slots=True)
class OutboxFacts:
    """The statuses that wait. `oldest` is the Unix time at which the oldest one began to wait."""

    depth: int = 0
    oldest: float | None = None
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts about a running agent."""

    version: str
    robot: str
    pid: int
    since: float
    sides: dict[Side, SideFacts]
    store: StoreFacts
    kinds: tuple[KindFacts, ...] = ()
    holds: tuple[HoldFacts, ...] = ()
    outbox: OutboxFacts = OutboxFacts()
    writes: dict[Side, dict[str, int]] = field(default_factory=dict)
    """Per side and verb: create, update, delete, status."""
    ready: bool = True
    """The store is open and the robot's CRDs are known."""
    duplicate: DuplicateAgent | None = None
    """Another agent with this one's identity."""
    config_error: str | None = None
    """Why the newest configuration is not used; None: it is used."""
    unverified: tuple[Side, ...] = ()
    """The sides whose server's certificate is not verified, by the setting insecureSkipTlsVerify."""


@dataclass(frozen=True, slots=True)
class StoredKind:
    """The facts about a kind in the store of an agent that does not run."""

    objects: dict[Side, int | None]
    cursor: dict[Side, str | None]
    pending_status: int = 0


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """The facts in the store of an agent that does not run."""

    store: StoreFacts
    outbox: OutboxFacts = OutboxFacts()
    kinds: dict[str, StoredKind] = field(default_factory=dict)
    last_write: float | None = None
    """Unix time of the last change to it: the agent was alive then."""


def document(facts: Facts, now: float) -> Json:
    """The status document of a running agent; `now` is Unix time, in seconds."""
    content: Json = {
        "schema": SCHEMA,
        "version": facts.version,
        "robot": facts.robot,
        "agent": {"state": "running", "pid": facts.pid, "since": rfc3339(facts.since)},
        "health": "",
        "reasons": [],
        "sides": {side.value: _side(facts.sides[side]) for side in Side},
        "kinds": [kind_row(kind) for kind in sorted(facts.kinds, key=lambda kind: kind.resource)],
        "outbox": _outbox(facts.outbox, now),
        "holds": [hold_row(hold) for hold in facts.holds],
        "writes": _writes(facts.writes),
        "store": _store(facts.store),
    }
    return with_health(
        content,
        now=now,
        ready=facts.ready,
        config_error=facts.config_error,
        unverified=facts.unverified,
        store_message=facts.store.message,
        duplicate=facts.duplicate,
        pending_seconds={kind.resource: kind.pending_seconds for kind in facts.kinds},
    )


def stopped_document(saved: Json | None, stored: StoredFacts, now: float, *, version: str) -> Json:
    """The status document of an agent that does not run: the last one it saved, updated from its store.

    Facts that only a running agent has, such as the state of a connection, are not repeated.
    """
    old = saved if saved and saved.get("schema") == SCHEMA else {}
    unknown = "unknown since the agent stopped"
    old_sides, old_kinds = old.get("sides", {}), {kind["resource"]: kind for kind in old.get("kinds", [])}
    kinds = []
    # The store also has kinds that are no longer synced.
    owing = {resource for resource, known in stored.kinds.items() if known.pending_status or not old}
    for resource in sorted(old_kinds.keys() | owing):
        kind = old_kinds.get(resource) or kind_row(KindFacts(resource, None, "Namespaced", "cloud", "waiting"))
        known = stored.kinds.get(resource)
        if kind["state"] in ("syncing", "listing", "waiting"):
            kind = kind | {"state": "waiting", "message": unknown}
        if known:
            pending = {"spec": 0, "status": known.pending_status}
            kind = kind | {"objects": _by_side(known.objects), "cursor": _by_side(known.cursor), "pending": pending}
        kinds.append(kind)
    empty = _side(SideFacts("offline", now, ""))
    sides = {
        side.value: empty
        | old_sides.get(side, {})
        | {"state": "offline", "since": rfc3339(stored.last_write), "error": unknown, "hint": None}
        for side in Side
    }
    content: Json = {
        "schema": SCHEMA,
        "version": old.get("version", version),
        "robot": old.get("robot", ""),
        "agent": {"state": "stopped", "pid": None, "since": rfc3339(stored.last_write)},
        "health": "",
        "reasons": [],
        "sides": sides,
        "kinds": kinds,
        "outbox": _outbox(stored.outbox, now),
        "holds": old.get("holds", []),
        "writes": old.get("writes") or _writes({}),
        "store": _store(stored.store),
    }
    return with_health(content, now=now, store_message=stored.store.message)


def exit_code(content: Json) -> int:
    """The exit code of `crsyncer status` for a document."""
    return STOPPED if content["agent"]["state"] == "stopped" else EXIT_CODES[content["health"]]


def _side(facts: SideFacts) -> Json:
    return {
        "state": facts.state,
        "since": rfc3339(facts.since),
        "lastOk": rfc3339(facts.last_ok),
        "server": facts.server,
        "identity": facts.identity,
        "reconnects": facts.reconnects,
        "error": facts.error,
        "hint": facts.hint or None,
        "clockOffsetSeconds": None if facts.clock_offset is None else round(facts.clock_offset),
    }


def _by_side(values: dict[Side, int] | dict[Side, int | None] | dict[Side, str | None]) -> Json:
    return {side.value: values.get(side) for side in Side}


def kind_row(facts: KindFacts) -> Json:
    """A kind's row in the document."""
    return {
        "resource": facts.resource,
        "version": facts.version,
        "scope": facts.scope,
        "specSource": facts.spec_source,
        "filterByRobotName": facts.filtered,
        "statusSubtree": facts.subtree,
        "state": facts.state,
        "message": facts.message,
        "objects": _by_side(facts.objects),
        "cursor": _by_side(facts.cursor),
        "relists": _by_side(facts.relists),
        "resumes": _by_side(facts.resumes),
        "pending": {"spec": facts.pending_spec, "status": facts.pending_status},
        "held": facts.held,
        "aliases": list(facts.aliases),
    }


def hold_row(facts: HoldFacts) -> Json:
    """A hold's row in the document."""
    return {
        "id": facts.id,
        "resource": facts.resource,
        "reason": facts.reason,
        "objects": facts.objects,
        "since": rfc3339(facts.since),
        "hint": facts.hint or hold_hint(facts.reason, facts.id, facts.resource),
        "message": facts.message,
        "names": list(facts.names),
    }


def object_fields(resource: str, key: Key) -> Json:
    """The fields that name one object in a document."""
    return {"resource": resource, "namespace": key.namespace, "name": key.name}


def pending_status(row: Pending, to: Side | None, *, next_try: float | None = None) -> Json:
    """A status that waits for the side `to` (None: not known). `next_try` is Unix time."""
    return {
        "what": "status",
        "to": to and to.value,
        "since": rfc3339(row.since),
        "attempts": row.attempts,
        "error": row.error or None,
        "dead": row.dead,
        "nextTry": rfc3339(next_try),
    }


def rejected_content(message: str, to: Side, *, next_try: float | None) -> Json:
    """A copy that the side `to` rejects. `next_try` is Unix time."""
    return {
        "what": "content",
        "to": to.value,
        "since": None,
        "attempts": None,
        "error": message,
        "dead": True,
        "nextTry": rfc3339(next_try),
    }


def _outbox(facts: OutboxFacts, now: float) -> Json:
    oldest = None if facts.oldest is None else max(0, int(now - facts.oldest))
    return {"depth": facts.depth, "oldestSeconds": oldest, "deadLetters": facts.dead_letters}


def _writes(counted: dict[Side, dict[str, int]]) -> Json:
    return {side.value: dict.fromkeys(_VERBS, 0) | counted.get(side, {}) for side in Side}


def _store(facts: StoreFacts) -> Json:
    return {"path": facts.path, "bytes": facts.bytes, "schema": facts.schema, "state": facts.state}
