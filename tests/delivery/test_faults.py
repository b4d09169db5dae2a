"""The fault matrix is generated, not typed: the page names the tests that are there, and every row has one."""

from types import SimpleNamespace

import pytest

from tests.faults.page import PAGE, ROOT, Recorder, changed, digests, render, results_in
from tests.faults.rows import ROWS, tagged


def test_every_row_has_a_test_and_every_tag_a_row():
    assert tagged(ROOT).keys() == ROWS.keys()


def test_the_page_is_as_it_is_written_from_the_tests_and_their_last_results():
    page = PAGE.read_text()
    assert page == render(tagged(ROOT), results_in(page))
    assert results_in(page).keys() == {test for tests in tagged(ROOT).values() for test in tests}


@pytest.mark.parametrize(
    ("outcomes", "cell"),
    [
        (["passed", "passed"], "passed 2026-01-01, 2 s"),
        (["passed", "skipped"], "open, 2026-01-01: no disk to spare"),
        (["skipped", "failed", "passed"], "FAILED 2026-01-01"),
    ],
)
def test_a_test_that_fails_in_part_has_failed_and_one_that_cannot_run_says_why(outcomes: list[str], cell: str):
    recorder, test = Recorder(), tagged(ROOT)[1][0]
    for number, outcome in enumerate(outcomes):
        reason = ("t.py", 1, "Skipped: no disk to spare")
        nodeid = f"{test}[{number}]"
        report = SimpleNamespace(nodeid=nodeid, duration=1.0, when="call", outcome=outcome, longrepr=reason)
        recorder.pytest_runtest_logreport(report)
    assert recorder.results("2026-01-01") == {test: f"{cell}, of {digests(test)}"}


def test_a_result_of_another_product_or_another_test_is_known():
    one, two, three, four = (test for tests in list(tagged(ROOT).values())[:4] for test in tests[:1])
    product = digests(one).partition(".")[0]
    results = {
        one: f"passed 2026-01-01, 2 s, of {digests(one)}",
        two: f"passed 2026-01-01, 2 s, of {product}.000000",
        three: f"passed 2026-01-01, 2 s, of 000000.{digests(three).partition('.')[2]}",
        four: "not run yet",
    }
    assert changed(results) == [two, three, four]
