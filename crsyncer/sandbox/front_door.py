"""Runs a front door: HAProxy with what `crsyncer door config` wrote, and `crsyncer door run` beside it.

For the demo and tests.
"""

import asyncio
import json
import os
import shutil
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.errors import SyncError
from crsyncer.sandbox.cluster import Cluster, Json
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.process import write_private
from crsyncer.sandbox.program import Program, outcome
from crsyncer.sandbox.resource import SERVICE_ACCOUNT, Resource

_CRSYNCER = (sys.executable, "-m", "crsyncer.cli.main")
_DOOR = (*_CRSYNCER, "door")


def find_haproxy(others: Sequence[str] = ("/usr/sbin", "/usr/local/sbin")) -> Path:
    """HAProxy, in PATH or in one of `others`, which users' PATHs lack. Raises SyncError where there is none."""
    found = shutil.which("haproxy", path=os.pathsep.join([os.environ.get("PATH", ""), *others]))
    if found is None:
        raise SyncError("haproxy is not installed on this machine", hint="install the package haproxy, 2.6 or newer")
    return Path(found)


class FrontDoor:
    """HAProxy and its upkeep on loopback ports, in a directory of their own. Both end with this process.

    One configuration file serves every command of the door. The certificate is the root's own.
    """

    def __init__(self, directory: Path, root: Plane, shards: Mapping[str, Plane], *, haproxy: Path) -> None:
        directory.mkdir()
        self.config = directory / "crsyncer.yaml"
        self.directory = directory / "door"
        """HAProxy's: its configuration and the map."""
        self.socket = directory / "master.sock"
        self._home = directory
        self._root = root
        self._shards = dict(shards)
        port, listen = free_ports(2)
        self.server = f"https://127.0.0.1:{port}"
        self.listen = f"127.0.0.1:{listen}"
        self._bind = f"127.0.0.1:{port}"
        self._environment = {"PATH": f"{haproxy.parent}:{os.environ['PATH']}"}
        configuration = self.directory / "haproxy.cfg"
        self.haproxy = Program(
            [str(haproxy), "-W", "-S", str(self.socket), "-f", str(configuration)], log=directory / "haproxy.log"
        )
        self.upkeep = Program(
            [*_DOOR, "run", *self._flags], log=directory / "door-run.log", environment=self._environment
        )

    def write(self) -> None:
        """Write the certificate, the kubeconfigs and the configuration file. The planes have started."""
        certificate = self._home / "certificate.pem"
        write_private(certificate, self._root.cert_file.read_text() + self._root.key_file.read_text())
        root = self._root.kubeconfig(self._home / "root.kubeconfig")
        shards = {name: str(self._kubeconfig(name)) for name in self._shards}
        for name, plane in self._shards.items():
            plane.kubeconfig(self._kubeconfig(name))
        door = {"directory": str(self.directory), "socket": str(self.socket), "bind": self._bind}
        settings = {
            "cloud": {"kubeconfig": str(root)},
            "shards": shards,
            "door": {**door, "certificate": str(certificate)},
        }
        write_private(self.config, json.dumps(settings, indent=2))

    def add(self, name: str, plane: Plane) -> None:
        """Add a shard to the configuration file, which `crsyncer door run` reads again."""
        self._shards[name] = plane
        self.write()

    @property
    def shard_flags(self) -> tuple[str, ...]:
        """What tells `crsyncer fleet` of the shards."""
        return tuple(word for name in self._shards for word in ("--shard", f"{name}={self._kubeconfig(name)}"))

    def robot_kubeconfig(self, robot: str) -> Path:
        """The kubeconfig of a robot, which leads to the door; `enrol` writes it."""
        return self._home / f"{robot}.robot.kubeconfig"

    async def enrol(self, cluster: Cluster, robots: Sequence[str], crds: Sequence[Path]) -> list[Json]:
        """Make accounts of robots at a shard, confined as the kinds of `crds` want it, and write their kubeconfigs.

        Returns the quotas that count there from now on. Raises SyncError.
        """
        flags = [word for name in robots for word in ("--robot", name)]
        flags += [word for file in crds for word in ("--crds", str(file))]
        code, out, error = await outcome([*_CRSYNCER, "cloud-manifests", "--json", *flags])
        if code != 0:
            raise SyncError(f"crsyncer cloud-manifests ends with {code}: {error.strip()}")
        items: list[Json] = json.loads(out)["items"]
        for each in items:
            await cluster.create(Resource.of_object(each), each)
        for name in robots:
            await self.renew_token(cluster, name)
        return [each for each in items if each["kind"] == "ResourceQuota"]

    async def renew_token(self, cluster: Cluster, robot: str) -> None:
        """Write the kubeconfig of a robot with a new token of its shard."""
        token = await cluster.token(SERVICE_ACCOUNT.object("crsyncer", namespace=robot_namespace(robot)))
        self._root.kubeconfig(self.robot_kubeconfig(robot), server=self.server, token=token)

    async def command(self, name: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command of `crsyncer door`: exit code, standard output, standard error."""
        environment = {**os.environ, **self._environment}
        return await outcome([*_DOOR, name, *self._flags, *arguments], environment=environment)

    async def page(self, path: str) -> Any:
        """A document of `crsyncer door run`; None where it does not answer."""
        return await asyncio.to_thread(self._read, path)

    async def close(self) -> None:
        """Kill both programs, and the workers of HAProxy with them."""
        await self.upkeep.kill()
        await self.haproxy.stop()

    @property
    def _flags(self) -> tuple[str, ...]:
        return "--config", str(self.config), "--listen", self.listen

    def _kubeconfig(self, shard: str) -> Path:
        return self._home / f"{shard}.kubeconfig"

    def _read(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"http://{self.listen}{path}", timeout=10) as reply:
                return json.load(reply)
        except OSError:
            return None
