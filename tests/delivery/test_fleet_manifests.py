"""`crsyncer fleet manifests`: the controller's rights, exactly, and pods that a real API server admits."""

import json
from pathlib import Path

import pytest
import yaml

from crsyncer.adapters.config import FLEET_RUN_OPTIONS
from crsyncer.core.model import Json
from crsyncer.sandbox.two_planes import Sandbox
from tests.core.sync_policies import placeable
from tests.delivery.command_line import in_process as crsyncer
from tests.delivery.kubectl import admitted

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "cloud/example-crd.yaml"
FOLDER = ROOT / "cloud/fleet"
FLEET = "fleet.crsyncer.cloudrobotics.com"
READ = "get list watch"


def manifests(*arguments: str | Path) -> list[Json]:
    done = crsyncer("fleet", "manifests", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    items: list[Json] = json.loads(done.stdout)["items"]
    return items


@pytest.mark.parametrize("image", ["", "a b"])
def test_a_bad_image_is_one_line_and_exit_code_2(image: str):
    done = crsyncer("fleet", "manifests", "--crds", EXAMPLE, "--image", image)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f'crsyncer: --image is "{image}"; allowed: the name of an image, such as crsyncer:')


def of_kind(objects: list[Json], kind: str) -> list[Json]:
    return [each for each in objects if each["kind"] == kind]


def test_the_files_for_kustomize_are_what_the_commands_print():
    done = crsyncer("fleet", "manifests", "--crds", EXAMPLE)
    assert done.returncode == 0
    assert done.stderr == "crsyncer: note: findings.lab.example.com is not placed: robots make its objects\n"
    assert done.stdout == (FOLDER / "controller.yaml").read_text(), "print cloud/fleet/controller.yaml anew"
    crds = crsyncer("fleet", "crds").stdout
    assert crds == (FOLDER / "crds.yaml").read_text(), "print cloud/fleet/crds.yaml anew"


def test_F2_5_the_controller_has_exactly_the_rights_for_what_it_does():
    """By namespace ("": everywhere), by resource and names of objects: the verbs."""
    objects = manifests("--crds", EXAMPLE)
    found: dict[tuple[str, str, str], str] = {}
    for role in [*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")]:
        assert set(role) == {"apiVersion", "kind", "metadata", "rules"}
        for rule in role["rules"]:
            assert set(rule) <= {"apiGroups", "resources", "verbs", "resourceNames"}
            [group] = rule["apiGroups"]
            for resource in rule["resources"]:
                where, names = role["metadata"].get("namespace", ""), " ".join(rule.get("resourceNames", ()))
                key = (where, f"{resource}.{group}".rstrip("."), names)
                assert key not in found
                found[key] = " ".join(rule["verbs"])
    assert found == {
        ("", "customresourcedefinitions.apiextensions.k8s.io", ""): READ,
        ("", "syncpolicies.crsyncer.cloudrobotics.com", ""): READ,
        ("", f"robotplacements.{FLEET}", ""): f"{READ} patch",
        ("", f"robotplacements/status.{FLEET}", ""): "patch",
        ("", f"robotplacementdecisions.{FLEET}", ""): f"{READ} create update patch delete",
        ("", f"combinedstatuses.{FLEET}", ""): f"{READ} create update delete",
        ("", f"fieldstrips.{FLEET}", ""): READ,
        ("", f"fieldstrips/status.{FLEET}", ""): "patch",
        ("", f"statuscollectors.{FLEET}", ""): READ,
        ("", f"statuscollectors/status.{FLEET}", ""): "patch",
        ("", f"robotsyncstates.{FLEET}", ""): READ,
        ("", f"robotobjectstatuses.{FLEET}", ""): READ,
        ("", "namespaces", "kube-system"): "get",
        ("", "namespaces", ""): "create",
        ("", "robots.registry.cloudrobotics.com", ""): READ,
        ("crsyncer-properties", "configmaps", ""): READ,
        ("crsyncer-fleet", "leases.coordination.k8s.io", "crsyncer-fleet"): "get update",
        ("crsyncer-fleet", "leases.coordination.k8s.io", ""): "create",
        ("", "goals.lab.example.com", ""): f"{READ} create patch delete",
        ("", "goals/status.lab.example.com", ""): "patch",
    }


def test_F2_5_every_role_is_the_controllers_and_nobody_elses():
    objects = manifests("--crds", EXAMPLE, "--namespace", "fleet")
    account = {"kind": "ServiceAccount", "name": "crsyncer-fleet", "namespace": "fleet"}
    bindings = [*of_kind(objects, "ClusterRoleBinding"), *of_kind(objects, "RoleBinding")]
    assert all(each["subjects"] == [account] for each in bindings)
    bound = {(each["roleRef"]["kind"], each["roleRef"]["name"], each["metadata"].get("namespace")) for each in bindings}
    roles = [*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")]
    assert bound == {(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")) for each in roles}
    [own] = of_kind(objects, "ServiceAccount")
    assert (own["metadata"], own["automountServiceAccountToken"]) == (
        {"name": "crsyncer-fleet", "namespace": "fleet"},
        False,
    )


def test_a_namespace_that_is_there_already_is_not_changed():
    names = [
        each["metadata"]["name"]
        for each in of_kind(manifests("--crds", EXAMPLE, "--namespace", "default"), "Namespace")
    ]
    assert names == ["crsyncer-properties"]
    [namespace, _] = of_kind(manifests("--crds", EXAMPLE), "Namespace")
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}


def test_a_kind_without_a_crd_is_placed_by_its_sync_policy_and_has_no_status(tmp_path: Path):
    (tmp_path / "policies.yaml").write_text(yaml.safe_dump_all([placeable("configmaps"), placeable("secrets")]))
    done = crsyncer("fleet", "manifests", "--crds", tmp_path)
    assert (done.returncode, done.stderr) == (
        0,
        "crsyncer: note: the controller reads and writes all Secrets of the cloud\n",
    )
    [kinds] = [each for each in yaml.safe_load_all(done.stdout) if each["metadata"]["name"] == "crsyncer-fleet-kinds"][
        :1
    ]
    verbs = [*READ.split(), "create", "patch", "delete"]
    assert kinds["rules"] == [{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": verbs}]


def test_F10_3_of_a_kind_that_robots_share_no_status_is_written(tmp_path: Path):
    unfiltered = tmp_path / "unfiltered.yaml"
    unfiltered.write_text(
        EXAMPLE.read_text().partition("---")[0].replace('filter-by-robot-name: "true"', "drift: keep")
    )
    roles = of_kind(manifests("--crds", unfiltered), "ClusterRole")
    [kinds] = [each for each in roles if each["metadata"]["name"] == "crsyncer-fleet-kinds"]
    assert [rule["resources"] for rule in kinds["rules"]] == [["goals"]]


def test_F2_3_nobody_is_given_the_right_to_write_robots(tmp_path: Path):
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(crsyncer("fleet", "crds", "--inventory").stdout)
    done = crsyncer("fleet", "manifests", "--crds", EXAMPLE, "--crds", inventory)
    assert "robots.registry.cloudrobotics.com is not placed: its objects are the Robots" in done.stderr
    assert done.stdout == crsyncer("fleet", "manifests", "--crds", EXAMPLE).stdout


def test_what_cannot_be_placed_is_said_in_a_line(tmp_path: Path):
    of_robots = tmp_path / "robots.yaml"
    of_robots.write_text(EXAMPLE.read_text().partition("---")[0].replace("spec-source: cloud", "spec-source: robot"))
    done = crsyncer("fleet", "manifests", "--crds", of_robots)
    assert (done.returncode, done.stdout) == (2, "")
    note, line = done.stderr.splitlines()
    assert "goals.lab.example.com is not placed: robots make its objects" in note
    assert line.startswith("crsyncer: --crds has no kind that may be placed (needed: spec-source: cloud,")
    for arguments, said in (
        (("--crds", EXAMPLE, "--namespace", "A"), '--namespace is "A"'),
        (("--crds", tmp_path / "none"), "cannot be read"),
        ((), "Missing option '--crds'"),
    ):
        wrong = crsyncer("fleet", "manifests", *arguments)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert said in wrong.stderr.splitlines()[-1]


def test_the_pods_are_confined_stand_apart_and_are_probed_where_they_listen():
    objects = manifests("--crds", EXAMPLE, "--image", "registry.example.com/crsyncer:1")
    [deployment] = of_kind(objects, "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert (deployment["spec"]["replicas"], container["image"]) == (2, "registry.example.com/crsyncer:1")
    assert container["args"] == ["fleet", "run"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert "volumes" not in spec, "it has no disk"
    probes = {probe: container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")}
    assert probes == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    [port] = {each["containerPort"] for each in container["ports"]}
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["CRSYNCER_LISTEN"] == f"$(POD_IP):{port}"
    known = {variable for option in FLEET_RUN_OPTIONS.values() for variable in option.envvar or ()}
    assert {name for name in variables if name.startswith("CRSYNCER_")} <= known
    assert set(container["resources"]["requests"]) == {"cpu", "memory", "ephemeral-storage"}
    [term] = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert spec["priorityClassName"] == of_kind(objects, "PriorityClass")[0]["metadata"]["name"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    [budget], [service], [network] = (
        of_kind(objects, kind) for kind in ("PodDisruptionBudget", "Service", "NetworkPolicy")
    )
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert (service["spec"]["selector"], service["spec"]["ports"][0]["port"]) == (labels, port)
    assert network["spec"]["podSelector"]["matchLabels"] == labels
    assert network["spec"]["ingress"][0]["ports"] == [{"port": port, "protocol": "TCP"}]


def test_a_real_api_server_takes_every_object_and_admits_the_pods_as_restricted(sandbox: Sandbox):
    objects = admitted(sandbox, FOLDER)
    printed = [*yaml.safe_load_all((FOLDER / "crds.yaml").read_text())]
    printed += yaml.safe_load_all((FOLDER / "controller.yaml").read_text())
    assert objects == printed
