"""Deliberate defects against the rules of section S8: restores, rebuilds, the wrong cluster."""

from crsyncer.console.control import ControlCommands
from crsyncer.runtime.collection_state import CollectionState
from crsyncer.runtime.listwatch import ListWatch
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "a list whose cursor has expired at once is followed by another one without a question",
        ListWatch._round,
        "if isinstance(step, Relist) and",
        "if False and",
        noticed_by="S8_3_a_cluster_that_takes",
    ),
    Mutant(
        "what a list shows and nobody has seen is taken for new, whatever its version",
        CollectionState._compare,
        "odd = covered and",
        "odd = False and",
        noticed_by="S8_3_an_object_that_a_restore",
    ),
    Mutant(
        "a cluster that was accepted is remembered by cursors alone",
        ControlCommands._accept,
        "informer.state.rebuilt()",
        "pass",
        noticed_by="S5_5c_an_accepted",
    ),
)
