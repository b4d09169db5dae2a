"""Keeps what is the controller's own beside each placement: finalizer, Decisions, status, releases (F5, F6.3, F8)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

from crsyncer.core.model import Json, Key
from crsyncer.core.reports.text import rfc3339
from crsyncer.errors import NotLeading, SyncError
from crsyncer.fleet.controllers.alive import Liveness
from crsyncer.fleet.controllers.mark_writer import SourceMarks
from crsyncer.fleet.controllers.own_objects import OwnObjects, try_again
from crsyncer.fleet.controllers.placement_steps import Desk, Steps
from crsyncer.fleet.controllers.reachable_shards import ReachableShards
from crsyncer.fleet.controllers.replica_queue import Replicas
from crsyncer.fleet.controllers.robot_reports import RobotReports
from crsyncer.fleet.controllers.state import FleetState, Work
from crsyncer.fleet.controllers.status_return import StatusReturn
from crsyncer.fleet.controllers.tallies import Tallies
from crsyncer.fleet.domain import fleet_calls, resolution
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.fleet_calls import DECISIONS, PLACEMENTS
from crsyncer.fleet.domain.rollout.decisions import Decision, decision_body, decision_of, decision_pace
from crsyncer.fleet.domain.rollout.placement_progress import PlacementProgress
from crsyncer.fleet.domain.rollout.robot_states import placement_status
from crsyncer.fleet.domain.shown.fleet_facts import last_edit
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import RELEASE, Placement
from crsyncer.runtime.dispatcher import Dispatcher, Job
from crsyncer.runtime.waits import chance

WORK = "own"
_PACE_SECONDS = 5.0
"""Statuses are written at most so often (F6.3)."""
_SOON_SECONDS = 0.1
"""Changes are gathered for so long."""
_PATIENCE_SECONDS = 30.0
"""What is not listed by then, a kind or the reports, is told in the status, and what does not need it goes on."""


class Placements:
    """One job for each placement, and one for the Decisions of placements that are gone."""

    def __init__(self, state: FleetState, *, dispatcher: Dispatcher[Work]) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._own = OwnObjects(state)
        self._marks = SourceMarks(state)
        self.reports = RobotReports(state, changed=self._reported)
        self._desks: dict[str, Desk] = {}
        self._seen: dict[str, tuple[list[str], str]] = {}
        """By placement: its finalizers and resourceVersion."""
        self._decisions: dict[Key, Decision] = {}
        self._releases: dict[Key, str] = {}
        """By Decision: the release of what is held of a placement that is gone."""
        self.edited: dict[str, float] = {}
        """When the spec of each placement was last edited, by the API server's clock."""
        self._began = state.now
        self._replicas: Replicas
        self._shards: ReachableShards
        self._returned: StatusReturn
        self._steps: Steps

    def attach(self, replicas: Replicas, liveness: Mapping[str, Liveness], returned: StatusReturn) -> None:
        """Tell of the controllers beside this one."""
        self._replicas, self._returned = replicas, returned
        self._shards = ReachableShards(self._state, self.reports, liveness)
        tallies = Tallies(self._state, replicas.seats, self.reports.robots, self._shards, returned)
        self._steps = Steps(self._state, replicas, self._shards, tallies, returned, self.may_write)

    # Events

    def shown(self, key: Key, raw: Json) -> None:
        """A placement is about to be taken up by the fleet."""
        metadata = raw["metadata"]
        if (edited := last_edit(raw)) is not None:
            self.edited[str(key)] = edited
        self._seen[str(key)] = (list(metadata.get("finalizers") or []), metadata["resourceVersion"])
        old = self._state.fleet.index.placements.get(str(key))
        if old is not None and old.uid != metadata["uid"]:
            self._desks.pop(str(key), None)

    def gone(self, key: Key) -> None:
        """A placement is gone."""
        self._seen.pop(str(key), None)
        self._desks.pop(str(key), None)
        self.edited.pop(str(key), None)
        self._soon("")

    def decision_shown(self, key: Key, raw: Json) -> None:
        """A Decision was added or changed, by us or by somebody else."""
        if not self._own.seen(key, raw["metadata"]):
            return
        former, decision = self._decisions.get(key), decision_of(raw)
        self._decisions[key] = decision
        if former is not None and (former.text, former.placement_uid) != (decision.text, decision.placement_uid):
            self._unstored(former)
        self._releases[key] = (raw["metadata"].get("annotations") or {}).get(RELEASE, "")
        placement = self._state.fleet.index.placements.get(decision.text)
        if placement is None or placement.uid != decision.placement_uid:
            self._soon("")
        elif (desk := self._desks.get(decision.text)) is not None:
            self._replicas.open(decision.text, desk.progress.stored(decision.number, decision.robots))
            self._soon(decision.text)

    def decision_gone(self, key: Key) -> None:
        """A Decision is gone."""
        self._releases.pop(key, None)
        self._own.gone(key)
        self._unstored(self._decisions.pop(key))

    def rewound(self) -> None:
        """The cloud was restored or is another one: no Decision counts as stored until it is shown again (F6.3)."""
        self._own.rewound()
        for decision in self._decisions.values():
            self._unstored(decision)

    def _unstored(self, decision: Decision) -> None:
        if (desk := self._desks.get(decision.text)) is not None and desk.uid == decision.placement_uid:
            desk.progress.stored(decision.number, None)
            self._soon(decision.text)

    def reports_listed(self, shard: str) -> None:
        """The reports of a shard's robots are listed."""
        if shard not in self.reports.listed:
            self.reports.listed.add(shard)
            self.touch(self._desks.keys())
            self.shard_changed(shard)

    def shard_changed(self, shard: str) -> None:
        """Whether the robots of a shard beside the root may be begun has changed."""
        for text in self._desks if shard != ROOT else ():
            for robot in self._shards.robots_on(shard, text):
                self.total_changed(text, robot)

    def _reported(self, robot: str) -> None:
        self._returned.robot_changed(robot)
        for text in self._state.fleet.index.placements_of_robot(robot):
            self.total_changed(text, robot)

    def touch(self, placements: Iterable[str]) -> None:
        """Something of these placements has changed."""
        for text in placements:
            self._soon(text)

    def total_changed(self, placement: str, robot: str) -> None:
        """What the looks found of a robot's replicas has changed, or its report; or of the copies on /SHARD."""
        if (desk := self._desks.get(placement)) is not None:
            is_shard, shard = robot.startswith("/"), robot.removeprefix("/")
            desk.changed.update(self._shards.robots_on(shard, placement) if is_shard else [robot])
        self._soon(placement)

    def decisions(self) -> list[Decision]:
        """The Decisions as they are stored."""
        return list(self._decisions.values())

    def is_acked(self, placement: str, robot: str) -> bool:
        """Whether a robot has applied all that a placement has written for it, as of the last look (F9.6)."""
        desk = self._desks.get(placement)
        return desk is not None and desk.acked.get(robot, False)

    def may_write(self, placement: str, robot: str) -> bool:
        """Whether replicas may be written: the finalizer and the robot's Decision are stored (F6.3).

        A rollout that was not told yet what the robot shall have has not announced it (F8.2).
        """
        desk, seen = self._desks.get(placement), self._state.fleet.index.placements.get(placement)
        if desk is None or seen is None or not seen.finalized:
            return False
        is_untold = seen.rollout is not None and (placement, robot) in self._replicas.seats.restamped
        return seen.shared or (not is_untold and desk.progress.may_write(robot))

    def _soon(self, text: str) -> None:
        self._dispatcher.later(_job(text), _SOON_SECONDS)

    # The job of one placement

    async def write(self, job: Job[Work]) -> None:
        """Write what is due of one placement; "": of those that are gone."""
        is_silent = not self.reports.are_known() and self._state.now < self._began + _PATIENCE_SECONDS
        if not self._state.fleet.listed.issuperset(Input) or not self._replicas.is_idle() or is_silent:
            self._dispatcher.later(job, _SOON_SECONDS)
            return
        placement = self._state.fleet.index.placements.get(str(job.key))
        try:
            await (self._clean_up() if placement is None else self._write(placement))
        except NotLeading:
            return
        except SyncError as error:
            try_again(self._dispatcher, job, error)
            return
        self._dispatcher.succeeded(job)

    async def _write(self, placement: Placement) -> None:
        unlisted = resolution.unlisted_kinds(self._state.fleet, placement)
        if self._state.now < self._began + _PATIENCE_SECONDS and (unlisted or self._shards.are_away(placement)):
            self._dispatcher.later(_job(placement.text), 1.0)
            return
        if placement.text not in self._desks and self._returned.evaluations.is_evaluating(placement.text):
            self._dispatcher.later(_job(placement.text), _SOON_SECONDS)  # what was Ready may be so (F6.4)
            return
        desk = self._desk(placement)
        if not unlisted or placement.rollout is None:  # else robots would be begun by a part of what they shall have
            is_current = partial(self._is_current, placement, unlisted)
            if not await self._steps.step(placement, desk, is_current=is_current):
                self._dispatcher.later(_job(placement.text), _SOON_SECONDS)
                return
        is_used = bool(desk.robots) or placement.shared or self._state.fleet.bound[placement.uid] > 0
        if is_used and not placement.terminating and not placement.finalized:
            await self._finalize(placement)
        if (again := await self._marks.write(placement)) is not None:
            self._dispatcher.at(_job(placement.text), again)
        if placement.release:
            await self._release(placement)
        if not unlisted or placement.rollout is None:
            await self._write_decisions(placement, desk)
        if desk.progress.is_untried() and self._state.now < self._began + _PATIENCE_SECONDS:
            self._dispatcher.later(_job(placement.text), 1.0)  # else its errors went, and came back
        else:
            await self._write_status(placement, desk, unlisted)
        if placement.terminating:
            await self._finish(placement, unlisted)
        if (when := desk.progress.next_step()) is not None:
            left = max(_SOON_SECONDS, when - self._state.clock())
            self._dispatcher.at(_job(placement.text), self._state.now + left)

    def _is_current(self, placement: Placement, unlisted: list[str]) -> bool:
        """Whether a placement is as it was, and so is what of its kinds is not listed."""
        is_same = self._state.fleet.index.placements.get(placement.text) is placement
        return is_same and resolution.unlisted_kinds(self._state.fleet, placement) == unlisted

    def _desk(self, placement: Placement) -> Desk:
        """What is known of a placement; for a new leader what the stored Decisions say."""
        named = [each for each in self._decisions.values() if each.text == placement.text]
        taken = {each.number for each in named if each.placement_uid != placement.uid}
        desk = self._desks.get(placement.text)
        if desk is None:
            own = [each for each in named if each.placement_uid == placement.uid]
            progress = PlacementProgress(placement, own, taken=taken)
            robots = {robot for each in own for robot in each.robots}
            desk = self._desks[placement.text] = Desk(placement.uid, progress, changed=robots, taken=taken)
        elif desk.taken != taken:
            desk.taken = taken
            desk.progress.taken(taken)
        return desk

    async def _finalize(self, placement: Placement) -> None:
        finalizers, version = self._seen[placement.text]
        await self._own.send(PLACEMENTS.resource, fleet_calls.add_finalizer(finalizers, placement, version))

    async def _release(self, placement: Placement) -> None:
        """Release what the hold of that id shows; the annotation goes, also one that fits no hold (F5.2)."""
        released = self._state.losses.release(placement.uid, placement.release)
        self._replicas.look(released)
        key = Key(placement.namespace, placement.name)
        call = fleet_calls.remove_release(PLACEMENTS, key, uid=placement.uid, release=placement.release)
        await self._own.send(PLACEMENTS.resource, call)

    async def _write_decisions(self, placement: Placement, desk: Desk) -> None:
        urgent, pace, fleet = desk.progress.urgent(), decision_pace(len(desk.robots)), self._state.fleet
        # What is held, or not seen yet (F1.1), could not be released without it once the placement is gone (F5.2).
        is_bound = bool(fleet.bound[placement.uid])
        is_needed = is_bound or not resolution.all_listed(fleet)
        for number, robots in desk.progress.decisions().items():
            key = Key(placement.namespace, f"{placement.name}-{number}")
            stored = self._decisions.get(key)
            if not robots and not is_needed:
                await self._own.delete(DECISIONS, key)
            elif not robots and (stored is None or not stored.robots):
                if not is_bound:
                    self._dispatcher.later(_job(placement.text), _PACE_SECONDS)
            elif self._is_time(placement, desk, key.name, pace=0.0 if number in urgent else pace):
                with desk.times.trying(key.name, self._state.now, chance()):
                    await self._own.put(DECISIONS, key, decision_body(placement, number, robots))
                self._decisions[key] = Decision(*key, placement.name, placement.uid, number, dict(robots))
                self._replicas.open(placement.text, desk.progress.stored(number, robots))

    def _is_time(self, placement: Placement, desk: Desk, name: str, *, pace: float = _PACE_SECONDS) -> bool:
        """Whether an object may be written again; if not, the job comes back."""
        if left := desk.times.left(name, self._state.now, pace=pace):
            self._dispatcher.later(_job(placement.text), left)
        return not left

    async def _write_status(self, placement: Placement, desk: Desk, unlisted: list[str]) -> None:
        if not self._is_time(placement, desk, ""):
            return
        desk.times.looked("", self._state.now)  # its faults are those of every robot
        state, fleet, progress = self._state, self._state.fleet, desk.progress
        problem = self._returned.evaluations.problem(placement.text)
        trouble = resolution.unresolved(fleet, placement, home=state.settings.namespace, problem=problem)
        status = placement_status(
            placement,
            resolution.stored_counts(placement)
            if unlisted
            else progress.counts(replicas=self._replicas.seats.counts[placement.text]),
            faults=[
                *resolution.robot_faults(fleet, placement),
                *self._replicas.seats.faults(placement.text),
                *self._returned.faults(placement),
                *self._marks.faults(placement),
            ],
            holds=state.losses.holds().get(placement.uid, []),
            unresolved=trouble or (resolution.not_listed(unlisted) if unlisted else None),
            gated=progress.gated(),
            gate=progress.gate(),
            group=progress.group,
            collected=self._returned.collected(placement.text),
            warning=resolution.warning(fleet, placement),
            singletons=self._returned.singletons.entries(placement.text),
            now=rfc3339(state.clock()) or "",
        )
        status = {**placement.status, **status}
        if status != placement.status:
            path = fleet_calls.item(PLACEMENTS, Key(placement.namespace, placement.name))
            with desk.times.trying("", self._state.now, chance()):
                await self._own.send(PLACEMENTS.resource, fleet_calls.put_status(path, placement.uid, status))

    async def _finish(self, placement: Placement, unlisted: list[str]) -> None:
        """Let a terminating placement go when no replica bears its uid any more (F5.3)."""
        fleet = self._state.fleet
        if fleet.bound[placement.uid] or not placement.finalized or unlisted or self._marks.are_left(placement):
            return
        if placement.status.get("singletons") or self._returned.singletons.entries(placement.text):
            return
        for key, decision in list(self._decisions.items()):
            if decision.placement_uid == placement.uid:
                await self._own.delete(DECISIONS, key)
        call = fleet_calls.remove_finalizer(self._seen[placement.text][0], placement)
        await self._own.send(PLACEMENTS.resource, call)

    async def _clean_up(self) -> None:
        """Delete Decisions without placement and replicas, and carry out releases of what is held there (F5.2)."""
        index, bound = self._state.fleet.index, self._state.fleet.bound
        left: dict[str, list[Key]] = defaultdict(list)
        for key, decision in self._decisions.items():
            if index.placement(decision.placement_uid) is None:
                left[decision.placement_uid].append(key)
        for uid, keys in left.items():
            for key in keys:
                if release := self._releases.get(key, ""):
                    self._replicas.look(self._state.losses.release(uid, release))
                    call = fleet_calls.remove_release(DECISIONS, key, uid=self._own.uid(key), release=release)
                    await self._own.send(DECISIONS.resource, call)
                if not bound[uid] and resolution.all_listed(self._state.fleet):
                    await self._own.delete(DECISIONS, key)
        if left:
            self._dispatcher.later(_job(""), _PACE_SECONDS)


def _job(text: str) -> Job[Work]:
    return Job(PLACEMENTS.resource, WORK, text)
