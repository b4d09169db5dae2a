"""Every deliberate defect is noticed by a hazard: a world that lets one pass proves nothing about what it does not."""

import pytest

from tests.model.mutants import (
    mutants_f9,
    mutants_guards,
    mutants_namespaces,
    mutants_s1_s3,
    mutants_s4,
    mutants_s5,
    mutants_s6_s7,
    mutants_s8,
    mutants_s9_s10,
)
from tests.model.mutants.mutant import Mutant
from tests.model.mutants.noticing import noticed

CHAPTERS = (
    mutants_guards,
    mutants_f9,
    mutants_namespaces,
    mutants_s1_s3,
    mutants_s4,
    mutants_s5,
    mutants_s6_s7,
    mutants_s8,
    mutants_s9_s10,
)
"""Those of the base; `test_mutants_content` has the others, so that another worker takes them."""
MUTANTS = tuple(mutant for chapter in CHAPTERS for mutant in chapter.MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_deliberate_defect_is_noticed(mutant: Mutant) -> None:
    assert noticed(mutant), f"nobody notices: {mutant.name}"
