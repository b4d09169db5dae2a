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
from tests.bench import bulk, door, fleet, outage, policies, shared, single
from tests.bench.stage import Figure, Stage, stage

PARTS: dict[str, Callable[[Stage], AsyncIterator[Figure]]] = {
    "latency": single.latencies,
    "start": single.starts,
    "bulk": lambda on: bulk.figures(on, counts=(300, 1_000)),
    "policies": lambda on: policies.figures(on, count=1_000),
    "outage": outage.figures,
    "many": bulk.ten_thousand,
}
FLEET, SHARED, DOOR = "fleet", "shared", "door"
"""The parts with a cloud of their own."""
_OPEN = (
    "live status latency while a full audit runs: the audit lists versions beside the watch",
    "silently dead connection where packets vanish: measured with a relay that falls silent, not with a network",
)


async def figures(names: list[str], given: argparse.Namespace) -> AsyncIterator[Figure]:
    """The figures of the named parts, in order; those with a cloud of their own last."""
    if staged := [name for name in names if name in PARTS]:
        async with stage() as on:
            for name in staged:
                async for figure in PARTS[name](on):
                    yield figure
            await on.drop_kind()
    if FLEET in names:
        async for figure in fleet.figures(robots=given.robots, minutes=given.minutes):
            yield figure
    if SHARED in names:
        async for figure in shared.figures(robots=given.robots):
            yield figure
    if DOOR in names:
        async for figure in door.figures(watches=given.watches, kinds=given.kinds):
            yield figure


async def measure(found: AsyncIterator[Figure], out: Path) -> None:
    """Print figures as they come, and write them down."""
    rows = []
    print(f"{'figure':<78} {'p50':>10} {'p95':>10}  unit       n     goal (limit)", flush=True)
    async for figure in found:
        rows.append(figure.row())
        row = rows[-1]
        limit = f" (bare {figure.limit:.1f})" if figure.limit is not None else ""
        note = f"  {figure.note}" if figure.note else ""
        print(
            f"{figure.name:<78} {row['p50']:>10.2f} {row['p95']:>10.2f}  {figure.unit:<10} "
            f"n={row['n']:<3} {figure.goal}{limit}{note}",
            flush=True,
        )
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
    everything = [*PARTS, FLEET, SHARED, DOOR]
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"which parts (default all): {', '.join(everything)}")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--robots", type=int, default=10_000, help="of the parts fleet and shared (default 10000)")
    parser.add_argument("--minutes", type=float, default=25.0, help="the part fleet ends by then (default 25)")
    parser.add_argument("--watches", type=int, default=10_000, help="of the part door (default 10000)")
    parser.add_argument("--kinds", type=int, choices=(1, 2), default=1, help="kinds that each robot watches there")
    arguments = parser.parse_args()
    wrong = [name for name in arguments.parts if name not in everything]
    if wrong:
        sys.exit(f"unknown part {wrong[0]}; there are: {', '.join(everything)}")
    found = figures(arguments.parts or everything, arguments)
    asyncio.run(measure(found, arguments.out))


if __name__ == "__main__":
    main()
