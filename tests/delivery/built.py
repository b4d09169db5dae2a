"""The packages and images of this commit, built where nobody has, and what they are given to reach a plane."""

import base64
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from crsyncer import __version__
from crsyncer.sandbox.plane import Plane
from tests.delivery.followed import ROOT

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
DEB = ROOT / f"dist/crsyncer_{__version__}_{ARCHITECTURE}.deb"
IMAGE = f"crsyncer:{__version__}"


def build(script: str, *tools: str) -> None:
    """Run a script of packaging/; skips the test where a tool for it is missing."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here, and nobody has run packaging/{script}")
    subprocess.run([ROOT / "packaging" / script], check=True, timeout=1800)


def built_deb() -> Path:
    """The agent's package."""
    committed = int(subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT))
    if not DEB.exists() or DEB.stat().st_mtime < committed:
        build("deb.sh", "apt-get", "dpkg-deb")
    return DEB


def built_image(deb: Path) -> str:
    """The agent's image, and beside it the door's."""
    if not (shutil.which("podman") and shutil.which("runc")):
        pytest.skip("no podman here: apt install podman runc")
    archive = ROOT / f"dist/crsyncer-image_{__version__}_{ARCHITECTURE}.tar"
    if not archive.exists() or archive.stat().st_mtime < deb.stat().st_mtime:
        build("image.sh")
    return IMAGE


def kubeconfig_of(plane: Plane, path: Path) -> str:
    """Its administrator's kubeconfig with the CA in it: the machine does not see files of this one."""
    content = yaml.safe_load(plane.kubeconfig(path).read_text())
    for cluster in content["clusters"]:
        ca_file = Path(cluster["cluster"].pop("certificate-authority"))
        cluster["cluster"]["certificate-authority-data"] = base64.b64encode(ca_file.read_bytes()).decode()
    return yaml.safe_dump(content)
