"""The operator's words."""

import pytest

from crsyncer.core.reports.text import did_you_mean


@pytest.mark.parametrize(
    ("word", "end"), [("statsu", "; did you mean status?"), ("doktor", "; did you mean doctor?"), ("xyz", ""), ("", "")]
)
def test_the_nearest_word_is_suggested(word, end):
    assert did_you_mean(word, ("status", "doctor", "diff")) == end
