"""Why an object is, or is not, on the other side: rule by rule, from what is known of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crsyncer.console.reasons import hold_hint
from crsyncer.console.report import HoldFacts, pending_status, rejected_content
from crsyncer.core.actions import NOTHING, Create, Delete, Hold, HoldReason, Plan, Seed, Until, Update, Wait, Why
from crsyncer.core.model import Found, Gap, Json, Key, Pending, Record, Side, Tombstone, View
from crsyncer.core.policy import ROBOT_LABEL, SPEC_SOURCE, Policy, Version
from crsyncer.core.project import compose_copy, map_generation, status_value, unlike
from crsyncer.core.text import rfc3339

SCHEMA = "crsyncer.explain/v1"
_KIND_RULES = {"misconfigured": "S1.2", "version-mismatch": "S1.5", "kind-missing": "S1.6", "forbidden": "S1.6"}
_HOLD_RULES = {
    HoldReason.NAME_TAKEN: "S5.3",
    HoldReason.CONTESTED: "S3.5",
    HoldReason.ODD_STATUS: "S4.5",
}
_WHY = {
    Why.CHANGED: ("S3.2", "has changed upstream"),
    Why.DRIFT: ("S3.5", "was changed downstream"),
    Why.ADOPT: ("S5.4", "was not made by this agent, and is adopted"),
    Why.GONE: ("S5", "is to be deleted: upstream does not have the object"),
    Why.TERMINATING: ("S5", "is to be deleted: its upstream object is being deleted"),
    Why.REPLACED: ("S5.4", "is to be deleted and made anew: its upstream object was re-created"),
}
_UNTIL = {
    Until.UPSTREAM_LISTED: "S5.4",
    Until.COPIES_LISTED: "S4.1",
    Until.STATUS_SENT: "S5.2",
    Until.STATUS_SHOWN: "S4.4",
}
_ON = {Side.CLOUD: "in the cloud", Side.ROBOT: "on the robot"}


@dataclass(frozen=True, slots=True)
class Refused:
    """What was answered when something could not be done. Times are Unix time, in seconds."""

    message: str = ""
    next_try: float | None = None


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """Everything that is known of one object. `kind` is the kind's row in the status document."""

    resource: str
    key: Key
    kind: Json | None = None
    """None: no CRD on the robot is annotated for it."""
    known: tuple[str, ...] = ()
    """The kinds that are annotated."""
    policy: Policy | None = None
    """None: the kind cannot be synced, for `kind` says why."""
    namespaces: tuple[str, ...] = ()
    """Those that the agent is restricted to; empty: none."""
    running: bool = True
    """Whether an agent runs; without one, nothing is planned."""
    connections: Mapping[Side, str] = field(default_factory=dict)
    """The state of each side."""
    observations: Mapping[Side, Found] = field(default_factory=lambda: dict.fromkeys(Side, Gap.UNSEEN))
    bodies: Mapping[Side, Json] = field(default_factory=dict)
    plan: Plan = NOTHING
    record: Record = field(default_factory=Record)
    pending: Pending | None = None
    tombstone: Tombstone | None = None
    holds: tuple[HoldFacts, ...] = ()
    content: Refused = Refused()
    """What downstream answered to the copy, if it refuses it."""
    next_status: float | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """One rule, and whether it is fulfilled: None means not yet."""

    rule: str
    ok: bool | None
    text: str


def explain(facts: ObjectFacts) -> Json:
    """The explanation (schema crsyncer.explain/v1), most general rule first."""
    steps = list(_steps(facts))
    state, summary = _verdict(facts, steps)
    policy = facts.policy
    return {
        "schema": SCHEMA,
        "resource": facts.resource,
        "namespace": facts.key.namespace,
        "name": facts.key.name,
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
        "steps": [{"rule": step.rule, "ok": step.ok, "text": step.text} for step in steps],
        "pending": list(_pending(facts)),
        "holds": [
            {"id": h.id, "reason": h.reason, "since": rfc3339(h.since), "message": h.message, "hint": _hint(h)}
            for h in facts.holds
        ],
    }


def _hint(hold: HoldFacts) -> str:
    return hold.hint or hold_hint(hold.reason, hold.id, hold.resource)


def stored_policy(kind: Json, robot: str) -> Policy | None:
    """The policy as far as a row of the status document tells it; None when the kind cannot be synced."""
    if kind["version"] is None or kind["state"] in ("misconfigured", "version-mismatch"):
        return None
    plural, _, group = kind["resource"].partition(".")
    return Policy(
        group=group,
        plural=plural,
        kind="",
        namespaced=kind["scope"] == "Namespaced",
        versions=(Version(kind["version"], True, True, True),),
        upstream=Side(kind["specSource"]),
        filtered=kind["filterByRobotName"],
        robot=robot,
        subtree=kind["statusSubtree"],
        version=kind["version"],
    )


def _steps(facts: ObjectFacts) -> Iterator[_Step]:
    kind, policy = facts.kind, facts.policy
    if kind is None:
        others = f"; annotated are: {', '.join(facts.known)}" if facts.known else ""
        yield _Step("S1.2", False, f"no CRD {facts.resource} on the robot is annotated with {SPEC_SOURCE}{others}")
        return
    if policy is None:
        rule = _KIND_RULES.get(kind["state"])
        yield _Step(rule or "S1", False if rule else None, f"the kind is {kind['state']}: {kind['message']}")
        return
    owners = f"spec and lifecycle come from the {policy.upstream}, status from the {policy.downstream}"
    yield _Step("S1.2", True, owners)
    if kind["state"] in _KIND_RULES:
        yield _Step(_KIND_RULES[kind["state"]], False, f"the kind is {kind['state']}: {kind['message']}")
    else:
        yield _Step("S1.5", True, f"version {policy.version} is spoken with both sides")
    if not facts.running:
        yield _Step("S7.1", None, "the agent is not running: nothing is done, and this is what its store knows")
    for side in Side:
        if facts.running and facts.connections[side] != "connected":
            yield _Step("S7.1", None, f"the {side} is {facts.connections[side]}: what it was last seen to be counts")
    if facts.namespaces and policy.namespaced and facts.key.namespace not in facts.namespaces:
        yield _Step("S1.7", False, f"of namespaced kinds only {', '.join(facts.namespaces)} is synced (--namespace)")
    yield from _of_filter(facts, policy)
    yield from _of_observations(facts, policy)
    yield from _of_content(facts, policy)
    for hold in facts.holds:
        rule = _HOLD_RULES.get(HoldReason(hold.reason), "S5.5")
        yield _Step(rule, False, f"held ({hold.reason}, {hold.id}): {hold.message}; {_hint(hold)}")
    yield from _of_status(facts, policy)


def _of_filter(facts: ObjectFacts, policy: Policy) -> Iterator[_Step]:
    if not policy.filtered:
        yield _Step("S2.1", True, f"every object of the kind {_ON[policy.upstream]} is synced")
    elif isinstance(facts.observations[policy.upstream], View):
        yield _Step("S2.1", True, f"it is labelled {ROBOT_LABEL}={policy.robot}")
    else:
        text = f"only objects labelled {ROBOT_LABEL}={policy.robot} are seen; without that label it is not synced"
        yield _Step("S2.2", None if facts.observations[policy.upstream] is Gap.UNSEEN else False, text)


def _of_observations(facts: ObjectFacts, policy: Policy) -> Iterator[_Step]:
    for side in (policy.upstream, policy.downstream):
        observation = facts.observations[side]
        if isinstance(observation, View):
            dying = ", and is being deleted there" if observation.terminating else ""
            yield _Step("S2", True, f"it was seen {_ON[side]}{dying}")
        elif observation is Gap.UNSEEN:
            text = f"whether the {side} has it is not known, and nothing is done on the strength of that"
            yield _Step("S7.1", None, text)
        elif side is policy.upstream and facts.tombstone is not None:
            yield _Step("S7.1", True, f"the {side} has deleted it; that was recorded {rfc3339(facts.tombstone.since)}")
        else:
            yield _Step("S2", True, f"the {side} does not have it: a complete list says so")


def _of_content(facts: ObjectFacts, policy: Policy) -> Iterator[_Step]:
    if facts.content.message:
        text = f"the {policy.downstream} refuses the copy: {facts.content.message}"
        yield _Step("S3.6", False, text)
    up, down = facts.observations[policy.upstream], facts.observations[policy.downstream]
    match facts.plan.content:
        case Create():
            yield _Step("S3.2", None, f"the copy is to be created {_ON[policy.downstream]}")
        case Seed():
            yield _Step("S4.4", None, "the copy is to be given upstream's status, once")
        case Update(why=why) | Delete(why=why):
            rule, text = _WHY[why]
            yield _Step(rule, None, f"the copy {text}")
        case Wait(until=until) if until is not Until.RETRY:
            yield _Step(_UNTIL[until], None, f"nothing is written to the {policy.downstream} until {until}")
        case Hold(message=message, hint=hint, reason=reason):
            if not facts.holds:
                yield _Step(_HOLD_RULES[reason], False, f"{message}; {hint}")
        case None if isinstance(up, View) and isinstance(down, View):
            yield _agreement(facts, policy, down)
        case None if isinstance(down, View) and up is Gap.ABSENT:
            if down.terminating:
                yield _Step("S5.1", None, "the copy is being deleted; its finalizers have to be done first")
            elif facts.running:
                yield _Step("S5.3", True, "the object is not ours to delete, so it stays")
            else:
                yield _Step("S5", None, "what becomes of the copy is decided when the agent runs")
        case None if isinstance(up, View) and up.terminating and down is Gap.ABSENT:
            yield _Step("S5", True, "its upstream object is being deleted, so no copy is made")


def _agreement(facts: ObjectFacts, policy: Policy, down: View) -> _Step:
    if down.terminating:
        return _Step("S5.1", None, "the copy is being deleted; its finalizers have to be done first")
    paths = [path for path, _, _ in _differences(facts, policy) if not path.startswith("status")]
    if not paths:
        return _Step("S3.2", True, "the content of both agrees")
    where = ", ".join(paths[:5])
    if not facts.running:
        return _Step("S3.2", None, f"the content differs in {where}")
    return _Step("S3.5", True, f"the content differs in {where}, by what admission made of it or as drift that is kept")


def _of_status(facts: ObjectFacts, policy: Policy) -> Iterator[_Step]:
    row, down, up = facts.pending, facts.observations[policy.downstream], facts.observations[policy.upstream]
    if row is not None and row.dead:
        yield _Step("S10", False, f"the {policy.upstream} refuses the status for good: {row.error}")
    elif row is not None:
        answered = f": {row.error}" if row.error else ""
        yield _Step("S6.3", None, f"the status waits for the {policy.upstream}{answered}")
    elif isinstance(facts.plan.status, Hold):
        if not facts.holds:
            yield _Step("S4.5", False, f"{facts.plan.status.message}; {facts.plan.status.hint}")
    elif isinstance(down, View) and isinstance(up, View):
        if down.stamp is None or down.stamp.upstream_uid != up.uid:
            yield _Step("S5.4", None, "no status moves before the copy is one of this very upstream object")
        elif not down.status:
            yield _Step("S4.3", True, "the copy has no status to send")
        elif facts.record.sent != down.status:
            yield _Step("S4.1", None, "the newest status is still to be sent")
        elif any(path.startswith("status") for path, _, _ in _differences(facts, policy)):
            text = f"the {policy.upstream} shows another status, by its schema or another writer; or ours was given up"
            yield _Step("S4.8", True, text)
        else:
            yield _Step("S4.1", True, f"the {policy.upstream} has acknowledged the newest status")


def _verdict(facts: ObjectFacts, steps: list[_Step]) -> tuple[str, str]:
    wrong = [step for step in steps if step.ok is False]
    if wrong:
        if facts.holds or isinstance(facts.plan.content, Hold) or isinstance(facts.plan.status, Hold):
            state = "held"
        else:
            state = "refused" if wrong[0].rule in ("S3.6", "S10") else "not-synced"
        return state, wrong[0].text
    waiting = [step for step in steps if step.ok is None]
    if waiting:
        # What is to be done says more than why it has not been done yet.
        return "waiting", waiting[-1].text
    if not any(isinstance(observation, View) for observation in facts.observations.values()):
        return "absent", "neither side has it"
    return "in-sync", "there is nothing to do"


def _object(facts: ObjectFacts, side: Side) -> Json:
    observation = facts.observations[side]
    if not isinstance(observation, View):
        return {"state": observation.value}
    body = facts.bodies.get(side)
    return {
        "state": "seen",
        "uid": observation.uid,
        "resourceVersion": observation.resource_version,
        "generation": observation.generation,
        "terminating": observation.terminating,
        "finalizers": (body or {"metadata": {}})["metadata"].get("finalizers") or [],
        "object": body,
    }


def _differences(facts: ObjectFacts, policy: Policy) -> list[tuple[str, Any, Any]]:
    """What is not as upstream wants it, and the status where it is not as downstream has it."""
    up, down = facts.bodies.get(policy.upstream), facts.bodies.get(policy.downstream)
    view = facts.observations[policy.upstream]
    if up is None or down is None or not isinstance(view, View):
        return []
    found = unlike(compose_copy(up, view, policy, downstream=down), down)
    shown, value = status_value(up, policy), status_value(down, policy)
    if policy.map_generation and policy.subtree is None:
        value = map_generation(value, facts.record.generations)
    if shown != value:
        found.append(("status" if policy.subtree is None else f"status.{policy.subtree}", shown, value))
    return found


def _pending(facts: ObjectFacts) -> Iterator[Json]:
    policy, row = facts.policy, facts.pending
    if policy is None:
        return
    if facts.content.message:
        yield rejected_content(facts.content.message, policy.downstream, next_try=facts.content.next_try)
    if row is not None:
        yield pending_status(row, policy.upstream, next_try=facts.next_status)
