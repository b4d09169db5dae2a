"""The decision about this robot's finalizer on an upstream object: put it there, leave it, or remove it (C6)."""

from dataclasses import dataclass

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import FinalizerRow, Gap, Observation, Pending, View
from crsyncer.core.pair.decide import has_no_copy


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Put the finalizer on the upstream object in this very version: servers keep duplicates (measured)."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove the finalizer from the upstream object with this uid; `overdue`: although there still is a copy."""

    uid: str
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class GraceUntil:
    """Decide again then (Unix time of upstream's server, seconds): the grace period is over."""

    time: float


@dataclass(frozen=True, slots=True)
class ForgetFinalizer:
    """Nothing is left to do about the row in the outbox."""


FinalizerAction = AddFinalizer | RemoveFinalizer | GraceUntil | ForgetFinalizer


def decide_finalizer(
    upstream: Observation,
    downstream: Observation,
    policy: KindPolicy,
    row: FinalizerRow | None,
    *,
    pending: Pending | None,
    creating: bool,
    related: bool,
    refused: bool,
    now: float,
) -> FinalizerAction | None:
    """What has to be done about the finalizer. Pure; the first line that fits counts.

    upstream's object                    what else                                  do
    any                                  removed, and the overdue copy has gone     forget the row       C6.4
    any                                  the row is of another finalizer of ours    remove that          C6.3
    seen, is not the row's               it is confirmed                            forget the row       C6.2
    not seen, has or may have it         absent, or its removal waits already       remove               C6.3 (label)
    seen, has it                         blocking has ended                         remove               C6.3
    seen, has not                        blocking has ended                         forget the row
    seen, living, has not                not refused for good                       add                  C6.1, C6.2
    seen, terminating, has not           any                                        nothing, ever        C6.1
    seen, living, has it                 any                                        nothing
    terminating, has it                  no copy nor related one, no status waits   remove               C6.3
    terminating, has it                  that was so, and is not known any more     remove               C6.3
    terminating, has it                  the grace period is over                   remove, overdue      C6.4
    terminating, has it                  any                                        wait for that

    `pending` is the status that waits for upstream: a dead letter does, too, until an operator drops it. `creating`:
    a copy is being made. `related`: there may be related copies that only it needs. `refused`: the finalizer was
    refused for good, and is not to be tried again yet. `now` is the time of upstream's server.
    """
    up = upstream.found
    copy_gone = not creating and has_no_copy(downstream, policy)
    if row is not None and row.removed:
        if copy_gone:
            return ForgetFinalizer()
        row = None
    if row is not None and row.name != policy.finalizer:
        return RemoveFinalizer(row.upstream_uid)
    if not isinstance(up, View):
        if row is not None and (up is Gap.ABSENT or row.since):
            return RemoveFinalizer(row.upstream_uid)
        return None
    if row is not None and row.upstream_uid != up.uid and upstream.of(row.upstream_uid) is Gap.ABSENT:
        return ForgetFinalizer()
    if not policy.blocking:
        if up.finalized:
            return RemoveFinalizer(up.uid)
        return ForgetFinalizer() if row is not None else None
    if not up.finalized:
        return None if up.terminating or refused else AddFinalizer(up.uid, up.resource_version)
    if not up.terminating:
        return None
    decided = row is not None and row.since > 0 and downstream.found is Gap.UNSEEN
    if ((copy_gone and not related) or decided) and (pending is None or pending.upstream_uid != up.uid):
        return RemoveFinalizer(up.uid)
    if not up.deleted_at:
        return None
    over = up.deleted_at + policy.grace_seconds
    return RemoveFinalizer(up.uid, overdue=not copy_gone) if now >= over else GraceUntil(over)
