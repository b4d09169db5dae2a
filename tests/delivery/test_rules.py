"""The list of rules and their tests: tests are found by name, and a rule without one fails the list."""

import re
from pathlib import Path

import pytest

from tests import rules
from tests.rules import RULES, main, rules_of


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project with two rules."""
    monkeypatch.setattr(rules, "RULES", {"S1.1": "one", "S2": "two"})

    def write(**files: str):
        for name, text in files.items():
            path = tmp_path / "tests" / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".py").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("test_S4_10_no_ping_pong", ["S4.10"]),
        ("test_S5_5a_a_dead_kind", ["S5.5"]),
        ("test_S5_the_table", ["S5"]),
        ("test_S3_2_S5_4_two_rules", ["S3.2", "S5.4"]),
        ("test_S10_409_looks_again", ["S10"]),
        ("test_F1_2_F9_99_a_lease_and_a_rule_that_is_not_there_yet", ["F1.2", "F9"]),
        ("test_a_sentence_about_S4_2", []),
        ("test_S4x_nothing", []),
    ],
)
def test_a_test_is_named_after_its_rules(test, found):
    assert rules_of(test) == found


def test_every_rule_has_a_line():
    assert all(text and "\n" not in text for text in RULES.values())


def test_tests_are_found_wherever_they_are_and_counted_once(tree, capsys):
    root = tree(
        system__test_a="import pytest\n@pytest.mark.parametrize('x', [1, 2])\nasync def test_S1_1_it_works(x): ...\n",
        core__test_b="class TestB:\n    def test_S1_1_in_a_class(self): ...\ndef test_S2_here(): ...\n",
        model__test_c="def test_S2_on_virtual_time(): ...\ndef helper_S2(): ...\n",
        system__kit="def test_S1_1_not_a_test_file(): ...\n",
    )
    assert main(root) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "S1.1  one",
        "      0 model, 1 planes, 0 nightly, 1 elsewhere",
        "        elsewhere tests/core/test_b.py::test_S1_1_in_a_class",
        "        planes    tests/system/test_a.py::test_S1_1_it_works",
        "S2    two",
        "      1 model, 0 planes, 0 nightly, 1 elsewhere",
        "        elsewhere tests/core/test_b.py::test_S2_here",
        "        model     tests/model/test_c.py::test_S2_on_virtual_time",
        "",
        "2 rules, each shown by the model or on real planes",
    ]


@pytest.mark.parametrize(
    ("file", "mark"),
    [
        ("core__test_b", ""),
        ("system__test_b", "@pytest.mark.nightly('random')\n"),
        ("model__test_b", "@pytest.mark.nightly\n"),
        ("model__test_b", "@pytest.mark.skip(reason='later')\n"),
    ],
)
def test_a_rule_that_only_a_test_shows_that_does_not_count_fails_and_is_named(tree, capsys, file, mark):
    root = tree(system__test_a="def test_S1_1_it_works(): ...\n", **{file: f"{mark}def test_S2_somehow(): ...\n"})
    assert main(root) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "shown neither by the model nor on real planes: S2"


def test_a_test_of_which_only_variations_are_nightly_counts(tree):
    mark = "@pytest.mark.parametrize('x', [1, pytest.param(2, marks=pytest.mark.nightly('a variation'))])\n"
    assert main(tree(system__test_a="def test_S1_1_x(): ...\n", model__test_b=f"{mark}def test_S2_y(x): ...\n")) == 0


def test_what_tests_share_is_in_modules_that_are_no_tests():
    """Who changes a test must not have to look who else lives on it."""
    tests = Path(rules.__file__).parent
    found = [
        path.name
        for path in tests.rglob("*.py")
        if re.search(r"(?m)^from tests[\w.]*\.test_\w+ import", path.read_text())
    ]
    assert found == []
