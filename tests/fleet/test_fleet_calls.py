"""The requests of the controller: what guards each write."""

from dataclasses import replace

import pytest

from crsyncer.core.model import Key
from crsyncer.core.requests.calls import JSON
from crsyncer.fleet.domain import fleet_calls
from crsyncer.fleet.domain.fleet_calls import DECISIONS
from crsyncer.fleet.domain.values import PLACEMENT_FINALIZER, Rendering
from tests.fleet.made import KIND, placement, wanted

FINALIZERS = "/metadata/finalizers"
MADE = Rendering({"spec": {"x": 1}}, {}, {}, "stamp")
WANTED = wanted(MADE)


def test_a_cluster_scoped_kind_has_no_namespace_in_its_path():
    kind = replace(KIND, namespaced=False)
    assert fleet_calls.objects_of(kind, "site").path == "/apis/lab.example.com/v1/goals"


@pytest.mark.parametrize(
    ("finalizers", "added"),
    [
        ([], {"op": "add", "path": FINALIZERS, "value": [PLACEMENT_FINALIZER]}),
        (["x"], {"op": "add", "path": f"{FINALIZERS}/-", "value": PLACEMENT_FINALIZER}),
    ],
)
def test_F5_3_the_finalizer_is_added_once_to_the_version_that_was_seen(finalizers, added):
    call = fleet_calls.add_finalizer(finalizers, placement(), "7")
    assert [each["path"] for each in call.body[:2]] == ["/metadata/uid", "/metadata/resourceVersion"]
    assert call.body[2] == added


def test_F5_3_of_several_finalizers_ours_goes():
    call = fleet_calls.remove_finalizer(["x", PLACEMENT_FINALIZER], placement())
    assert call.body[1:] == [
        {"op": "test", "path": f"{FINALIZERS}/1", "value": PLACEMENT_FINALIZER},
        {"op": "remove", "path": f"{FINALIZERS}/1"},
    ]


def test_F5_2_a_release_goes_only_as_it_was_read():
    call = fleet_calls.remove_release(DECISIONS, Key("site", "all-0"), uid="u", release="abc")
    path = "/metadata/annotations/fleet.crsyncer.cloudrobotics.com~1release"
    assert call.body == [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": path, "value": "abc"},
        {"op": "remove", "path": path},
    ]


@pytest.mark.parametrize(
    ("status", "written"),
    [({"a": 1}, {"op": "add", "path": "/status", "value": {"a": 1}}), (None, {"op": "remove", "path": "/status"})],
)
def test_a_status_lands_on_the_object_of_that_uid_only(status, written):
    call = fleet_calls.put_status("/p", "u", status)
    assert call.path == "/p/status"
    assert call.body == [{"op": "test", "path": "/metadata/uid", "value": "u"}, written]


def test_the_status_of_a_placement_is_written_beside_it():
    call = fleet_calls.put_placement_status(placement(), {})
    prefix = "/apis/fleet.crsyncer.cloudrobotics.com/v1alpha1/namespaces/site"
    assert call.path == f"{prefix}/robotplacements/all/status"


def test_own_objects_are_made_replaced_and_deleted_as_they_were_seen():
    body = {"metadata": {"namespace": "site", "name": "all-0"}}
    made = fleet_calls.put_own(DECISIONS, body)
    assert (made.method, made.path.rpartition("/")[2]) == ("POST", "robotplacementdecisions")
    put = fleet_calls.put_own(DECISIONS, body, uid="u", resource_version="7")
    assert put.method == "PUT"
    assert put.body["metadata"] == {"namespace": "site", "name": "all-0", "uid": "u", "resourceVersion": "7"}
    gone = fleet_calls.delete_own(DECISIONS, Key("site", "all-0"), uid="u", resource_version="7")
    assert gone.path == put.path
    assert gone.body["preconditions"] == {"uid": "u", "resourceVersion": "7"}


def test_a_revision_is_asked_for_without_objects():
    call = fleet_calls.revision(DECISIONS)
    assert dict(call.query)["limit"] == "1"


def test_F6_2_the_status_of_a_source_is_patched_and_answered_in_full():
    test = {"op": "test", "path": "/metadata/uid", "value": "u"}
    call = fleet_calls.patch_status(KIND, Key("site", "dock"), [test, {"op": "remove", "path": "/status"}])
    assert call.path == "/apis/lab.example.com/v1/namespaces/site/goals/dock/status"
    assert (call.method, call.body[0], call.accept) == ("PATCH", test, JSON)
