"""TLS sessions that outlive their connections, with a server that keeps hanging up."""

import asyncio
import ssl
from pathlib import Path

import pytest

from crsyncer.adapters.kube import Exchange
from crsyncer.adapters.kube.tls import ResumingContext
from tests.adapters.kube_server import (
    GET,
    STREAM,
    Certificates,
    HostileServer,
    Reach,
    Request,
    always,
    answer,
    chunk,
    hostile,
    make_certificates,
)


async def test_a_reconnect_goes_on_from_the_session_and_costs_less(reach: Reach) -> None:
    resumed: list[bool] = []
    costs: list[int] = []

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        resumed.append(writer.get_extra_info("ssl_object").session_reused)
        writer.write(answer())
        await writer.drain()
        writer.close()

    def observe(exchange: Exchange) -> None:
        costs.append(exchange.bytes_up + exchange.bytes_down)

    async with reach(handler, observe=observe) as (cluster, server):
        for _ in range(4):
            assert (await cluster.request(GET)).status == 200
        assert (server.connections, resumed) == (4, [False, True, True, True])
        assert max(costs[1:]) < costs[0]


def resuming(certificates: Certificates) -> ResumingContext:
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificates.ca)
    return context


async def resumes(context: ResumingContext, server: HostileServer) -> bool:
    """Connect and ask something: whether the session was an earlier one."""
    reader, writer = await asyncio.open_connection("localhost", server.port, ssl=context)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    writer.close()
    reused: bool = writer.get_extra_info("ssl_object").session_reused
    return reused


async def test_a_session_that_something_chokes_on_is_given_up(
    certificates: Certificates, pair: tuple[Path, Path]
) -> None:
    context = resuming(certificates)

    def offers() -> bool:
        """A connection whose handshake never ends: whether it offers a session."""
        return context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost").session is not None

    async with hostile(always(answer()), pair=pair) as server:
        assert not await resumes(context, server)
        assert await resumes(context, server)
        assert [offers() for _ in range(10)] == [True] * 8 + [False] * 2
        assert not await resumes(context, server)
        assert await resumes(context, server)


async def test_a_stranger_gains_nothing_from_a_session_that_is_not_his(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    context = resuming(certificates)
    async with hostile(always(answer()), pair=pair) as server:
        assert not await resumes(context, server)
        async with hostile(always(answer()), pair=make_certificates(tmp_path).issue("server")) as stranger:
            with pytest.raises(ssl.SSLCertVerificationError):
                await resumes(context, stranger)
        assert await resumes(context, server)


async def test_a_watch_that_is_left_while_the_server_sends_keeps_its_session(reach: Reach) -> None:
    resumed: list[bool] = []

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        resumed.append(writer.get_extra_info("ssl_object").session_reused)
        writer.write(STREAM)
        for _ in range(100):
            writer.write(chunk(b"{}\n"))
            await asyncio.sleep(0)

    async with reach(handler) as (cluster, _):
        for _ in range(4):
            async with cluster.watch(GET, read_timeout=5) as stream:
                async for _ in stream.lines():
                    break
        assert resumed == [False, True, True, True]
