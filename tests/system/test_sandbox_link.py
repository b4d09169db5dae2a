"""The link that fails on command does so, between a client and a real plane."""

import asyncio

import aiohttp
import pytest

from crsyncer.sandbox.resource import CONFIG_MAP
from tests.api import Api, ApiError
from tests.link.link import Link

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
