"""Where kube-apiserver, etcd, kubectl and kine come from: the first of four places that works.

1. the directory in KUBEBUILDER_ASSETS, as in other Kubernetes projects
2. our cache, `$XDG_CACHE_HOME/crsyncer/control-plane/VERSION/`
3. the official archive for tests, checked by its digest (it has no kine)
4. a build from Go modules, minutes, once
"""

import fcntl
import hashlib
import http.client
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.errors import SyncError
from crsyncer.sandbox import golang
from crsyncer.sandbox.golang import KUBERNETES, Progress

REQUIRED = ("kube-apiserver", "etcd")
ARCHIVE_VERSION = "1.36.2"
ARCHIVE_URL = (
    "https://github.com/kubernetes-sigs/controller-tools/releases/download/"
    "envtest-v{version}/envtest-v{version}-{platform}.tar.gz"
)
ARCHIVE_SHA512 = {
    "linux-amd64": "ea743186c8a799f5cf8faf16969f86189d003cb7d130e0ac4b58789f1e5748dc"
    "f30ebe91c837a10d5ac415383da3e10b9e64d65785c938c23e739781cfb76f08",
    "linux-arm64": "2d72ee985a8e262a3c57dc9f7f0fd891f6a8c7bf7ebaa2db6dc6d8eac8ae2818"
    "1afe51c1f368b67756cdb40b10de9b205609e1726e5f27f7c6d824dd9c6649ac",
    "darwin-arm64": "9278f9e5af556b2f1f2d139769c1f0d717c7b4426917fdebdba898bcb725a916"
    "e4910d6160886194ff9be9589ea7c5c32c2b8ae0754703874b7c8ba8ddfc41ce",
}
_ARCHIVED = (*REQUIRED, "kubectl")
_CONNECT_TIMEOUT = 5.0  # seconds; many networks drop the packets instead of refusing
_WAITING_EVERY = 15.0  # seconds between two lines of progress
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def say(line: str) -> None:
    """The default progress: a line on stderr."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Binaries:
    """Programs that can be started."""

    kube_apiserver: Path
    etcd: Path
    kine: Path | None
    """None: there is no Go to build it, so the robot's plane runs on etcd as the cloud's does."""

    def kubectl(self, *, progress: Progress = say) -> Path:
        """kubectl, for users: that of the download or of the PATH, else it is built once. Raises SyncError."""
        root = _root()
        installed = shutil.which("kubectl")
        places = [self.kube_apiserver.parent, *([Path(installed).parent] if installed else ()), root / KUBERNETES]
        program = _first("kubectl", places)
        if not program.is_file():
            with _locked(root, progress) as built:
                if not program.is_file():
                    golang.build(["kubectl"], built, progress)
        return program


def cache_directory() -> Path:
    """The directory of files that can be made again, `$XDG_CACHE_HOME/crsyncer`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crsyncer"


def find(
    *,
    progress: Progress = say,
    cache: Path | None = None,
    download: Callable[[Path, Progress], bool] | None = None,
    build: Callable[[Sequence[str], Path, Progress], None] | None = None,
) -> Binaries:
    """The control plane's programs, downloaded or built if needed; `progress` is called with lines about slow steps.

    Two processes that need them at the same time build them once. Raises SyncError. `cache`, `download` and `build`
    are for tests.
    """
    download, build = download or _download, build or golang.build
    root = _root(cache)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    places = [*([Path(assets)] if assets else ()), root / ARCHIVE_VERSION, root / KUBERNETES]

    def missing() -> list[str]:
        # kine first: its C code keeps one core busy for half a minute, in which the other one compiles the rest.
        return [name for name in ("kine", *REQUIRED) if not _first(name, places).is_file()]

    if assets and not all((places[0] / name).is_file() for name in REQUIRED):
        raise SyncError(f"KUBEBUILDER_ASSETS={assets} lacks one of {', '.join(REQUIRED)}", hint="unset or correct it")
    if missing():
        with _locked(root, progress) as built:
            if missing() not in ([], ["kine"]) and not download(root / ARCHIVE_VERSION, progress):
                progress("control planes: about 5 min on 2 cores, the first time only")
                build(missing(), built, progress)
            if missing():
                try:
                    build(["kine"], built, progress)
                except SyncError as error:
                    reason = str(error).splitlines()[0]
                    progress(f"kine: not available, the robot's plane runs on etcd as well ({reason})")
    kine, kube_apiserver, etcd = (_first(name, places) for name in ("kine", *REQUIRED))
    return Binaries(kube_apiserver=kube_apiserver, etcd=etcd, kine=kine if kine.is_file() else None)


def _root(cache: Path | None = None) -> Path:
    return (cache or cache_directory()) / "control-plane"


def _first(name: str, places: Sequence[Path]) -> Path:
    """A program in the first place that has it, or else in the last, where it may be built."""
    return next((place / name for place in places if (place / name).is_file()), places[-1] / name)


def _download(target: Path, progress: Progress) -> bool:
    """Download the official archive into the directory `target`; False, after a line with the reason, if that fails."""
    here = f"{platform.system().lower()}-{_MACHINES.get(platform.machine(), platform.machine())}"
    if here not in ARCHIVE_SHA512:
        progress(f"control planes: no official archive for {here}")
        return False
    progress(f"control planes: trying the official archive of Kubernetes {ARCHIVE_VERSION}, about 70 MB")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".archive-") as directory:
        scratch = Path(directory)
        url = ARCHIVE_URL.format(version=ARCHIVE_VERSION, platform=here)
        try:
            with urllib.request.urlopen(url, timeout=_CONNECT_TIMEOUT) as reply:  # noqa: S310
                (scratch / "packed").write_bytes(reply.read())
        except (OSError, http.client.HTTPException) as error:
            progress(f"control planes: the official archive cannot be downloaded ({getattr(error, 'reason', error)})")
            return False
        if hashlib.sha512((scratch / "packed").read_bytes()).hexdigest() != ARCHIVE_SHA512[here]:
            progress("control planes: the official archive has another digest than expected, not used")
            return False
        with tarfile.open(scratch / "packed") as archive:
            for member in archive:
                name = Path(member.name).name
                if name in _ARCHIVED and (content := archive.extractfile(member)) is not None:
                    (scratch / name).write_bytes(content.read())
                    (scratch / name).chmod(0o755)
        target.mkdir(exist_ok=True)
        for name in _ARCHIVED:
            (scratch / name).replace(target / name)
    return True


@contextmanager
def _locked(root: Path, progress: Progress) -> Iterator[Path]:
    """Be the one process that makes programs, in the directory that this yields; each appears complete."""
    built = root / KUBERNETES
    built.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as file:

        def take() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        taken = take()
        while not taken:
            progress("control planes: another process builds them, waiting")
            taken = until(take, seconds=_WAITING_EVERY)
        yield built
        golang.discard_private(root)
