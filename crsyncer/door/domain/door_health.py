"""Judges the front door: what is wrong with it, and how much that matters."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from crsyncer.core.model import Json
from crsyncer.core.reports.text import count
from crsyncer.door.domain.robots_map import unroutable
from crsyncer.errors import Never, NotAllowed, NotServed, NotTrusted, SyncError

_MOST = 20
"""Robots that are named; the others are counted."""
_APPLY = "apply their CRD and the Robots again; what shall go does at the next start of door run that finds a Robot"
_DOWN = "what its robots ask for now is answered with 503 until it is back; their streams go on where it still answers"


class Level(StrEnum):
    """How much a reason matters, the worst first."""

    STOPPED = "stopped"
    ATTENTION = "attention"
    OFFLINE = "offline"
    DEGRADED = "degraded"
    HEALTHY = "healthy"


EXIT_CODES = {Level.STOPPED: 13, Level.ATTENTION: 12, Level.OFFLINE: 11, Level.DEGRADED: 10, Level.HEALTHY: 0}


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is wrong."""

    code: str
    level: Level
    message: str
    hint: str = ""

    @property
    def document(self) -> Json:
        """As it stands in a status document."""
        return {"code": self.code, "level": str(self.level), "message": self.message, "hint": self.hint}


def reason_of(document: Json) -> Reason:
    """A reason as another process tells it."""
    return Reason(
        str(document["code"]), Level(document["level"]), str(document["message"]), str(document.get("hint") or "")
    )


def worst(found: Iterable[Reason]) -> Level:
    """The level of the whole."""
    return min((each.level for each in found), key=list(Level).index, default=Level.HEALTHY)


def reasons(
    *,
    labels: Mapping[str, str],
    shards: Collection[str],
    up: Mapping[str, bool],
    silent: Sequence[SyncError],
    haproxy: SyncError | None,
    unwritten: SyncError | None,
    root: SyncError | None,
    bad: Sequence[str],
    stale: SyncError | None,
    differing: Sequence[SyncError] = (),
    lost: int = 0,
) -> list[Reason]:
    """Everything that is wrong, the worst first.

    `labels` has the shards that Robots ask for, `up` what HAProxy finds of the shards, `silent` those that gave no
    keys, `unwritten` why the file of the map is not as wanted, `root` why the Robots cannot be watched, `bad` the files
    that cannot be used, `stale` why HAProxy's configuration is not what it should be, `differing` the keys on which
    shards differ, and `lost` the number of Robots that vanished with their kind, or all at once.
    """
    found = [Reason("BadFile", Level.ATTENTION, each, "what was read before stays in use") for each in bad]
    found += [
        Reason("KeysDiffer", Level.ATTENTION, str(each), f"{each.hint}; the key that was in use stays, if any was")
        for each in differing
    ]
    if unwritten is not None:
        hint = "have it writable, with room: HAProxy has the new map, but a restart of it begins with the old one"
        found.append(Reason("MapNotWritten", Level.ATTENTION, str(unwritten), hint))
    if lost:
        message = f"{count(lost, 'Robot')} vanished with the kind, or all at once: the map has them still"
        found.append(Reason("RobotsLost", Level.ATTENTION, message, _APPLY))
    unknown = unroutable(labels, shards)
    for line, hint in unknown[:_MOST]:
        found.append(Reason("RobotNotRouted", Level.ATTENTION, f"{line}: it gets 503", hint))
    if len(unknown) > _MOST:
        found.append(
            Reason("RobotNotRouted", Level.ATTENTION, f"{len(unknown) - _MOST} more robots are not in the map")
        )
    if stale is not None:
        found.append(Reason("ConfigurationStale", Level.DEGRADED, str(stale), stale.hint))
    if haproxy is not None:
        found.append(Reason("HAProxySilent", Level.OFFLINE, str(haproxy), haproxy.hint))
    if root is not None:
        found.append(_away("RootAway", root, f"the Robots cannot be watched: {root}", "the last map holds"))
    found += [
        Reason("ShardDown", Level.DEGRADED, f"HAProxy finds shard {name} down", _DOWN)
        for name, is_up in sorted(up.items())
        if not is_up
    ]
    found += [_away("ShardSilent", each, str(each), "what is known of it stays") for each in silent]
    return sorted(found, key=lambda each: list(Level).index(each.level))


def needs_human(error: SyncError) -> bool:
    """Whether what an API server answers does not heal by itself: credentials, certificates, what it does not serve."""
    return isinstance(error, NotAllowed | NotTrusted | NotServed | Never)


def _away(code: str, error: SyncError, message: str, meanwhile: str) -> Reason:
    level = Level.ATTENTION if needs_human(error) else Level.DEGRADED
    return Reason(code, level, message, f"{error.hint}; {meanwhile}" if error.hint else meanwhile)
