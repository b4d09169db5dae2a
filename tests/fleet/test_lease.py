"""The Lease of the fleet controller as values (F1.2)."""

import math
from typing import Any

import pytest

from crsyncer.core.model import Json
from crsyncer.fleet.domain import lease as leases
from crsyncer.fleet.domain.lease import UNLISTED, ObservedLease, observe

_PATH = "/apis/coordination.k8s.io/v1/namespaces/fleet/leases"
_UNIX = 1_800_000_000.25


def _lease(uid: str = "u1", version: str = "1", **spec: Any) -> Json:
    metadata = {"name": "crsyncer-fleet", "namespace": "fleet", "uid": uid, "resourceVersion": version}
    return {"metadata": metadata, "spec": spec}


def test_F1_2_a_lease_that_never_was_is_taken_at_once_and_one_that_vanished_after_its_duration() -> None:
    never = observe(None, None, now=100.0)
    held = observe(never, _lease(holderIdentity="a"), now=200.0)
    vanished = observe(held, None, now=300.0)
    assert [leases.free_at(each, None) for each in (never, held, vanished)] == [-math.inf, 215.0, 315.0]
    assert observe(never, None, now=400.0).since == -math.inf


def test_F1_2_a_standby_counts_from_when_it_saw_the_lease_change() -> None:
    first = observe(None, _lease(holderIdentity="a", renewTime="t1"), now=100.0)
    same = observe(first, _lease(version="2", holderIdentity="a", renewTime="t1"), now=107.0)
    renewed = observe(same, _lease(version="3", holderIdentity="a", renewTime="t2"), now=108.0)
    another = observe(renewed, _lease(uid="u2", holderIdentity="a", renewTime="t2"), now=109.0)
    assert [each.since for each in (first, same, renewed, another)] == [100.0, 100.0, 108.0, 109.0]
    assert same.lease is not None
    assert same.lease["metadata"]["resourceVersion"] == "2"


@pytest.mark.parametrize(
    ("lease", "claim", "free"),
    [
        (_lease(holderIdentity="", renewTime="t1"), None, -math.inf),
        (_lease(), None, -math.inf),
        (_lease(holderIdentity="a", renewTime="t1"), _lease(holderIdentity="a", renewTime="t1"), -math.inf),
        (_lease(holderIdentity="a", renewTime="t1"), _lease(holderIdentity="a", renewTime="t2"), 25.0),
        (_lease(holderIdentity="a", renewTime="t1"), _lease(holderIdentity="b", renewTime="t1"), 25.0),
    ],
)
def test_F1_2_who_holds_nothing_or_has_just_taken_it_does_not_wait(
    lease: Json, claim: Json | None, free: float
) -> None:
    assert leases.free_at(ObservedLease(lease, 10.0), claim) == free


def test_F1_2_a_lease_that_is_missing_is_made_as_client_go_makes_it() -> None:
    call = leases.take("fleet", None, identity="a", unix=_UNIX)
    now = "2027-01-15T08:00:00.250000Z"
    assert (call.verb, call.method, call.path, call.timeout) == ("create", "POST", _PATH, 5.0)
    assert call.body["metadata"] == {"name": "crsyncer-fleet", "namespace": "fleet"}
    assert call.body["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 0,
    }


def test_F1_2_a_lease_is_taken_over_kept_and_given_back_in_the_version_that_was_read() -> None:
    found = _lease(version="7", holderIdentity="b", leaseTransitions=3, acquireTime="long ago", strategy="x")
    taken = leases.take("fleet", found, identity="a", unix=_UNIX)
    spec = taken.body["spec"]
    assert (taken.method, taken.path, taken.body["metadata"]) == ("PUT", f"{_PATH}/crsyncer-fleet", found["metadata"])
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["strategy"]) == ("a", 4, "x")
    assert spec["acquireTime"] == spec["renewTime"] == leases.micro_time(_UNIX)
    again = leases.take("fleet", taken.body, identity="a", unix=_UNIX + 9).body["spec"]
    assert again == spec | {"renewTime": leases.micro_time(_UNIX + 9)}
    kept = leases.renew("fleet", taken.body, unix=_UNIX + 5)
    assert kept.body["spec"] == spec | {"renewTime": leases.micro_time(_UNIX + 5)}
    assert kept.timeout < 5.0
    back = leases.give_back("fleet", taken.body, unix=_UNIX + 6).body["spec"]
    assert (back["holderIdentity"], back["leaseDurationSeconds"], back["leaseTransitions"]) == ("", 1, 4)


def test_F1_1_a_renewal_says_what_the_leader_cannot_list_and_leaves_other_annotations() -> None:
    lease = _lease(holderIdentity="a", renewTime="t1")
    lease["metadata"]["annotations"] = {"team": "night"}
    waiting = leases.renew("fleet", lease, unix=_UNIX, annotations={UNLISTED: "FieldStrips"}).body
    assert waiting["metadata"]["annotations"] == {"team": "night", UNLISTED: "FieldStrips"}
    both = leases.renew("fleet", waiting, unix=_UNIX, annotations={UNLISTED: "", leases.REFUSED: "patch x"}).body
    assert both["metadata"]["annotations"] == {"team": "night", leases.REFUSED: "patch x"}
    assert leases.renew("fleet", both, unix=_UNIX).body["metadata"] == lease["metadata"]


def test_F1_2_a_lease_without_a_spec_is_nobodys() -> None:
    empty = {"metadata": {"uid": "u1"}, "spec": None}
    assert leases.holder(empty) == leases.holder(None) == ""
    assert leases.take("fleet", empty, identity="a", unix=_UNIX).body["spec"]["leaseTransitions"] == 1
    assert leases.read("fleet").path == f"{_PATH}/crsyncer-fleet"
