"""Copies as they are composed, views as they are read, and objects that are refused (S3, threat 28)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL, SYNCER
from crsyncer.core.content.object_content import (
    APPLIED,
    LAST_APPLIED,
    ROBOT,
    UPSTREAM_UID,
    differences,
    key_of,
    stamp_of,
    synced_annotations,
    touched,
)
from crsyncer.core.model import Key, ObjectVersion, Side, Stamp
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.project import objection, view_of
from crsyncer.core.watching.watch import version_of
from tests.core.builders import (
    ROBOT_NAME,
    copy_of,
    goal,
    json_objects,
    json_values,
    names,
    policies,
    policy,
    some,
    statuses,
    staying_annotations,
    stored,
    synced_texts,
    upstream_goals,
)

EXCLUDED = (OURS, SYNCER, LAST_APPLIED, "kcp.io/", "internal.apis.kcp.io/")


def compose(upstream, kind, downstream=None):
    return compose_copy(upstream, view_of(upstream, kind, kind.upstream), kind, downstream=downstream)


def content(raw):
    return {k: v for k, v in raw.items() if k not in ("apiVersion", "kind", "metadata", "status")}


@st.composite
def downstream_goals(draw: st.DrawFn):
    """An object downstream: with a readable stamp, a broken one or none, and with things of its own."""
    metadata = {
        "labels": draw(synced_texts),
        "annotations": draw(synced_texts) | draw(staying_annotations),
        "finalizers": draw(st.lists(names, max_size=2)),
        "ownerReferences": [{"uid": "o-1"}],
        "managedFields": [{"manager": "crsyncer"}],
    }
    raw = goal(status=draw(statuses), uid="c-1", version="10", metadata=metadata)
    return raw | draw(st.dictionaries(st.sampled_from(["spec", "data"]), json_values, max_size=2))


@some
@given(upstream_goals(), downstream_goals(), policies)
def test_S3_2_what_was_composed_needs_no_second_write(upstream, downstream, kind):
    up = view_of(upstream, kind, kind.upstream)
    for before in (None, downstream):
        down = view_of(stored(compose(upstream, kind, before)), kind, kind.downstream)
        assert down.content == up.content
        assert down.stamp is not None
        assert (down.stamp.upstream_uid, down.stamp.digest) == (up.uid, up.content)
        assert down.stamp.robot == (ROBOT_NAME if kind.upstream is Side.ROBOT else "")


@some
@given(upstream_goals(), downstream_goals(), policies)
def test_S3_2_composing_twice_is_composing_once(upstream, downstream, kind):
    once = compose(upstream, kind, downstream)
    assert compose(upstream, kind, once) == once
    created = stored(compose(upstream, kind))
    assert compose(upstream, kind, created) == created


@some
@given(upstream_goals(), downstream_goals(), policies)
def test_S3_1_content_is_upstreams_and_what_upstream_has_not_is_removed(upstream, downstream, kind):
    assert content(compose(upstream, kind, downstream)) == content(compose(upstream, kind)) == content(upstream)


@some
@given(upstream_goals(), policies)
def test_S3_3_a_new_copy_has_nothing_of_upstreams_that_must_not_travel(upstream, kind):
    metadata = compose(upstream, kind)["metadata"]
    assert set(metadata) == {"name", "namespace", "labels", "annotations"}
    travelling = {k: v for k, v in metadata["annotations"].items() if not k.startswith(EXCLUDED)}
    assert travelling == synced_annotations(upstream)
    own = {UPSTREAM_UID, APPLIED, ROBOT} if kind.upstream is Side.ROBOT else {UPSTREAM_UID, APPLIED}
    assert {k for k in metadata["annotations"] if k.startswith(EXCLUDED)} == own


@some
@given(upstream_goals(), downstream_goals(), policies)
def test_S3_3_what_downstream_has_of_its_own_stays_and_guards_the_write(upstream, downstream, kind):
    metadata = compose(upstream, kind, downstream)["metadata"]
    theirs = {k: v for k, v in downstream["metadata"].items() if k not in ("labels", "annotations", "managedFields")}
    assert {k: v for k, v in metadata.items() if k not in ("labels", "annotations")} == theirs
    assert (metadata["uid"], metadata["resourceVersion"]) == ("c-1", "10")


@some
@given(upstream_goals(), downstream_goals(), policies)
def test_S3_3_excluded_annotations_of_upstream_are_never_copied(upstream, downstream, kind):
    ours = (UPSTREAM_UID, APPLIED, ROBOT)
    body, before = compose(upstream, kind, downstream), downstream["metadata"].get("annotations") or {}
    owned = (stamp_of(downstream) or Stamp("")).annotations
    for key, value in body["metadata"]["annotations"].items():
        if key.startswith(EXCLUDED) and key not in ours:
            assert before[key] == value
            assert key not in owned


@st.composite
def three_ways(draw: st.DrawFn):
    """What upstream had, what it has now, and what downstream has made of its copy meanwhile."""
    before, now = draw(synced_texts), draw(synced_texts)
    edits = draw(st.dictionaries(names, st.one_of(st.none(), names), max_size=3))
    return before, now, edits


@some
@given(three_ways(), st.sampled_from(["labels", "annotations"]))
def test_S3_4_labels_and_annotations_are_merged_three_ways(way, field):
    before, now, edits = way
    kind = policy()
    copy = copy_of(goal(metadata={field: before}), kind)
    theirs = copy["metadata"][field] | {k: v for k, v in edits.items() if v is not None}
    copy["metadata"][field] = {k: v for k, v in theirs.items() if edits.get(k, v) is not None}
    merged = compose(goal(metadata={field: now}), kind, copy)["metadata"][field]
    for key in {*before, *now, *edits}:
        if key in now:
            assert merged[key] == now[key]
        elif key in before:
            assert key not in merged
        else:
            assert merged.get(key) == edits[key]


def test_S3_4_the_keys_that_upstream_owns_are_remembered_on_the_copy():
    upstream = goal(metadata={"labels": {"b": "1", "a": "2"}, "annotations": {"n": "3", LAST_APPLIED: "{}"}})
    copy = copy_of(upstream, policy())
    up = view_of(upstream, policy(), Side.CLOUD)
    assert stamp_of(copy) == Stamp("u-1", "", up.content, ("a", "b"), ("n",))
    assert json.loads(copy["metadata"]["annotations"][APPLIED]).keys() == {"digest", "labels", "annotations"}


def test_S3_4_labels_that_only_downstream_actors_added_do_not_count_as_drift():
    kind, upstream = policy(), goal(metadata={"labels": {"a": "1"}})
    copy = copy_of(upstream, kind)
    copy["metadata"]["labels"] = {"a": "1", "theirs": "2"}
    assert view_of(copy, kind, Side.ROBOT).content == view_of(upstream, kind, Side.CLOUD).content
    for labels in ({"theirs": "2"}, {"a": "9"}):
        copy["metadata"]["labels"] = labels
        assert view_of(copy, kind, Side.ROBOT).content != view_of(upstream, kind, Side.CLOUD).content


def test_S3_5_what_differs_is_said_by_path():
    wanted = goal(spec={"a": {"b": 1, "c": [1, 2]}, "d": 4}, metadata={"labels": {"team": "x"}})
    found = goal(
        spec={"a": {"b": 1.0, "c": [1, 3]}, "e": 5}, metadata={"annotations": {"note": "y", LAST_APPLIED: "z"}}
    )
    assert differences(wanted, found) == [
        "metadata.annotations.note",
        "metadata.labels.team",
        "spec.a.c",
        "spec.d",
        "spec.e",
    ]
    assert differences(wanted, goal(spec=7, metadata={"labels": {"team": "x"}})) == ["spec"]
    not_content = {"annotations": {APPLIED: "{}"}}
    assert differences(goal(metadata=not_content, status={"n": 1}), goal(data={"k": "v"}, status={"n": 2})) == [
        "data",
        "spec",
    ]


@some
@given(upstream_goals(), downstream_goals(), policies)
def test_S3_5_what_was_just_composed_differs_in_nothing(upstream, downstream, kind):
    composed = compose(upstream, kind, downstream)
    assert differences(composed, stored(composed, version="11")) == []
    assert differences(composed, composed | {"other": {"what it was": composed.get("other")}}) != []


@some
@given(upstream_goals(), statuses, policies)
def test_S4_6_a_new_copy_has_a_status_where_it_is_part_of_the_main_resource_and_a_put_keeps_the_copys(
    upstream, status, kind
):
    new, put = compose(upstream, kind), compose(upstream, kind, stored(goal(status=status)))
    whole = not kind.endpoint(kind.downstream).status
    assert new.get("status") == (upstream.get("status") if whole else None)
    assert put.get("status") == status


def test_S4_5_a_put_leaves_an_odd_status_alone_and_a_new_copy_does_not_get_one():
    kind = policy(status=False)
    assert compose(goal(), kind, stored(goal(status="DONE")))["status"] == "DONE"
    assert "status" not in compose(goal(status="DONE"), kind)


def test_S1_7_a_cluster_scoped_copy_has_no_namespace():
    kind = policy(namespaced=False)
    upstream = goal()
    del upstream["metadata"]["namespace"]
    assert set(compose(upstream, kind)["metadata"]) == {"name", "labels", "annotations"}
    assert key_of(upstream) == Key("", "a")
    assert key_of(goal()) == Key("default", "a")


def test_a_view_says_what_was_seen():
    raw = goal(status="DONE", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    view = view_of(raw, policy(), Side.CLOUD)
    assert (view.uid, view.resource_version, view.generation) == ("u-1", "1", 1)
    assert (view.terminating, view.has_status, view.odd_status) == (True, True, True)
    plain = view_of(goal(metadata={"deletionTimestamp": None}), policy(), Side.CLOUD)
    assert (plain.terminating, plain.has_status, plain.odd_status) == (False, False, False)


def test_S5_4_stamps_are_read_downstream_only():
    copy = copy_of(goal(), policy())
    assert view_of(copy, policy(), Side.CLOUD).stamp is None
    assert view_of(copy, policy(), Side.ROBOT).stamp is not None


def test_S6_6_the_views_of_a_pair_keep_each_text_once():
    up = view_of(goal(status={"n": 1}), policy(), Side.CLOUD)
    key = Key("default", "a")
    views = {Side.CLOUD: {key: up}, Side.ROBOT: {}}
    copy = copy_of(goal(), policy()) | {"status": {"n": 1}}
    view = view_of(copy, policy(), Side.ROBOT, views=views)
    assert view == view_of(copy, policy(), Side.ROBOT)
    assert view.stamp is not None
    assert (view.content, view.status, view.stamp.upstream_uid) == (up.content, up.status, up.uid)
    assert view.content is view.stamp.digest is up.content
    assert view.status is up.status
    assert view.stamp.upstream_uid is up.uid
    views[Side.ROBOT][key] = view
    later = view_of(copy | {"status": {"n": 2}}, policy(), Side.ROBOT, views=views)
    assert later.status != view.status
    assert later.content is view.content
    assert later.stamp is view.stamp


@pytest.mark.parametrize(
    "applied",
    ["", "{", "[]", "7", "null", "{}", '{"digest": "d", "labels": 7, "annotations": []}', "[" * 100_000, "9" * 5_000],
)
def test_S3_4_a_stamp_that_somebody_broke_still_says_whose_copy_it_is(applied):
    raw = goal(metadata={"annotations": {UPSTREAM_UID: "u-1", ROBOT: "robot-1", APPLIED: applied}})
    assert stamp_of(raw) == Stamp("u-1", "robot-1")


GOOD = goal(metadata={"labels": {ROBOT_LABEL: ROBOT_NAME}})


def changed(**metadata):
    return GOOD | {"metadata": GOOD["metadata"] | metadata}


def deep(levels: int):
    value: dict = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return GOOD | {"spec": value}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "no uid"),
        (GOOD | {"metadata": []}, "no uid"),
        (changed(uid=""), "no uid"),
        (changed(uid=7), "no uid"),
        (changed(resourceVersion=None), "no uid or resourceVersion"),
        (changed(resourceVersion=12), "no uid or resourceVersion"),
        (GOOD | {"kind": "Pod"}, "it is a lab.example.com/v1 Pod, not a lab.example.com/v1 Goal"),
        (GOOD | {"apiVersion": "v1"}, "it is a v1 Goal"),
        (changed(name="../pods"), "name"),
        (changed(name="A"), "name"),
        (changed(name="a\n"), "name"),
        (changed(name=None), "name"),
        (changed(name="a" * 254), "name"),
        (changed(namespace=""), "scope"),
        (changed(namespace=None), "namespace is not valid"),
        (changed(namespace=5), "namespace is not valid"),
        (changed(namespace="a/b"), "namespace is not valid"),
        (changed(namespace="kube-system"), "of namespace kube-system, asked was default"),
        (changed(labels=["x"]), "texts"),
        (changed(labels={ROBOT_LABEL: 7}), "texts"),
        (changed(annotations={"a": {}}), "texts"),
        (changed(generation="7"), "generation"),
        (changed(generation=True), "generation"),
        (changed(labels={ROBOT_LABEL: "robot-2"}), "not labelled for robot robot-1"),
        (changed(labels=None), "not labelled"),
        (deep(10_000), "levels deep"),
    ],
)
def test_threat_28_an_object_that_we_did_not_ask_for_is_refused(raw, words):
    assert words in objection(raw, policy(filtered=True), Side.CLOUD, namespace="default")


def test_threat_28_an_object_that_we_asked_for_is_let_through():
    assert objection(GOOD, policy(filtered=True), Side.CLOUD, namespace="default") == ""
    assert objection(GOOD, policy(), Side.CLOUD) == ""
    assert objection(deep(9_999), policy(), Side.CLOUD) == ""
    assert objection(changed(labels=None, annotations=None), policy(), Side.CLOUD) == ""


def test_S2_2_an_object_that_leaves_may_have_lost_its_label():
    kind = policy(filtered=True)
    assert objection(changed(labels={}), kind, Side.CLOUD, namespace="default", leaving=True) == ""
    assert "kube" in objection(
        changed(labels={}, namespace="kube"), kind, Side.CLOUD, namespace="default", leaving=True
    )


FIELDS = ["uid", "name", "namespace", "resourceVersion", "generation", "labels", "annotations", "deletionTimestamp"]
FIELDS += ["finalizers", "ownerReferences", "managedFields"]


@some
@given(
    st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4),
    st.dictionaries(st.sampled_from(["metadata", "status", "spec", "kind", "apiVersion"]), json_values, max_size=2),
    policies,
    st.booleans(),
)
def test_threat_28_whatever_is_let_through_can_be_read_and_composed(metadata, top, kind, leaving):
    raw = changed(**metadata) | top
    if objection(raw, kind, Side.CLOUD, namespace="default", leaving=leaving):
        return
    key_of(raw)
    for side in Side:
        view_of(raw, kind, side)
    compose(raw, kind, stored(GOOD))
    compose(GOOD, kind, raw)


@some
@given(json_objects, policies)
def test_threat_28_no_object_makes_the_objection_itself_fail(raw, kind):
    assert objection(raw, kind, Side.CLOUD)


def test_S9_4_a_digest_names_the_version_of_each_object():
    metadata = {"namespace": "default", "name": "a", "uid": "u-1", "resourceVersion": "7"}
    assert version_of({"metadata": metadata}) == ObjectVersion(Key("default", "a"), "u-1", "7")
    del metadata["namespace"]
    assert version_of({"metadata": metadata}) == ObjectVersion(Key("", "a"), "u-1", "7")


@pytest.mark.parametrize("metadata", [None, [], {}, {"name": "a", "uid": "u"}, {"name": 1, "uid": "u"}])
def test_S9_4_what_is_no_metadata_names_no_version(metadata):
    assert version_of({"metadata": metadata}) is None


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"resourceVersion": "9", "managedFields": []}, False),
        ({"generation": 2}, True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ({"labels": {"a": "b"}}, True),
        ({"annotations": None}, True),
    ],
)
def test_S9_4_what_has_changed_besides_a_status_shows_in_the_metadata(change, more):
    known = {"uid": "u-1", "resourceVersion": "5", "generation": 1, "annotations": {"a": "b"}}
    assert touched(known, {**known, **change}) is more
    assert touched({**known, **change}, known) is more
