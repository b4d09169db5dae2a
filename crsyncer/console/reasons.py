"""The health of a status document, with the reasons for it and what the operator can do about each."""

from collections.abc import Iterable, Iterator, Mapping

from crsyncer.core.duplicates import DuplicateAgent
from crsyncer.core.model import Json, Side
from crsyncer.core.text import NOT_YET_VALID, count, duration, rfc3339, unix

_SEVERITY = ("attention", "degraded", "offline", "healthy")
"""Worst first; a document has the health of its worst reason."""
_PRIORITY = (
    "AgentStopped",
    "IdentityChanged",
    "DuplicateInstance",
    "CloudUnauthorized",
    "RobotUnauthorized",
    "Restored",
    "Manual",
    "MassDeletion",
    "KindMissing",
    "Misconfigured",
    "ConfigRejected",
    "VersionMismatch",
    "Forbidden",
    "NameTaken",
    "Contested",
    "StatusNotAnObject",
    "DeadLetters",
    "StateDegraded",
    "ClockSuspect",
    "TlsNotVerified",
    "RobotOffline",
    "Starting",
    "NotListed",
    "NotWatched",
    "Stuck",
    "Backlog",
    "CloudOffline",
)
"""The order of reasons with the same health; codes that are not listed come last."""
_STUCK_AFTER_SECONDS = 120.0
_FINALIZERS_AFTER_SECONDS = 600.0
"""Work that is pending for longer than this while both sides are connected is reported."""
_MAX_CLOCK_SKEW_SECONDS = 60
"""API servers accept tokens with a skew of one minute (go-jose's DefaultLeeway); a Date header has whole seconds."""
_GOOD_STORE_STATES = ("ok", "rebuilt", "missing")
"""Store states that need no action; a rebuilt store cost only a relist."""

_Reason = tuple[str, str, str, str]
"""The health it means, code, message, hint."""

_STUCK = {
    "spec": (
        "Stuck",
        "a spec is pending",
        "crsyncer diff names the object, crsyncer explain the pending step; the server's answer is in the agent's log",
    ),
    "deletion": (
        "Stuck",
        "a deletion has not been verified",
        "check that the agent's account may list the kind upstream; the server's answer is in the agent's log",
    ),
    "finalizers": (
        "Stuck",
        "a copy that is being deleted waits for its finalizers",
        "the finalizer's controller must remove it; crsyncer diff names the object, crsyncer explain the finalizer",
    ),
    "list": ("Stuck", "a list or watch fails", "the server's answer is in the agent's log"),
    "status": (
        "Backlog",
        "a status waits to be sent",
        "crsyncer pending list shows the server's answer for each",
    ),
}

_HOLDS = {
    "MassDeletion": (
        "{count} of {resource} held: too many deletions at once",
        "if intended: crsyncer holds release {id}; if not: restore the objects, and the hold ends",
    ),
    "Manual": (
        "{resource}: an operator holds every deletion ({count} so far)",
        "to allow deletions again: crsyncer holds release {id}",
    ),
    "Restored": (
        "{count} of {resource} held: the upstream cluster was restored to an older state",
        "restore the lost objects upstream, and the hold ends; to delete the copies: crsyncer holds release {id}",
    ),
    "KindMissing": (
        "{count} of {resource} held: the CRD was removed upstream",
        "restore the CRD and its objects, and the hold ends; to delete the copies: crsyncer holds release {id}",
    ),
    "NameTaken": (
        "{resource}: a name is taken by an object that crsyncer did not create",
        "rename or delete the object that has the name; crsyncer holds list names it",
    ),
    "Contested": (
        "{resource}: another writer keeps changing fields that upstream owns",
        "find the other writer and stop it (crsyncer explain {resource} NAME shows the fields), or annotate the CRD"
        " with drift: keep",
    ),
    "StatusNotAnObject": (
        "{resource}: a status that is not an object is not sent",
        "correct the controller that writes it; crsyncer holds list names the object",
    ),
    "IdentityChanged": (
        "the {id} is another cluster than before",
        "if the cluster was replaced on purpose: crsyncer holds release {id}; if not: correct the kubeconfig",
    ),
}

_KINDS = {
    "misconfigured": (
        "Misconfigured",
        "its annotations are invalid",
        "correct the annotations of the CRD on the robot; until then the kind is not synced",
    ),
    "version-mismatch": (
        "VersionMismatch",
        "the two sides serve no common version",
        "serve one version of the CRD on both sides",
    ),
    "forbidden": (
        "Forbidden",
        "the agent's account may not use it",
        "grant the account list and watch, and the writes on this side (crsyncer doctor names them); the agent retries",
    ),
    "kind-missing": (
        "KindMissing",
        "a side does not serve it",
        "install the CRD on the side that lacks it; nothing is deleted because of this, and the agent retries",
    ),
}


def hold_hint(reason: str, hold: str, resource: str = "") -> str:
    """The default hint of a hold."""
    return _HOLDS[reason][1].format(id=hold, resource=resource)


def worst(healths: Iterable[str]) -> str:
    """The worst of several healths."""
    return min(healths, key=_SEVERITY.index, default="healthy")


def kind_hint(state: str) -> str:
    """The hint for a kind in a state in which it is not synced."""
    return _KINDS[state][2]


def with_health(
    content: Json,
    *,
    now: float,
    ready: bool = True,
    config_error: str | None = None,
    unverified: Iterable[Side] = (),
    store_message: str | None = None,
    duplicate: DuplicateAgent | None = None,
    pending_seconds: Mapping[str, Mapping[str, float]] | None = None,
) -> Json:
    """The document with `health` and `reasons` filled in, the most important reason first.

    `pending_seconds`: by resource and type of work, for how long the oldest item has waited.
    """
    found = [*_kind_reasons(content), *_hold_reasons(content), *_other_reasons(content, config_error, store_message)]
    for side in unverified:
        message = f"the certificate of the {side}'s server is not verified: anybody can impersonate the server"
        hint = "add the CA to the kubeconfig and remove --insecure-skip-tls-verify"
        found.append(("degraded", "TlsNotVerified", message, hint))
    if duplicate is not None:
        found.append(_duplicate_reason(content, duplicate))
    if content["agent"]["state"] == "stopped":
        found.append(_stopped_reason(content))
    else:
        found += [*_clock_reasons(content), *_connection_reasons(content, now), *_startup_reasons(content, ready)]
        found += _stuck_reasons(content, now, pending_seconds or {})
    found.sort(
        key=lambda reason: (
            _SEVERITY.index(reason[0]),
            _PRIORITY.index(reason[1]) if reason[1] in _PRIORITY else len(_PRIORITY),
        )
    )
    reasons = [{"code": code, "message": message, "hint": hint} for _, code, message, hint in found]
    return content | {"health": found[0][0] if found else "healthy", "reasons": reasons}


def _duplicate_reason(content: Json, duplicate: DuplicateAgent) -> _Reason:
    what = f"{duplicate.name} wrote {duplicate.resource} {duplicate.key} in the cloud at {rfc3339(duplicate.time)}"
    hint = (
        "a disk image was cloned, or an old robot still runs: stop it, or give it its own --robot-name, account and"
        " state directory; this message ends 10 minutes after its last write"
    )
    return (
        "attention",
        "DuplicateInstance",
        f"a second agent uses the name of {content['robot'] or 'this robot'}: {what}",
        hint,
    )


def _stopped_reason(content: Json) -> _Reason:
    hint = (
        f"no agent has used {content['store']['path']} yet: is this the right --state-dir?"
        if content["store"]["state"] == "missing"
        else "systemctl start crsyncer (or crsyncer run); its log shows why it ended"
    )
    return "attention", "AgentStopped", "the agent is not running: nothing is synced until it is started", hint


def _clock_reasons(content: Json) -> Iterator[_Reason]:
    hint = "set this machine's clock (timedatectl status shows whether it follows a time server)"
    for side in Side:
        known = content["sides"][side]
        if known["state"] != "connected":
            if known["error"] == NOT_YET_VALID:
                message = f"this machine's clock is behind: the {side}'s certificate is not valid yet by this clock"
                yield "degraded", "ClockSuspect", message, f"{hint}; the agent retries the connection"
                return
            continue
        offset = known["clockOffsetSeconds"] or 0
        if abs(offset) > _MAX_CLOCK_SKEW_SECONDS:
            word = "behind" if offset > 0 else "ahead of"
            message = f"this machine's clock is {duration(abs(offset))} {word} that of the {side}'s API server"
            yield "degraded", "ClockSuspect", message, hint
            return  # the same clock is compared with both sides


def _connection_reasons(content: Json, now: float) -> Iterator[_Reason]:
    for side in Side:
        known = content["sides"][side]
        error = f" ({known['error']})" if known["error"] else ""
        match known["state"]:
            case "offline":
                silent = (
                    f"has not answered for {duration(now - unix(known['lastOk']))}"
                    if known["lastOk"]
                    else f"has never answered, for {duration(now - unix(known['since']))}"
                )
                if side is Side.CLOUD:
                    way = known["hint"] or "check the network if it should be up"
                    kept = "nothing is lost, " if content["store"]["state"] in _GOOD_STORE_STATES else ""
                    hint = f"{kept}the agent retries; {way}"
                    yield "offline", "CloudOffline", f"the cloud {silent}; the robot keeps working offline", hint
                else:
                    way = known["hint"] or "is the robot's API server up?"
                    hint = f"{way} (systemctl status k3s); the agent retries"
                    yield "degraded", "RobotOffline", f"the robot's own API server {silent}", hint
            case "unauthorized":
                yield (
                    "attention",
                    "CloudUnauthorized" if side is Side.CLOUD else "RobotUnauthorized",
                    f"the {side}'s API server rejects the agent's credential{error}",
                    f"renew the credential in the {side}'s kubeconfig; the agent reads it again and retries",
                )
            case "identity-changed":
                hints = [hold["hint"] for hold in content["holds"] if hold["id"] == side]
                yield (
                    "attention",
                    "IdentityChanged",
                    f"the {side} at {known['server']} is another cluster than before: nothing is synced with it",
                    hints[0] if hints else hold_hint("IdentityChanged", side),
                )


def _kind_reasons(content: Json) -> Iterator[_Reason]:
    for kind in content["kinds"]:
        if kind["state"] in _KINDS:
            code, message, hint = _KINDS[kind["state"]]
            # A missing kind recovers when it is served again; its held deletions wait for an operator.
            health = "degraded" if code == "KindMissing" and not kind["held"] else "attention"
            yield health, code, f"{kind['resource']}: {kind['message'] or message}", hint
        elif kind["state"] == "held" and not any(hold["resource"] == kind["resource"] for hold in content["holds"]):
            yield "attention", "Held", f"{kind['resource']}: {kind['message'] or 'held back'}", "crsyncer holds list"


def _hold_reasons(content: Json) -> Iterator[_Reason]:
    changed = any(side["state"] == "identity-changed" for side in content["sides"].values())
    for hold in content["holds"]:
        if changed and hold["reason"] == "IdentityChanged":
            continue  # already reported with the connection
        message = _HOLDS[hold["reason"]][0].format(
            count=count(hold["objects"], "deletion"), **{name: hold[name] for name in ("id", "resource")}
        )
        yield "attention", hold["reason"], message, hold["hint"]


def _other_reasons(content: Json, config_error: str | None, store_message: str | None) -> Iterator[_Reason]:
    if dead := content["outbox"]["deadLetters"]:
        yield (
            "attention",
            "DeadLetters",
            f"{count(dead, 'write')} rejected permanently; retried hourly and at the next change",
            "crsyncer pending list shows each with the reason; correct the object or the schema, then: crsyncer pending"
            " retry",
        )
    if config_error is not None:
        yield (
            "attention",
            "ConfigRejected",
            f"the new configuration was rejected, the previous one is still used: {config_error}",
            "correct it; the agent reads the file again when it changes",
        )
    store = content["store"]
    why = f": {store_message}" if store_message else ""
    if store["state"] == "unreadable":
        hint = "run this as the agent's user, or as root; at its start the agent replaces a broken store"
        yield "degraded", "StateDegraded", f"the store cannot be read{why}", hint
    elif store["state"] not in _GOOD_STORE_STATES:
        hint = f"is the disk of {store['path']} full, read-only or broken? The agent syncs on from memory"
        yield "degraded", "StateDegraded", f"the store is {store['state']}{why}", hint


def _startup_reasons(content: Json, ready: bool) -> Iterator[_Reason]:
    states = {side: content["sides"][side]["state"] for side in Side}
    connecting = [side for side in Side if states[side] == "connecting"]
    if connecting or (not ready and states[Side.ROBOT] == "connected"):
        what = f"connecting to the {' and the '.join(connecting)}" if connecting else "reading the robot's CRDs"
        yield "degraded", "Starting", f"the agent is {what}", "wait a moment"
    if set(states.values()) != {"connected"}:
        return  # already reported with the connection
    for kind in content["kinds"]:
        unlisted = None in kind["objects"].values()
        if kind["state"] == "waiting" and not unlisted:
            message = (
                f"{kind['resource']}: the watch on one side is not running: {kind['message'] or 'no reason given'}"
            )
            yield "degraded", "NotWatched", message, "the agent retries; if this stays, see its log"
        elif kind["state"] in ("listing", "waiting") and unlisted:
            message = f"{kind['resource']}: {kind['message'] or 'not listed on both sides yet'}"
            yield "degraded", "NotListed", message, "wait a moment; if this stays, see the agent's log"


def _stuck_reasons(content: Json, now: float, pending_seconds: Mapping[str, Mapping[str, float]]) -> Iterator[_Reason]:
    """Work that has been pending for too long although both sides are connected."""
    if any(content["sides"][side]["state"] != "connected" for side in Side):
        return
    connected = min(now - unix(content["sides"][side]["since"]) for side in Side)
    for resource in [kind["resource"] for kind in content["kinds"] if kind["state"] not in _KINDS]:
        for what, seconds in pending_seconds.get(resource, {}).items():
            limit = _FINALIZERS_AFTER_SECONDS if what == "finalizers" else _STUCK_AFTER_SECONDS
            if min(seconds, connected) > limit:
                code, message, hint = _STUCK[what]
                since = f"for {duration(seconds)}, since {rfc3339(now - seconds)}"
                yield "degraded", code, f"{resource}: {message} {since}", hint
