"""`crsyncer door drain`: the streams of a HAProxy that is to be stopped end one after the other."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.door.domain.haproxy_answers import Stream
from crsyncer.door.domain.upkeep_plan import turn
from crsyncer.door.draining import drain
from tests.delivery.command_line import crsyncer
from tests.door.shop import Shop, open_shop

ROBOTS = 30
SECONDS = 3.0


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path, robots=ROBOTS) as shop:
        yield shop


async def test_G6_the_streams_of_a_door_that_closes_end_spread_out_and_nobody_new_comes_in(shop: Shop):
    for number in range(ROBOTS):
        await shop.watch(number)
    began = asyncio.get_running_loop().time()
    assert await drain(shop.socket, grace=0, seconds=SECONDS) == ROBOTS
    await asyncio.wait(shop.watching)
    after = sorted(each - began for each in shop.ended)
    assert len(after) == ROBOTS
    # A round is half a second, and ends its share of the streams: a sixth of them.
    for number, each in enumerate(after):
        assert each >= (number // (ROBOTS / 6)) * 0.5 - 0.01, after
    with pytest.raises(OSError):
        await shop.connect()


async def test_G6_the_command_says_how_many_ended_and_a_door_without_streams_is_drained_at_once(shop: Shop):
    await shop.watch(1)
    flags = ("--directory", shop.directory, "--socket", shop.home / "master.sock", "--seconds", "0.5")
    done = await asyncio.to_thread(crsyncer, "door", "drain", *flags)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended 1 stream\n", "")
    done = await asyncio.to_thread(crsyncer, "door", "drain", *flags[:-1], "3600")
    assert (done.returncode, done.stdout) == (0, "ended 0 streams\n")


async def test_haproxys_own_metrics_are_on_a_port_of_their_own_and_not_where_robots_are(shop: Shop):
    def asked(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{shop.metrics_port}{path}", timeout=30) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""

    status, metrics = await asyncio.to_thread(asked, "/metrics")
    assert status == 200
    assert 'haproxy_server_status{proxy="shard-root",server="root",state="UP"} 1' in metrics
    assert "robot-r1" not in metrics
    assert await asyncio.to_thread(asked, "/") == (404, "")
    reader, writer = await shop.connect()
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: door\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_a_door_whose_haproxy_is_away_cannot_be_drained(tmp_path: Path):
    flags = ("--directory", tmp_path, "--socket", tmp_path / "none.sock")
    done = await asyncio.to_thread(crsyncer, "door", "drain", *flags)
    line, _hint = done.stderr.splitlines()
    assert (done.returncode, line) == (
        1,
        f"crsyncer: HAProxy does not answer at {tmp_path / 'none.sock'} (no such file or directory)",
    )


@given(number=st.integers(0, 300), rounds=st.integers(1, 60), back=st.integers(0, 5))
def test_G6_each_round_ends_an_equal_share_and_who_comes_back_waits_for_the_others(number: int, rounds: int, back: int):
    present = [Stream(f"robot-r{each}", "root", f"h:{each}") for each in range(number)]
    first, known = set(present), list[Stream]()
    ended: list[Stream] = []
    for left in range(rounds, 0, -1):
        now, known = turn(known, present, left)
        assert len(now) <= -(-len(present) // left)
        ended += now
        again = [Stream(each.namespace, "root", f"h:{left}-{index}") for index, each in enumerate(now[:back])]
        present = [each for each in present if each not in now] + (again if left > 1 else [])
    assert present == []
    firsts = [each in first for each in ended]
    assert firsts == sorted(firsts, reverse=True)
    assert sum(firsts) == number
