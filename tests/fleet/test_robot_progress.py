"""One robot's progress under any course of events: what a new leader makes of it (F6.4, F8.2 to F8.4)."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.fleet.domain.rollout.decisions import Decided, decision_body, decision_of
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_progress import (
    begin,
    decided,
    looked_at,
    may_write,
    next_look,
    restored,
)
from crsyncer.fleet.domain.rollout.robot_states import RobotTally
from crsyncer.fleet.domain.values import RobotState, Rollout
from tests.fleet.made import placement

T = 1_790_000_000.0
TALLIES = st.builds(
    RobotTally,
    replicas=st.integers(0, 2),
    due=st.just(0),
    errors=st.sampled_from([0, 0, 0, 1]),
    terminating=st.just(0),
    stamp=st.sampled_from(["s1", "s2"]),
    acked=st.booleans(),
    report=st.sampled_from(Report),
    ready=st.booleans(),
    is_unproven=st.booleans(),
)


@st.composite
def tallies(draw: st.DrawFn) -> RobotTally:
    tally = draw(TALLIES)
    due = draw(st.integers(0, tally.replicas))
    terminating = draw(st.integers(0, due)) if draw(st.booleans()) else 0
    values = {name: getattr(tally, name) for name in tally.__slots__}
    return RobotTally(**values | {"due": due, "terminating": terminating})


ROLLOUTS = st.sampled_from(
    [None, Rollout(), Rollout(stamp_offline=True), Rollout(min_ready_seconds=0, progress_deadline_seconds=100)]
)
COURSES = st.lists(
    st.tuples(tallies(), st.sampled_from([0.5, 30, 60, 100, 2000]), st.booleans()), min_size=1, max_size=6
)


@settings(max_examples=200, deadline=None)
@given(COURSES, ROLLOUTS)
def test_F8_4_a_new_leader_goes_on_where_the_old_one_was(course, rollout):
    now, progress, written = T, None, False
    for tally, wait, may_begin in course:
        now += wait
        old = progress or restored(None, tally, now)
        progress = looked_at(old, tally, rollout, now)
        if progress.state is RobotState.WAITING and may_begin and rollout is not None:
            progress = begin(progress, tally, now)
        assert looked_at(progress, tally, rollout, now) == progress
        wake = next_look(progress, rollout)
        assert wake is None or wake > now
        said = decided(progress, tally)
        stored = decision_of(decision_body(placement(), 0, {"r1": said})).robots["r1"]
        assert stored == said
        if said.state is RobotState.FAILED and not said.stamp and tally.due:
            continue  # whether the content is new is not known: it waits
        new = looked_at(restored(stored, tally, now), tally, rollout, now)
        written = may_write(progress, tally, stored, rollout)
        assert new.state is progress.state, (progress, new)
        assert (new.unproven, math.floor(new.since)) == (progress.unproven, math.floor(progress.since))
        assert may_write(new, tally, stored, rollout) >= written


def test_F8_2_a_robot_that_failed_is_written_to_its_end_and_gets_nothing_that_its_decision_does_not_announce():
    tally = RobotTally(1, 1, 0, 0, "s2", acked=False, report=Report.ONLINE, ready=False)
    failed = looked_at(begin(restored(None, tally, T), tally, T), tally, Rollout(), T + 2000)
    assert failed.state is RobotState.FAILED
    for stamp, is_announced in (("s2", True), ("s1", False), ("", False)):
        stored = Decided(RobotState.FAILED, "", stamp)
        assert may_write(failed, tally, stored, Rollout()) is is_announced
