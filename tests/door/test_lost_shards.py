"""Which API servers have lost their robots: those that give no answer, and not those that are slow (G5.1)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until, until_async
from crsyncer.door.asking_shards import ask_shards
from crsyncer.door.domain.lost_shards import Losses, Silence
from crsyncer.door.upkeep import Upkeep
from crsyncer.sandbox.free_ports import free_ports
from tests import planes
from tests.adapters.kube_server import (
    Handler,
    HostileServer,
    Request,
    always,
    answer,
    connected,
    hostile,
    make_certificates,
    once,
    write_config,
)
from tests.door.conftest import Audited
from tests.door.kept_shards import PATIENCE, Shards
from tests.door.open_door import Kept
from tests.door.shop import open_shop
from tests.link.link import Link
from tests.system.confined import at

B, NONE = frozenset({"b"}), frozenset[str]()


@pytest.mark.parametrize(
    ("why", "rounds"),
    [
        ("all is well", [(NONE, NONE, NONE)]),
        ("it is short of CPU: handshakes are late, what is open goes on", [(B, NONE, NONE)]),
        ("only HAProxy reaches it", [(NONE, B, NONE)]),
        ("it stands still", [(NONE, B, NONE), (B, B, B), (B, B, B)]),
        ("it stands still, and HAProxy is the first to see it", [(B, NONE, NONE), (B, B, B)]),
        ("HAProxy finds it up again: what comes now stays", [(B, B, B), (NONE, B, NONE), (B, B, NONE)]),
        ("one loss follows another", [(B, B, B), (NONE, NONE, NONE), (B, B, B)]),
        ("it answers before HAProxy finds it up", [(B, B, B), (B, NONE, NONE), (B, B, B)]),
    ],
)
def test_G5_1_a_shard_is_lost_that_gives_no_answer_to_haproxy_nor_on_a_connection_that_is_open(why, rounds):
    losses = Losses()
    for down, silent, lost in rounds:
        assert losses.judge(down=down, silent=silent) == lost, why


def test_G5_1_each_shard_is_lost_for_itself():
    losses, a, both = Losses(), frozenset({"a"}), frozenset({"a", "b"})
    assert losses.judge(down=both, silent=B) == B
    assert losses.judge(down=a, silent=both) == a
    assert losses.judge(down=both, silent=both) == a


def test_G5_1_a_shard_is_silent_that_gave_no_answer_twice_in_a_row():
    silence = Silence()
    silence.missed("b")
    assert silence.shards == NONE
    silence.missed("b")
    assert silence.shards == B
    silence.answered("b")
    assert silence.shards == NONE
    silence.missed("b")
    silence.answered("b")
    silence.missed("b")
    assert silence.shards == NONE
    silence.missed("b", times=2)
    assert silence.shards == B


CALLS = 2


@pytest.mark.parametrize(
    "given",
    [
        answer(b"ok"),
        answer(b"no etcd", status="500 Internal Server Error"),
        answer(status="401 Unauthorized"),
        answer(status="403 Forbidden"),
        answer(status="302 Found", headers=("Location: https://localhost:9/",)),
    ],
)
async def test_G5_1_whatever_a_server_answers_on_one_connection_it_is_alive(given: bytes, tmp_path: Path):
    async with asking(tmp_path, always(given)) as (silence, server):
        silence.missed("b", times=2)
        assert await until_async(lambda: heard(silence), seconds=PATIENCE)
        assert await until_async(lambda: asked(server, CALLS), seconds=PATIENCE)
        assert server.connections == 1
        assert {each.line for each in server.requests} == {"GET /readyz HTTP/1.1"}
        assert not any("authorization" in each.headers for each in server.requests)
        assert silence.shards == NONE


async def test_G5_1_who_says_nothing_or_hangs_up_gives_no_answer(tmp_path: Path):
    async def nothing(_request: Request, _writer: asyncio.StreamWriter) -> None: ...

    for handler in (nothing, once(b""), once(b"garbage\r\n\r\n")):
        async with asking(tmp_path, handler) as (silence, _):
            assert await until_async(partial(unheard, silence), seconds=PATIENCE)


async def test_G5_1_who_cannot_be_reached_gives_no_answer(tmp_path: Path):
    issuer = make_certificates(tmp_path)
    path = write_config(tmp_path / "b", server=f"https://localhost:{free_ports(1)[0]}", ca=issuer.ca, user={})
    async with connected(path) as cluster:
        silence = Silence()
        task = asyncio.create_task(ask_shards({"b": cluster}, silence))
        assert await until_async(lambda: unheard(silence), seconds=PATIENCE)
        task.cancel()


@asynccontextmanager
async def asking(home: Path, handler: Handler) -> AsyncIterator[tuple[Silence, HostileServer]]:
    """A server that is asked whether it is alive."""
    issuer, silence = make_certificates(home), Silence()
    async with hostile(handler, pair=issuer.issue("server")) as server:
        path = write_config(home / "b", server=server.url, ca=issuer.ca, user={"token": "x"})
        async with connected(path) as cluster:
            task = asyncio.create_task(ask_shards({"b": cluster}, silence))
            yield silence, server
            task.cancel()


async def heard(silence: Silence) -> bool:
    return silence.shards == NONE


async def unheard(silence: Silence) -> bool:
    return silence.shards == B


async def asked(server: HostileServer, times: int) -> bool:
    return len(server.requests) >= times


ROBOTS = 300
FILES = 2000


async def test_G5_1_all_streams_at_a_lost_shard_end_and_those_that_come_when_it_is_up_again_stay(tmp_path: Path):
    async with open_shop(tmp_path, robots=ROBOTS, files=FILES) as shop:
        ended: list[int] = []
        silence, routes = Silence(), {f"robot-r{number}": "root" for number in range(ROBOTS)}
        upkeep = Upkeep(shop.socket, shop.directory, routes, silence=silence, wrote=lambda _: None, ended=ended.append)

        async def is_up(wanted: bool) -> bool:
            await upkeep.once()
            return upkeep.seen.shards_up.get("root") is wanted

        async def are_ended() -> bool:
            await upkeep.once()
            return len(shop.ended) == ROBOTS

        for number in range(ROBOTS):
            await shop.watch(number)
        shop.answers["/readyz"] = answer(status="500 Internal Server Error")
        assert await until_async(partial(is_up, False), seconds=PATIENCE)
        assert (ended, shop.ended) == ([], []), "it answers"
        silence.missed("root", times=2)
        assert await until_async(are_ended, seconds=PATIENCE)
        assert sum(ended) == ROBOTS
        del shop.answers["/readyz"]
        assert await until_async(partial(is_up, True), seconds=PATIENCE)
        await shop.watch(0)
        shop.answers["/readyz"] = answer(status="500 Internal Server Error")
        assert await until_async(partial(is_up, False), seconds=PATIENCE)
        await upkeep.once()
        assert (sum(ended), (await upkeep.at_shard("root"))["robots"]) == (ROBOTS, ["r0"]), "HAProxy found it up since"


@pytest.fixture
async def link(shard_b: Audited) -> AsyncIterator[Link]:
    async with Link(shard_b.plane, http=False) as link:
        yield link


@pytest.fixture
def shards(audited: Audited, shard_b: Audited, link: Link, tmp_path: Path) -> Iterator[Shards]:
    """The door reaches shard b over a link."""
    shards = Shards(tmp_path, audited, shard_b, b_server=link.server)
    try:
        shards.settle()
        yield shards
    finally:
        planes.resume(shard_b.plane)
        shards.close()


def test_G5_1_a_shard_with_late_handshakes_keeps_its_streams_and_one_that_stands_still_loses_them(
    shards: Shards, link: Link
):
    shards.place("r1", "b")
    shards.wait_reaches("r1", "b")
    old = shards.watch("r1", "b")
    shards.door.renew_certificate()
    assert until(shards.door.shows_certificate, seconds=PATIENCE), shards.kept.process.tail(20)
    watches = [old, shards.watch("r1", "b")]
    link.delay_new(30.0)
    assert until(lambda: "ShardDown" in (shards.kept.reasons() or ()), seconds=PATIENCE), shards.kept.page("/status")
    told = shards.door.ask(at("goals", "robot-r1"), shards.token("r1", "b"))
    assert (told.status, "retry-after: 10" in told.text.lower()) == (503, True)
    assert until(lambda: shards.kept.streams("b") == ["r1"], seconds=PATIENCE)
    name = shards.b.cloud.create("goals", "r1")["metadata"]["name"]
    assert [each.sees(f'"name":"{name}"') for each in watches] == [True, True]
    shards.kept.stop()
    planes.pause(shards.b.plane)
    shards.kept = Kept(shards.door)  # what it knew is in no file: it finds out again
    assert [each.ends() for each in watches] == [True, True]
    planes.resume(shards.b.plane)
    link.heal()
    shards.wait_reaches("r1", "b")
    shards.wait_reasons()
