"""Has the progress of a placement go on by what has changed of its robots, some of them at a time (F8)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from crsyncer.fleet.controllers.reachable_shards import ReachableShards
from crsyncer.fleet.controllers.replica_queue import Gate, Replicas
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.controllers.status_return import StatusReturn
from crsyncer.fleet.controllers.tallies import Tallies
from crsyncer.fleet.domain.rollout.placement_progress import PlacementProgress
from crsyncer.fleet.domain.rollout.tries import WriteTimes
from crsyncer.fleet.domain.transport.keys import shard_unit
from crsyncer.fleet.domain.values import Placement
from crsyncer.runtime.event_loop import give_way

PART = 100
"""So many robots are counted, looked at and begun before everything else has its turn: some 10 ms."""


@dataclass(slots=True)
class Desk:
    """What the controller knows of one placement."""

    uid: str
    progress: PlacementProgress
    changed: set[str]
    """The robots of which something has changed; of a new leader's placement those that its Decisions name."""
    taken: set[int]
    """The N of Decisions of another placement of the name."""
    robots: set[str] = field(default_factory=set)
    """The robots that are selected, as far as `progress` knows them or `changed` has them."""
    sources: int = 0
    """How many sources they share, as far as `progress` knows (F10.3)."""
    stepped: set[str] = field(default_factory=set)
    """The robots that `progress` was given, and of which the step is not over."""
    to_open: dict[str, None] = field(default_factory=dict)
    """The robots whose replicas are to be looked at, as they may be written now, in this order."""
    is_open: bool = False
    """Whether its finalizer was seen, and its robots' replicas were looked at after that."""
    acked: dict[str, bool] = field(default_factory=dict)
    """Whether each robot has applied all that was written for it."""
    times: WriteTimes[str] = field(default_factory=WriteTimes)
    """Of the status (""), and each Decision by its name."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Makes the steps of all placements. `may_write` is Placements' own."""

    state: FleetState
    replicas: Replicas
    shards: ReachableShards
    tallies: Tallies
    returned: StatusReturn
    may_write: Gate

    async def step(self, placement: Placement, desk: Desk, *, is_current: Callable[[], bool]) -> bool:
        """Give the progress all that has changed, and let it go on. False: it is not over, and must be made again.

        That is so where after a pause it is not `is_current`, and while replicas are to be looked at: no robot is begun
        before it is known what all others shall have (F8.1, F8.2).
        """
        desk.progress.placement_changed(placement)
        self._look_at_selection(placement, desk)
        is_behind = True
        while True:
            is_behind |= self._count(placement, desk)
            if not desk.changed and is_behind:
                is_known = self.replicas.is_idle()
                is_behind = self._go_on(placement, desk, is_known=is_known)
                if not is_known and not is_behind:
                    return False
            if not desk.changed and not is_behind and not self._open(placement, desk):
                return True
            await give_way()
            if not is_current():
                return False

    def _count(self, placement: Placement, desk: Desk) -> bool:
        """Give the progress what is counted for some robots that have changed; whether there was any."""
        part, selected = list(islice(desk.changed, PART)), self.state.fleet.index.robots_of(placement.text)
        for robot in part:
            desk.changed.discard(robot)
            desk.stepped.add(robot)
            if robot not in selected:
                desk.progress.tell(robot, None, is_left=any(self.tallies.rows_of(placement, robot)))
                desk.acked.pop(robot, None)
                continue
            tally = self.tallies.tally(placement, robot)
            desk.progress.tell(robot, tally)
            if desk.acked.get(robot, False) is not tally.acked:
                desk.acked[robot] = tally.acked
                self.returned.acked_changed(placement.text, robot)
        return bool(part)

    def _look_at_selection(self, placement: Placement, desk: Desk) -> None:
        """Find the robots that came or went, and of which something else has changed that no event of theirs shows."""
        index = self.state.fleet.index
        selected, sources = index.robots_of(placement.text), len(index.sources_of(placement.text))
        if selected != desk.robots:  # it is the same at most steps, and has thousands
            desk.changed |= selected ^ desk.robots
            desk.robots = set(selected)
        if placement.shared and desk.sources != sources:
            desk.sources = sources
            desk.changed |= selected  # at the root no copy tells

    def _go_on(self, placement: Placement, desk: Desk, *, is_known: bool) -> bool:
        """Make a part of a step; whether there are more. After the last one replicas may be written.

        `is_known`: what each robot shall have is.
        """
        may_begin = self.shards.may_begin(desk.robots) if is_known else None
        begun = desk.progress.step(self.state.clock(), may_begin=may_begin, most=PART)
        desk.to_open.update(dict.fromkeys(begun))
        if desk.progress.is_behind:
            return True
        # Only now has the progress announced what they shall have (F8.2).
        self.replicas.seats.restamped.difference_update((placement.text, robot) for robot in desk.stepped)
        desk.to_open.update(dict.fromkeys(desk.stepped))
        desk.stepped.clear()
        if placement.finalized and not desk.is_open:  # marks change then, also where a robot's turn never comes
            units = map(shard_unit, self.state.shards) if placement.shared else desk.robots
            desk.to_open.update(dict.fromkeys(units))
        return False

    def _open(self, placement: Placement, desk: Desk) -> bool:
        """Have replicas of some robots looked at that may be written now; whether there are more."""
        part = list(islice(desk.to_open, PART))
        for robot in part:
            del desk.to_open[robot]
        is_new = placement.finalized and not desk.is_open
        self.replicas.open(placement.text, [robot for robot in part if is_new or self.may_write(placement.text, robot)])
        if not desk.to_open:
            desk.is_open = placement.finalized
        return bool(desk.to_open)
