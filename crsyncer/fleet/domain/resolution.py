"""Whether a placement can be followed at all: the condition Resolved, and faults that are no replica's (F2.3, F7)."""

from collections.abc import Iterator

from crsyncer.core.reports.text import some
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.fleet_calls import OBJECT_STATUSES
from crsyncer.fleet.domain.names import is_robot_name
from crsyncer.fleet.domain.read_objects import not_served, unreadable
from crsyncer.fleet.domain.rollout.robot_states import Fault, Unresolved, counts
from crsyncer.fleet.domain.selection import selects_robot, unknown_robots
from crsyncer.fleet.domain.transport.keys import ROOT, on_shard
from crsyncer.fleet.domain.transport.shards import unknown_shard
from crsyncer.fleet.domain.values import PlacedKind, Placement, Reason, Verdict


def unlisted_kinds(fleet: Fleet, placement: Placement) -> list[str]:
    """The kinds that could be listed and are not, of those that a placement names. Shards stop only their robots.

    One that terminates waits for every kind, on each shard, that may have replicas of it (F5.3).
    """

    def matters(kind: PlacedKind) -> bool:
        is_named = kind.resource in placement.kinds
        is_placeable = kind.problem_for(shared=placement.shared) is None
        if placement.terminating:
            return kind.version != "" and (is_named or is_placeable)
        return is_named and is_placeable and kind.shard == ROOT

    kinds = fleet.index.kinds.values()
    found = sorted(on_shard(kind.name) for kind in kinds if kind.name not in fleet.listed and matters(kind))
    if placement.shared and not placement.terminating and fleet.statuses.are_unseen(ROOT):
        found.append(OBJECT_STATUSES.resource)
    return [*found, *(f"any kind on shard {each}" for each in sorted(fleet.unread) if placement.terminating)]


def all_listed(fleet: Fleet) -> bool:
    """Whether every kind that may be placed is listed, on each shard: no replica can be unseen."""
    kinds = fleet.index.kinds.values()
    return not fleet.unread and all(each.name in fleet.listed for each in kinds if each.verdict is Verdict.PLACEABLE)


def unlisted_at(fleet: Fleet, shard: str) -> list[str]:
    """The kinds of a shard that may be placed and are not listed; of those for mode Shared only what placements name.

    A controller that has no rights for the others, since nobody uses them, need not have them.
    """
    named = fleet.index.named_kinds()
    kinds = (each for each in fleet.index.kinds.values() if each.shard == shard and each.verdict is Verdict.PLACEABLE)
    needed = (each for each in kinds if not each.shared or each.resource in named)
    return [each.resource for each in needed if each.name not in fleet.listed]


def unresolved(fleet: Fleet, placement: Placement, *, home: str, problem: str = "") -> Unresolved | None:
    """Why a placement is not followed in full; None: it is. `problem`: what is wrong with its `readyWhen` (F7)."""
    if placement.problem:
        return Unresolved(unreadable(placement), placement.problem)
    found = [each for name in placement.kinds for each in _kind_problem(fleet, placement, name, home=home)]
    if problem:
        found.append(Unresolved("BadExpression", problem))
    messages = list(dict.fromkeys(each.message for each in found))
    return Unresolved(found[0].reason, some(messages, 3, separator="; ")) if found else None


def _kind_problem(fleet: Fleet, placement: Placement, name: str, *, home: str) -> Iterator[Unresolved]:
    kind = fleet.index.kinds.get(name)
    if kind is None:
        yield Unresolved(Verdict.NOT_SERVED, not_served(name))
    elif (found := kind.problem_for(shared=placement.shared)) is not None:
        yield Unresolved(*found)
    elif not kind.namespaced and placement.namespace != home:
        allowed = f"only placements in {home} may select cluster-scoped objects"
        yield Unresolved("NotAllowed", f"{name} is cluster-scoped; {allowed}")
    elif len(fleet.shards) > 1:
        robots = fleet.index.robots_of(placement.text)
        shards = fleet.shards if placement.shared else {fleet.index.shard_of(robot) for robot in robots}
        for shard in sorted(shards - {ROOT}):
            yield from _problem_at(fleet, shard, placement, name)


def _problem_at(fleet: Fleet, shard: str, placement: Placement, name: str) -> Iterator[Unresolved]:
    """Why the objects of a kind are not placed on a shard beside the root, of which that is known: the others go on."""
    kind = fleet.index.kind_at(shard, name)
    if kind is not None and (found := kind.problem_for(shared=placement.shared)) is not None:
        yield Unresolved(*found)


def lacks_kind(fleet: Fleet, shard: str, placement: Placement) -> bool:
    """Whether a kind that a placement names may not be placed on a shard beside the root, as far as that is known."""
    return any(True for name in placement.kinds for _ in _problem_at(fleet, shard, placement, name))


def warning(fleet: Fleet, placement: Placement) -> str:
    """What is wrong about a placement that is followed; empty: nothing (F2.3).

    A status of a source of a built-in kind is that of the cloud's own controllers, unless we return a robot's.
    """
    kinds = {name for name in placement.kinds if (kind := fleet.index.kinds.get(name)) and is_built_in(kind)}
    if not kinds or placement.singleton:
        return ""
    sources = (fleet.index.sources.get(key) for key in fleet.index.sources_of(placement.text) if key.resource in kinds)
    acted = sorted({each.key.resource for each in sources if each is not None and each.has_status})
    return f"controllers in the cloud act on objects of {some(acted)}, as only robots shall" if acted else ""


def is_built_in(kind: PlacedKind) -> bool:
    """Whether a kind comes with Kubernetes: such API groups have one word, or are of k8s.io."""
    return "." not in kind.group or kind.group.endswith(".k8s.io")


def not_listed(kinds: list[str]) -> Unresolved:
    """What a placement shows whose kinds cannot be listed: their replicas stay as they are."""
    return Unresolved("NotListed", f"the controller cannot list {some(kinds)}")


def stored_counts(placement: Placement) -> dict[str, int]:
    """The counts in a placement's status as they are stored."""
    found = placement.status.get("counts")
    stored = found if isinstance(found, dict) else {}
    return {name: each if isinstance(each := stored.get(name), int) else 0 for name in counts({}, {}, replicas=0)}


def robot_faults(fleet: Fleet, placement: Placement) -> Iterator[Fault]:
    """What is wrong with the robots that a placement selects."""
    for name in unknown_robots(placement, fleet.index.robots):
        if is_robot_name(name):
            yield Fault(name, "", Reason.UNKNOWN_ROBOT, f"robotNames has {name}, and there is no such Robot")
        else:
            yield _badly_named(name)
    for name in sorted(fleet.index.badly_named):
        if selects_robot(placement, fleet.index.robots[name]):
            yield _badly_named(name)
    if placement.shared:  # of all others, each replica says so
        for robot in sorted(fleet.index.robots_of(placement.text)):
            if (shard := fleet.index.shard_of(robot)) not in fleet.shards:
                yield Fault(robot, "", Reason.UNKNOWN_SHARD, unknown_shard(shard, fleet.shards))


def _badly_named(name: str) -> Fault:
    return Fault(name, "", Reason.BAD_ROBOT_NAME, f"{name} is no robot's name: a DNS label of at most 57 characters")
