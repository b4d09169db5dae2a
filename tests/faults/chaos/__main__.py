"""`make chaos SECONDS=600 SEED=7`: one run on planes of its own; exit code 1 when a promise was not kept."""

import argparse
import asyncio
import json
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from crsyncer.sandbox.two_planes import Sandbox
from tests.faults.chaos.checker import check
from tests.faults.chaos.history import Evidence
from tests.faults.chaos.play import play
from tests.faults.chaos.report import story, summary
from tests.faults.chaos.schedule import Step, draw


def main() -> int:
    """Draw, play, judge, tell."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dry-run", action="store_true", help="only print the schedule")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep what was seen, for --judge")
    parser.add_argument("--judge", type=Path, metavar="FILE", help="only judge what an earlier run has kept")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, and nothing else")
    options = parser.parse_args()
    steps = draw(seed=options.seed, seconds=options.seconds)
    if options.dry_run:
        print("\n".join(map(str, steps)))
        return 0

    def progress(line: str) -> None:
        if not options.json:
            print(line, flush=True)

    evidence = pickle.loads(options.judge.read_bytes()) if options.judge else _run(steps, progress)
    if options.save:
        options.save.write_bytes(pickle.dumps(evidence))
    violations = check(evidence)
    replay = f"make chaos SECONDS={options.seconds:g} SEED={options.seed}"
    for violation in violations:
        print(story(violation, evidence, replay=replay), file=sys.stderr)
    figures = {"seed": options.seed, "seconds": options.seconds, **summary(evidence, violations)}
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        print("\n".join(f"{name:<16} {value}" for name, value in figures.items()))
    return 1 if violations else 0


def _run(steps: list[Step], progress: Callable[[str], None]) -> Evidence:
    with Sandbox.up() as sandbox, tempfile.TemporaryDirectory(prefix="crsyncer-chaos-") as directory:
        planes = {"cloud": sandbox.cloud, "robot": sandbox.robot}
        return asyncio.run(play(steps, planes=planes, directory=Path(directory), progress=progress))


if __name__ == "__main__":
    sys.exit(main())
