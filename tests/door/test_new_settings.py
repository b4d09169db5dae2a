"""`crsyncer door run` while an API server is away: what it knew before stays, and what is new is taken up."""

import asyncio
import json
import os
import ssl
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until_async
from crsyncer.core.requests.calls import Call
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.process import spawn
from tests.adapters.kube_server import answer, connected, write_config
from tests.delivery.command_line import CLI, environment
from tests.door.programs import haproxy
from tests.door.shop import Shop, open_shop

VERSION = Call("get", "GET", "/version")


class Run:
    """`crsyncer door run` of a shop, with settings in a file and the root at an address."""

    def __init__(self, shop: Shop, server: str, home: Path) -> None:
        self.config, self.certificate = home / "crsyncer.yaml", home / "certificate.pem"
        self.certificate.write_text("".join(each.read_text() for each in shop.pair))
        kubeconfig = write_config(home / "root", server=server, ca=shop.ca, user={"token": "x"})
        places = {"directory": str(shop.directory), "socket": str(shop.home / "master.sock")}
        door = {**places, "certificate": str(self.certificate), "bind": f"127.0.0.1:{shop.port}"}
        self._settings = {"cloud": {"kubeconfig": str(kubeconfig)}, "door": door}
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


async def test_G2_1_where_a_shard_is_silent_from_the_start_its_keys_stay_and_a_new_certificate_is_taken_up(
    shop: Shop, tmp_path: Path
):
    shop.answers |= {"/version": answer(), "/openid/v1/jwks": answer(status="503 Service Unavailable")}
    run = Run(shop, f"https://localhost:{shop.shard_port}", tmp_path)
    try:
        await run.until_told("/status", "ShardSilent")
        run.certificate.write_text("".join(each.read_text() for each in shop.issuer.issue("another")))
        assert await until_async(lambda: is_served(shop, run.certificate), seconds=60)
        async with connected(shop.kubeconfig("r0")) as cluster:
            assert (await cluster.request(VERSION)).status == 200
    finally:
        await run.stop()


async def is_served(shop: Shop, certificate: Path) -> bool:
    """Whether robots are shown a certificate."""
    _, writer = await shop.connect()
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return bool(ssl.DER_cert_to_PEM_cert(shown) in certificate.read_text())
