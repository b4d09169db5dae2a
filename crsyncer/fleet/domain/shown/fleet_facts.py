"""What the documents of the fleet are made of, as a command reads it or the controller knows it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crsyncer.core.model import Json
from crsyncer.fleet.domain.lease import DURATION_SECONDS, REFUSED, UNLISTED, holder
from crsyncer.fleet.domain.rollout.decisions import Decision
from crsyncer.fleet.domain.rollout.reports import Report, Reports
from crsyncer.fleet.domain.values import Placement, Robot


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads, and when that was last said: Unix time by the API server's clock, None where it never was."""

    holder: str = ""
    renewed: float | None = None
    unlisted: str = ""
    """What it waits for before it writes anything, as it says; "": nothing."""
    refused: str = ""
    """The writes of its own objects that the API server refuses, as it says; "": none."""

    def is_running(self, now: float) -> bool:
        """Whether a controller leads now."""
        return bool(self.holder) and self.renewed is not None and now - self.renewed <= DURATION_SECONDS


@dataclass(frozen=True, slots=True)
class Reported:
    """What is known of a robot's agent, and the Unix time of its last report."""

    report: Report | None = Report.UNREPORTED
    """None: nobody has asked its shard."""
    last: float | None = None


@dataclass(frozen=True, slots=True)
class FleetReports:
    """What robots report, each on its own shard (F9.1)."""

    shards: Mapping[str, Reports]
    """Those that can be read, by their names."""
    shard_of: Callable[[str], str]
    """The shard of a robot."""
    now: Callable[[str], float]
    """Unix time by the clock of a shard."""

    def of(self, robot: str) -> Reported:
        """What is known of a robot's agent."""
        if (reports := self.shards.get(shard := self.shard_of(robot))) is None:
            return Reported()
        return Reported(reports.report(robot, self.now(shard)), reports.last(robot))

    def of_placement(self, robot: str, placement: str) -> tuple[Report, str | None]:
        """What a robot reports for a placement's uid (F9.6)."""
        if (reports := self.shards.get(shard := self.shard_of(robot))) is None:
            return Report.UNREPORTED, None
        return reports.of_placement(robot, placement, self.now(shard))


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """The fleet at a moment. Times are Unix seconds by the API server's clock."""

    placements: Sequence[Placement]
    """With the statuses that are stored."""
    robots: Mapping[str, Robot]
    decisions: Sequence[Decision]
    leader: Leader
    now: float
    reports: Mapping[str, Reported] = field(default_factory=dict)
    """By robot; one that is not in it is unreported."""
    dead: Collection[str] = ()
    """The inputs of F1.1 whose kind the cloud does not serve, by the name of the kind."""
    edited: Mapping[str, float] = field(default_factory=dict)
    """By placement, as NAMESPACE/NAME: when its spec was last edited; one that is not in it counts as edited now."""
    away: Mapping[str, str] = field(default_factory=dict)
    """By shard: why it does not answer."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """By shard: why its reports are not known to whoever asks; empty: nobody has told how to reach it."""

    def reported(self, robot: str) -> Reported:
        """What is known of a robot's agent."""
        known = self.robots.get(robot)
        if known is not None and known.shard in self.unread:
            return Reported(None)
        return self.reports.get(robot, Reported())


def leader_of(lease: Json | None) -> Leader:
    """Who leads, as the Lease says; None: there is no Lease. It ends after `DURATION_SECONDS` (F1.2).

    The time is that of the API server (managedFields), which sets it whenever the renewal changes: the controller's
    own clock may be wrong. Without it, the controller's counts.
    """
    if lease is None:
        return Leader()
    spec, metadata = lease.get("spec") or {}, lease["metadata"]
    times = [
        each["time"]
        for each in metadata.get("managedFields") or ()
        if "f:renewTime" in ((each.get("fieldsV1") or {}).get("f:spec") or {}) and each.get("time")
    ]
    found = [time for time in map(read_time, times or [spec.get("renewTime")]) if time is not None]
    annotations = metadata.get("annotations") or {}
    unlisted, refused = annotations.get(UNLISTED, ""), annotations.get(REFUSED, "")
    return Leader(holder(lease), max(found, default=None), unlisted=unlisted, refused=refused)


def last_edit(raw: Json) -> float | None:
    """When the spec of an object was last written, by the API server's clock; None: not known."""
    metadata = raw["metadata"]
    times = [
        each.get("time")
        for each in metadata.get("managedFields") or ()
        if "f:spec" in (each.get("fieldsV1") or {}) and not each.get("subresource")
    ]
    found = [time for time in map(read_time, [*times, metadata.get("creationTimestamp")]) if time is not None]
    return max(found, default=None)


def read_time(text: Any) -> float | None:
    """The Unix time of an RFC 3339 text; None where it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None
