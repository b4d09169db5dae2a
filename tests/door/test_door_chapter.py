"""The commands of FLEET.md's chapter on the front door, run as they are written, with other places."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until
from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.sandbox.free_ports import free_ports
from tests.delivery.command_line import environment
from tests.delivery.followed import ROOT
from tests.door.conftest import ROBOTS_PATH, Audited
from tests.door.open_door import OpenDoor
from tests.door.programs import haproxy

CHAPTER = (ROOT / "FLEET.md").read_text().partition("\n## The front door\n")[2]
PLACES = {"/etc/crsyncer-door": "etc/crsyncer-door", "/run/haproxy-master.sock": "run/haproxy-master.sock"}


def commands(heading: str) -> list[str]:
    """The lines of the first block below a heading of the chapter, without what is said beside them."""
    block = CHAPTER.partition(f"### {heading}\n")[2].partition("```sh\n")[2].partition("```")[0]
    return [re.sub(r"\s+#.*", "", line) for line in block.splitlines()]


class Machine:
    """A directory with the files that the chapter speaks of."""

    def __init__(self, home: Path, root: Audited, b: Audited) -> None:
        self.home = home
        (home / "run").mkdir()
        self.door = OpenDoor(home / "made", root.plane.kubeconfig(home / "root.yaml"))
        b.plane.kubeconfig(home / "b.yaml")
        (home / "door.pem").write_text(self.door.certificate.read_text())
        metrics = free_ports(1)[0]
        self.environment = environment(
            PATH=f"{Path(sys.executable).parent}:{haproxy().parent}:{os.environ['PATH']}",
            CRSYNCER_DOOR_DIRECTORY=self._placed("/etc/crsyncer-door"),
            CRSYNCER_DOOR_SOCKET=self._placed("/run/haproxy-master.sock"),
            CRSYNCER_DOOR_BIND=f"127.0.0.1:{self.door.port}",
            CRSYNCER_LISTEN=f"127.0.0.1:{metrics}",
        )
        self.running: list[subprocess.Popen[bytes]] = []

    def _placed(self, text: str) -> str:
        for place, ours in PLACES.items():
            text = text.replace(place, str(self.home / ours))
        return text

    def run(self, line: str) -> tuple[int, str]:
        """Run a command, or start it where it goes on in the background: exit code and output."""
        words = ["/bin/sh", "-ec", f"exec {self._placed(line.removesuffix('&'))}"]
        if line.endswith("&"):
            with (self.home / "log").open("ab") as log:
                self.running.append(
                    subprocess.Popen(words, cwd=self.home, env=self.environment, stdout=log, stderr=log)
                )
            return 0, ""
        done = subprocess.run(words, cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def close(self) -> None:
        """End what goes on."""
        for each in self.running:
            each.terminate()
        for each in self.running:
            each.wait(30)


@pytest.fixture
def machine(audited: Audited, shard_b: Audited, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, audited, shard_b)
    yield made
    made.close()


def test_the_lines_of_the_chapter_open_a_door_and_enrol_a_robot(machine: Machine, audited: Audited):
    *opening, doctor, status = commands("The door in ten lines")
    for line in opening:
        code, said = machine.run(line)
        assert code == 0, said
    assert until(lambda: machine.run(status)[0] == 0, seconds=60), machine.run(status)
    assert "HEALTHY: 3 robots at 1 shard." in machine.run(status)[1]
    assert machine.run(doctor)[0] in (0, 10)  # the certificate lasts two days
    token = audited.cloud.robots["r1"].token
    assert until(lambda: machine.door.ask("/version", token).status == 200, seconds=60)
    try:
        says, sets, shown = commands("Enrolling robots")
        assert "nothing was changed" in machine.run(says)[1]
        assert machine.run(sets) == (0, "".join(f"robot {name}: {SHARD_LABEL}=b\n" for name in ("r1", "r2", "r3")))
        assert "robot r1: " in machine.run(shown)[1]
    finally:
        for name in ("r1", "r2", "r3"):
            body = {"metadata": {"labels": {SHARD_LABEL: None}}}
            kind = {"Content-Type": "application/merge-patch+json"}
            assert audited.cloud.admin.ask("PATCH", f"{ROBOTS_PATH}/{name}", body, **kind).status == 200
