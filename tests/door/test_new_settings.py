"""`crsyncer door run` while an API server is away: what it knew before stays, and what is new is taken up."""

import asyncio
import json
import os
import ssl
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters.retries import until_async
from crsyncer.core.requests.calls import Call
from crsyncer.door.domain.signing_keys import JWKS_PATH
from crsyncer.door.door_files import MAP
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.process import spawn
from tests.adapters.kube_server import always, answer, connected, hostile, make_certificates, write_config
from tests.delivery.command_line import CLI, environment
from tests.door.programs import haproxy
from tests.door.shop import Shop, open_shop
from tests.door.tokens import new_key, public_jwk

VERSION = Call("get", "GET", "/version")
FORBIDDEN = json.dumps({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}).encode()


class Run:
    """`crsyncer door run` of a shop, with settings in a file and the root at an address."""

    def __init__(self, shop: Shop, server: str, home: Path, *, ca: Path | None = None, shard: str = "") -> None:
        self.config, self.certificate = home / "crsyncer.yaml", home / "certificate.pem"
        self.certificate.write_text("".join(each.read_text() for each in shop.pair))
        kubeconfig = write_config(home / "root", server=server, ca=ca or shop.ca, user={"token": "x"})
        places = {"directory": str(shop.directory), "socket": str(shop.home / "master.sock")}
        door = {**places, "certificate": str(self.certificate), "bind": f"127.0.0.1:{shop.port}"}
        self._settings: dict[str, Any] = {"cloud": {"kubeconfig": str(kubeconfig)}, "door": door}
        if shard:
            other = write_config(home / "other", server=shard, ca=shop.ca, user={"token": "x"})
            self._settings["shards"] = {"other": str(other)}
        self._port = 0
        self.listen()
        variables = environment(PATH=f"{haproxy().parent}:{os.environ['PATH']}")
        command = [*CLI, "door", "run", "--config", str(self.config)]
        self._process = spawn(command, log=home / "log", cwd=home, env=variables)

    def listen(self) -> None:
        """Change a setting: it answers at another port when that is taken up."""
        [self._port] = free_ports(1)
        self.config.write_text(json.dumps({**self._settings, "listen": f"127.0.0.1:{self._port}"}))

    async def until_told(self, path: str, text: str = "") -> None:
        """Wait until a page is there, with this text in it."""

        async def is_told() -> bool:
            found = await asyncio.to_thread(self._page, path)
            return found is not None and text in found

        assert await until_async(is_told, seconds=60), self._process.tail()

    async def stop(self) -> None:
        await asyncio.to_thread(self._process.stop)

    def _page(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as reply:
                return str(reply.read().decode())
        except OSError:
            return None


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    (home := tmp_path / "shop").mkdir()
    async with open_shop(home, robots=1) as shop:
        yield shop


async def test_G4_1_while_the_root_is_away_new_settings_keep_the_last_map_also_where_its_file_is_lost(
    shop: Shop, tmp_path: Path
):
    run, file = Run(shop, f"https://127.0.0.1:{free_ports(1)[0]}", tmp_path), shop.directory / "robots.map"
    try:
        await run.until_told("/readyz")
        file.unlink()
        file.mkdir()
        await run.until_told("/status", "MapNotWritten")
        run.listen()
        await run.until_told("/status")
        file.rmdir()
        await run.until_told("/readyz")
        assert file.read_text() == "robot-r0 root\n"
    finally:
        await run.stop()


SILENT = {
    "gives no keys: ": "degraded",
    "has no RSA key": "attention",
    "is unreachable": "degraded",
    "has another authority": "attention",
    "is new and unreachable": "degraded",
}


@pytest.mark.parametrize("case", SILENT)
async def test_G2_1_of_a_shard_that_is_silent_from_the_start_all_stays_and_a_new_certificate_is_taken_up(
    case: str, shop: Shop, tmp_path: Path
):
    (tmp_path / "other-issuer").mkdir()
    keys = {"keys": [public_jwk(shop.key, "kid")]}
    answers = {"gives no keys: ": answer(status="503 Service Unavailable"), "has no RSA key": answer(b'{"keys": []}')}
    shop.answers |= {"/version": answer(), JWKS_PATH: answers.get(case, answer(json.dumps(keys).encode()))}
    nowhere, own = (f"https://localhost:{port}" for port in (*free_ports(1), shop.shard_port))
    ca = make_certificates(tmp_path / "other-issuer").ca if case == "has another authority" else None
    new = nowhere if case == "is new and unreachable" else ""
    run = Run(shop, nowhere if case == "is unreachable" else own, tmp_path, ca=ca, shard=new)
    try:
        await run.until_told("/status", f'"ShardSilent", "level": "{SILENT[case]}"')
        run.certificate.write_text("".join(each.read_text() for each in shop.issuer.issue("another")))
        assert await until_async(lambda: is_served(shop, run.certificate), seconds=60)
        async with connected(shop.kubeconfig("r0")) as cluster:
            assert (await cluster.request(VERSION)).status == 200
    finally:
        await run.stop()


async def test_G2_1_keys_of_one_name_that_differ_are_told_and_other_keys_are_taken_up(shop: Shop, tmp_path: Path):
    theirs, key = public_jwk(new_key(tmp_path / "theirs"), "kid"), shop.directory / "key-kid.pub"
    used = key.read_text()
    shop.answers[JWKS_PATH] = answer(json.dumps({"keys": [public_jwk(shop.key, "kid")]}).encode())
    other = answer(json.dumps({"keys": [theirs, theirs | {"kid": "new"}]}).encode())
    async with hostile(always(other), pair=shop.pair) as server:
        run = Run(shop, f"https://localhost:{shop.shard_port}", tmp_path, shard=server.url)
        try:
            await run.until_told("/status", "KeysDiffer")
            assert await until_async(lambda: is_there(shop.directory / "key-new.pub"), seconds=60)
            assert key.read_text() == used
        finally:
            await run.stop()


async def test_a_file_that_somebody_removed_is_there_again_also_while_a_reload_is_due(shop: Shop, tmp_path: Path):
    keys = {"keys": [public_jwk(shop.key, "kid")]}
    shop.answers |= {"/version": answer(), JWKS_PATH: answer(json.dumps(keys).encode())}
    run, files = Run(shop, f"https://localhost:{shop.shard_port}", tmp_path), shop.directory

    async def is_whole() -> bool:
        return (files / "503.http").exists() and (files / "haproxy.cfg").read_text().startswith("# ")

    try:
        await run.until_told("/readyz")
        (files / "503.http").unlink()
        assert await until_async(is_whole, seconds=60)
        shop.stop_haproxy()
        (files / "haproxy.cfg").write_text("garbage")
        assert await until_async(is_whole, seconds=60)
        (files / "503.http").unlink()
        assert await until_async(is_whole, seconds=60)
    finally:
        await run.stop()


async def test_that_the_robots_may_not_be_listed_is_told_and_needs_a_human(shop: Shop, tmp_path: Path):
    keys, group = {"keys": [public_jwk(shop.key, "kid")]}, "/apis/registry.cloudrobotics.com"
    shop.answers |= {
        "/version": answer(),
        JWKS_PATH: answer(json.dumps(keys).encode()),
        "/api/v1/namespaces/kube-system": answer(FORBIDDEN, status="403 Forbidden"),
        group: answer(b'{"preferredVersion": {"version": "v1alpha1"}}'),
        f"{group}/v1alpha1/namespaces/default/robots": answer(FORBIDDEN, status="403 Forbidden"),
    }
    (shop.directory / MAP).unlink()
    run = Run(shop, f"https://localhost:{shop.shard_port}", tmp_path)
    try:
        await run.until_told("/status", '"RootAway", "level": "attention"')
        await run.until_told("/readyz")
        assert (shop.directory / MAP).read_text() == "robot-r0 root\n", "what HAProxy has holds"
        await run.until_told("/metrics", 'crsyncer_door_http_requests_total{code="403",shard="root",verb="list"}')
        await run.until_told("/metrics", "crsyncer_door_relists_total{")
    finally:
        await run.stop()


async def is_there(path: Path) -> bool:
    return path.exists()


async def is_served(shop: Shop, certificate: Path) -> bool:
    """Whether robots are shown a certificate."""
    _, writer = await shop.connect()
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return bool(ssl.DER_cert_to_PEM_cert(shown) in certificate.read_text())
