"""`crsyncer door run` takes up new settings: what it knew of the robots before stays, whatever became of the file."""

import asyncio
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

from crsyncer.adapters.retries import until_async
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.process import spawn
from tests.adapters.kube_server import write_config
from tests.delivery.command_line import CLI, environment
from tests.door.programs import haproxy
from tests.door.shop import open_shop


async def page(port: int, path: str) -> str:
    """What the upkeep says at a port; nothing where it does not answer well."""

    def ask() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
                return str(reply.read().decode())
        except (urllib.error.HTTPError, OSError):
            return ""

    return await asyncio.to_thread(ask)


async def test_G4_1_while_the_root_is_away_new_settings_keep_the_last_map_also_where_its_file_is_lost(tmp_path: Path):
    """Somebody damages the map's file, and changes another setting, while the root is away."""
    root, first, second = free_ports(3)
    (shop_home := tmp_path / "shop").mkdir()
    async with open_shop(shop_home, robots=1) as shop:
        config, file = tmp_path / "crsyncer.yaml", shop.directory / "robots.map"
        kubeconfig = write_config(
            tmp_path / "root", server=f"https://127.0.0.1:{root}", ca=shop.ca, user={"token": "x"}
        )
        certificate = tmp_path / "certificate.pem"
        certificate.write_text("".join(each.read_text() for each in shop.pair))
        places = {"directory": str(shop.directory), "socket": str(shop_home / "master.sock")}
        door = {**places, "certificate": str(certificate), "bind": f"127.0.0.1:{shop.port}"}
        settings = {"cloud": {"kubeconfig": str(kubeconfig)}, "door": door}

        def listen(port: int) -> None:
            config.write_text(json.dumps({**settings, "listen": f"127.0.0.1:{port}"}))

        listen(first)
        variables = environment(PATH=f"{haproxy().parent}:{os.environ['PATH']}")
        kept = spawn([*CLI, "door", "run", "--config", str(config)], log=tmp_path / "log", cwd=tmp_path, env=variables)
        try:
            assert await until_async(lambda: page(first, "/readyz"), seconds=60), kept.tail()
            file.unlink()
            file.mkdir()

            async def is_told() -> bool:
                return "MapNotWritten" in await page(first, "/status")

            assert await until_async(is_told, seconds=60), kept.tail()
            listen(second)
            assert await until_async(lambda: page(second, "/status"), seconds=60), kept.tail()
            file.rmdir()
            assert await until_async(lambda: page(second, "/readyz"), seconds=60), kept.tail()
            assert file.read_text() == "robot-r0 root\n"
        finally:
            await asyncio.to_thread(kept.stop)
