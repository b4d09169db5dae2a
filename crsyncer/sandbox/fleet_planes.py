"""Starts and stops a cloud, its shards and robots, each with an API server of its own: the demo's fleets."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crsyncer.errors import SyncError
from crsyncer.sandbox import binaries
from crsyncer.sandbox.golang import Progress
from crsyncer.sandbox.plane import Plane, start_together
from crsyncer.sandbox.two_planes import temporary_directory


@dataclass(frozen=True, slots=True)
class FleetPlanes:
    """Running control planes in a directory, in which other programs may keep their files."""

    directory: Path
    cloud: Plane
    robots: Mapping[str, Plane]
    """By the name of the robot."""
    shards: Mapping[str, Plane]
    """By the name of the shard; the root is `cloud`."""


@contextmanager
def fleet_planes(*robots: str, shards: Sequence[str] = (), progress: Progress = binaries.say) -> Iterator[FleetPlanes]:
    """Start all planes at the same time; about 10 s on two cores for three robots. All is gone after the block.

    Raises SyncError, which names a log in the directory: that stays then.
    """
    programs = binaries.find(progress=progress)
    directory = temporary_directory()

    def plane(name: str, datastore: Path) -> Plane:
        return Plane(name, directory / name, apiserver=programs.kube_apiserver, datastore=datastore)

    cloud = plane("cloud", programs.etcd)
    others = {name: plane(name, programs.etcd) for name in shards}
    there = {name: plane(name, programs.kine or programs.etcd) for name in robots}
    planes = (cloud, *others.values(), *there.values())
    is_useful = False
    try:
        try:
            start_together(planes)
        except SyncError:
            is_useful = True
            raise
        yield FleetPlanes(directory, cloud, there, others)
    finally:
        for each in planes:
            each.stop(graceful=False)
        if not is_useful:
            shutil.rmtree(directory, ignore_errors=True)
