"""A hold machine on a bench: steps come out, results go in, and a minute takes no time."""

from dataclasses import dataclass, field

from crsyncer.core.holds.deletion_holds import DeletionHolds
from crsyncer.core.holds.hold_list import Holds
from crsyncer.core.holds.hold_machine import HoldMachine
from crsyncer.core.holds.hold_steps import Ask, HoldStep, Idle, Inquiry
from crsyncer.core.model import Freshness, Key, Side, Stamp, Tombstone, View
from crsyncer.core.requests import calls
from tests.core.builders import policy

A, B, C = (Key("default", name) for name in "abc")
GOALS = "goals.lab.example.com"
CONFIRMED, RESUMED, STORED = ({freshness} for freshness in (Freshness.CONFIRMED, Freshness.RESUMED, Freshness.STORED))

SERVED = (200, {"resources": [{"name": "goals", "namespaced": True, "verbs": ["create"]}]})
DYING = (200, {"resources": [{"name": "goals", "namespaced": True, "verbs": ["list"]}]})
UNKNOWN: tuple[int, dict] = (403, {})
NOT_FOUND: tuple[int, dict] = (404, {})


def crd(uid: str) -> tuple[int, dict]:
    """The answer to a request for the CRD."""
    return 200, {"metadata": {"name": GOALS, "uid": uid}}


def view(uid: str = "u-1", *, stamp: bool = False, terminating: bool = False) -> View:
    """An object; `stamp`: a copy."""
    return View(uid, "1", 1, terminating, "digest", "", False, stamp=Stamp("u-1", "robot-1") if stamp else None)


@dataclass
class Bench:
    """A kind with copies of these names, of which upstream has none; those in `tombstones` were deleted there."""

    names: tuple[Key, ...] = (A, B)
    tombstones: dict[Key, Tombstone] = field(default_factory=dict)
    kind_wide: dict = field(default_factory=dict)
    known: tuple[str, str] = ("cluster", "u")
    upstream_side: Side = Side.CLOUD
    is_another: bool = False

    def __post_init__(self) -> None:
        self.policy = policy(self.upstream_side)
        self.views: dict[Side, dict[Key, View]] = {side: {} for side in Side}
        self.upstream, self.copies = self.views[self.policy.upstream], self.views[self.policy.downstream]
        self.copies |= dict.fromkeys(self.names, view("c-1", stamp=True))
        self.groups = Holds()
        self.holds = DeletionHolds(
            self.policy,
            holds=self.groups,
            views=self.views,
            tombstones=self.tombstones,
            kind_wide=self.kind_wide,
            is_another=self.is_another,
            now=7.0,
        )
        self.machine = HoldMachine(self.policy, holds=self.holds, crd=self.known)
        self.now, self.up = 100.0, True
        self.program: Inquiry = self.machine.program()
        self.begun = False
        self.discovery = calls.discovery(self.policy.on_robot.group, "v1")
        find = calls.crd if self.upstream_side is Side.CLOUD else calls.crd_listed
        self.ask = Ask((self.discovery, find(GOALS)))
        self.ask_crd = Ask((find(GOALS),))
        self.tick()

    def tick(self, seconds: float = 0.0) -> None:
        """Time passes."""
        self.now += seconds
        self.machine.tick(self.now, unix=7.0, chance=0.0, up=self.up, cluster="cluster")

    def next(self, result: object = None, *, after: float = 0.0) -> HoldStep:
        """The next step, after the result or the error of the one before; what has changed is recorded."""
        self.tick(after)
        if not self.begun:
            self.begun = True
            step = next(self.program)
        else:
            step = self.program.send(result)
        self.record()
        return step

    def record(self) -> None:
        """Record what has changed."""
        self.tombstones |= self.holds.changed
        self.holds.changed.clear()

    def delete(self, *keys: Key) -> None:
        """Upstream reports that objects are deleted, and somebody wants to delete their copies."""
        self.tombstones |= dict.fromkeys(keys, Tombstone("u-1", 1.0))
        self.machine.wanted.update(keys)

    def freshness(self, side: Side, found: set[Freshness]) -> None:
        """A side is listed, resumed or lost."""
        self.machine.freshness_changed(side, found)

    def listed(self) -> None:
        """Both sides are listed; what was to be asked for the CRD then has been."""
        for side in Side:
            self.freshness(side, CONFIRMED)
        self.machine._crd_due = False

    def held(self) -> list[tuple[str, set[Key]]]:
        """What is held: reason and names."""
        return [(str(group.reason), group.keys) for group in self.groups.groups()]

    def idle(self) -> bool:
        """Whether nothing is to be found out now."""
        return isinstance(self.next(), Idle)
