"""Starts and stops both planes: the cloud on etcd, the robot on kine, the datastore of k3s."""

import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from crsyncer.errors import SyncError
from crsyncer.sandbox import binaries
from crsyncer.sandbox.binaries import Binaries, say
from crsyncer.sandbox.datastore import etcd, kine
from crsyncer.sandbox.golang import Progress
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.process import Process

_STATE = "sandbox.json"
_PREFIX = "crsyncer-sandbox-"


class Sandbox:
    """Two running control planes in a directory. As a context manager it takes them down at the end."""

    def __init__(self, directory: Path, *, programs: Binaries, detached: bool = False, temporary: bool = False) -> None:
        self.directory = directory
        self.programs = programs
        self._temporary = temporary
        self._others: list[Process] = []
        on_robot = kine(programs.kine) if programs.kine else etcd(programs.etcd)
        self.cloud, self.robot = (
            Plane(
                name,
                directory / name,
                apiserver=programs.kube_apiserver,
                datastore=datastore,
                detached=detached,
            )
            for name, datastore in (("cloud", etcd(programs.etcd)), ("robot", on_robot))
        )

    @classmethod
    def up(cls, directory: Path | None = None, *, detached: bool = False, progress: Progress = say) -> "Sandbox":
        """Start both planes at the same time; about 6 s on two cores once the programs are there.

        They end with this process, unless `detached`: then `attach` finds them again by the directory, which holds
        their data, logs and kubeconfigs. Without one, a temporary directory is used and removed. Raises SyncError.
        """
        programs = binaries.find(progress=progress)
        temporary = directory is None
        if directory is None:
            _sweep()
        place = directory or Path(tempfile.mkdtemp(prefix=_PREFIX))
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if cls.attach(place) is not None:
            raise SyncError(f"a sandbox is already up in {place}", hint="crsyncer sandbox down")
        sandbox = cls(place.resolve(), programs=programs, detached=detached, temporary=temporary)
        try:
            for plane in (sandbox.cloud, sandbox.robot):
                plane.launch()
            for plane in (sandbox.cloud, sandbox.robot):
                plane.wait_ready()
                plane.kubeconfig(sandbox.directory / f"{plane.name}.kubeconfig")
        except BaseException as error:
            for plane in sandbox.planes:
                plane.stop(graceful=False)
            if temporary and not isinstance(error, SyncError):  # which names a log in there
                shutil.rmtree(place, ignore_errors=True)
            raise
        sandbox._save()
        return sandbox

    @classmethod
    def attach(cls, directory: Path) -> "Sandbox | None":
        """The sandbox that runs in a directory, or None. Builds and starts nothing."""
        try:
            state = json.loads((directory / _STATE).read_text())
        except (OSError, ValueError):
            return None
        paths = {key: Path(value) if value else None for key, value in state["programs"].items()}
        sandbox = cls(directory.resolve(), programs=Binaries(**paths), detached=True)  # type: ignore[arg-type]
        for plane in (sandbox.cloud, sandbox.robot):
            plane.adopt(state["pids"].get(plane.name, {}))
        for name, pid in state["others"].items():
            home = sandbox.directory / name
            sandbox._others.append(Process(pid=pid, home=home, log=home / "log"))
        return sandbox if sandbox.cloud.pids() or sandbox.robot.pids() else None

    @property
    def planes(self) -> tuple[Plane, Plane]:
        """Cloud, robot."""
        return self.cloud, self.robot

    def kubeconfig(self, name: str) -> Path:
        """The administrator's kubeconfig of "cloud" or "robot"."""
        return self.directory / f"{name}.kubeconfig"

    def add_process(self, process: Process) -> None:
        """Let `down` also end this process and remove its directory, which is inside the sandbox's."""
        self._others.append(process)
        self._save()

    def down(self, *, keep: bool = False) -> None:
        """End every process and remove what `up` made, or `keep` data and logs for a later `up` in this directory."""
        for process in self._others:
            process.stop()
        for plane in self.planes:
            plane.stop(graceful=keep)  # data that is thrown away is not worth the seconds of a graceful end
        (self.directory / _STATE).unlink(missing_ok=True)
        if keep:
            return
        for process in self._others:
            shutil.rmtree(process.home, ignore_errors=True)
        for plane in self.planes:
            shutil.rmtree(plane.directory, ignore_errors=True)
            self.kubeconfig(plane.name).unlink(missing_ok=True)
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _save(self) -> None:
        state = {
            "programs": {key: str(path) if path else None for key, path in asdict(self.programs).items()},
            "owner": os.getpid(),
            "pids": {plane.name: plane.pids() for plane in self.planes},
            "others": {process.home.name: process.pid for process in self._others},
        }
        scratch = self.directory / f".{_STATE}.new"
        scratch.write_text(json.dumps(state))
        scratch.replace(self.directory / _STATE)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()


def _sweep() -> None:
    """Remove the temporary directories of processes that were killed, 100 MB each."""
    for state in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_STATE}"):
        with suppress(OSError, ValueError, KeyError):
            if not Path(f"/proc/{json.loads(state.read_text())['owner']}").exists():
                shutil.rmtree(state.parent)
