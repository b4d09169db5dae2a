"""Every deliberate defect of the content half is noticed by a hazard, as in `test_mutants`."""

import pytest

from tests.model.mutants import (
    mutants_c1,
    mutants_c1_selection,
    mutants_c2,
    mutants_c3_c4,
    mutants_c5,
    mutants_c5_selected,
    mutants_c6,
    mutants_c7,
    mutants_c8,
    mutants_secrets,
)
from tests.model.mutants.mutant import Mutant
from tests.model.mutants.noticing import noticed

CHAPTERS = (
    mutants_c1,
    mutants_c1_selection,
    mutants_c2,
    mutants_c3_c4,
    mutants_c5,
    mutants_c5_selected,
    mutants_c6,
    mutants_c7,
    mutants_c8,
    mutants_secrets,
)
MUTANTS = tuple(mutant for chapter in CHAPTERS for mutant in chapter.MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_deliberate_defect_in_content_is_noticed(mutant: Mutant) -> None:
    assert noticed(mutant), f"nobody notices: {mutant.name}"
