"""Documents of `crsyncer fleet status`, as the page and the metrics get them."""

from typing import Any

from crsyncer.core.model import Json

STATES = ("blocked", "deferred", "waiting", "failed", "ready", "inFlight", "stamped")
NOW = 1_795_500_000.0
"""2026-11-24T06:00:00Z."""


def counts(selected: int, **states: int) -> Json:
    """`counts` of a placement; robots of no given state are Ready."""
    found = {"selected": selected, "replicas": selected, "offline": 0, "unreported": 0, **dict.fromkeys(STATES, 0)}
    return found | states | {"ready": selected - sum(states.get(each, 0) for each in STATES)}


def shown_placement(name: str = "nav", **fields: Any) -> Json:
    """A placement of ten robots that is well."""
    bare: Json = {"namespace": "default", "name": name, "conditions": [], "counts": counts(10), "group": None}
    return {**bare, "errors": [], "errorCount": 0, "holds": [], **fields}


def hold(name: str = "9c1e04ab77d2f3b1a0c4e9d2") -> Json:
    """A hold of 4,211 objects."""
    return {"id": name, "reason": "ManyRobotsLost", "objects": 4211, "message": "4211 of 10000 robots were lost"}


def reason(code: str, message: str = "it is so", hint: str = "change it", level: str = "attention") -> Json:
    """One thing that is wrong."""
    return {"code": code, "level": level, "message": message, "hint": hint}


def fleet_document(*placements: Json, **fields: Any) -> Json:
    """A fleet of 10,000 robots that is well."""
    return {
        "schema": "crsyncer.fleet-status/v1",
        "version": "0.1.0",
        "controller": {"state": "running", "holder": "crsyncer-fleet-0", "renewed": "2026-11-24T05:59:57Z"},
        "health": "healthy",
        "reasons": [],
        "robots": {"all": 10_000, "online": 9_412, "offline": 380, "unreported": 208},
        "placements": list(placements),
        "robot": None,
        **fields,
    }


def wide_document() -> Json:
    """10,000 robots, 200 placements, and of everything that can be wrong much."""
    errors = [
        {"robot": f"r{n}", "source": "default/nav", "reason": "RenderFailed", "message": "m" * 256} for n in range(20)
    ]
    holds = [hold(f"{number:024x}") for number in range(20)]
    placements = [
        shown_placement(
            f"p{number:03}",
            counts=counts(10_000, blocked=20, waiting=4_000),
            errors=errors,
            errorCount=500,
            holds=holds,
        )
        for number in range(200)
    ]
    reasons = [reason(code, f"{name} {'m' * 256}") for code in map("Code{}".format, range(20)) for name in range(200)]
    return fleet_document(*placements, health="attention", reasons=reasons)
