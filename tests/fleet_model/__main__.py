"""Runs random histories of a fleet, or tells one: `python -m tests.fleet_model SEED [--shrink]`, `... --to 300`."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.fleet_model.fleet_history import FleetHistory, fleet_history_of
from tests.fleet_model.fleet_machine import FleetMachine


def failure(history: FleetHistory) -> str | None:
    """What is wrong with a history; None: nothing."""
    try:
        FleetMachine(history).run()
    except AssertionError as error:
        return str(error) or traceback.format_exc()
    except Exception:
        return traceback.format_exc()
    return None


def shrunk(history: FleetHistory) -> FleetHistory:
    """The history without the steps that its failure does not need."""
    size = max(1, len(history.steps) // 2)
    while size:
        start = 0
        while start < len(history.steps):
            shorter = replace(history, steps=history.steps[:start] + history.steps[start + size :])
            if failure(shorter) is not None:
                history = shorter
            else:
                start += size
        size //= 2
    return history


def failures(seeds: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The seeds whose histories go wrong, and what is wrong with them."""
    for seed in seeds:
        wrong = failure(fleet_history_of(seed))
        if wrong is not None:
            yield seed, wrong


def tell(history: FleetHistory, *, shrink: bool) -> int:
    """Run one history and say what happens in it."""
    if shrink and failure(history) is not None:
        history = shrunk(history)
    machine = FleetMachine(history)
    print(history)
    for step in history.steps:
        print(f"  {step}")
    try:
        machine.run()
    except Exception:
        for write in machine.world.written():
            print(f"{write}{' late' if write.late else ''}")
        print(traceback.format_exc())
        return 1
    print("nothing is wrong with it")
    return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet_model", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--shrink", action="store_true", help="leave out the steps that the failure does not need")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=100)
    parser.add_argument("--stop", action="store_true", help="at the first failure")
    given = parser.parse_args()
    if given.seed is not None:
        return tell(fleet_history_of(given.seed), shrink=given.shrink)
    started, count = time.monotonic(), 0
    for seed, wrong in failures(range(given.first, given.last)):
        count += 1
        print(f"seed {seed}: {wrong[-600:]}\n  again: python -m tests.fleet_model {seed} --shrink", flush=True)
        if given.stop:
            break
    print(f"{given.last - given.first} histories, {count} failures, {time.monotonic() - started:.0f} s")
    return 1 if count else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is part of a history.
        arguments = [sys.executable, "-m", "tests.fleet_model", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
