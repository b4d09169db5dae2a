"""What is read of a RobotPlacement: each field, and one line with place and remedy for each bad input."""

import pytest

from crsyncer.core.content.selector import Requirement, Selector
from crsyncer.core.content.steps import Remove, Set
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.fleet.domain.read_objects import placement_of, template_source
from crsyncer.fleet.domain.values import (
    Entry,
    Override,
    OverrideStep,
    Property,
    Rollout,
    SourceKey,
    Strategy,
    Target,
    TemplateSource,
)

SPEC = {
    "robotSelectors": [{"matchLabels": {"site": "hall"}}, {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}],
    "robotNames": ["r1", "r2"],
    "target": "Same",
    "resources": [
        {
            "group": "lab.example.com",
            "resource": "goals",
            "names": ["dock"],
            "selectors": [{}],
            "strategy": "CreateOnly",
        },
        {"group": "", "resource": "configmaps"},
    ],
    "templates": [
        {"name": "seed", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"x": 1}}},
        {"name": "map", "group": "", "resource": "configmaps", "object": {"data": {}}, "strategy": "CreateOnly"},
    ],
    "overrides": [
        {
            "robotSelector": {"matchLabels": {"site": "yard"}},
            "steps": [
                {"path": "/spec/x", "set": {"value": 2}},
                {"path": "/metadata/labels/team", "remove": True},
                {"path": "/spec/y", "property": {"name": "map_id", "type": "integer"}},
            ],
        },
        {"steps": [{"path": "/spec/z", "property": {"name": "zone"}}]},
    ],
    "expand": True,
    "readyWhen": "true",
    "statusReturn": "Singleton",
    "statusCollectors": ["c1", "c2"],
    "rollout": {
        "groups": [{"matchLabels": {"canary": "yes"}}],
        "maxConcurrency": 7,
        "maxFailures": 2,
        "minReadySeconds": 5,
        "progressDeadlineSeconds": 50,
        "offline": "Stamp",
        "paused": True,
    },
    "deletionPolicy": "KeepReplicas",
}
METADATA = {"namespace": "site", "name": "all", "uid": "u", "creationTimestamp": "2026-11-01T00:00:00Z"}


def placed(spec, **metadata):
    return placement_of({"metadata": METADATA | metadata, "spec": spec})


def test_every_field_is_read():
    found = placed(SPEC)
    assert found.problem == ""
    assert found.robot_selectors == (
        Selector((("site", "hall"),)),
        Selector(requirements=(Requirement("gpu", "Exists"),)),
    )
    assert found.robot_names == {"r1", "r2"}
    assert found.target is Target.SAME
    assert found.entries == (
        Entry(Resource("lab.example.com", "goals"), frozenset({"dock"}), (Selector(),), Strategy.CREATE_ONLY),
        Entry(Resource("", "configmaps")),
    )
    assert [each.kind.full_name for each in found.entries] == ["goals.lab.example.com", "configmaps"]
    assert found.templates == (
        TemplateSource("seed", Resource("lab.example.com", "goals"), {"spec": {"x": 1}}),
        TemplateSource("map", Resource("", "configmaps"), {"data": {}}, Strategy.CREATE_ONLY),
    )
    assert [each.kind.full_name for each in found.templates] == ["goals.lab.example.com", "configmaps"]
    first, second = "spec.overrides[0]", "spec.overrides[1]"
    assert found.overrides == (
        Override(
            Selector((("site", "yard"),)),
            (
                OverrideStep(f"{first}.steps[0]", "/spec/x", Set(2)),
                OverrideStep(f"{first}.steps[1]", "/metadata/labels/team", Remove()),
                OverrideStep(f"{first}.steps[2]", "/spec/y", Property("map_id", "integer")),
            ),
        ),
        Override(Selector(), (OverrideStep(f"{second}.steps[0]", "/spec/z", Property("zone")),)),
    )
    assert (found.expand, found.ready_when, found.singleton, found.keep_replicas) == (True, "true", True, True)
    assert found.collectors == ("c1", "c2")
    assert found.rollout == Rollout((Selector((("canary", "yes"),)),), 7, 2, 5, 50, stamp_offline=True, paused=True)


def test_the_defaults_are_those_of_the_schema():
    found = placed({"rollout": {}, "readyWhen": "true"})
    assert (found.target, found.entries, found.robot_selectors) == (Target.PER_ROBOT, (), ())
    assert (found.expand, found.singleton, found.keep_replicas) == (False, False, False)
    assert found.rollout == Rollout((), "5%", 0, 60, 1800, stamp_offline=False, paused=False)
    assert placed({}).rollout is None


def test_metadata_and_status_are_read():
    raw = {"metadata": METADATA | {"generation": 3}, "spec": {}, "status": {"counts": {}}}
    found = placement_of(raw)
    assert (found.text, found.uid, found.generation, found.status) == ("site/all", "u", 3, {"counts": {}})
    assert (found.terminating, found.finalized, found.release) == (False, False, "")
    assert found.age == ("2026-11-01T00:00:00Z", "site", "all")
    other = placed(
        {},
        deletionTimestamp="2026-11-02T00:00:00Z",
        finalizers=["fleet.crsyncer.cloudrobotics.com/placement"],
        annotations={"fleet.crsyncer.cloudrobotics.com/release": "abc"},
    )
    assert (other.terminating, other.finalized, other.release) == (True, True, "abc")
    assert placement_of({"metadata": METADATA, "status": "x"}).status == {}


OBJECT = {"name": "a", "group": "g.example.com", "resource": "goals"}
STEP = {"path": "/spec/x", "set": {"value": 1}}


def step(**fields):
    return {"overrides": [{"steps": [fields]}]}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (None, "spec is nothing; allowed: an object"),
        ({"robotSelectors": {}}, "spec.robotSelectors is an object; allowed: a list"),
        ({"robotSelectors": [None]}, "spec.robotSelectors[0] is nothing; allowed: an object with matchLabels, match"),
        ({"robotSelectors": [{"labels": {}}]}, "spec.robotSelectors[0].labels is not a field; allowed: matchLabels"),
        ({"robotNames": [1]}, "spec.robotNames[0] is 1; allowed: at most 253 characters"),
        ({"target": "Both"}, 'spec.target is "Both"; allowed: PerRobot, Same'),
        ({"resources": [{"group": "g"}]}, "spec.resources[0].resource is missing"),
        (
            {"resources": [{"resource": "Goals"}]},
            'spec.resources[0].resource is "Goals"; allowed: the plural of a kind',
        ),
        ({"resources": [{"resource": "goals", "kind": "x"}]}, "spec.resources[0].kind is not a field; allowed: group"),
        ({"templates": [{**OBJECT, "object": []}]}, "spec.templates[0].object is a list of 0; allowed: an object"),
        ({"templates": [{**OBJECT, "name": "A", "object": {}}]}, 'spec.templates[0].name is "A"; allowed: lower-case'),
        ({"overrides": [{"robotSelector": None, "steps": []}]}, "spec.overrides[0].robotSelector is nothing; allowed:"),
        (step(path="spec"), 'spec.overrides[0].steps[0].path is "spec"; allowed: a JSON Pointer'),
        (step(path="/status/x", remove=True), 'steps[0].path is "/status/x"; allowed: a path to content'),
        (step(path="/metadata/name", remove=True), 'steps[0].path is "/metadata/name"; allowed: a path to content'),
        (step(path="/spec/x"), "spec.overrides[0].steps[0] has no verb; allowed: one of set, remove, property"),
        (step(**STEP, remove=True), "spec.overrides[0].steps[0] has set and remove; allowed: one of"),
        (step(path="/spec/x", set={"value": float("nan")}), "steps[0].set.value is no finite number"),
        (step(path="/spec/x", remove=False), "spec.overrides[0].steps[0].remove is false; allowed: true"),
        (step(path="/spec/x", property={"name": "a-b"}), 'property.name is "a-b"; allowed: letters, digits and _'),
        (step(path="/spec/x", property={"name": "a", "type": "map"}), 'type is "map"; allowed: string, integer'),
        ({"expand": "yes"}, 'spec.expand is "yes"; allowed: true, false'),
        ({"readyWhen": ""}, 'spec.readyWhen is ""; allowed: 1 to 2048 characters'),
        ({"statusReturn": "All"}, 'spec.statusReturn is "All"; allowed: PerRobot, Singleton'),
        ({"deletionPolicy": "Keep"}, 'spec.deletionPolicy is "Keep"; allowed: Delete, KeepReplicas'),
        ({"rollout": {}}, "spec.rollout needs spec.readyWhen"),
        ({"rollout": {"maxConcurrency": 0}}, "spec.rollout.maxConcurrency is 0; allowed: a number above 0, or 1% to"),
        ({"rollout": {"maxConcurrency": True}}, "spec.rollout.maxConcurrency is true; allowed: a number above 0"),
        ({"rollout": {"maxConcurrency": "0%"}}, 'spec.rollout.maxConcurrency is "0%"; allowed: a number above 0'),
        ({"rollout": {"maxFailures": -1}}, "spec.rollout.maxFailures is -1; allowed: a number from 0 on"),
        ({"rollout": {"minReadySeconds": "5"}}, 'spec.rollout.minReadySeconds is "5"; allowed: a number from 0 on'),
        ({"rollout": {"maxFailures": False}}, "spec.rollout.maxFailures is false; allowed: a number from 0 on"),
        ({"templates": [{**OBJECT, "object": {"x": "a" * (1 << 20)}}]}, "the placement has 10"),
    ],
)
def test_bad_input_is_one_line_that_says_where_and_what_is_allowed(spec, problem):
    found = placed(spec)
    assert problem in found.problem
    assert "\n" not in found.problem
    assert (found.text, found.entries, found.robot_names) == ("site/all", (), frozenset())


def test_a_placement_that_is_nested_too_deeply_is_a_problem():
    deep: dict = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert placed({"templates": [{**OBJECT, "object": deep}]}).problem == (
        "the placement is nested more than 200 levels deep"
    )


def test_a_template_is_a_source_of_its_placement():
    found = template_source(placed(SPEC), placed(SPEC).templates[0])
    assert found.key == SourceKey("goals.lab.example.com", "site", "seed", "all")
    assert (found.uid, found.body, found.terminating) == ("u", {"spec": {"x": 1}, "metadata": {}}, False)
