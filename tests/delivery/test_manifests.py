"""What is deployed is accepted by real API servers, and its rights are enough for the agent: shown, not claimed."""

import asyncio
import contextlib
import subprocess
from pathlib import Path

import pytest
import yaml

from crsyncer.adapters.config import load
from crsyncer.core import calls
from crsyncer.sandbox.agent import AgentProcess
from crsyncer.sandbox.resource import CRD
from crsyncer.sandbox.sandbox import Sandbox
from tests.api import Api, ApiError
from tests.delivery.command_line import write_kubeconfig
from tests.delivery.followed import FINDING, GOAL, HOME, NAME, ROOT, Clusters, commands, copy_of_the_documents
from tests.system.bed import eventually


@pytest.fixture
async def clusters(sandbox: Sandbox, cloud_api: Api, robot_api: Api, tmp_path: Path):
    copy_of_the_documents(tmp_path)
    made = Clusters(sandbox, tmp_path)
    apis = (cloud_api, robot_api)
    try:
        await made.set_up_cloud(cloud_api)
        crds = f"kubectl apply -f cloud/example-crd.yaml; kubectl create namespace {HOME}\n"
        await asyncio.to_thread(made.shell, crds + commands("robot/README.md"), cluster="robot")
        for api in apis:
            for resource in (GOAL, FINDING):
                await api.until_served(resource)
        yield made
    finally:
        for api in apis:
            for resource in (GOAL, FINDING):
                with contextlib.suppress(ApiError):
                    await api.delete(CRD.object(f"{resource.plural}.{resource.group}"))


async def test_the_documented_rights_are_enough_and_go_no_further(clusters, cloud_api, robot_api, robot, cloud):
    folder = clusters.folder
    token = await robot_api.service_account_token("crsyncer", "crsyncer")
    config = yaml.safe_load((ROOT / "robot/config.yaml").read_text())
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


async def can_be_told_more(clusters: Clusters, robot: Api) -> None:
    """The optional rights, by which a kind that was made anew is told from one that was emptied, are as documented."""

    async def may(path: str) -> bool:
        return (await robot.request("GET", path))[0] == 200

    paths = [calls.crd(f"{kind.plural}.{kind.group}").path for kind in (GOAL, FINDING)]
    paths.append("/api/v1/namespaces/kube-system")
    assert [await may(path) for path in paths] == [False, False, False]
    await asyncio.to_thread(clusters.shell, commands("cloud/README.md", 1), cluster="cloud")

    async def all_may() -> bool:
        return all([await may(path) for path in paths])

    await eventually(all_may, what="the account may read the CRDs and kube-system")
    assert not await may(calls.CRDS)


async def gone(api: Api, obj: dict) -> bool:
    return await api.find(obj) is None


def test_the_pod_is_confined_and_its_paths_fit_together():
    [_, deployment] = yaml.safe_load_all((ROOT / "robot/deployment.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    config = yaml.safe_load((ROOT / "robot/config.yaml").read_text())
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    for path in (config["stateDir"], config["cloud"]["kubeconfig"], container["args"][-1]):
        assert str(Path(path).parent) in mounts
    [listen] = [variable["value"] for variable in container["env"] if variable["name"] == "CRSYNCER_LISTEN"]
    assert listen == f"$(POD_IP):{container['ports'][0]['containerPort']}"
    assert "listen" not in config


async def test_an_api_server_admits_the_pod_in_a_restricted_namespace_and_the_metrics_component(
    sandbox: Sandbox, tmp_path: Path
):
    """`restricted` is the API server's own judgement of the pod; strict validation refuses unknown fields."""

    def kubectl(*arguments: str | Path, given: str = "") -> str:
        command = [sandbox.programs.kubectl(), "--kubeconfig", sandbox.kubeconfig("robot"), *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    everything = list(yaml.safe_load_all(await asyncio.to_thread(kubectl, "kustomize", ROOT / "robot")))
    applied = [obj for obj in everything if obj["kind"] in ("Namespace", "PriorityClass", "ServiceAccount")]
    await asyncio.to_thread(kubectl, "apply", "-f", "-", given=yaml.safe_dump_all(applied))
    [deployment] = [obj for obj in everything if obj["kind"] == "Deployment"]
    meta = {"name": "crsyncer", "namespace": "crsyncer"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": deployment["spec"]["template"]["spec"]}
    kustomization = copy_of_the_documents(tmp_path) / "robot/kustomization.yaml"
    kustomization.write_text(kustomization.read_text().replace("components: []", "components: [metrics]"))
    with_metrics = await asyncio.to_thread(kubectl, "kustomize", kustomization.parent)
    assert "kubernetes.io/metadata.name: monitoring" in with_metrics
    for given in (yaml.safe_dump(pod), with_metrics):
        await asyncio.to_thread(kubectl, "apply", "--dry-run=server", "--validate=strict", "-f", "-", given=given)


def test_the_example_configuration_is_accepted(tmp_path):
    kubeconfig = write_kubeconfig(tmp_path / "k")
    flags = {"cloud_kubeconfig": kubeconfig, "robot_kubeconfig": kubeconfig, "robot_context": "robot"}
    settings = load({"config": ROOT / "robot/config.yaml", **flags}, {})
    assert (settings.robot_name, settings.namespaces) == (NAME, (HOME,))
