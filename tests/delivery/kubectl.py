"""kubectl as an administrator of a sandbox types it."""

import subprocess
from pathlib import Path

from crsyncer.sandbox.two_planes import Sandbox


def kubectl(sandbox: Sandbox, cluster: str, *arguments: str | Path, given: str = "") -> str:
    """What kubectl says as that cluster's administrator; a warning of the server's is a failure, too."""
    command = [sandbox.programs.kubectl(), "--kubeconfig", sandbox.kubeconfig(cluster), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
