"""Runs random histories of a fleet, or tells one: `python -m tests.fleet_model SEED [--shrink]`, `... --to 300`."""

from tests.fleet_model.fleet_history import FleetHistory, fleet_history_of
from tests.fleet_model.fleet_machine import FleetMachine
from tests.model.histories import running

PROGRAM = "tests.fleet_model"


def failure(history: FleetHistory) -> str | None:
    """What is wrong with a history; None: nothing."""
    return running.failure_of(lambda: FleetMachine(history).run())


def main() -> int:
    """The command."""
    given = running.parser(PROGRAM, __doc__, most=100).parse_args()
    if given.seed is None:
        seeds = range(given.first, given.last)
        again = f"python -m {PROGRAM}"
        return running.report(seeds, lambda seed: failure(fleet_history_of(seed)), again=again, stop=given.stop)
    history = fleet_history_of(given.seed)
    if given.shrink and failure(history) is not None:
        history = running.shrunk(history, failure)
    machine = FleetMachine(history)
    return running.tell(history, machine.run, machine.world.written)


if __name__ == "__main__":
    running.run_with_fixed_hashes(PROGRAM, main)
