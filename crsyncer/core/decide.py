"""The decision: two sightings and what is remembered between them, into a plan; it knows no clusters, only owners."""

from crsyncer.core.actions import (
    NOTHING,
    Agreed,
    ContentAction,
    Create,
    Delete,
    Hold,
    HoldReason,
    Plan,
    Seed,
    SendStatus,
    StatusAction,
    Update,
    Why,
)
from crsyncer.core.model import Gap, Observation, Pending, Record, Side, View
from crsyncer.core.policy import Policy

_NAME_TAKEN = Hold(
    HoldReason.NAME_TAKEN,
    "another object has this name, and it is not a copy that this robot made",
    "rename or delete one of the two objects",
)
_ODD_STATUS = Hold(
    HoldReason.ODD_STATUS,
    "the status is not an object",
    "mend the controller that writes it; upstream's status stays as it is",
)


def decide(
    upstream: Observation,
    downstream: Observation,
    policy: Policy,
    record: Record,
    *,
    pending: Pending | None = None,
    verify: bool = False,
) -> Plan:
    """What must be done so that the pair agrees (S3 to S5). Pure; an agreed pair gives an empty plan.

    upstream     downstream        plan
    unseen       any               content: nothing, we do not know                   S5
                                   status: queued for the uid the copy is stamped with S7.1
    absent       absent, unseen    nothing
    absent       seen              delete the copy, unless it is not ours to delete   S5, S5.3
    terminating  absent, unseen    nothing
    terminating  seen              delete the copy; its status still goes up          S5
    seen         unseen            nothing
    seen         absent            create                                             S3.2
    seen         terminating       wait                                               S5.1, S5.2
    seen         not ours          hold: the name is taken                            S5.3
    seen         of another uid    delete the copy; it comes back as a new object     S5.4
    seen         seen              content, then status, each only where it differs   S3, S4

    With `verify` (audit, restored side) upstream's status is compared too, not only downstream's changes (S4.8).
    `pending` is the pair's row in the outbox. It may be on its way: what upstream shows meanwhile is no agreement, and
    a status that differs from the row has to follow it (S4.1).
    """
    if not isinstance(downstream, View):
        lone = isinstance(upstream, View) and not upstream.terminating and downstream is Gap.ABSENT
        return Plan(content=Create()) if lone else NOTHING
    if upstream is Gap.UNSEEN:
        return Plan(status=_status(None, downstream, policy, record, pending=pending, verify=verify))
    if not isinstance(upstream, View):
        return Plan(content=_delete(downstream, policy, Why.GONE))
    status = _status(upstream, downstream, policy, record, pending=pending, verify=verify)
    if upstream.terminating:
        return Plan(_delete(downstream, policy, Why.TERMINATING), status)
    return Plan(_content(upstream, downstream, policy, record, pending=pending), status)


def _content(
    upstream: View, downstream: View, policy: Policy, record: Record, *, pending: Pending | None
) -> ContentAction | None:
    stamp = downstream.stamp
    if policy.downstream is Side.CLOUD and not _signed(downstream, policy):
        return _NAME_TAKEN
    if stamp is not None and stamp.upstream_uid != upstream.uid:
        return _delete(downstream, policy, Why.REPLACED)
    if downstream.terminating:
        return None
    put = (downstream.uid, downstream.resource_version)
    known = _known(record, upstream.uid)
    applied = known.applied == upstream.content
    if stamp is None or stamp.digest != upstream.content:
        # A stamp that is not the one we wrote was changed by somebody: drift as well, and it may become a fight.
        fresh = Why.ADOPT if stamp is None else Why.CHANGED
        return Update(*put, Why.DRIFT if applied else fresh)
    drifted = downstream.content not in (upstream.content, known.admitted if applied else upstream.content)
    if drifted and not policy.keep_drift:
        return Update(*put, Why.DRIFT)
    return Seed(*put) if _owed_status(upstream, downstream, policy, known, pending=pending) else None


def _owed_status(upstream: View, downstream: View, policy: Policy, known: Record, *, pending: Pending | None) -> bool:
    """Whether a copy that we made is still owed upstream's status (S4.4). Without an endpoint it came with the copy.

    What waits for upstream is its status already: a copy that is made again without the cloud goes on where it was.
    """
    if not known.seed or downstream.has_status or not policy.status_endpoint[policy.downstream]:
        return False
    if upstream.odd_status:
        return False
    waiting = pending is not None and pending.upstream_uid == upstream.uid and bool(pending.digest)
    return waiting or (upstream.has_status and bool(upstream.status or policy.subtree is not None))


def is_ahead(upstream: View, downstream: View, record: Record) -> bool:
    """Whether a copy bears content of upstream that is neither what we know nor what we remember having written.

    A crash can cost the memory of a newer version that was written already (S6.1): only upstream can tell.
    """
    stamp = downstream.stamp
    if stamp is None or not stamp.digest or stamp.upstream_uid != upstream.uid:
        return False
    return stamp.digest not in (upstream.content, _known(record, upstream.uid).applied)


def _delete(downstream: View, policy: Policy, why: Why) -> ContentAction | None:
    """Delete a copy, unless it is being deleted already or not ours to delete."""
    if downstream.terminating or not may_delete(downstream, policy):
        return None
    return Delete(downstream.uid, why, downstream.resource_version if downstream.stamp is None else "")


def may_delete(downstream: View, policy: Policy) -> bool:
    """Whether an object that upstream does not have is ours to delete (S5.3)."""
    if policy.downstream is Side.CLOUD:
        return _signed(downstream, policy)
    return downstream.stamp is not None or not policy.keep_orphans


def _signed(downstream: View, policy: Policy) -> bool:
    """Whether a copy in the cloud carries this robot's name: only those are ever changed (S5.3)."""
    return downstream.stamp is not None and downstream.stamp.robot == policy.robot


def _known(record: Record, upstream_uid: str) -> Record:
    """What is remembered of this very upstream object."""
    return record if record.upstream_uid == upstream_uid else Record()


def _status(
    upstream: View | None,
    downstream: View,
    policy: Policy,
    record: Record,
    *,
    pending: Pending | None,
    verify: bool,
) -> StatusAction | None:
    """What upstream must be told (S4). `upstream` is None while it has not been seen since the store was made."""
    stamp = downstream.stamp
    if stamp is None or (policy.downstream is Side.CLOUD and not _signed(downstream, policy)):
        return None
    if upstream is not None and stamp.upstream_uid != upstream.uid:
        return None
    if downstream.odd_status:
        return _ODD_STATUS
    known = _known(record, stamp.upstream_uid)
    send = SendStatus(stamp.upstream_uid, downstream.status)
    if not downstream.status and (
        # Gone is only what was there (S4.3); in subtree mode, only while the rest of the status still is (S4.5).
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
        return None if known.sent == downstream.status else agreed
    fresh = known.sent != downstream.status
    lost = verify and upstream is not None and upstream.status != known.accepted
    return send if fresh or lost else None
