"""`crsyncer cloud-manifests`: what it prints is what the documents show, and any reader of YAML reads it alike."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.core.sync_policies import MINIMAL
from tests.delivery.command_line import in_process as crsyncer

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "cloud/example-crd.yaml"
EXAMPLES = ROOT / "cloud/examples"


def manifests(*arguments: str | Path):
    return crsyncer("cloud-manifests", *arguments)


def test_the_manifests_that_the_documents_show_are_what_it_prints():
    done = manifests("--robot", "r1", "--crds", EXAMPLE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "cloud/robot-r1.yaml").read_text(), "print cloud/robot-r1.yaml anew"


def test_C6_5_the_manifests_for_blocking_deletion_are_what_it_prints_otherwise():
    done = manifests("--robot", "r1", "--crds", EXAMPLE, "--crds", ROOT / "cloud/blocking-policy.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    usual, changed = (split(file.read_text()) for file in (ROOT / "cloud/robot-r1.yaml", ROOT / "cloud/blocking.yaml"))
    assert [each for each in split(done.stdout) if each not in usual] == changed
    [admission, role] = map(yaml.safe_load, changed)
    assert "isFinalizer" in str(admission)
    assert "patch" in role["rules"][0]["verbs"]


def split(text: str) -> list[str]:
    """The documents of a stream."""
    return [each.strip() for each in text.split("---\n")]


class Wary(yaml.SafeLoader):
    """Takes for no text what any reader takes for something else: kubectl's knows `y` and `n`, and more numbers."""


Wary.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?i)(y|n|[-+.]?\d.*)$"), None)


@pytest.mark.parametrize("robot", ["y", "n", "on", "null", "1", "007", "1e3", "0x1f", "1-2-3", "2026-01-01"])
def test_no_text_is_a_number_or_a_truth_value_to_any_reader_of_yaml(robot):
    text = manifests("--robot", robot, "--crds", EXAMPLE).stdout
    content = json.loads(manifests("--robot", robot, "--crds", EXAMPLE, "--json").stdout)
    assert (content["apiVersion"], content["kind"]) == ("v1", "List")
    assert list(yaml.safe_load_all(text)) == content["items"]
    assert list(yaml.load_all(text, Loader=Wary)) == content["items"]


def test_every_example_fits_one_profile_or_the_other():
    namespaced = [path for path in sorted(EXAMPLES.glob("*.yaml")) if "scope: Namespaced" in path.read_text()]
    done = manifests("--robot", "r1", *(word for path in namespaced for word in ("--crds", path)), "-o", "name")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "namespace/robot-r1"
    assert "rolebinding/crsyncer:robot -n robot-r1" in done.stdout.splitlines()
    shared = manifests("--robot", "r1", "--profile", "shared", "--crds", EXAMPLES, "--two-accounts", "--audit")
    assert shared.returncode == 0
    assert "note: profile shared: every robot can read" in shared.stderr
    assert "Deny" not in shared.stdout


def test_a_list_of_crds_as_kubectl_gives_it_is_taken(tmp_path):
    crds = list(yaml.safe_load_all(EXAMPLE.read_text()))
    (tmp_path / "crds.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": crds}))
    assert manifests("--robot", "r1", "--crds", tmp_path).stdout == (ROOT / "cloud/robot-r1.yaml").read_text()


CRD = EXAMPLE.read_text().partition("---")[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: [", "crds.yaml:2: not YAML"),
        ("kind: Secret", "has no CustomResourceDefinition (a file or directory with annotated CRDs)"),
        ("- 1", "has no CustomResourceDefinition"),
        (CRD.replace("scope: Namespaced", "scope: Cluster"), "is cluster-scoped, so a namespace does not confine it"),
        (CRD.replace("cr-syncer.cloud", "x.cloud"), "is not annotated, so it is not synced"),
        (CRD.replace("group: lab.example.com", "group: rbac.authorization.k8s.io"), "is never synced"),
        (CRD.replace('"true"', "maybe"), "filter-by-robot-name"),
        (CRD.replace("  scope: Namespaced\n", ""), "incomplete"),
        (CRD + "---\n" + CRD.replace("status: {}", ""), "is given twice, and not alike"),
    ],
)
def test_what_cannot_be_confined_is_said_in_a_line_that_names_the_file(tmp_path, content, said):
    file = tmp_path / "crds.yaml"
    file.write_text(content)
    done = manifests("--robot", "r1", "--crds", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("crsyncer: --crds: ")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--robot", "R1", "--crds", EXAMPLE), '--robot is "R1"; allowed: at most 57'),
        (("--robot", "a" * 58, "--crds", EXAMPLE), "allowed: at most 57"),
        (("--robot", "r1", "--crds", ROOT / "no-such-file"), "cannot be read (No such file"),
        (("--robot", "r1", "--crds", EXAMPLE, "--namespace", "default"), "--namespace goes with --profile shared"),
        (("--robot", "r1", "--crds", EXAMPLE, "--profile", "shared", "--namespace", "A"), '--namespace is "A"'),
        (("--crds", EXAMPLE), "Missing option '--robot'"),
    ],
)
def test_a_wrong_flag_is_said_in_a_line(arguments, said):
    done = manifests(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_C1_3_a_kind_that_only_a_sync_policy_configures_is_confined(tmp_path):
    crds = [each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each["spec"]["names"]["plural"] == "goals"]
    annotations = crds[0]["metadata"].pop("annotations")
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump_all(crds))
    bare = manifests("--robot", "r1", "--crds", tmp_path)
    assert (bare.returncode, "is not annotated, so it is not synced" in bare.stderr) == (2, True)
    policy = {**MINIMAL, "spec": {"resource": {"group": "lab.example.com", "resource": "goals"}, "specSource": "cloud"}}
    policy["spec"]["filter"] = {"byRobotName": True}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    by_policy = manifests("--robot", "r1", "--crds", tmp_path)
    apart = manifests("--robot", "r1", "--crds", tmp_path / "policy.yaml", "--crds", tmp_path / "crd.yaml")
    crds[0]["metadata"]["annotations"] = annotations
    (tmp_path / "crd.json").write_text(json.dumps(crds[0]))
    annotated = manifests("--robot", "r1", "--crds", tmp_path / "crd.json")
    assert (by_policy.returncode, by_policy.stderr) == (0, "")
    assert by_policy.stdout == apart.stdout == annotated.stdout
    policy["spec"]["projection"] = {"version": "v2"}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    (tmp_path / "crd.json").unlink()
    wrong = manifests("--robot", "r1", "--crds", tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert 'spec.projection.version of SyncPolicy orders is "v2"; the robot serves v1' in wrong.stderr
    assert manifests("--robot", "r1", "--crds", tmp_path / "policy.yaml").returncode == 2


def test_C5_C8_what_policies_need_is_printed_with_their_kinds(tmp_path):
    related = {"id": "x", "origin": "cloud", "resource": {"group": "", "resource": "secrets"}, "object": {"name": "x"}}
    spec = {"resource": {"group": "lab.example.com", "resource": "goals"}, "related": [related]}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump({**MINIMAL, "spec": {**spec, "api": {"source": "robot"}}}))
    done = manifests("--robot", "r1", "--crds", EXAMPLE, "--crds", tmp_path / "policy.yaml", "-o", "name")
    assert done.returncode == 0
    assert done.stderr == "crsyncer: note: a robot reads all Secrets of the namespaces that it syncs\n"
    assert {
        "validatingadmissionpolicy/crsyncer-robot-writes.secrets",
        "validatingadmissionpolicy/crsyncer-robot-crds",
        "clusterrole/crsyncer:robot:secrets",
        "clusterrolebinding/crsyncer:apis:r1",
    } <= set(done.stdout.splitlines())
    related["resource"] = {"group": "apps", "resource": "deployments"}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump({**MINIMAL, "spec": spec}))
    unknown = manifests("--robot", "r1", "--crds", EXAMPLE, "--crds", tmp_path / "policy.yaml")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "a SyncPolicy names deployments.apps, whose CRD is not there (give it, too)" in unknown.stderr


def test_F9_1_F10_3_of_the_fleets_kinds_a_robot_gets_its_report_and_its_statuses_and_no_other(tmp_path):
    (tmp_path / "fleet.yaml").write_text(crsyncer("fleet", "crds").stdout)
    done = manifests("--robot", "r1", "--crds", tmp_path, "--crds", EXAMPLE)
    assert (done.returncode, done.stderr) == (0, "")
    usual = split(manifests("--robot", "r1", "--crds", EXAMPLE).stdout)
    more = [yaml.safe_load(each) for each in split(done.stdout) if each not in usual]
    own = ("robotsyncstates", "robotobjectstatuses")
    names = [f"{plural}.fleet.crsyncer.cloudrobotics.com" for plural in own]
    assert all(any(name in each["metadata"]["name"] for name in names) for each in more)
    rules = [rule for each in more if each["kind"] == "ClusterRole" for rule in each["rules"]]
    assert sorted(rules, key=lambda rule: own.index(rule["resources"][0])) == [
        {
            "apiGroups": ["fleet.crsyncer.cloudrobotics.com"],
            "resources": [plural],
            "verbs": ["list", "watch", "create", "update", "delete"],
        }
        for plural in own
    ]
