"""Deliberate defects in what S9 and S10 promise: connections and answers; noticed by tests named after the rules."""

from crsyncer.core.requests import answers
from crsyncer.core.watching.lanes import Lanes
from crsyncer.engine.pairs.outcomes import Outcomes
from crsyncer.engine.pairs.writer import Writer
from crsyncer.ports import Reply
from crsyncer.runtime.collection_state import CollectionState
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.paged_list import PagedList
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("a conflict that never ends is tried for ever", answers.lasting,
           "(unchanged and contradicts)", "False",
           noticed_by="S10_a_conflict_over_an_object_that_does_not_change_is_a_dead_letter_and_ends_with_it"),
    Mutant("a status is refused for good where nothing is served for a moment", answers.lasting,
           " and not isinstance(error, NotServed)", "",
           noticed_by="S10_a_gateway_that_knows_no_path_for_a_while_makes_no_status_a_dead_letter"),
    Mutant("whoever may write proves that everybody may", Outcomes.done,
           "self.denied.pop(job, None) is not None", "self.denied.clear() is None",
           noticed_by="S10_403_for_one_object_is_reported_for_as_long_as_it_lasts_whoever_else_succeeds"),
    Mutant("a namespace that is being deleted is a credential that is refused", answers.judge,
           'any(cause.get("reason") == NAMESPACE_TERMINATING for cause in causes)', "False",
           noticed_by="S10_a_namespace_that_is_being_deleted_is_no_matter_of_the_credential_for_secrets_either"),
    Mutant("a deletion that finds nothing is asked for again", Writer._delete,
           "unless=404", "unless=0",
           noticed_by="S10_a_delete_that_finds_nothing_is_done"),
    Mutant("any 200 shows the copy that was written", Reply.shown,
           "shown(self.happened().body)", "self.happened()",
           noticed_by="S10_a_copy_whose_writing_is_answered_without_it_is_looked_at_again"),
    Mutant("a relist fetches everything", CollectionState.are_comparable,
           "return self._comparable and ", "return self._comparable and False and ",
           noticed_by="S9_4_a_relist_asks_for_versions_and_then_for_what_has_changed"),
    Mutant("whole objects are not what was asked for", PagedList._by_digest,
           "if whole:", "if False:",
           noticed_by="S9_4_a_gateway_that_answers_with_whole_objects_is_taken_at_its_word"),
    Mutant("a probe knows no patience", Connection._send,
           "capped(reply.retry_after)", "0.0",
           noticed_by="S9_1_a_probe_obeys_retry_after"),
    Mutant("what an outage did not answer counts as overload", Connection.run,
           "errors + 1 if self._answers_errors else 0", "errors + 1",
           noticed_by="S9_1_a_server_that_first_answers_503_after_an_outage_is_asked_again_soon"),
    Mutant("whoever asks for patience is down", Connection._try,
           "if self.up.is_set() and (busy or slow):", "if False:",
           noticed_by="S9_1_a_side_that_asks_everybody_for_patience_stays_connected_and_is_given_it"),
    Mutant("the first that came is always the next", Lanes.take,
           "reversed(equals) if lane.newest and len(equals) > _MANY else iter(equals)", "iter(equals)",
           noticed_by="S9_5_a_change_does_not_wait_for_a_crowd_that_came_before_it"),
    Mutant("a kind waits for all that came before it", Lanes.take,
           "lane.turn, lane.newest = self._count, not lane.newest", "lane.turn, lane.newest = 0, False",
           noticed_by="S9_5_a_change_does_not_wait_for_a_crowd_that_came_before_it"),
)
