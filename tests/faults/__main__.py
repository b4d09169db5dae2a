"""Runs the fault matrix, all of it or some rows, and writes what came out into FAULTS.md: `make faults`."""

import datetime
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.faults.rows import ROWS, tagged

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "FAULTS.md"
HEAD = """# What crsyncer survives

Each row is a fault, done to the agent on real control planes, with real databases and sockets. `make faults` runs them
all and writes this page; `make faults ROWS="7 42"` runs two. `make test` runs those that take seconds.

| # | fault, and what it must lead to | shown by | last result |
|---|---|---|---|
"""


class Recorder:
    """A pytest plugin that remembers how the tests of each row ended."""

    def __init__(self) -> None:
        self.outcomes: dict[int, list[str]] = defaultdict(list)
        self.seconds: dict[int, float] = defaultdict(float)
        self.reasons: dict[int, str] = {}
        self._rows: dict[str, list[int]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            self._rows[item.nodeid] = [int(m.name[6:]) for m in item.iter_markers() if m.name.startswith("fault_")]

    def pytest_runtest_logreport(self, report: Any) -> None:
        for row in self._rows.get(report.nodeid, []):
            self.seconds[row] += report.duration
            if report.when == "call" or report.outcome != "passed":
                self.outcomes[row].append(report.outcome)
            if report.outcome == "skipped":
                self.reasons[row] = report.longrepr[2].removeprefix("Skipped: ")

    def result(self, row: int, day: str) -> str:
        """One cell of the table."""
        outcomes = self.outcomes[row]
        if "failed" in outcomes:
            return f"FAILED {day}"
        if "skipped" in outcomes:
            return f"open, {day}: {self.reasons[row]}"
        return f"passed {day}, {self.seconds[row]:.0f} s"


def results_in(page: str) -> dict[int, str]:
    """The last result of each row, as the page has it."""
    return {int(row): result for row, result in re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", page, re.MULTILINE)}


def render(tests: dict[int, list[str]], results: dict[int, str]) -> str:
    """The page."""
    lines = []
    for row, text in ROWS.items():
        shown = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in tests.get(row, [])) or "-"
        lines.append(f"| {row} | {text} | {shown} | {results.get(row, 'never run')} |")
    return HEAD + "\n".join(lines) + "\n"


def main(rows: list[int]) -> int:
    """Run the rows (all of them when none is named); pytest's exit code."""
    recorder = Recorder()
    marks = " or ".join(f"fault_{row:02}" for row in rows or ROWS)
    code = pytest.main(["-m", marks, "--no-header", str(ROOT / "tests")], plugins=[recorder])
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    results = results_in(PAGE.read_text()) if PAGE.exists() else {}
    results |= {row: recorder.result(row, day) for row in recorder.outcomes}
    PAGE.write_text(render(tagged(ROOT), results))
    print(f"written: {PAGE.name}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main([int(argument) for argument in sys.argv[1:]]))
