"""Runs random histories, or tells one: `python -m tests.model SEED [--shrink]`, `python -m tests.model --to 300`.

With `--policies`, histories of a kind that has a SyncPolicy; with `--keeping`, those of what keeps copies.
`--known-defects` runs them against each defect of `known_defects` until one finds it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.model.histories import running
from tests.model.histories.history import History, history_of
from tests.model.histories.keeping_history import KeepingHistory, keeping_history_of
from tests.model.histories.keeping_machine import KeepingMachine
from tests.model.histories.machine import Machine
from tests.model.histories.policy_history import PolicyHistory, policy_history_of
from tests.model.histories.policy_machine import PolicyMachine
from tests.model.mutants.known_defects import KNOWN_DEFECTS

PROGRAM = "tests.model"
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
    return running.failure_of(lambda: machine_of(history).run())


def failures(seeds: Iterable[int], *, sort: str = "plain") -> Iterator[tuple[int, str]]:
    """The seeds whose histories go wrong, and what is wrong with them."""
    return running.failures(seeds, lambda seed: failure(SORTS[sort](seed)))


def main() -> int:
    """The command."""
    parser = running.parser(PROGRAM, __doc__, most=300)
    parser.set_defaults(sort="plain")
    for sort, told in (("policies", "of a kind with a SyncPolicy"), ("keeping", "of holds, restores and edits")):
        parser.add_argument(f"--{sort}", dest="sort", action="store_const", const=sort, help=f"histories {told}")
    parser.add_argument("--known-defects", action="store_true", help="the first history that finds each, up to --to")
    given = parser.parse_args()
    seeds = range(given.first, given.last)
    if given.known_defects:
        return find_known_defects(seeds)
    if given.seed is None:
        again = f"python -m {PROGRAM}{f' --{given.sort}' * (given.sort != 'plain')}"
        return running.report(seeds, lambda seed: failure(SORTS[given.sort](seed)), again=again, stop=given.stop)
    history = SORTS[given.sort](given.seed)
    if given.shrink and failure(history) is not None:
        history = running.shrunk(history, failure)
    machine = machine_of(history)
    return running.tell(history, machine.run, lambda: machine.world.writes)


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


if __name__ == "__main__":
    running.run_with_fixed_hashes(PROGRAM, main)
