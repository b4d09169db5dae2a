"""`crsyncer fleet render` from files: the objects of a placement for a robot, and what is said of those that fail."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.core.model import Json
from crsyncer.fleet.domain.rollout.robot_states import Gate
from crsyncer.fleet.domain.shown.fleet_reasons import UNRESOLVED
from crsyncer.fleet.domain.values import Reason, RobotState
from tests.core.sync_policies import placeable
from tests.delivery.command_line import in_process as crsyncer
from tests.system.fleet_objects import made

ROBOT: Json = {
    "apiVersion": "registry.cloudrobotics.com/v1alpha1",
    "kind": "Robot",
    "metadata": {"name": "r1", "labels": {"site": "berlin", "model": "old"}},
    "spec": {"type": "lift"},
}
MAP: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nav"}, "data": {"speed": "1", "x": "y"}}
SECRET: Json = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "pass", "annotations": {"hint": "s3cret"}},
    "stringData": {"pin": "s3cret {{ .robotName }}"},
}
STRIP = made("FieldStrip", namespace="", spec={"group": "", "resource": "configmaps", "remove": ["/data/x"]})
PROPERTIES: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "r1", "namespace": "crsyncer-properties"},
    "data": {"zone": "north"},
}
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "goals.lab.example.com",
        "annotations": {
            "cr-syncer.cloudrobotics.com/spec-source": "cloud",
            "cr-syncer.cloudrobotics.com/filter-by-robot-name": "true",
        },
    },
    "spec": {
        "group": "lab.example.com",
        "scope": "Namespaced",
        "names": {"plural": "goals", "kind": "Goal"},
        "versions": [{"name": "v2", "served": True, "storage": True}],
    },
}


def placement(name: str = "nav", **spec: Any) -> Json:
    whole = {"robotSelectors": [{"matchLabels": {"site": "berlin"}}], **spec}
    return {**made("RobotPlacement", spec=whole), "metadata": {"name": name}}


ROOT = Path(__file__).parents[2]
MAPS = {"group": "", "resource": "configmaps", "names": ["nav"]}
SECRETS = {"group": "", "resource": "secrets", "names": ["pass"]}


def template(**fields: Any) -> Json:
    return {"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"x": 1}}, **fields}


@pytest.fixture
def render(tmp_path: Path):
    def run(*objects: Json, arguments: tuple[str, ...] = ("nav", "--robot", "r1"), code: int = 0):
        (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
        done = crsyncer("fleet", "render", *arguments, "-f", tmp_path / "objects.yaml", "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)["items"] if done.stdout else [], done.stderr

    return run


def test_F4_strips_overrides_and_properties_make_the_replica(render):
    steps = [
        {"path": "/data/speed", "set": {"value": "0.5"}},
        {"path": "/data/zone", "property": {"name": "zone"}},
        {"path": "/data/who", "set": {"value": "{{ .robotName }}"}},
    ]
    overrides = [
        {"robotSelector": {"matchLabels": {"model": "old"}}, "steps": steps},
        {"robotSelector": {"matchLabels": {"model": "new"}}, "steps": [{"path": "/data/speed", "remove": True}]},
    ]
    asked = placement(resources=[MAPS], overrides=overrides, expand=True)
    [replica], said = render(asked, MAP, ROBOT, STRIP, PROPERTIES)
    assert replica["data"] == {"speed": "0.5", "zone": "north", "who": "r1"}
    assert (replica["metadata"]["namespace"], replica["metadata"]["name"]) == ("robot-r1", "nav")
    assert replica["metadata"]["labels"]["cloudrobotics.com/robot-name"] == "r1"
    assert "no server was asked" in said


def test_the_page_says_seven_things_each_with_a_placement_of_at_most_ten_lines():
    text = (ROOT / "FLEET.md").read_text().partition("## Seven things")[2].partition("\n## ")[0]
    blocks = [re.findall(r"```yaml\n(.*?)```", part, re.DOTALL) for part in text.split("\n### ")[1:]]
    placements = [each for [block] in blocks for each in block.split("---\n") if "kind: RobotPlacement" in each]
    assert [each.count("\n") for each in placements if each.count("\n") > 10] == []
    assert len(placements) == len(blocks) == 7


def test_the_page_has_each_state_of_a_robot_and_each_reason_that_a_placement_may_show():
    rows = "\n".join(line for line in (ROOT / "FLEET.md").read_text().splitlines() if line.startswith("|"))
    assert [each for each in (*RobotState, *Reason, *Gate) if not re.search(rf"\b{each}\b", rows)] == []
    assert set(re.findall(r"\| Resolved \| (\w+)", rows)) == {*UNRESOLVED, "Resolved"}


def test_the_maps_of_the_page_are_what_the_page_says(tmp_path):
    text = (ROOT / "FLEET.md").read_text().partition("### Another map")[2]
    [placed] = re.findall(r"```yaml\n(.*?)```", text.partition("\n### ")[0], re.DOTALL)
    goal = {
        "apiVersion": "lab.example.com/v1",
        "kind": "Goal",
        "metadata": {"name": "nav"},
        "spec": {"speed": 1},
    }
    (tmp_path / "maps.yaml").write_text(placed + "---\n" + yaml.safe_dump_all([goal, ROBOT]))
    done = crsyncer("fleet", "render", "maps", "--robot", "r1", "-f", "maps.yaml", cwd=tmp_path)
    assert done.returncode == 0
    replica = yaml.safe_load(done.stdout)
    assert (replica["metadata"]["namespace"], replica["spec"]) == ("robot-r1", {"speed": 0.5, "map": "berlin"})


def test_the_yaml_is_for_kubectl(tmp_path, render):
    render(placement(resources=[MAPS], templates=[template()]), MAP, ROBOT, CRD)
    done = crsyncer("fleet", "render", "default/nav", "--robot", "r1", "-f", tmp_path / "objects.yaml")
    first, second = yaml.safe_load_all(done.stdout)
    assert (first["kind"], second["kind"], second["apiVersion"]) == ("ConfigMap", "Goal", "lab.example.com/v2")
    named = crsyncer("fleet", "render", "nav", "--robot", "r1", "-f", tmp_path / "objects.yaml", "-o", "name")
    assert named.stdout.splitlines() == ["configmap/robot-r1/nav", "goal/robot-r1/t"]


def test_F10_3_in_mode_shared_a_robot_has_the_copy_of_its_shard_or_the_source_itself(render):
    unfiltered = copy.deepcopy(CRD)
    del unfiltered["metadata"]["annotations"]["cr-syncer.cloudrobotics.com/filter-by-robot-name"]
    goals = {"group": "lab.example.com", "resource": "goals", "names": ["hall"]}
    goal = {"apiVersion": "lab.example.com/v2", "kind": "Goal", "metadata": {"name": "hall"}, "spec": {"x": 1}}
    asked = placement(resources=[goals], mode="Shared", robotSelectors=[{}])
    at_b = copy.deepcopy(ROBOT)
    at_b["metadata"]["labels"]["fleet.crsyncer.cloudrobotics.com/shard"] = "b"
    [made_for_b], _ = render(asked, goal, at_b, unfiltered)
    metadata = made_for_b["metadata"]
    assert (metadata["namespace"], metadata["name"], made_for_b["spec"]) == ("default", "hall", {"x": 1})
    assert list(metadata["labels"]) == ["crsyncer.cloudrobotics.com/source"]
    assert "crsyncer.cloudrobotics.com/shared" in metadata["annotations"]
    nothing, said = render(asked, goal, ROBOT, unfiltered)
    assert (nothing, "robot r1 has the sources themselves" in said) == ([], True)
    _, said = render(asked, goal, at_b, CRD, code=1)
    assert "NotPlaceable: goals.lab.example.com is filtered by robot name; mode Shared needs a kind that is not" in said
    _, said = render({**asked, "spec": {**asked["spec"], "mode": "Replica"}}, goal, ROBOT, unfiltered, code=1)
    assert "filter-by-robot-name false; needed: cloud, true" in said


def test_F2_3_no_value_of_a_secret_is_shown(render):
    wrong = {**SECRET, "metadata": {"name": "other"}, "stringData": {"pin": "s3cret {{ oops"}}
    entries = [SECRETS, {**SECRETS, "names": ["other"]}]
    [replica], said = render(placement(resources=entries, expand=True), SECRET, wrong, ROBOT, code=1)
    assert "secrets default/other: RenderFailed" in said
    assert replica["metadata"]["name"] == "pass"
    assert "s3cret" not in json.dumps(replica) + said


def test_F4_4_one_that_fails_is_told_and_the_others_are_printed(render):
    broken = {**MAP, "metadata": {"name": "broken"}, "data": {"a": "{{ .nope }}"}}
    entries = [{**MAPS, "names": ["broken", "nav"]}]
    unknown = template(name="u", resource="tasks")
    asked = placement(resources=entries, templates=[unknown], expand=True)
    [replica], said = render(asked, MAP, broken, ROBOT, code=1)
    assert replica["metadata"]["name"] == "nav"
    assert "crsyncer: configmaps default/broken: RenderFailed: there is no property nope" in said
    assert "crsyncer: tasks.lab.example.com: NotServed: without a server the file must have its CRD" in said


def test_F2_3_a_kind_that_is_not_annotated_is_not_rendered(render):
    bare = {**CRD, "metadata": {"name": "goals.lab.example.com"}}
    replicas, said = render(placement(templates=[template()]), bare, ROBOT, code=1)
    assert replicas == []
    assert "goals.lab.example.com: NotPlaceable: the CRD goals.lab.example.com says spec-source nothing" in said
    [replica], _ = render(placement(templates=[template()]), bare, placeable("goals", "lab.example.com"), ROBOT)
    assert replica["kind"] == "Goal"


def test_F2_2_cluster_scoped_objects_are_for_placements_in_the_controllers_namespace(render):
    wide = {**CRD, "spec": {**CRD["spec"], "scope": "Cluster"}}
    asked = placement(templates=[template()])
    [replica], _ = render(asked, wide, ROBOT)
    assert (replica["metadata"]["name"], "namespace" in replica["metadata"]) == ("t-r1", False)
    home = ("nav", "--robot", "r1", "--controller-namespace", "other")
    assert "NotAllowed" in render(asked, wide, ROBOT, arguments=home, code=1)[1]


def test_F2_4_what_an_older_placement_governs_is_not_made_twice(render):
    old = placement("old", resources=[{**MAPS, "names": [], "selectors": [{}]}])
    replicas, said = render(placement(resources=[MAPS]), MAP, ROBOT, placement("aaa", resources=[MAPS]))
    assert (replicas, "configmaps default/nav is governed by the older RobotPlacement default/aaa" in said) == (
        [],
        True,
    )
    elsewhere = {**old, "spec": {**old["spec"], "target": "Same"}}
    assert len(render(placement(resources=[MAPS]), MAP, ROBOT, elsewhere)[0]) == 1


def test_sources_are_neither_replicas_nor_for_a_robot(render):
    entry = {"group": "", "resource": "configmaps", "selectors": [{}]}
    labels = {"cloudrobotics.com/robot-name": "r1"}
    ours = {**MAP, "metadata": {"name": "ours", "labels": labels}}
    elsewhere = {**MAP, "metadata": {"name": "nav", "namespace": "other"}}
    replicas, _ = render(placement(resources=[entry]), MAP, ours, elsewhere, ROBOT)
    assert [each["metadata"]["name"] for each in replicas] == ["nav"]


def test_a_robot_that_is_not_selected_has_no_replicas(render):
    other = {**ROBOT, "metadata": {"name": "r1"}}
    replicas, said = render(placement(resources=[MAPS]), MAP, other)
    assert (replicas, "RobotPlacement default/nav does not select robot r1" in said) == ([], True)
    assert "matches no object" in render(placement(resources=[MAPS]), ROBOT)[1]


@pytest.mark.parametrize(
    ("objects", "arguments", "code", "said"),
    [
        ((ROBOT,), ("nav", "--robot", "r1"), 1, "there is no RobotPlacement default/nav"),
        ((placement(),), ("nav", "--robot", "r1"), 1, "there is no robot r1"),
        ((placement(),), ("nav", "--robot", "R.1"), 1, "BadRobotName: R.1"),
        ((placement(target="Up"), ROBOT), ("nav", "--robot", "r1"), 1, "cannot be followed: spec.target"),
        (({**placement(), "metadata": {}},), ("nav", "--robot", "r1"), 2, "metadata.name"),
        (({**MAP, "metadata": {"name": "a", "labels": {"b": 1}}},), ("nav", "--robot", "r1"), 2, "metadata.labels"),
        (({**MAP, "data": "x"},), ("nav", "--robot", "r1"), 2, "data"),
        (
            ({**STRIP, "spec": {"remove": []}}, placement(), ROBOT),
            ("nav", "--robot", "r1"),
            2,
            "FieldStrip a: spec.resource",
        ),
        (
            (placement(templates=[template()]), {**CRD, "spec": {}}, ROBOT),
            ("nav", "--robot", "r1"),
            2,
            "the CRD goals.lab.example.com is incomplete",
        ),
        (
            ({**PROPERTIES, "data": {"a": "x" * 70_000}}, placement(), ROBOT),
            ("nav", "--robot", "r1"),
            1,
            "robot r1: RenderFailed: ConfigMap r1: properties above 64 KiB",
        ),
    ],
)
def test_what_is_wrong_is_one_line(render, objects, arguments, code, said):
    replicas, lines = render(*objects, arguments=arguments, code=code)
    assert replicas == []
    assert said in lines
    assert "Traceback" not in lines


def test_without_a_file_a_kubeconfig_is_needed(tmp_path):
    done = crsyncer("fleet", "render", "nav", "--robot", "r1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--cloud-kubeconfig is required" in done.stderr
    (tmp_path / "c.yaml").write_text("robots: {resource: robots}\n")
    done = crsyncer("fleet", "render", "nav", "--robot", "r1", "--config", tmp_path / "c.yaml")
    assert done.returncode == 2
    assert "robots.resource is not allowed: 'robots' is not RESOURCE.GROUP" in done.stderr
