"""The link that fails on command does so, between a client and a real plane."""

import asyncio
import errno
import http.client
import socket
import ssl
import sys
import time

import aiohttp
import pytest
import yaml

from crsyncer.errors import SyncError
from crsyncer.sandbox.resource import CONFIG_MAP
from tests.api import Api, ApiError
from tests.link.http1 import Body
from tests.link.link import Link
from tests.link.wire import connect

GONE = (aiohttp.ClientError, ConnectionError)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def through(link: Link, token: str | None = None) -> Api:
    return Api(link.server, ca_file=link.plane.ca_file, token=token or link.plane.admin_token)


async def until(condition, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


async def test_a_link_shows_requests_and_counts_bytes(cloud_link, cloud_api):
    async with through(cloud_link) as api:
        made = await api.create(CONFIG_MAP.object("seen", data={"x": "1"}))
        await api.list(CONFIG_MAP, namespace="default", limit="1")
    create, listing = cloud_link.requests
    assert (create.method, create.path, create.status, create.done) == ("POST", CONFIG_MAPS, 201, True)
    assert b'"x": "1"' in create.body
    assert (listing.query, listing.user_agent) == ("limit=1", "crsyncer-sandbox")
    assert cloud_link.bytes_up > create.bytes_in + listing.bytes_in
    assert cloud_link.bytes_down > create.bytes_out + listing.bytes_out > 0
    assert cloud_link.connects == 1
    await until(lambda: cloud_link.connections == 0)
    cloud_link.clear()
    assert (cloud_link.requests, cloud_link.bytes_up, cloud_link.bytes_down, cloud_link.connects) == ([], 0, 0, 0)
    await cloud_api.delete(made)


async def test_a_link_goes_on_while_the_test_blocks_its_own_event_loop(cloud_link):
    context = ssl.create_default_context(cafile=str(cloud_link.plane.ca_file))
    client = http.client.HTTPSConnection("127.0.0.1", cloud_link.port, timeout=30, context=context)
    client.request("GET", "/readyz", headers={"Authorization": f"Bearer {cloud_link.plane.admin_token}"})
    assert client.getresponse().status == 200
    client.close()


async def test_a_plain_link_relays_without_looking(robot, tmp_path):
    async with Link(robot, http=False) as link, through(link) as api:
        assert (await api.request("GET", CONFIG_MAPS))[0] == 200
        assert link.bytes_up > 0
        assert link.requests == []
        with pytest.raises(SyncError, match="only relays"):
            link.inject("/", status=500)
        config = yaml.safe_load(link.kubeconfig(tmp_path / "config", token="another").read_text())
        assert config["clusters"][0]["cluster"]["server"] == link.server


async def test_watch_events_pass_a_link_at_once(cloud_link, cloud_api):
    async with through(cloud_link) as api:
        since = (await api.list(CONFIG_MAP))["metadata"]["resourceVersion"]
        events = api.watch(CONFIG_MAP, namespace="default", since=since)
        for each in range(3):
            made = await cloud_api.create(CONFIG_MAP.object(f"event-{each}"))
            async with asyncio.timeout(30):  # nothing comes after it that could push it
                assert (await anext(events))[0] == "ADDED"
            await cloud_api.delete(made)
            assert (await anext(events))[0] == "DELETED"
        await events.aclose()


@pytest.mark.parametrize("http", [True, False])
async def test_a_cut_resets_and_refuses_and_restore_brings_it_back_at_the_same_address(cloud, http):
    async with Link(cloud, http=http) as link, through(link) as api:
        since = (await api.list(CONFIG_MAP))["metadata"]["resourceVersion"]
        watch = asyncio.ensure_future(anext(api.watch(CONFIG_MAP, since=since)))
        await until(lambda: link.bytes_down > 0 and link.connections > 0)
        link.cut()
        with pytest.raises(GONE):
            await watch
        with pytest.raises(aiohttp.ClientConnectorError):
            await api.request("GET", CONFIG_MAPS)
        assert link.connections == 0
        link.restore()
        assert (await api.request("GET", CONFIG_MAPS))[0] == 200


@pytest.mark.parametrize("http", [True, False])
async def test_a_half_open_link_is_silent_and_not_even_acknowledged(cloud, http):
    async with Link(cloud, http=http) as link, through(link) as api:
        assert (await api.request("GET", CONFIG_MAPS))[0] == 200
        link.half_open()
        with pytest.raises(TimeoutError):  # on the old connection
            await api.request("GET", CONFIG_MAPS, timeout=0.3)
        with pytest.raises(TimeoutError):  # a new one is neither accepted nor refused
            await api.request("GET", CONFIG_MAPS, timeout=0.3)
        assert link.connections == 1
        link.restore()
        assert link.connections == 0
        assert (await api.request("GET", CONFIG_MAPS))[0] == 200


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel goes on acknowledging")
async def test_the_kernel_of_a_client_notices_a_half_open_link(cloud):
    loop = asyncio.get_running_loop()
    async with Link(cloud, http=False) as link:
        client = await connect(int(link.server.rpartition(":")[2]))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
        await until(lambda: link.connections == 1)
        link.half_open()
        await loop.sock_sendall(client, b"into the void")
        with pytest.raises(TimeoutError) as noticed:
            await asyncio.wait_for(loop.sock_recv(client, 1), 30)
        assert noticed.value.errno == errno.ETIMEDOUT  # told by the kernel, not by wait_for
        client.close()


async def test_a_delay_is_on_every_byte_and_throttling_on_the_rate(cloud_link):
    async with through(cloud_link) as api:
        await api.request("GET", CONFIG_MAPS)
        cloud_link.delay(0.2)
        started = time.monotonic()
        await api.request("GET", CONFIG_MAPS)
        assert time.monotonic() - started >= 0.4
    cloud_link.heal()
    async with through(cloud_link) as api:
        await api.request("GET", "/api/v1")
        cloud_link.clear()
        cloud_link.throttle(20_000)
        started = time.monotonic()
        await api.request("GET", "/api/v1")
        assert time.monotonic() - started > 0.9 * cloud_link.bytes_down / 20_000


async def test_an_injected_answer_hits_what_it_names_as_often_as_it_says(cloud_link):
    async with through(cloud_link) as api:
        busy = cloud_link.inject("/configmaps", status=429, headers={"Retry-After": "30"}, body=b"busy", times=2)
        never = cloud_link.inject("/configmaps", method="PUT", status=500)
        secret = cloud_link.inject("/secrets", status=403, body={"kind": "Status", "reason": "Forbidden"})
        for status in (429, 429, 200):
            assert (await api.request("GET", CONFIG_MAPS))[0] == status
        assert (busy.count, never.count) == (2, 0)
        assert await api.request("GET", "/api/v1/secrets") == (403, {"kind": "Status", "reason": "Forbidden"})
        secret.remove()
        assert (await api.request("GET", "/api/v1/secrets"))[0] == 200
        old = cloud_link.inject(".", status=401, when=lambda asked: "Bearer new" not in asked.headers["authorization"])
        assert (await api.request("GET", CONFIG_MAPS))[0] == 401
        assert (await api.request("GET", CONFIG_MAPS, headers={"Authorization": "Bearer new"}))[0] == 401
        assert (old.count, cloud_link.connects) == (1, 1)


async def test_a_lost_reply_leaves_the_write_done(cloud_link, cloud_api):
    async with through(cloud_link) as api:
        dropped = cloud_link.stall("/configmaps", method="POST", times=1, after_request=True, hang_up=True)
        with pytest.raises(GONE):
            await api.create(CONFIG_MAP.object("written"))
        cloud_link.inject("/configmaps", method="POST", status=504, times=1, after_request=True)
        with pytest.raises(ApiError):
            await api.create(CONFIG_MAP.object("written-too"))
        cloud_link.stall("/configmaps", method="POST", times=1, hang_up=True)
        with pytest.raises(GONE):
            await api.create(CONFIG_MAP.object("not-written"))
    assert dropped.count == 1
    await cloud_api.delete(CONFIG_MAP.object("written"))
    await cloud_api.delete(CONFIG_MAP.object("written-too"))
    assert await cloud_api.find(CONFIG_MAP.object("not-written")) is None


async def test_a_stalled_request_gets_no_answer_and_others_do(cloud_link, cloud_api):
    async with through(cloud_link) as api:
        after = cloud_link.stall("/configmaps/stalled", method="DELETE", after_request=True)
        before = cloud_link.stall("/configmaps", method="POST")
        await cloud_api.create(CONFIG_MAP.object("stalled"))
        deleting = asyncio.ensure_future(api.request("DELETE", f"{CONFIG_MAPS}/stalled"))
        async with asyncio.timeout(30):
            while await cloud_api.find(CONFIG_MAP.object("stalled")) is not None:  # noqa: ASYNC110 - it is on its way
                await asyncio.sleep(0.02)
        await until(lambda: after.count == 1)
        assert not deleting.done()
        waiting = asyncio.ensure_future(api.create(CONFIG_MAP.object("never")))
        await until(lambda: before.count == 1)
        assert (await api.request("GET", CONFIG_MAPS))[0] == 200
        before.remove()
        with pytest.raises(GONE):
            await waiting
        assert await cloud_api.find(CONFIG_MAP.object("never")) is None
        deleting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await deleting


async def test_an_answer_is_cut_in_the_middle_once(cloud_link, cloud_api):
    made = await cloud_api.create(CONFIG_MAP.object("long", data={"x": "y" * 5000}))
    async with through(cloud_link) as api:
        cloud_link.truncate("/configmaps/long", 1000)
        with pytest.raises(aiohttp.ClientPayloadError):
            await api.get(made)
        assert cloud_link.requests[-1].status == 200
        assert (await api.get(made))["data"] == made["data"]
        since = str(int(made["metadata"]["resourceVersion"]) - 1)
        cloud_link.truncate("watch=true", 1000)  # a line without its end
        with pytest.raises(aiohttp.ClientPayloadError):
            await anext(api.watch(CONFIG_MAP, namespace="default", since=since))
    await cloud_api.delete(made)


async def test_a_link_follows_its_plane_down_and_up(robot, robot_link):
    async with through(robot_link) as api:
        since = (await api.list(CONFIG_MAP))["metadata"]["resourceVersion"]
        watch = asyncio.ensure_future(anext(api.watch(CONFIG_MAP, since=since)))
        await until(lambda: len(robot_link.requests) == 2 and robot_link.requests[1].status == 200)
        robot.stop("apiserver", graceful=False)
        with pytest.raises((*GONE, StopAsyncIteration)):
            await asyncio.wait_for(watch, 30)
        with pytest.raises(GONE):
            await api.request("GET", CONFIG_MAPS)
        robot.start()
        assert (await api.request("GET", CONFIG_MAPS))[0] == 200


async def test_a_client_that_leaves_frees_its_watch_on_the_plane(cloud_link):
    async with through(cloud_link) as api:
        since = (await api.list(CONFIG_MAP))["metadata"]["resourceVersion"]
        watch = asyncio.ensure_future(anext(api.watch(CONFIG_MAP, since=since)))
        await until(lambda: len(cloud_link.requests) == 2 and cloud_link.requests[1].status == 200)
        watch.cancel()
    await until(lambda: cloud_link.requests[1].done and cloud_link.connections == 0)


async def test_an_impostor_is_refused_by_the_certificate(cloud, robot):
    async with Link(cloud, impostor=robot) as link, through(link) as api:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await api.request("GET", CONFIG_MAPS)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_the_end_of_a_chunked_body_is_found_at_any_cut(step):
    message = b"5;x=y\r\nhello\r\nA\r\n0\r\n\r\n56789\r\n0\r\nTrailer: 1\r\n\r\n"
    stream, body, length = message + b"HTTP/1.1 200", Body({"transfer-encoding": "chunked"}), 0
    for start in range(0, len(stream), step):
        length += body.feed(stream[start : start + step])
    assert (body.done, length) == (True, len(message))
