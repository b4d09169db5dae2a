"""Runs the fleet controller and its commands as processes of their own, for the demo, tests and benchmarks."""

import sys
from pathlib import Path

from crsyncer.sandbox.program import Program, outcome

_CRSYNCER = (sys.executable, "-m", "crsyncer.cli.main", "fleet")


def controller(directory: Path, *, kubeconfig: Path, name: str = "fleet", flags: tuple[str, ...] = ()) -> Program:
    """One `crsyncer fleet run`, not started yet. Its log is `NAME.log` in the directory."""
    command = [*_CRSYNCER, "run", "--cloud-kubeconfig", str(kubeconfig), "--listen", "off", *flags]
    return Program(command, log=directory / f"{name}.log")


async def fleet_command(kubeconfig: Path, *arguments: str) -> tuple[int, str, str]:
    """Run another command of `crsyncer fleet` on a cloud: exit code, standard output, standard error."""
    return await outcome([*_CRSYNCER, *arguments, "--cloud-kubeconfig", str(kubeconfig)])
