"""The operator's words."""

import pytest

from crsyncer.core.reports.text import did_you_mean, some


@pytest.mark.parametrize(
    ("word", "end"), [("statsu", "; did you mean status?"), ("doktor", "; did you mean doctor?"), ("xyz", ""), ("", "")]
)
def test_the_nearest_word_is_suggested(word, end):
    assert did_you_mean(word, ("status", "doctor", "diff")) == end


def test_of_several_texts_the_first_are_shown_and_how_many_more_there_are():
    assert some(["a", "b"]) == "a, b"
    assert some(["a", "b", "c", "d"], 2, separator="; ") == "a; b and 2 more"
    assert some(["x" * 400, "b"], longest=10) == "xxxxxxx..., b"
