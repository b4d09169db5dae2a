"""`crsyncer doctor`, run on a bed, and what it finds."""

import json
from typing import Any

from tests.system.bed import ROBOT, Bed, eventually
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


async def diagnosed(bed: Bed, wanted: list[tuple[str | None, str, str]], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report, once just this is bad: see `bad`.

    On a busy machine a server may answer later than the doctor waits for it.
    """

    async def check() -> tuple[int, dict[str, Any]] | None:
        code, content = await doctor(bed, *arguments)
        return (code, content) if bad(content) == wanted else None

    found: tuple[int, dict[str, Any]] = await eventually(check, seconds=90, what=f"the doctor finds {wanted}")
    return found


def checks(content: dict[str, Any], name: str = "", side: str | None = "") -> list[Check]:
    """The checks of a name and side; of all, where none is given."""
    return [c for c in content["checks"] if name in ("", c["name"]) and side in ("", c["side"])]


def bad(content: dict[str, Any]) -> list[tuple[str | None, str, str]]:
    """Side, name and state of the checks that are not ok; what this machine's disk is like is not a test's matter."""
    return [
        (c["side"], c["name"], c["state"]) for c in content["checks"] if c["state"] != "ok" and c["name"] not in LOCAL
    ]
