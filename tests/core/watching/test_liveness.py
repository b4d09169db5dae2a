"""What `/livez` says of what stands still."""

from crsyncer.core.watching.progress import Progress, stuck


def test_nothing_is_stuck_that_has_moved_within_its_time():
    assert stuck([], 1000.0) is None
    assert stuck([Progress("a", 100.0, 30.0), Progress("b", 0.0, 130.0)], 130.0) is None


def test_what_is_longest_over_its_time_is_named():
    known = [Progress("a", 100.0, 30.0), Progress("the watch of goals", 50.0, 60.0), Progress("c", 129.0, 30.0)]
    assert stuck(known, 131.5) == "the watch of goals has made no progress for 82 s"
