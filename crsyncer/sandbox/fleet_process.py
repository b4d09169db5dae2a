"""Runs the fleet controller as a process of its own, for the demo, tests and benchmarks."""

import sys
from pathlib import Path

from crsyncer.sandbox.program import Program

_CRSYNCER = (sys.executable, "-m", "crsyncer.cli.main", "fleet")


def controller(directory: Path, *, kubeconfig: Path, name: str = "fleet", flags: tuple[str, ...] = ()) -> Program:
    """One `crsyncer fleet run`, not started yet. Its log is `NAME.log` in the directory."""
    command = [*_CRSYNCER, "run", "--cloud-kubeconfig", str(kubeconfig), "--listen", "off", *flags]
    return Program(command, log=directory / f"{name}.log")
