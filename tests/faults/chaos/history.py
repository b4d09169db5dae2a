"""What was seen in a run, as values: what the checker judges."""

from dataclasses import dataclass, field
from typing import Any

from tests.faults.chaos.schedule import Step
from tests.system.bed import OURS


@dataclass(frozen=True, slots=True)
class Seen:
    """One version of an object, as an administrator's watch has shown it. Times are the event loop's, in seconds."""

    at: float
    after: float
    """It came about after this: earlier than `at` where the recorder could not look for a while."""
    side: str
    kind: str
    gone: bool
    obj: dict[str, Any]

    @property
    def name(self) -> str:
        """All objects of a run are in one namespace, or in none."""
        return str(self.obj["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Which object of that name."""
        return str(self.obj["metadata"]["uid"])

    @property
    def stamp(self) -> str:
        """Of a copy: the uid of its upstream object; "" without one."""
        return str((self.obj["metadata"].get("annotations") or {}).get(f"{OURS}upstream-uid", ""))

    @property
    def terminating(self) -> bool:
        """Whether it waits for its finalizers."""
        return "deletionTimestamp" in self.obj["metadata"]

    @property
    def serial(self) -> int:
        """Which write of the schedule its spec comes from."""
        return int((self.obj.get("spec") or {}).get("serial", 0))


@dataclass(frozen=True, slots=True)
class Done:
    """A step of the schedule as it was performed; `answer` is what came of it, "" when nobody said."""

    step: Step
    began: float
    ended: float
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the agent that is about one object, or that lists a kind (`name` is "" then)."""

    at: float
    side: str
    kind: str
    method: str
    name: str
    status: int
    uid: str = ""
    """Of a deletion: its precondition."""


@dataclass(frozen=True, slots=True)
class Relist:
    """A full list that the agent's metrics have counted between two looks at them."""

    at: float
    side: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sample:
    """What an agent process took of the machine at a moment."""

    at: float
    pid: int
    megabytes: float
    descriptors: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of a run. `began` is when the schedule began, after the first lists; `final` what both planes end with."""

    began: float = 0.0
    seen: tuple[Seen, ...] = ()
    done: tuple[Done, ...] = ()
    asked: tuple[Asked, ...] = ()
    relists: tuple[Relist, ...] = ()
    samples: tuple[Sample, ...] = ()
    gaps: tuple[str, ...] = ()
    """Where the recorder had to list anew, in words."""
    final: dict[tuple[str, str], tuple[Seen, ...]] = field(default_factory=dict)
    """(side, kind) -> the objects there."""
    status: dict[str, Any] = field(default_factory=dict)
    """The agent's last status document."""
    log: str = ""

    def versions(self, side: str, kind: str) -> list[Seen]:
        """What was seen of a kind on a side, in the server's order."""
        return [seen for seen in self.seen if (seen.side, seen.kind) == (side, kind)]


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept, when, and of which object ("" for none)."""

    rule: str
    message: str
    at: float = 0.0
    kind: str = ""
    name: str = ""
