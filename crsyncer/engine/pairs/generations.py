"""Which upstream generation each generation of a copy has the content of (S4.7)."""

from dataclasses import replace

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Record, View

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
