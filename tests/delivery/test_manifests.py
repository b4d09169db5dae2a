"""What is deployed is accepted by real API servers, and its rights are enough for the agent: shown, not claimed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.adapters.config import load
from crsyncer.core.requests import calls
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.resource import CRD
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api, ApiError
from tests.delivery.command_line import crsyncer, write_kubeconfig
from tests.delivery.followed import FINDING, GOAL, HOME, NAME, ROOT, Clusters, commands, copy_of_the_documents
from tests.delivery.kubectl import kubectl
from tests.system.bed import eventually

OVERLAYS = sorted(path.parent.name for path in ROOT.glob("robot/overlays/*/kustomization.yaml"))
BASE = ROOT / "robot/base"


@pytest.fixture(params=["k3s", "restricted"])
async def clusters(sandbox: Sandbox, cloud_api: Api, robot_api: Api, tmp_path: Path, request):
    copy_of_the_documents(tmp_path)
    made = Clusters(sandbox, tmp_path)
    apis = (cloud_api, robot_api)
    try:
        await made.set_up_cloud(cloud_api)
        crds = f"kubectl apply -f cloud/example-crd.yaml; kubectl create namespace {HOME} --dry-run=client -o yaml"
        script = commands("robot/README.md").replace("overlays/k3s", f"overlays/{request.param}")
        await asyncio.to_thread(made.shell, f"{crds} | kubectl apply -f -\n{script}", cluster="robot")
        for api in apis:
            for resource in (GOAL, FINDING):
                await api.until_served(resource)
        yield made
    finally:
        rights = (
            f"kubectl delete --ignore-not-found clusterrolebinding/crsyncer-kinds -n {HOME} rolebinding/crsyncer-kinds"
        )
        secret = "kubectl -n crsyncer delete --ignore-not-found secret/crsyncer-cloud"
        await asyncio.to_thread(made.shell, f"{rights}\n{secret}", cluster="robot")
        await asyncio.to_thread(
            made.shell, "kubectl delete --ignore-not-found -f cloud/identity/rights.yaml", cluster="cloud"
        )
        for api in apis:
            await api.remove_kinds(GOAL, FINDING)


async def test_the_documented_rights_are_enough_and_go_no_further(
    clusters, cloud_api, robot_api, robot, cloud, request
):
    folder = clusters.folder
    token = await robot_api.service_account_token("crsyncer", "crsyncer")
    overlay = request.node.callspec.params["clusters"]
    [variables] = [pod(obj)["containers"][0]["env"] for obj in await built(clusters.sandbox, overlay) if has_pod(obj)]
    config = yaml.safe_load((BASE / "config.yaml").read_text())
    mounted = folder / "kubeconfig"
    mounted.write_text((folder / "checkout/cloud.kubeconfig").read_text())
    config["cloud"]["kubeconfig"] = str(mounted)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    agent = AgentProcess(
        folder,
        cloud_kubeconfig=mounted,
        robot_kubeconfig=robot.kubeconfig(folder / "robot.yaml", token=token),
        robot_name="",
        flags=("--config", str(folder / "config.yaml")),
        environment={
            each["name"]: each["value"] for each in variables if each["name"] == "CRSYNCER_REQUIRE_CONFINEMENT"
        },
    )
    await agent.start()
    try:
        # A role is in force when the API server has heard of it: until then its kind is forbidden, and tried again.
        await agent.until(
            lambda s: s["health"] == "healthy" and {k["state"] for k in s["kinds"]} == {"syncing"}, seconds=90
        )

        goal = GOAL.object("a", namespace=HOME, labels={"cloudrobotics.com/robot-name": NAME}, spec={"x": 1})
        finding = FINDING.object("f", namespace=HOME, spec={"text": "a box"})
        for upstream, downstream, obj, change, status in (
            (cloud_api, robot_api, goal, {"x": 2}, {"phase": "DONE"}),
            (robot_api, cloud_api, finding, {"text": "two boxes"}, {"seenBy": "ops"}),
        ):

            async def shows(api: Api, obj=obj, **fields) -> bool:
                found = await api.find(obj)
                return found is not None and all(found.get(key) == value for key, value in fields.items())

            await upstream.create(obj)
            await eventually(lambda: shows(downstream), what="a copy")  # noqa: B023
            await upstream.patch(obj, {"spec": change})
            await eventually(lambda: shows(downstream, spec=change), what="the change")  # noqa: B023
            await downstream.patch_status(obj, status)
            await eventually(lambda: shows(upstream, status=status), what="the status")  # noqa: B023
            await downstream.delete(obj)
            await eventually(lambda: shows(downstream, spec=change), what="the copy again")  # noqa: B023
            await upstream.delete(obj)
            await eventually(lambda: gone(downstream, obj), what="the end of the copy")  # noqa: B023
        await agent.until(
            lambda s: s["health"] == "healthy" and s["outbox"] == {**s["outbox"], "depth": 0, "deadLetters": 0}
        )
    finally:
        await agent.stop()

    account = yaml.safe_load(mounted.read_text())["users"][0]["user"]["token"]
    async with Api(cloud.server, ca_file=cloud.ca_file, token=account) as thief:
        for attempt in (
            thief.list(GOAL),
            thief.list(GOAL, namespace="default"),
            thief.create(GOAL.object("b", namespace=HOME)),
            thief.get(GOAL.object("a", namespace=HOME)),
            thief.delete(GOAL.object("a", namespace=HOME)),
            thief.list(CRD),
        ):
            with pytest.raises(ApiError) as refused:
                await attempt
            assert refused.value.status == 403
        await can_be_told_more(clusters, thief)
    async with Api(robot.server, ca_file=robot.ca_file, token=token) as account:

        async def everywhere() -> bool:  # a role is in force, and no longer, when the API server has heard of it
            return (await account.request("GET", GOAL.path()))[0] == (403 if overlay == "restricted" else 200)

        await eventually(everywhere, what=f"the rights of {overlay}")


async def can_be_told_more(clusters: Clusters, robot: Api) -> None:
    """The optional rights, by which a kind that was made anew is told from one that was emptied, are as documented."""

    async def may(path: str) -> bool:
        return (await robot.request("GET", path))[0] == 200

    paths = [calls.crd(f"{kind.plural}.{kind.group}").path for kind in (GOAL, FINDING)]
    paths.append("/api/v1/namespaces/kube-system")

    async def none_may() -> bool:
        return not any([await may(path) for path in paths])

    await eventually(none_may, what="the account may read none of them")
    await asyncio.to_thread(clusters.shell, commands("cloud/README.md", 1), cluster="cloud")

    async def all_may() -> bool:
        return all([await may(path) for path in paths])

    await eventually(all_may, what="the account may read the CRDs and kube-system")
    assert not await may(calls.CRDS)


async def gone(api: Api, obj: dict) -> bool:
    return await api.find(obj) is None


async def built(sandbox: Sandbox, overlay: str, *, folder: Path = ROOT) -> list[dict[str, Any]]:
    """The objects of an overlay, as kubectl's own kustomize builds them."""
    text = await asyncio.to_thread(kubectl, sandbox, "robot", "kustomize", folder / "robot/overlays" / overlay)
    return list(yaml.safe_load_all(text))


def has_pod(obj: dict[str, Any]) -> bool:
    return bool(obj["kind"] == "Deployment")


def pod(deployment: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def add_component(kustomization: Path, *names: str) -> None:
    """Add components, as the documents tell."""
    text = kustomization.read_text()
    assert text.count("components: []") == 1
    kustomization.write_text(text.replace("components: []", f"components: [{', '.join(names)}]"))


@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_the_pod_is_confined_and_its_paths_fit_together(sandbox: Sandbox, overlay: str):
    objects = await built(sandbox, overlay)
    [spec] = [pod(obj) for obj in objects if has_pod(obj)]
    [container] = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    [config] = [yaml.safe_load(obj["data"]["config.yaml"]) for obj in objects if obj["kind"] == "ConfigMap"]
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    for path in (config["stateDir"], config["cloud"]["kubeconfig"], variables["CRSYNCER_CONFIG"]):
        assert str(Path(path).parent) in mounts
    assert variables["CRSYNCER_LISTEN"] == f"$(POD_IP):{container['ports'][0]['containerPort']}"
    assert "listen" not in config


@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_nothing_ends_the_agent_because_a_side_is_away_or_the_robot_is_short_of_something(sandbox, overlay):
    objects = await built(sandbox, overlay)
    [spec] = [pod(obj) for obj in objects if has_pod(obj)]
    [container] = spec["containers"]
    probes = {probe: container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")}
    assert probes == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    tolerated = {toleration["key"] for toleration in spec["tolerations"] if toleration["operator"] == "Exists"}
    troubles = {"disk-pressure", "memory-pressure", "pid-pressure", "network-unavailable", "not-ready", "unreachable"}
    assert tolerated >= {f"node.kubernetes.io/{trouble}" for trouble in troubles}
    assert spec["priorityClassName"] in {obj["metadata"]["name"] for obj in objects if obj["kind"] == "PriorityClass"}
    # Pods that use more than they ask for are evicted before all others, whatever their priority.
    assert set(container["resources"]["requests"]) == {"cpu", "memory", "ephemeral-storage"}


@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_an_api_server_admits_the_pod_in_a_restricted_namespace_and_the_metrics_component(
    sandbox: Sandbox, tmp_path: Path, overlay: str
):
    """`restricted` is the API server's own judgement of the pod; strict validation refuses unknown fields."""
    everything = await built(sandbox, overlay)
    applied = [obj for obj in everything if obj["kind"] in ("Namespace", "PriorityClass", "ServiceAccount")]
    await asyncio.to_thread(kubectl, sandbox, "robot", "apply", "-f", "-", given=yaml.safe_dump_all(applied))
    meta = {"name": "crsyncer", "namespace": "crsyncer"}
    [spec] = [pod(obj) for obj in everything if has_pod(obj)]
    alone = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    checkout = copy_of_the_documents(tmp_path)
    add_component(checkout / "robot/overlays" / overlay / "kustomization.yaml", "../../metrics")
    with_metrics = yaml.safe_dump_all(await built(sandbox, overlay, folder=checkout))
    assert "kubernetes.io/metadata.name: monitoring" in with_metrics
    # A claim's storage class cannot change: each overlay's is another claim.
    for given in (yaml.safe_dump(alone), with_metrics.replace("crsyncer-state", f"state-{overlay}")):
        dry_run = ("apply", "--dry-run=server", "--validate=strict", "-f", "-")
        await asyncio.to_thread(kubectl, sandbox, "robot", *dry_run, given=given)


async def test_the_clouds_components_are_the_printed_manifests_in_their_order(sandbox: Sandbox, tmp_path: Path):
    folder = copy_of_the_documents(tmp_path) / "cloud"

    async def objects() -> list[dict[str, Any]]:
        text = await asyncio.to_thread(kubectl, sandbox, "cloud", "kustomize", folder)
        return [obj for obj in yaml.safe_load_all(text) if obj["kind"] != "CustomResourceDefinition"]

    printed = list(yaml.safe_load_all((ROOT / "cloud/robot-r1.yaml").read_text()))
    assert await objects() == printed
    add_component(folder / "kustomization.yaml", "audit", "identity")
    done = await asyncio.to_thread(
        crsyncer, "cloud-manifests", "--robot", NAME, "--crds", folder / "example-crd.yaml", "--audit"
    )
    changed = await objects()
    assert changed[:-2] == list(yaml.safe_load_all(done.stdout))
    assert [obj["metadata"]["name"] for obj in changed[-2:]] == ["crsyncer-identity", "crsyncer-identity"]
    namespaces = yaml.safe_dump_all([obj for obj in printed if obj["kind"] == "Namespace"])
    await asyncio.to_thread(kubectl, sandbox, "cloud", "apply", "-f", "-", given=namespaces)
    dry_run = ("apply", "--dry-run=server", "--validate=strict", "-f", "-")
    given = yaml.safe_dump_all(changed)
    assert "crsyncer-identity" in await asyncio.to_thread(kubectl, sandbox, "cloud", *dry_run, given=given)


def test_the_example_configuration_is_accepted(tmp_path):
    kubeconfig = write_kubeconfig(tmp_path / "k")
    flags = {"cloud_kubeconfig": kubeconfig, "robot_kubeconfig": kubeconfig, "robot_context": "robot"}
    settings = load({"config": BASE / "config.yaml", **flags}, {})
    assert (settings.robot_name, settings.namespaces) == (NAME, (HOME,))
