"""`crsyncer door manifests`: one right, and pods that a real API server admits."""

import json
from pathlib import Path

import yaml

from crsyncer.adapters.config import DOOR_OPTIONS
from crsyncer.adapters.kubeconfig import SERVICE_ACCOUNT
from crsyncer.cli.door.door_drain import door_drain
from crsyncer.core.model import Json
from crsyncer.sandbox.two_planes import Sandbox
from tests.delivery.command_line import in_process as crsyncer
from tests.delivery.kubectl import admitted

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "cloud/door"


def manifests(*arguments: str) -> dict[str, list[Json]]:
    """By kind the objects that the command prints."""
    done = crsyncer("door", "manifests", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Json]] = {}
    for each in json.loads(done.stdout)["items"]:
        found.setdefault(each["kind"], []).append(each)
    return found


def test_the_file_for_kustomize_is_what_the_command_prints():
    done = crsyncer("door", "manifests")
    assert done.returncode == 0
    assert done.stderr == "crsyncer: note: the pods wait for the Secret crsyncer-door/crsyncer-door\n"
    assert done.stdout == (FOLDER / "door.yaml").read_text(), "print cloud/door/door.yaml anew"


def test_the_door_may_read_robots_and_nothing_else():
    found = manifests("--namespace", "edge")
    assert not {"ClusterRole", "ClusterRoleBinding", "Secret"} & set(found)
    [role], [binding], [account] = found["Role"], found["RoleBinding"], found["ServiceAccount"]
    verbs = ["get", "list", "watch"]
    assert role["rules"] == [{"apiGroups": ["registry.cloudrobotics.com"], "resources": ["robots"], "verbs": verbs}]
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "default"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "crsyncer-door", "namespace": "edge"}]
    assert account["metadata"]["namespace"] == "edge"
    assert "Namespace" not in manifests("--namespace", "default")


def test_the_pods_are_confined_and_configured_by_settings_that_exist():
    [deployment] = manifests("--image", "registry.example.com/door:1")["Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    [upkeep], [haproxy] = spec["initContainers"], spec["containers"]
    for container in (upkeep, haproxy):
        assert container["image"] == "registry.example.com/door:1"
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert upkeep["restartPolicy"] == "Always", "a sidecar"
    variables = {each["name"]: each.get("value", "") for each in upkeep["env"]}
    assert variables.items() >= {each["name"]: each["value"] for each in haproxy["env"]}.items()
    known = {variable for option in DOOR_OPTIONS.values() for variable in option.envvar or ()}
    assert set(variables) - {"POD_IP"} <= known
    assert haproxy["command"] == [
        *("haproxy", "-W", "-S", variables["CRSYNCER_DOOR_SOCKET"]),
        *("-f", f"{variables['CRSYNCER_DOOR_DIRECTORY']}/haproxy.cfg"),
    ]
    ports = {each["name"]: each["containerPort"] for each in haproxy["ports"]}
    assert variables["CRSYNCER_DOOR_BIND"] == f":{ports['robots']}"
    assert variables["CRSYNCER_DOOR_EXPORTER"] == f"$(POD_IP):{ports['exporter']}"
    mounts = {each["mountPath"] for each in haproxy["volumeMounts"]}
    assert mounts == {"/run/crsyncer-door"}, "HAProxy sees the certificate only as the upkeep has checked it"


def test_the_account_is_the_sidecars_alone():
    """Where Kubernetes mounts an account by itself, it does so for each container."""
    [deployment] = manifests()["Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    [account] = [each for each in spec["volumes"] if each["name"] == "account"]
    files = [source[kind] for source in account["projected"]["sources"] for kind in source]
    names = {item["path"] for each in files for item in each.get("items", [each])}
    assert names == {"token", "ca.crt", "namespace"}
    [mount] = [each for each in spec["initContainers"][0]["volumeMounts"] if each["name"] == "account"]
    assert mount["mountPath"] == str(SERVICE_ACCOUNT)
    assert "account" not in [each["name"] for each in spec["containers"][0]["volumeMounts"]]


def test_G6_before_haproxy_ends_its_robots_leave_one_after_the_other():
    [deployment] = manifests()["Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    program, *words = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert (program, words[:2]) == ("crsyncer", ["door", "drain"])
    taken = door_drain.make_context("drain", words[2:]).params
    assert (taken["seconds"], taken["grace"]) == (30, 5)
    assert spec["terminationGracePeriodSeconds"] > taken["seconds"] + taken["grace"] + 10


def test_only_robots_reach_haproxy_and_only_monitoring_the_metrics():
    found = manifests()
    [policy] = found["NetworkPolicy"]
    robots, metrics = policy["spec"]["ingress"]
    assert robots == {"ports": [{"port": 8443, "protocol": "TCP"}]}
    assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    assert [each["port"] for each in metrics["ports"]] == [9466, 8404]
    services = {each["metadata"]["name"]: each["spec"] for each in found["Service"]}
    assert [each["targetPort"] for each in services.pop("crsyncer-door")["ports"]] == ["robots"]
    assert {name: [each["port"] for each in spec["ports"]] for name, spec in services.items()} == {
        "crsyncer-door-metrics": [9466],
        "crsyncer-door-haproxy-metrics": [8404],
    }
    assert not any("type" in spec for spec in services.values())


def test_a_real_api_server_takes_every_object_and_admits_the_pods_as_restricted(sandbox: Sandbox):
    objects = admitted(sandbox, FOLDER)
    assert objects == [*yaml.safe_load_all((FOLDER / "door.yaml").read_text())]
