"""The steps of the hold machine; `engine/pairs/hold_driver.py` carries them out."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.errors import SyncError


@dataclass(frozen=True, slots=True)
class Idle:
    """Wait for an event, for so many seconds at most; None: for as long as it takes."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds. `retry`: a reload or an operator's command ends the wait (S9.1)."""

    seconds: float
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Send these requests to upstream at the same time; the result is each answer's status code and body."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class List:
    """Have a side listed, freshly and consistently."""

    side: Side
    reason: AgentListReason


@dataclass(frozen=True, slots=True)
class ProveCluster:
    """Have a probe show that upstream is connected, and is still the same cluster."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """A round of verification is over: every caller that waits for it returns, or gets the error."""

    error: SyncError | None


HoldStep = Idle | Pause | Ask | List | ProveCluster | Conclude
Inquiry = Generator[HoldStep, Any, None]
"""Steps to be carried out. The result of a step that fails is its SyncError."""
