"""Deliberate defects in what C5.1 promises of objects that a selector selects."""

from crsyncer.core import relate
from crsyncer.engine.related_objects import RelatedObjects
from crsyncer.engine.selections import Selections
from crsyncer.engine.wanted_originals import WantedOriginals
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "a selector selects in all namespaces",
        relate.Selection.matches,
        "key.namespace == self.namespace and",
        "True and",
        noticed_by="C5_1_a_selector_selects_all",
    ),
    Mutant(
        "what is made by hand under the name of a copy selects",
        RelatedObjects._refer,
        "is_synced(raw, kind.policy, entry.related.origin)",
        "True",
        noticed_by="C5_1_what_is_made_by_hand",
    ),
    Mutant(
        "what a selector newly selects is not looked for",
        WantedOriginals.refer,
        "self._wake.set()",
        "pass",
        noticed_by="C5_1_a_selector_selects_all",
    ),
    Mutant(
        "an original whose labels have changed stays selected",
        Selections._turn,
        "keys ^= {key}",
        "keys |= {key}",
        noticed_by="C5_1_a_selector_selects_all",
    ),
    Mutant(
        "an original that nothing selects any more stays",
        WantedOriginals.shown,
        "self._unreferred(key)",
        "pass",
        noticed_by="C5_1_a_selector_selects_all",
    ),
    Mutant(
        "a selector may select any number of objects",
        Selections._count,
        "len(keys) > MOST",
        "False",
        noticed_by="C5_1_more_than",
    ),
    Mutant(
        "what is selected anew while it is listed has been listed",
        Selections.remove,
        "(self._unlisted, self._being_listed, self._too_large)",
        "(self._unlisted, self._too_large)",
        noticed_by="C5_1_what_is_selected_anew",
    ),
    Mutant(
        "what was listed for selectors is not stored",
        Selections._write,
        "self._store.put_meta(self._name, content)",
        "pass",
        noticed_by="C5_1_S6_2_after_a_restart",
    ),
    Mutant(
        "what is shown while nothing selects it is not missed later",
        Selections.left_out,
        "self._forget({text for text in self._awaited",
        "({text for text in self._awaited",
        noticed_by="C5_1_what_begins_to_match",
    ),
    Mutant(
        "a selection that has ended is watched on",
        Selections.remove,
        "self._forget({selection.text})",
        "pass",
        noticed_by="C5_1_after_a_restart_a_selector",
    ),
    Mutant(
        "what another primary selects, too, has ended with the first",
        Selections.remove,
        "if all(",
        "if True or all(",
        noticed_by="C5_1_C5_3_nothing_is_listed",
    ),
    Mutant(
        "of too many originals the cache has all",
        Selections._count,
        "self._forget({selection.text})",
        "pass",
        noticed_by="C5_1_of_too_many",
    ),
    Mutant(
        "originals without a body are known by their labels",
        WantedOriginals._read_labels,
        "self._selections.unreadable()",
        "pass",
        noticed_by="C5_1_S6_5_what_the_store",
    ),
)
