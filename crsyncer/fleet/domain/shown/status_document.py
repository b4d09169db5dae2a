"""The document of `crsyncer fleet status`, schema `crsyncer.fleet-status/v1`: what needs a human, then the counts."""

from collections import Counter

from crsyncer import __version__
from crsyncer.core.model import Json
from crsyncer.core.reports.text import rfc3339
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.selection import selects_robot
from crsyncer.fleet.domain.shown.fleet_facts import FleetFacts
from crsyncer.fleet.domain.shown.fleet_reasons import items, number_of, reasons, worst_level
from crsyncer.fleet.domain.values import Placement

SCHEMA = "crsyncer.fleet-status/v1"


def fleet_status(facts: FleetFacts, *, robot: str = "") -> Json:
    """The state of a fleet; with `robot` also what that robot has, whose name need not be known.

    `health` is healthy, degraded or attention. `controller.state` is running or stopped, which comes before health.
    `time` is when all this was so, by the API server's clock. Robots of a shard that was not read count in
    `all` alone, and the state of such a one is null.
    """
    wrong = reasons(facts)
    reported = Counter(facts.reported(name).report for name in facts.robots)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "time": rfc3339(facts.now),
        "controller": {
            "state": "running" if facts.leader.is_running(facts.now) else "stopped",
            "holder": facts.leader.holder or None,
            "renewed": rfc3339(facts.leader.renewed),
        },
        "health": worst_level(wrong),
        "reasons": [
            {"code": each.code, "level": each.level, "message": each.message, "hint": each.hint} for each in wrong
        ],
        "robots": {"all": len(facts.robots), **{str(report): reported[report] for report in Report}},
        "placements": [_placement(each) for each in sorted(facts.placements, key=lambda each: each.text)],
        "robot": _robot(robot, facts) if robot else None,
    }


def silent_status(message: str, hint: str) -> Json:
    """The document where the cloud does not answer: its health is offline, and nothing is known."""
    reason = {"code": "CloudOffline", "level": "offline", "message": message, "hint": hint}
    return {
        "schema": SCHEMA,
        "version": __version__,
        "time": None,
        "controller": {"state": None, "holder": None, "renewed": None},
        "health": "offline",
        "reasons": [reason],
        "robots": {"all": None, **{str(report): None for report in Report}},
        "placements": [],
        "robot": None,
    }


def _placement(placement: Placement) -> Json:
    """The row of a placement; null is what its status does not say (yet)."""
    status = placement.status
    return {
        "namespace": placement.namespace,
        "name": placement.name,
        "created": placement.created or None,
        "conditions": items(status, "conditions"),
        "counts": number_of(status) or None,
        "group": status.get("group"),
        "errors": items(status, "errors"),
        "errorCount": status.get("errorCount"),
        "holds": items(status, "holds"),
    }


def _robot(name: str, facts: FleetFacts) -> Json:
    """What a robot has: each placement that selects it, or did when its Decision was written."""
    known, reported = facts.robots.get(name), facts.reported(name)
    rows = []
    for placement in sorted(facts.placements, key=lambda each: each.text):
        own = [each for each in facts.decisions if each.placement_uid == placement.uid and name in each.robots]
        decided = own[0].robots[name] if own else None
        if decided is None and (known is None or not selects_robot(placement, known)):
            continue
        row = {"namespace": placement.namespace, "name": placement.name, "state": None, "since": None, "message": None}
        if decided is not None:
            row |= {"state": str(decided.state), "since": decided.since or None, "message": decided.message or None}
        rows.append(row)
    state = str(reported.report) if known is not None and reported.report is not None else None
    shard = known.shard if known is not None else None
    return {"name": name, "shard": shard, "state": state, "lastReport": rfc3339(reported.last), "placements": rows}
