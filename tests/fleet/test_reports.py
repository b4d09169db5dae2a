"""RobotSyncStates: who is online, and what robots say that they have applied (F9.1, F9.4 to F9.6)."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT, digest
from crsyncer.core.model import Json
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.core.reports.text import rfc3339
from crsyncer.fleet.domain.rollout.reports import Report, Reports
from crsyncer.fleet.domain.shown.fleet_facts import FleetReports, Reported

ONLINE, OFFLINE, UNREPORTED = Report.ONLINE, Report.OFFLINE, Report.UNREPORTED
T = 1_790_000_000.0


def noted(time: Any, *fields: str) -> Json:
    """An entry of managedFields."""
    return {
        "manager": "crsyncer",
        "time": time,
        "fieldsV1": {"f:spec": {".": {}, **{f"f:{each}": {} for each in fields}}},
    }


def report(beat: Any = 1, *, time: float | None = T, namespace: str = "robot-r1", **changes: Any) -> Json:
    """A RobotSyncState of r1, whose beat was written at a time; it was made at T - 1000."""
    metadata = {
        "name": "r1",
        "namespace": namespace,
        "uid": changes.pop("uid", "u1"),
        "creationTimestamp": rfc3339(T - 1000),
        "labels": {ROBOT_LABEL: "r1"},
        "annotations": {ROBOT: "r1"},
        "managedFields": [noted(rfc3339(time), "beat")],
    }
    spec = {"robot": "r1", "beat": beat, "applied": changes.pop("applied", {})}
    return {"metadata": metadata | changes.pop("metadata", {}), "spec": changes.pop("spec", spec)}


def seen(*raws: Json, now: float = T) -> Reports:
    reports = Reports(robots_namespace="default")
    for raw in raws:
        reports.shown(raw, now=now)
    return reports


@pytest.mark.parametrize(("after", "expected"), [(0, ONLINE), (660, ONLINE), (660.5, OFFLINE), (9999, OFFLINE)])
def test_F9_4_a_robot_is_online_for_660_seconds_after_its_last_beat(after, expected):
    assert seen(report()).report("r1", T + after) is expected
    assert seen(report()).report("r2", T + after) is UNREPORTED


def test_F9_4_the_last_raise_is_known():
    assert seen(report()).last("r1") == T
    assert seen(report()).last("r2") is None


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"namespace": "default"}, True),
        ({"namespace": "robot-r2"}, False),
        ({"namespace": "site"}, False),
        ({"metadata": {"name": "r2", "namespace": "robot-r2"}}, False),
        ({"metadata": {"labels": {ROBOT_LABEL: "r2"}}}, False),
        ({"metadata": {"labels": None}}, False),
        ({"metadata": {"annotations": {ROBOT: "r2"}}}, False),
        ({"metadata": {"annotations": {}}}, False),
    ],
)
def test_F9_1_only_a_report_whose_name_label_and_annotation_agree_counts(changes, counts):
    reports = seen(report(**changes))
    found = {reports.report(robot, T) for robot in ("r1", "r2")}
    assert found == ({ONLINE, UNREPORTED} if counts else {UNREPORTED})


def test_F9_1_only_reports_on_the_robots_shard_count():
    shards, now = {"root": seen(), "b": seen(report(applied={"uid": "x"}))}, {"root": T + 900, "b": T}
    for shard, expected, of_placement in [
        ("root", Reported(), (UNREPORTED, None)),
        ("b", Reported(ONLINE, T), (ONLINE, "x")),
        ("c", Reported(), (UNREPORTED, None)),
    ]:
        reports = FleetReports(shards, {"r1": shard}.__getitem__, now.__getitem__)
        assert (reports.of("r1"), reports.of_placement("r1", "uid")) == (expected, of_placement)


def test_F9_1_a_name_that_no_robot_can_have_counts_not():
    name = "R_1"
    same = {"name": name, "labels": {ROBOT_LABEL: name}, "annotations": {ROBOT: name}}
    assert seen(report(namespace="default", metadata=same)).report(name, T) is UNREPORTED


@pytest.mark.parametrize(
    ("entries", "raised"),
    [
        ([noted(rfc3339(T - 5), "beat")], T - 5),
        ([noted(rfc3339(T - 5), "beat"), noted(rfc3339(T - 9), "beat")], T - 5),
        ([noted(rfc3339(T - 5), "robot"), noted(rfc3339(T - 9), "beat", "robot")], T - 9),
        ([noted(rfc3339(T - 5), "robot")], T - 1000),
        ([noted("soon", "beat")], T - 1000),
        ([noted(7, "beat"), "x", {"fieldsV1": []}, {"fieldsV1": {"f:spec": 1}}], T - 1000),
        ("x", T - 1000),
        (None, T - 1000),
        ([noted("9999-12-31T23:59:59Z", "beat")], T),
    ],
)
def test_F9_4_the_last_raise_is_when_the_server_noted_the_field(entries, raised):
    reports = seen(report(metadata={"managedFields": entries}))
    assert reports.report("r1", raised + 660) is ONLINE
    assert reports.report("r1", raised + 661) is OFFLINE


def test_F9_4_a_report_without_any_time_is_old():
    assert seen(report(metadata={"managedFields": None, "creationTimestamp": "x"})).report("r1", T) is OFFLINE


@pytest.mark.parametrize("beat", [None, "7", 1.5, True, [], {}])
def test_F9_4_without_a_beat_a_robot_is_unreported(beat):
    assert seen(report(beat)).report("r1", T) is UNREPORTED


@pytest.mark.parametrize("spec", [None, "x", [], 7])
def test_a_report_without_a_spec_counts_not(spec):
    assert seen(report(spec=spec)).report("r1", T) is UNREPORTED


@pytest.mark.parametrize(("beat", "expected"), [(8, ONLINE), (7, OFFLINE), (6, OFFLINE)])
def test_F9_4_only_a_higher_beat_is_a_raise(beat, expected):
    reports = seen(report(7))
    reports.shown(report(beat, time=T + 600), now=T + 600)
    assert reports.report("r1", T + 1000) is expected


def test_F9_4_an_agent_that_counts_from_the_start_is_online_from_its_second_beat_on():
    reports = seen(report(5000))
    assert reports.shown(report(1, time=T + 700), now=T + 700) == set()
    assert reports.shown(report(2, time=T + 720), now=T + 720) == {"r1"}
    assert reports.report("r1", T + 720) is ONLINE


def test_F9_4_a_report_that_is_made_again_is_read_anew():
    reports = seen(report(7))
    assert reports.shown(report(1, time=T + 900, uid="u2"), now=T + 900) == {"r1"}
    assert reports.report("r1", T + 900) is ONLINE


def test_F9_4_a_late_event_counts_from_when_the_server_stored_it():
    reports = seen(report(1))
    reports.shown(report(2, time=T + 100), now=T + 700)
    assert reports.report("r1", T + 760) is ONLINE
    assert reports.report("r1", T + 761) is OFFLINE


def test_F9_4_what_turns_offline_by_time_is_told_once():
    reports = seen(report())
    assert reports.next_turn() == math.nextafter(T + 660, math.inf)
    assert reports.turned(T + 660) == set()
    assert reports.turned(T + 661) == {"r1"}
    assert reports.turned(T + 9999) == set()
    assert reports.next_turn() is None


def test_F9_4_a_beat_puts_it_off():
    reports = seen(report(1))
    for beat in range(2, 20):
        time = T + 300.0 * (beat - 1)
        assert reports.shown(report(beat, time=time), now=time) == set()
        assert reports.turned(time) == set()
    assert reports.turned(time + 660) == set()
    assert reports.turned(time + 661) == {"r1"}


def test_F9_1_of_two_reports_the_one_with_the_later_beat_counts():
    reports = seen(report(1, namespace="default"))
    assert reports.shown(report(1, time=T + 300, applied={"p": "a"}), now=T + 300) == {"r1"}
    assert reports.of_placement("r1", "p", T)[1] == "a"
    assert reports.gone("robot-r1", "r1", now=T + 300) == {"r1"}
    assert reports.of_placement("r1", "p", T)[1] is None
    assert reports.next_turn() == math.nextafter(T + 660, math.inf)
    assert reports.gone("robot-r1", "r1", now=T + 300) == set()
    assert reports.gone("default", "r1", now=T + 300) == {"r1"}
    assert reports.report("r1", T + 300) is UNREPORTED
    assert reports.next_turn() is None


def test_F9_4_a_robot_that_falls_back_to_an_old_report_is_offline_at_once():
    reports = seen(report(1, namespace="default"), report(1, time=T + 900), now=T + 900)
    assert reports.gone("robot-r1", "r1", now=T + 900) == {"r1"}
    assert reports.report("r1", T + 900) is OFFLINE
    assert reports.turned(T + 9999) == set()


def test_F9_5_only_a_change_is_told():
    reports = Reports(robots_namespace="default")
    assert reports.shown(report(1, applied={"p": "a"}), now=T) == {"r1"}
    assert reports.shown(report(1, applied={"p": "a"}), now=T) == set()
    assert reports.shown(report(2, time=T + 300, applied={"p": "a"}), now=T + 300) == set()
    assert reports.shown(report(3, time=T + 310, applied={"p": "b"}), now=T + 310) == {"r1"}
    assert reports.shown(report("x", time=T + 320), now=T + 320) == {"r1"}
    assert reports.report("r1", T + 320) is UNREPORTED


@pytest.mark.parametrize("applied", [None, "x", [], {"p": 7}, {"p": None}, {"p": {"q": "a"}}])
def test_F9_5_what_is_no_map_of_texts_says_nothing(applied):
    reports = seen(report(applied=applied))
    assert reports.of_placement("r1", "p", T)[1] is None
    assert reports.report("r1", T) is ONLINE


def test_F9_5_the_digest_is_of_the_sorted_pairs():
    pairs = [("u2", 1), ("u10", 12), ("u1", 3)]
    assert applied_digest(pairs) == applied_digest(reversed(pairs)) == digest([["u1", 3], ["u10", 12], ["u2", 1]])
    assert applied_digest([("u1", 3), ("u10", 12), ("u2", 2)]) != applied_digest(pairs)


def test_F9_6_a_full_report_that_lacks_a_placement_says_nothing_of_it():
    full = {f"p{number}": "a" for number in range(500)}
    reports = seen(report(applied=full))
    assert reports.of_placement("r1", "p499", T) == (ONLINE, "a")
    assert reports.of_placement("r1", "p500", T) == (UNREPORTED, None)
    assert reports.of_placement("r2", "p500", T) == (UNREPORTED, None)
    del full["p7"]
    assert seen(report(applied=full)).of_placement("r1", "p500", T) == (ONLINE, None)


ODD: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("r1") | st.just("9999-12-31"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["f:spec", "f:beat", "fieldsV1", "time", "beat", "applied", "p"]), inner)
    ),
    max_leaves=12,
)


@given(beat=ODD, applied=ODD, entries=ODD, created=ODD, spec=st.just({}) | ODD)
def test_a_hostile_report_raises_nothing(beat, applied, entries, created, spec):
    said = {"beat": beat, "applied": applied} if spec == {} else spec
    reports = seen(report(spec=said, metadata={"managedFields": entries, "creationTimestamp": created}))
    reports.turned(T + 700)
    assert reports.of_placement("r1", "p", T)[1] is None or isinstance(reports.of_placement("r1", "p", T)[1], str)
    assert reports.report("r1", T + 700) is not ONLINE


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 400), st.booleans()), max_size=40))
def test_F9_4_whoever_turns_offline_is_told_when_it_happens(events):
    reports, now = Reports(robots_namespace="default"), T
    known: dict[str, Report] = {}
    for beat, (number, wait, is_gone) in enumerate(events):
        while (turn := reports.next_turn()) is not None and turn <= now + wait:
            for robot in reports.turned(turn):
                assert known[robot] is ONLINE
                known[robot] = OFFLINE
        now += wait
        name = f"r{number}"
        place = {"name": name, "labels": {ROBOT_LABEL: name}, "annotations": {ROBOT: name}, "namespace": "default"}
        if is_gone:
            reports.gone("default", name, now=now)
        else:
            reports.shown(
                report(beat, time=now, metadata={**place, "managedFields": [noted(rfc3339(now), "beat")]}), now=now
            )
        known[name] = reports.report(name, now)
        assert {each: reports.report(each, now) for each in known} == known
