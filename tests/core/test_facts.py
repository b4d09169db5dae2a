"""What a write is reported as, and how little of a server's answer is kept."""

import pytest

from crsyncer.core.actions import Create, Delete, HoldReason, Seed, Update, Why
from crsyncer.core.annotations import DRIFT, FILTER, OBSERVED_GENERATION, ORPHANS, SPEC_SOURCE, SUBTREE
from crsyncer.core.facts import CAUSES, HOLD_RULES, Action, Fact, fact_of_write, kind_rule
from crsyncer.core.model import Key, Side
from crsyncer.core.read_kind import read_policy
from crsyncer.core.text import brief
from tests.core.builders import crd

A = Key("default", "a")
GOALS = "goals.lab.example.com"


@pytest.mark.parametrize(
    ("write", "action", "rule"),
    [
        (Create(), Action.CREATED, "S3.2"),
        (Update("u", "1", Why.CHANGED), Action.UPDATED, "S3.2"),
        (Update("u", "1", Why.DRIFT), Action.REVERTED, "S3.5"),
        (Update("u", "1", Why.ADOPT), Action.ADOPTED, "S5.4"),
        (Seed("u", "1"), Action.SEEDED, "S4.4"),
        (Delete("u", Why.GONE), Action.DELETED, "S5"),
        (Delete("u", Why.REPLACED), Action.DELETED, "S5.4"),
    ],
)
def test_a_write_is_reported_with_its_rule(write, action, rule):
    fact = fact_of_write(write, side=Side.ROBOT, resource=GOALS, key=A)
    assert (fact.side, fact.resource, fact.key, fact.action, fact.rule) == (Side.ROBOT, GOALS, A, action, rule)
    assert isinstance(fact, Fact)


@pytest.mark.parametrize(
    ("annotations", "rule"),
    [
        ({SPEC_SOURCE: "both"}, "S1.2"),
        ({FILTER: "maybe"}, "S1.3"),
        ({SUBTREE: "a.b"}, "S1.4"),
        ({DRIFT: "maybe"}, "S3.5"),
        ({OBSERVED_GENERATION: "maybe"}, "S4.7"),
        ({ORPHANS: "maybe"}, "S5.3"),
    ],
)
def test_a_kind_with_a_wrong_annotation_is_reported_with_the_rule_of_that(annotations, rule):
    found = read_policy(crd({SPEC_SOURCE: "cloud"} | annotations), "robot-1")
    assert found is not None
    assert kind_rule("misconfigured", found.problem, by_policy=False) == rule
    assert kind_rule("misconfigured", found.problem, by_policy=True) == "C1.3"
    assert kind_rule("forbidden", found.problem, by_policy=True) == "S1.6"


def test_a_kind_of_another_scope_is_reported_with_the_rule_of_scopes():
    text = "scope is Cluster on the robot, but Namespaced in the cloud"
    assert kind_rule("misconfigured", text, by_policy=False) == "S1.7"


def test_every_reason_has_a_rule():
    assert (set(CAUSES), set(HOLD_RULES)) == (set(Why), set(HoldReason))


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            'Goal "a" is invalid: spec.x: Invalid value: 11: must be at most 10',
            'Goal "a" is invalid: spec.x: Invalid value',
        ),
        ('spec.mode: Unsupported value: "s3cret": supported values: "a"', "spec.mode: Unsupported value"),
        ('spec.ref: Not found: "s3cret"', "spec.ref: Not found"),
        ('goals.lab.example.com "a" not found', 'goals.lab.example.com "a" not found'),
        ("denied: Bearer s3cret", "denied: Bearer [redacted]"),
        ("two\nlines", "two lines"),
        ("x" * 300, "x" * 197 + "..."),
    ],
)
def test_a_short_message_quotes_no_content_and_no_token(text, short):
    assert brief(text) == short
