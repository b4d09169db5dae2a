"""When the controller writes again: at a pace, later and later after failures, one for all (F6.3, S10)."""

import math

import pytest

from crsyncer.errors import NotGranted, Unsure
from crsyncer.fleet.domain.rollout.tries import ForbiddenWrites, WriteTimes

PACE = 5.0


def fail(times: WriteTimes[str], now: float) -> None:
    with pytest.raises(Unsure), times.trying("a", now, 0.0):
        raise Unsure("no answer")


def test_F6_3_an_object_is_written_at_once_and_then_at_its_pace() -> None:
    times: WriteTimes[str] = WriteTimes()
    assert times.left("a", 100.0, pace=PACE) == 0.0
    with times.trying("a", 100.0, 0.0):
        pass
    assert [times.left("a", now, pace=PACE) for now in (100.0, 103.0, 106.0)] == [5.0, 2.0, 0.0]
    assert times.left("a", 100.0, pace=0.0) == times.left("b", 100.0, pace=PACE) == 0.0


def test_F6_3_an_object_that_was_looked_at_has_its_pace_and_one_that_failed_keeps_its_wait() -> None:
    times: WriteTimes[str] = WriteTimes()
    times.looked("a", 100.0)
    assert [times.left("a", now, pace=PACE) for now in (100.0, 103.0, 106.0)] == [5.0, 2.0, 0.0]
    fail(times, 110.0)
    times.looked("a", 110.5)
    assert times.left("a", 110.5, pace=PACE) == 0.5


def test_S10_what_failed_waits_longer_each_time_whatever_its_pace_until_it_is_written() -> None:
    times: WriteTimes[str] = WriteTimes()
    for now, wait in ((100.0, 1.0), (101.0, 2.0), (103.0, 4.0), (107.0, 8.0)):
        fail(times, now)
        assert [times.left("a", now, pace=pace) for pace in (0.0, PACE)] == [wait, wait]
        assert times.left("a", now + wait, pace=PACE) == 0.0
    with times.trying("a", 115.0, 0.0):
        pass
    assert times.left("a", 115.0, pace=PACE) == PACE
    fail(times, 120.0)
    assert times.left("a", 120.0, pace=PACE) == 1.0


def test_S10_an_object_of_which_the_server_forbids_a_write_keeps_its_pace_and_waits_for_its_turn_alone() -> None:
    times: WriteTimes[str] = WriteTimes()
    fail(times, 100.0)
    with pytest.raises(NotGranted), times.trying("a", 101.0, 0.0):
        raise NotGranted("it is forbidden", again=102.0)
    assert times.left("a", 102.0, pace=PACE) == 4.0


def test_F6_3_an_object_that_is_gone_has_no_pace() -> None:
    times: WriteTimes[str] = WriteTimes()
    fail(times, 100.0)
    times.forget("a")
    assert times.left("a", 100.0, pace=PACE) == 0.0


def after(writes: ForbiddenWrites[str], *, until: float) -> list[tuple[float, str]]:
    """What is tried until a time, each at the earliest, and forbidden again."""
    found: list[tuple[float, str]] = []
    while (now := writes.next_try) <= until:
        for key in writes.due(now, 0.0):
            found.append((now, key))
            writes.forbidden(key, now, 0.0)
    return found


def test_S10_one_forbidden_write_is_tried_with_waits_that_double_from_1_to_60_s() -> None:
    writes = ForbiddenWrites[str]()
    assert writes.next_try == math.inf
    assert writes.due(0.0, 0.0) == []
    writes.forbidden("a", 0.0, 0.0)
    assert "a" in writes
    assert writes.due(0.9, 0.0) == []
    assert [when for when, _ in after(writes, until=130.0)] == [1.0, 3.0, 7.0, 15.0, 31.0, 61.0, 91.0, 121.0]


def test_S10_of_many_forbidden_writes_the_one_that_was_tried_least_recently_is_next() -> None:
    writes = ForbiddenWrites[str]()
    for name in "abc":
        writes.forbidden(name, 0.0, 0.0)
    assert "".join(key for _, key in after(writes, until=62.0)) == "abcabc"
    assert after(writes, until=62.0) == []


def test_S10_each_write_that_is_allowed_has_two_more_tried_at_once_until_none_is_left() -> None:
    writes, now, counts = ForbiddenWrites[int](), 0.0, []
    for number in range(100):
        writes.forbidden(number, now, 0.0)
    while writes.next_try < math.inf:
        now = writes.next_try
        keys = writes.due(now, 0.0)
        counts.append(len(keys))
        for key in keys:
            writes.allowed(key, now)
    assert counts == [1, 2, 4, 8, 16, 32, 37]
    assert now == 1.0


def test_S10_what_is_forbidden_again_after_others_were_allowed_waits_from_1_s_again() -> None:
    writes = ForbiddenWrites[str]()
    for name in "abc":
        writes.forbidden(name, 0.0, 0.0)
    after(writes, until=100.0)
    (key,) = writes.due(now := writes.next_try, 0.0)
    writes.allowed(key, now)
    assert len(writes.due(now, 0.0)) == 2
    assert writes.next_try == now + 1.0


def test_S10_a_write_that_nobody_wants_any_more_is_tried_no_more() -> None:
    writes = ForbiddenWrites[str]()
    for name in "ab":
        writes.forbidden(name, 0.0, 0.0)
    writes.forget("a")
    assert writes.due(1.0, 0.0) == ["b"]
    writes.forget("b")
    assert writes.due(1000.0, 0.0) == []


def asked(writes: ForbiddenWrites[str], keys: str, *, until: float) -> list[tuple[float, str]]:
    """Which writes are made, and forbidden, of those whose makers come at each `next_try` and ask."""
    found: list[tuple[float, str]] = []
    while (now := writes.next_try) <= until:
        for key in keys:
            if writes.refusal(key, now, 0.0) is None:
                found.append((now, key))
                writes.forbidden(key, now, 0.0)
    return found


def test_S10_of_many_who_ask_each_has_its_turn_and_the_others_hear_what_the_server_said_of_theirs() -> None:
    writes = ForbiddenWrites[str]()
    assert writes.refusal("a", 0.0, 0.0) is None
    for name in "abc":
        writes.forbidden(name, 0.0, 0.0, f"{name} is forbidden")
    assert [writes.refusal(name, 0.9, 0.0) for name in "abc"] == [f"{name} is forbidden" for name in "abc"]
    assert asked(writes, "cba", until=62.0) == [
        (when, key) for when, key in zip((1, 3, 7, 15, 31, 61), "abcabc", strict=True)
    ]


def test_S10_who_does_not_ask_any_more_loses_its_turn_within_some_minutes() -> None:
    writes = ForbiddenWrites[str]()
    for name in "abcdefghz":
        writes.forbidden(name, 0.0, 0.0)
    assert [key for when, key in asked(writes, "z", until=400.0) if when > 200.0] == ["z"] * 7
    writes.allowed("z", 400.0)
    assert writes.next_try == math.inf
    assert writes.refusal("a", 400.0, 0.0) is None
