"""Shared mode (F10.3): which object takes a status, when the robot's own one has to go, and how it is written."""

from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL, SHARED
from crsyncer.core.content.object_content import ROBOT, UPSTREAM_UID
from crsyncer.core.model import Freshness, Gap, Json, Key, Observation, OwnStatus, Pending, Proof, Record, Side, View
from crsyncer.core.pair.actions import CountAsSent, SendStatus, StatusAction
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.decide_delivery import Delivery, decide_delivery
from crsyncer.core.pair.own_status import (
    as_answered,
    delete_own,
    is_obsolete,
    own_key,
    own_name,
    own_statuses,
    receiver,
    seen_status,
    write_own,
)
from crsyncer.core.pair.project import status_digest, view_of
from tests.core.builders import ROBOT_NAME, goal, policy

POLICY = policy()
KEY = Key("default", "a")
MARK: Json = {"annotations": {SHARED: "p-1"}}
MARKED = view_of(goal(metadata=MARK, status={"n": "nobody's"}), POLICY, Side.CLOUD)
PLAIN = view_of(goal(status={"n": 1}), POLICY, Side.CLOUD)
COPY = view_of(goal(uid="c-1", metadata={"annotations": {UPSTREAM_UID: "u-1"}}, status={"n": 1}), POLICY, Side.ROBOT)
OWN = OwnStatus("default", "u-1", "o-1", "7", COPY.status)
RETURNED = Record(upstream_uid="u-1", acknowledged=COPY.status, had_status=True, own=OWN, returned=True)
METADATA: Json = {
    "name": own_name(POLICY, KEY),
    "namespace": "default",
    "uid": "o-1",
    "resourceVersion": "7",
    "labels": {ROBOT_LABEL: ROBOT_NAME},
    "annotations": {ROBOT: ROBOT_NAME},
}


def planned(record: Record, *, marked: bool = True, copy: View = COPY, audit: bool = False) -> StatusAction | None:
    """The status that is planned."""
    upstream = MARKED if marked else PLAIN
    return decide(Observation(upstream), Observation(copy), POLICY, record, audit=audit).status


def test_F10_3_only_upstreams_objects_in_the_cloud_are_shared() -> None:
    up = policy(Side.ROBOT)
    assert (MARKED.shared, PLAIN.shared) == (True, False)
    assert not view_of(goal(metadata=MARK), up, Side.ROBOT).shared
    assert not view_of(goal(metadata=MARK), POLICY, Side.ROBOT).shared


def test_F10_3_a_status_that_the_own_object_has_is_not_planned_and_what_the_source_has_does_not_matter() -> None:
    send = SendStatus("u-1", COPY.status)
    sent = Record(upstream_uid="u-1", acknowledged=COPY.status, upstream_status=COPY.status, had_status=True)
    assert planned(RETURNED) is None
    assert planned(sent) == send
    assert planned(Record()) == send
    assert planned(replace(RETURNED, own=OWN._replace(status="other"), acknowledged="other")) == send
    assert planned(replace(RETURNED, own=OWN._replace(status="other"))) is None
    assert planned(replace(RETURNED, own=OWN._replace(status="other"), upstream_status=COPY.status), audit=True) == send


def test_F10_3_what_the_own_object_has_acknowledged_the_source_has_not() -> None:
    assert planned(replace(RETURNED, upstream_status="x"), marked=False) is not None
    seen, known = receiver(PLAIN, RETURNED)
    assert (seen, known.acknowledged, known.upstream_status) == (PLAIN, "", PLAIN.status)
    seen, known = receiver(MARKED, replace(RETURNED, own=OWN._replace(upstream_uid="u-0")))
    assert (seen.status, seen.has_status, known.acknowledged) == ("", False, COPY.status)


def test_F10_3_a_status_that_was_taken_away_is_taken_from_the_own_object() -> None:
    bare = replace(COPY, status="", has_status=False)
    assert planned(RETURNED, copy=bare) == SendStatus("u-1", "")
    assert planned(replace(RETURNED, had_status=False), copy=bare) is None


def test_F10_3_a_copy_without_a_stamp_counts_as_sent_to_the_own_object() -> None:
    stray = replace(COPY, stamp=None)
    assert planned(replace(RETURNED, upstream_uid="u-0"), copy=stray) == CountAsSent("u-1", COPY.status, COPY.status)


def test_F10_3_a_new_copy_does_not_get_the_sources_status() -> None:
    fresh = replace(COPY, status="", has_status=False, content=MARKED.content)
    stamp = replace(fresh.stamp, digest=MARKED.content) if fresh.stamp is not None else None
    seed = Record(upstream_uid="u-1", applied=MARKED.content, seed=True)
    plan = decide(Observation(MARKED), Observation(replace(fresh, stamp=stamp)), POLICY, seed)
    assert plan.content is None
    assert decide(Observation(PLAIN), Observation(replace(fresh, stamp=stamp)), POLICY, seed).content is not None


@pytest.mark.parametrize(
    ("record", "delivery"),
    [
        (Record(), Delivery.RETURN),
        (RETURNED, Delivery.ACKNOWLEDGE),
        (replace(RETURNED, own=OWN._replace(status="other")), Delivery.OVERTAKEN),
        (replace(RETURNED, own=OWN._replace(status="sent")), Delivery.RETURN),
    ],
)
def test_F10_3_what_becomes_of_a_row_depends_on_what_the_own_object_has(record: Record, delivery: Delivery) -> None:
    row = Pending(1, "u-1", COPY.status, {"n": 1}, 0.0, unanswered="sent")
    gone = Observation(Gap.ABSENT)
    found = decide_delivery(row, Observation(MARKED), gone, POLICY, record, value=COPY.status, proof=Proof.MISSING)
    assert found is delivery


RESUMED = Observation(Gap.ABSENT, Freshness.RESUMED)
TOLD = Observation(Gap.ABSENT, Freshness.STORED, "u-1")
UNSEEN, ABSENT = Observation(Gap.UNSEEN), Observation(Gap.ABSENT)
ANOTHER = replace(MARKED, uid="u-2")
NOT_OURS, OF_ANOTHER = (
    replace(COPY, stamp=None),
    view_of(goal(uid="c-2", metadata={"annotations": {UPSTREAM_UID: "u-2"}}), POLICY, Side.ROBOT),
)


@pytest.mark.parametrize(
    ("upstream", "downstream", "left"),
    [
        (Observation(MARKED), Observation(COPY), False),
        (Observation(MARKED), ABSENT, False),
        (Observation(PLAIN), Observation(COPY), True),
        (UNSEEN, ABSENT, False),
        (RESUMED, ABSENT, True),
        (RESUMED, Observation(COPY), False),
        (TOLD, ABSENT, True),
        (ABSENT, Observation(COPY), False),
        (ABSENT, UNSEEN, False),
        (ABSENT, ABSENT, True),
        (ABSENT, Observation(NOT_OURS), True),
        (Observation(ANOTHER), Observation(COPY), False),
        (Observation(ANOTHER), Observation(OF_ANOTHER), True),
        (Observation(ANOTHER, Freshness.RESUMED), Observation(OF_ANOTHER), False),
    ],
)
def test_F10_3_the_own_object_goes_when_its_source_is_gone_for_certain_and_the_copy_too(
    upstream: Observation, downstream: Observation, left: bool
) -> None:
    assert is_obsolete(OWN, upstream, downstream, "default") is left
    assert is_obsolete(OWN, upstream, downstream, "fleet")
    assert is_obsolete(OWN, upstream, downstream, None)


def test_F10_3_the_own_object_is_made_then_replaced_in_its_version_and_deleted_by_its_uid() -> None:
    made = write_own(POLICY, KEY, OwnStatus("default", "u-1"), value={"n": 1}, metadata=None, last_update="now")
    path = "/apis/fleet.crsyncer.cloudrobotics.com/v1alpha1/namespaces/default/robotobjectstatuses"
    marks = {name: METADATA[name] for name in ("name", "namespace", "labels", "annotations")}
    source = {"group": "lab.example.com", "resource": "goals", "namespace": "default", "name": "a", "uid": "u-1"}
    assert (made.method, made.path) == ("POST", path)
    assert made.body["metadata"] == marks
    assert made.body["spec"] == {"source": source, "returned": {"n": 1}, "lastUpdate": "now"}
    put = write_own(POLICY, KEY, OWN, value=None, metadata=None, last_update="later")
    assert (put.method, put.path) == ("PUT", f"{path}/{own_name(POLICY, KEY)}")
    assert put.body["metadata"] == METADATA
    assert put.body["spec"] == {"source": source, "lastUpdate": "later"}
    more = METADATA | {"labels": {"team": "blue"}, "finalizers": ["lab/x"], "managedFields": []}
    kept = write_own(POLICY, KEY, OWN, value=None, metadata=more, last_update="later").body["metadata"]
    assert kept == METADATA | {"labels": {"team": "blue", ROBOT_LABEL: ROBOT_NAME}, "finalizers": ["lab/x"]}
    gone = delete_own(POLICY, KEY, OWN)
    assert (gone.method, gone.path, gone.body["preconditions"]) == ("DELETE", put.path, {"uid": "o-1"})


@pytest.mark.parametrize("others", [{"labels": {}}, {"finalizers": ["lab/x"]}, {"ownerReferences": [{"uid": "x"}]}])
def test_F10_3_metadata_of_others_are_read_before_the_own_object_is_replaced(others: Json) -> None:
    assert as_answered(OwnStatus("default", "u-1"), METADATA, ROBOT_NAME) == OWN._replace(status="")
    assert as_answered(OWN, METADATA | others, ROBOT_NAME) == OWN._replace(resource_version="")


def test_F10_3_a_list_shows_what_the_own_object_has() -> None:
    assert own_statuses(ROBOT_NAME, "fleet").selector == f"{ROBOT_LABEL}={ROBOT_NAME}"
    raw = {"metadata": METADATA, "spec": {"source": {"uid": "u-1"}, "returned": {"n": 1}}}
    assert (seen_status(raw, POLICY), own_key(raw, POLICY)) == (OWN, None)
    raw["spec"]["source"] |= {"namespace": "default", "name": "a"}
    assert (own_key(raw, POLICY), own_key(raw, policy(plural="others"))) == (KEY, None)
    assert seen_status({"metadata": METADATA}, POLICY) == OWN._replace(upstream_uid="", status="")
    part = policy(subtree="robot")
    raw["spec"]["returned"] = {"robot": {"n": 1}}
    assert seen_status(raw, part).status == status_digest({"status": {"robot": {"n": 1}, "x": 2}}, part)
