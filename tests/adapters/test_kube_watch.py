"""Watches of an API server that misbehaves, over real sockets and TLS."""

import asyncio
import contextlib
import gzip
import json
from typing import Any

import pytest

from crsyncer.adapters.kube import KubeCluster
from crsyncer.adapters.kube.stream import MAX_LINE
from crsyncer.core.requests.calls import Call
from crsyncer.errors import Unsure
from tests.adapters.kube_server import (
    GET,
    STREAM,
    Reach,
    Request,
    always,
    answer,
    chunk,
    once,
)

WATCH = Call("watch", "GET", "/apis/g.example.com/v1/goals", query=(("watch", "1"),), timeout=30)


async def lines(cluster: KubeCluster, *, read_timeout: float = 30) -> list[bytes]:
    async with cluster.watch(WATCH, read_timeout=read_timeout) as stream:
        assert stream.status == 200
        return [line async for line in stream.lines()]


EVENTS = [
    json.dumps({"type": "ADDED", "object": {"n": n, "text": "ü" * n}}, ensure_ascii=False).encode() for n in range(4)
]
BODY = b"".join(line + b"\n" for line in EVENTS)


@pytest.mark.fault_40
@pytest.mark.parametrize("size", [1, 2, 7, 64, 4096])
async def test_lines_are_whole_wherever_the_chunks_end(reach: Reach, size: int) -> None:
    pieces = [chunk(BODY[at : at + size]) for at in range(0, len(BODY), size)]
    async with reach(always(STREAM, *pieces, chunk(b""))) as (cluster, server):
        assert await lines(cluster) == EVENTS
        assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.fault_40
async def test_a_split_at_every_byte_of_the_wire_changes_nothing(reach: Reach) -> None:
    wire = STREAM + chunk(BODY) + chunk(b"")
    async with reach(always(*(wire[at : at + 1] for at in range(len(wire))))) as (cluster, _):
        assert await lines(cluster) == EVENTS


@pytest.mark.fault_40
async def test_gzip_nobody_asked_for_is_unpacked_too(reach: Reach) -> None:
    packed = gzip.compress(BODY[:50]) + gzip.compress(BODY[50:])
    head = STREAM.replace(b"Content-Type", b"Content-Encoding: gzip\r\nContent-Type")
    pieces = [chunk(packed[at : at + 1]) for at in range(len(packed))]
    async with reach(always(head, *pieces, chunk(b""))) as (cluster, _):
        assert await lines(cluster) == EVENTS


@pytest.mark.fault_40
async def test_gzip_cut_anywhere_gives_whole_events_only(reach: Reach) -> None:
    packed = gzip.compress(BODY[:50]) + gzip.compress(BODY[50:])
    head = STREAM.replace(b"Content-Type", b"Content-Encoding: gzip\r\nContent-Type")
    sent = iter(range(len(packed)))

    async def handler(request: Request, writer: Any) -> None:
        cut = next(sent)
        # By turns a stream that breaks off, and one that ends as if it were whole.
        writer.write(head + chunk(packed[:cut] or b"\0") + (chunk(b"") if cut % 2 else b""))
        await writer.drain()
        writer.close()

    async with reach(handler) as (cluster, _):
        seen = [await received(cluster) for _ in packed]
    assert all(found == EVENTS[: len(found)] for found in seen)
    assert {len(found) for found in seen} >= {0, 1, 2, 3}


async def received(cluster: KubeCluster) -> list[bytes]:
    """The lines that came, however the stream ended."""
    found: list[bytes] = []
    with contextlib.suppress(Unsure):
        async with cluster.watch(WATCH, read_timeout=30) as stream:
            async for line in stream.lines():
                found += [line]
    return found


async def test_a_line_is_handed_out_before_the_next_one_is_there(reach: Reach) -> None:
    more = asyncio.Event()

    async def handler(request: Request, writer: Any) -> None:
        writer.write(STREAM + chunk(EVENTS[0] + b"\n" + EVENTS[1][:9]))
        await more.wait()
        writer.write(chunk(EVENTS[1][9:] + b"\n") + chunk(b""))

    async with reach(handler) as (cluster, _), cluster.watch(WATCH, read_timeout=30) as stream:
        found = stream.lines()
        assert await anext(found) == EVENTS[0]
        more.set()
        assert [line async for line in found] == EVENTS[1:2]


async def collect(cluster: KubeCluster, *, read_timeout: float = 30) -> tuple[list[bytes], str]:
    """The lines that came before the stream failed, and why it did."""
    found: list[bytes] = []
    try:
        async with cluster.watch(WATCH, read_timeout=read_timeout) as stream:
            async for line in stream.lines():
                found += [line]
    except Unsure as error:
        return found, str(error)
    raise AssertionError(f"a clean end after {found}")


async def test_a_cut_stream_gives_its_whole_lines_and_then_fails(reach: Reach) -> None:
    async with reach(once(STREAM + chunk(BODY))) as (cluster, _):
        assert await collect(cluster) == (EVENTS, "the answer was cut off or garbled")
    async with reach(always(STREAM, chunk(BODY[:-5]), chunk(b""))) as (cluster, _):
        assert await collect(cluster) == (EVENTS[:-1], "the watch was cut in the middle of a line")


async def test_a_silent_stream_fails_after_the_read_timeout(reach: Reach) -> None:
    async with reach(always(STREAM, chunk(BODY))) as (cluster, _):
        assert await collect(cluster, read_timeout=4) == (EVENTS, "nothing came for 4 s")
    async with reach(always(b"")) as (cluster, _):
        with pytest.raises(Unsure, match=r"no answer within 0\.2 s"):
            async with cluster.watch(Call("watch", "GET", "/x", timeout=0.2), read_timeout=5):
                pass


async def test_a_line_may_have_4_mib_and_not_one_byte_more(reach: Reach) -> None:
    longest = b"x" * MAX_LINE
    async with reach(always(STREAM, chunk(longest + b"\n" + EVENTS[0] + b"\n"), chunk(b""))) as (cluster, _):
        assert await lines(cluster) == [longest, EVENTS[0]]
    async with reach(always(STREAM, chunk(EVENTS[0] + b"\n" + longest + b"x\n"), chunk(b""))) as (cluster, _):
        assert await collect(cluster) == ([EVENTS[0]], "a watch line is longer than 4 MiB")


@pytest.mark.fault_39
async def test_an_endless_line_is_given_up_at_4_mib(reach: Reach) -> None:
    sent = 0

    async def handler(request: Request, writer: Any) -> None:
        nonlocal sent
        writer.write(STREAM)
        while sent < 4 * MAX_LINE:
            writer.write(chunk(b"x" * 65536))
            await writer.drain()
            # A TLS transport whose socket broke in a write does not call itself closing, so `drain` returns at once:
            # without this turn the loop never learns of the loss.
            await asyncio.sleep(0)
            sent += 65536

    async with reach(handler) as (cluster, _):
        assert await collect(cluster) == ([], "a watch line is longer than 4 MiB")
    assert sent < 4 * MAX_LINE


async def test_a_refused_watch_hands_over_the_whole_answer(reach: Reach) -> None:
    gone = answer(b'{"code":410}', status="410 Gone", headers=("Retry-After: 3",))
    async with reach(always(gone)) as (cluster, _), cluster.watch(WATCH, read_timeout=30) as stream:
        assert (stream.status, stream.reply and stream.reply.body) == (410, {"code": 410})
        assert stream.reply is not None
        assert stream.reply.retry_after == 3
        assert [line async for line in stream.lines()] == []


async def test_watches_do_not_take_the_places_of_requests(reach: Reach) -> None:
    async def handler(request: Request, writer: Any) -> None:
        writer.write(STREAM + chunk(b"{}\n") if "watch=1" in request.line else answer())

    leave = asyncio.Event()

    async def watch(cluster: KubeCluster) -> None:
        async with cluster.watch(WATCH, read_timeout=30) as stream:
            await anext(stream.lines())
            await leave.wait()

    async with reach(handler) as (cluster, _), asyncio.TaskGroup() as group:
        for _ in range(80):
            group.create_task(watch(cluster))
        replies = await asyncio.gather(*(cluster.request(GET) for _ in range(80)))
        assert {reply.status for reply in replies} == {200}
        leave.set()


async def test_closing_ends_an_open_watch(reach: Reach) -> None:
    async with (
        reach(always(STREAM, chunk(BODY))) as (cluster, _),
        asyncio.timeout(30),
        cluster.watch(WATCH, read_timeout=60) as stream,
    ):
        found = stream.lines()
        assert [await anext(found) for _ in EVENTS] == EVENTS
        waiting = asyncio.ensure_future(anext(found))
        await asyncio.sleep(0)
        await cluster.close()
        with pytest.raises(Unsure):
            await waiting
        with pytest.raises(Unsure):
            await anext(stream.lines())
