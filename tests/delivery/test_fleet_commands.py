"""`crsyncer fleet`: what its commands print, without a cluster."""

import json

import pytest
import yaml

from crsyncer.cli.fleet.fleet_crds import INVENTORY, KINDS, SCHEMAS
from crsyncer.core.content.annotations import FILTER, SPEC_SOURCE
from tests.delivery.command_line import in_process as crsyncer

GROUP = "fleet.crsyncer.cloudrobotics.com"


def texts(*names: str) -> str:
    return "---\n".join((SCHEMAS / f"{name}.yaml").read_text() for name in names)


def test_the_crds_of_the_fleet_are_printed_for_kubectl_with_their_comments():
    done = [crsyncer("fleet", "crds"), crsyncer("fleet", "crds", "-o", "yaml")]
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * 2
    assert done[0].stdout == done[1].stdout == texts(*KINDS)
    listed = json.loads(crsyncer("fleet", "crds", "--json").stdout)
    assert listed == {"apiVersion": "v1", "kind": "List", "items": [*yaml.safe_load_all(texts(*KINDS))]}
    names = [f"customresourcedefinition/{name}.{GROUP}" for name in KINDS]
    assert crsyncer("fleet", "crds", "-o", "name").stdout.splitlines() == names


def test_the_inventory_is_printed_only_when_asked_for():
    assert crsyncer("fleet", "crds", "--inventory").stdout == texts(*KINDS, INVENTORY)
    [*_, inventory] = yaml.safe_load_all(texts(*KINDS, INVENTORY))
    assert inventory["metadata"]["name"] == "robots.registry.cloudrobotics.com"


def test_every_file_with_a_schema_is_printed():
    assert {path.stem for path in SCHEMAS.iterdir()} == {*KINDS, INVENTORY}


@pytest.mark.parametrize("plural", ["robotsyncstates", "robotobjectstatuses"])
def test_robots_get_rights_for_their_own_reports_and_for_no_other_kind_of_the_fleet(tmp_path, plural):
    (tmp_path / "crds.yaml").write_text(texts(plural))
    done = crsyncer("cloud-manifests", "--robot", "r1", "--crds", tmp_path / "crds.yaml", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    roles = [each for each in json.loads(done.stdout)["items"] if each["kind"] == "ClusterRole" and each.get("rules")]
    assert [rule["verbs"] for role in roles for rule in role["rules"]] == [
        ["list", "watch", "create", "update", "delete"]
    ]
    annotated = [
        crd["spec"]["names"]["plural"]
        for crd in yaml.safe_load_all(texts(*KINDS))
        if {SPEC_SOURCE, FILTER} & (crd["metadata"].get("annotations") or {}).keys()
    ]
    assert annotated == ["robotsyncstates", "robotobjectstatuses"]


def test_doctor_ends_with_11_where_the_cloud_is_silent_although_there_is_a_warning(tmp_path):
    login = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "cloud.yaml").write_text(yaml.safe_dump(login))
    (tmp_path / "cloud.yaml").chmod(0o666)
    done = crsyncer("fleet", "doctor", "--cloud-kubeconfig", tmp_path / "cloud.yaml", "--json")
    content = json.loads(done.stdout)
    assert {each["name"]: each["state"] for each in content["checks"]}["kubeconfig"] == "warn"
    assert (done.returncode, content["health"]) == (11, "offline")
