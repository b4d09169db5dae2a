"""Runs the fault matrix, all of it or some rows, and writes FAULTS.md: `make faults`, `make nightly`.

`changed` in the place of rows runs nothing, and lists the results that are of another product or test.
"""

import sys

import pytest

from tests.faults.page import PAGE, ROOT, Recorder, changed, results_in
from tests.faults.rows import ROWS

_PARALLEL = ["--dist", "loadfile", "--no-loadscope-reorder"]


def main(rows: list[int], *options: str) -> int:
    """Run the rows, or all of them and whatever else is nightly; pytest's exit code. `options` are pytest's."""
    marks = [f"fault_{row:02}" for row in rows or ROWS] + ([] if rows else ["nightly"])
    expression = ["-m", " or ".join(marks), "--no-header", str(ROOT / "tests")]
    code = pytest.main([*expression, *_PARALLEL, *options], plugins=[Recorder()])
    print(f"written: {PAGE.name}")
    return int(code)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given == ["changed"]:
        print("\n".join(changed(results_in(PAGE.read_text()))))
        sys.exit()
    numbers = [int(argument) for argument in given if argument.isdigit()]
    if unknown := [number for number in numbers if number not in ROWS]:
        sys.exit(f"there is no row {unknown[0]}; the rows are: {', '.join(map(str, ROWS))}")
    sys.exit(main(numbers, *(argument for argument in given if not argument.isdigit())))
