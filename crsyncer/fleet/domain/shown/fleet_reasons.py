"""What is wrong in a fleet and needs a human, or will not heal quickly: the reasons of `fleet status`, with hints."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, some
from crsyncer.fleet.domain.shown.fleet_facts import FleetFacts
from crsyncer.fleet.domain.values import GROUP, Placement, RobotState

ATTENTION, DEGRADED, HEALTHY = "attention", "degraded", "healthy"
BEHIND_SECONDS = 60.0
"""A status may be so much behind its placement."""
_MOST_TOLD = 3
_FIRST = ("ControllerStopped", "KindNotServed", "PlacementGone", "Held")
SHARD_HINT = "is its API server up, and is its kubeconfig in --shard right?"
START_HINT = (
    "is the Deployment of `crsyncer fleet run` there, is its namespace that of --controller-namespace, and what do its"
    " logs say?"
)
_REFUSED_HINT = "crsyncer fleet doctor names a right that is missing; the controller's log has the server's words"
UNRESOLVED = {
    "NotServed": "install the CRD, or correct the resource; until then nothing of the kind is written or removed",
    "NotPlaceable": "annotate the CRD in the cloud with spec-source: cloud and filter-by-robot-name: true (mode Shared:"
    " not true), or add a SyncPolicy there that says the same; Robots themselves are never placed",
    "NotAllowed": "move the placement into the controller's namespace: only placements there may select cluster-scoped"
    " objects",
    "NotListed": "crsyncer fleet doctor names the right that is missing",
    "BadExpression": "correct readyWhen, or install the extra `expressions` where the controller runs",
    "TooLarge": "divide it into placements of less than 1 MiB each",
    "Unreadable": "correct the placement; where the CRD takes it, that is of another version than the controller:"
    " crsyncer fleet doctor tells",
}
"""What to do about each reason of the condition `Resolved`."""
_UNCOLLECTED = {
    "CollectorMissing": "create the StatusCollector, or remove its name from statusCollectors",
    "BadExpression": "correct the expressions of the StatusCollector",
}
_STOPPED_ROLLOUTS = {
    "TooManyFailures": "mend the content, and the rollout goes on; or raise maxFailures",
    "NoReports": "install the CRD of RobotSyncState: crsyncer fleet crds prints it; may the controller list them?",
}


@dataclass(frozen=True, slots=True)
class FleetReason:
    """One thing that is wrong. `level` is what it makes of the fleet's health."""

    level: str
    code: str
    message: str
    hint: str


def reasons(facts: FleetFacts) -> list[FleetReason]:
    """All that is wrong, what needs a human first, and of this what keeps back a removal."""
    found = [*_of_controller(facts), *_of_kinds(facts), *_of_shards(facts), *_of_gone_placements(facts)]
    for placement in sorted(facts.placements, key=lambda each: each.text):
        found += _of_placement(placement, facts)
    return sorted(found, key=lambda each: (each.level != ATTENTION, each.code not in _FIRST))


def worst_level(found: list[FleetReason]) -> str:
    """The health that the reasons make."""
    levels = {each.level for each in found}
    return next((level for level in (ATTENTION, DEGRADED) if level in levels), HEALTHY)


def _of_controller(facts: FleetFacts) -> Iterator[FleetReason]:
    if not facts.leader.is_running(facts.now):
        message = "no controller leads: nothing is placed, changed or removed until one is started"
        yield FleetReason(ATTENTION, "ControllerStopped", message, START_HINT)
    elif facts.leader.unlisted and not facts.dead:
        message = f"the controller cannot list all of {facts.leader.unlisted}: until it can, it writes nothing"
        yield FleetReason(ATTENTION, "NotListed", message, UNRESOLVED["NotListed"])
    elif facts.leader.refused:
        message = f"the API server refuses the controller's {facts.leader.refused}: what depends on it is not written"
        yield FleetReason(ATTENTION, "NotWritten", message, _REFUSED_HINT)


def _of_kinds(facts: FleetFacts) -> Iterator[FleetReason]:
    for name in sorted(facts.dead):
        hint = "crsyncer fleet crds prints it" if name.endswith(GROUP) else "crsyncer fleet crds --inventory prints one"
        message = f"the CRD {name} is missing or being deleted: until it is back, nothing that this concerns is removed"
        yield FleetReason(ATTENTION, "KindNotServed", message, f"install it again; {hint}")


def _of_shards(facts: FleetFacts) -> Iterator[FleetReason]:
    for shard, why in sorted(facts.away.items()):
        message = f"shard {shard} does not answer: {why}; nothing of its {_robots(shard, facts)} is written or removed"
        yield FleetReason(DEGRADED, "ShardAway", message, SHARD_HINT)
    for shard, why in sorted(facts.unread.items()):
        unknown = f"what its {_robots(shard, facts)} reported is not known"
        if why:
            yield FleetReason(DEGRADED, "ShardAway", f"shard {shard} cannot be read: {why}; {unknown}", SHARD_HINT)
        else:
            hint = f"add --shard {shard}=KUBECONFIG, as the controller has it; or correct the label of these Robots"
            yield FleetReason(DEGRADED, "ShardNotGiven", f"shard {shard} was not asked: {unknown}", hint)


def _robots(shard: str, facts: FleetFacts) -> str:
    return count(sum(each.shard == shard for each in facts.robots.values()), "robot")


def _of_gone_placements(facts: FleetFacts) -> Iterator[FleetReason]:
    """Decisions outlive only a placement that vanished while it had replicas (F5.2)."""
    known = {each.uid for each in facts.placements}
    gone = {(each.namespace, each.placement, each.placement_uid): each for each in facts.decisions}
    for (namespace, name, uid), decision in sorted(gone.items()):
        if uid not in known:
            message = f"RobotPlacement {namespace}/{name} is gone, but not its replicas: {decision.name} remembers them"
            hint = "create it again, and they are taken up if it selects them; crsyncer fleet release --all shows them"
            yield FleetReason(ATTENTION, "PlacementGone", message, hint)


def _of_placement(placement: Placement, facts: FleetFacts) -> Iterator[FleetReason]:
    name, status = f"RobotPlacement {placement.text}", placement.status
    for hold in items(status, "holds"):
        message = f"{name}: hold {hold.get('id')}: {hold.get('message') or hold.get('reason')}"
        hint = f"what is back ends the hold; crsyncer fleet release {hold.get('id')} shows what it would remove"
        yield FleetReason(ATTENTION, "Held", message, hint)
    conditions = {each.get("type"): each for each in items(status, "conditions")}
    yield from _of_condition(name, conditions.get("Resolved"), UNRESOLVED, "NotResolved")
    yield from _of_condition(name, conditions.get("Collected"), _UNCOLLECTED, "NotCollected")
    rollout = conditions.get("RolledOut") or {}
    if rollout.get("status") == "False" and rollout.get("reason") in _STOPPED_ROLLOUTS:
        reason = str(rollout["reason"])
        yield FleetReason(ATTENTION, reason, f"{name}: {rollout.get('message')}", _STOPPED_ROLLOUTS[reason])
    counts = number_of(status)
    for state in (RobotState.FAILED, RobotState.BLOCKED):
        if number := counts.get(state.lower()):
            yield _of_robots(placement, state, number, facts)
    seen = status.get("observedGeneration")
    age = facts.now - facts.edited.get(placement.text, facts.now)
    if seen != placement.generation and age > BEHIND_SECONDS:
        message = f"{name}: its status is behind its spec for {int(age)} s"
        yield FleetReason(DEGRADED, "StatusBehind", message, "the controller is slow, or may not write the status")


def _of_condition(name: str, condition: Json | None, hints: Mapping[str, str], code: str) -> Iterator[FleetReason]:
    if condition is not None and condition.get("status") == "False":
        reason = str(condition.get("reason") or code)
        message = f"{name}: {reason}: {condition.get('message') or 'no message'}"
        yield FleetReason(ATTENTION, reason, message, hints.get(reason, "correct the placement"))


def _of_robots(placement: Placement, state: RobotState, number: int, facts: FleetFacts) -> FleetReason:
    """That robots of a placement are Failed or Blocked: the first of them, and why."""
    found = {
        robot: decided.message
        for decision in facts.decisions
        if decision.placement_uid == placement.uid
        for robot, decided in decision.robots.items()
        if decided.state is state
    }
    reasons = {each.get("message"): each.get("reason") for each in items(placement.status, "errors")}
    robots: dict[str, list[str]] = {}
    for robot, message in sorted(found.items()):
        why = f" ({reasons[message]}: {message})" if message in reasons else f" ({message})" if message else ""
        robots.setdefault(why, []).append(robot)
    shown = [f"{some(names, _MOST_TOLD)}{why}" for why, names in robots.items()]
    names = f": {some(shown, _MOST_TOLD, separator='; ')}" if shown else ""
    robot, are = min(found, default="ROBOT"), "is" if number == 1 else "are"
    return FleetReason(
        ATTENTION,
        f"Robots{state}",
        f"RobotPlacement {placement.text}: {count(number, 'robot')} {are} {state}{names}",
        f"crsyncer fleet explain {placement.text} --robot {robot}",
    )


def items(status: Json, name: str) -> list[Json]:
    """The objects in a list of a status; whoever writes it, it is read as far as it is sound."""
    found = status.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def errors_of(placement: Placement, robot: str, shard: str) -> list[Json]:
    """The `errors` of a placement about a robot; or ("") about the copies on a shard, which their messages name."""
    found = [each for each in items(placement.status, "errors") if each.get("robot") == robot]
    return [each for each in found if robot or f"shard {shard}" in str(each.get("message"))]


def number_of(status: Json) -> dict[str, Any]:
    """`status.counts`, as far as it has numbers."""
    found = status.get("counts")
    return {key: value for key, value in found.items() if isinstance(value, int)} if isinstance(found, dict) else {}
