"""Runs the fault matrix, all of it or some rows, and writes what came out into FAULTS.md: `make faults`."""

import sys

import pytest

from tests.faults.page import PAGE, ROOT, Recorder
from tests.faults.rows import ROWS


def main(rows: list[int]) -> int:
    """Run the rows, or all of them and whatever else takes long; pytest's exit code."""
    marks = [f"fault_{row:02}" for row in rows or ROWS] + ([] if rows else ["nightly"])
    code = pytest.main(["-m", " or ".join(marks), "--no-header", str(ROOT / "tests")], plugins=[Recorder()])
    print(f"written: {PAGE.name}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main([int(argument) for argument in sys.argv[1:]]))
