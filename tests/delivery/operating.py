"""The agents whose screens OPERATING.md shows: one for each reason, and a few whole screens."""

from crsyncer.console.report import Facts, OutboxFacts, StoredFacts, StoreFacts, document, stopped_document
from crsyncer.core.duplicates import DuplicateAgent
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.policy import SPEC_SOURCE
from tests.console.report_kit import GOALS, NOW, STORED, facts, hold, kind, side

_LOST = side("offline", since=NOW - 240, last_ok=NOW - 252, error="network unreachable")
_HELD = kind(state="held", held=215, objects={Side.CLOUD: 40, Side.ROBOT: 255})
_IDENTITY = hold("IdentityChanged", id="cloud", resource="", objects=0)
_DUPLICATE = DuplicateAgent("crsyncer-5f0c2a91", GOALS, Key("robot-1", "dock"), NOW - 60, NOW + 540)


def _kind_is(state: str, message: str | None = None, **changes: int) -> Facts:
    return facts(kinds=(kind(state=state, message=message, **changes),))


def _stuck(**seconds: float) -> Facts:
    return facts(kinds=(kind(pending_seconds=seconds),))


_RUNNING: dict[str, tuple[Facts, ...]] = {
    "IdentityChanged": (facts(cloud=side("identity-changed"), holds=(_IDENTITY,)),),
    "DuplicateInstance": (facts(duplicate=_DUPLICATE),),
    "CloudUnauthorized": (facts(cloud=side("unauthorized", error="Unauthorized")),),
    "RobotUnauthorized": (facts(robot=side("unauthorized", error="Unauthorized")),),
    "Restored": (facts(holds=(hold("Restored", objects=3),)),),
    "Manual": (facts(holds=(hold("Manual", objects=2),)),),
    "MassDeletion": (facts(holds=(hold(),)),),
    "KindMissing": (
        _kind_is("kind-missing", "the cloud no longer serves the kind, or is deleting its CRD"),
        facts(holds=(hold("KindMissing", objects=12),)),
    ),
    "Misconfigured": (_kind_is("misconfigured", f'{SPEC_SOURCE} is "Cloud"; allowed: cloud, robot'),),
    "ConfigRejected": (facts(config_error="stateDir cannot change while the agent runs; restart it"),),
    "VersionMismatch": (_kind_is("version-mismatch"),),
    "Forbidden": (_kind_is("forbidden"),),
    "NameTaken": (facts(holds=(hold("NameTaken", objects=1),)),),
    "Contested": (facts(holds=(hold("Contested", objects=1),)),),
    "StatusNotAnObject": (facts(holds=(hold("StatusNotAnObject", objects=1),)),),
    "DeadLetters": (facts(outbox=OutboxFacts(2, NOW - 900, 2)),),
    "Held": (_kind_is("held", held=3),),
    "StateDegraded": (facts(store=StoreFacts("/var/lib/crsyncer/state.db", 65536, 1, "degraded", "disk full")),),
    "ClockSuspect": (facts(cloud=side(clock_offset=5400.0), robot=side(clock_offset=0.0)),),
    "TlsNotVerified": (facts(unverified=(Side.CLOUD,)),),
    "RobotOffline": (facts(robot=side("offline", last_ok=NOW - 30, error="connection refused")),),
    "Starting": (facts(cloud=side("connecting")),),
    "NotListed": (_kind_is("listing", objects={Side.CLOUD: None, Side.ROBOT: 12}),),  # type: ignore[arg-type]
    "NotWatched": (_kind_is("waiting", "answered 503"),),
    "Stuck": (_stuck(spec=420.0), _stuck(deletion=420.0), _stuck(finalizers=900.0), _stuck(list=420.0)),
    "Backlog": (_stuck(status=900.0),),
    "CloudOffline": (facts(cloud=_LOST),),
}
_UNREADABLE = StoredFacts(StoreFacts("/var/lib/crsyncer/state.db", state="unreadable"))


def _stopped(stored: StoredFacts) -> Json:
    return stopped_document(
        document(facts(robot=side(last_ok=None, server="https://robot.example.com")), NOW - 90),
        stored,
        NOW,
        version="0.1.0",
    )


REASONS: dict[str, list[Json]] = {
    "AgentStopped": [_stopped(STORED)],
    **{code: [document(each, NOW) for each in given] for code, given in _RUNNING.items()},
}
"""Status documents with a reason, for each sort of message and hint that it has."""
REASONS["StateDegraded"].append(_stopped(_UNREADABLE))

SCREENS: dict[str, Json] = {
    "healthy": document(facts(), NOW),
    "offline": document(
        facts(cloud=_LOST, kinds=(kind(state="waiting", pending_status=20),), outbox=OutboxFacts(20, NOW - 240)), NOW
    ),
    "attention": document(facts(kinds=(_HELD,), holds=(hold(),), outbox=OutboxFacts(1, NOW - 900, 1)), NOW),
    "stopped": _stopped(STORED),
}
