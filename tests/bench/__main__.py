"""`make bench`: every figure that the design promises, measured in one go on real control planes.

Prints a table as it goes and writes `bench.json`. Not a test: nothing here fails because of a figure.
"""

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import crsyncer
from tests.bench import bulk, outage, policies, single
from tests.bench.stage import Figure, Stage, stage

PARTS: dict[str, Callable[[Stage], AsyncIterator[Figure]]] = {
    "latency": single.latencies,
    "start": single.starts,
    "bulk": lambda on: bulk.figures(on, counts=(300, 1_000)),
    "policies": lambda on: policies.figures(on, count=1_000),
    "outage": outage.figures,
    "many": bulk.ten_thousand,
}
_OPEN = (
    "live status latency while a full audit runs: the audit lists versions beside the watch",
    "silently dead connection where packets vanish: measured with a relay that falls silent, not with a network",
)


async def measure(names: list[str], out: Path) -> None:
    """Measure the named parts, in order."""
    rows = []
    print(f"{'figure':<78} {'p50':>10} {'p95':>10}  unit       goal (limit)", flush=True)
    async with stage() as on:
        for name in names:
            async for figure in PARTS[name](on):
                rows.append(figure.row())
                row = rows[-1]
                limit = f" (bare {figure.limit:.1f})" if figure.limit is not None else ""
                note = f"  {figure.note}" if figure.note else ""
                print(
                    f"{figure.name:<78} {row['p50']:>10.2f} {row['p95']:>10.2f}  {figure.unit:<10} "
                    f"{figure.goal}{limit}{note}",
                    flush=True,
                )
        await on.drop_kind()
    result = {
        "measured": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": {
            "crsyncer": crsyncer.__version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
        },
        "cores": os.cpu_count(),
        "figures": rows,
        "notMeasured": list(_OPEN),
    }
    out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for line in _OPEN:
        print(f"not measured: {line}")
    print(f"written: {out}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"which parts (default all): {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    arguments = parser.parse_args()
    wrong = [name for name in arguments.parts if name not in PARTS]
    if wrong:
        sys.exit(f"unknown part {wrong[0]}; there are: {', '.join(PARTS)}")
    asyncio.run(measure(arguments.parts or list(PARTS), arguments.out))


if __name__ == "__main__":
    main()
