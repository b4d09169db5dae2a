"""Runs the commands of the documents, as they are written, on both planes."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from crsyncer.sandbox.resource import CLUSTER_ROLE, Resource
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.system.bed import eventually

ROOT = Path(__file__).parents[2]
NAME, HOME = "r1", "robot-r1"
"""A robot, and its namespace on both sides."""
GOAL = Resource("lab.example.com", "v1", "goals", "Goal")
FINDING = Resource("lab.example.com", "v1", "findings", "Finding")


class Clusters:
    """Both planes with what the documents tell an operator to apply, and the agent with no more rights than that."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        tools = folder / "bin"
        tools.mkdir()
        (tools / "kubectl").symlink_to(sandbox.programs.kubectl())
        (tools / "crsyncer").symlink_to(Path(sys.executable).with_name("crsyncer"))
        self._path = f"{tools}:{os.environ['PATH']}"

    def shell(self, script: str, *, cluster: str = "") -> str:
        """Run a document's commands as that cluster's administrator, or both's; in a copy, for they leave files."""
        plane = self.sandbox.cloud
        names = [cluster] if cluster else ["cloud", "robot"]
        done = subprocess.run(
            ["/bin/sh", "-ec", script],
            cwd=self.folder / "checkout",
            capture_output=True,
            text=True,
            timeout=180,
            env={
                "PATH": self._path,
                "HOME": str(self.folder),
                "KUBECONFIG": ":".join(str(self.sandbox.kubeconfig(name)) for name in names),
                "SERVER": plane.server,
                "CA": str(plane.ca_file),
            },
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def set_up_cloud(self, api: Api) -> None:
        """Follow the cloud's document, and wait until the roles of the kinds are gathered into one."""
        await asyncio.to_thread(self.shell, commands("cloud/README.md"), cluster="cloud")

        async def gathered() -> bool:
            roles = (await api.list(CLUSTER_ROLE))["items"]
            return all(each.get("rules") for each in roles if each["metadata"]["name"] == "crsyncer:robot")

        await eventually(gathered, what="the rules of crsyncer:robot")


def commands(document: str, number: int = 0) -> str:
    """A block of commands in a document, the first or a later one."""
    found: list[str] = re.findall(r"```sh\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    return found[number]


def copy_of_the_documents(folder: Path) -> Path:
    """Where documents' commands run: they leave files."""
    checkout = folder / "checkout"
    checkout.mkdir()
    for each in ("cloud", "robot"):
        shutil.copytree(ROOT / each, checkout / each)
    return checkout
