"""kubectl as an administrator of a sandbox types it."""

import subprocess
from pathlib import Path

import yaml

from crsyncer.core.model import Json
from crsyncer.sandbox.two_planes import Sandbox

_APPLY = ("apply", "--server-side", "--force-conflicts", "-f", "-")
"""Also over what another test has made."""


def kubectl(sandbox: Sandbox, cluster: str, *arguments: str | Path, given: str = "") -> str:
    """What kubectl says as that cluster's administrator; a warning of the server's is a failure, too."""
    command = [sandbox.programs.kubectl(), "--kubeconfig", sandbox.kubeconfig(cluster), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def admitted(sandbox: Sandbox, folder: Path) -> list[Json]:
    """The objects of a folder for Kustomize, which the cloud takes, and whose pods it admits.

    Strict validation refuses unknown fields; `restricted` is the API server's own judgement of a pod.
    """
    objects: list[Json] = [*yaml.safe_load_all(kubectl(sandbox, "cloud", "kustomize", folder))]
    places = [each for each in objects if each["kind"] in ("Namespace", "ServiceAccount", "PriorityClass")]
    kubectl(sandbox, "cloud", *_APPLY, given=yaml.safe_dump_all(places))
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    metadata = {**deployment["metadata"], "name": "a-pod"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": deployment["spec"]["template"]["spec"]}
    for given in ([pod], objects):
        told = kubectl(
            sandbox, "cloud", *_APPLY, "--dry-run=server", "--validate=strict", given=yaml.safe_dump_all(given)
        )
        assert len(told.splitlines()) == len(given)
    return objects
