"""Other Python interpreters than that of the tests, each with the dependencies: the package's and this machine's.

What has to be fetched for them is kept in `.venv`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.delivery.followed import ROOT

SUPPORTED = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
"""The versions that the project's metadata names."""
_DEBIAN = ROOT / ".venv/debian"
_PACKAGES = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib")
_NEEDED = "import asyncio, ctypes, sqlite3, ssl"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can run crsyncer's sources."""

    program: Path
    packages: Path
    """Where the dependencies are."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which it finds the sources and the dependencies."""
        return {"PYTHONPATH": f"{ROOT}:{self.packages}", "PYTHONDONTWRITEBYTECODE": "1"}

    def crsyncer(self, *arguments: str | Path) -> tuple[int, str]:
        """Run a command of crsyncer with it: exit code and output."""
        command = [self.program, "-m", "crsyncer.cli.main", *arguments]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, env=environment
        )
        return done.returncode, done.stdout


def packaged() -> Interpreter:
    """The interpreter that the package brings: Debian 12's. Skips the test where there is none and apt finds none."""
    ours = Path("/usr/bin/python3.11")
    if _is_debian_12() and _works(ours):
        return _alone(ours, "3.11")
    fetched = _DEBIAN / "usr/bin/python3.11"
    if not _works(fetched):
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip("no Python of Debian 12 here, and no apt-get and dpkg-deb to fetch it")
        arch = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
        unpack: list[str | Path] = [ROOT / "packaging/unpack-debian.sh", arch, _DEBIAN, *_PACKAGES]
        done = subprocess.run(unpack, capture_output=True, text=True, timeout=600)
        if done.returncode != 0 or not _works(fetched):
            pytest.skip(f"no Python of Debian 12 here, and it cannot be fetched: {done.stderr[-300:]}")
    return _alone(fetched, "3.11")


def found(version: str) -> Interpreter:
    """An interpreter of this version on the PATH or of pyenv; skips the test where there is none."""
    roots = (Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions").glob(f"{version}.*/bin")
    for folder in (*map(Path, os.get_exec_path()), *sorted(roots)):
        program = folder / f"python{version}"
        if _works(program, version):
            return _alone(program, version)
    pytest.skip(f"no Python {version} on the PATH or of pyenv here")


def _alone(program: Path, version: str) -> Interpreter:
    """An interpreter that does not see what else is installed for it on this machine, as the package's does not."""
    environment = ROOT / ".venv/alone" / program.relative_to("/")
    (environment / "bin").mkdir(parents=True, exist_ok=True)
    (environment / "pyvenv.cfg").write_text(f"home = {program.parent}\ninclude-system-site-packages = false\n")
    python = environment / "bin/python"
    python.unlink(missing_ok=True)
    python.symlink_to(program)
    return Interpreter(python, _dependencies(program, version))


def _is_debian_12() -> bool:
    try:
        release = Path("/etc/os-release").read_text()
    except OSError:
        return False
    return "\nID=debian\n" in f"\n{release}" and '\nVERSION_ID="12"\n' in f"\n{release}"


def _works(program: Path, version: str = "") -> bool:
    """Whether it is there, has the modules of its standard library that we need, and is of this version."""
    script = f"{_NEEDED}; import sys; assert '%d.%d' % sys.version_info[:2] == {version!r} or not {version!r}"
    return program.exists() and subprocess.run([program, "-I", "-c", script], capture_output=True).returncode == 0


def _dependencies(program: Path, version: str) -> Path:
    """The dependencies for an interpreter, by the hashes of requirements.lock: those of the tests, or fetched once."""
    if version == "{}.{}".format(*sys.version_info[:2]):
        return Path(pytest.__file__).parents[1]
    packages = ROOT / ".venv/packages" / version
    if not packages.exists():
        unfinished = packages.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        install: list[str | Path] = [
            *(sys.executable, "-m", "pip", "--python", program, "install", "--quiet", "--disable-pip-version-check"),
            *("--target", unfinished, "--no-deps", "--require-hashes", "--requirement", ROOT / "requirements.lock"),
        ]
        subprocess.run(install, check=True, timeout=900)
        unfinished.rename(packages)
    return packages


POLICY = """\
apiVersion: crsyncer.cloudrobotics.com/v1alpha1
kind: SyncPolicy
metadata: {name: orders}
spec:
  resource: {group: lab.example.com, resource: orders}
  mutations:
    down:
    - {path: /spec/url, regex: {pattern: "^http:(.*)", replacement: "https:$1"}}
    - {path: /spec/count, cel: "value * 2"}
"""
"""A policy that wants RE2 and CEL."""
ORDER = """\
apiVersion: lab.example.com/v1
kind: Order
metadata: {name: a}
spec:
  url: http://cloud
  count: 4
"""


def tries_expressions(run: Callable[..., tuple[int, str]], policy: str | Path, order: str | Path) -> None:
    """Assert that `crsyncer mutate` compiles a policy with RE2 and CEL; `run` runs crsyncer: exit code and output."""
    code, output = run("mutate", "--policy", policy, order)
    assert code == 0, output
    assert {"+  url: https://cloud", "+  count: 8"} <= {*output.splitlines()}, output
