"""Health and metrics, asked over real HTTP."""

import asyncio
import re
from urllib.error import HTTPError
from urllib.request import urlopen

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from crsyncer.adapters import web
from crsyncer.adapters.metrics import Metrics
from crsyncer.adapters.web import Page, check, serve
from crsyncer.core.model import Side
from crsyncer.errors import ConfigError
from crsyncer.sandbox.free_ports import free_ports
from tests.console.report_kit import NOW, document, facts, hold, kind, outbox, side, store


async def get(address, path, method="GET"):
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"http://{address[0]}:{address[1]}{path}") as got,
    ):
        return got.status, await got.text(), got.headers["Content-Type"]


def served(live=None, ready=None, listen=("127.0.0.1", 0)):
    return serve(listen, live=lambda: live, ready=lambda: ready, metrics=lambda: b"a 1\n")


async def test_a_sound_agent_is_live_and_ready():
    async with served() as address:
        assert (await get(address, "/livez"))[:2] == (200, "ok\n")
        assert (await get(address, "/readyz"))[:2] == (200, "ok\n")
        assert (await get(address, "/livez", "HEAD"))[0] == 200


async def test_trouble_is_a_503_that_says_why():
    async with served(live="the sender is stuck", ready="the store is not open") as address:
        assert (await get(address, "/livez"))[:2] == (503, "the sender is stuck\n")
        assert (await get(address, "/readyz"))[:2] == (503, "the store is not open\n")


async def test_livez_answers_while_the_event_loop_is_stuck_and_nothing_else_pretends_to(monkeypatch):
    monkeypatch.setattr(web, "_PATIENCE", 0.1)
    async with served(live="the event loop has made no progress for 31 s") as address:
        for path in ("/livez", "/readyz", "/metrics"):
            with pytest.raises(HTTPError) as caught:
                # Without await: until the answer is there, this event loop does nothing else.
                urlopen(f"http://{address[0]}:{address[1]}{path}", timeout=30)  # noqa: ASYNC210
            assert caught.value.code == 503
            assert b"event loop" in caught.value.read()


async def test_metrics_are_prometheus_text():
    async with served() as address:
        assert await get(address, "/metrics") == (200, "a 1\n", "text/plain; version=0.0.4; charset=utf-8")


async def test_nothing_else_is_there_and_nothing_can_be_changed():
    async with served() as address:
        assert (await get(address, "/"))[0] == 404
        assert (await get(address, "/debug/pprof"))[0] == 404
        assert (await get(address, "/livez", "POST"))[0] == 405


def with_pages():
    def page(parameters):
        return Page(f"<p>{len(parameters.get('robot', ''))}</p>", policy="default-src 'none'")

    return serve(
        ("127.0.0.1", 0),
        live=lambda: None,
        ready=lambda: None,
        metrics=lambda: b"a 1\n",
        pages={"/": page, "/streams": lambda _: Page('["r1"]')},
    )


async def test_pages_of_its_own_stand_beside_health_and_metrics():
    async with with_pages() as address:
        assert await get(address, "/") == (200, "<p>0</p>", "text/html; charset=utf-8")
        assert await get(address, "/?robot=r17&other=1") == (200, "<p>3</p>", "text/html; charset=utf-8")
        assert await get(address, "/streams?shard=a") == (200, '["r1"]', "application/json")
        assert (await get(address, "/livez"))[:2] == (200, "ok\n")
        assert (await get(address, "/", "HEAD"))[:2] == (200, "")
        assert [(await get(address, path, "POST"))[0] for path in ("/", "/streams")] == [405, 405]
        assert (await get(address, "/other"))[0] == 404
        assert (await get(address, f"/?robot={'x' * 10_000}"))[0] == 400


async def test_a_browser_runs_nothing_of_a_page_and_keeps_none():
    async with (
        with_pages() as address,
        aiohttp.ClientSession() as session,
        session.get(f"http://{address[0]}:{address[1]}/") as got,
    ):
        assert got.headers["Content-Security-Policy"] == "default-src 'none'"
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["Cache-Control"] == "no-store"


async def test_a_busy_port_names_the_flag():
    async with served() as address:
        with pytest.raises(ConfigError, match=rf"^--listen 127.0.0.1:{address[1]} cannot be used .*; allowed:"):
            async with served(listen=address):
                pass


async def test_a_port_is_tried_before_anything_is_touched():
    (port,) = free_ports(1)  # none that a connection of somebody else could take meanwhile
    async with served(listen=("127.0.0.1", port)) as address:
        with pytest.raises(ConfigError, match=rf"^--listen 127.0.0.1:{address[1]} cannot be used .*; allowed:"):
            await check(address)
    await check(address)
    async with served(listen=address) as again:
        assert again == address


@pytest.mark.parametrize("host", ["203.0.113.7", "a..b", "x" * 64, "x\0y"])
async def test_an_address_that_is_not_this_machine_s_names_the_flag(host):
    with pytest.raises(ConfigError, match=rf"--listen {re.escape(host)}:1 cannot be used"):
        async with asyncio.timeout(30), served(listen=(host, 1)):
            pass


async def test_the_port_is_free_again_afterwards():
    (port,) = free_ports(1)  # none that a connection of somebody else could take meanwhile
    for _ in range(2):
        async with served(listen=("127.0.0.1", port)) as address:
            assert address == ("127.0.0.1", port)


def status(**changes):
    return document(facts(side("offline"), side(last_ok=NOW), **changes))


def samples(metrics, content=None):
    text = metrics.render(content or status()).decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


NAMES = (
    "side_connected",
    "side_last_ok_timestamp_seconds",
    "reconnects_total",
    "http_requests_total",
    "transfer_bytes_total",
    "relists_total",
    "resumes_total",
    "events_total",
    "writes_total",
    "noops_total",
    "sync_latency_seconds_bucket",
    "sync_latency_seconds_count",
    "sync_latency_seconds_sum",
    "outbox_depth",
    "outbox_oldest_seconds",
    "dead_letters",
    "holds",
    "store_bytes",
    "store_commit_seconds_bucket",
    "build_info",
)


def exercised() -> Metrics:
    metrics = Metrics()
    metrics.exchange(Side.CLOUD, "list", 200, 10, 2000)
    metrics.exchange(Side.CLOUD, "list", 0, 10, 0)
    metrics.exchange(Side.CLOUD, "watch", None, 0, 5)
    metrics.reconnect(Side.CLOUD, "timeout")
    metrics.relist(Side.ROBOT, "goals", "first")
    metrics.resume(Side.ROBOT, "goals")
    metrics.event(Side.ROBOT, "goals", "MODIFIED")
    metrics.write(Side.CLOUD, "goals", "status", "done")
    metrics.noop()
    metrics.latency("status", 0.2)
    metrics.commit(0.002)
    return metrics


def test_every_promised_metric_is_there():
    found = {name for name, *_ in samples(exercised())}
    assert {f"crsyncer_{name}" for name in NAMES} <= found


def test_what_has_not_happened_yet_is_counted_as_zero():
    """Else the first time is no increase, for Prometheus."""
    found = samples(Metrics(), status(kinds=[kind("goals")]))
    assert found["crsyncer_reconnects_total", "cloud", "offline"] == 0
    assert found["crsyncer_resumes_total", "goals", "robot"] == 0


def test_transferred_bytes_are_said_to_be_what_they_are():
    assert (
        "# HELP crsyncer_transfer_bytes_total Bytes on the wire, TLS included." in Metrics().render(status()).decode()
    )


def test_nothing_is_there_that_is_not_ours_or_repeats_itself():
    found = {name for name, *_ in samples(exercised())}
    assert all(name.startswith("crsyncer_") for name in found)
    assert not [name for name in found if name.endswith("_created")]


def test_what_was_counted_is_what_is_scraped():
    found = samples(exercised())
    assert found["crsyncer_http_requests_total", "200", "cloud", "list"] == 1
    assert found["crsyncer_http_requests_total", "0", "cloud", "list"] == 1
    assert found["crsyncer_transfer_bytes_total", "cloud", "received"] == 2005
    assert found["crsyncer_transfer_bytes_total", "cloud", "sent"] == 20
    assert found["crsyncer_writes_total", "cloud", "done", "goals", "status"] == 1
    assert found["crsyncer_noops_total",] == 1
    assert found["crsyncer_sync_latency_seconds_count", "status"] == 1
    assert found["crsyncer_sync_latency_seconds_count", "spec"] == 0


def test_the_state_is_that_of_the_status_document():
    found = samples(Metrics(), status(outbox=outbox(7, 60, 2), holds=[hold()], store=store(size=4096)))
    assert found["crsyncer_side_connected", "cloud"] == 0
    assert found["crsyncer_side_connected", "robot"] == 1
    assert found["crsyncer_side_last_ok_timestamp_seconds", "robot"] == NOW
    assert found["crsyncer_outbox_depth",] == 7
    assert found["crsyncer_outbox_oldest_seconds",] == 60
    assert found["crsyncer_dead_letters",] == 2
    assert found["crsyncer_holds",] == 1
    assert found["crsyncer_store_bytes",] == 4096
    assert found["crsyncer_build_info", "0.1.0"] == 1


def test_two_agents_in_one_process_do_not_mix():
    one, other = Metrics(), Metrics()
    one.noop()
    assert samples(other)["crsyncer_noops_total",] == 0
