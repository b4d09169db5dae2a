"""`crsyncer doctor`, run on a bed, and what it finds."""

import json
from typing import Any

from tests.system.bed import ROBOT, Bed
from tests.system.commands import access

Check = dict[str, Any]
LOCAL = ("disk", "store", "agent")


async def doctor(bed: Bed, *arguments: str, robot: str = ROBOT) -> tuple[int, dict[str, Any]]:
    """The exit code and the report."""
    name = ("--robot-name", robot) if robot else ()
    code, out, error = await bed.agent.crsyncer("doctor", "--json", *access(bed), *name, *arguments)
    assert error == "", error
    content = json.loads(out)
    assert content["schema"] == "crsyncer.doctor/v1"
    return code, content


def checks(content: dict[str, Any], name: str = "", side: str | None = "") -> list[Check]:
    """The checks of a name and side; of all, where none is given."""
    return [c for c in content["checks"] if name in ("", c["name"]) and side in ("", c["side"])]


def bad(content: dict[str, Any], *, local: bool = False) -> list[tuple[str | None, str, str]]:
    """Side, name and state of the checks that are not ok; what this machine's disk is like is not a test's matter."""
    return [
        (c["side"], c["name"], c["state"])
        for c in content["checks"]
        if c["state"] != "ok" and (local or c["name"] not in LOCAL)
    ]
