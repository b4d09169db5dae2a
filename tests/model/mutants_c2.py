"""Deliberate defects in what C2 promises: the marks of copies, and their names."""

from crsyncer.console import diff
from crsyncer.core import catalog, compose, decide, naming, project
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.engine.cache import Cache
from crsyncer.engine.copies import Copies
from crsyncer.engine.kind import Kind
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
        Copies._original_of,
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
        "each.why is not NoOriginal.UNDECIDED",
        "True",
        noticed_by="C2_2_an_object_whose",
    ),
    Mutant(
        "an object that waits is never looked at again",
        Cache.waiting,
        "if self._copies is None else",
        "if True else",
        noticed_by="C2_2_an_object_whose",
    ),
    Mutant(
        "with naming, local objects are copies of the object of their name",
        Copies._original_of,
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
        "self._copies is None and bears_mark(raw)",
        "False",
        noticed_by="C2_3_copies_stay",
    ),
    Mutant(
        "what a controller owns is adopted",
        decide.decide,
        "if copy.controlled or",
        "if",
        noticed_by="C2_5_what_is_unowned",
    ),
    Mutant(
        "whatever has the name is taken over",
        Writer._name_taken,
        "self._cache.key_of(self._policy.downstream, found) != key",
        "False",
        noticed_by="C2_5_of_two",
    ),
    Mutant(
        "a copy without its label is ours by its uid alone",
        Writer._name_taken,
        "if stamp is None and not bears_mark(found):",
        "if stamp is None:",
        noticed_by="C2_5_a_copy",
    ),
    Mutant(
        "copies of another cluster are ours",
        naming.original_of,
        "if identity and annotations[UPSTREAM_CLUSTER] != identity:",
        "if False:",
        noticed_by="C2_6_a_copy_of_another",
    ),
    Mutant(
        "every copy of an original counts",
        Copies._original_of,
        "if other is not None and policy.copy_name(found, other) != own:",
        "if False:",
        noticed_by="C2_6_of_two",
    ),
    Mutant(
        "the copy that was seen first counts",
        Copies._is_older,
        "made < self._created",
        "made > self._created",
        noticed_by="C2_6_without",
    ),
    Mutant(
        "second copies are forgotten when the agent stops",
        Copies._wait,
        "self._store.put_meta(self._meta_name, found)",
        "pass",
        noticed_by="C2_6_of_two",
    ),
    Mutant(
        "a second copy whose original is gone is deleted",
        Copies._original_of,
        "if waits is not None and found",
        "if False and found",
        noticed_by="C2_6_of_two",
    ),
    Mutant(
        "a second copy that is gone is held for good",
        Copies.list_ends,
        "if not each.is_listed and",
        "if False and",
        noticed_by="C2_6_a_second",
    ),
    Mutant(
        "a second copy does not take the place of the first",
        Kind._changed,
        "if side is self.policy.downstream:\n            self._decide",
        "if False:\n            self._decide",
        noticed_by="C2_6_the_second",
    ),
    Mutant(
        "diff pairs copies by their names",
        diff._Pairs._key_of,
        "if self.policy.shape.marks is None:",
        "if True:",
        noticed_by="C2_2_diff",
    ),
    Mutant(
        "diff takes what bears the uid alone for local",
        diff._Pairs.finish,
        "for raw in self._undecided:",
        "for raw in ():",
        noticed_by="C2_2_diff",
    ),
)
