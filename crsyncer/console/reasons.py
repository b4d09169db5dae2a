"""The health of a status document, with the reasons for it and what the operator can do about each."""

from collections.abc import Iterable, Iterator, Mapping

from crsyncer.core.model import Json, Side
from crsyncer.core.text import NOT_YET_VALID, count, duration, rfc3339, unix
from crsyncer.core.twins import Twin

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
"""Work that is pending for longer than this while both sides are connected is reported."""
_MAX_CLOCK_SKEW_SECONDS = 60
"""API servers accept tokens with a skew of one minute (go-jose's DefaultLeeway); a Date header has whole seconds."""
_GOOD_STORE_STATES = ("ok", "rebuilt", "missing")
"""Store states that need no action; a rebuilt store only cost a relist."""

_Reason = tuple[str, str, str, str]
"""The health it means, code, message, hint."""

_STUCK = {
    "spec": (
        "Stuck",
        "a spec is pending",
        "crsyncer explain shows what is still to be done, the agent's log what was answered",
    ),
    "deletion": (
        "Stuck",
        "a deletion has not been verified",
        "may upstream be listed? The agent's log says what was answered",
    ),
    "list": ("Stuck", "a list or watch fails", "the agent's log says what was answered"),
    "status": (
        "Backlog",
        "a status waits though both sides answer",
        "crsyncer pending list says what each was answered",
    ),
}

_HOLDS = {
    "MassDeletion": (
        "{count} of {resource} held: too many deletions at once",
        "if they were meant: crsyncer holds release {id}; if not: put the objects back, and the hold ends",
    ),
    "Manual": (
        "{resource}: every deletion is held by hand ({count} so far)",
        "to let them happen again: crsyncer holds release {id}",
    ),
    "Restored": (
        "{count} of {resource} held: the other side has gone back to an older state",
        "put back what the restored side lost; to delete the copies after all: crsyncer holds release {id}",
    ),
    "KindMissing": (
        "{count} of {resource} held: the kind itself has vanished upstream",
        "put the CRD and its objects back, and the hold ends; to delete the copies after all:"
        " crsyncer holds release {id}",
    ),
    "NameTaken": (
        "{resource}: a name is taken by an object that is not a copy of ours",
        "rename or delete the object that has the name; crsyncer holds list names it",
    ),
    "Contested": (
        "{resource}: somebody else keeps changing what upstream owns",
        "find the other writer and stop it (crsyncer explain {resource} NAME shows what differs), or annotate the CRD"
        " with drift: keep",
    ),
    "StatusNotAnObject": (
        "{resource}: a status that is not an object is not sent",
        "fix the controller that writes it; crsyncer holds list names the object",
    ),
    "IdentityChanged": (
        "the {id} is another cluster than before",
        "if the cluster was rebuilt on purpose: crsyncer holds release {id}; if not: correct the kubeconfig",
    ),
}

_KINDS = {
    "misconfigured": (
        "Misconfigured",
        "its annotations cannot be followed",
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
        "grant the account list and watch, and the writes of its side; it is tried again by itself",
    ),
    "kind-missing": (
        "KindMissing",
        "a side does not serve it",
        "install the CRD on the side that lacks it; nothing was deleted, and it is tried again",
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
    twin: Twin | None = None,
    pending_seconds: Mapping[str, Mapping[str, float]] | None = None,
) -> Json:
    """The document with `health` and `reasons` filled in, the most important reason first.

    `pending_seconds`: by resource and type of work, for how long the oldest item has waited.
    """
    found = [*_kind_reasons(content), *_hold_reasons(content), *_other_reasons(content, config_error, store_message)]
    for side in unverified:
        message = f"the certificate of the {side}'s server is not verified: anybody may pose as it"
        hint = "put the CA into the kubeconfig, and leave --insecure-skip-tls-verify out"
        found.append(("degraded", "TlsNotVerified", message, hint))
    if twin is not None:
        found.append(_duplicate_reason(content, twin))
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


def _duplicate_reason(content: Json, twin: Twin) -> _Reason:
    what = f"{twin.name} wrote {twin.resource} {twin.key} in the cloud at {rfc3339(twin.time)}"
    hint = (
        "a disk image may have been cloned, or an old robot may still run: stop it, or give it its own --robot-name,"
        " account and state directory; this ends 10 minutes after its last write"
    )
    return "attention", "DuplicateInstance", f"another agent acts as {content['robot'] or 'this robot'}: {what}", hint


def _stopped_reason(content: Json) -> _Reason:
    hint = (
        f"no agent has used {content['store']['path']} yet: is this the right --state-dir?"
        if content["store"]["state"] == "missing"
        else "systemctl start crsyncer (or crsyncer run); its log says why it ended"
    )
    return "attention", "AgentStopped", "the agent is not running: nothing is synced until it is started", hint


def _clock_reasons(content: Json) -> Iterator[_Reason]:
    hint = "set this machine's clock (timedatectl status says whether it follows a time server)"
    for side in Side:
        known = content["sides"][side]
        if known["state"] != "connected":
            if known["error"] == NOT_YET_VALID:
                message = f"this machine's clock is behind: by it the {side}'s certificate is not valid yet"
                yield "degraded", "ClockSuspect", message, f"{hint}; the connection is tried again by itself"
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
                    way = known["hint"] or "it goes on when the network is back"
                    hint = f"nothing is lost, and it is tried again by itself; {way}"
                    yield "offline", "CloudOffline", f"the cloud {silent}; the robot keeps working offline", hint
                else:
                    way = known["hint"] or "is the robot's API server up?"
                    hint = f"{way} (systemctl status k3s); it is tried again by itself"
                    yield "degraded", "RobotOffline", f"the robot's own API server {silent}", hint
            case "unauthorized":
                yield (
                    "attention",
                    "CloudUnauthorized" if side is Side.CLOUD else "RobotUnauthorized",
                    f"the {side}'s API server refuses the agent's credential{error}",
                    f"renew the credential in the {side}'s kubeconfig; it is read again by itself",
                )
            case "identity-changed":
                hints = [hold["hint"] for hold in content["holds"] if hold["id"] == side]
                yield (
                    "attention",
                    "IdentityChanged",
                    f"the {side} at {known['server']} is another cluster than before: nothing is exchanged with it",
                    hints[0] if hints else hold_hint("IdentityChanged", side),
                )


def _kind_reasons(content: Json) -> Iterator[_Reason]:
    for kind in content["kinds"]:
        if kind["state"] in _KINDS:
            code, message, hint = _KINDS[kind["state"]]
            # A missing kind heals when it comes back; deletions that were held for it wait for a human.
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
            f"{count(dead, 'write')} refused for good: tried again hourly, and at the next change",
            "crsyncer pending list says which and why; correct the object or the schema, then: crsyncer pending retry",
        )
    if config_error is not None:
        yield (
            "attention",
            "ConfigRejected",
            f"the new configuration was rejected, the previous one is still used: {config_error}",
            "correct it; it is read again when it changes",
        )
    store = content["store"]
    why = f": {store_message}" if store_message else ""
    if store["state"] == "unreadable":
        hint = "look as the agent's user, or as root; a broken store is set aside when the agent starts"
        yield "degraded", "StateDegraded", f"the store cannot be read{why}", hint
    elif store["state"] not in _GOOD_STORE_STATES:
        hint = f"is the disk of {store['path']} full, read-only or broken? Syncing goes on from memory"
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
            yield "degraded", "NotWatched", message, "it is tried again by itself; if it stays, see the agent's log"
        elif kind["state"] in ("listing", "waiting") and unlisted:
            message = f"{kind['resource']}: {kind['message'] or 'not listed on both sides yet'}"
            yield "degraded", "NotListed", message, "wait a moment; if it stays, see the agent's log"


def _stuck_reasons(content: Json, now: float, pending_seconds: Mapping[str, Mapping[str, float]]) -> Iterator[_Reason]:
    """Work that has been pending for too long although both sides are connected."""
    if any(content["sides"][side]["state"] != "connected" for side in Side):
        return
    connected = min(now - unix(content["sides"][side]["since"]) for side in Side)
    for resource in [kind["resource"] for kind in content["kinds"] if kind["state"] not in _KINDS]:
        for what, seconds in pending_seconds.get(resource, {}).items():
            if min(seconds, connected) > _STUCK_AFTER_SECONDS:
                code, message, hint = _STUCK[what]
                since = f"for {duration(seconds)}, since {rfc3339(now - seconds)}"
                yield "degraded", code, f"{resource}: {message} {since}", hint
