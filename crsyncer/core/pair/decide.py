"""The decision: two observations and the record of the pair, into a plan. Both directions are one table."""

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import ANY_STATUS, Found, Freshness, Gap, Observation, Pending, Proof, Record, Side, View
from crsyncer.core.pair.actions import (
    NAME_TAKEN,
    NOTHING,
    ODD_STATUS,
    REVERTS,
    SECRET_UNKNOWN,
    Agreed,
    ContentAction,
    CountAsSent,
    Create,
    Delete,
    Hold,
    Plan,
    Seed,
    SendStatus,
    StatusAction,
    Until,
    Update,
    Wait,
    Why,
    mutation_failed,
)
from crsyncer.core.pair.own_status import receiver


def decide(
    upstream: Observation,
    downstream: Observation,
    policy: KindPolicy,
    record: Record,
    *,
    pending: Pending | None = None,
    proof: Proof = Proof.SHOWN,
    reachable: bool = True,
    behind: bool = False,
    rejected: str = "",
    audit: bool = False,
    kept: Hold | Wait | None = None,
    contested: bool = False,
    unknown: bool = False,
    lacks_status: bool = False,
    after: Wait | None = None,
    restless: bool = False,
) -> Plan:
    """What must be done so that the pair agrees (S3 to S5). Pure; an agreed pair gives an empty plan.

    "Its object" is the upstream object with the uid that the copy is stamped with. When upstream shows another uid and
    is not confirmed on this connection, its object is unseen: the copy may be of the newer one (S5.4).

    upstream     downstream        plan
    any          unseen            nothing
    not seen     absent            nothing
    terminating  absent            nothing
    seen         absent            create; after the last status of the former copy, and    S3.2, S5.2
                                   with blocking after our finalizer is on the object       C6.1
    seen, its    absent, seen, or  hold: no copy is made, changed or replaced for it        C4.4
     steps fail   of another
    seen, its     absent, or not    hold: there is nothing to write to it yet                C5.6
     content is    in line
     not known
    seen         not ours          hold: the name is taken                                  S5.3
    seen         an unlike Secret, hold: the name is taken, unless it is a copy             C2.5
                  or controlled
    another      seen, with marks  hold: the name is taken                                  C2.2
                  alone
    another      seen, to be kept  content: it is upstream's object now                     C5.4
    its object:
    unseen       seen              content: nothing, or wait for a list                     S5, S5.4
                                   status: queued for the uid of the stamp                  S7.1
    absent       seen              delete the copy, unless it is not ours to delete         S5, S5.3, S5.4
    terminating  seen              delete the copy in this version; its status still        S5
                                   goes up
                                   both: after the related copies that only it needs        C6.3
    seen         terminating       wait                                                     S5.1, S5.2
    seen         seen              content, then status, each only where it differs         S3, S4
                                   a related object's status: the original's goes down      C5.5

    `pending` is the pair's row in the outbox, `proof` what shows that it is the newest status. The row may be on its
    way: what upstream shows meanwhile is no agreement, and a status that differs from the row has to follow it (S4.1).
    `reachable`: upstream is connected. `behind`: upstream has acknowledged a status that it does not show yet.
    `rejected` is the upstream content that downstream rejects for now (S3.6). `kept` is what keeps a copy from
    being deleted (S5.5), `after` what its deletion waits for then. `contested`: somebody keeps changing the copy, so
    that it may not be reverted yet (S3.5). `unknown`: upstream's content is known by its digest only.
    `lacks_status`: downstream answers that it has no `/status`. `restless`: the copy changes so often that it could not
    be deleted in the version that was seen. With `audit` (or with a restored side) upstream's
    status is compared too, not only downstream's changes (S4.8).
    """
    up, copy = upstream.found, downstream.found
    if not isinstance(copy, View):
        if not isinstance(up, View) or up.terminating or copy is Gap.UNSEEN:
            return NOTHING
        if up.failure:
            return Plan(mutation_failed(up.failure))
        if policy.blocking and not up.finalized:
            return Plan(Wait(Until.FINALIZED))
        before = _before_create(upstream, pending=pending, proof=proof, reachable=reachable, behind=behind)
        created = SECRET_UNKNOWN if unknown else Create()
        return Plan(Wait(Until.RETRY) if rejected == up.content else before or created)
    own = up if copy.stamp is None else upstream.of(copy.stamp.upstream_uid)
    if own is Gap.ABSENT and policy.keep_copies and isinstance(up, View):
        own = up  # what is never deleted is never replaced: it becomes the copy of the object that is there now
    status = None
    if not _has_row_of_another(upstream, copy, pending):
        status = _status(own, copy, policy, record, pending=pending, audit=audit, behind=behind)
    if policy.downstream is Side.CLOUD and isinstance(up, View) and not up.terminating and not is_signed(copy, policy):
        return Plan(NAME_TAKEN, status)
    match own:
        case Gap.UNSEEN:
            deleted = _delete(own, copy, policy, record, why=Why.GONE, kept=kept, restless=restless)
            has_status = pending is not None or status is not None
            is_of_another = isinstance(up, View) and (has_status or not copy.terminating)
            return Plan(_wait_for_list(upstream) if deleted is not None or is_of_another else None, status)
        case Gap.ABSENT:
            why = Why.GONE if not isinstance(up, View) else Why.TERMINATING if up.terminating else Why.REPLACED
            if isinstance(up, View) and up.failure and not up.terminating:
                return Plan(mutation_failed(up.failure), status)
            if why is Why.REPLACED and _is_forged(copy, policy):
                return Plan(NAME_TAKEN, status)
            return Plan(_delete(own, copy, policy, record, why=why, kept=kept or after, restless=restless), status)
        case View(terminating=True):
            why = Why.TERMINATING
            return Plan(_delete(own, copy, policy, record, why=why, kept=kept or after, restless=restless), status)
    if copy.terminating:
        return Plan(None, status)
    if own.failure:
        return Plan(mutation_failed(own.failure), status)
    if is_not_adopted(own, copy, policy):
        return Plan(NAME_TAKEN, status)
    content: ContentAction | None = _content(own, copy, policy, record, pending=pending, audit=audit)
    if isinstance(content, Update) and rejected == own.content:
        content = Wait(Until.RETRY)
    elif _may_undo_status(content, upstream, own, copy, record):
        content = _wait_for_list(upstream)
    elif isinstance(content, Seed) and (content.follows or lacks_status):
        content = None if lacks_status else Wait(Until.RETRY) if rejected and rejected == own.status else content
    elif isinstance(content, Update) and is_ahead(own, copy, record):
        content = _wait_for_list(upstream) if upstream.freshness is not Freshness.CONFIRMED else content
    elif isinstance(content, Update) and content.why in REVERTS and contested:
        content = Wait(Until.REVERTIBLE)
    elif isinstance(content, Seed) and behind and reachable:
        content = Wait(Until.STATUS_SHOWN)
    elif isinstance(content, Seed) and reachable and upstream.freshness is not Freshness.CONFIRMED:
        content = _wait_for_list(upstream)  # a newer status may be on its way
    if unknown and isinstance(content, Update | Seed):
        content = SECRET_UNKNOWN
    return Plan(content, status)


def _has_row_of_another(upstream: Observation, copy: View, pending: Pending | None) -> bool:
    """Whether the outbox has a status for another upstream object than the copy's, maybe the newer one (S5.4)."""
    if pending is None or copy.stamp is None or pending.upstream_uid == copy.stamp.upstream_uid:
        return False
    if upstream.of(pending.upstream_uid) is Gap.ABSENT:
        return False
    return upstream.freshness is Freshness.RESUMED or isinstance(upstream.of(copy.stamp.upstream_uid), View)


def _wait_for_list(upstream: Observation) -> Wait | None:
    """Wait for a list, where the watch has been resumed; without a connection there is nothing to ask for."""
    return Wait(Until.UPSTREAM_LISTED) if upstream.freshness is Freshness.RESUMED else None


def _before_create(
    upstream: Observation, *, pending: Pending | None, proof: Proof, reachable: bool, behind: bool
) -> Wait | None:
    """What has to happen before a copy is created: the former copy's last status may have to go up first (S5.2)."""
    if pending is not None:
        if proof is Proof.UNCHECKED:
            return Wait(Until.COPIES_LISTED)
        if upstream.of(pending.upstream_uid) is Gap.UNSEEN:
            return Wait(Until.UPSTREAM_LISTED)
        first = not pending.attempts or proof is Proof.MISSING
        if reachable and first and not pending.dead:
            return Wait(Until.STATUS_SENT)
    return Wait(Until.STATUS_SHOWN) if behind and reachable else None


def _content(
    upstream: View, downstream: View, policy: KindPolicy, record: Record, *, pending: Pending | None, audit: bool
) -> Update | Seed | None:
    """The write that brings a copy, or its marks, in line with its object, if any is needed."""
    stamp = downstream.stamp
    put = (downstream.uid, downstream.resource_version)
    known = _known(record, upstream.uid)
    applied = known.applied == upstream.content
    if stamp is None or stamp.digest != upstream.content or stamp.upstream_uid != upstream.uid:
        # Somebody changed the stamp that we wrote: that is drift as well, and may repeat without end.
        fresh = Why.ADOPT if stamp is None else Why.CHANGED
        return Update(*put, Why.DRIFT if applied else fresh)
    drifted = downstream.content not in (upstream.content, known.admitted if applied else upstream.content)
    if drifted and not policy.keep_drift and not policy.shape.keep_local:
        return Update(*put, Why.DRIFT)
    if downstream.unmarked:
        return Update(*put, Why.MARKS)
    if policy.related:
        follows = policy.copies_status and _is_to_follow(upstream, downstream, known, audit=audit)
        return Seed(*put, follows=True) if follows else None
    return Seed(*put) if _lacks_status(upstream, downstream, policy, known, pending=pending) else None


def _may_undo_status(
    content: ContentAction | None, upstream: Observation, own: View, copy: View, record: Record
) -> bool:
    """Whether a status that follows an original's (C5.5) may be older than the one that the copy has.

    A crash can lose that a newer one was written already (S6.1): a list of upstream shows it.
    """
    if not isinstance(content, Seed) or not content.follows or upstream.freshness is Freshness.CONFIRMED:
        return False
    known = _known(record, own.uid)
    is_new = known.seed and not copy.status
    return copy.status != known.acknowledged and not is_new


def _is_to_follow(upstream: View, downstream: View, known: Record, *, audit: bool) -> bool:
    """Whether the status of a related object has to be written to its copy (C5.5).

    It has changed since it was written last, or the answer to that is missing, or the audit finds that the copy's has.
    As upwards, a status that never was replaces none, and what downstream's schema made of ours is not fought.
    """
    if upstream.odd_status or upstream.status == downstream.status:
        return False
    if known.seeding or upstream.status != known.upstream_status:
        return True
    return bool(upstream.status) and (known.seed or (audit and downstream.status != known.acknowledged))


def _lacks_status(
    upstream: View, downstream: View, policy: KindPolicy, known: Record, *, pending: Pending | None
) -> bool:
    """Whether a copy that we made still lacks upstream's status (S4.4). Without an endpoint it came with the copy.

    A status that waits for upstream counts as upstream's: a copy made again without the cloud goes on where it was.
    """
    if not known.seed or downstream.has_status:
        return False
    upstream, _ = receiver(upstream, known)
    if upstream.odd_status:
        return False
    waiting = pending is not None and pending.upstream_uid == upstream.uid and bool(pending.digest)
    return waiting or (upstream.has_status and bool(upstream.status or policy.subtree is not None))


def is_ahead(upstream: View, downstream: View, record: Record) -> bool:
    """Whether the copy's stamp names content that upstream does not show and that is not recorded as written.

    A crash can lose the record of a newer version that was written already (S6.1): a list of upstream shows it.
    """
    stamp = downstream.stamp
    if stamp is None or not stamp.digest:
        return False
    return stamp.digest not in (upstream.content, _known(record, upstream.uid).applied)


def _delete(
    own: Found,
    downstream: View,
    policy: KindPolicy,
    record: Record,
    *,
    why: Why,
    kept: Hold | Wait | None,
    restless: bool,
) -> ContentAction | None:
    """Delete a copy, unless it is `kept`, is being deleted already or is not ours to delete.

    Its object's annotation overrides the policy's `propagation`, also once that object is gone (C6.5). While its object
    can still take a status, the copy is deleted in the version whose status is recorded: a status that was written
    meanwhile would otherwise be known from one event only, and lost with it.
    """
    if downstream.terminating or not may_delete(downstream, policy):
        return None
    if kept is not None:
        return kept
    stamp = downstream.stamp
    if stamp is None:
        return Delete(downstream.uid, why, downstream.resource_version, policy.propagation)
    own_propagation = own.propagation if isinstance(own, View) else _known(record, stamp.upstream_uid).propagation
    exact = isinstance(own, View) and not policy.related and not restless
    version = downstream.resource_version if exact else ""
    return Delete(downstream.uid, why, version, own_propagation or policy.propagation)


def may_delete(downstream: View, policy: KindPolicy) -> bool:
    """Whether an object that upstream does not have is ours to delete (S5.3)."""
    if policy.keep_copies or _is_forged(downstream, policy):
        return False
    if policy.downstream is Side.CLOUD:
        return is_signed(downstream, policy)
    return downstream.stamp is not None or not policy.keep_orphans


def is_not_adopted(own: View, downstream: View, policy: KindPolicy) -> bool:
    """Whether an object with the name of a copy stays as it is: it has a controller, or is an unlike Secret (C2.5)."""
    unlike = downstream.stamp is None and downstream.content != own.content
    return downstream.controlled or (policy.sensitive and unlike)


def has_no_copy(downstream: Observation, policy: KindPolicy) -> bool:
    """Whether there is no copy for certain. What has its name and is not ours to delete is none."""
    found = downstream.found
    return found is Gap.ABSENT or (isinstance(found, View) and not may_delete(found, policy))


def _is_forged(downstream: View, policy: KindPolicy) -> bool:
    """Whether marks alone say that an object is a copy: with these the agent writes what it applies (C2.2)."""
    return policy.shape.marks is not None and downstream.stamp is not None and downstream.stamp.bare


def is_signed(downstream: View, policy: KindPolicy) -> bool:
    """Whether a copy carries this robot's name: in the cloud only those are ever changed (S5.3)."""
    return downstream.stamp is not None and downstream.stamp.robot == policy.robot


def _known(record: Record, upstream_uid: str) -> Record:
    """The record, if it is of this very upstream object; else an empty one."""
    return record if record.upstream_uid == upstream_uid else Record()


def _status(
    own: Found,
    downstream: View,
    policy: KindPolicy,
    record: Record,
    *,
    pending: Pending | None,
    audit: bool,
    behind: bool,
) -> StatusAction | None:
    """The status to queue for upstream (S4). `own` is the object that the copy is stamped with; it may be unseen."""
    stamp = downstream.stamp
    if own is Gap.ABSENT or (policy.downstream is Side.CLOUD and not is_signed(downstream, policy)) or policy.sensitive:
        return None
    upstream = own if isinstance(own, View) else None
    if upstream is not None:
        upstream, record = receiver(upstream, record)
    if stamp is None:
        return None if upstream is None else _adopted(upstream, downstream, policy, record)
    if policy.related:
        return _following(upstream, downstream, record) if policy.copies_status else None
    if downstream.odd_status:
        return ODD_STATUS
    known = _known(record, stamp.upstream_uid)
    if downstream.failure:
        hold, taken = mutation_failed(downstream.failure), known.acknowledged
        if pending is not None and pending.upstream_uid == stamp.upstream_uid:
            taken = pending.digest
        return hold if taken == downstream.status else SendStatus(stamp.upstream_uid, downstream.status, hold)
    send = SendStatus(stamp.upstream_uid, downstream.status)
    if not downstream.status and (
        # Only a status that was there was removed (S4.3); in subtree mode, only while the rest is still there (S4.5).
        not known.had_status or known.seed or (policy.subtree is not None and not downstream.has_status)
    ):
        return None
    if pending is not None and pending.upstream_uid == stamp.upstream_uid:
        return None if pending.digest == downstream.status else send
    agreed = Agreed(stamp.upstream_uid, downstream.status)
    if not downstream.status:
        return agreed if upstream is not None and not upstream.status else send
    verbatim = policy.subtree is not None or not policy.map_generation
    if verbatim and upstream is not None and upstream.status == downstream.status:
        return None if known.acknowledged == downstream.status else agreed
    fresh = known.acknowledged != downstream.status
    lost = audit and upstream is not None and upstream.status != known.upstream_status
    late = upstream is not None and not behind and _has_landed_late(upstream, known)
    return send if fresh or lost or late else None


def _has_landed_late(upstream: View, known: Record) -> bool:
    """Whether upstream may show a status whose write was not answered: an older one than it has had since."""
    is_other = ANY_STATUS in known.unanswered and upstream.status != known.upstream_status
    return upstream.status in known.unanswered or is_other


def _adopted(upstream: View, downstream: View, policy: KindPolicy, record: Record) -> CountAsSent | None:
    """What becomes of the status of a copy without a stamp.

    It is upstream's once the copy is stamped, unless the record shows that it was written for a former object.
    """
    if policy.related or downstream.odd_status or not downstream.status or record.upstream_uid in ("", upstream.uid):
        return None
    return CountAsSent(upstream.uid, downstream.status, upstream.status)


def _following(upstream: View | None, downstream: View, record: Record) -> Agreed | None:
    """What has to be remembered of a copy that has its original's status (C5.5)."""
    if upstream is None or upstream.odd_status or upstream.status != downstream.status:
        return None
    known = _known(record, upstream.uid)
    same = not known.seeding and known.upstream_status == known.acknowledged == upstream.status
    return None if same or known.seeding == downstream.resource_version else Agreed(upstream.uid, upstream.status)
