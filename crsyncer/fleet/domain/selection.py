"""Which robots and sources a placement selects, and which placement governs (F2)."""

from collections.abc import Iterable, Mapping

from crsyncer.core.content.annotations import ROBOT_LABEL, SHARED
from crsyncer.core.model import Json
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.values import Entry, Placement, Robot, SourceKey


def selects_robot(placement: Placement, robot: Robot) -> bool:
    """Whether a placement selects a robot. Terminating ones do not count (F2.1)."""
    if placement.terminating or robot.terminating:
        return False
    return robot.name in placement.robot_names or any(each.matches(robot.labels) for each in placement.robot_selectors)


def unknown_robots(placement: Placement, robots: Mapping[str, Robot]) -> list[str]:
    """The names in `robotNames` of which there is no Robot, sorted."""
    return sorted(name for name in placement.robot_names if name not in robots)


def may_be_source(raw: Json) -> bool:
    """Whether an object may be a source: it is neither for a robot nor a replica (F2.2)."""
    labels = raw["metadata"].get("labels") or {}
    return ROBOT_LABEL not in labels and SOURCE not in labels


def is_left_marked(raw: Json) -> bool:
    """Whether an object was shared and is for a robot now: its mark is still to be removed (F10.3)."""
    metadata = raw["metadata"]
    return SOURCE not in (metadata.get("labels") or {}) and SHARED in (metadata.get("annotations") or {})


def entry_for(placement: Placement, key: SourceKey, labels: Mapping[str, str], *, home: str) -> Entry | None:
    """The first entry of a placement that matches an object; None: the placement does not select it (F2.2).

    `home` is the controller's namespace: only placements there may select cluster-scoped objects.
    """
    if placement.terminating or ROBOT_LABEL in labels or (key.namespace or home) != placement.namespace:
        return None
    return next((entry for entry in placement.entries if _matches(entry, key, labels)), None)


def _matches(entry: Entry, key: SourceKey, labels: Mapping[str, str]) -> bool:
    if entry.kind.full_name != key.resource or (entry.names and key.name not in entry.names):
        return False
    return not entry.selectors or any(each.matches(labels) for each in entry.selectors)


def governing(placements: Iterable[Placement]) -> Placement | None:
    """Of the placements that select a source and a robot, the one that governs: the oldest (F2.4)."""
    return min(placements, key=lambda each: each.age, default=None)
