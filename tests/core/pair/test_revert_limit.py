"""How often a copy that somebody keeps changing is reverted (S3.5)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.model import Key
from crsyncer.core.pair.revert_limit import RevertLimit
from tests.core.builders import some

A, B = Key("default", "a"), Key("default", "b")
gaps = st.lists(st.floats(0.0, 90.0), min_size=1, max_size=60)


def fight(limiter: RevertLimit, key: Key, waits: list[float]) -> list[float]:
    """When an object is reverted that somebody changes again after each of these times, in seconds."""
    now, reverts = 1000.0, []
    for pause in waits:
        now += pause
        now += limiter.wait(key, now)
        limiter.reverted(key, now)
        reverts.append(now)
    return reverts


@some
@given(gaps)
def test_S3_5_an_object_is_never_reverted_more_than_five_times_in_a_minute(waits):
    reverts = fight(RevertLimit(), A, waits)
    assert all(later - first >= 60.0 - 1e-6 for first, later in zip(reverts, reverts[5:], strict=False))


@some
@given(st.lists(st.floats(0.0, 10.0), min_size=8, max_size=40))
def test_S3_5_a_fight_is_slowed_down_to_once_a_minute_for_as_long_as_it_goes_on(waits):
    reverts = fight(RevertLimit(), A, waits)
    pauses = [later - first for first, later in pairwise(reverts)]
    first_slow = next((n for n, pause in enumerate(pauses) if pause >= 60.0 - 1e-6), None)
    if first_slow is None:
        assert all(later - first > 60.0 - 1e-6 for first, later in zip(reverts, reverts[5:], strict=False))
    else:
        assert first_slow >= 4
        assert all(pause >= 60.0 - 1e-6 for pause in pauses[first_slow:])


def test_S3_5_the_first_five_reverts_are_immediate_and_the_sixth_waits():
    limiter = RevertLimit()
    for second in range(5):
        assert limiter.wait(A, float(second)) == 0.0
        limiter.reverted(A, float(second))
    assert limiter.wait(A, 60.0) == 0.0  # the first is a minute ago
    assert limiter.wait(A, 5.0) == 59.0
    assert limiter.wait(B, 5.0) == 0.0


def test_S3_5_a_fight_is_over_when_nothing_was_to_be_reverted_for_a_minute():
    limiter = RevertLimit()
    assert fight(limiter, A, [0.0] * 6)[-2:] == [1000.0, 1060.0]
    assert limiter.wait(A, 1061.0) == 59.0
    assert limiter.wait(A, 1060.0 + 119) == 0.0
    limiter.reverted(A, 1179.0)
    assert limiter.wait(A, 1180.0) == 59.0
    assert limiter.wait(A, 1179.0 + 120) == 0.0
    limiter.reverted(A, 1299.0)
    assert limiter.wait(A, 1300.0) == 0.0


def test_S3_5_only_objects_that_were_reverted_lately_are_remembered():
    limiter = RevertLimit()
    for number in range(1_000):
        assert limiter.wait(Key("default", f"k{number}"), float(number)) == 0.0
        limiter.reverted(Key("default", f"k{number}"), float(number))
        assert len(limiter._reverts) <= 120
    assert fight(limiter, A, [0.0] * 6)[-1] == 1060.0
    assert limiter.wait(B, 1179.0) == 0.0
    assert len(limiter._reverts) == 1  # the fight itself
    assert limiter.wait(B, 1180.0) == 0.0
    assert len(limiter._reverts) == 0
