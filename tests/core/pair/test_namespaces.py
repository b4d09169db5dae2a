"""Which namespaces are synced, and what an object of them is called on either side."""

import pytest

from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces, meta_name, read_namespaces, same_names
from crsyncer.core.model import Gap, Key, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.project import view_of
from crsyncer.errors import Conflict
from tests.core.builders import goal, policy

CLOUD, ROBOT = Side
HOME = Namespaces(("robot-r1", "shared"), ("default", "area"))
CROSSED = Namespaces(("a", "b"), ("b", "a"))


def test_S1_7_without_a_map_every_namespace_is_its_own_counterpart():
    for namespaces in (EVERYWHERE, same_names(("one", "two"))):
        assert not namespaces.mapped
        for name in ("", "one", "other"):
            assert namespaces.translate(name, CLOUD, ROBOT) == namespaces.translate(name, ROBOT, CLOUD) == name
    assert EVERYWHERE.on(CLOUD) == EVERYWHERE.on(ROBOT) == ()
    assert same_names(("one", "two")).on(ROBOT) == ("one", "two")


def test_S1_7_with_a_map_each_side_has_its_own_names_and_everything_else_is_outside():
    assert HOME.mapped
    assert (HOME.on(CLOUD), HOME.on(ROBOT)) == (("robot-r1", "shared"), ("default", "area"))
    assert [HOME.translate(name, CLOUD, ROBOT) for name in ("robot-r1", "shared")] == ["default", "area"]
    assert [HOME.translate(name, ROBOT, CLOUD) for name in ("default", "area")] == ["robot-r1", "shared"]
    assert HOME.translate("default", CLOUD, ROBOT) is HOME.translate("robot-r1", ROBOT, CLOUD) is None
    assert HOME.translate("", CLOUD, ROBOT) == ""
    assert HOME.translate("elsewhere", ROBOT, ROBOT) == "elsewhere"
    assert [CROSSED.translate(name, CLOUD, ROBOT) for name in "ab"] == ["b", "a"]


@pytest.mark.parametrize("namespaces", [EVERYWHERE, same_names(("one",)), HOME, CROSSED])
def test_the_store_keeps_a_map_and_no_map_needs_no_word(namespaces: Namespaces):
    stored = namespaces.written
    assert read_namespaces(stored or None) == (namespaces if namespaces.mapped else EVERYWHERE)
    assert bool(stored) == namespaces.mapped
    assert meta_name("goals.lab.example.com") == "namespaces:goals.lab.example.com"


@pytest.mark.parametrize("upstream", Side)
def test_S1_7_a_key_is_upstreams_and_there_and_back_is_the_same(upstream: Side):
    kind = policy(upstream, namespaces=HOME)
    keys = [Key(namespace, "a") for namespace in HOME.on(upstream)]
    assert list(kind.places) == [key.namespace for key in keys]
    for key in keys:
        assert kind.key_on(upstream, key) == kind.key_of(upstream, key) == key
        copy = kind.key_on(upstream.other, key)
        assert copy.name == "a"
        assert kind.key_of(upstream.other, copy) == key
        assert copy.namespace in HOME.on(upstream.other)
        assert kind.key_of(upstream.other, key) is None
        with pytest.raises(Conflict, match="is not in the namespace map"):
            kind.key_on(upstream.other, copy)


def test_S1_7_a_kind_without_namespaces_has_one_place_whatever_the_map_says():
    areas = policy(namespaced=False, namespaces=HOME)
    assert areas.places == ("",)
    assert areas.key_on(ROBOT, Key("", "a")) == areas.key_of(ROBOT, Key("", "a")) == Key("", "a")
    assert object_calls.collection(areas, ROBOT, "").path == "/apis/lab.example.com/v1/goals"


def test_S1_7_requests_upstream_have_the_key_and_those_downstream_the_copys_name():
    kind, key = policy(namespaces=HOME), Key("robot-r1", "a")
    cloud, robot = (f"/apis/lab.example.com/v1/namespaces/{name}/goals" for name in ("robot-r1", "default"))
    raw = goal(metadata={"namespace": "robot-r1"}, status={"x": 1})
    copy = kind.copy_name(key, Gap.ABSENT)
    seed = object_calls.seed_status(kind, copy, uid="c-1", resource_version="10", status={"x": 1})
    paths = {
        object_calls.collection(kind, CLOUD, "robot-r1").path: cloud,
        object_calls.collection(kind, ROBOT, "robot-r1").path: robot,
        object_calls.revision(kind, CLOUD).path: cloud,
        object_calls.revision(kind, ROBOT).path: robot,
        object_calls.create(kind, copy, {}).path: robot,
        object_calls.update(kind, copy, {}).path: f"{robot}/a",
        object_calls.get(kind, copy).path: f"{robot}/a",
        object_calls.delete(kind, copy, "c-1").path: f"{robot}/a",
        seed.path: f"{robot}/a/status",
        object_calls.patch_status(kind, key, "u-1", {}, upstream=None).path: f"{cloud}/a/status",
        object_calls.put_status(kind, key, "u-1", {}, upstream=raw).path: f"{cloud}/a/status",
    }
    assert list(paths) == list(paths.values())
    assert seed.body["metadata"]["namespace"] == "default"
    assert object_calls.put_status(kind, key, "u-1", {}, upstream=raw).body["metadata"]["namespace"] == "robot-r1"


def test_S1_7_a_copy_is_composed_under_its_own_name_and_keeps_it():
    kind, raw = policy(namespaces=HOME), goal(metadata={"namespace": "robot-r1"})
    made = compose_copy(raw, view_of(raw, kind, CLOUD), kind, downstream=None)
    assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("default", "a")
    put = compose_copy(raw, view_of(raw, kind, CLOUD), kind, downstream=made)
    assert put["metadata"]["namespace"] == "default"
