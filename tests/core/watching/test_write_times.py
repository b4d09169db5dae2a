"""When an object may be written again: at its pace, and after failures later and later (F6.3, S10)."""

import pytest

from crsyncer.core.watching.write_times import WriteTimes
from crsyncer.errors import Unsure

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


def test_F6_3_an_object_that_is_gone_has_no_pace() -> None:
    times: WriteTimes[str] = WriteTimes()
    fail(times, 100.0)
    times.forget("a")
    assert times.left("a", 100.0, pace=PACE) == 0.0
