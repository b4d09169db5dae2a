"""The condition Ready of a SyncPolicy is one guarded write, and only where it changes (C1.5)."""

from typing import Any

import pytest

from crsyncer.core.kinds.policy_condition import shown_status, write_ready
from crsyncer.core.model import Json

NOW = 1_795_248_000.0  # 2026-11-21T08:00:00Z
BEFORE = "2026-11-20T08:00:00Z"
ACTIVE = {"type": "Ready", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": BEFORE}
OTHER = {"type": "Reviewed", "status": "True"}


def operations(status: Any, problem: str = "") -> list[Json]:
    """What is written over a status; nothing, where nothing is."""
    raw = {"metadata": {"name": "p", "uid": "u-1", "resourceVersion": "7"}, "status": status}
    call = write_ready(shown_status(raw), problem, now=NOW)
    if call is None:
        return []
    assert call.path == "/apis/crsyncer.cloudrobotics.com/v1alpha1/syncpolicies/p/status"
    assert call.body[:2] == [
        {"op": "test", "path": "/metadata/uid", "value": "u-1"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
    ]
    written: list[Json] = call.body[2:]
    return written


def condition(status: str, reason: str, message: str, since: str = "2026-11-21T08:00:00Z") -> Json:
    return {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


@pytest.mark.parametrize("status", [None, "text", []])
def test_C1_5_where_there_is_no_status_it_is_made(status):
    value = {"conditions": [condition("True", "Active", "")]}
    assert operations(status) == [{"op": "add", "path": "/status", "value": value}]


@pytest.mark.parametrize("conditions", [{}, {"conditions": None}, {"conditions": "text"}, {"conditions": []}])
def test_C1_5_the_rest_of_the_status_stays(conditions):
    value = [condition("False", "Misconfigured", "why")]
    assert operations(conditions | {"more": 1}, "why") == [{"op": "add", "path": "/status/conditions", "value": value}]


def test_C1_5_what_is_shown_already_is_not_written():
    assert operations({"conditions": [OTHER, ACTIVE]}) == []
    assert operations({"conditions": [ACTIVE | {"observedGeneration": 3}]}) == []


def test_C1_5_conditions_that_would_overflow_the_stack_are_left_alone():
    deep: Any = {}
    for _ in range(1000):
        deep = {"more": deep}
    assert operations({"conditions": [deep]}) == []


def test_C1_5_the_conditions_of_others_stay_in_their_places_and_the_time_is_that_of_the_last_change():
    [written] = operations({"conditions": ["odd", ACTIVE, OTHER]}, "why")
    assert written["value"] == ["odd", condition("False", "Misconfigured", "why"), OTHER]
    wrong = condition("False", "Misconfigured", "this", BEFORE)
    [written] = operations({"conditions": [wrong]}, "that")
    assert written["value"] == [condition("False", "Misconfigured", "that", BEFORE)]
