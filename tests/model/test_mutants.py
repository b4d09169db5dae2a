"""Every deliberate defect is noticed by a hazard: a world that lets one pass proves nothing about what it does not."""

from collections.abc import Callable, Iterator
from inspect import getmembers, isfunction, signature
from typing import Any

import pytest

from tests.model import (
    test_hazards,
    test_kinds,
    test_old_knowledge,
    test_s5_deletion,
    test_s6_state,
    test_s7_offline,
    test_s9_connections,
    test_s10_answers,
    test_stops,
    test_thin_lines,
    test_waits,
)
from tests.model.mutant import Mutant
from tests.model.mutants import MUTANTS
from tests.model.scene import synced
from tests.model.weather import Fate

_ARGUMENTS: dict[str, list[Any]] = {
    "fate": list(Fate),
    "slowly": [False, True],
    "overtaken_by": [-1, 40],
    "how": ["cut", "down"],
    "cloud": ["cut", "late"],
    "after": [0.05, 0.1],
    "readable": [True, False],
}
_RULES = (test_s5_deletion, test_s6_state, test_s7_offline, test_s9_connections, test_s10_answers)
_HAZARDS = (test_hazards, test_kinds, test_old_knowledge, test_stops, test_thin_lines, test_waits, *_RULES)


def hazards(begin: str) -> Iterator[Callable[[], None]]:
    """The hazards whose names begin so, as something to be run."""
    for name, hazard in (each for module in _HAZARDS for each in getmembers(module, isfunction)):
        if not name.startswith(f"test_{begin}"):
            continue
        wanted = set(signature(hazard).parameters)
        others = wanted - {"world"}
        if len(others) > 1 or others - _ARGUMENTS.keys():
            continue
        for value in _ARGUMENTS[others.pop()] if others else [None]:

            def run(hazard: Callable[..., None] = hazard, wanted: set[str] = wanted, value: object = value) -> None:
                arguments = dict.fromkeys(wanted - {"world"}, value)
                if "world" not in wanted:
                    hazard(**arguments)
                    return
                with synced() as world:
                    hazard(world, **arguments)

            yield run


def noticed(mutant: Mutant) -> bool:
    """Whether some hazard goes wrong while the agent has the defect."""
    with mutant.alive():
        for hazard in hazards(mutant.noticed_by):
            try:
                hazard()
            except Exception:
                return True
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_deliberate_defect_is_noticed(mutant: Mutant) -> None:
    assert noticed(mutant), f"nobody notices: {mutant.name}"
