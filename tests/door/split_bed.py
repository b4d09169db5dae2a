"""A shard with robots whose agents come through a door, and its clone: what `crsyncer door split` is tried on."""

import asyncio
import json
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crsyncer.adapters.retries import until, until_async
from crsyncer.core.content.annotations import ROBOT_LABEL, SHARD_LABEL
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.cloning import clone
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.two_planes import Sandbox
from tests.delivery.command_line import CLI, crsyncer, environment
from tests.door.conftest import ROBOTS_PATH, Audited
from tests.door.open_door import Kept, OpenDoor
from tests.system.confined import JSON_PATCH, ROBOTS, Caller, at, where

SECONDS = 120
MOVING = ("r1", "r2")
STAYING = "r3"
CONFIG_MAPS = "/api/v1/namespaces/robot-{}/configmaps"


class SplitBed:
    """The root is the shard that is split; its clone is b."""

    def __init__(self, home: Path, root: Audited, sandbox: Sandbox) -> None:
        self.home, self.root, self.sandbox = home, root, sandbox
        self.on_robot = Caller(sandbox.robot, sandbox.robot.admin_token)
        self.plane: Plane | None = None
        self.door = OpenDoor(home / "edge", root.door_kubeconfig(home / "root.kubeconfig"))
        self.door.configure()
        self.door.start()
        self.kept: Kept | None = None
        self.agents: dict[str, AgentProcess] = {}
        self.names = home / "names"
        self.names.write_text("\n".join(MOVING) + "\n")

    async def start_agents(self) -> None:
        """Start the agents of all robots, which share a robot's API server."""
        for name in ROBOTS:
            folder = self.home / name
            folder.mkdir()
            self.agents[name] = AgentProcess(
                folder,
                cloud_kubeconfig=self.door.robot_kubeconfig(folder / "cloud", token=self.root.cloud.robots[name].token),
                robot_kubeconfig=self.sandbox.robot.kubeconfig(folder / "robot"),
                robot_name=name,
                flags=("--namespace-map", f"robot-{name}=bay-{name}", "--require-confinement"),
            )
        await asyncio.gather(*(each.start() for each in self.agents.values()))

    def clone(self) -> None:
        """Restore a snapshot of the root as b, and have the door know it."""
        self.plane = clone(self.root.plane, "b", self.home / "b")
        self.plane.start()
        self.door.shards = {"b": self.plane.kubeconfig(self.home / "b.kubeconfig")}
        self.kept = Kept(self.door)
        self.kept.wait_ready()
        assert until(lambda: self.kept is not None and self.kept.reasons() == [], seconds=SECONDS), self.kept.page(
            "/status"
        )

    @property
    def b(self) -> Caller:
        """An administrator at the clone."""
        assert self.plane is not None
        return Caller(self.plane, self.plane.admin_token)

    @property
    def arguments(self) -> list[str | Path]:
        """What every split here is given; the caller is an administrator."""
        assert self.kept is not None
        root = self.root.plane.kubeconfig(self.home / "admin.kubeconfig")
        shard = f"b={self.b.plane.kubeconfig(self.home / 'admin-b.kubeconfig')}"
        door = f"127.0.0.1:{self.kept.port}"
        given: list[str | Path] = ["root", "b", "--names", self.names, "--cloud-kubeconfig", root, "--shard", shard]
        return [*given, "--door", door]

    def split(self, *more: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        return crsyncer("door", "split", *self.arguments, *more)

    def states(self, *more: str | Path, code: int = 0) -> list[str]:
        """The states of the steps by the command's document; its exit code has to be this one."""
        done = self.split("--json", *more)
        assert done.returncode == code, (done.stdout, done.stderr)
        return [each["state"] for each in json.loads(done.stdout)["steps"]]

    def start_split(self, *more: str | Path) -> subprocess.Popen[str]:
        """Run the command, and do not wait for it."""
        command = [*CLI, "door", "split", *map(str, self.arguments), *map(str, more)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())

    def label(self, name: str, shard: str | None) -> None:
        """Set the label of a Robot."""
        body = {"metadata": {"labels": {SHARD_LABEL: shard}}}
        header = {"Content-Type": "application/merge-patch+json"}
        assert self.root.cloud.admin.ask("PATCH", f"{ROBOTS_PATH}/{name}", body, **header).status == 200

    def robot_label(self, name: str) -> str:
        """The label of a Robot."""
        labels = self.root.cloud.admin.ask("GET", f"{ROBOTS_PATH}/{name}").body["metadata"].get("labels") or {}
        return str(labels.get(SHARD_LABEL, ""))

    async def wait_at(self, shard: str, names: tuple[str, ...]) -> None:
        """Wait until robots have streams at a shard."""

        def are_there() -> bool:
            assert self.kept is not None
            return set(names) <= set(self.kept.streams(shard) or ())

        assert await asyncio.to_thread(until, are_there, seconds=SECONDS)

    async def root_has(self, path: str, secret: str = "apple") -> None:
        """Wait until the root has an object with this content."""

        async def is_there() -> bool:
            answer = self.root.cloud.admin.ask("GET", path)
            return bool(answer.status == 200 and answer.body["spec"]["secret"] == secret)

        assert await until_async(is_there, seconds=SECONDS), self.root.cloud.admin.ask("GET", path)

    def config_map(self, robot: str, name: str) -> str:
        """A ConfigMap of a robot that the robot's finalizer keeps; returns its path."""
        path = CONFIG_MAPS.format(robot)
        metadata = {
            "name": name,
            "labels": {ROBOT_LABEL: robot},
            "finalizers": [f"crsyncer.cloudrobotics.com/robot-{robot}"],
        }
        made = self.root.cloud.admin.ask("POST", path, {"metadata": metadata, "data": {"a": "1"}})
        assert made.status == 201, made
        return f"{path}/{name}"

    def copy_path(self, made: Mapping[str, Any]) -> str:
        """Where the copy of a goal is on the robot."""
        return at("goals", self.bay(made), made["metadata"]["name"])

    @staticmethod
    def bay(made: Mapping[str, Any]) -> str:
        """The robot's namespace of an object in the cloud."""
        return str(made["metadata"]["namespace"]).replace("robot-", "bay-")

    async def copied(self, made: Mapping[str, Any], secret: str = "apple") -> dict[str, Any]:
        """The copy on the robot, once it has this content."""
        found: dict[str, Any] = {}

        async def is_there() -> bool:
            answer = self.on_robot.ask("GET", self.copy_path(made))
            found.update(answer.body if answer.status == 200 else {})
            return answer.status == 200 and answer.body["spec"]["secret"] == secret

        assert await until_async(is_there, seconds=SECONDS)
        return found

    async def status_is_at(self, caller: Caller, made: Mapping[str, Any], status: Any) -> None:
        """Wait until a shard has a status."""

        async def is_there() -> bool:
            return bool(caller.ask("GET", where(made)).body.get("status") == status)

        assert await until_async(is_there, seconds=SECONDS), caller.ask("GET", where(made))

    def left(self, caller: Caller, robot: str) -> list[str]:
        """The objects of a robot at a shard."""
        paths = [at(plural, f"robot-{robot}") for plural in ("goals", "errands", "findings")]
        found = [caller.ask("GET", path) for path in (*paths, CONFIG_MAPS.format(robot))]
        assert all(answer.status == 200 for answer in found), found
        return sorted(each["metadata"]["name"] for answer in found for each in answer.body["items"])

    async def close(self) -> None:
        """End everything, and lead the robots back to the root."""
        for agent in self.agents.values():
            await agent.kill()
        if self.kept is not None:
            self.kept.stop()
        self.door.stop()
        if self.plane is not None:
            self.plane.stop(graceful=False)
        for name in MOVING:
            self.label(name, None)


class StatusWriter:
    """What runs on the robots: it writes a status of each copy, again and again."""

    def __init__(self, bed: SplitBed, copies: list[str]) -> None:
        self._bed, self._copies = bed, copies
        self._stop = threading.Event()
        self.last: dict[str, Any] = {}
        """The status that was written last, by the copy's path."""
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(0.2):
            number += 1
            for path in self._copies:
                status = {"number": number}
                body = [{"op": "add", "path": "/status", "value": status}]
                if self._bed.on_robot.ask("PATCH", f"{path}/status", body, **JSON_PATCH).status == 200:
                    self.last[path] = status

    def stop(self) -> None:
        """End; what was written last stays."""
        self._stop.set()
        self._thread.join()
