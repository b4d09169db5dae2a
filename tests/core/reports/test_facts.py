"""What a write is reported as, and how little of a server's answer is kept."""

import pytest

from crsyncer.core.model import Key, Side
from crsyncer.core.pair.actions import Create, Delete, HoldReason, Seed, Update, Why
from crsyncer.core.reports.facts import CAUSES, HOLD_RULES, Action, Fact, fact_of_write
from crsyncer.core.reports.text import brief

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
