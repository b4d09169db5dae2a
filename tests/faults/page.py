"""FAULTS.md, the page that says which test shows which fault, and how it ended last. Generated, not typed."""

import datetime
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults.rows import ROWS, tagged

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "FAULTS.md"
HEAD = """# What crsyncer survives

Each row is a fault, done to the agent on real control planes with real databases and sockets or, in `model/`, on
virtual time, where requests can be counted. `make nightly` runs them all and writes this page; `make faults ROWS="7"`
runs one row. `make test` runs the tests that take seconds.
A result ends in digests of the product's sources and of the test's: `make faults ROWS=changed` lists those that have
changed since.

| # | fault, and what it must lead to | test | last result |
|---|---|---|---|
"""
_NEVER_RUN = "not run yet"


@dataclass(slots=True)
class _Ran:
    """How the instances of one test ended."""

    outcomes: set[str] = field(default_factory=set)
    seconds: float = 0.0
    reason: str = ""


class Recorder:
    """A pytest plugin that remembers how each tagged test ended, by `file::name`; a parametrised one counts as one."""

    def __init__(self) -> None:
        self._ran: dict[str, _Ran] = {}
        self._tagged = {test for tests in tagged(ROOT).values() for test in tests}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A phase of a test has ended."""
        test = str(report.nodeid).partition("[")[0]
        if test not in self._tagged:
            return
        ran = self._ran.setdefault(test, _Ran())
        ran.seconds += report.duration
        if report.when == "call" or report.outcome != "passed":
            ran.outcomes.add(report.outcome)
        if report.outcome == "skipped":
            ran.reason = report.longrepr[2].removeprefix("Skipped: ")

    def pytest_sessionfinish(self) -> None:
        """Write the page."""
        write(self.results(datetime.datetime.now(datetime.UTC).date().isoformat()))

    def results(self, day: str) -> dict[str, str]:
        """A cell for each test that ran."""
        return {test: f"{_cell(ran, day)}, of {digests(test)}" for test, ran in self._ran.items() if ran.outcomes}


def digests(test: str) -> str:
    """Which product and which test file these are: six hexadecimal digits each, of what the sources say."""
    file = ROOT / test.partition("::")[0]
    return f"{_product()}.{_digest([file])}"


def changed(results: dict[str, str]) -> list[str]:
    """The tests whose last result is of another product or another test than those here, or of none."""
    return [test for test, result in results.items() if not result.endswith(f", of {digests(test)}")]


@cache
def _product() -> str:
    return _digest(sorted((ROOT / "crsyncer").rglob("*.py")))


def _digest(files: Iterable[Path]) -> str:
    seen = hashlib.sha256()
    for file in files:
        seen.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return seen.hexdigest()[:6]


def write(fresh: dict[str, str]) -> None:
    """The page as the tests are tagged now, with what is known of their last results."""
    known = results_in(PAGE.read_text()) if PAGE.exists() else {}
    PAGE.write_text(render(tagged(ROOT), known | fresh))


def results_in(page: str) -> dict[str, str]:
    """The last result of each test, as the page has it."""
    return {
        f"tests/{test}": result for test, result in re.findall(r"\| `(\S+::\S+)` \| ([^|]+) \|$", page, re.MULTILINE)
    }


def render(tests: dict[int, list[str]], results: dict[str, str]) -> str:
    """The page."""
    lines = []
    for row, text in ROWS.items():
        for test in tests.get(row, []):
            first = test == tests[row][0]
            result = results.get(test, _NEVER_RUN)
            lines.append(
                f"| {row if first else ''} | {text if first else ''} | `{test.removeprefix('tests/')}` | {result} |"
            )
    return HEAD + "\n".join(lines) + "\n"


def _cell(ran: _Ran, day: str) -> str:
    if "failed" in ran.outcomes:
        return f"FAILED {day}"
    if "skipped" in ran.outcomes:
        return f"open, {day}: {ran.reason}"
    return f"passed {day}, {ran.seconds:.0f} s"
