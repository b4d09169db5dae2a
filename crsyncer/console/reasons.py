"""The health of a status document, with the reasons for it and what the operator can do about each."""

from collections.abc import Iterable, Iterator, Mapping

from crsyncer.core.confined_account import confined_hint
from crsyncer.core.model import Json, Side
from crsyncer.core.other_agents import DuplicateAgent
from crsyncer.core.text import NOT_TRUSTED, NOT_YET_VALID, count, duration, rfc3339, unix

_STUCK_AFTER_SECONDS = 120.0
_FINALIZERS_AFTER_SECONDS = 600.0
"""Work that is pending for longer than this while both sides are connected is reported."""
MAX_CLOCK_SKEW_SECONDS = 60
"""API servers accept tokens with a skew of one minute (go-jose's DefaultLeeway); a Date header has whole seconds."""
_GOOD_STORE_STATES = ("ok", "rebuilt", "missing")
"""Store states that need no action; a rebuilt store cost only a relist."""
START_HINT = "systemctl start crsyncer (or crsyncer run)"
_FIRST_START = "systemctl enable --now crsyncer (or crsyncer run)"
TLS_HINT = "add the CA to the kubeconfig and remove --insecure-skip-tls-verify"
_SET_CLOCK = "set this machine's clock (timedatectl status shows whether it follows a time server)"
_NO_CREDENTIAL = (
    "no usable credential for the {side}'s API server{error}",
    "{way}; the agent reads the kubeconfig again and retries",
)

_REASONS = {
    "attention": {
        "AgentStopped": (
            "the agent is not running: nothing is synced until it is started",
            f"{START_HINT}; its log shows why it ended",
        ),
        "IdentityChanged": (
            "the {id} is another cluster than before",
            "if the cluster was replaced on purpose: crsyncer holds release {id}; if not: correct the kubeconfig",
        ),
        "DuplicateInstance": (
            "a second agent uses the name of {robot}: {write}",
            "a disk image was cloned, or an old robot still runs: stop it, or give it its own --robot-name, account and"
            " state directory; this message ends 10 minutes after its last write",
        ),
        "ClockSuspect": (
            "this machine's clock is behind: the {side}'s certificate is not valid yet by this clock",
            f"{_SET_CLOCK}; the agent retries the connection",
        ),
        "CloudUnauthorized": _NO_CREDENTIAL,
        "RobotUnauthorized": _NO_CREDENTIAL,
        "Restored": (
            "{deletions} of {resource} held: upstream was restored to an older state, or mapped to other namespaces",
            "restore a newer backup, and the hold ends; or create again what is still needed, then: crsyncer holds"
            " release {id} deletes the other copies",
        ),
        "SelectionChanged": (
            "{deletions} of {resource} held: an edit of its selection leaves these copies without a selected original",
            "undo the edit, and the hold ends; if it is intended: crsyncer holds release {id} deletes the copies",
        ),
        "Manual": (
            "{resource}: an operator holds every deletion ({deletions} so far)",
            "to allow deletions again: crsyncer holds release {id}",
        ),
        "MassDeletion": (
            "{deletions} of {resource} held: too many deletions at once",
            "if intended: crsyncer holds release {id}; if not: restore the objects, and the hold ends",
        ),
        "KindMissing": (
            "{deletions} of {resource} held: the CRD was removed upstream",
            "restore the CRD and its objects, and the hold ends; to delete the copies: crsyncer holds release {id}",
        ),
        "Misconfigured": (
            "its annotations are invalid",
            "correct the annotations of the CRD on the robot; until then the kind is not synced",
        ),
        "PolicyMisconfigured": (
            "SyncPolicy {name}: {why}",
            "correct or delete the SyncPolicy on the robot; until then nothing is synced because of it",
        ),
        "ConfigRejected": (
            "the new configuration was rejected, the previous one is still used: {error}",
            "correct it; the agent reads the file again when it changes",
        ),
        "VersionMismatch": (
            "the two sides serve no common version",
            "serve one version of the CRD on both sides",
        ),
        "Forbidden": (
            "the agent's account may not use it",
            "grant the account list and watch, and the writes on this side (crsyncer doctor names them), or set"
            " namespaces: [robot-NAME] where it has that one alone; the agent retries",
        ),
        "NameTaken": ("{resource}: a name is taken by an object that crsyncer did not create", ""),
        "Contested": (
            "{resource}: another writer keeps changing fields that upstream owns",
            "",
        ),
        "StatusNotAnObject": ("{resource}: a status that is not an object is not sent", ""),
        "MutationFailed": (
            "{resource}: a step of its policy fails on an object, whose copy or status stays as it is",
            "correct the object or the step; crsyncer holds list names the object and the step",
        ),
        "APIHeld": (
            "the CRD {resource} does not follow: {why}",
            "undo the change of the CRD; to let it pass: crsyncer holds release {id}; what it takes away is then lost"
            " at each object's next write",
        ),
        "Duplicate": (
            "{resource}: an original has two copies, one of which is not touched",
            "",
        ),
        "RelatedFailed": (
            "{resource}: it cannot be told which objects go with an object; the object itself is synced",
            "correct the object, or spec.related of its SyncPolicy; crsyncer holds list names the object and the place",
        ),
        "DeadLetters": (
            "{writes} rejected permanently; retried hourly and at the next change",
            "crsyncer pending list shows each with the reason; correct the object or the schema, then: crsyncer pending"
            " retry",
        ),
    },
    "degraded": {
        "SecretUnknown": (
            "{resource}: the copy of a Secret waits for its original, whose values are not known",
            "",
        ),
        "KindMissing": (
            "a side does not serve it",
            "install the CRD on the side that lacks it; nothing is deleted because of this, and the agent retries",
        ),
        "StateDegraded": (
            "the store is {state}{why}",
            "is the disk of {path} full, read-only or broken? The agent syncs on from memory",
        ),
        "ClockSuspect": ("this machine's clock is {offset} that of the {side}'s API server", _SET_CLOCK),
        "TlsNotVerified": (
            "the certificate of the {side}'s server is not verified: anybody can impersonate the server",
            TLS_HINT,
        ),
        "RobotOffline": (
            "the robot's own API server {silence}",
            "{way} (systemctl status k3s); the agent retries",
        ),
        "Starting": ("the agent is {work}", "wait a moment"),
        "NotListed": ("{resource}: {why}", "wait a moment; if this stays, see the agent's log"),
        "NotWatched": (
            "{resource}: the watch on one side is not running: {why}",
            "the agent retries; if this stays, see its log",
        ),
        "Stuck": ("{resource}: {work} {time}", "the server's answer is in the agent's log"),
        "DeletionOverdue": (
            "{resource}: {copies} not deleted within the grace period, and upstream waits no longer",
            "crsyncer explain shows what a copy waits for; its finalizer's controller must remove it",
        ),
        "Backlog": (
            "{resource}: a status waits to be sent {time}",
            "crsyncer pending list shows the server's answer for each",
        ),
    },
    "offline": {
        "CloudOffline": (
            "the cloud {silence}; the robot keeps working offline",
            "{kept}the agent retries; {way}",
        ),
    },
}
"""By health, the worst first, and code, the most important first: the usual message and hint (empty: the hold's)."""
_SEVERITY = (*_REASONS, "healthy")
_ORDER = [(health, code) for health, texts in _REASONS.items() for code in texts]
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
    return _REASONS[_hold_health(reason)][reason][1].format(id=hold, resource=resource)


def _hold_health(reason: str) -> str:
    """The health that a hold means: for most a human has to decide something."""
    return "attention" if reason in _REASONS["attention"] else "degraded"


def worst(healths: Iterable[str]) -> str:
    """The worst of several healths."""
    return min(healths, key=_SEVERITY.index, default="healthy")


def kind_hint(state: str, policy: str | None = None) -> str:
    """The hint for a kind in a state in which it is not synced; `policy` is the name of its SyncPolicy, if any."""
    health, code = _KINDS[state]
    if policy is not None and code == "Misconfigured":
        text = f"correct the SyncPolicy {policy} or the annotations of the CRD on the robot"
        return f"{text}; until then the kind is not synced"
    return _REASONS[health][code][1]


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
) -> Json:
    """The document with `health` and `reasons` filled in, the most important reason first.

    `pending_seconds`: by resource and type of work, for how long the oldest item has waited. `overdue`: by resource,
    how many copies have outlived the grace period of a deletion (C6.4).
    """
    found = [
        *_kind_reasons(content),
        *_api_reasons(content),
        *_policy_reasons(content),
        *_hold_reasons(content),
        *_store_reasons(content["store"], store_message),
    ]
    found += [_reason("degraded", "TlsNotVerified", side=side) for side in tls_unverified]
    if dead := content["outbox"]["deadLetters"]:
        found.append(_reason("attention", "DeadLetters", writes=count(dead, "write")))
    for resource, copies in (overdue or {}).items():
        if copies:
            found.append(_reason("degraded", "DeletionOverdue", resource=resource, copies=_copies(copies)))
    if config_error is not None:
        found.append(_reason("attention", "ConfigRejected", error=config_error))
    if duplicate is not None:
        write = f"{duplicate.name} wrote {duplicate.resource} {duplicate.key} in the cloud at {rfc3339(duplicate.time)}"
        found.append(_reason("attention", "DuplicateInstance", robot=content["robot"] or "this robot", write=write))
    if content["agent"]["state"] == "stopped":
        unused = f"{_FIRST_START}; no agent has used {content['store']['path']} yet: is this the right --state-dir?"
        hint = unused if content["store"]["state"] == "missing" else ""
        found.append(_reason("attention", "AgentStopped", hint=hint))
    else:
        found += [*_clock_reasons(content), *_connection_reasons(content, now), *_startup_reasons(content, ready)]
        found += _stuck_reasons(content, now, pending_seconds or {})
    found.sort(key=lambda reason: _ORDER.index(reason[:2]))
    reasons = [{"code": code, "message": message, "hint": hint} for _, code, message, hint in found]
    return content | {"health": found[0][0] if found else "healthy", "reasons": reasons}


def _copies(number: int) -> str:
    return f"{number} copy is" if number == 1 else f"{number} copies are"


def _reason(health: str, code: str, *, message: str = "", hint: str = "", **values: object) -> _Reason:
    """A reason with its usual texts, in which `values` are filled in, or with other texts."""
    usual = _REASONS[health][code]
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
            message = f"{resource}: {why or _REASONS[health][code][0]}"
            hint = confined_hint(message) or kind_hint(state, kind.get("policy"))
            # A missing kind recovers when it is served again; its held deletions wait for an operator.
            yield _reason("attention" if kind["held"] else health, code, message=message, hint=hint)


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


def _hold_reasons(content: Json) -> Iterator[_Reason]:
    changed = any(side["state"] == "identity-changed" for side in content["sides"].values())
    for hold in content["holds"]:
        if not changed or hold["reason"] != "IdentityChanged":  # that is reported with the connection
            deletions = count(hold["objects"], "deletion")
            names = {"id": hold["id"], "resource": hold["resource"]}
            why = hold.get("message") or ""
            health = _hold_health(hold["reason"])
            yield _reason(health, hold["reason"], hint=hold["hint"], deletions=deletions, why=why, **names)


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
