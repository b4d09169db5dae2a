"""Runs commands as a shell does, without an agent or a cluster."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from crsyncer.cli.main import main

CLI = [sys.executable, "-m", "crsyncer.cli.main"]


def environment(**more: str) -> dict[str, str]:
    """The variables of this process without anything that configures an agent."""
    configuring = ("CRSYNCER_", "KUBERNETES_", "STATE_DIRECTORY", "RUNTIME_DIRECTORY")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(configuring) or k == "CRSYNCER_LOG_LEVEL"}
    return clean | more


def crsyncer(*arguments: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
    """What a command says, in a process of its own."""
    return subprocess.run(
        [*CLI, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd, env=environment(**variables)
    )


def in_process(*arguments: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
    """The same within this process, which takes a fraction of the time. Not for threads, nor while a loop runs.

    What runs on, as an agent or a controller, changes its process, and gets one of its own all the same.
    """
    if "run" in arguments:
        return crsyncer(*arguments, cwd=cwd, **variables)
    out, err = io.StringIO(), io.StringIO()
    with (
        open(os.devnull) as nothing,
        patch.dict(os.environ, environment(**variables), clear=True),
        patch.object(sys, "stdin", nothing),
        contextlib.chdir(cwd or "."),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code: object = main([str(each) for each in arguments])
        except SystemExit as ended:
            code = ended.code
    return subprocess.CompletedProcess(arguments, int(str(code or 0)), out.getvalue(), err.getvalue())


def write_kubeconfig(path: Path) -> Path:
    """A kubeconfig of a cluster that is not there, as two contexts."""
    content = {
        "current-context": "cloud",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("cloud", "robot")],
        "users": [{"name": "u", "user": {"token": "s3cret-t0ken"}}],
    }
    path.write_text(json.dumps(content))
    return path
