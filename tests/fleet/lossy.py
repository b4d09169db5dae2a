"""A fleet whose replicas are all there, and that loses things."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.reports.text import rfc3339
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.replica_plan import Removal, new_body
from crsyncer.fleet.domain.rollout.decisions import Decision
from crsyncer.fleet.domain.rollout.reports import Reports
from crsyncer.fleet.domain.shown.turns import Turns
from crsyncer.fleet.domain.values import Rendering, ReplicaKey
from tests.fleet.made import GOALS, key, ready_fleet


class World:
    """A fleet whose replicas are all there, its losses, and a clock."""

    def __init__(self, *placements: Any, robots: int = 10, sources: int = 1) -> None:
        names = ["dock", *(f"goal{number}" for number in range(1, sources))]
        self.names = [f"r{number}" for number in range(robots)]
        self.fleet = ready_fleet(*placements, robots=self.names, sources=names)
        for each in self.fleet.all_keys():
            show(self.fleet, each)
        self.losses = Losses(self.fleet)
        self.now = 1000.0
        self.losses.started(self.now, {GOALS})
        self.alive()

    def alive(self) -> None:
        for name in (Input.ROBOTS, Input.PLACEMENTS, GOALS):
            self.losses.served(name, is_served=True, now=self.now)

    def do(self, change: Change, **options: Any) -> Change:
        self.losses.changed(change, self.now, **options)
        return change

    def removal(self, robot: str = "r0", *, after: float = 0.0, alive: bool = True, **options: Any) -> Removal:
        if alive:
            self.alive()
        return self.losses.removal(key(robot, **options), self.now + after)

    def gone(self, *robots: str) -> None:
        for name in robots:
            self.do(self.fleet.robot_gone(name))

    def held(self) -> dict[str, tuple[str, int]]:
        """Reason and number of what is held, by placement."""
        return {uid: (each.reason, len(each.uids)) for uid, holds in self.losses.holds().items() for each in holds}


def reported(*online: str, offline: tuple[str, ...] = (), applied: str = "", now: float = 1000.0) -> Reports:
    """Reports of these robots, by the clock of a World; `applied`: the digest for the placement."""
    reports = Reports(robots_namespace="default")
    for name in (*online, *offline):
        made = rfc3339(now - 900 if name in offline else now)
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": made}
        marks = {"labels": {ROBOT_LABEL: name}, "annotations": {ROBOT: name}}
        spec = {"robot": name, "beat": 1, "applied": {"uid-all": applied} if applied else {}}
        reports.shown({"metadata": metadata | marks, "spec": spec}, now=now)
    return reports


def turns(fleet: Fleet, reports: Reports | None = None, decisions: Iterable[Decision] = ()) -> Turns:
    """The turns of a fleet, without Decisions by default."""
    return Turns(
        fleet, decisions=decisions, reports=partial((reports or reported()).of_placement, now=1000.0), now=1000.0
    )


def show(fleet: Fleet, each: ReplicaKey, **metadata: Any) -> Change:
    wanted = fleet.wanted(each)
    assert wanted is not None
    assert isinstance(wanted.rendering, Rendering)
    body = new_body(wanted, wanted.rendering)
    body["metadata"] |= {"uid": f"uid-{wanted.namespace}-{wanted.name}", "resourceVersion": "1", **metadata}
    return fleet.object_shown(body, GOALS)
