"""Deliberate defects in what C2 promises: the marks of copies, and their names."""

from crsyncer.core import catalog, compose, decide, naming, project
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.engine.cache import Cache
from crsyncer.engine.copies import Copies
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
    Mutant(
        "a copy is moved when its template changes",
        KindPolicy.copy_name,
        "if not isinstance(copy, View):",
        "if True:",
        noticed_by="C2_3_changed_templates",
    ),
    Mutant(
        "the store does not know a copy by its uid",
        Copies.original_of,
        "self._keys[downstream].get(uid)",
        "None",
        noticed_by="C2_2_a_copy_with_torn",
    ),
    Mutant(
        "that a seen object has the uid counts for nothing",
        naming.original_of,
        "if uid in seen:",
        "if False:",
        noticed_by="C2_2_a_copy_with_torn",
    ),
    Mutant(
        "labels do not say whose copy an object is",
        naming.original_of,
        "names.items() <= Marks(key, identity).labels.items()",
        "False",
        noticed_by="C2_2_a_copy_with_torn",
    ),
    Mutant(
        "a copy whose original is not known yet is taken for absent",
        Copies.are_decided,
        "why is not NoOriginal.UNDECIDED",
        "True",
        noticed_by="C2_2_an_object_whose",
    ),
    Mutant(
        "an object that waits is never looked at again",
        Cache.waiting,
        "for _, raw in self._copies.waiting.values()",
        "for _, raw in ()",
        noticed_by="C2_2_an_object_whose",
    ),
    Mutant(
        "with naming, local objects are copies of the object of their name",
        Copies.original_of,
        "and not policy.names_copies:",
        ":",
        noticed_by="C2_2_with_naming",
    ),
    Mutant(
        "a name that is none is asked for",
        naming.Naming.new_name,
        "if not NAME.fullmatch(made.name):",
        "if False:",
        noticed_by="C2_3_a_name_that_is_none",
    ),
    Mutant(
        "names are not cut",
        naming.cut,
        "if len(name) <= longest:",
        "if True:",
        noticed_by="C2_3_names_that_are",
    ),
    Mutant(
        "copies of a policy that is gone are orphans",
        Cache._copies_of,
        "isinstance(annotations, dict) and COPY_OF in annotations",
        "False",
        noticed_by="C2_3_copies_stay",
    ),
)
