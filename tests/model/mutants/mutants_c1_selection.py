"""Deliberate defects in what C1.7 promises: an edited selection leaves no copy behind in silence."""

from crsyncer.core.holds.deletion_holds import DeletionHolds
from crsyncer.core.holds.hold_machine import HoldMachine
from crsyncer.engine.kinds import reselection
from crsyncer.engine.kinds.left_behind import LeftBehind
from crsyncer.engine.kinds.reselection import reselect
from crsyncer.engine.pairs import hold_driver
from crsyncer.engine.pairs.writer import Writer
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("a create without an answer makes no copy after the count", LeftBehind._look,
           "if self._awaits_copies:", "if False:",
           noticed_by="C1_7_S10_a_copy_whose_create_comes_late_after_an_edit_of_the_selection_is_not_left_behind"),
    Mutant("a missing kind is back before it is known which copies went with it", HoldMachine.program,
           "self.holds.may_end_missing and self._up", "self.holds.kind_missing and self._up",
           noticed_by="C1_7_S5_5a_what_went_with_its_kind_is_held_also_where_only_the_count_shows_its_copies"),
    Mutant("an edit leaves no copy behind that is just being made", reselection._leave_behind,
           "is_known = listed and not under_way", "is_known = listed",
           noticed_by="C1_7_S10_a_copy_that_is_being_made_as_the_selection_is_edited_is_not_left_behind"),
    Mutant("what an edit has left behind is forgotten by the next one", reselection._has_left_behind,
           "return any(", "return False and any(",
           noticed_by="C1_7_C2_3_few_copies_go_also_where_their_deletion_is_under_way_as_naming_is_edited"),
    Mutant("a restored cluster has nothing that an edit had left behind", LeftBehind.count_again,
           "if self._marks and", "if False and",
           noticed_by="C1_7_S8_3_what_a_restored_cluster_has_again_is_not_left_behind"),
    Mutant("a robot that has booted has nothing again that an edit had left behind", LeftBehind.look_again,
           "bool(self._marks)", "False",
           noticed_by="C1_7_S8_4_nor_what_a_robot_has_again_that_boots_and_has_lost_its_last_writes"),
    Mutant("what a robot has again that has booted is not counted", LeftBehind._look,
           "self.count_again()", "pass",
           noticed_by="C1_7_S8_4_nor_what_a_robot_has_again_that_boots_and_has_lost_its_last_writes"),
    Mutant("copies that are not selected any more are forgotten", reselection._review_copies,
           "if _is_ours(view, policy) or not (", "if not (",
           noticed_by="C1_7_the_annotation_of_a_kind_without_a_policy_counts_too"),
    Mutant("where naming comes with another projection a local object is a copy", reselection._review_copies,
           "(view.unselected or is_local)", "view.unselected",
           noticed_by="C1_7_C2_2_a_local_object_is_no_copy_where_naming_comes_with_another_projection"),
    Mutant("copies are forgotten where naming comes with another projection", reselection._kept,
           "else policy.downstream is Side.ROBOT  #",
           "else policy.downstream is Side.ROBOT and former.names_copies == wanted.names_copies  #",
           noticed_by="C1_7_C7_copies_do_not_stay_in_silence_where_naming_comes_with_a_cloud_kind_without_namespaces"),
    Mutant("what a wider selection shows is a restore", LeftBehind.expect_unknown,
           "= self._holds.is_counting", "= False",
           noticed_by="C1_7_S8_3_a_local_object_that_an_edited_selector_shows_again_is_no_restore"),
    Mutant("however many copies an edit leaves behind, they go at once", DeletionHolds.selection_counted,
           "or is_mass(len(left_behind), copies))", "or False)",
           noticed_by="C1_7_many_are_held_until_somebody_releases_them"),
    Mutant("deletions do not wait until the copies are counted", DeletionHolds.keeps,
           "if every is SELECTION_CHANGED and self.is_counting:\n",
           "if every is SELECTION_CHANGED and self.is_counting:\n        return None\n    if False:\n",
           noticed_by="C1_7_nothing_is_deleted_before_the_copies_have_been_counted"),
    Mutant("another projection makes the kind a missing one", reselect,
           "if not all(map(wanted.is_in_the_same_places", "if False and not all(map(wanted.is_in_the_same_places",
           noticed_by="C1_7_C7_a_projection_to_what_the_cloud_does_not_serve_deletes_nothing"),
    Mutant("copies stay where the cloud had the kind before", reselection._leave_behind,
           "if former is not None and former.resource != place.resource", "if False",
           noticed_by="C1_7_C7_copies_in_the_cloud_go_from_where_they_were"),
    Mutant("where the cloud had the kind before, other robots' copies are deleted", LeftBehind._in_place,
           "stamp.robot != self._policy.robot", "False",
           noticed_by="C1_7_C7_copies_in_the_cloud_go_from_where_they_were"),
    Mutant("a copy counts as gone although its own finalizer keeps it", Writer._delete,
           "self.unwatched_deleted(key, not stays)", "self.unwatched_deleted(key, True)",
           noticed_by="C1_7_a_copy_that_its_own_finalizer_keeps_goes_later_and_is_not_asked_for_without_end"),
    Mutant("the CRDs of all kinds that a projection has named are one", hold_driver.crd_name,
           'f"@{place}" if place != policy.resource else ""', '""',
           noticed_by="C1_7_C7_few_copies_of_what_the_cloud_called_otherwise_go"),
)
