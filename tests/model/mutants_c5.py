"""Deliberate defects in what C5 promises: related objects."""

from crsyncer.core import configured, decide, relate
from crsyncer.engine.cache import Cache
from crsyncer.engine.copy_names import CopyNames
from crsyncer.engine.demand import Demand
from crsyncer.engine.informer import Informer
from crsyncer.engine.kin import Kin
from crsyncer.engine.writer import Writer
from crsyncer.runtime.collection_state import CollectionState
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "every object of the kind is related",
        Demand.wants,
        "return bool(self._counts[key]) or",
        "return True or",
        noticed_by="C5_1_what_a_primary",
    ),
    Mutant(
        "what is newly referred to waits for the next list",
        Demand._want,
        "self._wake.set()",
        "pass",
        noticed_by="C5_1_what_a_primary",
    ),
    Mutant(
        "what nothing refers to any more stays",
        Demand._unwant,
        "self.kind.on(self.kind.policy.upstream)[0].absent(key)",
        "pass",
        noticed_by="C5_4_a_copy_goes",
    ),
    Mutant(
        "a copy goes with the first of its primaries",
        Demand._unwant,
        "if self.wants(key) or self.kind is None:",
        "if self.kind is None:",
        noticed_by="C5_3_primaries",
    ),
    Mutant(
        "copies are judged before the primaries are known",
        Demand.is_unsure,
        "return key in self._kept or not self.is_complete",
        "return key in self._kept",
        noticed_by="C5_4_losing",
    ),
    Mutant(
        "copies of a vanished entry are deleted",
        Demand.sweep,
        "if self._entries_gone and key not in cache.tombstones:",
        "if False:",
        noticed_by="C5_4_when",
    ),
    Mutant(
        "copies of a vanished entry are deleted after a restart",
        Demand._remember,
        "for key in self._kept)",
        "for key in ())",
        noticed_by="C5_4_when",
    ),
    Mutant(
        "a copy of the other side's is an original",
        Demand._is_copy,
        "return bool(cluster) and",
        "return False and",
        noticed_by="C5_4_an_object",
    ),
    Mutant(
        "kept copies are deleted",
        decide.may_delete,
        "if policy.keep_copies:",
        "if False:",
        noticed_by="C5_4_with_cleanup",
    ),
    Mutant(
        "a primary that cannot be read refers to nothing",
        Kin._refer,
        "if not failure:",
        "if True:",
        noticed_by="C5_1_what_cannot",
    ),
    Mutant(
        "a primary that cannot be read since the start refers to nothing",
        Kin._refer,
        "elif at_start:",
        "elif False:",
        noticed_by="C5_1_what_cannot",
    ),
    Mutant(
        "a primary's copy is not read",
        Cache.saw,
        "if self.on_seen is not None:",
        "if False:",
        noticed_by="C5_1_what_a_primary",
    ),
    Mutant(
        "copies in the cloud get no label",
        relate.related_policy,
        "if first.filtered and origin is Side.ROBOT:",
        "if False:",
        noticed_by="C5_3_with_the_filter_copies",
    ),
    Mutant(
        "originals without the label are synced",
        relate.related_policy,
        "if first.filtered and origin is Side.CLOUD:",
        "if False:",
        noticed_by="C5_3_with_the_filter_originals",
    ),
    Mutant(
        "a kind may be synced by itself and related",
        configured._related_problems,
        "if objects(name) or",
        "if False and",
        noticed_by="C5_3_a_kind",
    ),
    Mutant(
        "what is not wanted any more is not gone",
        Informer._is_wanted,
        "if known:",
        "if False:",
        noticed_by="C5_4_an_original",
    ),
    Mutant(
        "a list that shows an unrelated object is taken for that of a restored cluster",
        CollectionState._compare,
        "if known is None and self._selective:",
        "if False:",
        noticed_by="C5_3_a_list",
    ),
    Mutant(
        "a selector selects in all namespaces",
        relate.Selection.matches,
        "key.namespace == self.namespace and",
        "True and",
        noticed_by="C5_1_a_selector_selects_all",
    ),
    Mutant(
        "what a selector newly selects is not looked for",
        Demand._select,
        "self._wake.set()",
        "pass",
        noticed_by="C5_1_a_selector_selects_all",
    ),
    Mutant(
        "an original whose labels have changed stays selected",
        Demand.takes,
        "keys ^= {key}",
        "keys |= {key}",
        noticed_by="C5_1_a_selector_selects_all",
    ),
    Mutant(
        "a selector may select any number of objects",
        Demand._count,
        "failure = too_many(len(keys))",
        'failure = ""',
        noticed_by="C5_1_more_than",
    ),
    Mutant(
        "a copy is in the namespace of its original",
        relate.Place.new_name,
        "(self.namespace or plain.namespace)",
        "plain.namespace",
        noticed_by="C5_2_a_related_copy",
    ),
    Mutant(
        "templates mean the namespace of the original",
        relate.Place.new_name,
        "namespace=namespace)",
        "namespace=None)",
        noticed_by="C5_2_templates",
    ),
    Mutant(
        "the namespace of a primary's copy is the one of a new copy",
        Kin._home,
        "cache.name_on(side, key).namespace",
        "kind.policy.new_name(key).namespace",
        noticed_by="C5_2_C2_3",
    ),
    Mutant(
        "a copy is made before it is known where that of the primary is",
        Kin._home,
        "is Gap.UNSEEN",
        "is None",
        noticed_by="C5_2_a_copy_waits",
    ),
    Mutant(
        "a primary is not told that its copy is elsewhere",
        CopyNames.settle,
        "if name != chosen",
        "if False",
        noticed_by="C5_3_of_two_places",
    ),
    Mutant(
        "the copy that there is does not count",
        CopyNames._choose,
        "(self._copy(key), former)",
        "(former,)",
        noticed_by="C5_3_of_two_places",
    ),
    Mutant(
        "with naming, an object in another namespace is adopted",
        Writer._is_free,
        "policy.names_copies",
        "False",
        noticed_by="C5_2_C2_5_a_name",
    ),
    Mutant(
        "an object in another namespace is not adopted",
        Writer._name_taken,
        "and not self._is_free(found)",
        "",
        noticed_by="C5_2_C2_5_a_name",
    ),
    Mutant(
        "what is wrong about an entry outlives it",
        Kin._forget_failures,
        "if kind == resource",
        "if False",
        noticed_by="C5_1_what_is_wrong",
    ),
)
