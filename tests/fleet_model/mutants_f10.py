"""Deliberate defects of the controller: Shared mode (F10.3)."""

from crsyncer.fleet.controllers.mark_writer import SourceMarks
from crsyncer.fleet.controllers.placement_steps import Steps
from crsyncer.fleet.controllers.placements import Placements
from crsyncer.fleet.domain import replica_plan
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.index import Index
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.shared import source_marks
from crsyncer.fleet.domain.shared.robot_statuses import RobotStatuses
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("a status of another object counts", RobotStatuses._counting,
           "latest.uid == self._shared_object(key)[0]", "True",
           noticed_by="F10_3_only_a_status_of_the_very_object_that_a_robot_has_counts"),
    Mutant("a placement goes and leaves its marks", Placements._finish,
           " or self._marks.are_left(placement)", "",
           noticed_by="F10_3_F5_3_the_finalizer_waits_for_a_mark_that_cannot_be_removed"),
    Mutant("a mark of a placement that nobody knows is removed", source_marks.decide_mark,
           "owner is None or marked", "not marked or marked",
           noticed_by="F10_3_a_source_is_marked_while_a_placement_shares_it"),
    Mutant("sources that are unseen are lost to shards", Losses._problem,
           "index.problem_of(index.kinds[key.kind], shared=placement.shared)",
           "index.kinds[key.kind].problem_for(shared=placement.shared)",
           noticed_by="F2_3_F1_1_sources_that_are_unseen"),
    Mutant("one shard's copy is enough", Fleet.misplaced,
           "if key.robot else ()", "",
           noticed_by="F10_3_a_copy_on_another_shard_is_no_reason_not_to_make_one"),
    Mutant("the root gets a copy of its own source", Index.selecting,
           "key.shard in self._shards()", "True",
           noticed_by="F10_3_nothing_is_written_at_the_root_and_for_no_single_robot"),
    Mutant("a copy that is kept goes on as shared", replica_plan._remove,
           "{SHARED} & set(row.annotations)", "{}",
           noticed_by="F10_3_F5_4_copies_that_are_kept_lose_the_mark"),
    Mutant("a refused mark of a source that is gone is told on", SourceMarks.write,
           "del self._refused[key]", "pass",
           noticed_by="F10_3_a_mark_that_was_refused_is_told_no_more"),
    Mutant("a Decision goes before the copies that it names can be seen", Placements._clean_up,
           " and resolution.all_listed(self._state.fleet)", "",
           noticed_by="F10_3_F5_2_what_is_held_of_a_placement_that_is_gone"),
    Mutant("robots of the root keep the state of other sources", Steps._look_at_selection,
           "desk.changed |= selected  # at", "pass  # at",
           noticed_by="F10_3_F6_4_a_robot_of_the_root_is_counted_again"),
    Mutant("a source that is labelled for one robot stays shared", Fleet.object_shown,
           " or is_left_marked(raw)", "",
           noticed_by="F10_3_F2_2_a_source_that_is_labelled_for_one_robot"),
    Mutant("a mark that was not written is waited for for ever", SourceMarks.write,
           " or self._state.now >= until", "",
           noticed_by="F10_3_F3_3_a_mark_that_meets_a_conflict"),
    Mutant("a refused mark is not tried again on a change", SourceMarks.write,
           "sent != version or ", "",
           noticed_by="F10_3_a_mark_that_was_refused_is_tried_again"),
    Mutant("a Decision goes on to name robots that are gone", Placements._write_decisions,
           "not robots and (stored is None or not stored.robots)", "not robots",
           noticed_by="F10_3_F6_3_the_decision_of_a_placement_with_copies"),
    Mutant("a Decision without robots goes before copies can be seen", Placements._write_decisions,
           " or not resolution.all_listed(fleet)", "",
           noticed_by="F10_3_F6_3_the_decision_of_a_placement_with_copies"),
    Mutant("a placement that is no more shared leaves its marks", SourceMarks.write,
           " and not placement.terminating", "",
           noticed_by="F10_3_F5_3_a_placement_that_has_lost_its_mode"),
    Mutant("a kind that is back is told where it has sources", Fleet._of_kind,
           "resource in placement.kinds", "any(key.resource == resource for key in self.index.sources_of(text))",
           noticed_by="F2_3_a_kind_that_is_served_again"),
)
