"""Cases of reasons that `status` shows: a fault, and its hint followed. The cases are in the modules of this name."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from tests.model.simulation.life import ROBOT
from tests.model.simulation.world import World

MINE = {ROBOT_LABEL: ROBOT}
HOLDS = "crsyncer_holds"
CLOUD, ROBOTS = (f'crsyncer_side_connected{{side="{side}"}}' for side in ("cloud", "robot"))
FILTERED = {"goals": {"filtered": "true"}}
BY_PROCESSES = frozenset({"AgentStopped", "ConfigRejected", "StateDegraded", "TlsNotVerified"})
"""For these it takes files and processes: tests/system/test_reasons.py."""
Steps = Iterator[None]


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, up to the first yield, and the hint followed, after it."""

    code: str
    exit_code: int
    hint: str
    """What the hint says, as far as it is followed."""
    steps: Callable[[World], Steps]
    metric: str = ""
    """A series of the dashboard or the alerts that changes with it."""
    kinds: Mapping[str, Any] = field(default_factory=dict)


def case(code: str, exit_code: int, hint: str, **more: Any) -> Callable[[Callable[[World], Steps]], Case]:
    """Make a case of the function that tells its steps."""
    return lambda steps: Case(code, exit_code, hint, steps, **more)


def codes(world: World) -> list[str]:
    """The codes of what is wrong, the most important first."""
    return [reason["code"] for reason in world.status()["reasons"]]


def holds_release(world: World) -> None:
    """Type the command that the hint names."""
    hints = " ".join(reason["hint"] for reason in world.status()["reasons"])
    [hold] = set(re.findall(r"crsyncer holds release (\w+)", hints))
    world.order("release", id=hold)
