"""What a line of a watch says, and what to do after an answer that is an error (S9.1, S9.2)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crsyncer.core.watching.watch import (
    Bookmark,
    Emit,
    EmptyWatches,
    EventType,
    ListReason,
    Relist,
    Rewatch,
    is_shared,
    keeps_cursor,
    listed_at,
    newer,
    probe_wait,
    read_answer,
    read_line,
)
from crsyncer.errors import NotAllowed, NotServed, SyncError, Unsure
from tests.core.builders import error, goal, json_objects, json_values, line, many, some

STEPS = (Relist, Rewatch, SyncError)


def lost(step: object) -> str:
    """What is said of a watch, or a server, that may be down."""
    assert type(step) is Unsure
    return str(step)


def refused(step: object) -> tuple[int, str]:
    """The status code of a refusal, and what is said of it."""
    assert isinstance(step, NotAllowed)
    return step.status, str(step)


@many
@given(st.binary(max_size=40))
@example(b"")
@example(b"\xff\xfe{")
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"9" * 5_000)
@example(b"NaN")
def test_S9_2_no_bytes_make_reading_a_line_fail(data):
    assert isinstance(read_line(data), STEPS)


wilder = st.one_of(json_values, st.floats(), st.just(10**400), st.sampled_from(["ADDED", "ERROR", "BOOKMARK"]))


@many
@given(wilder, st.one_of(wilder, st.fixed_dictionaries({"code": wilder, "metadata": wilder})))
@example("ERROR", {"code": float("inf")})
@example("ERROR", {"code": float("nan")})
@example("ERROR", {"code": 410.0})
@example([], {"metadata": {"resourceVersion": "1"}})
def test_S9_2_no_event_makes_reading_a_line_fail(event_type, raw):
    assert isinstance(read_line(line(event_type, raw)), (*STEPS, Bookmark, Emit))


@some
@given(st.sampled_from(EventType), json_objects, st.data())
def test_S9_2_a_line_that_is_cut_anywhere_is_a_lost_connection_and_no_event(event_type, spec, data):
    whole = line(event_type, goal(spec=spec))
    assert read_line(whole) == Emit(event_type, goal(spec=spec), "1")
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert isinstance(read_line(whole[:cut]), Unsure)


def test_S6_2_a_bookmark_moves_the_cursor_and_is_no_event():
    assert read_line(line("BOOKMARK", {"metadata": {"resourceVersion": "77"}})) == Bookmark("77")


@pytest.mark.parametrize("metadata", [{}, {"resourceVersion": ""}, {"resourceVersion": 7}, {"resourceVersion": None}])
@pytest.mark.parametrize("event_type", ["ADDED", "BOOKMARK"])
def test_S6_2_a_line_without_a_resource_version_is_not_followed(event_type, metadata):
    assert isinstance(read_line(line(event_type, {"metadata": metadata})), Unsure)


def test_an_event_of_a_type_that_nobody_knows_is_a_lost_connection():
    assert isinstance(read_line(line("SYNCED", goal())), Unsure)


@pytest.mark.parametrize("code", [410, "410", 410.0])
def test_S9_2_a_410_inside_a_stream_relists(code):
    assert read_line(error(code=code, reason="Expired")) == Relist(ListReason.EXPIRED)


def test_S9_2_other_errors_inside_a_stream_are_read_like_answers():
    assert read_line(error(code=429, message="storage is (re)initializing")) == Rewatch(1.0)
    assert refused(read_line(error(code=403, message="no"))) == (403, "no")
    assert lost(read_line(error(code=404, message="gone"))) == "gone"
    assert lost(read_line(error(code=500, message="etcd"))) == "etcd"
    assert lost(read_line(error())) == "answered 500"


@some
@given(st.integers(100, 599), json_objects, st.one_of(st.none(), st.floats(0, 3600)))
def test_S9_2_only_410_relists(status, body, retry_after):
    step = read_answer(status, body, retry_after=retry_after)
    assert isinstance(step, STEPS)
    assert isinstance(step, Relist) == (status == 410)


def test_S9_1_429_means_wait_as_long_as_the_server_says():
    body = {"kind": "Status", "message": "storage is (re)initializing"}
    assert read_answer(429, body, retry_after=30.0) == Rewatch(30.0)
    assert read_answer(429, body, retry_after=0.0) == Rewatch(0.0)
    assert read_answer(429, body) == Rewatch(1.0)


def test_S1_6_a_404_in_plain_text_is_a_missing_kind_and_a_404_about_an_object_is_not():
    assert isinstance(read_answer(404, {}), NotServed)
    assert lost(read_answer(404, {"kind": "Status", "message": 'goals "a" not found'})) == 'goals "a" not found'
    assert lost(read_answer(404, {"kind": "Status"})) == "answered 404"


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"kind": "GoalList", "metadata": {"resourceVersion": "7"}, "items": []}, "7"),
        ({"kind": "GoalList", "metadata": {"resourceVersion": "7"}, "items": None}, "7"),
        ({}, ""),
        ({"metadata": {"resourceVersion": "7"}}, ""),
        ({"metadata": {"resourceVersion": ""}, "items": []}, ""),
        ({"metadata": {"resourceVersion": 7}, "items": []}, ""),
        ({"metadata": {}, "items": []}, ""),
        ({"metadata": None, "items": []}, ""),
        ({"items": []}, ""),
    ],
)
def test_S5_only_a_list_says_what_there_is(body, version):
    assert listed_at(body) == version


@pytest.mark.parametrize("status", [401, 403])
def test_S10_a_refused_credential_says_so(status):
    assert refused(read_answer(status, {"message": "no"})) == (status, "no")


@pytest.mark.parametrize("status", [400, 405, 408, 422, 500, 502, 503, 504])
def test_S9_2_after_any_other_error_the_watch_goes_on_from_the_cursor(status):
    assert lost(read_answer(status, {})) == f"answered {status}"
    assert lost(read_answer(status, {"message": "no"})) == "no"


def test_S9_2_a_server_that_keeps_closing_is_asked_more_and_more_slowly():
    empty = EmptyWatches()
    pauses = [empty.ended(lived_seconds=0.01, events=0).pause for _ in range(10)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0, 15.0, 15.0]
    assert empty.ended(lived_seconds=0.01, events=1) == Rewatch(0.0)
    assert empty.ended(lived_seconds=0.01, events=0) == Rewatch(0.5)
    assert empty.ended(lived_seconds=1.0, events=0) == Rewatch(0.0)


@pytest.mark.parametrize(
    ("outage", "longest"), [(0, 1), (1.9, 1), (5, 2.5), (12, 6), (100, 8), (899, 8), (900, 60), (1e6, 60)]
)
def test_a_silent_side_is_probed_again_within_half_of_its_outage_and_soon_while_it_was_lost_lately(outage, longest):
    assert probe_wait(outage=outage, errors=0, chance=1.0) == longest
    assert probe_wait(outage=outage, errors=0, chance=0.5) == longest / 2


@pytest.mark.parametrize(
    ("outage", "chance", "waits"),
    [
        (1.0, 0.0, [1, 2, 4, 4, 4]),
        (899.0, 1.0, [2, 4, 8, 8, 8]),
        (900.0, 0.0, [1, 2, 4, 30, 30]),
        (1e6, 1.0, [2, 4, 8, 60, 60]),
    ],
)
def test_S9_1_a_side_that_answers_with_errors_is_left_alone_for_longer_each_time(outage, chance, waits):
    assert [probe_wait(outage=outage, errors=errors, chance=chance) for errors in (1, 2, 3, 6, 1000)] == waits


@pytest.mark.parametrize(
    ("one", "other", "is_newer"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("", "9", False), ("10", "", False), ("10", "x", False)],
)
def test_S6_2_versions_are_compared_as_numbers_and_anything_else_is_never_newer(one, other, is_newer):
    assert newer(one, other) is is_newer


def test_S9_2_a_reason_of_a_list_says_who_else_lists_and_whether_the_cursor_may_be_right():
    assert {reason for reason in ListReason if is_shared(reason)} == {"expired", "unproven", "restored"}
    assert {reason for reason in ListReason if keeps_cursor(reason)} == {"unproven", "unverified"}
