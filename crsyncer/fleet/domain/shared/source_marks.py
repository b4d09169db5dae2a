"""The mark on a source that robots share: with it no robot's agent writes a status to the source (F10.3).

The mark is the annotation `~/shared` with the uid of the placement. A source that is not seen, or a placement that is
not known, changes nothing (F1.1): a mark goes only where its placement is seen, and does not select the source.
"""

from collections.abc import Iterator

from crsyncer.core.content.annotations import SHARED
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.fleet_calls import annotation_operations
from crsyncer.fleet.domain.values import Nothing, Patch, Placement, Source, SourceKey, Wait

UNWRITTEN = "its mark as shared cannot be written"
"""What an error of a placement says of a source whose mark the server refuses."""


def marked_by(source: Source) -> str:
    """The uid of the placement whose mark a source has; "": it has none."""
    return str((source.body["metadata"].get("annotations") or {}).get(SHARED) or "")


def left_marks(fleet: Fleet, placement: Placement) -> Iterator[SourceKey]:
    """The sources with a placement's mark, as far as their kinds are served (F5.3)."""
    for key, source in fleet.index.sources.items():
        if marked_by(source) == placement.uid and fleet.index.kinds[key.resource].version:
            yield key


def decide_mark(fleet: Fleet, key: SourceKey) -> Nothing | Wait | Patch:
    """What must be done about the mark of a source.

    governed by a Shared placement   its mark    do
    any, or not                      any         wait while its kind is not listed, not served, or of the other mode
    yes, with its finalizer          other       set it
    yes                              that one    nothing
    no                               none        nothing
    no                               known       remove it, unless the placement cannot be read
    no                               unknown     nothing: nobody knows whether that placement is gone
    """
    index = fleet.index
    source, governor = index.sources.get(key), index.shared_governor(key)
    if source is None:
        return Nothing()
    marked = marked_by(source)
    owner = governor or index.placement(marked)
    if owner is None or marked == (governor.uid if governor is not None else ""):
        return Nothing()
    if problem := _obstacle(fleet, key, owner):
        return Wait(problem)
    value = None if governor is None else governor.uid
    return Patch(annotation_operations(source.body["metadata"], SHARED, value))


def _obstacle(fleet: Fleet, key: SourceKey, placement: Placement) -> str:
    if key.resource in fleet.dead or not fleet.is_ready(key.resource):
        return f"{key.resource} is not listed"
    if placement.terminating:
        return ""
    if placement.problem or not placement.finalized:
        return placement.problem or "the placement has no finalizer yet"
    problem = fleet.index.kinds[key.resource].problem_for(shared=True)
    return "" if problem is None else problem[1]
