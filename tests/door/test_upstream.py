"""What HAProxy makes of its connections to a shard: each costs both ends more than the request that goes over it."""

from pathlib import Path

from crsyncer.core.requests.calls import Call
from tests.adapters.kube_server import answer, connected
from tests.door.shop import open_shop

VERSION = Call("get", "GET", "/version")
ROBOTS = 100
FILES = 600
"""More than a third of them are taken by the watches."""


async def test_G9_a_robot_needs_one_connection_to_its_shard_however_many_others_watch(tmp_path: Path):
    async with open_shop(tmp_path, robots=ROBOTS + 1, files=FILES) as shop:
        shop.answers["/version"] = answer()
        for number in range(ROBOTS):
            await shop.watch(number)
        before = shop.upstream
        async with connected(shop.kubeconfig(f"r{ROBOTS}")) as cluster:
            for _ in range(10):
                await cluster.request(VERSION)
        assert shop.upstream == before + 1
