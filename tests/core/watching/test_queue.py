"""The queue of keys against a simple model of it: one reconciler a key, nothing lost, the best first."""

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from crsyncer.core.watching.queue import Priority, WorkQueue
from tests.core.builders import some

KEYS = "abcde"
keys = st.sampled_from(KEYS)
priorities = st.sampled_from(Priority)


@dataclass
class Waiting:
    """What the model knows of one key."""

    dirty: Priority | None = None
    order: int = 0
    at: float | None = None
    at_order: int = 0
    at_priority: Priority = Priority.AUDIT
    processing: Priority | None = None
    failures: int = 0


@dataclass
class Model:
    """The queue as its contract says it, without heaps."""

    keys: dict[str, Waiting] = field(default_factory=lambda: {key: Waiting() for key in KEYS})
    count: int = 0

    def add(self, key: str, priority: Priority) -> None:
        entry = self.keys[key]
        entry.at = None
        if entry.dirty is None or priority < entry.dirty:
            self.count += 1
            entry.dirty, entry.order = priority, self.count

    def add_at(self, key: str, when: float) -> None:
        entry = self.keys[key]
        if entry.dirty is None and (entry.at is None or when < entry.at):
            self.count += 1
            known = Priority.AUDIT if entry.at is None else entry.at_priority
            entry.at_priority = known if entry.processing is None else min(known, entry.processing)
            entry.at, entry.at_order = when, self.count

    def due(self, now: float) -> list[str]:
        """Those whose time has come, the earliest first, and of those the one that was asked for first."""
        waiting = [(e.at, e.at_order, key) for key, e in self.keys.items() if e.at is not None and e.at <= now]
        return [key for *_, key in sorted(waiting)]

    def candidates(self) -> list[tuple[Priority, int, str]]:
        """What may be handed out, best first."""
        ready = [
            (e.dirty, e.order, key) for key, e in self.keys.items() if e.dirty is not None and e.processing is None
        ]
        return sorted(ready)

    @property
    def busy(self) -> set[str]:
        return {k for k, e in self.keys.items() if (e.processing, e.dirty, e.at) != (None, None, None)}


class QueueMachine(RuleBasedStateMachine):
    """Both, side by side, with time that moves on and keys that become due in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[str] = WorkQueue()
        self.model = Model()
        self.now = 0.0

    @rule(key=keys, priority=priorities)
    def something_happens(self, key, priority):
        self.queue.add(key, priority)
        self.model.add(key, priority)

    @rule(key=keys, delay=st.integers(-2, 9))
    def look_again_later(self, key, delay):
        self.queue.add_at(key, self.now + delay)
        self.model.add_at(key, self.now + delay)

    @rule(seconds=st.integers(0, 4))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def a_worker_asks(self):
        for key in self.model.due(self.now):
            self.model.add(key, self.model.keys[key].at_priority)
        best = next(iter(self.model.candidates()), None)
        given_out = self.queue.pop(self.now)
        assert given_out == (best[2] if best else None)
        if given_out is not None:
            entry = self.model.keys[given_out]
            entry.dirty, entry.processing = None, entry.dirty

    @precondition(lambda self: any(e.processing is not None for e in self.model.keys.values()))
    @rule(data=st.data())
    def a_worker_is_done(self, data):
        key = data.draw(st.sampled_from([k for k, e in self.model.keys.items() if e.processing is not None]))
        self.queue.done(key)
        self.model.count += 1
        self.model.keys[key].processing, self.model.keys[key].order = None, self.model.count

    @rule(key=keys)
    def work_fails(self, key):
        entry = self.model.keys[key]
        assert self.queue.count_failure(key) == entry.failures
        entry.failures += 1

    @rule(key=keys)
    def work_succeeds(self, key):
        self.queue.succeeded(key)
        self.model.keys[key].failures = 0

    @rule(some_keys=st.sets(keys, max_size=2))
    def a_kind_stops(self, some_keys):
        self.queue.drop(lambda key: key in some_keys)
        for key in some_keys:
            self.model.keys[key] = Waiting(processing=self.model.keys[key].processing)

    @invariant()
    def nothing_is_lost_and_nothing_is_made_up(self):
        assert self.queue.count(lambda _: True) == len(self.model.busy)
        assert {key for key in KEYS if key in self.queue} == self.model.busy
        for key, entry in self.model.keys.items():
            assert self.queue.failures(key) == entry.failures
            assert self.queue.count(key.__eq__) == (key in self.model.busy)
            assert self.queue.count(key.__eq__, due=False) == ((entry.processing, entry.dirty) != (None, None))
            assert self.queue.due(key) == entry.at

    @invariant()
    def the_next_time_is_known(self):
        times = [entry.at for entry in self.model.keys.values() if entry.at is not None]
        assert self.queue.next_due() == min(times, default=None)


QueueMachine.TestCase.settings = settings(deadline=None, max_examples=50, stateful_step_count=40)
TestTheQueueAgainstItsModel = QueueMachine.TestCase


@some
@given(st.lists(st.tuples(keys, priorities), max_size=30))
def test_S7_2_the_queue_hands_out_by_priority_and_each_key_once(added):
    queue: WorkQueue[str] = WorkQueue()
    best: dict[str, Priority] = {}
    for key, priority in added:
        queue.add(key, priority)
        best[key] = min(priority, best.get(key, priority))
    handed = [key for key in iter(lambda: queue.pop(0.0), None) if key is not None]
    assert sorted(handed) == sorted(best)
    assert [best[key] for key in handed] == sorted(best.values())


def test_S7_2_after_an_outage_deletions_come_first_then_specs_then_statuses_the_final_ones_first_then_audits():
    order = [Priority.DELETION, Priority.SPEC, Priority.FINAL_STATUS, Priority.PERIODIC_STATUS, Priority.AUDIT]
    assert sorted(order) == order
    assert (min(Priority), max(Priority)) == (Priority.DELETION, Priority.AUDIT)


def test_S7_2_what_happens_to_a_waiting_key_again_does_not_send_it_to_the_end():
    queue: WorkQueue[str] = WorkQueue()
    for key in "abca":
        queue.add(key, Priority.SPEC)
    assert [queue.pop(0.0) for _ in range(4)] == ["a", "b", "c", None]


def test_S9_5_a_key_that_changes_while_it_is_worked_on_is_looked_at_again_after_that():
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", Priority.SPEC)
    assert queue.pop(0.0) == "a"
    queue.add("a", Priority.AUDIT)
    queue.add("a", Priority.SPEC)
    assert queue.pop(0.0) is None
    queue.done("a")
    assert queue.pop(0.0) == "a"
    queue.done("a")
    assert (queue.pop(0.0), queue.count(lambda _: True)) == (None, 0)


def test_a_key_that_is_withdrawn_while_it_is_worked_on_is_not_handed_out_again_for_what_happened_before():
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", Priority.SPEC)
    queue.add("b", Priority.AUDIT)
    queue.pop(0.0)
    queue.add("a", Priority.SPEC)
    queue.withdraw("a")
    queue.withdraw("b")
    queue.done("a")
    assert "a" not in queue
    assert queue.pop(0.0) == "b"
    queue.add("a", Priority.SPEC)
    assert queue.pop(0.0) == "a"


def test_a_key_whose_time_comes_while_it_is_worked_on_waits_for_its_reconciler():
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", Priority.SPEC)
    queue.pop(0.0)
    queue.add_at("a", 5.0)
    assert queue.pop(6.0) is None
    queue.done("a")
    assert queue.pop(6.0) == "a"


def test_S7_2_a_key_that_is_tried_again_is_as_urgent_as_it_was():
    queue: WorkQueue[str] = WorkQueue()
    for key, priority in (("a", Priority.DELETION), ("b", Priority.PERIODIC_STATUS)):
        queue.add(key, priority)
        queue.pop(0.0)
        queue.add_at(key, 5.0)
        queue.done(key)
    queue.add("c", Priority.SPEC)
    assert [queue.pop(5.0) for _ in range(3)] == ["a", "c", "b"]


def test_a_key_that_fails_is_not_tried_before_its_time_unless_something_happens_to_it():
    queue: WorkQueue[str] = WorkQueue()
    queue.add_at("a", 5.0)
    queue.add_at("a", 7.0)
    assert (queue.pop(4.9), queue.next_due()) == (None, 5.0)
    queue.add("a", Priority.SPEC)
    assert (queue.pop(0.0), queue.next_due()) == ("a", None)


def test_the_earliest_of_several_times_counts_and_the_others_are_forgotten():
    queue: WorkQueue[str] = WorkQueue()
    queue.add_at("a", 5.0)
    queue.add_at("a", 3.0)
    assert (queue.next_due(), queue.pop(9.0)) == (3.0, "a")
    queue.done("a")
    assert (queue.pop(9.0), queue.next_due(), queue.count(lambda _: True)) == (None, None, 0)


def test_a_key_that_waits_for_its_time_says_for_which_and_can_be_left_out_of_the_count():
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", Priority.SPEC)
    queue.add_at("b", 5.0)
    assert (queue.due("a"), queue.due("b")) == (None, 5.0)
    assert (queue.count(lambda _: True), queue.count(lambda _: True, due=False)) == (2, 1)


def lanes() -> WorkQueue[str]:
    """A queue in which keys of the same first letter are in a lane."""
    return WorkQueue(lambda key: key[0])


def test_S9_5_among_equals_the_lanes_take_turns_and_in_a_lane_the_first_is_the_first():
    queue = lanes()
    for key in ("a1", "a2", "a3", "b1", "b2", "c1"):
        queue.add(key, Priority.SPEC)
    queue.add("a0", Priority.DELETION)
    assert [queue.pop(0.0) for _ in range(8)] == ["a0", "b1", "c1", "a1", "b2", "a2", "a3", None]


def test_S9_5_a_lane_that_comes_late_does_not_wait_for_those_that_are_long():
    queue = lanes()
    for number in range(100):
        queue.add(f"a{number}", Priority.FINAL_STATUS)
    assert queue.pop(0.0) == "a0"
    queue.add("b", Priority.FINAL_STATUS)
    assert queue.pop(0.0) == "b"


def test_S9_5_where_many_wait_every_other_one_is_the_newest_and_none_waits_forever():
    queue = lanes()
    for number in range(20):
        queue.add(f"a{number}", Priority.FINAL_STATUS)
    assert [queue.pop(0.0) for _ in range(6)] == ["a0", "a19", "a1", "a18", "a2", "a3"]
    handed = []
    for number in range(20, 220):
        queue.add(f"a{number}", Priority.FINAL_STATUS)
        handed.append(queue.pop(0.0))
    assert {f"a{number}" for number in range(4, 18)} <= set(handed)


def test_S9_5_of_a_lane_of_which_enough_is_under_way_nothing_is_handed_out():
    queue = lanes()
    for key in ("a1", "a2", "b1"):
        queue.add(key, Priority.SPEC)
    assert queue.pop(0.0) == "a1"
    assert [queue.pop(0.0, 1) for _ in range(2)] == ["b1", None]
    assert queue.pop(0.0, 0) is None
    queue.done("a1")
    assert [queue.pop(0.0, 1) for _ in range(2)] == ["a2", None]


@pytest.mark.parametrize("when", [1e17, math.inf])
def test_a_key_is_not_lost_however_late_its_time_is(when):
    queue: WorkQueue[str] = WorkQueue()
    queue.add_at("a", when)
    assert ("a" in queue, queue.next_due(), queue.pop(when)) == (True, when, "a")


def test_S9_1_a_command_makes_whatever_waits_for_its_time_due_now():
    queue: WorkQueue[str] = WorkQueue()
    queue.add("urgent", Priority.DELETION)
    assert queue.pop(0.0) == "urgent"
    queue.add_at("urgent", 60.0)
    queue.add_at("late", 3600.0)
    queue.done("urgent")
    queue.retry_now()
    assert [queue.pop(0.0) for _ in range(3)] == ["urgent", "late", None]
    assert queue.next_due() is None


def test_F11_the_lane_of_a_key_is_that_of_when_it_became_ready():
    lane_of = {"x": "a", "y": "a"}
    queue: WorkQueue[str] = WorkQueue(lane_of.__getitem__)
    queue.add("x", Priority.SPEC)
    queue.add("y", Priority.SPEC)
    lane_of["x"] = "b"
    queue.add("x", Priority.DELETION)  # ready again, at another priority
    lane_of["x"] = "c"
    assert (queue.lane("x"), queue.lane("y")) == ("b", "a")
    assert queue.pop(0.0) == "x"
    assert queue.lane("x") == "b"
    queue.add("x", Priority.SPEC)
    queue.done("x")
    assert queue.lane("x") == "c"
    queue.drop(lambda _: True)
    assert queue.pop(0.0) is None
