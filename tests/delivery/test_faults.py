"""The fault matrix is generated, not typed: the page names the tests that are there, and every row has one."""

from pathlib import Path

from tests.faults.__main__ import Recorder
from tests.faults.rows import ROWS, tagged

ROOT = Path(__file__).parents[2]


def test_every_tag_has_a_row():
    assert tagged(ROOT).keys() <= ROWS.keys()


def test_a_row_that_fails_in_part_has_failed_and_one_that_cannot_run_says_why():
    class Report:
        nodeid, duration, when = "t", 1.0, "call"
        longrepr = ("t.py", 1, "Skipped: no disk to spare")

        def __init__(self, outcome: str) -> None:
            self.outcome = outcome

    recorder = Recorder()
    recorder._rows["t"] = [7]
    recorder.pytest_runtest_logreport(Report("passed"))
    assert recorder.result(7, "2026-01-01") == "passed 2026-01-01, 1 s"
    recorder.pytest_runtest_logreport(Report("skipped"))
    assert recorder.result(7, "2026-01-01") == "open, 2026-01-01: no disk to spare"
    recorder.pytest_runtest_logreport(Report("failed"))
    assert recorder.result(7, "2026-01-01") == "FAILED 2026-01-01"
