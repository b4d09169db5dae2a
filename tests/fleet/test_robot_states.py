"""The state of a robot in a placement, row by row; counts, conditions and errors (F6.4)."""

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_states import (
    Begun,
    Fault,
    Gate,
    RobotTally,
    Unresolved,
    counts,
    placement_status,
    robot_state,
)
from crsyncer.fleet.domain.values import Hold, Reason, RobotState
from tests.fleet.made import placement

ONLINE, OFFLINE, UNREPORTED = Report.ONLINE, Report.OFFLINE, Report.UNREPORTED
NOW, BEFORE = "2026-11-02T00:00:00Z", "2026-11-01T00:00:00Z"


def state(*, begun: bool = False, stamped: bool = False, ready_when: bool | None = None, **facts: Any) -> RobotState:
    counted = {name: facts.pop(name, 0) for name in ("due", "errors", "terminating")}
    tally = RobotTally(
        replicas=facts.pop("replicas", 1), **counted, stamp="s", acked=facts.pop("acked", False),
        report=facts.pop("report", UNREPORTED), ready=ready_when,
    )  # fmt: skip
    flags = {name: facts.pop(name, False) for name in ("was_ready", "failed", "deferred")}
    assert not facts
    how = Begun.ONLINE if begun else Begun.SILENT if stamped else Begun.NO
    return robot_state(tally, begun=how, ready_when=ready_when, **flags, has_rollout=True)


@pytest.mark.parametrize(
    ("expected", "facts"),
    [
        ("Ready", {"replicas": 0, "errors": 1}),
        ("Ready", {"report": ONLINE, "acked": True}),
        ("Ready", {"report": ONLINE, "acked": True, "ready_when": True}),
        ("InFlight", {"report": ONLINE, "acked": True, "ready_when": False}),
        ("InFlight", {"report": ONLINE}),
        ("Stamped", {"report": OFFLINE, "acked": True, "ready_when": True}),
        ("Ready", {"report": OFFLINE, "acked": True, "ready_when": True, "was_ready": True}),
        ("Stamped", {"report": OFFLINE, "was_ready": True}),
        ("Ready", {"report": UNREPORTED, "ready_when": True}),
        ("Stamped", {"report": UNREPORTED, "ready_when": False}),
        ("Stamped", {"report": UNREPORTED}),
        ("InFlight", {"report": UNREPORTED, "ready_when": True, "begun": True}),
        ("Failed", {"due": 1, "failed": True, "begun": True}),
        ("InFlight", {"due": 1, "begun": True, "report": ONLINE}),
        ("Blocked", {"errors": 1, "due": 1, "report": ONLINE}),
        ("Deferred", {"due": 1, "report": OFFLINE, "deferred": True}),
        ("Deferred", {"due": 1, "report": OFFLINE, "terminating": 1}),
        ("Waiting", {"due": 1, "report": OFFLINE}),
        ("Waiting", {"due": 1, "report": ONLINE, "deferred": True}),
        ("Waiting", {"due": 1, "terminating": 1}),
        ("Stamped", {"due": 1, "report": OFFLINE, "stamped": True}),
        ("Stamped", {"due": 1, "report": ONLINE, "stamped": True}),
        ("Stamped", {"due": 2, "report": OFFLINE, "terminating": 1, "stamped": True}),
        ("Deferred", {"due": 1, "report": OFFLINE, "terminating": 1, "stamped": True}),
        ("Stamped", {"due": 1, "report": UNREPORTED, "terminating": 1, "stamped": True}),
        ("InFlight", {"report": ONLINE, "stamped": True}),
        ("Blocked", {"due": 1, "errors": 1, "report": OFFLINE, "stamped": True}),
    ],
)
def test_F6_4_the_first_state_that_applies(expected, facts):
    assert state(**facts) == expected


def test_F6_4_what_is_due_or_has_an_error_is_never_ready():
    flags = list(itertools.product([False, True], repeat=5))
    for due, errors in ((1, 0), (0, 1), (1, 1)):
        for (acked, was, begun, failed, deferred), report in itertools.product(flags, Report):
            found = state(
                due=due, errors=errors, report=report, acked=acked, ready_when=True, was_ready=was, begun=begun,
                failed=failed, deferred=deferred,
            )  # fmt: skip
            assert found not in (RobotState.READY, RobotState.STAMPED)


def test_F6_4_the_last_seven_counts_add_up_to_selected():
    states = Counter([*RobotState, RobotState.READY])
    found = counts(states, {OFFLINE: 1, UNREPORTED: 2, ONLINE: 5}, replicas=16)
    assert list(found.items())[:4] == [("selected", 8), ("replicas", 16), ("offline", 1), ("unreported", 2)]
    last = list(found)[4:]
    assert last == ["blocked", "deferred", "waiting", "failed", "ready", "inFlight", "stamped"]
    assert sum(found[name] for name in last) == 8
    assert found["ready"] == 2


def status(
    *,
    by: Any = None,
    unresolved: Any = None,
    holds: Any = (),
    gated: bool = True,
    gate: Gate | None = None,
    group: int = 0,
    faults: Any = (),
    **count: int,
):
    counted = dict.fromkeys(counts({}, {}, replicas=0), 0) | count
    return placement_status(
        by or placement(),
        counted,
        faults=faults,
        holds=holds,
        unresolved=unresolved,
        gated=gated,
        gate=gate,
        group=group,
        now=NOW,
    )


def condition(kind: str, **options: Any) -> tuple[str, str, str]:
    found = next(each for each in status(**options)["conditions"] if each["type"] == kind)
    return found["status"], found["reason"], found["message"]


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("Resolved", {}, ("True", "Resolved", "")),
        ("Resolved", {"unresolved": Unresolved("NotServed", "m")}, ("False", "NotServed", "m")),
        ("Stamped", {"ready": 3, "inFlight": 1, "failed": 1}, ("True", "Stamped", "")),
        ("Stamped", {"waiting": 2, "blocked": 1}, ("False", "Blocked", "1 robot is blocked, 2 robots are waiting")),
        ("Stamped", {"deferred": 2}, ("False", "Deferred", "2 robots are deferred")),
        ("RolledOut", {"ready": 3, "stamped": 1}, ("True", "RolledOut", "")),
        ("RolledOut", {"deferred": 2}, ("True", "Deferred", "2 robots are left for later")),
        ("RolledOut", {"inFlight": 2}, ("False", "InFlight", "2 robots are inFlight")),
        ("Held", {}, ("False", "NothingHeld", "")),
        ("Held", {"holds": [Hold("i", "NoRobots", "m", ("u",))]}, ("True", "NoRobots", "m")),
    ],
)
def test_F6_4_each_condition_has_its_reason(kind, options, expected):
    assert condition(kind, **options) == expected


def test_F8_5_a_rollout_without_reports_is_ungated():
    by = placement(rollout={}, readyWhen="true")
    assert condition("RolledOut", by=by, gated=False) == ("True", "Ungated", "no robot reports")
    assert condition("RolledOut", by=by)[1] == "RolledOut"


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (Gate.PAUSED, "the rollout is paused; 2 robots are waiting"),
        (Gate.NO_REPORTS, "the RobotSyncStates are not listed, or many vanished; 2 robots are waiting"),
        (Gate.TOO_MANY_FAILURES, "more robots than maxFailures have failed; 2 robots are waiting"),
        (Gate.WAITING_FOR_GROUP, "an earlier group has a robot InFlight, or none that is Ready; 2 robots are waiting"),
    ],
)
def test_F8_it_is_said_why_no_robot_is_begun(gate, message):
    assert condition("RolledOut", gate=gate, waiting=2) == ("False", str(gate), message)


def test_F8_1_the_group_is_shown_where_there_is_a_rollout():
    assert status(group=2)["group"] == 2
    assert "group" not in status()


@pytest.mark.parametrize(
    ("stored", "time"),
    [
        ([{"type": "Resolved", "status": "True", "lastTransitionTime": BEFORE}], BEFORE),
        ([{"type": "Resolved", "status": "False", "lastTransitionTime": BEFORE}], NOW),
        ([{"type": "Resolved", "status": "True"}, "x"], NOW),
        ("x", NOW),
    ],
)
def test_a_condition_that_stays_keeps_its_time(stored, time):
    by = placement()
    by.status["conditions"] = stored
    found = status(by=by)["conditions"][0]
    assert (found["lastTransitionTime"], found["observedGeneration"]) == (time, 0)


def test_at_most_twenty_errors_and_holds_are_shown_and_all_errors_are_counted():
    faults = [Fault(f"r{number:03}", "site/dock", Reason.REFUSED, "m" * 300) for number in range(500)]
    holds = [Hold(str(number), "NoRobots", "m" * 300, ("a", "b")) for number in range(30)]
    found = status(faults=reversed(faults), holds=holds)
    assert (len(found["errors"]), found["errorCount"], len(found["holds"])) == (20, 500, 20)
    assert found["errors"][0] == {"robot": "r000", "source": "site/dock", "reason": "Refused", "message": "m" * 256}
    assert found["holds"][0] == {"id": "0", "reason": "NoRobots", "objects": 2, "message": "m" * 256}
    assert len(condition("Held", holds=holds)[2]) == 1024


def test_F2_3_a_warning_is_the_message_of_a_placement_that_is_resolved():
    by, told = placement(), dict.fromkeys(counts({}, {}, replicas=0), 0)
    found = placement_status(by, told, faults=[], holds=[], unresolved=None, gated=True, now=NOW, warning="beware")
    shown = found["conditions"][0]
    assert (shown["type"], shown["status"], shown["message"]) == ("Resolved", "True", "beware")


def test_F7_4_collected_is_shown_where_there_are_collectors():
    by, told = placement(), dict.fromkeys(counts({}, {}, replicas=0), 0)

    def shown(collected: tuple[bool, str, str] | None) -> list[tuple[str, str, str]]:
        found = placement_status(
            by, told, faults=[], holds=[], unresolved=None, gated=True, now=NOW, collected=collected
        )["conditions"]
        return [(each["status"], each["reason"], each["message"]) for each in found if each["type"] == "Collected"]

    assert shown(None) == []
    assert shown((True, "Collected", "")) == [("True", "Collected", "")]
    assert shown((False, "CollectorMissing", "c" * 2000)) == [("False", "CollectorMissing", "c" * 1024)]


def test_F6_2_singletons_are_shown_until_the_stored_ones_are_gone():
    told, entries = dict.fromkeys(counts({}, {}, replicas=0), 0), [{"source": "goals.x/a", "robot": "r1"}]

    def shown(stored: Any, singletons: Any) -> Any:
        by = replace(placement(), status=stored)
        found = placement_status(
            by, told, faults=[], holds=[], unresolved=None, gated=True, now=NOW, singletons=singletons
        )
        return found.get("singletons")

    assert shown({}, []) is None
    assert shown({}, entries) == entries
    assert shown({"singletons": entries}, []) == []
