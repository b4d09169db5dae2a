"""A throw-away machine: a Debian or Ubuntu root file system, booted by systemd-nspawn with systemd as process 1."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.delivery.followed import ROOT

_CONTROL = (ROOT / "packaging/debian/control").read_text().splitlines()
[_DEPENDS] = [line.removeprefix("Depends: ") for line in _CONTROL if line.startswith("Depends: ")]
DEPENDS = [each.split()[0] for each in _DEPENDS.split(", ")]
"""The packages that ours depends on."""
_PACKAGES = ["systemd-sysv", "dbus", "ca-certificates", *DEPENDS]
"""A system that boots, and what our package depends on."""
DISTRIBUTIONS = {
    "bookworm": (ROOT / "packaging/debian.sources", "/usr/share/keyrings/debian-archive-keyring.gpg"),
    "jammy": (
        "deb http://archive.ubuntu.com/ubuntu jammy main universe",
        "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
    ),
}
"""By name: where its packages come from, and the keys that they are signed with."""

_ANSWERED = 20.0
"""Seconds in which a machine that is up says so."""
_REBOOT = 133
"""How systemd-nspawn exits when its system asks for a reboot; who started it has to start it again."""


class Machine:
    """A machine in a directory. It uses the network of this one, so it reaches the planes of the sandbox."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.console = root.with_suffix(".console")
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._has_booted = False

    def boot(self) -> None:
        """Start it."""
        with self.console.open("ab") as console:
            self._nspawn = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--directory", self.root, "--register=no", "--keep-unit", "--boot"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def is_up(self) -> bool:
        """Whether it has booted; after its end for a reboot it is booted again.

        Skips the test where this machine does not let it boot at all.
        """
        assert self._nspawn is not None
        code = self._nspawn.poll()
        if code is None:
            asked = ("systemctl", "is-active", "multi-user.target")
            up = self._leader() != "" and self.run(*asked, seconds=_ANSWERED)[0] == 0
            self._has_booted |= up
            return up
        console = self.console.read_text(errors="replace")[-300:]
        if not self._has_booted:
            pytest.skip(f"systemd-nspawn cannot boot here: {console}")
        assert code == _REBOOT, console
        self.boot()
        return False

    def run(self, *command: str | Path, check: bool = False, seconds: float = 300.0) -> tuple[int, str]:
        """Run a command in it: exit code and output. `check`: raise AssertionError where it fails.

        The code is 124 where it takes too long: a machine that goes down stops its processes, and nsenter with them.
        """
        try:
            done = subprocess.run(
                ["nsenter", "--target", self._leader(), "-m", "-u", "-i", "-n", "-p", "-C", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds,
            )
            code, output = done.returncode, done.stdout.strip()
        except subprocess.TimeoutExpired:
            code, output = 124, f"no answer within {seconds} s"
        assert not check or code == 0, (command, output)
        return code, output

    def write(self, path: str, text: str, *, mode: int = 0o600) -> None:
        """Replace a file in it, as programs do that write a new one and rename it."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.new")
        new.write_text(text)
        new.chmod(mode)
        new.rename(file)

    def proc(self, pid: str) -> Path:
        """What the kernel tells of one of its processes, by the number that it has there."""
        return Path(f"/proc/{self._leader()}/root/proc/{pid}")

    def end(self) -> None:
        """Power it off."""
        if self._nspawn is None:
            return
        self._nspawn.send_signal(signal.SIGTERM)
        try:
            self._nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()

    def _leader(self) -> str:
        """Its process 1, as this machine numbers it; "" while there is none."""
        assert self._nspawn is not None
        pid = self._nspawn.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()


def make_machine(distribution: str, directory: Path, *, packages: Sequence[str] = ()) -> Machine:
    """A new machine, with more packages; all are downloaded once. Skips the test where a tool or a key is missing."""
    for tool in ("mmdebstrap", "systemd-nspawn", "nsenter"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here: apt install mmdebstrap systemd-container")
    if os.geteuid() != 0:
        pytest.skip("only root can boot a machine")
    sources, keys = DISTRIBUTIONS[distribution]
    if not Path(keys).exists():
        pytest.skip(f"no {keys} here to check {distribution}'s packages with")
    archive = ROOT / f".venv/roots/{'-'.join([distribution, *packages])}.tar"
    if not archive.exists():
        archive.parent.mkdir(exist_ok=True)
        unfinished = archive.with_suffix(".new.tar")
        make = [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={','.join([*_PACKAGES, *packages])}",
            f"--keyring={keys}",
        ]
        subprocess.run([*make, distribution, unfinished, str(sources)], check=True, timeout=1200)
        unfinished.rename(archive)
    root = directory / distribution
    root.mkdir()
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", root], check=True, timeout=300)
    return Machine(root)
