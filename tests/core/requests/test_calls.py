"""The requests as values: what is asked, with which guards, in the one form that gateways accept (S2.1, S4.2)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.kinds.namespaces import same_names
from crsyncer.core.kinds.sync_policy import Projection
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.project import status_value, view_of
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Call
from tests.core.builders import goal, json_objects, json_values, policy, some, statuses

KEY = Key("default", "a")
GOALS = "/apis/lab.example.com/v1/goals"
IN_DEFAULT = "/apis/lab.example.com/v1/namespaces/default/goals"
SELECTOR = "cloudrobotics.com/robot-name=robot-1"
WHOLE, SUBTREE = policy(), policy(subtree="robot")
FILTERED, UNFILTERED = (
    object_calls.collection(policy(filtered=filtered), Side.CLOUD, "") for filtered in (True, False)
)


def patched(raw: Json, operations: list[Json]) -> Json | None:
    """What an API server makes of a JSON Patch (RFC 6902, as far as it is used); None: a test failed, or no target."""
    raw = {**raw, "metadata": dict(raw["metadata"])}
    for operation in operations:
        *parents, last = [p.replace("~1", "/").replace("~0", "~") for p in operation["path"].split("/")[1:]]
        target: Any = raw
        for part in parents:
            target[part] = dict(target[part]) if isinstance(target.get(part), dict) else None
            target = target[part]
            if target is None:
                return None
        match operation["op"]:
            case "test" if target.get(last) != operation["value"]:
                return None
            case "remove" if last not in target:
                return None
            case "remove":
                del target[last]
            case "add":
                target[last] = operation["value"]
    return raw


@some
@given(statuses, st.one_of(st.none(), json_objects.filter(bool)))
def test_S4_2_a_patch_puts_the_status_onto_the_very_object_that_was_meant(before, value):
    raw = goal(status=before)
    view = view_of(raw, WHOLE, Side.CLOUD)
    call = object_calls.patch_status(WHOLE, KEY, "u-1", value, upstream=view)
    assert call.body[0] == {"op": "test", "path": "/metadata/uid", "value": "u-1"}
    after = patched(raw, call.body)
    if value is None and before is None:
        assert after is None
    else:
        assert after is not None
        assert status_value(after, WHOLE) == value
    assert patched(goal(uid="u-2", status=before), call.body) is None


@pytest.mark.parametrize("subtree", [None, "robot"])
def test_S4_2_a_patch_for_a_filtered_kind_meets_only_an_object_with_the_robots_label(subtree):
    kind = policy(filtered=True, subtree=subtree)
    mine, others = ({ROBOT_LABEL: name} for name in (kind.robot, "robot-2"))
    raw = goal(metadata={"labels": mine}, status={"battery": 1})
    call = object_calls.patch_status(kind, KEY, "u-1", 7, upstream=view_of(raw, kind, Side.CLOUD))
    after = patched(raw, call.body)
    assert after is not None
    assert status_value(after, kind) == 7
    for labels in (others, {}):
        assert patched(goal(metadata={"labels": labels}, status={"battery": 1}), call.body) is None
    assert patched(goal(status={"battery": 1}), call.body) is None


values = st.one_of(st.none(), json_values.filter(lambda value: value != {}))


@pytest.mark.parametrize("subtree", ["robot", "a/b", "~1", "~0/~", "ä"])
@settings(deadline=None, max_examples=15)
@given(before=st.one_of(st.none(), json_objects), value=values)
@example(before={"battery": 7}, value={"phase": "DONE"})
@example(before={"battery": 7}, value=None)
@example(before={}, value=[])
def test_S4_5_a_patch_of_the_subtree_leaves_the_neighbours(subtree, before, value):
    kind = policy(subtree=subtree)
    raw = goal(status=before)
    call = object_calls.patch_status(kind, KEY, "u-1", value, upstream=view_of(raw, kind, Side.CLOUD))
    after = patched(raw, call.body)
    if value is None and (before is None or subtree not in before):
        assert after is None
        return
    assert after is not None
    assert status_value(after, kind) == value
    rest = {k: v for k, v in (before or {}).items() if k != subtree}
    assert {k: v for k, v in after["status"].items() if k != subtree} == rest
    assert patched(goal(uid="u-2", status=before), call.body) is None


def test_S4_5_where_the_parent_is_made_nobody_elses_new_status_is_overwritten():
    call = object_calls.patch_status(SUBTREE, KEY, "u-1", 7, upstream=view_of(goal(), SUBTREE, Side.CLOUD))
    assert patched(goal(version="2", status={"battery": 1}), call.body) is None
    without_sight = object_calls.patch_status(SUBTREE, KEY, "u-1", 7, upstream=None)
    after = patched(goal(status={"battery": 1}), without_sight.body)
    assert after is not None
    assert after["status"] == {"battery": 1, "robot": 7}


@pytest.mark.parametrize("kind", [WHOLE, SUBTREE])
def test_S4_1_where_upstream_may_have_moved_on_only_the_version_that_was_seen_is_written(kind):
    raw = goal(version="2", status={"battery": 1})
    call = object_calls.patch_status(kind, KEY, "u-1", {"x": 1}, upstream=view_of(raw, kind, Side.CLOUD), exact=True)
    assert patched(raw, call.body) is not None
    assert patched(goal(version="3", status={"battery": 1}), call.body) is None


def test_S4_2_a_status_goes_to_its_endpoint_and_asks_for_little_back():
    call = object_calls.patch_status(WHOLE, KEY, "u-1", {"x": 1}, upstream=None)
    assert (call.verb, call.method, call.path) == ("patch", "PATCH", IN_DEFAULT + "/a/status")
    assert (call.content_type, call.accept) == (calls.JSON_PATCH, calls.PARTIAL)
    put = object_calls.put_status(WHOLE, KEY, "u-1", {"x": 1}, upstream=goal())
    assert (put.verb, put.method, put.path) == ("update", "PUT", IN_DEFAULT + "/a/status")
    assert (put.content_type, put.accept) == (calls.JSON, calls.PARTIAL)


def test_S4_6_without_the_endpoint_a_status_goes_to_the_main_resource():
    kind = policy(status=False)
    assert object_calls.patch_status(kind, KEY, "u-1", {"x": 1}, upstream=None).path == IN_DEFAULT + "/a"
    assert object_calls.put_status(kind, KEY, "u-1", {"x": 1}, upstream=goal()).path == IN_DEFAULT + "/a"
    one_sided = policy(cloud={"status": False})
    assert object_calls.patch_status(one_sided, KEY, "u-1", {}, upstream=None).path == IN_DEFAULT + "/a"
    seed = object_calls.seed_status(one_sided, KEY, uid="c-1", resource_version="10", status={"x": 1})
    assert seed.path == IN_DEFAULT + "/a/status"


@some
@given(statuses, statuses)
def test_S4_2_a_put_of_status_carries_what_identifies_the_object_and_nothing_else(before, value):
    body = object_calls.put_status(WHOLE, KEY, "u-1", value, upstream=goal(status=before)).body
    guards = {"name": "a", "namespace": "default", "uid": "u-1", "resourceVersion": "1"}
    assert body["metadata"] == guards
    assert body.keys() - {"status"} == {"apiVersion", "kind", "metadata"}
    assert body.get("status") == value


@some
@given(statuses, statuses)
def test_S4_6_a_put_to_the_main_resource_carries_the_whole_object(before, value):
    raw = goal(status=before, metadata={"labels": {"a": "b"}})
    body = object_calls.put_status(policy(status=False), KEY, "u-7", value, upstream=raw).body
    rest = {k: v for k, v in raw.items() if k != "status"}
    assert body == rest | {"metadata": raw["metadata"] | {"uid": "u-7"}} | ({} if value is None else {"status": value})


@pytest.mark.parametrize("how", [{"has_crd": False}, {"projected": Projection(group="apps")}])
def test_S4_2_to_a_kind_that_may_have_no_crd_the_whole_object_is_put_which_keeps_its_metadata(how):
    kind, raw = replace(WHOLE, **how), goal(metadata={"labels": {"a": "b"}}, status={"n": 1})
    put = object_calls.put_status(kind, KEY, "u-1", {"n": 2}, upstream=raw)
    assert (put.path, put.body) == (IN_DEFAULT + "/a/status", raw | {"status": {"n": 2}})
    assert [object_calls.takes_metadata(each, Side.CLOUD) for each in (kind, WHOLE)] == [True, False]


@some
@given(statuses, values)
def test_S4_5_a_put_of_the_subtree_leaves_the_neighbours(before, value):
    body = object_calls.put_status(SUBTREE, KEY, "u-1", value, upstream=goal(status=before)).body
    assert status_value(body, SUBTREE) == value
    rest = {k: v for k, v in (before or {}).items() if k != "robot"}
    assert {k: v for k, v in body["status"].items() if k != "robot"} == rest


def test_S4_4_a_seed_is_guarded_by_uid_and_resource_version():
    call = object_calls.seed_status(WHOLE, KEY, uid="c-1", resource_version="10", status={"x": 1})
    assert (call.method, call.path) == ("PUT", IN_DEFAULT + "/a/status")
    assert call.body["metadata"] == {"name": "a", "namespace": "default", "uid": "c-1", "resourceVersion": "10"}
    assert call.body["status"] == {"x": 1}


def test_S1_7_objects_without_a_namespace_have_none_in_paths_and_guards():
    kind, key = policy(namespaced=False), Key("", "a")
    raw = goal()
    del raw["metadata"]["namespace"]
    assert object_calls.get(kind, key).path == GOALS + "/a"
    seed = object_calls.seed_status(kind, key, uid="c-1", resource_version="10", status={})
    put = object_calls.put_status(kind, key, "u-1", {}, upstream=raw)
    assert "namespace" not in seed.body["metadata"].keys() | put.body["metadata"].keys()


def test_S2_1_filtered_lists_and_watches_have_the_one_selector_that_gateways_accept():
    page = calls.list_page(FILTERED, limit=500)
    assert page.query == (("labelSelector", SELECTOR), ("limit", "500"))
    assert calls.list_page(FILTERED, limit=500, resume="x").query[2:] == (("continue", "x"),)
    watch = dict(calls.watch(FILTERED, resource_version="7", timeout_seconds=300).query)
    assert watch == {
        "labelSelector": SELECTOR,
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }
    assert "labelSelector" not in dict(calls.list_page(UNFILTERED, limit=1).query)
    assert "labelSelector" not in dict(calls.watch(UNFILTERED, resource_version="7", timeout_seconds=1).query)


def test_S8_2_the_cheapest_list_matches_nothing_or_takes_the_one_selector_and_one_object():
    restricted = policy(filtered=True, namespaces=same_names(("default",)))
    unfiltered, filtered = (object_calls.revision(kind, Side.CLOUD) for kind in (policy(), restricted))
    assert dict(unfiltered.query)["labelSelector"].startswith("crsyncer.cloudrobotics.com/")
    assert dict(filtered.query) == {"labelSelector": SELECTOR, "limit": "1"}
    assert (unfiltered.path, filtered.path) == (GOALS, IN_DEFAULT)
    assert "resourceVersion" not in dict(unfiltered.query) | dict(filtered.query)


def test_S5_1_every_delete_has_a_uid_precondition_and_works_in_the_background():
    call = object_calls.delete(WHOLE, KEY, "c-1")
    assert (call.verb, call.method, call.path) == ("delete", "DELETE", IN_DEFAULT + "/a")
    assert call.body["preconditions"] == {"uid": "c-1"}
    assert object_calls.delete(WHOLE, KEY, "c-1", resource_version="7").body["preconditions"] == {
        "uid": "c-1",
        "resourceVersion": "7",
    }
    assert call.body["propagationPolicy"] == "Background"


@pytest.mark.parametrize(
    ("call", "verb", "method", "path"),
    [
        (object_calls.create(WHOLE, KEY, {"x": 1}), "create", "POST", IN_DEFAULT),
        (object_calls.create(policy(namespaced=False), Key("", "a"), {"x": 1}), "create", "POST", GOALS),
        (object_calls.update(WHOLE, KEY, {"x": 1}), "update", "PUT", IN_DEFAULT + "/a"),
        (object_calls.get(WHOLE, KEY), "get", "GET", IN_DEFAULT + "/a"),
        (calls.create_namespace("default"), "create", "POST", "/api/v1/namespaces"),
        (calls.group_versions("lab.example.com"), "discover", "GET", "/apis/lab.example.com"),
        (calls.discovery("lab.example.com", "v1"), "discover", "GET", "/apis/lab.example.com/v1"),
        (calls.discovery("", "v1"), "discover", "GET", "/api/v1"),
    ],
)
def test_requests_are_what_an_api_server_understands(call, verb, method, path):
    assert (call.verb, call.method, call.path) == (verb, method, path)
    assert call.timeout > 0


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (object_calls.delete(WHOLE, KEY, "u1"), "lab.example.com/v1/goals"),
        (object_calls.create(WHOLE, Key("other", "a"), {"x": 1}), "lab.example.com/v1/goals"),
        (object_calls.get(policy(namespaced=False), Key("", "a")), "lab.example.com/v1/goals"),
        (calls.create_namespace("default"), "v1/namespaces"),
        (calls.VERSION, ""),
    ],
)
def test_S9_5_requests_about_a_kind_are_alike_whichever_object_and_namespace(call, kind):
    assert calls.kind_of(call) == kind


def test_S9_4_one_object_is_listed_by_its_name_in_its_namespace():
    assert calls.list_one(UNFILTERED, KEY) == Call("list", "GET", IN_DEFAULT, (("fieldSelector", "metadata.name=a"),))
    labelled = calls.list_one(FILTERED, KEY)
    assert labelled.query == (("labelSelector", SELECTOR), ("fieldSelector", "metadata.name=a"))


def test_S8_2_a_replay_is_a_short_watch_of_metadata():
    call = calls.replay(FILTERED, before="6", seconds=1)
    assert call.query[0] == ("labelSelector", SELECTOR)
    assert dict(call.query)["resourceVersion"] == "6"
    assert call.accept == calls.PARTIAL
    assert calls.replay(UNFILTERED, before="6", seconds=1).query == call.query[1:]


def test_S8_1_of_a_crd_only_the_metadata_is_asked():
    call = calls.crd("goals.lab.example.com")
    assert call.path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/goals.lab.example.com"
    assert call.accept == calls.PARTIAL


def test_C8_a_collection_of_one_name_is_selected_by_it():
    one = replace(calls.CRD_COLLECTION, name="goals.lab.example.com")
    assert calls.list_page(one, limit=1).query[0] == ("fieldSelector", "metadata.name=goals.lab.example.com")
    assert calls.list_page(one, limit=1).path == calls.CRDS


@pytest.mark.parametrize("side", Side)
def test_C9_1_one_object_of_a_kind_is_asked_for_with_the_selector_of_the_kind(side):
    plain, filtered = (object_calls.first_object(policy(filtered=each), side) for each in (False, True))
    assert (plain.verb, plain.path) == ("list", "/apis/lab.example.com/v1/goals")
    assert plain.query == (("limit", "1"),)
    assert filtered.query == (("labelSelector", "cloudrobotics.com/robot-name=robot-1"), ("limit", "1"))
