"""How long something waits before it is tried again, whatever the jitter."""

from hypothesis import example, given
from hypothesis import strategies as st

from crsyncer.core.watching.backoff import CONFLICT, RETRY, Backoff, capped, spread
from tests.core.builders import many

chances = st.floats(0, 1)
backoffs = st.sampled_from([RETRY, CONFLICT, Backoff(0.5, 30.0), Backoff(5.0, 300.0)])


@many
@given(st.lists(chances, min_size=100, max_size=100))
@example([0.0] * 100)
@example([1.0] * 100)
def test_S10_what_keeps_failing_is_tried_at_most_six_times_in_its_first_minute(seeds):
    tried, now = 0, 0.0
    for failures, chance in enumerate(seeds):
        if now >= 60.0:
            break
        tried += 1
        now += RETRY.wait(failures, chance)
    assert tried <= 6


@many
@given(backoffs, st.integers(0, 10**6), chances)
def test_a_wait_lies_in_its_octave_and_never_beyond_the_longest(backoff, failures, chance):
    wait = backoff.wait(failures, chance)
    assert min(backoff.last / 2, backoff.first * 2 ** min(failures, 30)) <= wait <= backoff.last
    assert wait <= backoff.first * 2 ** (min(failures, 30) + 1)


@many
@given(backoffs, st.integers(0, 100))
def test_clients_that_failed_together_spread_over_the_whole_octave(backoff, failures):
    assert backoff.wait(failures, 1.0) == 2 * backoff.wait(failures, 0.0)
    assert backoff.wait(failures + 1, 0.0) <= backoff.wait(failures, 1.0)


@many
@given(st.one_of(st.none(), st.floats(0, 10**9)), chances)
@example(86_400.0, 1.0)
def test_S9_1_a_server_is_given_the_time_it_asks_for_but_five_minutes_at_most(asked, chance):
    wait = spread(capped(asked, default=1.0), chance)
    assert min(250.0, 1.0 if asked is None else asked) <= wait <= 300.0
