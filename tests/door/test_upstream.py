"""What HAProxy makes of its connections to a shard: each costs both ends more than the request that goes over it."""

import asyncio
import re
from pathlib import Path

from crsyncer.core.requests.calls import Call
from crsyncer.door.domain.haproxy_template import CONFIGURATION
from tests.adapters.kube_server import answer, connected
from tests.door.shop import open_shop
from tests.link.wire import drop_packets

VERSION = Call("get", "GET", "/version")
ROBOTS = 100
FILES = 600
"""More than a third of them are taken by the watches."""


async def test_G9_a_robot_needs_one_connection_to_its_shard_however_many_others_watch(tmp_path: Path):
    async with open_shop(tmp_path, robots=ROBOTS + 1, files=FILES) as shop:
        shop.answers["/version"] = answer()
        for number in range(ROBOTS):
            await shop.watch(number)
        before = len(shop.upstreams)
        async with connected(shop.kubeconfig(f"r{ROBOTS}")) as cluster:
            for _ in range(10):
                await cluster.request(VERSION)
        assert len(shop.upstreams) == before + 1


async def test_G5_2_a_shard_whose_machine_has_vanished_loses_its_streams_without_the_upkeep(tmp_path: Path):
    async with open_shop(tmp_path, robots=1) as shop:
        configuration = shop.directory / CONFIGURATION
        soon, number = re.subn(r"(srvtcpka-(idle|intvl)) \d+s", r"\1 1s", configuration.read_text())
        assert number == 2
        configuration.write_text(soon)
        await shop.socket.reload()
        await shop.watch(0)
        for each in shop.upstreams:
            drop_packets(each.get_extra_info("socket"))
        await asyncio.wait_for(asyncio.gather(*shop.watching), timeout=30)
