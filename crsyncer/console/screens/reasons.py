"""The health of a status document, with the reasons for it and what the operator can do about each."""

from collections.abc import Iterable, Iterator, Mapping

from crsyncer.console.explained.explain_policy import ON
from crsyncer.console.screens.reason_texts import FIRST_START, INFO, REASONS
from crsyncer.core.accounts.confined_account import confined_hint
from crsyncer.core.content.annotations import SPEC_SOURCE
from crsyncer.core.holds.hold_list import DELETION_HOLDS
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair.other_agents import DuplicateAgent
from crsyncer.core.reports.text import NOT_TRUSTED, NOT_YET_VALID, count, duration, rfc3339, some, unix

_STUCK_AFTER_SECONDS = 120.0
_FINALIZERS_AFTER_SECONDS = 600.0
"""Work that is pending for longer than this while both sides are connected is reported."""
_MOST_NAMES = 3
"""Objects that the message of a hold names."""
MAX_CLOCK_SKEW_SECONDS = 60
"""API servers accept tokens with a skew of one minute (go-jose's DefaultLeeway); a Date header has whole seconds."""
_GOOD_STORE_STATES = ("ok", "rebuilt", "missing")
"""Store states that need no action; a rebuilt store cost only a relist."""
_SEVERITY = (*REASONS, "healthy")
_ORDER = [(health, code) for health, texts in REASONS.items() for code in texts]
CODES = tuple(dict.fromkeys(code for _, code in _ORDER))
"""Every code of a reason."""

_Reason = tuple[str, str, str, str]
"""The health it means, code, message, hint."""

_KINDS = {
    "misconfigured": ("attention", "Misconfigured"),
    "version-mismatch": ("attention", "VersionMismatch"),
    "forbidden": ("attention", "Forbidden"),
    "kind-missing": ("degraded", "KindMissing"),
}
"""The reason for each state in which a kind is not synced."""
API_HINT = (
    "where a side lacks the kinds of APIs: crsyncer crds --api | kubectl apply -f - there; the agent retries, and what"
    " is there stays"
)
_STUCK = {
    "spec": (
        "a spec is pending",
        "crsyncer diff names the object, crsyncer explain the pending step; the server's answer is in the agent's log",
    ),
    "deletion": (
        "a deletion has not been verified",
        "check that the agent's account may list the kind upstream; the server's answer is in the agent's log",
    ),
    "finalizers": (
        "a copy that is being deleted waits for its finalizers",
        "the finalizer's controller must remove it; crsyncer diff names the object, crsyncer explain the finalizer",
    ),
    "list": ("a list or watch fails", ""),
}
"""The work that waits too long, and its hint; empty: the usual one."""


def hold_hint(reason: str, hold: str, resource: str = "") -> str:
    """The default hint of a hold."""
    return REASONS[_hold_health(reason)][reason][1].format(id=hold, resource=resource)


def _hold_health(reason: str) -> str:
    """The health that a hold means: for most a human has to decide something."""
    return "attention" if reason in REASONS["attention"] else "degraded"


def worst(healths: Iterable[str]) -> str:
    """The worst of several healths."""
    return min(healths, key=_SEVERITY.index, default="healthy")


def kind_hint(state: str, policy: str | None = None) -> str:
    """The hint for a kind in a state in which it is not synced; `policy` is the name of its SyncPolicy, if any."""
    health, code = _KINDS[state]
    if policy is not None and code == "Misconfigured":
        text = f"correct the SyncPolicy {policy} or the annotations of the CRD on the robot"
        return f"{text}; until then the kind is not synced"
    return REASONS[health][code][1]


def with_health(
    content: Json,
    *,
    now: float,
    ready: bool = True,
    config_error: str | None = None,
    tls_unverified: Iterable[Side] = (),
    store_message: str | None = None,
    duplicate: DuplicateAgent | None = None,
    pending_seconds: Mapping[str, Mapping[str, float]] | None = None,
    overdue: Mapping[str, int] | None = None,
    unreturned: tuple[int, str] = (0, ""),
) -> Json:
    """The document with `health` and `reasons` filled in, the most important reason first.

    `pending_seconds`: by resource and type of work, for how long the oldest item has waited. `overdue`: by resource,
    how many copies have outlived the grace period of a deletion (C6.4). `unreturned`: how many statuses of shared
    objects no object of the robot's own takes, and why (F10.3).
    """
    found = [
        *_kind_reasons(content),
        *_api_reasons(content),
        *_policy_reasons(content),
        *_hold_reasons(content),
        *_stopped_reasons(content),
        *_former_name_reasons(content),
        *_former_copy_reasons(content, now),
        *_store_reasons(content["store"], store_message),
    ]
    found += [_reason("degraded", "TlsNotVerified", side=side) for side in tls_unverified]
    if dead := content["outbox"]["deadLetters"]:
        found.append(_reason("attention", "DeadLetters", writes=count(dead, "write")))
    for resource, copies in (overdue or {}).items():
        if copies:
            found.append(
                _reason(
                    "degraded",
                    "DeletionOverdue",
                    resource=resource,
                    copies=f"{count(copies, 'copy')} {('is', 'are')[copies != 1]}",
                )
            )
    if unreturned[0]:
        statuses = count(unreturned[0], "status")
        found.append(_reason("degraded", "StatusNotReturned", statuses=statuses, why=unreturned[1]))
    if config_error is not None:
        found.append(_reason("attention", "ConfigRejected", error=config_error))
    if duplicate is not None:
        write = f"{duplicate.name} wrote {duplicate.resource} {duplicate.key} in the cloud at {rfc3339(duplicate.time)}"
        found.append(_reason("attention", "DuplicateInstance", robot=content["robot"] or "this robot", write=write))
    if content["agent"]["state"] == "stopped":
        unused = f"{FIRST_START}; no agent has used {content['store']['path']} yet: is this the right --state-dir?"
        hint = unused if content["store"]["state"] == "missing" else ""
        found.append(_reason("attention", "AgentStopped", hint=hint))
    else:
        found += [*_clock_reasons(content), *_connection_reasons(content, now), *_startup_reasons(content, ready)]
        found += _stuck_reasons(content, now, pending_seconds or {})
    found.sort(key=lambda reason: _ORDER.index(reason[:2]))
    reasons = [{"code": code, "level": level, "message": text, "hint": hint} for level, code, text, hint in found]
    return content | {"health": worst(level for level, *_ in found if level != INFO), "reasons": reasons}


def _reason(health: str, code: str, *, message: str = "", hint: str = "", **values: object) -> _Reason:
    """A reason with its usual texts, in which `values` are filled in, or with other texts."""
    usual = REASONS[health][code]
    return health, code, message or usual[0].format(**values), hint or usual[1].format(**values)


def _clock_reasons(content: Json) -> Iterator[_Reason]:
    for side in Side:
        row = content["sides"][side]
        offset = row["clockOffsetSeconds"] or 0
        if row["state"] != "connected" and row["error"] == NOT_YET_VALID:
            yield _reason("attention", "ClockSuspect", side=side)
            return  # the same clock is compared with both sides
        if row["state"] == "connected" and abs(offset) > MAX_CLOCK_SKEW_SECONDS:
            text = f"{duration(abs(offset))} {'behind' if offset > 0 else 'ahead of'}"
            yield _reason("degraded", "ClockSuspect", offset=text, side=side)
            return


def _connection_reasons(content: Json, now: float) -> Iterator[_Reason]:
    for side in Side:
        row = content["sides"][side]
        match row["state"]:
            case "offline":
                if row["lastOk"]:
                    silence = f"has not answered for {duration(now - unix(row['lastOk']))}"
                else:
                    silence = f"has never answered, for {duration(now - unix(row['since']))}"
                if side is Side.CLOUD:
                    kept = "nothing is lost, " if content["store"]["state"] in _GOOD_STORE_STATES else ""
                    way = row["hint"] or "check the network if it should be up"
                    yield _reason("offline", "CloudOffline", silence=silence, kept=kept, way=way)
                else:
                    way = row["hint"] or "is the robot's API server up?"
                    yield _reason("degraded", "RobotOffline", silence=silence, way=way)
            case "unauthorized":
                code = "CloudUnauthorized" if side is Side.CLOUD else "RobotUnauthorized"
                error = f": {row['error']}" if row["error"] else ""
                message = f"agent and {side} do not trust each other{error}" if error.endswith(NOT_TRUSTED) else ""
                yield _reason("attention", code, message=message, side=side, error=error, way=row["hint"] or "renew it")
            case "identity-changed":
                message = f"the {side} at {row['server']} is another cluster than before: nothing is synced with it"
                hint = next((hold["hint"] for hold in content["holds"] if hold["id"] == side), "")
                yield _reason("attention", "IdentityChanged", message=message, hint=hint, id=side)


def _kind_reasons(content: Json) -> Iterator[_Reason]:
    for kind in content["kinds"]:
        resource, state, why = kind["resource"], kind["state"], kind["message"]
        if state in _KINDS:
            health, code = _KINDS[state]
            message = f"{resource}: {why or REASONS[health][code][0]}"
            hint = _gone_hint(content, resource) or confined_hint(message) or kind_hint(state, kind.get("policy"))
            # A missing kind recovers when it is served again; its held deletions wait for an operator.
            needs_human = kind["held"] or kind.get("rule") == "S1.8"
            yield _reason("attention" if needs_human else health, code, message=message, hint=hint)


def _api_reasons(content: Json) -> Iterator[_Reason]:
    """CRDs that should travel, where one of the sides lacks what that needs (C8.4)."""
    for kind in content["kinds"]:
        api = kind.get("api") or {}
        if api.get("state") == "unreadable" and api["message"] and kind["state"] not in _KINDS:
            message = f"the CRD {kind['resource']} does not travel: {api['message']}"
            yield _reason("degraded", "KindMissing", message=message, hint=API_HINT)


def _policy_reasons(content: Json) -> Iterator[_Reason]:
    """SyncPolicies that are not followed and have no kind: else the row of their kind, or of a related one, says it."""
    configured = {kind["resource"] for kind in content["kinds"] if kind.get("policy")}
    for policy in content["policies"]:
        if policy["state"] == "misconfigured" and policy["resource"] not in configured:
            yield _reason("attention", "PolicyMisconfigured", name=policy["name"], why=policy["message"])


def _gone_hint(content: Json, resource: str) -> str:
    """The hint for a kind whose CRD is gone from the robot; empty: it is not (S1.8)."""
    gone = any(kind["resource"] == resource and kind.get("rule") == "S1.8" for kind in content["kinds"])
    holds = (
        each["hint"] for each in content["holds"] if (each["resource"], each["reason"]) == (resource, "KindMissing")
    )
    return next(holds, "") if gone else ""


def _stopped_reasons(content: Json) -> Iterator[_Reason]:
    """Kinds that stopped because their configuration was removed or misspelt (S1.8), and what was deleted at once."""
    for row in content.get("unknownAnnotations", ()):
        meant, instead = "", ""
        if row["meant"]:
            meant, instead = f"; did you mean {row['meant']}?", f" {row['meant']}={row['value'] or '...'}"
        names = {"resource": row["resource"], "name": row["name"]}
        yield _reason("attention", "AnnotationUnknown", meant=meant, instead=instead, **names)
    for row in content.get("stoppedKinds", ()):
        number, resource = row["copies"], row["resource"]
        verb, where = ("follows", "follow")[number != 1], ON[Side(row["specSource"]).other]
        values = {"resource": resource, "copies": count(number, "copy"), "where": where, "follow": verb}
        # An annotation would bring other settings than the policy had, and built-in kinds have no CRD.
        again = f"kubectl annotate crd {resource} {SPEC_SOURCE}={row['specSource']}"
        if row.get("policy"):
            again = f"apply the SyncPolicy {row['policy']} again"
        yield _reason(INFO, "KindStopped", again=again, **values)
    for kind in content["kinds"]:
        if done := kind.get("massDeletion"):
            side = Side(kind["specSource"])
            sides = {"upstream": ON[side], "where": ON[side.other], "time": done["time"]}
            deletions = count(done["objects"], "deletion")
            yield _reason(INFO, "MassDeletionDone", resource=kind["resource"], deletions=deletions, **sides)


def _former_name_reasons(content: Json) -> Iterator[_Reason]:
    """The former names of the robot to which copies belong, one line for each."""
    rows = content.get("formerNames", ())
    for former in sorted({row["robot"] for row in rows}):
        own = [row for row in rows if row["robot"] == former]
        copies = [
            f"{count(row['copies'], 'copy')} of {row['resource']} {ON[Side(row['specSource']).other]}" for row in own
        ]
        verbs = ("belongs", "follows") if sum(row["copies"] for row in own) == 1 else ("belong", "follow")
        waited = sum(row["statuses"] for row in own)
        statuses = f"; {count(waited, 'status')} waited to be sent when the name changed" if waited else ""
        names = {"former": former, "robot": content["robot"] or "nothing", "belong": verbs[0], "follow": verbs[1]}
        yield _reason(INFO, "RobotRenamed", copies=some(copies), statuses=statuses, **names)


def _former_copy_reasons(content: Json, now: float) -> Iterator[_Reason]:
    """Copies that cannot be deleted from where they were: of each kind the first, those that a right lacks for first.

    What the agent retries is reported once it has waited for too long while the side is connected.
    """
    shown: dict[str, list[Json]] = {}
    for row in sorted(content.get("formerCopies", ()), key=lambda row: not row["forbidden"]):
        limit = _FINALIZERS_AFTER_SECONDS if row["terminating"] else _STUCK_AFTER_SECONDS
        is_late = content["sides"][row["side"]]["state"] == "connected" and now - unix(row["since"]) > limit
        if row["forbidden"] or is_late:
            shown.setdefault(row["resource"], []).append(row)
    for resource, rows in shown.items():
        first, where = rows[0], ON[Side(rows[0]["side"])]
        name = f"{first['kind']} {Key(first['namespace'], first['name'])}"
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        health = "attention" if first["forbidden"] else "degraded"
        values = {"resource": resource, "name": name, "where": where, "why": first["message"], "more": more}
        yield _reason(health, "CopyNotDeleted", kind=first["kind"], **values)


def _hold_reasons(content: Json) -> Iterator[_Reason]:
    changed = any(side["state"] == "identity-changed" for side in content["sides"].values())
    # Nothing of these was removed, and a release would change nothing before they are served again.
    mismatched = {kind["resource"] for kind in content["kinds"] if kind["state"] == "version-mismatch"}
    for hold in content["holds"]:
        if hold["reason"] == "KindMissing" and (
            hold["resource"] in mismatched or _gone_hint(content, hold["resource"])
        ):
            continue  # the kind's row says it
        if not changed or hold["reason"] != "IdentityChanged":  # that is reported with the connection
            deletions = count(hold["objects"], "deletion")
            names = {"id": hold["id"], "resource": hold["resource"]}
            why = hold.get("message") or ""
            health, reason = _hold_health(hold["reason"]), hold["reason"]
            message = ""
            if hold["names"] and reason not in DELETION_HOLDS:
                message = f"{REASONS[health][reason][0].format(why=why, **names)}: {_first_names(hold)}"
            yield _reason(health, reason, message=message, hint=hold["hint"], deletions=deletions, why=why, **names)


def _first_names(hold: Json) -> str:
    shown = hold["names"][:_MOST_NAMES]
    rest = hold["objects"] - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def _store_reasons(store: Json, message: str | None) -> Iterator[_Reason]:
    why = f": {message}" if message else ""
    if store["state"] == "unreadable":
        hint = "run this as the agent's user, or as root; at its start the agent replaces a broken store"
        yield _reason("degraded", "StateDegraded", message=f"the store cannot be read{why}", hint=hint)
    elif store["state"] not in _GOOD_STORE_STATES:
        yield _reason("degraded", "StateDegraded", state=store["state"], why=why, path=store["path"])


def _startup_reasons(content: Json, ready: bool) -> Iterator[_Reason]:
    states = {side: content["sides"][side]["state"] for side in Side}
    connecting = [side for side in Side if states[side] == "connecting"]
    if connecting or (not ready and states[Side.ROBOT] == "connected"):
        work = f"connecting to the {' and the '.join(connecting)}" if connecting else "reading the robot's CRDs"
        yield _reason("degraded", "Starting", work=work)
    if set(states.values()) != {"connected"}:
        return  # already reported with the connection
    for kind in content["kinds"]:
        resource, why, unlisted = kind["resource"], kind["message"], None in kind["objects"].values()
        if kind["state"] == "waiting" and not unlisted:
            yield _reason("degraded", "NotWatched", resource=resource, why=why or "no reason given")
        elif kind["state"] in ("listing", "waiting") and unlisted:
            yield _reason("degraded", "NotListed", resource=resource, why=why or "not listed on both sides yet")


def _stuck_reasons(content: Json, now: float, pending_seconds: Mapping[str, Mapping[str, float]]) -> Iterator[_Reason]:
    """Work that has been pending for too long although both sides are connected."""
    if any(content["sides"][side]["state"] != "connected" for side in Side):
        return
    connected = min(now - unix(content["sides"][side]["since"]) for side in Side)
    for resource in [kind["resource"] for kind in content["kinds"] if kind["state"] not in _KINDS]:
        for what, seconds in pending_seconds.get(resource, {}).items():
            limit = _FINALIZERS_AFTER_SECONDS if what == "finalizers" else _STUCK_AFTER_SECONDS
            if min(seconds, connected) > limit:
                code = "Backlog" if what == "status" else "Stuck"
                work, hint = _STUCK.get(what, ("", ""))
                time = f"for {duration(seconds)}, since {rfc3339(now - seconds)}"
                yield _reason("degraded", code, hint=hint, resource=resource, work=work, time=time)
