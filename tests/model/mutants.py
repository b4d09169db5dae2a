"""Deliberate defects, each a guard of the agent taken away. A machine that does not notice them proves nothing."""

from crsyncer.core import answers, backoff, decide, decide_delivery, kind_served, object_calls, project
from crsyncer.core.deletion_holds import DeletionHolds
from crsyncer.core.event_ring import EventRing
from crsyncer.core.hold_machine import HoldMachine
from crsyncer.core.model import Observation
from crsyncer.core.queue import WorkQueue
from crsyncer.engine.cache import Cache
from crsyncer.engine.event_publisher import EventPublisher
from crsyncer.engine.kind import Kind
from crsyncer.engine.outbox import Outbox
from crsyncer.engine.recorder import Recorder
from crsyncer.engine.writer import Writer
from crsyncer.runtime import paged_list
from crsyncer.runtime.collection_state import CollectionState
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.dispatcher import Dispatcher
from crsyncer.runtime.listwatch import ListWatch
from crsyncer.runtime.paged_list import PagedList
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "an event stays in memory",
        Recorder.record,
        "self._save(slot)",
        "pass",
        noticed_by="events_are_known_after_kill_9",
    ),
    Mutant(
        "a robot that takes no Events is asked all the same",
        EventPublisher._publish,
        "self._silent_until = loop.time() + _REFUSED_SECONDS",
        "pass",
        noticed_by="after_a_refusal",
    ),
    Mutant(
        "an Event that has expired stays away",
        EventPublisher._publish,
        "answer is not Answer.CONFLICT",
        "answer is not None",
        noticed_by="an_event_that_has_expired",
    ),
    Mutant(
        "a storm is stored whole",
        EventRing.note,
        "elif now >= noted + interval:",
        "elif True:",
        noticed_by="a_storm_is_one_event",
    ),
    Mutant(
        "a restart trusts the cursor of a kind that is missing",
        HoldMachine.__init__,
        "self._past_absence = holds.kind_missing",
        "self._past_absence = False",
        noticed_by="S5_5_a_kind_made_anew_costs",
    ),
    Mutant(
        "a delete without the uid",
        object_calls.delete,
        '{"uid": uid, "resourceVersion": resource_version}',
        '{"resourceVersion": resource_version}',
        noticed_by="S4_1_a_status",
    ),
    Mutant(
        "a status without the uid",
        object_calls.patch_status,
        '[{"op": "test", "path": "/metadata/uid", "value": uid}]',
        "[]",
        noticed_by="S4_1_a_status",
    ),
    Mutant(
        "an older event overwrites a newer one",
        Cache.saw,
        "if known is not None and newer(known.resource_version, view.resource_version):",
        "if False:",
        noticed_by="S4_4_a",
    ),
    Mutant(
        "an ack that comes late removes a newer status",
        Outbox._acknowledge,
        "now.seq == row.seq",
        "True",
        noticed_by="S6_3",
    ),
    Mutant(
        "a deletion leaves no tombstone",
        Cache.lost,
        "self.add_tombstone(key, Tombstone(view.uid, self._clock()))",
        "pass",
        noticed_by="S7_1_a",
    ),
    Mutant(
        "a watch goes on without a probe",
        ListWatch._round,
        "if version is not None and (self._may_be_restored or self._cut_short) and not is_checked:",
        "if False:",
        noticed_by="S8_3_a_restore",
    ),
    Mutant(
        "what holds every deletion is ignored",
        DeletionHolds.held_every,
        "return next(",
        "return None and next(",
        noticed_by="S5_5_a_human",
    ),
    Mutant(
        "a write is made although something has changed since it was decided",
        Writer._request,
        "self._confirm(write.key, write.action)",
        "pass",
        noticed_by="S5_5_after_a_hold",
    ),
    Mutant(
        "a status is sent to whoever has the name now",
        decide_delivery.decide_delivery,
        "own = upstream.of(row.upstream_uid)",
        "own = upstream.found",
        noticed_by="S4_1_a",
    ),
    Mutant(
        "a copy without a status wipes upstream's",
        decide._status,
        "not known.had_status or known.seed or ",
        "",
        noticed_by="S4_3_a",
    ),
    Mutant(
        "orphans in the cloud are deleted, whoever's they are",
        decide.may_delete,
        "return _signed(downstream, policy)",
        "return True",
        noticed_by="S5_3",
    ),
    Mutant(
        "a kind that is gone does not matter",
        HoldMachine._kind_gone,
        "self.holds.hold_kind(self._unix, by_name=True)",
        "pass",
        noticed_by="S5_5_a_kind_that_is_deleted",
    ),
    Mutant(
        "a CRD that is being deleted matters only to a deletion",
        HoldMachine._find_crd,
        "self._kind_gone(certain=True)",
        "pass",
        noticed_by="S5_5_a_kind_whose_deletion_begins",
    ),
    Mutant(
        "a negotiation does not see that a kind is being deleted",
        HoldMachine.discovery_shown,
        "self._kind_gone(certain=True)",
        "pass",
        noticed_by="S5_5_a_kind_whose_deletion_begins",
    ),
    Mutant(
        "a CRD is as good as another",
        kind_served.served_by_crd,
        'Served.YES if uid in ("", metadata["uid"]) else Served.OTHER',
        "Served.YES",
        noticed_by="S5_5_a_kind_that_was_made_anew_within",
    ),
    Mutant(
        "statuses are sent while those of an outage are still arriving",
        Kind._freshness_changed,
        "self._context.dispatchers[side.other]",
        "self._context.dispatchers[self.policy.downstream]",
        noticed_by="S4_1_statuses_that_are_replayed",
    ),
    Mutant(
        "what a kind came back without is not asked",
        HoldMachine._crd_replaced,
        "self.holds.hold_kind(self._unix, by_name=False)",
        "pass",
        noticed_by="S5_5_a_kind_that_was_made_anew_with_half",
    ),
    Mutant(
        "another cluster's kind is taken for one that was made anew",
        HoldMachine._read_crd,
        "yield from self._get(Prove())",
        "pass",
        noticed_by="S8_3_a_cloud",
    ),
    Mutant(
        "that a kind is another is never accepted",
        HoldMachine._read_crd,
        'self.crd = self._cluster, ""',
        "pass",
        noticed_by="S5_5_a_kind_that_was_made_anew_with_all",
    ),
    Mutant(
        "a kind that is back as the same one counts as another",
        HoldMachine._find_return,
        "return False",
        "pass",
        noticed_by="S5_5_a_deletion_behind",
    ),
    Mutant(
        "another CRD is taken for the one that a gateway had hidden",
        HoldMachine._read_crd,
        "self._crd_replaced()",
        "pass",
        noticed_by="S5_5_another_crd",
    ),
    Mutant(
        "a verdict is acted on before it is on disk",
        Writer._delete,
        "await self._store.durable()",
        "pass",
        noticed_by="S7_1_a_verified",
    ),
    Mutant(
        "a list that is refused proves that the kind is gone",
        HoldMachine._list,
        "except NotServed:",
        "except (NotServed, Unsure):",
        noticed_by="S5_5_a_verification",
    ),
    Mutant("an error is taken as done", answers.judge, "return Unsure(message)", "return None", noticed_by="S10_what"),
    Mutant(
        "a lost reply is taken as done",
        Connection.request,
        "raise\n",
        'return Reply(200, {"metadata": {"uid": "a lie"}})\n',
        noticed_by="S10_a_create",
    ),
    Mutant(
        "finalizers of a copy are dropped",
        project.compose_copy,
        'if k != "managedFields"',
        'if k not in ("managedFields", "finalizers")',
        noticed_by="S3_3",
    ),
    Mutant(
        "the copy of an old object is used for its successor",
        decide.decide,
        "own = up if copy.stamp is None else upstream.of(copy.stamp.upstream_uid)",
        "own = up",
        noticed_by="S4_1",
    ),
    Mutant(
        "an unconfirmed object counts as the newer one",
        Observation.of,
        "proven = self.freshness is Freshness.CONFIRMED or",
        "proven = True or",
        noticed_by="S5_4_a_copy_of_a_newer",
    ),
    Mutant(
        "content that may be newer than the store is put back",
        decide._is_ahead,
        "return stamp.digest not in",
        "return False and stamp.digest not in",
        noticed_by="S6_1_content",
    ),
    Mutant(
        "a restored cluster holds nothing back",
        Kind._rewound,
        "machine.holds.hold_every(RESTORED, self._context.clock())",
        "pass",
        noticed_by="S8_3_what",
    ),
    Mutant(
        "the cursor runs ahead of its data",
        ListWatch._watch,
        "self._state.watch_shows(event_type, raw)\n                        self._state.set_cursor(version)",
        "self._state.set_cursor(version)\n                        self._state.watch_shows(event_type, raw)",
        noticed_by="S6_1",
    ),
    Mutant(
        "what changes while it is worked on is forgotten",
        WorkQueue.done,
        "if key in self._dirty:",
        "if False:",
        noticed_by="S3_2",
    ),
    Mutant("what has failed is not tried again", Dispatcher._at, "self._queue.add_at(", "str(", noticed_by="S10_what"),
    Mutant(
        "a server is obeyed for as long as it asks",
        backoff.capped,
        "min(_LONGEST_RETRY_AFTER, default if retry_after is None else retry_after)",
        "default if retry_after is None else retry_after",
        noticed_by="S9_1_a_portal",
    ),
    Mutant(
        "a list whose continue token has expired begins anew",
        paged_list._offered,
        'str((reply.body.get("metadata") or {}).get("continue") or "")',
        '""',
        noticed_by="S9_4_a_first_list",
    ),
    Mutant(
        "a list of two moments proves absence",
        PagedList.read,
        "resume, consistent = token, False",
        "resume, consistent = token, True",
        noticed_by="S9_4_S5",
    ),
    Mutant(
        "a list that goes on after an outage proves absence",
        PagedList.read,
        "rest.token, not rest.token",
        "rest.token, True",
        noticed_by="S9_4_S8_3",
    ),
    Mutant(
        "a list that loses its connection begins anew",
        PagedList.deliver,
        "if not self.goes_on:",
        "if True:",
        noticed_by="S9_4_a_first_list_that_loses",
    ),
    Mutant(
        "a page that arrives is no sign of life",
        Connection.request,
        "progress=self.note_answer",
        "progress=None",
        noticed_by="S9_4_the_side",
    ),
    Mutant(
        "a command ends no wait",
        Connection.retry_now,
        "self.waits.end()",
        "pass",
        noticed_by="S9_1_a_command_ends_the_wait_of_a_status",
    ),
    Mutant("410 is not understood", answers.read, "case 410:", "case 999:", noticed_by="S9_2_a_cursor"),
    Mutant(
        "a vanished status takes the subtree along",
        decide._status,
        " or (policy.subtree is not None and not downstream.has_status)",
        "",
        noticed_by="S4_5",
    ),
    Mutant(
        "the subtree's neighbours are overwritten",
        object_calls.patch_status,
        "elif value is not None and upstream is not None and not upstream.has_status:",
        "elif value is not None and upstream is not None:",
        noticed_by="S4_5",
    ),
    Mutant(
        "where a list ended is not remembered with it",
        CollectionState.set_cursor,
        "else self._cursor(resource_version)",
        'else self._cursor("1")',
        noticed_by="S7_1",
    ),
    Mutant(
        "drift is left alone", decide._content, "if drifted and not policy.keep_drift:", "if False:", noticed_by="S3_5"
    ),
    Mutant(
        "what upstream is about to lose is copied",
        decide.decide,
        "if not isinstance(up, View) or up.terminating or copy is Gap.UNSEEN:",
        "if not isinstance(up, View) or copy is Gap.UNSEEN:",
        noticed_by="S5_a_terminating_upstream_that",
    ),
    Mutant(
        "a copy that is being deleted is deleted again",
        decide._delete,
        "downstream.terminating or not",
        "not",
        noticed_by="S5_1_a_copy",
    ),
    Mutant(
        "every wait is as long as the first",
        backoff.Backoff.wait,
        "self.first * 2.0 ** (min(failures, 30) + 1)",
        "self.first",
        noticed_by="S10_a_403",
    ),
    Mutant(
        "what is too large is tried for ever",
        answers.lasting,
        "TOO_LARGE in str(error)",
        "False",
        noticed_by="S10_a_request",
    ),
    Mutant(
        "a copy in the cloud is not signed",
        project.compose_copy,
        "new_annotations[ROBOT] = policy.robot",
        "pass",
        noticed_by="S5_3",
    ),
)
