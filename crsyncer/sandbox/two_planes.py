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
from crsyncer.sandbox.golang import Progress
from crsyncer.sandbox.plane import Plane, start_together
from crsyncer.sandbox.process import recorded, write_private

_PROGRAMS = "programs.json"
_PREFIX = "crsyncer-sandbox-"


class Sandbox:
    """Two running control planes in a directory. As a context manager it takes them down at the end."""

    def __init__(self, directory: Path, *, programs: Binaries, detached: bool = False, temporary: bool = False) -> None:
        self.directory = directory
        self.programs = programs
        self.agent_home = directory / "agent"
        """Where an agent may be started: `down` ends it, and removes this directory."""
        self._temporary = temporary
        stores = {"cloud": programs.etcd, "robot": programs.kine or programs.etcd}
        self.cloud, self.robot = (
            Plane(name, directory / name, apiserver=programs.kube_apiserver, datastore=store, detached=detached)
            for name, store in stores.items()
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
            directory = temporary_directory()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if cls.attach(directory) is not None:
            raise SyncError(f"a sandbox is already up in {directory}", hint="crsyncer sandbox down")
        sandbox = cls(directory.resolve(), programs=programs, detached=detached, temporary=temporary)
        write_private(sandbox.directory / _PROGRAMS, json.dumps(asdict(programs), default=str))
        try:
            start_together(sandbox.planes)
            for plane in sandbox.planes:
                plane.kubeconfig(sandbox.kubeconfig(plane.name))
        except BaseException as error:
            for plane in sandbox.planes:
                plane.stop(graceful=False)
            if temporary and not isinstance(error, SyncError):  # which names a log in there
                shutil.rmtree(directory, ignore_errors=True)
            raise
        return sandbox

    @classmethod
    def attach(cls, directory: Path) -> "Sandbox | None":
        """The detached sandbox that runs in a directory, or None. Builds and starts nothing."""
        try:
            kept = json.loads((directory / _PROGRAMS).read_text())
        except (OSError, ValueError):
            return None
        programs = Binaries(**{name: path and Path(path) for name, path in kept.items()})
        sandbox = cls(directory.resolve(), programs=programs, detached=True)
        return sandbox if any(plane.pids() for plane in sandbox.planes) else None

    @property
    def planes(self) -> tuple[Plane, Plane]:
        """Cloud, robot."""
        return self.cloud, self.robot

    def kubeconfig(self, name: str) -> Path:
        """The administrator's kubeconfig of "cloud" or "robot"."""
        return self.directory / f"{name}.kubeconfig"

    def down(self, *, keep: bool = False) -> None:
        """End every process and remove what `up` made, or `keep` data and logs for a later `up` in this directory."""
        agents = recorded(self.agent_home)
        for process in agents.values():
            process.stop()
        for plane in self.planes:
            plane.stop(graceful=keep)  # data that is thrown away is not worth the seconds of a graceful end
        (self.directory / _PROGRAMS).unlink(missing_ok=True)
        if keep:
            return
        if agents:
            shutil.rmtree(self.agent_home, ignore_errors=True)
        for plane in self.planes:
            shutil.rmtree(plane.directory, ignore_errors=True)
            self.kubeconfig(plane.name).unlink(missing_ok=True)
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()


def temporary_directory() -> Path:
    """A new directory for planes. Removes those of processes that were killed, 100 MB each."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = directory.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path(f"/proc/{owner}").exists():
            with suppress(OSError):
                shutil.rmtree(directory)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
