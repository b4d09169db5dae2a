"""The parts of a running engine that must not stand still: connections, workers, watches."""

from collections.abc import Iterator
from dataclasses import replace

from crsyncer.core.model import Side
from crsyncer.core.watching.progress import Progress
from crsyncer.engine.engine import Engine
from crsyncer.runtime.listwatch import Phase

_SECONDS = 900.0
"""More than the longest wait that is asked for (Retry-After, 5 min), and then one slow request after the other."""
_GRACE_SECONDS = 60.0
"""After the time at which a watch should have been given up."""


def progress(engine: Engine) -> Iterator[Progress]:
    """Everything that has to make progress. While a side is down, only the probe for it has to.

    While a kind is being listed its workers may wait for the list, which takes as long as the link needs.
    """
    for side, connection in engine.connections.items():
        yield Progress(f"the connection to the {side}", connection.active_at, _SECONDS)
    if not all(connection.up.is_set() for connection in engine.connections.values()):
        return
    up_since = max(connection.up_since for connection in engine.connections.values())
    kinds = {resource: row.kind for resource, row in engine.kinds.entries.items() if row.kind is not None}
    for side in Side:
        for job, since in engine.dispatchers[side].under_way.items():
            kind = kinds.get(job.resource)
            if kind is None or all(each.listwatch.phase is not Phase.LISTING for each in kind.informers):
                name = f"the {side}'s worker at the {job.work} of {job.resource} {job.key}"
                yield Progress(name, max(since, up_since), _SECONDS)
    listwatches = [*engine.kinds.listwatches, *(each.listwatch for kind in kinds.values() for each in kind.informers)]
    for listwatch in listwatches:
        if (watch := listwatch.open_watch) is not None:
            yield replace(watch, allowed=watch.allowed + _GRACE_SECONDS)
