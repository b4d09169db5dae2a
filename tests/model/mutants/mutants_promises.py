"""Mutants that random histories have to notice."""

from crsyncer.core.holds.deletion_holds import DeletionHolds
from crsyncer.core.holds.hold_machine import HoldMachine
from crsyncer.core.pair import decide, decide_delivery
from crsyncer.engine.kinds import negotiation, reselection
from crsyncer.engine.kinds.kinds import Kinds
from crsyncer.runtime.collection_state import CollectionState
from crsyncer.runtime.dispatcher import Dispatcher
from crsyncer.runtime.listwatch import ListWatch
from crsyncer.runtime.resume_check import ResumeCheck
from tests.model.mutants.mutant import Mutant

# fmt: off
PROMISES = (
    Mutant("a hold is no hold", DeletionHolds.held_every,
           "return next(", "return None and next(",
           noticed_by="held", says="a human holds"),
    Mutant("a kind that is stopped goes on", Kinds._end,
           "self._stop(entry)", "return",
           noticed_by="stopped", says="the kind is stopped"),
    Mutant("a kind that is stopped never ends", Kinds._remove,
           "self._end(entry)", "self._stop(entry)",
           noticed_by="annotated", says="does not come to rest"),
    Mutant("a filter drops what waits", reselection._kept,
           "same_status = all(map(", "same_status = not all(map(",
           noticed_by="filtered", says="never arrived"),
    Mutant("what is refused is repeated at once", Dispatcher.back_off,
           "backoff.wait(self._queue.count_failure(job), chance())", "0.0 * self._queue.count_failure(job)",
           noticed_by="taken", says="it is repeated"),
    Mutant("a connection that closes slowly looks silent", ResumeCheck._replay,
           "lasted = loop.time() - started", "lasted = seconds",
           noticed_by="silent", says="without a cause"),
    Mutant("a version that the cloud was not asked for is no guess", negotiation.guessed_version,
           "version_is_guess=True", "version_is_guess=False",
           noticed_by="guessed", says="without a cause"),
    Mutant("a CRD that is refused once is unreadable", HoldMachine._read_crd,
           "self._now < self._crd_denied_at + _CRD_DENIED_SECONDS", "False",
           noticed_by="hidden", says="went with its kind"),
    Mutant("a list that somebody asks for is taken before the history is looked at", ListWatch._round,
           "is_checked = wanted and keeps_cursor(self._reason)", "is_checked = wanted",
           noticed_by="restored", says="was lost by a restore"),
    Mutant("an agent that is killed during a list does not know how new its objects are", CollectionState.page_arrives,
           "self.cursor() is None and", "False and",
           noticed_by="killed during a list", says="was lost by a restore"),
    Mutant("the status of one object replaces that of another which may be newer", decide._has_row_of_another,
           "upstream.of(pending.upstream_uid) is Gap.ABSENT", "True",
           noticed_by="two uids", says="never arrived"),
    Mutant("a status that upstream had before counts as a newer one", decide_delivery.decide_delivery,
           "row.unanswered, row.follows, ", "row.unanswered, ",
           noticed_by="rivalled", says="never arrived"),
)
# fmt: on
"""Noticed by what random histories are judged by (`test_promises`)."""
