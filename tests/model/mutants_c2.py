"""Deliberate defects in what C2 promises: the marks of copies."""

from crsyncer.core import catalog, compose, decide, project
from crsyncer.engine.kinds import Kinds
from crsyncer.engine.writer import Writer
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "copies are made without marks",
        compose.compose_copy,
        "return body if marks is None else",
        "return body if True else",
        noticed_by="C2_1_copies",
    ),
    Mutant(
        "a kind does not wait for the identity of its upstream",
        Kinds._upstream_identified,
        "await connection.up.wait()",
        "pass",
        noticed_by="C2_1_a_kind",
    ),
    Mutant(
        "a policy asks for no marks",
        catalog.policy_of_kind,
        "marks=Marks",
        "marks=None",
        noticed_by="C2_1_copies",
    ),
    Mutant(
        "missing marks stay away",
        decide._content,
        "if downstream.unmarked:",
        "if False:",
        noticed_by="C2_4_marks_are_repaired_within",
    ),
    Mutant(
        "whatever marks a copy has are right",
        project._is_unmarked,
        "bool(marks.wrong_on(copy))",
        "False",
        noticed_by="C2_4_marks_are_repaired_within",
    ),
    Mutant(
        "a repair of marks reverts drift that is kept",
        Writer._update,
        "if action.why is Why.MARKS else None",
        "if False else None",
        noticed_by="C2_4_marks_are_repaired_although",
    ),
    Mutant(
        "a fight over marks has no end",
        decide.decide,
        "content.why in REVERTS and contested",
        "content.why is Why.DRIFT and contested",
        noticed_by="C2_4_who",
    ),
    Mutant(
        "a fight over marks does not name them",
        Writer.contested,
        "marks.wrong_on(found) if marks is not None else []",
        "[]",
        noticed_by="C2_4_who",
    ),
)
