"""C6.4 on a real cloud: `crsyncer release` removes one robot's finalizer, whatever others do to the list."""

import json
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.adapters.kube import KubeCluster
from crsyncer.console.operators.finalizer_release import Wish, release_objects
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import NAMESPACE, Resource
from tests.api import Api, ApiError, Object
from tests.delivery.command_line import crsyncer
from tests.system.bed import crd, eventually

R1, R2 = (f"crsyncer.cloudrobotics.com/robot-{name}" for name in ("r1", "r2"))
FIRST, LAST = "first.example.com/f", "last.example.com/f"
POD = Resource("", "v1", "pods", "Pod")
MANIFEST = Path(__file__).parents[2] / "cloud/release.yaml"
Release = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
async def goals(cloud_api: Api, group: str) -> Resource:
    return await cloud_api.apply_crd(crd(group))


@pytest.fixture
def release(cloud: Plane, tmp_path: Path) -> Release:
    """Run the command with the cloud's kubeconfig alone."""

    def run(*arguments: str, token: str | None = None, code: int = 0) -> subprocess.CompletedProcess[str]:
        kubeconfig = cloud.kubeconfig(tmp_path / "cloud.yaml", token=token)
        done = crsyncer("release", *arguments, "--cloud-kubeconfig", kubeconfig, cwd=tmp_path)
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
        return done

    return run


async def keep(api: Api, resource: Resource, name: str, *finalizers: str, namespace: str = "default") -> Object:
    """An object with these finalizers."""
    obj = resource.object(name, namespace=namespace, spec={"x": 1})
    obj["metadata"]["finalizers"] = list(finalizers)
    return await api.create(obj)


async def finalizers(api: Api, obj: Object) -> list[str] | None:
    """Those of an object as it is now; None where it is gone."""
    found = await api.find(obj)
    return None if found is None else list(found["metadata"].get("finalizers") or ())


async def clean(api: Api, *objects: Object) -> None:
    """Let objects go for good, or their CRD would stay."""
    for obj in objects:
        if await api.find(obj) is not None:
            await api.patch(obj, {"metadata": {"finalizers": None}})


async def test_C6_4_one_robots_finalizer_goes_and_the_others_stay_in_order(
    cloud_api: Api, goals: Resource, release: Release
) -> None:
    name = f"goals.{goals.group}"
    shared = await keep(cloud_api, goals, "shared", FIRST, R1, R2, LAST)
    alone = await keep(cloud_api, goals, "alone", R1)
    twice = await keep(cloud_api, goals, "twice", R1, LAST, R1)
    theirs = await keep(cloud_api, goals, "theirs", R2)
    lives = await keep(cloud_api, goals, "lives", R1, FIRST)
    try:
        for obj in (shared, alone, twice, theirs):
            await cloud_api.delete(obj)
        done = release(name, "--robot", "r1", "--yes")
        assert done.stdout.startswith(f"released 0 objects of {name}\nleft out: 3 that were deleted more recently")
        done = release(name, "--robot", "r1", "--older-than", "0s")
        assert "robot r1 keeps 3 objects" in done.stdout
        assert done.stderr == "nothing was changed; repeat the command with --yes\n"
        assert await finalizers(cloud_api, shared) == [FIRST, R1, R2, LAST]
        document = json.loads(release(name, "--robot", "r1", "--older-than=0s", "--yes", "-o", "json").stdout)
        assert {row["name"]: row["state"] for row in document["objects"]} == dict.fromkeys(
            ("alone", "shared", "twice"), "released"
        )
        assert await finalizers(cloud_api, shared) == [FIRST, R2, LAST]
        assert await finalizers(cloud_api, twice) == [LAST]
        assert await finalizers(cloud_api, alone) is None
        assert (await finalizers(cloud_api, theirs), await finalizers(cloud_api, lives)) == ([R2], [R1, FIRST])
        done = release(name, "lives", "-n", "default", "--robot", "r1", "--all", "--yes", "-o", "name")
        assert (done.stdout, done.stderr) == (f"{name}/default/lives\n", "")
        assert await finalizers(cloud_api, lives) == [FIRST]
    finally:
        await clean(cloud_api, shared, alone, twice, theirs, lives)


async def test_C6_2_a_concurrent_change_of_the_list_fails_safely_and_is_tried_again(
    cloud: Plane, cloud_api: Api, goals: Resource, tmp_path: Path
) -> None:
    moved = await keep(cloud_api, goals, "moved", FIRST, R1, LAST)
    reborn = await keep(cloud_api, goals, "reborn", R1)
    for obj in (moved, reborn):
        await cloud_api.delete(obj)

    async def move() -> None:
        await cloud_api.patch(moved, [{"op": "remove", "path": "/metadata/finalizers/0"}])

    async def bear_again() -> None:
        await clean(cloud_api, reborn)
        await keep(cloud_api, goals, "reborn", R1)

    interruptions: dict[str, Callable[[], Awaitable[None]]] = {"moved": move, "reborn": bear_again}
    answers: list[tuple[str, int]] = []
    cluster = KubeCluster(cloud.kubeconfig(tmp_path / "cloud.yaml"))

    async def send(call: Call) -> Reply:
        name = call.path.rpartition("/")[2]
        if call.method == "PATCH" and (interrupt := interruptions.pop(name, None)):
            await interrupt()
        reply = await cluster.request(call)
        if call.method == "PATCH":
            answers.append((name, reply.status))
        return reply

    try:
        wish = Wish("r1", f"goals.{goals.group}")
        content = await release_objects(send, wish, clock=time.time, dry_run=False)
        assert {row["name"]: row["state"] for row in content["objects"]} == {"moved": "released", "reborn": "gone"}
        assert answers == [("moved", 422), ("moved", 200), ("reborn", 422)]
        assert (await finalizers(cloud_api, moved), await finalizers(cloud_api, reborn)) == ([LAST], [R1])
    finally:
        await cluster.close()
        await clean(cloud_api, moved, reborn)
        await cloud_api.delete(reborn)


def manifest(group: str, namespace: str) -> list[Object]:
    """`cloud/release.yaml` for a namespace and group of a test's own."""
    text = MANIFEST.read_text().replace("lab.example.com", group).replace("robot-r1:crs", f"{namespace}:crs")
    text = text.replace("namespace: robot-r1", f"namespace: {namespace}").replace("release-r1", f"release-{namespace}")
    return list(yaml.safe_load_all(text))


PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "CronJob": "cronjobs",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


async def test_C6_4_the_account_of_the_cronjob_may_release_and_nothing_else(
    cloud_api: Api, goals: Resource, release: Release
) -> None:
    namespace = goals.group.replace(".", "-")
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    await cloud_api.create(NAMESPACE.object(namespace, labels=restricted))
    made = manifest(goals.group, namespace)
    for obj in made:
        group, _, version = obj["apiVersion"].rpartition("/")
        cloud_api.learn(Resource(group, version, PLURALS[obj["kind"]], obj["kind"], "namespace" in obj["metadata"]))
        await cloud_api.create(obj)
    name, token = f"goals.{goals.group}", await cloud_api.service_account_token(namespace, "crsyncer-release")
    kept = await keep(cloud_api, goals, "kept", FIRST, R1, R2, namespace=namespace)
    elsewhere = await keep(cloud_api, goals, "elsewhere", R1)
    try:
        async with Api(cloud_api.server, ca_file=cloud_api._ca_file, token=token) as account:
            account.learn(goals)

            async def may_list() -> bool:
                return (await account.request("GET", goals.path(namespace=namespace)))[0] == 200

            async def refused(change: Any) -> bool:
                try:
                    await account.patch(kept, change)
                except ApiError as error:
                    return "crsyncer: " in error.message
                return False

            # Roles and policies are in force some time after they were made.
            await eventually(may_list, what="the role")
            await eventually(lambda: refused({"metadata": {"labels": {"a": "b"}}}), what="the policy")
            places = ("/metadata/finalizers", "/metadata/finalizers/0", "/metadata/finalizers/2", "/spec")
            for change in [*([{"op": "remove", "path": place}] for place in places), {"spec": {"x": 2}}]:
                assert await refused(change), change
            for attempt in (account.get(kept), account.delete(kept), account.list(goals), account.get(elsewhere)):
                with pytest.raises(ApiError) as caught:
                    await attempt
                assert caught.value.status == 403
        await cloud_api.delete(kept)
        (template,) = [obj["spec"]["jobTemplate"]["spec"]["template"] for obj in made if obj["kind"] == "CronJob"]
        (container,) = template["spec"]["containers"]
        pods = POD.path(namespace=namespace)
        pod = POD.object("alone", namespace=namespace, spec=template["spec"])
        assert (await cloud_api.request("POST", pods, params={"dryRun": "All"}, json=pod))[0] == 201, "it is restricted"
        command, *arguments = [argument.replace("robot-r1", namespace) for argument in container["args"]]
        assert (command, arguments[-2:]) == ("release", ["--older-than=24h", "--yes"])
        assert release(*arguments, token=token).stdout.startswith(f"released 0 objects of {name}")
        arguments[-2] = "--older-than=0s"
        done = release(*arguments, token=token)
        assert done.stdout.endswith(f"released 1 object of {name}\n")
        assert await finalizers(cloud_api, kept) == [FIRST, R2]
        assert await finalizers(cloud_api, elsewhere) == [R1]
        another = ["--robot=r2" if argument == "--robot=r1" else argument for argument in arguments]
        done = release(*another, token=token, code=1)
        assert "crsyncer: 1 object not released: " in done.stderr
        assert "only the finalizer of robot r1 may be removed" in done.stderr
        assert await finalizers(cloud_api, kept) == [FIRST, R2]
    finally:
        await clean(cloud_api, kept, elsewhere)
        for obj in made:
            await cloud_api.delete(obj)
