"""Deliberate defects in what S6 and S7 promise: the store, and the time without a link; noticed by tests named so."""

from crsyncer.core.pair import decide_delivery
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.kinds.kind_entry import KindEntry
from crsyncer.engine.pairs.outbox import Outbox
from crsyncer.engine.pairs.writer import Writer
from crsyncer.runtime.connection import Connection
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("what waits for a kind that is not synced is not shown", KindEntry.read_pending,
           "(await store.load(self.policy.resource, only_outbox=True)).pending", "{}",
           noticed_by="S6_3_a_status_that_waits_is_shown_also_while_its_kind_is_not_synced"),
    Mutant("what waited in a store is the newest there is", Outbox.__init__,
           "dict.fromkeys(cache.pending, Proof.UNCHECKED)", "{}",
           noticed_by="S4_1_an_older_store_without_cursors_sends_no_older_status"),
    Mutant("a status whose copy is gone goes over whatever upstream has", decide_delivery.decide_delivery,
           "proof is Proof.MISSING and known and", "False and",
           noticed_by="S4_1_an_older_store_without_cursors_sends_no_older_status"),
    Mutant("a row of the outbox is as old as its last value", Outbox.take,
           "since=merged.since if merged else self._clock()", "since=self._clock()",
           noticed_by="S6_3_the_outbox_keeps_one_row_an_object_and_its_first_dirty_time"),
    Mutant("a live change waits for the disk", Writer._request,
           "self._still_planned(write.key, write.action)",
           "await self._store.durable(); self._still_planned(write.key, write.action)",
           noticed_by="S6_1_a_live_change_does_not_wait_for_a_disk_that_syncs_slowly"),
    Mutant("every status is final", Outbox.priority,
           "row.merged <= _PERIODIC_AFTER", "True",
           noticed_by="S7_2_final_statuses_go_before_periodic_ones_the_newest_of_each_once"),
    Mutant("when a side last answered is not written down", Connection._save_last_ok,
           'self.store.put_meta(f"last-ok:{self.name}", self.last_ok)', "pass",
           noticed_by="S7_1_an_agent_that_starts_offline_knows_when_the_cloud_last_answered"),
    Mutant("whether a copy out of reach may go is asked when it is back", Kind._changed,
           "if gone and side is self.policy.upstream and not self._downstream.up.is_set():", "if False:",
           noticed_by="S7_1_a_recorded_deletion_is_carried_out_although_the_cloud_has_left_since"),
)
