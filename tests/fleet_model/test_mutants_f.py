"""Every deliberate defect of the fleet controller is noticed by the tests of its rule."""

import re

import pytest

from tests.fleet_model import mutants_f1_f4, mutants_f5_f9, mutants_f10
from tests.model.mutants.mutant import Mutant
from tests.model.mutants.noticing import noticed

MUTANTS = (*mutants_f1_f4.MUTANTS, *mutants_f5_f9.MUTANTS, *mutants_f10.MUTANTS)
FOLDERS = ("tests.fleet", "tests.fleet_model")
_RULES = {
    *("1.1", "1.2", "2.1", "2.2", "2.3", "2.4", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
    *("4.1", "4.2", "4.3", "4.4", "5.1", "5.2", "5.3", "5.4", "5.5", "6.2", "6.3", "6.4", "7.1", "7.2", "7.3", "7.4"),
    *("8.1", "8.2", "8.3", "8.4", "8.5", "9.1", "9.4", "9.6"),
}
"""Those of the controller. F2.5 are rights, F6.1 is a robot's, F9.2, F9.3 and F9.5 are the agent's (`mutants_f9`).

F10.1 has its contract test, F10.2 its own tests.
"""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_deliberate_defect_of_the_controller_is_noticed(mutant: Mutant) -> None:
    assert noticed(mutant, FOLDERS), f"nobody notices: {mutant.name}"


def test_each_rule_of_the_controller_has_a_mutant() -> None:
    found = {f"{chapter}.{rule}" for each in MUTANTS for chapter, rule in re.findall(r"F(\d)_(\d)", each.noticed_by)}
    assert found == _RULES
