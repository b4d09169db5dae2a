"""Defects that earlier versions had and users met, each put back by a mutant: random histories have to find them.

`noticed_by` is the sort of history (`tests.model --keeping`); empty: plain ones.
"""

import crsyncer.core.holds.hold_machine
from crsyncer.core.holds.deletion_holds import DeletionHolds
from crsyncer.core.holds.hold_machine import HoldMachine
from crsyncer.core.model import Observation
from crsyncer.engine.kinds import reselection
from crsyncer.engine.kinds.kinds import Kinds
from crsyncer.engine.related.related_first import RelatedFirst
from crsyncer.errors import NotAllowed
from crsyncer.runtime.dispatcher import Dispatcher
from crsyncer.runtime.listwatch import ListWatch
from tests.model.mutants.mutant import Mutant

vars(crsyncer.core.holds.hold_machine)["NotAllowed"] = NotAllowed
"""The module has no need of it without the defect."""

KNOWN_DEFECTS = (
    Mutant(
        "a stored uid of upstream that is out of date deletes a newer copy",
        Observation.of,
        "proven = self.freshness is Freshness.CONFIRMED or",
        "proven = True or",
        noticed_by="",
    ),
    Mutant(
        "deletions go on after `holds add`",
        DeletionHolds.held_every,
        "return next(",
        "return None and next(",
        noticed_by="",
    ),
    Mutant(
        "a kind stands still, and status calls it healthy",
        ListWatch._carry_out,
        'log.info("%s: watch of %s lost: %s", self.connection.name, self._path, step)',
        "self._set(Phase.WATCHING, ''); await asyncio.Event().wait()",
        noticed_by="",
    ),
    Mutant(
        "a change of filter-by-robot-name drops the outbox",
        reselection._kept,
        "same_status = all(map(",
        "same_status = not all(map(",
        noticed_by="",
    ),
    Mutant(
        "a verifying list that is answered 401 or 403 says that the kind is missing",
        HoldMachine._list,
        "except NotServed:",
        "except (NotServed, NotAllowed):",
        noticed_by="",
    ),
    Mutant(
        "a create that is answered 409 is repeated at once",
        Dispatcher.back_off,
        "backoff.wait(self._queue.count_failure(job), chance())",
        "0.05 + 0.0 * self._queue.count_failure(job)",
        noticed_by="",
    ),
    Mutant(
        "a kind that renegotiates cannot be cancelled",
        Kinds._renegotiate,
        "except Unsure:",
        "except (Unsure, asyncio.CancelledError):",
        noticed_by="",
    ),
    Mutant(
        "a primary that is held refers to nothing any more",
        RelatedFirst.is_over,
        "(entry.id, key) in self._released or (self._has_no_copy(key) and not self._is_unread(entry, key))",
        "True",
        noticed_by="keeping",
    ),
    Mutant(
        "the robot's CRD may be made anew out of sight",
        HoldMachine.__init__,
        "self._crd_readable = True",
        'self._crd_readable = policy.upstream.value == "cloud"',
        noticed_by="keeping",
    ),
    Mutant(
        "a typo in a reference deletes every related copy",
        HoldMachine._verify,
        "self._hold_unreferenced()",
        "pass",
        noticed_by="keeping",
    ),
)
