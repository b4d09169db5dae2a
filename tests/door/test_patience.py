"""Where the door or a shard asks for patience, an agent asks again on the connection that it has."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crsyncer.adapters.kube import KubeCluster
from crsyncer.core.requests.calls import Call
from tests.adapters.kube_server import answer, connected
from tests.door.shop import Shop, open_shop

VERSION = Call("get", "GET", "/version")
WATCH = Call("watch", "GET", "/watch")
BUSY = Call("get", "GET", "/busy")


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path, robots=1) as shop:
        shop.answers["/version"] = answer()
        yield shop


async def refused(cluster: KubeCluster, call: Call, *, status: int) -> None:
    """Be refused three times by a request, and three times by a watch."""
    for _ in range(3):
        assert (await cluster.request(call)).status == status
        async with cluster.watch(call, read_timeout=30) as stream:
            assert stream.status == status


@pytest.mark.parametrize("status", [429, 503])
async def test_G6_an_agent_that_its_shard_refuses_keeps_its_connection(shop: Shop, status: int):
    shop.answers["/busy"] = answer(
        status=f"{status} Busy", headers=("Content-Type: application/json", "Retry-After: 1")
    )
    async with connected(shop.kubeconfig("r0")) as cluster:
        await cluster.request(VERSION)
        before = await shop.connections()
        await refused(cluster, BUSY, status=status)
        await cluster.request(VERSION)
        assert await shop.connections() == before


async def test_G6_an_agent_with_too_many_requests_in_progress_keeps_its_connection(shop: Shop):
    async with connected(shop.kubeconfig("r0")) as cluster, AsyncExitStack() as watches:
        for _ in range(32):
            await watches.enter_async_context(cluster.watch(WATCH, read_timeout=30))
        before = await shop.connections()
        await refused(cluster, VERSION, status=429)
        assert await shop.connections() == before + 1


async def test_G4_2_an_agent_whose_robot_is_at_no_shard_keeps_its_connection(shop: Shop):
    async with connected(shop.kubeconfig("unknown")) as cluster:
        await refused(cluster, VERSION, status=503)
        assert await shop.connections() == 1
