"""What the judge of kept copies demands, and what it does not: histories whose verdict was wrong once."""

from tests.model.histories.history import Step
from tests.model.histories.keeping_history import Keeping, KeepingHistory
from tests.model.histories.keeping_machine import KeepingMachine


def test_C5_4_a_related_copy_goes_with_one_primary_although_another_that_stays_had_needed_it() -> None:
    """An edit leaves five of eight related copies to nobody; a sixth goes with the primary that is not selected any
    more, and is none of those that an edit took from primaries that stay.
    """
    steps = (Step("refer", (5, 3)), Step("select", (1, True)), Step("point", (1,)), Step("wait", (100.0,)))
    KeepingMachine(KeepingHistory(0, Keeping("cloud", "cloud", 8), steps)).run()


def test_C5_4_a_kept_copy_needs_nothing_by_an_edit_that_went_with_the_crd_before_the_agent_could_see_it() -> None:
    """What holds a primary's copy holds what it needs: of the edit nobody can know any more."""
    steps = (Step("put", (11, 3)), Step("refer", (3, 11)), Step("cut", ("cloud",)), Step("delete_kind", ("cloud",)))
    KeepingMachine(KeepingHistory(0, Keeping("cloud", "cloud", 8), (*steps, Step("wait", (0.005,))))).run()
