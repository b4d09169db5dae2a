"""POLICIES.md: policies that work, and a reference of every field: `--rewrite` prints it anew."""

import pytest
import yaml

from crsyncer.adapters.expressions import Expressions
from crsyncer.core.kinds.merge_settings import read_object
from tests.delivery.policy_reference import PAGE, policies, table

TITLE = "## Every field\n\n"
LINES = 14
"""A policy of the page is read at a glance."""


def test_the_reference_is_that_of_the_schema(request: pytest.FixtureRequest):
    before, title, _ = PAGE.read_text().partition(TITLE)
    now = f"{before}{title}{table()}\n"
    if request.config.getoption("--rewrite"):
        PAGE.write_text(now)
    assert PAGE.read_text() == now, "out of date: run this test with --rewrite"


def test_there_are_five_things_that_people_want_at_least():
    assert len(policies()) >= 5


@pytest.mark.parametrize("title", policies())
def test_a_policy_of_the_page_is_short_and_the_agent_follows_it(title):
    text = policies()[title]
    assert text.count("\n") <= LINES
    found = read_object(yaml.safe_load(text) | {}, Expressions)
    assert (found.policy is not None, found.problem) == (True, "")
