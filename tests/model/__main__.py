"""Runs random histories, or tells one: `python -m tests.model SEED [--shrink]`, `python -m tests.model --to 300`.

With `--policies`, histories of a kind that has a SyncPolicy; with `--keeping`, those of what keeps copies.
`--known-defects` runs them against each defect of `known_defects` until one finds it.
"""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from tests.model.history import History, history_of
from tests.model.keeping_history import KeepingHistory, keeping_history_of
from tests.model.keeping_machine import KeepingMachine
from tests.model.known_defects import KNOWN_DEFECTS
from tests.model.machine import Machine
from tests.model.policy_history import PolicyHistory, policy_history_of
from tests.model.policy_machine import PolicyMachine

AnyHistory = History | PolicyHistory | KeepingHistory
SORTS: Mapping[str, Callable[[int], AnyHistory]] = {
    "plain": history_of,
    "policies": policy_history_of,
    "keeping": keeping_history_of,
}
"""What makes a history of a seed, by the sort of history."""


def machine_of(history: AnyHistory) -> Machine | PolicyMachine | KeepingMachine:
    """What takes the steps of a history."""
    match history:
        case History():
            return Machine(history)
        case PolicyHistory():
            return PolicyMachine(history)
        case KeepingHistory():
            return KeepingMachine(history)


def failure(history: AnyHistory) -> str | None:
    """What is wrong with a history; None: nothing."""
    try:
        machine_of(history).run()
    except AssertionError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()
    return None


def shrunk(history: AnyHistory) -> AnyHistory:
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


def failures(seeds: Iterable[int], *, sort: str = "plain") -> Iterator[tuple[int, str]]:
    """The seeds whose histories go wrong, and what is wrong with them."""
    for seed in seeds:
        wrong = failure(SORTS[sort](seed))
        if wrong is not None:
            yield seed, wrong


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--shrink", action="store_true", help="leave out the steps that the failure does not need")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=300)
    parser.set_defaults(sort="plain")
    for sort, told in (("policies", "of a kind with a SyncPolicy"), ("keeping", "of holds, restores and edits")):
        parser.add_argument(f"--{sort}", dest="sort", action="store_const", const=sort, help=f"histories {told}")
    parser.add_argument("--stop", action="store_true", help="at the first failure")
    parser.add_argument("--known-defects", action="store_true", help="the first history that finds each, up to --to")
    given = parser.parse_args()
    if given.known_defects:
        return find_known_defects(range(given.first, given.last))
    if given.seed is not None:
        return tell(SORTS[given.sort](given.seed), shrink=given.shrink)
    started, count = time.monotonic(), 0
    again = f"python -m tests.model{f' --{given.sort}' * (given.sort != 'plain')}"
    for seed, wrong in failures(range(given.first, given.last), sort=given.sort):
        count += 1
        print(f"seed {seed}: {wrong[:600]}\n  again: {again} {seed} --shrink", flush=True)
        if given.stop:
            break
    print(f"{given.last - given.first} histories, {count} failures, {time.monotonic() - started:.0f} s")
    return 1 if count else 0


def find_known_defects(seeds: range) -> int:
    """Say which history is the first to find each defect of `known_defects`; how many are not found."""
    missed = 0
    for defect in KNOWN_DEFECTS:
        with defect.alive():
            seed, wrong = next(failures(seeds, sort=defect.noticed_by or "plain"), (None, ""))
        missed += seed is None
        found = (
            f"not found in {len(seeds)} histories" if seed is None else f"seed {seed}: {wrong.strip().splitlines()[-1]}"
        )
        print(f"{defect.name}: {found[:200]}", flush=True)
    return missed


def tell(history: AnyHistory, *, shrink: bool) -> int:
    """Run one history and say what happens in it."""
    if shrink and failure(history) is not None:
        history = shrunk(history)
    machine = machine_of(history)
    print(history)
    for step in history.steps:
        print(f"  {step}")
    try:
        machine.run()
    except Exception:
        for write in machine.world.writes:
            print(f"{write.time:10.3f} {write}{' late' if write.late else ''}")
        print(traceback.format_exc())
        return 1
    print("nothing is wrong with it")
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is part of a history.
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.model", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    sys.exit(main())
