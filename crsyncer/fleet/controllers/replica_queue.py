"""Looks at replicas and has them written: what is due, drifted or not wanted any more (F2.4, F3, F5, F11)."""

import asyncio
import heapq
import logging
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import assert_never, cast

from crsyncer.core.watching.queue import Priority
from crsyncer.errors import NotLeading
from crsyncer.fleet.controllers.replica_writer import Answers, ReplicaWriter
from crsyncer.fleet.controllers.state import FleetState, Work
from crsyncer.fleet.domain.replica_plan import Removal, is_due
from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.seats import Seat, Seats, seat_of
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Delete,
    Nothing,
    Patch,
    ReplicaKey,
    ReplicaPlan,
    Wait,
    Wanted,
)
from crsyncer.runtime.dispatcher import Dispatcher, Job
from crsyncer.runtime.event_loop import give_way

log = logging.getLogger(__name__)

WORK = "replica"
_SLICE_SECONDS = 0.002
"""How long looks may keep the event loop from everything else: a write waits for several turns of it."""

Gate = Callable[[str, str], bool]
"""Whether the replicas of a placement (NAMESPACE/NAME) and robot, or the copies on /SHARD, may be written now."""


class Replicas:
    """The work queue of replicas. `may_write` is the gate of F6.3 and F8: finalizer and Decision are stored.

    `dispatchers` are those of the shards, by name. `totals_changed(placement, robot)` is called when what the looks
    found of a robot has changed, `ask(names)` has discovery asked, `answers()` takes up what answers to writes show.
    """

    def __init__(
        self,
        state: FleetState,
        *,
        dispatchers: Mapping[str, Dispatcher[Work]],
        may_write: Gate,
        totals_changed: Callable[[str, str], None],
        ask: Callable[[Iterable[str]], None],
        answers: Callable[[], Answers],
    ) -> None:
        self.seats = Seats()
        self._state = state
        self._dispatchers = dispatchers
        self._may_write = may_write
        self._totals_changed = totals_changed
        self._ask = ask
        self._writer = ReplicaWriter(state, answers=answers)
        self._dirty: OrderedDict[ReplicaKey, None] = OrderedDict()
        self._wake = asyncio.Event()
        self._gated: dict[tuple[str, str], set[ReplicaKey]] = defaultdict(set)
        """By placement and robot: what waits until it may be written."""
        self._later: list[tuple[float, int, ReplicaKey]] = []
        """What is to be looked at again, by event loop time in seconds."""
        self._unproven: set[ReplicaKey] = set()
        self._numbers = count()

    def look(self, keys: Collection[ReplicaKey]) -> None:
        """Look at replicas as soon as possible."""
        self._dirty.update(dict.fromkeys(keys))
        if self._dirty:
            self._wake.set()

    def open(self, placement: str, robots: Iterable[str]) -> None:
        """The replicas of these robots may be written now."""
        for robot in robots:
            self.look(self._gated.pop((placement, robot), ()))

    def proven(self) -> None:
        """Discovery has answered: look at what waited for that."""
        waiting, self._unproven = self._unproven, set()
        self.look(waiting)

    def lane(self, key: ReplicaKey) -> str:
        """The placement whose writes a replica's are among (F11)."""
        row = self._state.fleet.rows.get(key)
        return self.seats.placement(key) or ("" if row is None else row.marks.placement)

    def is_idle(self) -> bool:
        """Whether there is nothing to look at."""
        return not self._dirty

    async def run(self) -> None:
        """Look, forever."""
        loop = asyncio.get_running_loop()
        while True:
            until = loop.time() + _SLICE_SECONDS
            while self._dirty and loop.time() < until:
                key, _ = self._dirty.popitem(last=False)
                self._look(key)
            if self._dirty:
                await give_way()
                continue
            self._dirty.clear()  # an empty dictionary keeps the room that it once needed, of all replicas at a start
            self._wake.clear()
            when = min(self._later[0][0] if self._later else math.inf, self._writer.next_forbidden)
            timer = None if when == math.inf else loop.call_at(when, self._wake.set)
            await self._wake.wait()
            if timer is not None:
                timer.cancel()
            self._dirty.update(dict.fromkeys(self._writer.due()))
            while self._later and self._later[0][0] <= loop.time():
                self._dirty[heapq.heappop(self._later)[2]] = None

    async def write(self, job: Job[Work]) -> None:
        """Make the write that a replica needs now, if any."""
        key = cast(ReplicaKey, job.key)
        dispatcher = self._dispatchers[key.shard]
        wanted, plan = self._decide(key)
        if self._is_gated(key, wanted, plan):
            return
        try:
            again = await self._writer.write(key, wanted, plan)
        except NotLeading:
            return  # the process ends
        if again.pause is not None:
            dispatcher.slow_down(again.pause)
        # After a write that is to be made again later, a look would queue it at once.
        if again.pause is not None or again.back_off:
            dispatcher.back_off(job)
            return
        if again.after is not None:
            self.look_at(key, self._state.now + again.after)
            return
        dispatcher.succeeded(job)
        if again.written:
            self._wake.set()  # others may be allowed now, too
        else:
            self.look([key])

    def look_at(self, key: ReplicaKey, when: float) -> None:
        """Look at a replica at a time, in event loop time."""
        heapq.heappush(self._later, (when, next(self._numbers), key))
        self._wake.set()

    def _decide(self, key: ReplicaKey) -> tuple[Wanted | None, ReplicaPlan]:
        fleet, losses = self._state.fleet, self._state.losses
        wanted = fleet.wanted(key)
        removal = Removal.UNKNOWN if wanted is not None else losses.removal(key, self._state.now)
        may_write = wanted is None or self._may_write(wanted.placement.text, key.unit)
        return wanted, fleet.decide(key, wanted, removal=removal, may_write=may_write)

    def _look(self, key: ReplicaKey) -> None:
        """Note what a replica needs, and queue its write; of a kind that is not listed, once it is.

        Only what has a seat is looked at before: it may not be wanted any more.
        """
        if not self._state.fleet.is_known(key) and not self.seats.placement(key):
            return
        wanted, plan = self._decide(key)
        fault = self._writer.fault(key, wanted, plan, self._state.now)
        for placement, robot in self.seats.put(key, self._seat(key, wanted, plan, fault)):
            self._totals_changed(placement, robot)
            if (placement, robot) in self._gated and not self.seats.is_due(placement, robot):
                self.open(placement, [robot])
        when = None if fault is None or isinstance(plan, Blocked) else self._writer.next_try(key)
        if when is not None and when > self._state.now:
            self.look_at(key, when)
            return
        if self._is_gated(key, wanted, plan):
            return
        match plan:
            case Create():
                self._add(key, Priority.CREATION)
            case Patch():
                self._add(key, Priority.SPEC)
            case Delete():
                self._add(key, Priority.DELETION)
            case Wait() if wanted is None:
                self._wait_for_removal(key)
            case Nothing() | Wait() | Blocked():
                pass
            case _:
                assert_never(plan)

    def _add(self, key: ReplicaKey, priority: Priority) -> None:
        self._dispatchers[key.shard].add(Job(key.resource, WORK, key), priority)

    def _seat(self, key: ReplicaKey, wanted: Wanted | None, plan: ReplicaPlan, fault: Fault | None) -> Seat | None:
        if wanted is None:
            return None
        return seat_of(key, wanted, self._state.fleet.rows.get(key), plan, fault)

    def _is_gated(self, key: ReplicaKey, wanted: Wanted | None, plan: ReplicaPlan) -> bool:
        """Whether a replica waits for its placement: its finalizer, its Decision, its robot's turn (F6.3, F8.1)."""
        if wanted is not None:
            text = wanted.placement.text
            is_closed = isinstance(plan, (Create, Patch, Wait)) and not self._may_write(text, key.unit)
        else:
            row = self._state.fleet.rows.get(key)
            placement = None if row is None else self._state.fleet.index.placement(row.marks.placement)
            text = "" if placement is None else placement.text
            is_closed = (
                isinstance(plan, (Delete, Patch))
                and placement is not None
                and placement.rollout is not None
                and self.seats.is_due(text, key.unit)
            )
        if is_closed:
            self._gated[text, key.unit].add(key)
        return is_closed and not (wanted is not None and isinstance(plan, Patch) and self._needs_no_turn(key, wanted))

    def _needs_no_turn(self, key: ReplicaKey, wanted: Wanted) -> bool:
        """Whether only the marks change, or drift is undone, for a placement that has its finalizer (F2.4, F3.5)."""
        row = self._state.fleet.rows.get(key)
        if row is None or not wanted.placement.finalized:
            return False
        return row.marks.placement != wanted.placement.uid or not is_due(wanted, row)

    def _wait_for_removal(self, key: ReplicaKey) -> None:
        losses, now = self._state.losses, self._state.now
        match losses.removal(key, now):
            case Removal.LATER:
                self.look_at(key, losses.due(key))
            case Removal.UNKNOWN if losses.is_lost(key) and (names := losses.unproven(key)):
                self._unproven.add(key)
                self._ask(names)
            case Removal.HELD:  # maybe for its kind is not served, which is then the reason that is shown
                self._ask(losses.unproven(key) - self._state.fleet.dead)
            case _:
                pass
