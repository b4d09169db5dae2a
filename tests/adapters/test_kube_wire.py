"""Requests to an API server that misbehaves, over real sockets and TLS."""

import asyncio
import gzip
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from crsyncer import __version__
from crsyncer.adapters.kube import Exchange, KubeCluster
from crsyncer.core.reports.text import NOT_YET_VALID
from crsyncer.core.requests.calls import Call, Collection, list_page
from crsyncer.errors import Never, NotTrusted, TooLarge, Unsure
from crsyncer.sandbox.free_ports import free_ports
from tests.adapters.kube_server import (
    GET,
    TOKEN,
    Certificates,
    Reach,
    Request,
    always,
    answer,
    failure,
    make_certificates,
    once,
    write_config,
)

LIST = Call("list", "GET", "/apis/g.example.com/v1/goals")
DISCOVER = Call("discover", "GET", "/apis/g.example.com/v1")


async def test_a_request_carries_exactly_what_was_asked_for(reach: Reach) -> None:
    call = Call(
        "patch",
        "PATCH",
        "/apis/g.example.com/v1/namespaces/ä b/goals/x%/status",
        query=(("fieldManager", "a&b"),),
        body=[{"op": "add", "path": "/status", "value": {"n": 2**70, "t": "ü"}}],
        content_type="application/json-patch+json",
        accept="application/x",
    )
    async with reach(always(answer(b'{"kind":"Goal"}')), path="/apis/core.kubernetes/") as (cluster, server):
        reply = await cluster.request(call)
        assert (reply.status, reply.body, reply.text, reply.retry_after) == (200, {"kind": "Goal"}, "", None)
        assert cluster.server == f"{server.url}/apis/core.kubernetes"
    (seen,) = server.requests
    target = "/apis/core.kubernetes/apis/g.example.com/v1/namespaces/%C3%A4%20b/goals/x%25/status?fieldManager=a%26b"
    assert seen.line == f"PATCH {target} HTTP/1.1"
    assert seen.body == '[{"op":"add","path":"/status","value":{"n":1180591620717411303424,"t":"ü"}}]'.encode()
    assert seen.headers == {
        "host": f"localhost:{server.port}",
        "user-agent": f"crsyncer/{__version__}",
        "accept": "application/x",
        "accept-encoding": "identity",
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json-patch+json",
        "content-length": str(len(seen.body)),
    }


async def test_every_status_is_a_reply_and_redirects_are_not_followed(reach: Reach) -> None:
    async with reach(
        always(answer(b"404 page not found\n" * 100, status="404 Not Found", headers=("Content-Type: text/plain",)))
    ) as (cluster, server):
        reply = await cluster.request(GET)
        assert (reply.status, reply.body, len(reply.text)) == (404, {}, 500)
    moved = answer(b"", status="307 Temporary Redirect", headers=("Location: https://localhost:1/",))
    async with reach(always(moved)) as (cluster, server):
        assert (await cluster.request(GET)).status == 307
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (lambda: "7", 7, 7),
        (lambda: "0", 1, 1),
        (lambda: format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True), 3600, 7200),
        (lambda: "Sat, 01 Jan 2000 00:00:00 GMT", 1, 1),
    ],
)
async def test_retry_after_is_read_as_seconds_or_as_a_date(
    reach: Reach, value: Callable[[], str], low: float, high: float
) -> None:
    async with reach(always(answer(status="429 Too Many Requests", headers=(f"Retry-After: {value()}",)))) as (
        cluster,
        _,
    ):
        after = (await cluster.request(GET)).retry_after
        assert after is not None
        assert low <= after <= high


async def test_a_retry_after_is_by_the_clock_of_the_server_which_is_compared_with_ours(reach: Reach) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    moments = [format_datetime(tomorrow + timedelta(seconds=late), usegmt=True) for late in (0, 40)]
    headers = (f"Date: {moments[0]}", f"Retry-After: {moments[1]}")
    async with reach(always(answer(status="503 Service Unavailable", headers=headers))) as (cluster, _):
        assert cluster.clock_offset is None
        assert (await cluster.request(GET)).retry_after == 40
        assert cluster.clock_offset == pytest.approx(86400, abs=30)
    async with reach(always(answer(headers=("Date: once upon a time",)))) as (cluster, _):
        await cluster.request(GET)
        assert cluster.clock_offset is None


@pytest.mark.parametrize("value", ["soon", "-1", "\u0661"])
async def test_a_retry_after_without_sense_is_none(reach: Reach, value: str) -> None:
    raw = answer(status="503 Service Unavailable", headers=("Retry-After: @",)).replace(b"@", value.encode())
    async with reach(always(raw)) as (cluster, _):
        assert (await cluster.request(GET)).retry_after is None


@pytest.mark.parametrize("body", [b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":1', b"[" * 100_000, b'{"a":"\xff"}', b""])
async def test_a_success_that_is_no_strict_json_is_no_answer(reach: Reach, body: bytes) -> None:
    async with reach(always(answer(body))) as (cluster, _):
        assert str(await failure(cluster)) == "the answer is no Kubernetes object"


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (GET, b'{"metadata":3}'),
        (LIST, b'{"items":4}'),
        (LIST, b'{"items":[null]}'),
        (DISCOVER, b'{"resources":{"a":1}}'),
        (DISCOVER, b'{"versions":["v1"]}'),
    ],
)
async def test_a_success_of_another_shape_is_no_answer(reach: Reach, call: Call, body: bytes) -> None:
    async with reach(always(answer(body))) as (cluster, _):
        assert str(await failure(cluster, call)) == "the answer is no Kubernetes object"


async def test_a_custom_resource_may_have_fields_that_lists_have(reach: Reach) -> None:
    async with reach(always(answer(b'{"items":4,"versions":["v1"]}'))) as (cluster, _):
        assert (await cluster.request(GET)).body == {"items": 4, "versions": ["v1"]}


async def test_what_json_cannot_carry_is_refused_before_it_is_sent(reach: Reach) -> None:
    async with reach(always(answer())) as (cluster, server):
        for value in (float("nan"), float("inf"), "\ud800", object()):
            with pytest.raises(Never):
                await cluster.request(Call("update", "PUT", "/x", body={"a": value}))
        assert server.requests == []


async def test_a_bomb_in_gzip_is_refused_without_being_unpacked_in_memory(reach: Reach) -> None:
    bomb = gzip.compress(b" " * (80 << 20), compresslevel=1)
    packed = answer(bomb, headers=("Content-Type: application/json", "Content-Encoding: gzip"))
    async with reach(always(packed)) as (cluster, _):
        assert "larger than 8 MiB" in str(await failure(cluster, LIST))


async def test_S9_4_a_page_that_is_too_large_is_not_read_to_its_end(reach: Reach) -> None:
    page = answer(b'{"metadata": {}, "items": ["' + b"x" * (5 << 20) + b'"]}')
    async with reach(always(page)) as (cluster, _):
        with pytest.raises(TooLarge, match="larger than 4 MiB"):
            await cluster.request(list_page(Collection("g.example.com", "v1", "goals"), limit=500))


async def test_S9_4_a_page_that_comes_slowly_is_waited_for_and_one_that_stalls_is_not(reach: Reach) -> None:
    whole = answer(b'{"items": [' + b" " * 40 + b"]}")
    pieces = [whole[start : start + 10] for start in range(0, len(whole), 10)]

    async def slowly(request: Request, writer: asyncio.StreamWriter) -> None:
        for piece in pieces if "slow" in request.line else pieces[:-1]:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.4)
        await asyncio.sleep(5)

    page = Call("list", "GET", "/slow", timeout=60.0, gap=4.0)  # less than all pieces take, more than a busy machine
    heard: list[None] = []
    async with reach(slowly) as (cluster, _):
        reply = await cluster.request(page, progress=lambda: heard.append(None))
        assert (reply.body, reply.size) == ({"items": []}, 53)
        assert len(heard) > 1
        with pytest.raises(Unsure, match=r"nothing came for 1 s"):
            await cluster.request(replace(page, path="/stalled", gap=1.0))


@pytest.mark.fault_40
async def test_lists_come_in_gzip_of_any_number_of_members(reach: Reach) -> None:
    packed = gzip.compress(b'{"items":') + gzip.compress(b'[{"a":1}]') + gzip.compress(b"}")
    headers = ("Content-Type: application/json", "Content-Encoding: gzip")
    async with reach(always(answer(packed, headers=headers))) as (cluster, server):
        assert (await cluster.request(LIST)).body == {"items": [{"a": 1}]}
        assert server.requests[0].headers["accept-encoding"] == "gzip"
    async with reach(always(answer(packed[:-25], headers=headers))) as (cluster, _):
        await failure(cluster, LIST)


async def test_an_answer_that_is_cut_or_late_or_no_http_is_no_answer(reach: Reach) -> None:
    async with reach(once(answer(b'{"a":1}')[:-2])) as (cluster, _):
        assert "cut off" in str(await failure(cluster))
    async with reach(always(b"")) as (cluster, _):
        assert str(await failure(cluster, Call("get", "GET", "/x", timeout=0.1))) == "no answer within 0.1 s"
    async with reach(once(b"SSH-2.0-x\r\n\r\n")) as (cluster, _):
        assert str(await failure(cluster)) == "the answer is not HTTP"


@pytest.mark.parametrize(("method", "times"), [("GET", 2), ("PUT", 1), ("DELETE", 1), ("PATCH", 1), ("POST", 1)])
async def test_only_reads_are_repeated_after_the_connection_broke(reach: Reach, method: str, times: int) -> None:
    async with reach(once(b"")) as (cluster, server):
        error = await failure(cluster, Call("x", method, "/x", body=None if method == "GET" else {}))
        assert "closed the connection" in str(error)
        assert len(server.requests) == times


async def test_connections_are_reused(reach: Reach) -> None:
    async with reach(always(answer())) as (cluster, server):
        for _ in range(5):
            await cluster.request(GET)
        assert server.connections == 1
        await asyncio.gather(*(cluster.request(GET) for _ in range(200)))
        assert server.connections <= 64


async def test_traffic_is_counted_on_the_sockets(reach: Reach) -> None:
    seen: list[Exchange] = []
    async with reach(always(answer(b'{"a":"%s"}' % (b"x" * 5000))), observe=seen.append) as (cluster, _):
        await cluster.request(GET)
        await cluster.request(GET)
    first, second = seen
    assert (first.verb, first.code) == ("get", 200)
    assert first.bytes_down > second.bytes_down + 300  # the handshake
    assert 5050 < second.bytes_down < 5400
    assert 150 < second.bytes_up < 500
    seen.clear()
    async with reach(once(b""), observe=seen.append) as (cluster, _):
        await failure(cluster)
    assert [exchange.code for exchange in seen] == [0]


# --- TLS and reachability: the reason is said in plain words


async def test_a_refused_connection_and_an_unknown_name_are_told_apart(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    gone = f"https://localhost:{port}"
    for url, words in ((gone, "connection refused"), ("https://no-such-host.invalid", "does not resolve")):
        config = write_config(tmp_path / "gone", server=url, ca=None, user={"token": TOKEN})
        cluster = KubeCluster(config)
        error = await failure(cluster)
        assert words in str(error)
        assert error.hint
        await cluster.close()


async def test_where_no_thread_can_be_started_the_server_counts_as_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    cluster = KubeCluster(write_config(tmp_path / "config", server="https://localhost:1", ca=None, user={}))
    monkeypatch.setattr(threading.Thread, "start", start)
    assert "does not resolve" in str(await failure(cluster))
    monkeypatch.undo()
    assert "connection refused" in str(await failure(cluster))
    await cluster.close()


async def test_a_certificate_of_another_name_of_the_past_or_of_a_stranger_is_refused_by_name(
    reach: Reach, certificates: Certificates, tmp_path: Path
) -> None:
    other = certificates.issue("other", san="DNS:other.example.com")
    stranger = make_certificates(tmp_path).issue("server")
    for pair, words in (
        (other, "not for this host name"),
        (certificates.issue("late", days=-1), "has expired"),
        (certificates.issue_for_2040("early"), NOT_YET_VALID),
        (stranger, "not signed by a CA"),
    ):
        async with reach(always(answer()), pair=pair) as (cluster, server):
            error = await failure(cluster)
            assert isinstance(error, NotTrusted), "a human has to correct something"
            assert words in str(error)
            assert error.hint
            assert server.requests == []
    async with reach(always(answer()), pair=other, **{"tls-server-name": "other.example.com"}) as (cluster, _):
        assert (await cluster.request(GET)).status == 200


async def test_the_server_certificate_itself_may_be_the_anchor(reach: Reach, pair: tuple[Path, Path]) -> None:
    async with reach(always(answer()), ca=pair[0]) as (cluster, _):
        assert (await cluster.request(GET)).status == 200


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_old_tls_and_no_tls_are_refused(reach: Reach, tmp_path: Path) -> None:
    async with reach(always(answer()), oldest=0x0302) as (cluster, old):
        await failure(cluster)
        assert old.requests == []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    cluster = KubeCluster(write_config(tmp_path / "plain", server=url, ca=None, user={}))
    assert "does not speak TLS" in str(await failure(cluster))
    await cluster.close()
    server.close()


async def test_a_proxy_only_ever_sees_a_tunnel(reach: Reach) -> None:
    asked: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        host, port = asked[0].split()[1].decode().rsplit(":", 1)
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)

    (port,) = free_ports(1)
    proxy = await asyncio.start_server(tunnel, "127.0.0.1", port)
    url = f"http://user:word@127.0.0.1:{port}"
    async with reach(always(answer()), **{"proxy-url": url}) as (cluster, server):
        assert (await cluster.request(GET)).status == 200
        assert server.requests[0].headers["host"] == f"localhost:{server.port}"
    proxy.close()
    (head,) = asked
    assert head.startswith(f"CONNECT localhost:{server.port} ".encode())
    assert b"Proxy-Authorization: Basic dXNlcjp3b3Jk" in head
    assert b"Bearer" not in head
    async with reach(always(answer()), **{"proxy-url": url}) as (cluster, _):
        error = await failure(cluster)
        assert "word" not in str(error)
        assert str(error) == "the proxy cannot be reached: connection refused"
        assert error.hint == "check proxy-url and HTTPS_PROXY"
    async with reach(always(answer()), **{"proxy-url": "http://no..name"}) as (cluster, _):
        assert "does not resolve" in str(await failure(cluster))


async def test_the_token_shows_nowhere(reach: Reach, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    for bad in (once(b""), once(b"SSH\r\n\r\n"), always(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")):
        async with reach(bad) as (cluster, _):
            error = await failure(cluster)
            said += [str(error), repr(error), error.hint, repr(cluster), repr(vars(cluster))]
            said.append(repr(vars(cluster.credentials)))
            assert error.__suppress_context__
    text = "\n".join(said) + caplog.text
    # Whole parts of it: the CA's certificate is shown, and a few characters are anywhere in its base64 now and then.
    assert [part for part in TOKEN.split(".") if part in text] == []
