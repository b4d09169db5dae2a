"""How many writes at a time: more while nobody waits, fewer when somebody did (S9.5)."""

from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.watching.pace import MOST, Pace
from tests.core.builders import some

PATCH, WEBHOOK = "patch goals", "create maps"


def line(pace: Pace, *, each: float, way: float = 0.0, rounds: int = 60, start: float = 0.0) -> list[int]:
    """A line that carries one write in `each` seconds, and is `way` seconds long; the limit after each round."""
    limits, now = [], start
    for _ in range(rounds):
        count = pace.limit
        for place in range(count):
            seconds = way + (place + 1) * each
            pace.answered(PATCH, seconds, under_way=count, now=now + seconds)
        now += way + count * each
        limits.append(pace.limit)
    return limits


def test_a_near_server_is_given_sixteen_at_a_time_and_at_once():
    pace = Pace()
    assert pace.limit == 4
    assert line(pace, each=0.01)[2:] == [MOST] * 58


def test_a_line_that_is_long_and_not_narrow_is_given_as_many():
    assert line(Pace(), each=0.005, way=1.0)[2:] == [MOST] * 58


def test_a_narrow_line_is_given_as_many_as_do_not_wait():
    limits = line(Pace(), each=0.2)
    assert max(limits[20:]) <= 5
    assert min(limits) >= 2


def test_a_line_that_becomes_wide_again_is_found_out():
    pace = Pace()
    line(pace, each=0.2)
    assert line(pace, each=0.01, start=100.0, rounds=200)[-1] == MOST


def test_a_line_that_becomes_long_is_as_good_as_before_when_the_old_answers_are_forgotten():
    pace = Pace()
    line(pace, each=0.005)
    assert min(line(pace, each=0.005, way=1.0, start=10.0, rounds=20)) == 2
    assert line(pace, each=0.005, way=1.0, start=200.0, rounds=300)[-1] == MOST


def test_what_is_not_made_use_of_is_not_known_to_be_good():
    pace = Pace()
    for number in range(100):
        pace.answered(PATCH, 0.01, under_way=1, now=number * 0.1)
    assert pace.limit == 4


def test_one_slow_answer_costs_little_and_those_that_waited_with_it_nothing_more():
    pace = Pace()
    line(pace, each=0.01)
    for _ in range(MOST):
        pace.answered(PATCH, 3.0, under_way=MOST, now=10.0)
    assert pace.limit == MOST / 2


def test_a_kind_that_always_takes_long_slows_nobody_down():
    pace = Pace()
    for number in range(100):
        pace.answered(PATCH, 0.01, under_way=MOST, now=number * 0.1)
        pace.answered(WEBHOOK, 1.9, under_way=MOST, now=number * 0.1)
    assert pace.limit == MOST


def test_who_asks_for_patience_is_given_one_at_a_time_and_then_more():
    pace = Pace()
    line(pace, each=0.01)
    pace.throttled()
    assert pace.limit == 1
    assert line(pace, each=0.01, start=20.0)[:5] == [2, 4, 8, 16, 16]
    pace.throttled()
    pace.answered(PATCH, 5.0, under_way=1, now=30.0)
    assert pace.limit == 1


def test_what_counts_as_slow_is_what_the_line_does_not_explain():
    pace = Pace()
    assert pace.slow == 2.0
    pace.answered(PATCH, 1.5, under_way=1, now=0.0)
    pace.answered(WEBHOOK, 9.0, under_way=1, now=0.0)
    assert pace.slow == 4.5
    pace.answered(PATCH, 0.1, under_way=1, now=61.0)
    assert pace.slow == 2.0
    pace.answered(PATCH, 1.0, under_way=1, now=1000.0)
    assert pace.slow == 3.0


@some
@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from([PATCH, WEBHOOK]), st.floats(0, 90))), max_size=60))
def test_the_limit_is_never_below_one_nor_above_sixteen(answers):
    pace, now = Pace(), 0.0
    for answer in answers:
        if answer is None:
            pace.throttled()
        else:
            now += answer[1]
            pace.answered(*answer, under_way=MOST, now=now)
        assert 1 <= pace.limit <= MOST
        assert pace.slow >= 2.0
