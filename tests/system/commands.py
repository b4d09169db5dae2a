"""Commands as an operator gives them, and the answers that tests wait for."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.system.bed import Bed, eventually


async def run(bed: Bed, *arguments: str, code: int = 0) -> str:
    """What a command says, on standard output and standard error, once it has ended with this code."""
    found, out, error = await bed.agent.crsyncer(*arguments)
    assert found == code, (arguments, out, error)
    assert "Traceback" not in error
    return out + error


async def ask(bed: Bed, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What a command says with --json."""
    content: dict[str, Any] = json.loads(await run(bed, *arguments, "--json", code=code))
    return content


def edit(file: Path, text: str) -> None:
    """Change a file as editors do: at no time is it empty, or half there, for whoever watches it."""
    whole = file.with_name(f"{file.name}.new")
    whole.touch(file.stat().st_mode)
    whole.write_text(text)
    whole.replace(file)


async def reloaded(bed: Bed) -> None:
    """Have the agent read its kubeconfigs again, as `systemctl reload` does, and wait until it has."""
    known = bed.agent.log.read_text().count("SIGHUP")
    os.kill(bed.agent.pid, signal.SIGHUP)

    async def read() -> bool:
        return bed.agent.log.read_text().count("SIGHUP") > known

    await eventually(read, what="the kubeconfigs are read again")


def access(bed: Bed) -> tuple[str, ...]:
    """The flags with which a person on the robot looks at both clusters."""
    kubeconfigs = {side: str(bed.directory / f"{side}.yaml") for side in ("cloud", "robot")}
    return tuple(part for side, path in kubeconfigs.items() for part in (f"--{side}-kubeconfig", path))
