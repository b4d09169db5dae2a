"""The lanes of a work queue against the rule of their turns, which looks at every lane."""

from collections import Counter
from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.core.watching import lanes as lanes_module
from crsyncer.core.watching.lanes import Lanes

KEYS = range(60)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ready"), st.sampled_from(KEYS), st.integers(0, 2)),
        st.tuples(st.just("many"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("take"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("take"), st.just(99), st.just(0)),
        st.tuples(st.just("leave"), st.integers(0, 59), st.just(0)),
        st.tuples(st.just("done"), st.integers(0, 59), st.just(0)),
        st.tuples(st.just("moved"), st.sampled_from(KEYS), st.integers(0, 7)),
    ),
    max_size=80,
)


class EveryLane:
    """The rule: it looks at each lane whenever a key is wanted."""

    def __init__(self) -> None:
        self.ready: dict[Hashable, dict[int, list[int]]] = {}
        """By lane, in the order in which the lanes got keys; by priority, in the order in which the keys came."""
        self.turns: dict[Hashable, tuple[int, bool]] = {}
        self.lane_of: dict[int, Hashable] = {}
        self.count = 0

    def enter(self, key: int, priority: int, lane: Hashable) -> None:
        self.lane_of[key] = lane
        self.ready.setdefault(lane, {}).setdefault(priority, []).append(key)

    def leave(self, key: int, priority: int) -> None:
        lane = self.lane_of[key]
        self.ready[lane][priority].remove(key)
        if not self.ready[lane][priority]:
            del self.ready[lane][priority]
        if not self.ready[lane]:
            del self.ready[lane]

    def take(self, most: int, under_way: Counter[Hashable]) -> int | None:
        free = [lane for lane in self.ready if under_way[lane] < most]
        heads = [(min(self.ready[lane]), self.turns.get(lane, (0, False)), lane) for lane in free]
        if not heads:
            return None
        priority, (_, newest), lane = min(heads, key=lambda head: (head[0], head[1][0]))
        equals = self.ready[lane][priority]
        key = equals[-1] if newest and len(equals) > 16 else equals[0]
        self.leave(key, priority)
        self.count += 1
        self.turns[lane] = (self.count, not newest)
        return key


@settings(deadline=None, max_examples=400)
@given(STEPS)
def test_F11_the_next_key_is_the_one_that_a_look_at_every_lane_finds(steps):
    now = {key: key % 8 for key in KEYS}
    """The lane of each key at present."""
    ready: dict[int, int] = {}
    working: list[int] = []
    under_way: Counter[Hashable] = Counter()
    lanes, rule = Lanes(now.__getitem__), EveryLane()

    def enter(key: int, priority: int) -> None:
        if key in working:
            return
        if key in ready:
            lanes.leave(key, ready[key])
            rule.leave(key, ready[key])
        ready[key] = priority
        lanes.enter(key, priority)
        rule.enter(key, priority, now[key])

    for what, number, other in steps:
        if what == "moved":
            now[number] = other
        elif what == "ready":
            enter(number, other)
        elif what == "many":
            for key in KEYS[number::4]:
                enter(key, other)
        elif what == "take":
            taken = lanes.take(number)
            assert taken == rule.take(number, under_way)
            if taken is not None:
                del ready[taken]
                working.append(taken)
                under_way[rule.lane_of[taken]] += 1
        elif what == "leave" and ready:
            key = list(ready)[number % len(ready)]
            lanes.leave(key, ready[key])
            rule.leave(key, ready.pop(key))
        elif what == "done" and working:
            key = working.pop(number % len(working))
            assert lanes.of(key) == rule.lane_of[key]
            under_way[rule.lane_of[key]] -= 1
            lanes.done(key)


def test_F11_of_lanes_without_keys_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "_IDLE", 2)
    lanes: Lanes[str] = Lanes(lambda key: key)
    for key in "abc":
        lanes.enter(key, 0)
        assert lanes.take() == key
        lanes.done(key)
    for key in "cba":
        lanes.enter(key, 0)
    assert [lanes.take() for _ in range(4)] == ["a", "b", "c", None]
