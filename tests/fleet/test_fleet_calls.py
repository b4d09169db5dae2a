"""The requests of the controller: what guards each write."""

from dataclasses import replace

import pytest

from crsyncer.core.model import Key
from crsyncer.fleet.domain import fleet_calls
from crsyncer.fleet.domain.fleet_calls import DECISIONS
from crsyncer.fleet.domain.values import PLACEMENT_FINALIZER
from tests.fleet.made import KIND, placement

FINALIZERS = "/metadata/finalizers"


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


def test_a_status_lands_on_the_object_of_that_uid_only():
    call = fleet_calls.put_status("/p", "u", {"a": 1})
    assert call.path == "/p/status"
    written = {"op": "add", "path": "/status", "value": {"a": 1}}
    assert call.body == [{"op": "test", "path": "/metadata/uid", "value": "u"}, written]


def test_own_objects_are_made_replaced_and_deleted_as_they_were_seen():
    body = {"metadata": {"namespace": "site", "name": "all-0"}}
    made = fleet_calls.put_own(DECISIONS, body)
    assert (made.method, made.path.rpartition("/")[2]) == ("POST", "robotplacementdecisions")
    put = fleet_calls.put_own(DECISIONS, body, uid="u", resource_version="7")
    assert put.method == "PUT"
    assert put.body["metadata"] == {"namespace": "site", "name": "all-0", "uid": "u", "resourceVersion": "7"}
    gone = fleet_calls.delete(fleet_calls.item(DECISIONS, Key("site", "all-0")), "u", "7")
    assert gone.path == put.path
    assert gone.body["preconditions"] == {"uid": "u", "resourceVersion": "7"}


def test_a_revision_is_asked_for_without_objects():
    call = fleet_calls.revision(DECISIONS)
    assert dict(call.query)["limit"] == "1"
