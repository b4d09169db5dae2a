"""A rollout over simulated robots, with leaders that come and go and keep nothing but the Decisions, and its judge."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.fleet.domain.rollout.decisions import Decided, Decision
from crsyncer.fleet.domain.rollout.placement_progress import PlacementProgress
from crsyncer.fleet.domain.rollout.reports import Report, Reports
from crsyncer.fleet.domain.rollout.robot_states import RobotTally
from crsyncer.fleet.domain.rollout.rollout_order import most_in_flight
from crsyncer.fleet.domain.values import RobotState, Rollout
from tests.fleet.made import placement
from tests.fleet.simulated_robots import Clock, Quality, Replica, SimulatedRobot

T = 1_790_000_000.0
BEGUN = (RobotState.IN_FLIGHT, RobotState.STAMPED, RobotState.FAILED)


class SimulatedRollout:
    """Robots, the server's Decisions, and a controller of one placement. It judges each write and each step."""

    def __init__(self, seed: int, *, robots: int, silent: int = 0, **rollout: Any) -> None:
        self.random = Random(seed)
        self.clock = Clock(T)
        self.placement = placement(
            robotSelectors=[{}],
            readyWhen="returned.status.ok",
            rollout={"groups": [{"matchLabels": {"ring": "canary"}}, {"matchLabels": {"ring": "early"}}], **rollout},
        )
        self.qualities = {0: Quality.GOOD}
        self.content = 0
        self.decisions: dict[int, dict[str, Decided]] = {}
        """As the server has them."""
        self.replaced: dict[int, dict[str, Decided]] = {}
        """As it had them before a write that is not answered."""
        self.robots: dict[str, SimulatedRobot] = {}
        rings = ["canary", "early", "late"]
        per_robot = self.random.choice([1, 1, 2])
        for number in range(robots + silent):
            labels = {"ring": rings[number] if number < len(rings) else self.random.choice(rings)}
            replicas = [Replica() for _ in range(per_robot)]
            robot = SimulatedRobot(
                f"r{number:02}", labels, replicas, self.clock, self.random, self.qualities, self.changed,
                reports=number < robots,
            )  # fmt: skip
            self.robots[robot.name] = robot
        self.had: dict[int, set[str]] = defaultdict(set)
        """By content: the robots that had it."""
        self.silent: dict[int, set[str]] = defaultdict(set)
        """By content: the robots that were begun with it while they were not online."""
        self.begun: dict[str, int] = {}
        """The content with which a robot was begun, until it is Ready or begun anew."""
        self.left: set[str] = set()
        """The robots that are not selected."""
        self.excused: dict[int, int] = defaultdict(int)
        """By content: how often a robot that may have it was unselected, and its failure forgotten."""
        self.most: dict[int, int] = defaultdict(int)
        """By content: the most robots that may have it, if it is bad."""
        self.proven = set(self.robots)
        """The robots whose content was Ready, or that have none."""
        self.leader = 0
        self.progress: PlacementProgress | None = None
        self.reports = Reports(robots_namespace="default")
        self._told: dict[str, int] = {}
        """The content of which a robot was told last."""
        self._reported: dict[str, Report] = {}
        self._judged: Any = None
        self._writing: set[int] = set()
        self._timer: float | None = None
        for robot in self.robots.values():
            robot.start()

    # What happens to it.

    @property
    def rollout(self) -> Rollout:
        assert self.placement.rollout is not None
        return self.placement.rollout

    def edit(self, quality: Quality = Quality.GOOD) -> None:
        """The source is edited: all replicas have to change."""
        self.content = max(self.qualities) + 1
        self.qualities[self.content] = quality
        self._tell_all()

    def revert(self, content: int) -> None:
        """The source is what it was before."""
        self.content = content
        self._tell_all()

    def change(self, **fields: Any) -> None:
        """The rollout is edited."""
        self.placement = replace(self.placement, rollout=replace(self.rollout, **fields))
        if self.progress is not None:
            self.progress.placement_changed(self.placement)
            self._step()

    def relabel(self, name: str, ring: str) -> None:
        self.robots[name].labels = {"ring": ring}
        self.changed(name)

    def stop_reports(self, *names: str) -> None:
        """Older agents are installed, and somebody deletes the reports."""
        for name in names:
            robot = self.robots[name]
            robot.reports, robot.beat = False, 0
            self.reports.gone(f"robot-{name}", name, now=self.clock.now)
            if self.progress is not None:
                self._tell(name)
        if self.progress is not None:
            self._step()

    def unselect(self, name: str) -> None:
        """A robot is not selected for more than 30 s: its replicas go (F5.1)."""
        self.left.add(name)
        self.excused[self.content] += 1
        self.changed(name)
        self.clock.after(30, self.robots[name].lost)
        self.clock.after(60, partial(self._select, name))

    def _select(self, name: str) -> None:
        self.left.discard(name)
        self.proven.add(name)
        self.changed(name)

    def delete_replica(self, name: str) -> None:
        """Somebody deletes a replica; it is to be made again."""
        each = self.random.choice(self.robots[name].replicas)
        each.content = 0
        self.robots[name].written()
        self.changed(name)

    def kill_leader(self, *, gap: float = 20.0) -> None:
        """The leader ends; another one leads after a while."""
        if self.progress is not None:
            self.leader += 1
            self.progress = None
            self.clock.after(gap, self.lead)

    def lead(self) -> None:
        """A new leader reads all that the server has."""
        stored = [
            Decision("site", f"all-{n}", "all", "uid-all", n, dict(robots)) for n, robots in self.decisions.items()
        ]
        self.progress = PlacementProgress(self.placement, stored)
        self.reports = Reports(robots_namespace="default")
        self._told, self._writing, self._timer = {}, set(), None
        self.replaced.clear()
        for name in self.robots:
            self._tell(name)
        self._step()

    def changed(self, name: str) -> None:
        """The cloud has news of a robot."""
        if self.progress is not None:
            self._tell(name)
            self._step()

    # The controller.

    def _tell_all(self) -> None:
        """In two parts, as a controller that must not hold up everything else: nothing is begun between them."""
        if self.progress is not None:
            names = self.random.sample(sorted(self.robots), len(self.robots))
            for name in names[: len(names) // 2]:
                self._tell(name)
            self._step(may_begin=False)
            for name in names[len(names) // 2 :]:
                self._tell(name)
            self._step()

    def _tell(self, name: str) -> None:
        assert self.progress is not None
        robot = self.robots[name]
        if name in self.left:
            self.progress.tell(name, None)
            return
        state = robot.sync_state()
        if state is not None:
            self.reports.shown(state, now=self.clock.now)
        report, applied = self.reports.of_placement(name, "uid-all", self.clock.now)
        tally = RobotTally(
            replicas=len(robot.replicas),
            due=sum(each.content != self.content for each in robot.replicas),
            errors=0,
            terminating=0,
            stamp=f"content {self.content}",
            acked=applied is not None and applied == applied_digest(robot.pairs()),
            report=report,
            ready=robot.is_ready,
            labels=dict(robot.labels),
        )
        self._told[name], self._reported[name] = self.content, tally.report
        self.progress.tell(name, tally)

    def _step(self, *, may_begin: bool = True) -> None:
        progress = self.progress
        assert progress is not None
        for name in self.reports.turned(self.clock.now):
            self._tell(name)
        self._write(progress.step(self.clock.now, may_begin=may_begin))
        self._judge_step(may_begin=may_begin)
        self._save()
        times = [time for time in (progress.next_step(), self.reports.next_turn()) if time is not None]
        if times and (self._timer is None or min(times) < self._timer):
            self._timer = min(times)
            self.clock.after(max(0.0, self._timer - self.clock.now), partial(self._wake, progress))

    def _wake(self, progress: PlacementProgress) -> None:
        if self.progress is progress:
            self._timer = None
            self._step()

    def _save(self) -> None:
        """Write each Decision that differs, one request at a time; an answer may come late, and the leader be gone."""
        progress = self.progress
        assert progress is not None
        for number in progress.decisions():
            if number not in self._writing:
                self._writing.add(number)
                wait = 0.5 if number in progress.urgent() else 5.0
                self.clock.after(self.random.uniform(0, wait), partial(self._send, progress, number))

    def _send(self, progress: PlacementProgress, number: int) -> None:
        if self.progress is not progress:
            return
        robots = progress.decisions().get(number)
        if robots is None:
            self._writing.discard(number)
            return
        self.replaced[number] = self.decisions.get(number, {})
        self.decisions[number] = dict(robots)
        self.clock.after(self.random.uniform(0, 1), partial(self._answered, progress, number, dict(robots)))

    def _answered(self, progress: PlacementProgress, number: int, robots: dict[str, Decided]) -> None:
        if self.progress is progress:
            self._writing.discard(number)
            del self.replaced[number]
            self._write(progress.stored(number, robots))
            self._save()

    def _write(self, names: list[str]) -> None:
        progress = self.progress
        for name in names:
            for at in range(len(self.robots[name].replicas)):
                self.clock.after(self.random.uniform(0, 3), partial(self._put, progress, name, at))

    def _put(self, progress: PlacementProgress | None, name: str, at: int) -> None:
        robot = self.robots[name]
        replica = robot.replicas[at]
        if self.progress is not progress or progress is None or replica.content == self.content:
            return
        if not progress.may_write(name):
            return
        assert name not in self.left
        self._judge_write(name)
        replica.content, replica.number = self.content, replica.number + 1
        self.had[self.content].add(name)
        self.proven.discard(name)
        robot.written()
        self.changed(name)

    # The judge.

    def _judge_write(self, name: str) -> None:
        """No write before its Decision; no new content for a robot that is offline and had sound content (Defer)."""
        known = [*self.decisions.values(), *self.replaced.values()]
        found = [robots[name] for robots in known if name in robots and robots[name].state in BEGUN]
        wanted = f"content {self.content}"
        found = [each for each in found if each.stamp == wanted or (each.state is RobotState.FAILED and not each.stamp)]
        assert found, (name, known)
        said = found[0]
        is_offline = self.reports.report(name, self.clock.now) is Report.OFFLINE
        if is_offline and not self.rollout.stamp_offline and said.state is RobotState.STAMPED:
            assert name not in self.proven, (name, said)

    def _judge_step(self, *, may_begin: bool) -> None:
        """The order of the groups, and the limits, by a look at everything."""
        assert self.progress is not None
        states = self.progress.states
        assert self.progress.step(self.clock.now, may_begin=may_begin) == []
        if (judged := (dict(states), dict(self._told), dict(self._reported))) == self._judged:
            return
        self._judged = judged
        self.proven |= {name for name, state in states.items() if state is RobotState.READY}
        reports = {name: self._reported[name] for name in states}
        most = most_in_flight(self.rollout, sum(each is Report.ONLINE for each in reports.values()))
        self.most[self.content] = max(self.most[self.content], most + self.rollout.max_failures)
        counts = self.progress.counts(replicas=0)
        assert counts["selected"] == sum(list(counts.values())[4:]) == len(self.robots.keys() - self.left)
        assert counts["offline"] == sum(each is Report.OFFLINE for each in reports.values())
        begun = []
        for name, state in states.items():
            content = self._told[name]
            is_due = any(each.content != content for each in self.robots[name].replicas)
            if state not in BEGUN:
                self.begun.pop(name, None)
            elif is_due and self.begun.get(name) != content:
                self.begun[name] = content
                begun.append(name)
        if not begun:
            return
        assert counts["failed"] <= self.rollout.max_failures
        if any(states[name] is RobotState.IN_FLIGHT for name in begun):
            assert counts["inFlight"] <= most
        for name in begun:
            is_silent = states[name] is RobotState.STAMPED
            if is_silent:
                self.silent[self.content].add(name)
            for group in range(3 if is_silent else self._group(name)):
                members = [
                    each
                    for each, state in states.items()
                    if self._group(each) == group
                    and (reports[each] is Report.ONLINE or state in (RobotState.READY, RobotState.DEFERRED, *BEGUN))
                    and not (reports[each] is not Report.ONLINE and state is RobotState.STAMPED)
                    and not (reports[each] is Report.UNREPORTED and state is RobotState.READY)
                ]
                found = {states[each] for each in members}
                assert not found & {RobotState.WAITING, RobotState.IN_FLIGHT}, (name, group, found)
                assert not found or RobotState.READY in found, (name, group, found)

    def _group(self, name: str) -> int:
        return {"canary": 0, "early": 1}.get(self.robots[name].labels["ring"], 2)

    def run(self, seconds: float) -> None:
        self.clock.run(self.clock.now + seconds)

    def states(self) -> dict[str, RobotState]:
        assert self.progress is not None
        return dict(self.progress.states)
