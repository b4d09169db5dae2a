"""SyncPolicies are read in full, and every mistake is said in a line with its place."""

import pytest

from crsyncer.core.content.selector import Requirement, Selector
from crsyncer.core.content.steps import Cel, Mutations, Regex, Remove, Set
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.sync_policy import (
    Api,
    Deletion,
    Filter,
    Projection,
    Reference,
    read_sync_policy,
)
from crsyncer.core.model import Side
from crsyncer.errors import ConfigError
from tests.core.sync_policies import FULL, GONE, MINIMAL, SPEC, WRONG, Wrong, edited


def test_every_field_of_a_policy_is_read():
    policy = read_sync_policy(FULL)
    assert (policy.name, policy.resource) == ("orders", Resource("lab.example.com", "orders", "v1"))
    assert policy.upstream is Side.CLOUD
    assert policy.filter == Filter(
        by_robot_name=True,
        selector=Selector(
            (("tier", "edge"), ("lab.example.com/site", "")),
            (Requirement("zone", "In", ("a", "b")), Requirement("draft", "DoesNotExist")),
        ),
    )
    assert (policy.subtree, policy.map_generation, policy.keep_orphans, policy.keep_local) == (
        *("progress", True, True, True),
    )
    assert policy.naming
    assert policy.naming.namespace.placeholders == {"robot"}
    assert policy.naming.name.placeholders == {"namespace", "name"}
    assert policy.projection == Projection("shop.example.com", "v2", "purchases", "Purchase", namespaced=True)
    down, up = policy.mutations.down, policy.mutations.up
    assert [step.path for step in (down[0], up[0])] == ["/spec/priority", "/status/message"]
    assert [step.place for step in (down[4], up[0])] == ["spec.mutations.down[4]", "spec.mutations.up[0]"]
    assert [step.verb for step in (*down[:3], down[4])] == [
        Set({"level": 1, "why": [None, "x"]}),
        Remove(),
        Regex("^http:(.*)", ("https:", 1)),
        Cel("value + self.spec.offset"),
    ]
    assert policy.deletion == Deletion(blocking=True, grace_seconds=5400.0, propagation="foreground")
    assert policy.api == Api(
        Side.ROBOT,
        ("v1", "v2"),
        paused=True,
        projection=policy.projection,
        robots_version=policy.resource.version,
    )


def test_every_field_of_related_objects_is_read():
    secret, map_, parts = read_sync_policy(FULL).related
    assert (secret.id, secret.origin, secret.resource) == ("secret", Side.CLOUD, Resource("", "secrets", "v1"))
    assert (secret.objects, secret.keep, secret.filtered) == (Reference("/spec/secretName"), True, False)
    assert secret.namespace
    assert secret.namespace.placeholders == {"namespace"}
    assert secret.naming
    assert secret.naming.name.placeholders == {"name", "hash"}
    assert map_.projection == Projection(namespaced=True)
    assert (map_.status, map_.filtered, map_.keep, map_.namespace) == (True, None, False, None)
    assert parts.objects == Selector((("part", "yes"),))


def test_what_is_absent_has_its_default_or_is_left_to_the_annotations():
    for policy in (MINIMAL, edited(MINIMAL, "spec", "conflict", value=None)):
        read = read_sync_policy(policy)
        assert (read.upstream, read.subtree, read.map_generation, read.keep_orphans) == (None, None, None, None)
        assert (read.filter, read.naming, read.projection, read.mutations) == (Filter(), None, None, Mutations())
        assert (read.related, read.deletion, read.api, read.keep_local) == ((), None, None, None)
    deletion = read_sync_policy(edited(MINIMAL, "spec", "deletion", value={})).deletion
    assert deletion == Deletion(blocking=False, grace_seconds=3600.0, propagation="background")
    naming = read_sync_policy(edited(MINIMAL, "spec", "naming", value={"name": "a"})).naming
    assert naming
    assert naming.namespace.placeholders == {"namespace"}
    assert read_sync_policy(edited(MINIMAL, "spec", "api", value={"source": "cloud"})).api == Api(Side.CLOUD)


def test_policies_are_equal_where_their_json_is():
    """In Python 1 is True: a change from one to the other must not be missed."""
    values = [1, True, {"a": [1]}, {"a": [True]}, "1", None]
    assert all((Set(one) == Set(other)) is (one is other) for one in values for other in values)
    assert Set({"a": 1, "b": 2}) == Set({"b": 2, "a": 1})
    assert hash(Set({"a": 1, "b": 2})) == hash(Set({"b": 2, "a": 1}))


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_mistake_is_said_in_a_line_with_its_place(wrong: Wrong):
    with pytest.raises(ConfigError) as caught:
        read_sync_policy(wrong.policy)
    assert wrong.said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("raw", [None, [], "x", 1, {}])
def test_what_is_no_policy_at_all_is_said_in_a_line(raw):
    with pytest.raises(ConfigError, match=r"^(the whole is|apiVersion is missing)"):
        read_sync_policy(raw)


def test_C4_4_a_step_may_change_a_label_that_the_filter_does_not_use():
    path = (*SPEC, "mutations", "down", 3, "path")
    unfiltered = edited(FULL, "spec", "filter", value=GONE)
    for policy in (
        edited(FULL, *path, value="/metadata/labels/other"),
        edited(unfiltered, *path, value="/metadata/labels/tier"),
    ):
        assert read_sync_policy(policy).mutations.down[3].path.startswith("/metadata/labels/")
