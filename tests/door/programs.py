"""HAProxy, the program: this machine's, or Debian's, fetched once into `.venv` as other programs of Debian are."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.delivery.followed import ROOT

_DEBIAN = ROOT / ".venv/haproxy"
_PACKAGES = (
    *("haproxy", "libcrypt1", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1", "libpcre2-8-0", "libssl3"),
    *("libsystemd0", "libcap2", "libgcrypt20", "libgpg-error0", "liblzma5", "libzstd1", "liblz4-1", "libstdc++6"),
    "libgcc-s1",
)


def haproxy() -> Path:
    """The program. Skips the test where there is none and apt finds none."""
    installed = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if installed is not None and _works(Path(installed)):
        return Path(installed)
    program = _DEBIAN / "run/haproxy"
    if not _works(program):
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip("no HAProxy here, and no apt-get and dpkg-deb to fetch it")
        arch = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
        unpack: list[str | Path] = [ROOT / "packaging/unpack-debian.sh", arch, _DEBIAN, *_PACKAGES]
        done = subprocess.run(unpack, capture_output=True, text=True, timeout=600)
        _write_wrapper(program)
        if done.returncode != 0 or not _works(program):
            pytest.skip(f"no HAProxy here, and it cannot be fetched: {done.stderr[-300:]}")
    return program


def _write_wrapper(program: Path) -> None:
    """A script of the program's name that finds the libraries beside it."""
    program.parent.mkdir(parents=True, exist_ok=True)
    folders = sorted({str(each.parent) for each in _DEBIAN.rglob("*.so.*")})
    program.write_text(
        f'#!/bin/sh\nLD_LIBRARY_PATH={":".join(folders)} exec {_DEBIAN}/usr/sbin/haproxy "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)


def _works(program: Path) -> bool:
    return program.exists() and subprocess.run([program, "-v"], capture_output=True).returncode == 0
