"""Two API servers behind a door that `crsyncer door run` keeps, with robots that are led from one to the other."""

import json
from contextlib import suppress
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.core.content.annotations import SHARD_LABEL
from tests import planes
from tests.door.conftest import ROBOTS_PATH, Audited, robot
from tests.door.open_door import Kept, OpenDoor, Watch
from tests.system.confined import at

PATIENCE = 60


class Shards:
    """The root and shard b, a door before both, and its upkeep."""

    def __init__(self, home: Path, root: Audited, b: Audited, *, b_server: str | None = None) -> None:
        """`b_server`: the address at which the door reaches shard b; None: its own."""
        self.root, self.b = root, b
        self.door = OpenDoor(
            home,
            root.door_kubeconfig(home / "root.kubeconfig"),
            {"b": b.door_kubeconfig(home / "b.kubeconfig", server=b_server)},
        )
        self.door.configure()
        self.door.start()
        self.kept = Kept(self.door)

    def place(self, name: str, shard: str) -> None:
        """Have a robot be at a shard."""
        body = {"metadata": {"labels": {SHARD_LABEL: shard if shard != "root" else None}}}
        answer = self.root.cloud.admin.ask(
            "PATCH", f"{ROBOTS_PATH}/{name}", body, **{"Content-Type": "application/merge-patch+json"}
        )
        assert answer.status == 200, answer

    def token(self, name: str, shard: str) -> str:
        """A robot's token of a shard."""
        return (self.b if shard == "b" else self.root).cloud.robots[name].token

    def reaches(self, name: str, shard: str) -> bool:
        """Whether a robot's requests get to a shard: each accepts only its own tokens."""
        with suppress(OSError):
            return self.door.ask(at("goals", f"robot-{name}"), self.token(name, shard)).status == 200
        return False

    def wait_reaches(self, name: str, shard: str) -> None:
        assert until(lambda: self.reaches(name, shard), seconds=PATIENCE), (self.kept.process.tail(30), self.map)

    def watch(self, name: str, shard: str) -> Watch:
        """An open watch of a robot at a shard."""
        return Watch(self.door, at("goals", f"robot-{name}"), self.token(name, shard))

    def said(self, command: str, *arguments: str, code: int | None) -> dict:
        """The document that a command prints; `code` is its exit code."""
        done = self.door.command(command, "--listen", f"127.0.0.1:{self.kept.port}", "--json", *arguments)
        assert code in (None, done.returncode), done
        content: dict = json.loads(done.stdout)
        return content

    @property
    def map(self) -> str:
        """The file."""
        return (self.door.directory / "robots.map").read_text()

    def wait_map(self, text: str) -> None:
        """Wait until the file has this text."""
        assert until(lambda: self.map == text, seconds=PATIENCE), (self.map, self.kept.process.tail(30))

    def wait_reasons(self, *codes: str) -> None:
        """Wait until this is wrong, and nothing else."""
        assert until(lambda: self.kept.reasons() == [*codes], seconds=PATIENCE), self.kept.page("/status")

    def close(self) -> None:
        self.kept.stop()
        self.door.stop()

    def settle(self) -> None:
        """Have everything up, and all robots at the root."""
        for audited in (self.root, self.b):
            if not audited.plane.healthy():
                for component in audited.plane.pids():
                    planes.resume(audited.plane, component)
                audited.plane.start()
        for name in ("r1", "r2", "r3"):
            made = self.root.cloud.admin.ask("POST", ROBOTS_PATH, robot(name))
            assert made.status in (201, 409), made
            self.place(name, "root")
        self.kept.wait_ready()
        for name in ("r1", "r2", "r3"):
            self.wait_reaches(name, "root")
