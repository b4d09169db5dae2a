"""What a robot reports to its fleet, and by which requests (F9)."""

from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT, UPSTREAM_UID
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces, same_names
from crsyncer.core.model import Key, Record, ReplicaMark, Stamp, View
from crsyncer.core.reports import robot_report as reports
from crsyncer.core.reports.robot_report import Acknowledgement, acknowledgements, applied_digest, applied_map

KEY = Key("default", "dock")
MARK = ReplicaMark("placement", 7)
UPSTREAM = View("u", "9", 1, False, content="new", status="", has_status=False, replica=MARK)
COPY = View("c", "3", 1, False, content="new", status="", has_status=False, stamp=Stamp("u", digest="new"))
BEFORE = Acknowledgement("u", ReplicaMark("placement", 6))


@pytest.mark.parametrize(
    ("upstream", "copy", "record", "applied"),
    [
        (UPSTREAM, COPY, None, True),
        (UPSTREAM, replace(COPY, content="drifted"), None, True),
        (UPSTREAM, None, Record("u", applied="new"), False),
        (UPSTREAM, replace(COPY, stamp=Stamp("u", digest="old")), Record("u", applied="old"), False),
        (UPSTREAM, replace(COPY, stamp=Stamp("u", digest="")), Record("u", applied="new"), True),
        (UPSTREAM, replace(COPY, stamp=Stamp("u", digest="")), None, False),
        (UPSTREAM, replace(COPY, stamp=None), Record("u", applied="new"), True),
        (UPSTREAM, replace(COPY, stamp=None), Record("v", applied="new"), False),
        (UPSTREAM, replace(COPY, stamp=Stamp("v", digest="new")), Record("u", applied="new"), False),
        (replace(UPSTREAM, failure="step 1"), COPY, None, False),
    ],
)
def test_F9_5_a_replica_is_applied_where_its_copy_was_given_this_content(upstream, copy, record, applied):
    views, copies, records = {KEY: upstream}, {KEY: copy} if copy else {}, {KEY: record} if record else {}
    for before, otherwise in (({}, {}), ({KEY: BEFORE}, {KEY: BEFORE})):
        found = acknowledgements(views, copies, records, before=before)
        assert found == ({KEY: Acknowledgement("u", MARK)} if applied else otherwise)


def test_F9_5_what_is_no_replica_goes_or_is_another_object_now_is_not_reported():
    views = {KEY: replace(UPSTREAM, replica=None), Key("default", "anew"): replace(UPSTREAM, uid="v")}
    views[Key("default", "going")] = replace(UPSTREAM, terminating=True)
    copies = {Key("default", "going"): COPY}
    assert acknowledgements(views, copies, {}, before=dict.fromkeys(views, BEFORE)) == {}


def test_F9_5_the_digest_is_of_the_sorted_uids_and_numbers():
    assert applied_digest([("a", 1), ("b", 2)]) == applied_digest([("b", 2), ("a", 1)])
    others = [[("a", 1)], [("a", 1), ("b", 3)], [("b", 1), ("a", 2)], []]
    assert len({applied_digest(each) for each in [*others, [("a", 1), ("b", 2)]]}) == 5
    assert len(applied_digest([])) == 24


def test_F9_5_a_report_has_the_digest_of_each_placement_and_of_500_at_most():
    found = [Acknowledgement(f"u{n}", ReplicaMark(f"p{n % 2}", n)) for n in range(4)]
    assert applied_map(found) == {
        "p0": applied_digest([("u0", 0), ("u2", 2)]),
        "p1": applied_digest([("u1", 1), ("u3", 3)]),
    }
    many = [Acknowledgement("u", ReplicaMark(f"p{n:03}", 1)) for n in range(600)]
    assert list(applied_map(reversed(many))) == [f"p{n:03}" for n in range(500)]


@pytest.mark.parametrize(
    ("namespaces", "chosen", "place"),
    [
        (EVERYWHERE, "default", "default"),
        (EVERYWHERE, None, None),
        (same_names(("robot-r1",)), "default", "robot-r1"),
        (same_names(("robot-r1",)), None, None),
        (Namespaces(("robot-r1", "x"), ("default", "x")), "reports", "robot-r1"),
        (Namespaces(("other",), ("robot-r1",)), "reports", "reports"),
    ],
)
def test_F9_1_a_report_is_in_the_robots_own_namespace_where_the_settings_name_that(namespaces, chosen, place):
    assert reports.report_place("r1", namespaces, chosen) == place


@pytest.mark.parametrize(
    ("resources", "served"),
    [
        (None, False),
        ([{"name": "robotplacements", "verbs": ["create"]}], False),
        ([{"name": "robotsyncstates"}], False),
        ([{"name": "robotsyncstates", "verbs": ["list", "delete"]}], False),
        ([{"name": "robotsyncstates", "verbs": ["list", "create"]}], True),
    ],
)
def test_F9_2_discovery_shows_whether_reports_can_be_made(resources, served):
    assert reports.is_served({"resources": resources}) is served


def test_F9_1_the_requests_of_a_report():
    path = "/apis/fleet.crsyncer.cloudrobotics.com/v1alpha1/namespaces/default/robotsyncstates"
    listed = reports.list_reports("r1", "default")
    assert (listed.path, listed.query) == (path, (("labelSelector", f"{ROBOT_LABEL}=r1"),))
    made = reports.write_report("r1", "default", {"beat": 1}, metadata=None)
    assert (made.method, made.path) == ("POST", path)
    assert made.body == {
        "apiVersion": "fleet.crsyncer.cloudrobotics.com/v1alpha1",
        "kind": "RobotSyncState",
        "metadata": {"name": "r1", "namespace": "default", "labels": {ROBOT_LABEL: "r1"}, "annotations": {ROBOT: "r1"}},
        "spec": {"beat": 1},
    }
    known = made.body["metadata"] | {"uid": "u", "resourceVersion": "5", "managedFields": [], "labels": {"a": "b"}}
    put = reports.write_report("r1", "default", {"beat": 2}, metadata=known)
    assert (put.method, put.path) == ("PUT", f"{path}/r1")
    assert put.body["metadata"]["labels"] == {"a": "b", ROBOT_LABEL: "r1"}
    assert (put.body["metadata"]["uid"], put.body["metadata"]["resourceVersion"]) == ("u", "5")
    assert "managedFields" not in put.body["metadata"]
    gone = reports.delete_report("r1", "default", "u")
    assert (gone.method, gone.path, gone.body["preconditions"]) == ("DELETE", f"{path}/r1", {"uid": "u"})


def test_F9_1_a_report_is_found_in_a_list_and_its_beat_is_read():
    own = {"metadata": {"name": "r1"}, "spec": {"beat": 4}}
    assert reports.own_report({"items": [{"metadata": {"name": "r2"}}, own]}, "r1") is own
    assert reports.own_report({"items": None}, "r1") is None
    assert [reports.beat_of(each) for each in (own, {}, {"spec": {"beat": "x"}})] == [4, 0, 0]
    assert [reports.is_foreign({"metadata": {"annotations": each}}) for each in (None, {UPSTREAM_UID: "u"})] == [
        False,
        True,
    ]
