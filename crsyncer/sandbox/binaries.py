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

Builder = Callable[[Sequence[str], Path, Progress], None]

REQUIRED = ("kube-apiserver", "etcd")
ARCHIVE_VERSION = "1.36.2"
ARCHIVE_URL = (
    "https://github.com/kubernetes-sigs/controller-tools/releases/download/"
    "envtest-v{version}/envtest-v{version}-{system}-{machine}.tar.gz"
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
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


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
        """kubectl, for users; built at its first use if the download did not contain it.

        Raises SyncError.
        """
        root = _root()
        beside, made = self.kube_apiserver.with_name("kubectl"), root / KUBERNETES / "kubectl"
        if not (beside.is_file() or made.is_file()):
            made.parent.mkdir(parents=True, exist_ok=True)
            with _locked(root / "lock", progress):
                if not made.is_file():
                    golang.build(["kubectl"], made.parent, progress)
                    golang.discard_private(root)
        return beside if beside.is_file() else made


def cache_directory() -> Path:
    """The directory of files that can be made again, `$XDG_CACHE_HOME/crsyncer`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crsyncer"


def find(
    *,
    progress: Progress = say,
    cache: Path | None = None,
    download: Callable[[Path, Progress], bool] | None = None,
    build: Builder | None = None,
) -> Binaries:
    """The control plane's programs, downloaded or built if needed; `progress` is called with lines about slow steps.

    Two processes that need them at the same time build them once. Raises SyncError. `cache`, `download` and `build`
    are for tests.
    """
    root = _root(cache)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and not _complete(Path(assets)):
        raise SyncError(f"KUBEBUILDER_ASSETS={assets} lacks one of {', '.join(REQUIRED)}", hint="unset or correct it")
    found = Path(assets) if assets else _cached(root)
    if found is None or _kine(found, root) is None:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / "lock", progress):
            found = _make(found, root, progress, download or _download, build or golang.build)
    return Binaries(
        kube_apiserver=found / "kube-apiserver",
        etcd=found / "etcd",
        kine=_kine(found, root),
    )


def _make(
    found: Path | None,
    root: Path,
    progress: Progress,
    download: Callable[[Path, Progress], bool],
    build: Builder,
) -> Path:
    """Under the lock: look again, then download or build what is missing. Every file appears complete or not at all."""
    found = found or _cached(root)
    if found is None:
        archive = root / ARCHIVE_VERSION
        if download(archive, progress):
            found = archive
        else:
            found = root / KUBERNETES
            found.mkdir(exist_ok=True)
            progress("control planes: about 5 min on 2 cores, the first time only")
            # kine first: its C code keeps one core busy for half a minute, in which the other one compiles the rest.
            build([name for name in ("kine", *REQUIRED) if not (found / name).exists()], found, progress)
    if _kine(found, root) is None:
        target = root / KUBERNETES
        target.mkdir(exist_ok=True)
        try:
            build(["kine"], target, progress)
        except SyncError as error:
            progress(f"kine: not available, the robot's plane runs on etcd as well ({str(error).splitlines()[0]})")
    golang.discard_private(root)
    return found


def _root(cache: Path | None = None) -> Path:
    return (cache or cache_directory()) / "control-plane"


def _complete(directory: Path) -> bool:
    return all((directory / name).is_file() for name in REQUIRED)


def _cached(root: Path) -> Path | None:
    return next((root / version for version in (KUBERNETES, ARCHIVE_VERSION) if _complete(root / version)), None)


def _kine(found: Path, root: Path) -> Path | None:
    return next((path for path in (found / "kine", root / KUBERNETES / "kine") if path.is_file()), None)


def _download(target: Path, progress: Progress) -> bool:
    """Download the official archive into the directory `target`; False, after a line with the reason, if that fails."""
    system, machine = platform.system().lower(), _MACHINES.get(platform.machine(), platform.machine())
    digest = ARCHIVE_SHA512.get(f"{system}-{machine}")
    if digest is None:
        progress(f"control planes: no official archive for {system}-{machine}")
        return False
    url = ARCHIVE_URL.format(version=ARCHIVE_VERSION, system=system, machine=machine)
    progress(f"control planes: trying the official archive of Kubernetes {ARCHIVE_VERSION}, about 70 MB")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".archive-") as scratch:
        packed = Path(scratch) / "archive"
        seen = hashlib.sha512()
        try:
            with urllib.request.urlopen(url, timeout=_CONNECT_TIMEOUT) as reply, packed.open("wb") as file:  # noqa: S310
                while chunk := reply.read(1 << 20):
                    seen.update(chunk)
                    file.write(chunk)
        except (OSError, http.client.HTTPException) as error:
            progress(f"control planes: the official archive cannot be downloaded ({getattr(error, 'reason', error)})")
            return False
        if seen.hexdigest() != digest:
            progress("control planes: the official archive has another digest than expected, not used")
            return False
        unpacked = Path(scratch) / "unpacked"
        unpacked.mkdir()
        with tarfile.open(packed) as archive:
            for member in archive:
                name = Path(member.name).name
                content = archive.extractfile(member) if name in _ARCHIVED else None
                if content is not None:
                    (unpacked / name).write_bytes(content.read())
                    (unpacked / name).chmod(0o755)
        target.mkdir(exist_ok=True)
        for name in _ARCHIVED:
            (unpacked / name).replace(target / name)
    return True


@contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[None]:
    with path.open("w") as file:

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
        yield
