"""Kubernetes Events: for which facts, and what their requests have."""

from dataclasses import replace

import pytest

from crsyncer.core.model import Key, Side
from crsyncer.core.reports.event_ring import Event
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.reports.kubernetes_events import Regarding, count_event, create_event, reason_of

GOALS = "goals.lab.example.com"
NOON = 1795608000.25
COPY = Regarding("lab.example.com/v1", "Goal", "default", "a", "u-1")
CRD = Regarding("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", GOALS, "u-2")
DRIFT = Fact(Side.ROBOT, GOALS, Key("default", "a"), Action.REVERTED, "S3.5", "it was changed downstream")
HELD = Fact(Side.ROBOT, GOALS, None, Action.HELD, "S5.5", "MassDeletion: 7 deletions")


@pytest.mark.parametrize(
    ("action", "rule", "reason"),
    [
        (Action.HELD, "S5.5", "Held"),
        (Action.HELD, "S3.5", "RateLimited"),
        (Action.DEAD_LETTER, "S10", "DeadLetter"),
        (Action.REVERTED, "S3.5", "Reverted"),
        (Action.CREATED, "S3.2", None),
        (Action.SENT, "S4.1", None),
        (Action.FAILED, "S10", None),
        (Action.RELEASED, "S5.5", None),
    ],
)
def test_only_what_needs_attention_is_an_event(action, rule, reason):
    assert reason_of(replace(DRIFT, action=action, rule=rule)) == reason


def test_an_event_is_about_the_copy_and_in_its_namespace():
    call = create_event(Event(DRIFT, NOON, NOON), COPY, instance="crsyncer-1")
    assert (call.method, call.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/default/events")
    name = call.body["metadata"].pop("name")
    assert call.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": "2026-11-25T12:00:00.250000Z",
        "reportingController": "crsyncer.cloudrobotics.com/agent",
        "reportingInstance": "crsyncer-1",
        "action": "Sync",
        "reason": "Reverted",
        "type": "Normal",
        "regarding": {
            "apiVersion": "lab.example.com/v1",
            "kind": "Goal",
            "namespace": "default",
            "name": "a",
            "uid": "u-1",
        },
        "note": "reverted: it was changed downstream (S3.5)",
    }
    counted = count_event(Event(DRIFT, NOON, NOON + 60, 7), COPY)
    assert (counted.method, counted.path) == ("PATCH", f"{call.path}/{name}")
    assert counted.body == {"series": {"count": 7, "lastObservedTime": "2026-11-25T12:01:00.250000Z"}}


def test_what_concerns_a_kind_is_about_its_crd_in_the_default_namespace():
    call = create_event(Event(HELD, NOON, NOON), CRD, instance="crsyncer-1")
    assert call.path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert (call.body["type"], call.body["reason"]) == ("Warning", "Held")
    assert call.body["regarding"] == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "name": GOALS,
        "uid": "u-2",
    }


def test_a_series_counts_two_at_least_as_the_server_demands():
    assert count_event(Event(DRIFT, NOON, NOON), COPY).body["series"]["count"] == 2


def test_another_object_or_message_is_another_event_and_a_repetition_is_not():
    def name(fact: Fact, regarding: Regarding) -> str:
        return str(create_event(Event(fact, NOON, NOON), regarding, instance="i").body["metadata"]["name"])

    others = [name(DRIFT, replace(COPY, uid="u-9")), name(replace(DRIFT, message="m"), COPY), name(HELD, CRD)]
    assert len({name(DRIFT, COPY), *others}) == 4
    later = create_event(Event(DRIFT, NOON, NOON + 99, 3), COPY, instance="j")
    assert later.body["metadata"]["name"] == name(DRIFT, COPY)


def test_the_note_says_on_which_side_and_that_there_are_others():
    fact = replace(DRIFT, side=Side.CLOUD, action=Action.DEAD_LETTER, rule="S10", message="status.n: Invalid value")
    body = create_event(Event(fact, NOON, NOON, 9, many=True), replace(COPY, uid=""), instance="i").body
    assert body["note"] == "dead letter: in the cloud: status.n: Invalid value (S10), and other objects"
    assert "uid" not in body["regarding"]
