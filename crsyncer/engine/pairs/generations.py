"""What the record of a pair says of its copy: upstream's generation for each generation (S4.7), and what it loses."""

from dataclasses import replace

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Record, Stamp, View
from crsyncer.core.watching.watch import newer

_KEPT = 16


def with_generation(record: Record, upstream: View, copy: View, policy: KindPolicy) -> Record:
    """The record of a pair with the generation of its copy, where that has upstream's content."""
    admitted = record.admitted if record.applied == upstream.content else upstream.content
    local = policy.shape.keep_local  # other fields of the copy may differ (C3.2)
    is_applied = copy.stamp is not None and copy.stamp.digest == upstream.content
    if not is_applied or (not local and copy.content not in (upstream.content, admitted)):
        return record
    known = tuple(pair for pair in record.generations if pair[0] != copy.generation)
    missed = (copy.generation, 0) in record.generations  # a status went up without it: it has to go again
    return replace(
        record,
        generations=(*known, (copy.generation, upstream.generation))[-_KEPT:],
        acknowledged="" if missed else record.acknowledged,
    )


def went_back(copy: View, known: View, *, former: str) -> bool:
    """Whether a copy is older than the known one, whose version was `former` before it was distrusted ("": it was not).

    A restored cluster counts versions on, so that a write since may have a newer one; generations are the object's own.
    """
    return newer(former, copy.resource_version) or (copy.uid == known.uid and copy.generation < known.generation)


def of_another_copy(record: Record, *, older: Stamp | None, is_pending: bool) -> Record:
    """The record of a pair whose copy was deleted, replaced or went back in time.

    That the copy has no status now does not mean that one was removed (S4.3). Its generations start anew (S4.7); a
    status of the old copy that still waits (`is_pending`) needs the old ones. `older` is the stamp of a copy that went
    back: what was written since is lost, so the stamp is again the last that we wrote, and upstream is newer (S8.4).
    """
    if older is not None and older.upstream_uid == record.upstream_uid:
        record = replace(record, applied=older.digest)
    return replace(record, had_status=False, generations=record.generations if is_pending else ())
