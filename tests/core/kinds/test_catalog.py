"""What SyncPolicies and the annotations of a CRD make of a kind (C1)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from crsyncer.adapters.expressions import CelProgram, Expressions
from crsyncer.core.content.annotations import DRIFT, FILTER, OBSERVED_GENERATION, ORPHANS, SPEC_SOURCE, SUBTREE
from crsyncer.core.content.marks import Marks
from crsyncer.core.content.object_content import key_of
from crsyncer.core.content.shape import AS_RECEIVED, Shape
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import (
    PolicyObject,
    policy_of_kind,
    problem_of,
    read_object,
    related_problem,
)
from crsyncer.core.kinds.namespaces import same_names
from crsyncer.core.model import Json, Side
from crsyncer.core.pair.project import objection
from crsyncer.errors import ConfigError
from tests.core.builders import crd, goal, spoken
from tests.core.policy_objects import merged_of, policy_object, read
from tests.core.sync_policies import WRONG, Wrong

CLOUD = {SPEC_SOURCE: "cloud"}
MARKED = Shape(marks=Marks)
GOALS = "goals.lab.example.com"


def merged(annotations: Json | None = None, *objects: PolicyObject, robot: str = "robot-1") -> KindPolicy:
    """What comes of a CRD with these annotations."""
    return merged_of(crd(annotations or {}), *objects, robot=robot)


def problem(annotations: Json | None = None, *, robot: str = "robot-1", **spec: Any) -> str:
    return merged(annotations, policy_object(**spec), robot=robot).problem


def test_C1_3_a_policy_alone_does_what_annotations_do():
    own = policy_object(
        specSource="robot",
        filter={"byRobotName": True},
        subtree="robot",
        observedGeneration="map",
        conflict="upstream",
        orphans="delete",
    )
    annotated = {SPEC_SOURCE: "robot", FILTER: "1", SUBTREE: "robot", OBSERVED_GENERATION: "map"}
    annotated |= {DRIFT: "revert", ORPHANS: "delete"}
    by_policy, by_annotations = merged({}, own), merged(annotated)
    assert by_policy.sync_policy == own.policy
    assert by_policy.problem == ""
    assert replace(by_policy, sync_policy=None, shape=AS_RECEIVED) == by_annotations
    assert merged(annotated, own) == by_policy
    assert merged({}, policy_object(specSource="cloud", filter={"byRobotName": False})).selector == ""


@pytest.mark.parametrize(
    ("annotations", "spec", "keep"),
    [
        (CLOUD, {}, False),
        (CLOUD, {"specSource": "cloud"}, False),
        ({}, {"specSource": "cloud"}, True),
        ({SPEC_SOURCE: ""}, {"specSource": "cloud"}, True),
        ({ORPHANS: "delete"}, {"specSource": "cloud"}, False),
        ({}, {"specSource": "cloud", "orphans": "delete"}, False),
        (CLOUD, {"orphans": "keep"}, True),
    ],
)
def test_C1_orphans_stay_by_default_where_the_spec_source_is_no_annotation(annotations, spec, keep):
    found = merged(annotations, policy_object(**spec))
    assert (found.keep_orphans, found.problem) == (keep, "")


@pytest.mark.parametrize(
    ("annotations", "spec", "field"),
    [
        ({SPEC_SOURCE: "robot"}, {"specSource": "cloud"}, "spec.specSource of SyncPolicy a is cloud"),
        ({FILTER: "false"}, {"filter": {"byRobotName": True}}, "spec.filter.byRobotName of SyncPolicy a is true"),
        ({FILTER: "TRUE"}, {"filter": {"byRobotName": False}}, "spec.filter.byRobotName of SyncPolicy a is false"),
        ({FILTER: "maybe"}, {"filter": {"byRobotName": True}}, "spec.filter.byRobotName of SyncPolicy a is true"),
        ({SUBTREE: "cloud"}, {"subtree": "robot"}, "spec.subtree of SyncPolicy a is robot"),
        ({SUBTREE: ""}, {"subtree": "robot"}, "spec.subtree of SyncPolicy a is robot"),
        (
            {OBSERVED_GENERATION: "map"},
            {"observedGeneration": "copy"},
            "spec.observedGeneration of SyncPolicy a is copy",
        ),
        ({DRIFT: "keep"}, {"conflict": "upstream"}, "spec.conflict of SyncPolicy a is upstream"),
        ({ORPHANS: "delete"}, {"orphans": "keep"}, "spec.orphans of SyncPolicy a is keep"),
    ],
)
def test_C1_2_a_field_and_an_annotation_that_differ_are_misconfigured_and_both_are_named(annotations, spec, field):
    [(key, text)] = annotations.items()
    source = {} if key == SPEC_SOURCE else CLOUD
    assert problem(source | annotations, **spec) == (
        f'{field}, but the annotation {key} is "{text}"; allowed: one, or both alike'
    )


def test_C1_2_spellings_of_one_meaning_do_not_differ():
    for text in ("1", "t", "True"):
        assert problem(CLOUD | {FILTER: text}, filter={"byRobotName": True}) == ""
    assert problem(CLOUD | {DRIFT: "revert"}, conflict="upstream") == ""


def test_C1_2_two_policies_for_one_kind_are_misconfigured_and_both_are_named():
    two = [policy_object("b", specSource="cloud"), policy_object("a", specSource="cloud", naming={})]
    assert merged(CLOUD, *two).problem == "the SyncPolicies a and b are for the same kind; allowed: one"
    assert merged(CLOUD, *two).sync_policy is None
    assert problem_of(two[0], two, merged(CLOUD, *two).problem).startswith("the SyncPolicies a and b")
    assert problem_of(two[0], two, None).startswith("the SyncPolicies a and b")
    assert problem_of(two[1], two, "the kind's") == "spec.naming is empty; allowed: namespace, name or both"


def test_C1_3_without_any_source_the_kind_is_misconfigured():
    for annotations in ({}, {SPEC_SOURCE: ""}):
        assert problem(annotations) == (
            f"neither spec.specSource of SyncPolicy a nor the annotation {SPEC_SOURCE} is set"
        )


def test_C1_3_what_else_is_wrong_with_the_annotations_counts_too():
    assert "orphans is" in problem(CLOUD | {ORPHANS: "maybe"})
    both = problem(CLOUD | {ORPHANS: "maybe", SUBTREE: "x"}, subtree="y")
    assert both.count("; allowed") == 2


def test_S1_3_without_a_robot_name_the_field_is_named_that_needs_one():
    said = problem({}, robot="", specSource="robot", filter={"byRobotName": True})
    assert "spec.filter.byRobotName of SyncPolicy a is true, but this agent has no robot name" in said
    assert "spec.specSource of SyncPolicy a is robot, but this agent has no robot name" in said


@pytest.mark.parametrize("wrong", [each for each in WRONG if "name" in each.policy["metadata"]], ids=str)
def test_C1_3_a_wrong_policy_stops_its_kind_and_says_why_in_a_line(wrong: Wrong):
    found = read(wrong.policy)
    assert found.policy is None
    assert wrong.said in found.problem
    if found.resource == "orders.lab.example.com":
        stopped = policy_of_kind(crd({}), "robot-1", objects=[found])
        assert stopped is not None
        assert stopped.problem == f"SyncPolicy orders: {found.problem}"
        assert (stopped.sync_policy, "\n" in stopped.problem) == (None, False)


def test_C2_3_names_that_cannot_be_made_or_that_nobody_would_see_are_misconfigured():
    own: dict[str, Any] = {"naming": {"name": "{robot}-{name}"}}
    assert problem(CLOUD, **own) == ""
    one = policy_of_kind(crd(CLOUD), "", objects=[policy_object("a", **own)])
    assert one is not None
    assert one.problem == (
        "spec.naming of SyncPolicy a has {robot}, but this agent has no robot name; set --robot-name"
    )
    said = f'spec.naming of SyncPolicy a is set, and the annotation {ORPHANS} is "delete"; allowed with naming: keep'
    assert problem(CLOUD | {ORPHANS: "delete"}, **own) == said
    for namespace, fine in (("{namespace}", True), ("copies", False)):
        objects = [policy_object("a", naming={"namespace": namespace, "name": "{name}-x"})]
        for namespaced in (True, False):
            raw = crd(CLOUD, scope="Namespaced" if namespaced else "Cluster")
            found = policy_of_kind(raw, "r1", namespaces=same_names(("default",)), objects=objects)
            assert found is not None
            assert (found.problem == "") is (fine or not namespaced)
            assert found.keep_orphans


@pytest.mark.parametrize("robot", ["", "R1", "r.1", "r" * 58])
def test_C6_1_blocking_without_a_name_for_the_finalizer_stops_the_kind(robot):
    said = problem(CLOUD, robot=robot, deletion={"mode": "blocking"})
    assert said.startswith("spec.deletion.mode of SyncPolicy a is blocking, but --robot is ")
    assert "at most 57 lower-case letters" in said
    assert problem(CLOUD, robot=robot, deletion={"mode": "async"}) == ""
    assert problem(CLOUD, robot="r" * 57, deletion={"mode": "blocking"}) == ""


def test_C1_3_a_policy_names_its_kind_even_where_the_rest_cannot_be_read():
    names: dict[str, list[Any]] = {
        "": [None, [], {}, {"resource": None}, {"resource": {"group": 1, "resource": "x"}}],
        "configmaps": [{"resource": {"group": "", "resource": "configmaps"}}],
        GOALS: [{"resource": {"group": "lab.example.com", "resource": "goals", "more": 1}}],
    }
    for resource, specs in names.items():
        for spec in specs:
            assert read({"metadata": {"name": "a"}, "spec": spec}).resource == resource
    assert read({"metadata": {"name": "a"}}).problem == "spec is missing"


def test_C1_3_a_policy_that_is_nested_too_deeply_is_wrong_and_nothing_fails():
    value: Any = 1
    for _ in range(5000):
        value = [value]
    found = policy_object(mutations={"down": [{"path": "/spec/x", "set": {"value": value}}]})
    assert (found.policy, found.problem, found.is_for(GOALS)) == (None, "it is nested more than 200 levels deep", True)


def test_C1_6_a_policy_for_a_kind_that_no_policy_may_name_does_not_stop_that_kind():
    own = "crsyncer.cloudrobotics.com"
    found = policy_object(resource={"group": own, "resource": "syncpolicies"})
    assert "allowed: neither namespaces nor" in found.problem
    assert not found.is_for(f"syncpolicies.{own}")


def test_C1_5_a_policy_says_which_related_objects_are_not_synced():
    related = [
        {"id": name, "origin": "cloud", "resource": {"group": "", "resource": name}, "object": {"name": "x"}}
        for name in ("secrets", "configmaps", "services")
    ]
    found = policy_object(specSource="cloud", related=related)
    problems = {"secrets": "odd", "configmaps": "too", "services": ""}
    said = "spec.related: configmaps is not synced: too; spec.related: secrets is not synced: odd"
    assert (related_problem(found, problems.get), related_problem(found, lambda _: None)) == (said, "")
    assert related_problem(policy_object(naming={}), problems.get) == ""


def test_S1_5_a_version_that_the_policy_names_is_the_only_one_to_speak():
    versions = [
        {"name": n, "served": n != "v0", "storage": n == "v1", "subresources": None} for n in ("v0", "v1", "v2")
    ]
    raw = crd(CLOUD, versions=versions)

    def found(version: str) -> KindPolicy:
        named = {"group": "lab.example.com", "resource": "goals", "version": version}
        policy = policy_of_kind(raw, "robot-1", objects=[policy_object(resource=named)])
        assert policy is not None
        return policy

    assert [(v.name, v.served, v.storage) for v in found("v2").versions] == [("v2", True, True)]
    assert found("v2").problem == ""
    for name in ("v0", "v3"):
        assert found(name).problem == f'spec.resource.version of SyncPolicy a is "{name}"; the robot serves v1, v2'


STEPS = {"down": [{"path": "/spec/who", "template": "{robot}"}], "up": [{"path": "/status/x", "cel": "robot"}]}


def test_C4_1_a_kind_has_the_shape_of_its_policy():
    found = merged(CLOUD, policy_object(mutations=STEPS), robot="r7").shape
    assert found.desired(goal())["spec"]["who"] == "r7"
    assert found.sent(goal(status={"y": 1}), key_of(goal()))["status"] == {"y": 1, "x": "r7"}
    assert found.keep_local is False
    assert merged(CLOUD, policy_object(conflict="keepLocal")).shape == replace(MARKED, keep_local=True)
    assert merged(CLOUD, policy_object(conflict="upstream")).shape == MARKED


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ({"cel": "1 +"}, "spec.mutations.down[0].cel: "),
        ({"regex": {"pattern": "(", "replacement": ""}}, "spec.mutations.down[0].regex.pattern: "),
        ({"regex": {"pattern": "a", "replacement": "$1"}}, "spec.mutations.down[0].regex.replacement has $1"),
    ],
)
def test_C4_3_a_step_that_does_not_compile_stops_the_kind(verb, said):
    assert problem(CLOUD, mutations={"down": [{"path": "/spec/x", **verb}]}).startswith(f"SyncPolicy a: {said}")


def test_C4_5_only_steps_need_the_languages_and_without_them_the_hint_says_how_to_install_them():
    class Missing(Expressions):
        """An installation without the extra."""

        def program(self, text: str, variables: Mapping[str, type]) -> CelProgram:
            raise ConfigError(f"{text} needs it for {len(variables)} variables", hint="install it")

    def none() -> Expressions:
        raise AssertionError("nobody needs them")

    plain: Json = {"resource": {"group": "lab.example.com", "resource": "goals"}, "conflict": "keepLocal"}
    assert read_object({"metadata": {"name": "a"}, "spec": plain}, none).problem == ""
    found = read_object({"metadata": {"name": "a"}, "spec": plain | {"mutations": STEPS}}, Missing)
    assert found.problem == "spec.mutations.up[0].cel: robot needs it for 4 variables; install it"


def test_C4_4_steps_on_the_robots_label_are_wrong_where_an_annotation_filters_by_it():
    step = {"path": "/metadata/labels/cloudrobotics.com~1robot-name", "remove": True}
    found = replace(policy_object(mutations={"down": [step]}), problem="")
    assert merged(CLOUD, found).problem == ""
    assert "labels that the filter does not use" in merged(CLOUD | {FILTER: "true"}, found).problem


def test_S2_1_the_robots_label_and_the_selector_are_one_label_selector():
    selector = {
        "matchLabels": {"tier": "edge", "site": ""},
        "matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["b", "a"]},
            {"key": "ring", "operator": "NotIn", "values": ["outer"]},
            {"key": "draft", "operator": "DoesNotExist"},
            {"key": "owner", "operator": "Exists"},
        ],
    }
    found = merged({}, policy_object(specSource="cloud", filter={"byRobotName": True, "selector": selector}))
    own = "cloudrobotics.com/robot-name"
    text = "!draft,owner,ring notin (outer),site=,tier=edge,zone in (a,b)"
    assert found.selector == f"{own}=robot-1,{text}"
    assert found.selector_keys == {own, "tier", "site", "zone", "ring", "draft", "owner"}
    good = {own: "robot-1", "tier": "edge", "site": "", "zone": "a", "owner": "x"}
    assert found.selects(good)
    assert found.selects(good | {"ring": "inner", "more": "1"})
    for bad in ({own: "robot-2"}, {"tier": "cloud"}, {"zone": "c"}, {"ring": "outer"}, {"draft": ""}):
        assert not found.selects(good | bad), bad
    for missing in (own, "tier", "site", "zone", "owner"):
        assert not found.selects({key: text for key, text in good.items() if key != missing}), missing


def test_S2_1_a_selector_that_fits_into_no_url_is_wrong():
    many = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"z{n:04}" for n in range(600)]}]}
    assert "allowed: 3000 characters in a request" in problem(CLOUD, filter={"selector": many})
    many["matchExpressions"][0]["values"] = [f"z{n:04}" for n in range(400)]
    assert problem(CLOUD, filter={"selector": many}) == ""


def test_S2_1_a_selector_alone_selects_and_another_one_shows_other_objects():
    alone = merged(CLOUD, policy_object(filter={"selector": {"matchLabels": {"tier": "edge"}}}))
    assert (alone.selector, alone.selector_keys, alone.filtered) == ("tier=edge", frozenset({"tier"}), False)
    everything = merged(CLOUD, policy_object(filter={"selector": {}}))
    assert (everything.selector, everything.selects({})) == ("", True)
    plain = merged(CLOUD, policy_object())
    assert (plain.selector, plain.selector_keys, plain.selects({})) == ("", frozenset(), True)
    assert alone.fingerprint != everything.fingerprint == plain.fingerprint == merged(CLOUD).fingerprint


def test_threat_28_an_object_that_the_selector_does_not_match_is_ignored_whatever_server_sent_it():
    kind = merged(CLOUD, policy_object(filter={"selector": {"matchLabels": {"tier": "edge"}}}))
    kind = spoken(kind)
    for labels, said in (
        ({"tier": "edge"}, ""),
        ({"tier": "x"}, "the selector of SyncPolicy a"),
        (None, "the selector"),
    ):
        raw = goal(metadata={"labels": labels})
        assert objection(raw, kind, Side.CLOUD).startswith(said)
        assert bool(objection(raw, kind, Side.CLOUD)) is bool(said)
        assert objection(raw, kind, Side.CLOUD, leaving=True) == ""


def test_C1_1_policies_are_equal_where_they_ask_for_the_same():
    one, other = policy_object(specSource="cloud"), policy_object(specSource="cloud", subtree=None)
    assert merged({}, one) == merged({}, other)
    assert merged({}, one) != merged({}, policy_object(specSource="cloud", subtree="x"))
    assert merged({}, one).upstream is Side.CLOUD
    assert hash(merged({}, one))
