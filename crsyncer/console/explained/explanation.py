"""Explains rule by rule why an object is, or is not, on the other side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crsyncer.console.compare.differences import difference
from crsyncer.console.explained.explain_policy import (
    ON,
    SEEDS,
    Step,
    api_step,
    primary_steps,
    related_steps,
    status_steps,
)
from crsyncer.core.content.annotations import ROBOT_LABEL, SPEC_SOURCE
from crsyncer.core.content.object_content import concealed, content_of, leaf_differences
from crsyncer.core.content.shape import MutationFailed
from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.kinds.kind_policy import KindPolicy, Version
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Found, Gap, Json, Key, Record, Side, Tombstone, View
from crsyncer.core.pair.actions import NOTHING, Create, Delete, Hold, HoldReason, Plan, Seed, Until, Update, Wait
from crsyncer.core.pair.decide import is_ahead
from crsyncer.core.pair.own_status import own_name, receiver
from crsyncer.core.reports.facts import CAUSES, hold_rule
from crsyncer.core.reports.text import rfc3339
from crsyncer.errors import SyncError

SCHEMA = "crsyncer.explain/v1"
_UNTIL = {
    Until.UPSTREAM_LISTED: "S5.4",
    Until.COPIES_LISTED: "S4.1",
    Until.STATUS_SENT: "S5.2",
    Until.STATUS_SHOWN: "S4.4",
    Until.VERIFIED: "S5.5",
    Until.REVERTIBLE: "S3.5",
    Until.FINALIZED: "C6.1",
    Until.RELATED_GONE: "C6.3",
}


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """All facts about one object. `kind` is the kind's row in the status document."""

    resource: str
    key: Key
    kind: Json | None = None
    """None: no CRD on the robot is annotated for it."""
    annotated: tuple[str, ...] = ()
    """The kinds of the CRDs that are annotated."""
    notes: tuple[Step, ...] = ()
    """What stopped without being asked to: why a kind has no row any more, or what a former copy waits for (S1.8)."""
    policies: tuple[Json, ...] = ()
    """The SyncPolicies that name the kind, rows of the status document."""
    policy: KindPolicy | None = None
    """None: the kind cannot be synced; `kind` has the reason."""
    running: bool = True
    """Whether an agent runs; without one, nothing is planned."""
    is_comparable: bool = True
    """Whether the bodies can be compared: without an agent, the steps of a SyncPolicy are not known."""
    connections: Mapping[Side, str] = field(default_factory=dict)
    """The state of each side."""
    observations: Mapping[Side, Found] = field(default_factory=lambda: dict.fromkeys(Side, Gap.UNSEEN))
    bodies: Mapping[Side, Json] = field(default_factory=dict)
    plan: Plan = NOTHING
    record: Record = field(default_factory=Record)
    pending: tuple[Json, ...] = ()
    """Its rows of `crsyncer pending list`: a status that waits, content that is rejected."""
    error: str = ""
    """Why the last write of the copy failed, which is tried again."""
    next_try: float | None = None
    """When that is, in Unix time, seconds; None: at once."""
    tombstone: Tombstone | None = None
    holds: tuple[Json, ...] = ()
    """Its holds, rows of the status document."""
    related: tuple[Json, ...] = ()
    """The objects that go with it, a row for each entry of its kind's SyncPolicy (C5)."""
    primaries: tuple[Json, ...] | None = ()
    """The objects that it goes with; None: they are not all known."""
    copy: Key | None = None
    """What the copy is called, or will be; None: as the kind's policy says."""
    lacks_status: bool = False
    """Downstream answers that it has no `/status` (C5.5)."""


def explain(facts: ObjectFacts) -> Json:
    """The explanation (schema crsyncer.explain/v1), most general rule first."""
    steps: list[Json] = [{"rule": rule, "ok": ok, "text": text} for rule, ok, text in _steps(facts)]
    state, summary = _verdict(facts, steps)
    policy = facts.policy
    return {
        "schema": SCHEMA,
        "resource": facts.resource,
        "namespace": facts.key.namespace,
        "name": facts.key.name,
        "copy": _copy(facts),
        "agent": "running" if facts.running else "stopped",
        "state": state,
        "summary": summary,
        "specSource": policy.upstream.value if policy is not None else None,
        "objects": {side.value: _object(facts, side) for side in Side},
        "differences": [
            {"path": path, policy.upstream.value: wanted, policy.downstream.value: found}
            for path, wanted, found in _differences(facts, policy)
        ]
        if policy is not None
        else [],
        "steps": steps,
        "pending": list(facts.pending),
        "related": list(facts.related),
        "primaries": list(facts.primaries or ()),
        "holds": [{name: hold[name] for name in ("id", "reason", "since", "message", "hint")} for hold in facts.holds],
    }


def stored_policy(kind: Json, robot: str, namespaces: Namespaces) -> KindPolicy | None:
    """The policy, as far as a row of the status document has it; None when the kind cannot be synced."""
    if kind["version"] is None or kind["state"] in ("misconfigured", "version-mismatch"):
        return None
    plural, _, group = kind["resource"].partition(".")
    cloud_plural, _, cloud_group = (kind.get("cloudResource") or kind["resource"]).partition(".")
    endpoint = Endpoint(group, plural, "", namespaced=kind["scope"] == "Namespaced", version=kind["version"])
    cloud_scope = kind.get("cloudScope") or kind["scope"]
    in_cloud = replace(endpoint, group=cloud_group, plural=cloud_plural, namespaced=cloud_scope == "Namespaced")
    return KindPolicy(
        on_robot=endpoint,
        in_cloud=in_cloud,
        versions=(Version(kind["version"], True, True, True),),
        upstream=Side(kind["specSource"]),
        filtered=kind["filterByRobotName"],
        robot=robot,
        subtree=kind["statusSubtree"],
        namespaces=namespaces,
    )


def _steps(facts: ObjectFacts) -> Iterator[Step]:
    kind, policy = facts.kind, facts.policy
    if kind is None:
        others = f"; annotated are: {', '.join(facts.annotated)}" if facts.annotated else ""
        yield "S1.2", False, f"no CRD {facts.resource} on the robot is annotated with {SPEC_SOURCE}{others}"
        yield from facts.notes
        yield from (("C1.3", False, f"SyncPolicy {p['name']} is not followed: {p['message']}") for p in facts.policies)
        return
    if policy is None:
        rule = kind.get("rule")
        yield rule or "S1", False if rule else None, f"the kind is {kind['state']}: {kind['message']}"
        if kind.get("api"):
            yield api_step(kind["api"])
        return
    yield "S1.2", True, f"the {policy.upstream} owns spec and lifecycle, the {policy.downstream} owns the status"
    if kind.get("policy"):
        what = "names the kind, for objects that go with others" if policy.related else "is for the kind"
        yield "C1.3", True, f"SyncPolicy {kind['policy']} {what}"
    if rule := kind.get("rule"):
        yield rule, False, f"the kind is {kind['state']}: {kind['message']}"
    else:
        yield "S1.5", True, f"both sides serve version {policy.version}"
    if cloud := kind.get("cloudResource"):
        yield "C7", True, f"in the cloud it is {cloud}, scope {kind['cloudScope']}"
    yield from facts.notes
    if kind.get("api"):
        yield api_step(kind["api"])
    if not facts.running:
        yield "S7.1", None, "the agent is not running: nothing is written; this is the last state in its store"
    for side in Side:
        if facts.running and facts.connections[side] != "connected":
            yield "S7.1", None, f"the {side} is {facts.connections[side]}: its last known state is used"
    if policy.places != ("",) and facts.key.namespace not in policy.places:
        setting = "--namespace-map" if policy.namespaces.mapped else "--namespace"
        yield "S1.7", False, f"the agent syncs namespaced kinds only in {', '.join(policy.places)} ({setting})"
    yield from _of_filter(facts, kind, policy)
    yield from _of_observations(facts, policy)
    yield from _of_content(facts, policy)
    for hold in facts.holds:
        rule = hold_rule(HoldReason(hold["reason"]), by_policy=bool(kind.get("policy")))
        yield rule, False, f"{hold['reason']} ({hold['id']}): {hold['message']}; {hold['hint']}"
    yield from _of_status(facts, policy)
    yield from _of_finalizer(facts, policy)
    yield from related_steps(facts.related)


def _of_filter(facts: ObjectFacts, kind: Json, policy: KindPolicy) -> Iterator[Step]:
    selector = kind.get("selector") or policy.selector
    if policy.related:
        yield from primary_steps(policy, facts.primaries)
    if not selector:
        if not policy.related:
            yield "S2.1", True, f"every object of the kind {ON[policy.upstream]} is synced"
        return
    is_label = selector == f"{ROBOT_LABEL}={policy.robot}"
    wanted = f"labelled {selector}" if is_label else f"selected by {selector}"
    match facts.observations[policy.upstream]:
        case View():
            yield "S2.1", True, f"the object is {wanted}"
        case Gap.UNSEEN:
            yield "S2.2", None, f"only an object {wanted} is synced"
        case _ if facts.tombstone is None and facts.observations[policy.downstream] is Gap.ABSENT:
            that = "this label" if is_label else "that"
            text = f"no such object {ON[policy.upstream]} is {wanted}; without {that} it is not synced"
            yield "S2.2", False, text


def _of_observations(facts: ObjectFacts, policy: KindPolicy) -> Iterator[Step]:
    for side in (policy.upstream, policy.downstream):
        observation = facts.observations[side]
        if policy.related and not facts.primaries and side is policy.upstream:
            continue  # originals that nothing refers to are not looked at
        if isinstance(observation, View):
            terminating = ", and is being deleted there" if observation.terminating else ""
            yield "S2", True, f"it exists {ON[side]}{terminating}"
        elif observation is Gap.UNSEEN:
            yield "S7.1", None, f"it is not known whether the {side} has it; nothing is deleted because of that"
        elif side is policy.upstream and facts.tombstone is not None:
            yield "S7.1", True, f"it was deleted {ON[side]}; recorded at {rfc3339(facts.tombstone.since)}"
        else:
            yield "S2", True, f"it does not exist {ON[side]}, as a complete list shows"


def _of_content(facts: ObjectFacts, policy: KindPolicy) -> Iterator[Step]:
    if row := _pending(facts, "content"):
        yield "S3.6", False, f"the {policy.downstream} rejects the copy: {row['error']}"
    up, down = facts.observations[policy.upstream], facts.observations[policy.downstream]
    match facts.plan.content:
        case Create():
            yield "S3.2", None, f"the copy must be created {ON[policy.downstream]}"
        case Seed(follows=follows):
            yield SEEDS[follows]
        case Update(why=why) | Delete(why=why):
            done, rule, cause = CAUSES[why]
            yield rule, None, f"the copy must be {done}: {cause}"
        case Wait(until=until) if until is not Until.RETRY:
            yield _UNTIL[until], None, f"nothing is written to the {policy.downstream} until {until}"
        case Hold(message=message, hint=hint, reason=reason):
            if not facts.holds:
                rule = hold_rule(reason, by_policy=policy.sync_policy is not None)
                yield rule, False, f"{message}; {hint}"
        case None if isinstance(up, View) and isinstance(down, View):
            yield _agreement(facts, policy, up, down)
        case None if isinstance(down, View) and up is Gap.ABSENT:
            if down.terminating:
                yield _finalizing(facts, policy)
            elif facts.running:
                yield "S5.3", True, "crsyncer does not own the object, so it is not deleted"
            else:
                yield "S5", None, "the agent decides about the copy when it runs"
        case None if isinstance(up, View) and up.terminating and down is Gap.ABSENT:
            yield "S5", True, "the upstream object is being deleted, so no copy is created"
    if facts.error and isinstance(facts.plan.content, Create | Seed | Update | Delete):
        again = f"at {rfc3339(facts.next_try)}" if facts.next_try is not None else "soon"
        yield "S10", None, f"the last try has failed, the next one is {again}: {facts.error}"


def _finalizing(facts: ObjectFacts, policy: KindPolicy) -> Step:
    names = ", ".join(_finalizers(facts, policy.downstream)) or "not known"
    return "S5.1", None, f"the copy is being deleted and waits for its finalizers: {names}"


def _agreement(facts: ObjectFacts, policy: KindPolicy, up: View, down: View) -> Step:
    if down.terminating:
        return _finalizing(facts, policy)
    if down.stamp is not None and (down.stamp.upstream_uid != up.uid or is_ahead(up, down, facts.record)):
        return "S5.4", None, f"nothing is written to the {policy.downstream} until {Until.UPSTREAM_LISTED}"
    if not facts.is_comparable:
        return "C4.1", None, "a SyncPolicy changes what is copied; the agent compares both sides when it runs"
    if policy.shape.keep_local:
        return "C3.2", True, "upstream's content is on the copy, whose other fields may differ"
    paths = [path for path, _, _ in _differences(facts, policy) if not path.startswith("status")]
    if not paths:
        return "S3.2", True, "both sides have the same content"
    where = ", ".join(paths[:5])
    if not facts.running:
        return "S3.2", None, f"the content differs in {where}"
    why = "the server changed it at admission, or the CRD says drift: keep"
    return "S3.5", True, f"the content differs in {where}: {why}"


def _of_status(facts: ObjectFacts, policy: KindPolicy) -> Iterator[Step]:
    row = _pending(facts, "status")
    up, down = facts.observations[policy.upstream], facts.observations[policy.downstream]
    up, record = receiver(up, facts.record) if isinstance(up, View) else (up, facts.record)
    if isinstance(up, View) and up.shared:
        yield "F10.3", True, f"its status goes to RobotObjectStatus {own_name(policy, facts.key)}, not to it"
    if row is not None and row["dead"]:
        yield "S10", False, f"the {policy.upstream} rejects the status permanently: {row['error']}"
    elif row is not None:
        answer = f"; last answer: {row['error']}" if row["error"] else ""
        yield "S6.3", None, f"the status waits to be sent to the {policy.upstream}{answer}"
    elif isinstance(facts.plan.status, Hold):
        if not facts.holds:
            yield "S4.5", False, f"{facts.plan.status.message}; {facts.plan.status.hint}"
    elif isinstance(down, View) and isinstance(up, View) and policy.related:
        waits = facts.plan.content is not None
        yield from status_steps(policy, up, down, facts.record, lacks_status=facts.lacks_status, waits=waits)
    elif isinstance(down, View) and isinstance(up, View):
        if down.stamp is None or down.stamp.upstream_uid != up.uid:
            yield "S5.4", None, "no status is sent until the copy belongs to this upstream object"
        elif not down.status:
            yield "S4.3", True, "the copy has no status to send"
        elif record.acknowledged != down.status:
            yield "S4.1", None, "the newest status has not been sent yet"
        elif any(path.startswith("status") for path, _, _ in _differences(facts, policy)):
            why = "its schema or another writer changed it, or the newest status was dropped"
            yield "S4.8", True, f"the {policy.upstream} has another status: {why}"
        else:
            yield "S4.1", True, f"the {policy.upstream} has acknowledged the newest status"


def _of_finalizer(facts: ObjectFacts, policy: KindPolicy) -> Iterator[Step]:
    row, up = _pending(facts, "finalizer"), facts.observations[policy.upstream]
    if row is not None and row["dead"]:
        refused = f"the {policy.upstream} rejects this robot's finalizer"
        yield "C6.2", False, f"{refused}, so no copy is made: {row['error']}"
    elif row is not None:
        answer = f"; last answer: {row['error']}" if row["error"] else ""
        yield "C6.3", None, f"this robot's finalizer is to be removed {ON[policy.upstream]}{answer}"
    elif isinstance(up, View) and up.finalized and up.terminating:
        text = f"the object waits {ON[policy.upstream]} until its copy has gone and the last status is up"
        over = f"; the grace period ends at {rfc3339(up.deleted_at + policy.grace_seconds)}"
        yield "C6.3", None, text + (over if policy.blocking and up.deleted_at else "")
    elif isinstance(up, View) and up.finalized:
        yield "C6.1", True, f"deleted {ON[policy.upstream]}, the object will wait until its copy has gone"


def _verdict(facts: ObjectFacts, steps: list[Json]) -> tuple[str, str]:
    wrong = [step for step in steps if step["ok"] is False]
    if wrong:
        if facts.holds or isinstance(facts.plan.content, Hold) or isinstance(facts.plan.status, Hold):
            state = "held"
        else:
            state = "refused" if wrong[0]["rule"] in ("S3.6", "S10") else "not-synced"
        return state, wrong[0]["text"]
    waiting = [step for step in steps if step["ok"] is None]
    if waiting:
        # The last step is the most specific one.
        return "waiting", waiting[-1]["text"]
    if not any(isinstance(observation, View) for observation in facts.observations.values()):
        return "absent", "neither side has it"
    return "in-sync", "there is nothing to do"


def _copy(facts: ObjectFacts) -> Json | None:
    """What the copy is called, where a SyncPolicy may name it or that is not what upstream's object is called."""
    policy = facts.policy
    if policy is None or (policy.places != ("",) and facts.key.namespace not in policy.places):
        return None
    try:
        copy = facts.copy or policy.copy_name(facts.key, facts.observations[policy.downstream])
    except SyncError:  # the templates make no valid name: that is a dead letter
        return None
    is_told = copy != facts.key or bool((facts.kind or {}).get("policy"))  # C1.5
    return {"namespace": copy.namespace, "name": copy.name} if is_told else None


def _object(facts: ObjectFacts, side: Side) -> Json:
    observation = facts.observations[side]
    if not isinstance(observation, View):
        return {"state": observation.value}
    return {
        "state": "seen",
        "uid": observation.uid,
        "resourceVersion": observation.resource_version,
        "generation": observation.generation,
        "terminating": observation.terminating,
        "finalizers": _finalizers(facts, side),
        "object": _shown(facts.bodies.get(side), facts.policy),
    }


def _shown(body: Json | None, policy: KindPolicy | None) -> Json | None:
    """An object as it is shown; of a Secret, only digests of its values, also of those in annotations (C5.6)."""
    if body is None or policy is None or not policy.sensitive:
        return body
    metadata = body["metadata"] | {"annotations": concealed(body["metadata"].get("annotations"), policy.digest_key)}
    names: Json = {name: body[name] for name in ("apiVersion", "kind") if name in body}
    return {**names, **concealed(content_of(body), policy.digest_key), "metadata": metadata}


def _finalizers(facts: ObjectFacts, side: Side) -> list[str]:
    return facts.bodies.get(side, {"metadata": {}})["metadata"].get("finalizers") or []


def _differences(facts: ObjectFacts, policy: KindPolicy) -> list[tuple[str, Any, Any]]:
    """The fields that differ: path, upstream's value, downstream's value."""
    up, down = facts.bodies.get(policy.upstream), facts.bodies.get(policy.downstream)
    seen = isinstance(facts.observations[policy.upstream], View)
    if up is None or down is None or not seen or not facts.is_comparable:
        return []
    try:
        found = difference(up, down, policy, key=facts.key, generations=facts.record.generations)
    except MutationFailed:  # the plan has the hold
        return []
    return [] if found is None else leaf_differences(found[policy.upstream], found[policy.downstream])


def _pending(facts: ObjectFacts, what: str) -> Json | None:
    return next((row for row in facts.pending if row["what"] == what), None)
