"""The API server's edge on real API servers, through a link that fails: what the hostile server cannot stand for."""

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters.kube import Exchange, KubeCluster
from crsyncer.adapters.kube.transport import Meter, open_socket
from crsyncer.core.requests.calls import JSON_PATCH, PARTIAL, Call
from crsyncer.errors import Unsure
from crsyncer.ports import Cluster, Reply
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.two_planes import Sandbox
from tests.link.link import Link

STATUS_SCHEMA = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"n": {"type": "integer", "maximum": 10}},
}


class Goals:
    """One kind on one plane, through the edge."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.cluster = cluster
        self.api = f"{group}/v1"
        self.path = f"/apis/{self.api}/namespaces/default/goals"

    async def define(self, group: str) -> None:
        schema = {"type": "object", "properties": {"status": STATUS_SCHEMA}}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        }
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"goals.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "goals", "kind": "Goal"},
                "versions": [version],
            },
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = await self.cluster.request(Call("create", "POST", path, body=crd))
        assert made.status == 201
        async with asyncio.timeout(60):
            while True:
                if (await self.list()).status == 200:
                    return
                await asyncio.sleep(0.05)

    async def list(self) -> Reply:
        return await self.cluster.request(Call("list", "GET", self.path, query=(("limit", "500"),)))

    async def create(self, name: str, **fields: Any) -> dict[str, Any]:
        body = {"apiVersion": self.api, "kind": "Goal", "metadata": {"name": name}, **fields}
        reply = await self.cluster.request(Call("create", "POST", self.path, body=body))
        assert reply.status == 201
        return reply.body

    async def patch_status(self, name: str, *, uid: str, status: Any) -> Reply:
        body = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        path = f"{self.path}/{name}/status"
        return await self.cluster.request(
            Call("patch", "PATCH", path, body=body, content_type=JSON_PATCH, accept=PARTIAL)
        )

    def watch(self, version: str, *, seconds: int = 60) -> Call:
        query = (("watch", "1"), ("resourceVersion", version), ("timeoutSeconds", str(seconds)))
        return Call("watch", "GET", self.path, query=query, timeout=30)


@pytest.fixture(scope="module")
def kind(running_sandbox: Sandbox) -> str:
    """A group with a kind, for all tests: after its definition the server lets the first create wait for 2 s."""
    group = f"t{secrets.token_hex(3)}.example.com"

    async def define() -> None:
        made = KubeCluster(running_sandbox.kubeconfig("cloud"))
        await Goals(made, group).define(group)
        await Goals(made, group).create("first")
        await made.close()

    asyncio.run(define())
    return group


@pytest.fixture
async def cluster(cloud_link: Link, tmp_path: Path) -> AsyncIterator[KubeCluster]:
    config = cloud_link.kubeconfig(tmp_path / "cloud.kubeconfig")
    made = KubeCluster(config)
    yield made
    await made.close()


@pytest.fixture
async def goals(cluster: KubeCluster, kind: str) -> Goals:
    """No object is left of other tests."""
    made = Goals(cluster, kind)
    gone = await cluster.request(Call("deletecollection", "DELETE", made.path))
    assert gone.status == 200
    return made


async def test_a_status_patch_answers_with_metadata_only_and_says_what_it_refuses(goals: Goals) -> None:
    uid = (await goals.create("a"))["metadata"]["uid"]
    done = await goals.patch_status("a", uid=uid, status={"n": 1})
    assert (done.status, done.body["kind"]) == (200, "PartialObjectMetadata")
    assert "status" not in done.body
    other = await goals.patch_status("a", uid="another", status={"n": 1})
    assert (other.status, other.body["reason"], other.body["details"]) == (422, "Invalid", {})
    both = await goals.patch_status("a", uid="another", status={"n": "text"})
    assert both.body == other.body
    for wrong in ("text", 11):
        invalid = await goals.patch_status("a", uid=uid, status={"n": wrong})
        assert (invalid.status, invalid.body["reason"]) == (422, "Invalid")
        assert invalid.body["details"]["causes"][0]["field"] == "status.n"
    assert (await goals.patch_status("none", uid=uid, status={})).status == 404


async def test_a_body_beyond_the_servers_limit_is_answered_although_it_is_never_read(
    cloud: Plane, goals: Goals, kind: str, tmp_path: Path
) -> None:
    uid = (await goals.create("a"))["metadata"]["uid"]
    direct = KubeCluster(cloud.kubeconfig(tmp_path / "direct"))
    for _ in range(5):
        reply = await Goals(direct, kind).patch_status("a", uid=uid, status={"t": "x" * 3_500_000})
        assert (reply.status, reply.body["reason"]) == (413, "RequestEntityTooLarge")
    await direct.close()


async def test_a_kind_that_is_not_served_is_a_404_in_plain_text(cluster: KubeCluster) -> None:
    reply = await cluster.request(Call("list", "GET", "/apis/nowhere.example.com/v1/goals"))
    assert (reply.status, reply.body, reply.text) == (404, {}, "404 page not found\n")


async def test_a_watch_delivers_events_and_ends_cleanly_at_its_time(goals: Goals) -> None:
    version = (await goals.list()).body["metadata"]["resourceVersion"]
    await goals.create("a")
    await goals.create("b")
    async with goals.cluster.watch(goals.watch(version), read_timeout=30) as stream:
        async for line in stream.lines():
            if json.loads(line)["object"]["metadata"]["name"] == "b":
                break  # from here on the server tells of both at once
    async with goals.cluster.watch(goals.watch(version, seconds=3), read_timeout=30) as stream:
        events = [json.loads(line) async for line in stream.lines()]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


async def test_too_old_a_version_is_an_error_line_in_a_stream_of_status_200(goals: Goals) -> None:
    async with goals.cluster.watch(goals.watch("1", seconds=5), read_timeout=30) as stream:
        assert stream.status == 200
        (line,) = [line async for line in stream.lines()]
    event = json.loads(line)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_cut_link_ends_the_watch_and_refuses_requests(goals: Goals, cloud_link: Link) -> None:
    version = (await goals.list()).body["metadata"]["resourceVersion"]
    async with goals.cluster.watch(goals.watch(version), read_timeout=30) as stream:
        await goals.create("a")
        lines = stream.lines()
        assert json.loads(await anext(lines))["type"] == "ADDED"
        cloud_link.cut()
        with pytest.raises(Unsure):
            await anext(lines)
        with pytest.raises(Unsure, match="connection re"):
            await goals.list()
    cloud_link.restore()
    assert (await goals.list()).status == 200


async def test_a_link_that_falls_silent_is_noticed_at_the_read_timeout(goals: Goals, cloud_link: Link) -> None:
    version = (await goals.list()).body["metadata"]["resourceVersion"]
    async with goals.cluster.watch(goals.watch(version), read_timeout=4) as stream:
        cloud_link.half_open()
        with pytest.raises(Unsure, match=r"nothing came for 4 s"):
            await anext(stream.lines())
    with pytest.raises(Unsure, match=r"no answer within 0\.3 s"):
        await goals.cluster.request(Call("get", "GET", "/readyz", timeout=0.3))


async def test_a_line_cut_by_the_link_is_no_event(goals: Goals, cloud_link: Link) -> None:
    version = (await goals.list()).body["metadata"]["resourceVersion"]
    await goals.create("a")
    cloud_link.truncate("watch=1", 100)
    with pytest.raises(Unsure, match="cut"):
        await _events(goals, version)


async def _events(goals: Goals, version: str) -> list[bytes]:
    async with goals.cluster.watch(goals.watch(version), read_timeout=30) as stream:
        return [line async for line in stream.lines()]


async def test_a_lost_reply_to_a_write_is_unsure_and_the_write_is_not_repeated(goals: Goals, cloud_link: Link) -> None:
    created = await goals.create("a")
    cloud_link.clear()
    cloud_link.stall("goals/a", method="DELETE", after_request=True, hang_up=True)
    with pytest.raises(Unsure):
        await goals.cluster.request(Call("delete", "DELETE", f"{goals.path}/a", body={"kind": "DeleteOptions"}))
    assert [request.method for request in cloud_link.requests] == ["DELETE"]
    cloud_link.heal()
    gone = await goals.cluster.request(Call("get", "GET", f"{goals.path}/{created['metadata']['name']}"))
    assert gone.status == 404


async def test_the_counted_bytes_are_those_on_the_wire(cloud_link: Link, tmp_path: Path) -> None:
    seen: list[Exchange] = []
    config = cloud_link.kubeconfig(tmp_path / "config")
    cluster = KubeCluster(config, observe=seen.append)
    cloud_link.clear()
    for _ in range(5):
        await cluster.request(Call("list", "GET", "/api/v1/namespaces"))
    up, down = (sum(getattr(exchange, name) for exchange in seen) for name in ("bytes_up", "bytes_down"))
    assert (up, down) == (cloud_link.bytes_up, cloud_link.bytes_down)
    await cluster.close()


async def test_a_refused_token_recovers_with_its_file(cloud: Plane, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("refused")
    config = cloud.kubeconfig(tmp_path / "config", token_file=token)
    cluster = KubeCluster(config)
    call = Call("list", "GET", "/api/v1/namespaces")
    assert (await cluster.request(call)).status == 401
    token.write_text(cloud.admin_token)
    assert (await cluster.request(call)).status == 200
    await cluster.close()


async def test_the_plane_of_another_ca_is_refused(cloud: Plane, robot: Plane, tmp_path: Path) -> None:
    async with Link(cloud, impostor=robot) as link:
        cluster = KubeCluster(link.kubeconfig(tmp_path / "config"))
        with pytest.raises(Unsure, match="not signed by a CA"):
            await cluster.request(Call("get", "GET", "/readyz"))
        assert link.requests == []
        await cluster.close()


def test_every_socket_notices_a_peer_that_vanished() -> None:
    made = open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1)), meter=Meter())
    options = [
        made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        *(
            made.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
            for name in ("NODELAY", "KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
        ),
    ]
    assert options == [1, 1, 30, 10, 3, 45_000]
    made.close()


async def test_lists_take_a_fraction_of_the_line_in_gzip(goals: Goals, cloud_link: Link) -> None:
    for number in range(60):
        await goals.create(f"g{number}", status={})
    big = {"t": "x" * 4000}
    for reply in (await goals.list()).body["items"]:
        done = await goals.patch_status(reply["metadata"]["name"], uid=reply["metadata"]["uid"], status=big)
        assert done.status == 200
    cloud_link.clear()
    assert len((await goals.list()).body["items"]) == 60
    assert cloud_link.bytes_down < 60 * 4000 / 4
