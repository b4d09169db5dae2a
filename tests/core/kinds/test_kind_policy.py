"""What a robot's CRD asks for, and in which version (S1)."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import DRIFT, FILTER, OBSERVED_GENERATION, ORPHANS, SPEC_SOURCE, SUBTREE
from crsyncer.core.kinds.kind_name import version_priority
from crsyncer.core.kinds.kind_policy import Version
from crsyncer.core.kinds.read_kind import is_terminating, read_policy, reduced_crd
from crsyncer.core.kinds.version_choice import choose_version
from crsyncer.core.model import Side
from tests.core.builders import crd, policy, some

CLOUD = {SPEC_SOURCE: "cloud"}


def problem(robot="robot-1", **annotations) -> str:
    kind = read_policy(crd(CLOUD | annotations), robot)
    assert kind is not None
    return kind.problem


@pytest.mark.parametrize("annotations", [None, {}, {SPEC_SOURCE: ""}, {FILTER: "true"}])
def test_S1_2_a_crd_without_a_spec_source_is_not_ours(annotations):
    assert read_policy(crd(annotations), "robot-1") is None


def test_S1_2_a_crd_without_annotations_at_all_is_not_ours():
    raw = crd()
    del raw["metadata"]
    assert read_policy(raw, "robot-1") is None


@pytest.mark.parametrize("side", Side)
def test_S1_2_the_spec_source_is_upstream_and_the_other_side_is_downstream(side):
    kind = read_policy(crd({SPEC_SOURCE: str(side)}), "robot-1")
    assert kind is not None
    assert (kind.upstream, kind.downstream, kind.problem) == (side, side.other, "")
    assert side.other.other is side


@pytest.mark.parametrize("text", ["Cloud", "both", " cloud", "0"])
def test_S1_2_any_other_spec_source_is_misconfigured(text):
    assert problem(**{SPEC_SOURCE: text}) == f'{SPEC_SOURCE} is "{text}"; allowed: cloud, robot'


def test_S1_1_a_policy_holds_what_matters_and_nothing_else():
    kind = read_policy(crd(CLOUD), "robot-1")
    assert kind is not None
    assert (kind.resource, kind.on_robot.kind, kind.namespaced) == ("goals.lab.example.com", "Goal", True)
    assert kind.on_robot == kind.in_cloud
    assert kind.versions == (Version("v1", True, True, True),)
    assert replace(kind.on_robot, version="v1").api_version == "lab.example.com/v1"
    relabelled = crd(CLOUD | {"note": "new"})
    relabelled["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {}}
    assert read_policy(relabelled, "robot-1") == kind


@pytest.mark.parametrize("key", [SPEC_SOURCE, FILTER, SUBTREE, OBSERVED_GENERATION, DRIFT, ORPHANS])
def test_S1_1_each_of_our_annotations_makes_another_policy(key):
    other = {SPEC_SOURCE: "robot", FILTER: "true", SUBTREE: "robot", OBSERVED_GENERATION: "map"}
    other |= {DRIFT: "keep", ORPHANS: "keep"}
    changed = read_policy(crd(CLOUD | {key: other[key]}), "robot-1")
    assert changed != read_policy(crd(CLOUD), "robot-1")
    assert changed is not None
    assert changed.problem == ""


def test_S1_1_a_reduced_crd_makes_the_same_policy():
    whole = crd(CLOUD | {FILTER: "true", "note": "x" * 1000})
    whole["metadata"] |= {"uid": "u-1", "generation": 2, "managedFields": []}
    whole["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {}}
    reduced = reduced_crd(whole)
    assert read_policy(reduced, "robot-1") == read_policy(whole, "robot-1")
    assert reduced["metadata"] == {
        "name": "goals.lab.example.com",
        "uid": "u-1",
        "generation": 2,
        "annotations": CLOUD | {FILTER: "true"},
    }
    assert "schema" not in reduced["spec"]["versions"][0]
    assert read_policy(reduced_crd(crd(None)), "robot-1") is None


def test_S1_8_a_crd_that_is_being_deleted_is_told_from_one_that_is_not():
    found = crd(None)
    assert not is_terminating(found)
    found["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert is_terminating(found)
    assert is_terminating(reduced_crd(found))


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_S1_3_true_has_six_spellings(text):
    kind = read_policy(crd(CLOUD | {FILTER: text}), "robot-1")
    assert kind is not None
    assert (kind.filtered, kind.problem) == (True, "")
    assert kind.selector == "cloudrobotics.com/robot-name=robot-1"


@pytest.mark.parametrize("text", [*["0", "f", "F", "FALSE", "false", "False"], None])
def test_S1_3_false_has_six_spellings_and_is_the_default(text):
    kind = read_policy(crd(CLOUD | ({} if text is None else {FILTER: text})), "")
    assert kind is not None
    assert (kind.filtered, kind.selector, kind.problem) == (False, "", "")


@pytest.mark.parametrize(
    ("annotations", "rule"),
    [
        ({}, ""),
        ({SPEC_SOURCE: "both"}, "S1.2"),
        ({FILTER: "maybe"}, "S1.3"),
        ({FILTER: "true"}, "S1.3"),
        ({SUBTREE: "a.b"}, "S1.4"),
        ({DRIFT: "maybe"}, "S3.5"),
        ({OBSERVED_GENERATION: "maybe"}, "S4.7"),
        ({ORPHANS: "maybe"}, "S5.3"),
        ({ORPHANS: "maybe", SUBTREE: "a.b"}, "S1.4"),
    ],
)
def test_a_kind_with_a_wrong_annotation_has_the_rule_of_the_first_one(annotations, rule):
    found = read_policy(crd(CLOUD | annotations), "")
    assert found is not None
    assert (found.rule, bool(found.problem)) == (rule, bool(rule))


@pytest.mark.parametrize("text", ["", "yes", "tRUE", " true", "2", "on"])
def test_S1_3_any_other_text_is_misconfigured_and_never_means_everything(text):
    assert problem(**{FILTER: text}) == f'{FILTER} is "{text}"; allowed: true, false'


def test_S1_3_true_without_a_robot_name_is_misconfigured():
    assert "no robot name" in problem(robot="", **{FILTER: "true"})


def test_S5_3_without_a_robot_name_there_is_nothing_to_sign_copies_in_the_cloud_with():
    assert "no robot name to sign" in problem(robot="", **{SPEC_SOURCE: "robot"})


@pytest.mark.parametrize("text", ["", " ", "a.b", ".", "status.robot"])
def test_S1_4_an_empty_or_dotted_subtree_is_misconfigured(text):
    assert problem(**{SUBTREE: text}) == f'{SUBTREE} is "{text}"; allowed: one top-level key of .status'


@pytest.mark.parametrize(
    ("key", "allowed"), [(OBSERVED_GENERATION, "copy, map"), (DRIFT, "revert, keep"), (ORPHANS, "delete, keep")]
)
def test_S1_2_unknown_words_are_misconfigured_and_name_what_is_allowed(key, allowed):
    assert problem(**{key: "maybe"}) == f'{key} is "maybe"; allowed: {allowed}'
    for word in allowed.split(", "):
        assert problem(**{key: word}) == ""


def test_S1_2_all_that_is_wrong_is_said_at_once():
    assert problem(**{SPEC_SOURCE: "x", FILTER: "y", SUBTREE: "", DRIFT: "z"}).count("; allowed") == 4


def test_S6_2_what_is_seen_of_which_objects_depends_on_selector_source_and_subtree():
    kinds = [policy(), policy(filtered=True), policy(Side.ROBOT), policy(subtree="robot"), policy(subtree="other")]
    assert len({kind.fingerprint for kind in kinds}) == len(kinds)
    assert policy(keep_drift=True, map_generation=True).fingerprint == policy().fingerprint


DOCUMENTED = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]


@some
@given(st.randoms(use_true_random=False))
def test_S1_5_versions_are_in_the_documented_order_of_kubernetes(order):
    assert sorted(order.sample(DOCUMENTED, len(DOCUMENTED)), key=version_priority) == DOCUMENTED


def kubernetes_order(one: str, other: str) -> bool:
    """Whether one comes before the other: by the words of the documentation, pair by pair."""
    parts = []
    for name in (one, other):
        digits = name[1:].replace("alpha", "x").replace("beta", "x").split("x")
        like = name.startswith("v") and all(d.isdecimal() and d.isascii() for d in digits)
        stability = 0 if "alpha" in name else 1 if "beta" in name else 2
        parts.append((stability, *map(int, digits)) if like else None)
    if parts[0] is None and parts[1] is None:
        return one < other
    if parts[0] is None or parts[1] is None:
        return parts[1] is None
    return parts[0] > parts[1]


kube_like = st.from_regex(r"v(0|[1-9][0-9]?)((alpha|beta)(0|[1-9][0-9]?))?", fullmatch=True)
version_names = st.one_of(kube_like, st.from_regex(r"[a-z][a-z0-9]{0,4}", fullmatch=True))


@some
@given(version_names, version_names)
def test_S1_5_any_two_versions_are_ordered_as_kubernetes_orders_them(one, other):
    assert (version_priority(one) < version_priority(other)) == kubernetes_order(one, other)


def versions(*served: str, storage: str, unserved: tuple[str, ...] = ()):
    every = [Version(name, True, name == storage, True) for name in served]
    every += [Version(name, False, name == storage, True) for name in unserved]
    random.Random(7).shuffle(every)
    return policy(versions=tuple(every), version="")


@pytest.mark.parametrize(
    ("kind", "cloud", "chosen"),
    [
        (versions("v1", "v1beta1", storage="v1beta1"), {"v1", "v1beta1"}, "v1beta1"),
        (versions("v2", "v1", "v1beta1", storage="v2"), {"v1beta1", "v1"}, "v1"),
        (versions("v2", "v1", storage="v2"), {"v3"}, None),
        (versions("v2", "v1", storage="v2"), set(), None),
        (versions("v1", storage="v1", unserved=("v2",)), {"v2"}, None),
        (versions("v1", storage="v2", unserved=("v2",)), {"v2", "v1"}, "v1"),
        (versions("v2", "v1", storage="v1"), None, "v1"),
        (versions("v2", "v1", storage="v3", unserved=("v3",)), None, "v2"),
        (versions(storage="v1", unserved=("v1",)), None, "v1"),
    ],
)
def test_S1_5_the_storage_version_where_both_serve_it_else_the_newest_that_both_serve(kind, cloud, chosen):
    assert choose_version(kind, None if cloud is None else frozenset(cloud)) == chosen


def test_S6_3_only_another_direction_or_subtree_makes_queued_statuses_worthless():
    kind = policy(subtree="robot")
    moves = kind.fingerprint.moves_the_same_status
    assert moves(replace(kind, filtered=True).fingerprint)
    assert moves(replace(kind, filtered=True, robot="another").fingerprint)
    assert not moves(replace(kind, subtree=None).fingerprint)
    assert not moves(replace(kind, subtree="other").fingerprint)
    assert not moves(replace(kind, upstream=kind.downstream).fingerprint)


def test_S5_5_only_another_direction_makes_held_deletions_worthless():
    kind = policy(subtree="robot")
    same = kind.fingerprint.is_in_the_same_places
    assert same(replace(kind, filtered=True, robot="another", subtree=None).fingerprint)
    assert not same(replace(kind, upstream=kind.downstream).fingerprint)


def test_C6_3_with_another_subtree_the_same_objects_are_selected():
    kind = policy(subtree="robot")
    selects = kind.fingerprint.selects_the_same_objects
    assert selects(replace(kind, subtree=None).fingerprint)
    assert not selects(replace(kind, filtered=True, robot="another").fingerprint)
    assert not selects(replace(kind, upstream=kind.downstream).fingerprint)
