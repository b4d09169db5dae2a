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
