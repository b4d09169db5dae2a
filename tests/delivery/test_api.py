"""`crsyncer api`: what one CRD breaks for the users of another, in files, and which CRDs travel."""

import json

import pytest
import yaml

from crsyncer.cli.api import _list
from crsyncer.core.apis.revise import revise
from tests.core.apis.crds import crd, version
from tests.delivery.command_line import in_process as crsyncer

TEXT = {"type": "string"}
OLD = crd(version("v1", x=TEXT, y=TEXT), version("v1beta1", storage=False), stored=("v1beta1", "v1"))
NEW = crd(version("v1", y={"type": "integer"}), version("v2", storage=False))


@pytest.fixture
def compared(tmp_path):
    """Compare two CRDs; more arguments go to the command."""

    def run(old, new, *arguments):
        for name, content in (("old.yaml", old), ("new.yaml", new)):
            (tmp_path / name).write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return crsyncer("api", "diff", "old.yaml", "new.yaml", *arguments, cwd=tmp_path)

    return run


def test_C8_3_what_breaks_is_a_line_each_with_its_path(compared):
    done = compared(OLD, NEW)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "v1 /spec/x: is gone",
        "v1 /spec/y: was string, and is integer",
        "v1beta1: is no longer served",
    ]


def test_C8_2_json_has_the_revision_and_the_crd_that_follows(compared):
    done = compared(OLD, NEW, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    content = json.loads(done.stdout)
    assert list(content) == ["schema", "resource", "revision", "breaking", "crd"]
    assert content["schema"] == "crsyncer.api-diff/v1"
    assert (content["resource"], content["revision"]) == (OLD["metadata"]["name"], revise(NEW).name)
    assert content["breaking"][0] == {"change": "FieldGone", "version": "v1", "path": "/spec/x", "message": "is gone"}
    assert content["crd"]["metadata"] == OLD["metadata"]
    versions = [(each["name"], each["served"], each["storage"]) for each in content["crd"]["spec"]["versions"]]
    assert versions == [("v2", True, False), ("v1", True, True), ("v1beta1", False, False)]
    assert yaml.safe_load(compared(OLD, NEW, "-o", "yaml").stdout) == content


def test_that_nothing_breaks_is_said(compared):
    done = compared(OLD, OLD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing breaks\n", "")
    done = compared(OLD, OLD, "-o", "name")
    assert (done.returncode, done.stdout) == (0, f"{revise(OLD).name}\n")


def test_C8_1_only_the_picked_versions_are_compared(compared):
    done = compared(OLD, OLD, "--pick", "v1")
    assert (done.returncode, done.stdout) == (1, "v1beta1: is no longer served\n")
    done = compared(OLD, OLD, "--pick", "v1", "--pick", "v3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "crsyncer: new.yaml: v3 cannot be picked; the CRD serves v1, v1beta1\n"


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("a: [", "new.yaml:2: not YAML"),
        ("", "new.yaml has 0 objects; allowed: one"),
        ("kind: Goal", "new.yaml: apiVersion is missing"),
        (crd(version(), version()), "new.yaml: spec.versions has a version twice"),
        (crd(version(served=False)), "new.yaml: no version is picked; the CRD serves none"),
        (crd(version(), group="other"), 'new.yaml: metadata.name is "goals.lab.example.com"; allowed: goals.other'),
        (
            crd(version(), group="other") | {"metadata": {"name": "goals.other"}},
            "new.yaml is the CRD goals.other; allowed: goals.lab.example.com, as old.yaml",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_exit_code_2(compared, new, said):
    done = compared(OLD, new)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_C8_4_without_an_agent_there_is_nothing_to_list_and_pausing_needs_the_clusters(tmp_path):
    done = crsyncer("api", "list", "--state-dir", tmp_path / "never")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no CRD travels: no SyncPolicy has the field api\n", "")
    done = crsyncer("api", "list", "--json", "--state-dir", tmp_path / "never")
    assert json.loads(done.stdout) == {"schema": "crsyncer.apis/v1", "apis": []}
    done = crsyncer("api", "pause", "goals", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cloud.kubeconfig" in done.stderr


def test_C8_4_the_list_has_what_the_agent_saved(tmp_path):
    rows = [
        {"resource": "goals.lab.example.com", "policy": "p", "revision": None, "state": "held", "message": "v1 breaks"},
        {"resource": "tasks.lab.example.com", "policy": "q", "revision": "v2", "state": "current", "message": None},
    ]
    lines = _list(rows).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["RESOURCE", "POLICY", "REVISION", "STATE"],
        ["goals.lab.example.com", "p", "-", "held"],
        ["tasks.lab.example.com", "q", "v2", "current"],
    ]
    assert lines[3:] == ["goals.lab.example.com: v1 breaks"]
