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


def test_C5_4_what_went_with_a_primary_that_is_not_selected_any_more_does_not_come_back_with_a_later_hold() -> None:
    """Its copy was about to go, too: then so many others are deleted that a list has to say so, and none comes."""
    ends = (Step("refuse_lists", (120.0,)), Step("clear_out", (12,)), Step("name", (1,)))
    steps = (Step("select", (1, False)), Step("wait", (5.0,)), *ends)
    KeepingMachine(KeepingHistory(1922476, Keeping("cloud", "robot", 12), steps)).run()


def test_C5_4_nor_with_a_backup_of_the_cluster_of_the_copies() -> None:
    """What goes there once more goes as it did before, although the CRD of the primaries is gone by now."""
    gone = (Step("wait", (5.0,)), Step("delete_kind", ("robot",)), Step("restore", ("cloud", "cut")))
    steps = (Step("select", (1, False)), Step("snapshot", ("cloud",)), *gone)
    KeepingMachine(KeepingHistory(1923044, Keeping("robot", "robot", 12), steps)).run()


def test_C5_4_an_entry_that_the_agent_has_not_heard_of_says_nothing_of_primaries_that_go_meanwhile() -> None:
    typo = (Step("point", (1,)), Step("wait", (20.0,)), Step("point", (0,)))
    steps = (Step("delay", ("robot", 0.5, 2.0)), *typo, Step("hold"), Step("clear_out", (5,)))
    KeepingMachine(KeepingHistory(1925204, Keeping("cloud", "cloud", 2), steps)).run()


def test_C5_4_a_deletion_that_is_on_its_way_as_an_object_comes_to_refer_to_the_original_is_not_wrong() -> None:
    slow = (Step("delay", ("cloud", 2.0, 0.5)), Step("make_anew", ("robot", "seen", 0)), Step("refer", (8, 11)))
    steps = (Step("remove", (11,)), Step("hold"), *slow)
    KeepingMachine(KeepingHistory(1928062, Keeping("cloud", "robot", 12), steps)).run()


def test_C5_4_a_copy_that_an_edit_takes_twice_in_a_minute_is_one_of_few() -> None:
    typo = (Step("point", (1,)), Step("wait", (20.0,)))
    steps = (Step("clear_out", (5,)), *typo, Step("point", (0,)), Step("refuse_lists", (5.0,)), *typo)
    KeepingMachine(KeepingHistory(1922821, Keeping("robot", "robot", 8), steps)).run()


def test_C1_7_of_two_edits_each_may_leave_a_few_copies_behind() -> None:
    steps = (Step("select", (1, True)), Step("wait", (5.0,)), Step("kill"), Step("project", (1,)))
    KeepingMachine(KeepingHistory(1934960, Keeping("cloud", "robot", 8, "keep"), steps)).run()


def test_C5_4_what_a_human_has_released_goes_until_the_agent_hears_that_the_entry_is_correct_again() -> None:
    cut = (Step("cut", ("robot",)), Step("delay", ("robot", 2.0, 0.1)), Step("release"), Step("hold"))
    steps = (Step("point", (1,)), Step("wait", (20.0,)), *cut)
    KeepingMachine(KeepingHistory(1923555, Keeping("cloud", "cloud", 12), steps)).run()
