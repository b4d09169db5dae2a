"""Deliberate defects in what C5.1 promises of objects that a selector selects."""

from crsyncer.core.related import relate
from crsyncer.engine.related.related_objects import RelatedObjects
from crsyncer.engine.related.selections import Selections
from crsyncer.engine.related.wanted_originals import WantedOriginals
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("a selector selects in all namespaces", relate.Selection.matches,
           "key.namespace == self.namespace and", "True and",
           noticed_by="C5_1_a_selector_selects_all_that_it_matches_in_the_namespace"),
    Mutant("what is made by hand under the name of a copy selects", RelatedObjects._seen,
           "is_synced(raw, kind.policy, side)", "True",
           noticed_by="C5_1_what_is_made_by_hand_under_the_name_of_a_copy_refers_to_nothing"),
    Mutant("what a selector newly selects is not looked for", WantedOriginals._refer,
           "self._missing.wake()", "pass",
           noticed_by="C5_1_a_selector_selects_all_that_it_matches_in_the_namespace"),
    Mutant("an original whose labels have changed stays selected", Selections._turn,
           "keys ^= {key}", "keys |= {key}",
           noticed_by="C5_1_a_selector_selects_all_that_it_matches_in_the_namespace"),
    Mutant("an original that nothing selects any more stays", WantedOriginals.shown,
           "self._unreferred(key)", "pass",
           noticed_by="C5_1_a_selector_selects_all_that_it_matches_in_the_namespace"),
    Mutant("a selector may select any number of objects", Selections._count,
           "len(keys) > MOST", "False",
           noticed_by="C5_1_more_than_100_selected_objects_are_reported"),
    Mutant("what was listed for selectors is not stored", Selections._write,
           "self._store.put_meta(self._name, content)", "pass",
           noticed_by="C5_1_S6_2_after_a_restart_nothing_is_listed_for_selectors"),
    Mutant("a selection that has ended is watched on", Selections.remove,
           "self._forget({selection.text})", "pass",
           noticed_by="C5_1_after_a_restart_a_selector_that_is_back_is_listed"),
    Mutant("of too many originals the cache has all", Selections._count,
           "self._forget({selection.text})", "pass",
           noticed_by="C5_1_of_too_many_those_that_the_cache_lacks_are_listed_after_a_restart"),
    Mutant("originals without a body are known by their labels", WantedOriginals._read_labels,
           "self._selections.unreadable()", "pass",
           noticed_by="C5_1_S6_5_what_the_store_cannot_read_any_more_is_listed"),
)
