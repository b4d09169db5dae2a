"""What `fleet explain` says of a source that the robots of the root have themselves (F10.3)."""

from typing import assert_never

from crsyncer.core.model import Json
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import source_id
from crsyncer.fleet.domain.shared.source_marks import UNWRITTEN, decide_mark
from crsyncer.fleet.domain.shown.fleet_reasons import items
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import Nothing, Patch, Placement, SourceKey, Wait


def shared_source(fleet: Fleet, key: SourceKey) -> Json:
    """An item of `replicas`: nothing is written to the source but its mark."""
    governor, source = fleet.index.shared_governor(key), fleet.index.sources[key]
    match plan := decide_mark(fleet, key):
        case Nothing():
            why = ("current", "Shared", "the robots of the root have the source itself, and it is marked as shared")
        case Patch() if governor is not None and (error := _refusal(governor, key)) is not None:
            why = ("blocked", str(error.get("reason")), str(error["message"]))
        case Patch():
            why = ("due", "NotMarked", "a controller marks it as shared at once: until then it takes robots' statuses")
        case Wait(reason):
            why = ("blocked", "NotMarked", reason)
        case _:
            assert_never(plan)
    return {
        "resource": key.resource,
        "shard": ROOT,
        "source": key.text,
        "sourceId": source_id(key),
        "namespace": key.namespace,
        "name": key.name,
        "uid": source.uid,
        "governedBy": None if governor is None else governor.text,
        "stamp": None,
        "written": None,
        "acked": None,
        **dict(zip(("verdict", "reason", "message"), why, strict=True)),
        "rule": "F10.3",
    }


def _refusal(placement: Placement, key: SourceKey) -> Json | None:
    """The error of a placement that says that the server refuses the mark of a source; None: it has none."""
    found = (each for each in items(placement.status, "errors") if each.get("source") == key.text)
    return next((each for each in found if str(each.get("message")).startswith(UNWRITTEN)), None)
