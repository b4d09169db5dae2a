"""The list of rules and their tests: tests are found by name, and a rule without one fails the list."""

import re
from pathlib import Path

import pytest

from tests import rules
from tests.rules import NOT_YET, RULES, main, rules_of


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project with two rules, one of which may wait for its test."""
    monkeypatch.setattr(rules, "RULES", {"S1.1": "one", "S2": "two", "S3.1": "three"})
    monkeypatch.setattr(rules, "NOT_YET", {"S3.1": "next issue"})

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
        ("test_S4_2_a_patch_tests_the_uid", ["S4.2"]),
        ("test_S4_10_no_ping_pong", ["S4.10"]),
        ("test_S5_5a_a_dead_kind", ["S5.5"]),
        ("test_S5_the_table", ["S5"]),
        ("test_S3_2_S5_4_two_rules", ["S3.2", "S5.4"]),
        ("test_S10_409_looks_again", ["S10"]),
        ("test_S9_1_429_is_patience", ["S9.1"]),
        ("test_S4_2", ["S4.2"]),
        ("test_a_sentence_about_S4_2", []),
        ("test_S4x_nothing", []),
        ("helper", []),
    ],
)
def test_a_test_is_named_after_its_rules(test, found):
    assert rules_of(test) == found


def test_every_rule_has_a_line_and_none_waits_for_a_rule_that_is_not_there():
    assert all(text and "\n" not in text for text in RULES.values())
    assert NOT_YET.keys() <= RULES.keys()


def test_tests_are_found_wherever_they_are_and_counted_once(tree, capsys):
    root = tree(
        system__test_a="import pytest\n@pytest.mark.parametrize('x', [1, 2])\nasync def test_S1_1_it_works(x): ...\n",
        core__test_b="class TestB:\n    def test_S1_1_in_a_class(self): ...\ndef test_S2_here(): ...\n",
        system__test_c="def test_S2_on_planes(): ...\ndef helper_S2(): ...\n",
        system__kit="def test_S1_1_not_a_test_file(): ...\n",
    )
    assert main(root) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "S1.1  one",
        "      2 tests, 1 on real planes",
        "        tests/core/test_b.py::test_S1_1_in_a_class",
        "        tests/system/test_a.py::test_S1_1_it_works",
    ]
    assert lines[5] == "      2 tests, 1 on real planes"
    assert lines[8] == "S3.1  three (not yet: next issue)"
    assert lines[-1] == "every rule is shown on real planes, but for S3.1"


def test_a_rule_without_a_test_on_real_planes_fails_and_is_named(tree, capsys):
    root = tree(system__test_a="def test_S1_1_it_works(): ...\n", core__test_b="def test_S2_in_memory(): ...\n")
    assert main(root) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "no test in tests/system: S2"


def test_what_tests_share_is_in_modules_that_are_no_tests():
    """Who changes a test must not have to look who else lives on it."""
    tests = Path(rules.__file__).parent
    found = [
        path.name
        for path in tests.rglob("*.py")
        if re.search(r"(?m)^from tests[\w.]*\.test_\w+ import", path.read_text())
    ]
    assert found == []
