"""The agents whose screens OPERATING.md shows: one for each reason, and a few whole screens."""

from crsyncer.console.screens.report import stopped_document
from crsyncer.core.content.annotations import SPEC_SOURCE, SYNCER
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair.other_agents import DuplicateAgent
from crsyncer.core.reports.text import rfc3339
from crsyncer.engine.kinds.stopped_kinds import HINT as _GONE_HINT
from tests.console.report_kit import GOALS, NOW, document, facts, hold, kind, outbox, side, stopped

_LOST = side("offline", since=NOW - 240, last_ok=NOW - 252, error="network unreachable")
_HELD = kind(state="held", held=215, objects={"cloud": 40, "robot": 255})
_REFUSED = side("unauthorized", error="the credential is refused (401)", hint="renew the token or certificate")
_IDENTITY = hold("IdentityChanged", "cloud", resource="", objects=0)
_DUPLICATE = DuplicateAgent("crsyncer-5f0c2a91", GOALS, Key("robot-1", "dock"), NOW - 60, NOW + 540)
_NO_KIND = "spec.resource is namespaces; allowed: neither namespaces nor kinds of our own"
_WRONG_POLICY = {"name": "all", "resource": "namespaces", "state": "misconfigured", "message": _NO_KIND}


def _store(state: str) -> Json:
    return {"path": "/var/lib/crsyncer/state.db", "bytes": 65536, "schema": 1, "state": state}


def _kind_is(state: str, message: str | None = None, **changes: object) -> Json:
    return facts(kinds=[kind(state=state, message=message, **changes)])


def _stuck(**seconds: float) -> Json:
    return facts(pending_seconds={GOALS: seconds})


_MISSPELT = {"resource": GOALS, "name": f"{SYNCER}spec-sorce", "value": "cloud", "meant": SPEC_SOURCE}
_GONE = kind(
    state="kind-missing",
    specSource="robot",
    rule="S1.8",
    held=22,
    message="the robot has no CRD of it any more, so nothing of it is synced; 22 copies in the cloud stay",
)
_MADE_AS: Json = {"robot": "spare-3", "resource": GOALS, "specSource": "cloud", "copies": 22, "statuses": 2}
MAPS = "maps.lab.example.com"
_FORMER: Json = {
    "resource": GOALS,
    "namespace": "default",
    "name": "dock",
    "side": "cloud",
    "kind": "tasks.fleet.example.org",
    "since": rfc3339(NOW - 900),
    "message": 'tasks.fleet.example.org "dock" is forbidden: User "robot-1" cannot delete resource "tasks"',
    "forbidden": True,
    "terminating": False,
}
_WAITING: Json = {
    "message": "it waits for its finalizers: example.com/audit",
    "forbidden": False,
    "terminating": True,
}
_BREAKING = "v0b5ee53de1.goals.lab.example.com is breaking: v1 /spec/speed: is gone"
_RUNNING: dict[str, tuple[Json, ...]] = {
    "IdentityChanged": (facts(cloud=side("identity-changed"), holds=[_IDENTITY]),),
    "DuplicateInstance": (facts(duplicate=_DUPLICATE),),
    "CloudUnauthorized": (facts(cloud=_REFUSED),),
    "RobotUnauthorized": (facts(robot=_REFUSED),),
    "SelectionChanged": (facts(holds=[hold("SelectionChanged", objects=12)]),),
    "Restored": (facts(holds=[hold("Restored", objects=3)]),),
    "Manual": (facts(holds=[hold("Manual", objects=2)]),),
    "MassDeletion": (facts(holds=[hold()]),),
    "KindMissing": (
        _kind_is("kind-missing", "the cloud no longer serves the kind, or is deleting its CRD"),
        facts(holds=[hold("KindMissing", objects=12)]),
        facts(kinds=[_GONE], holds=[hold("KindMissing", hint=_GONE_HINT.format(id="h1"))]),
    ),
    "AnnotationUnknown": (facts(unknownAnnotations=[_MISSPELT]),),
    "KindStopped": (facts(stoppedKinds=[{"resource": GOALS, "specSource": "cloud", "copies": 22}]),),
    "RobotRenamed": (facts(formerNames=[_MADE_AS, _MADE_AS | {"resource": MAPS, "specSource": "robot", "copies": 1}]),),
    "CopyNotDeleted": (
        facts(formerCopies=[_FORMER, _FORMER | {"name": "lift"}]),
        facts(formerCopies=[_FORMER | _WAITING]),
    ),
    "MassDeletionDone": (facts(kinds=[kind(massDeletion={"objects": 215, "time": rfc3339(NOW - 300)})]),),
    "Misconfigured": (_kind_is("misconfigured", f'{SPEC_SOURCE} is "Cloud"; allowed: cloud, robot'),),
    "PolicyMisconfigured": (facts(policies=[_WRONG_POLICY]),),
    "ConfigRejected": (facts(config_error="stateDir cannot change while the agent runs; restart it"),),
    "VersionMismatch": (_kind_is("version-mismatch"),),
    "Forbidden": (_kind_is("forbidden"),),
    "NameTaken": (facts(holds=[hold("NameTaken", objects=1)]),),
    "Contested": (facts(holds=[hold("Contested", objects=1)]),),
    "StatusNotAnObject": (facts(holds=[hold("StatusNotAnObject", objects=1)]),),
    "MutationFailed": (facts(holds=[hold("MutationFailed", objects=1)]),),
    "SecretUnknown": (facts(holds=[hold("SecretUnknown", resource="secrets", objects=1)]),),
    "APIHeld": (facts(holds=[hold("APIHeld", objects=0, message=_BREAKING)]),),
    "Duplicate": (facts(holds=[hold("Duplicate", objects=1)]),),
    "RelatedFailed": (facts(holds=[hold("RelatedFailed", objects=1)]),),
    "DeadLetters": (facts(outbox=outbox(2, 900, 2)),),
    "StateDegraded": (facts(store=_store("degraded"), store_message="disk full"),),
    "ClockSuspect": (facts(cloud=side(clockOffsetSeconds=5400), robot=side(clockOffsetSeconds=0)),),
    "TlsNotVerified": (facts(tls_unverified=(Side.CLOUD,)),),
    "RobotOffline": (facts(robot=side("offline", last_ok=NOW - 30, error="connection refused")),),
    "Starting": (facts(cloud=side("connecting")),),
    "NotListed": (_kind_is("listing", objects={"cloud": None, "robot": 12}),),
    "NotWatched": (_kind_is("waiting", "answered 503"),),
    "Stuck": (_stuck(spec=420.0), _stuck(deletion=420.0), _stuck(finalizers=900.0), _stuck(list=420.0)),
    "DeletionOverdue": (facts(overdue={GOALS: 1}),),
    "StatusNotReturned": (facts(unreturned=(2, "404 page not found")),),
    "Backlog": (_stuck(status=900.0),),
    "CloudOffline": (facts(cloud=_LOST),),
}
_LAST = document(facts(robot=side(last_ok=None, server="https://robot.example.com")), NOW - 90)
_UNREADABLE = stopped_document(_LAST, {}, NOW, store=_store("unreadable"))

REASONS: dict[str, list[Json]] = {
    "AgentStopped": [stopped(_LAST)],
    **{code: [document(each, NOW) for each in given] for code, given in _RUNNING.items()},
}
"""Status documents with a reason, for each sort of message and hint that it has."""
REASONS["StateDegraded"].append(_UNREADABLE)

SCREENS: dict[str, Json] = {
    "healthy": document(facts(), NOW),
    "offline": document(
        facts(cloud=_LOST, kinds=[kind(state="waiting", pending={"spec": 0, "status": 20})], outbox=outbox(20, 240)),
        NOW,
    ),
    "attention": document(facts(kinds=[_HELD], holds=[hold()], outbox=outbox(1, 900, 1)), NOW),
    "stopped": stopped(_LAST),
}
