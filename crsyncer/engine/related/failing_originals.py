"""The originals of one kind that cannot be read, or whose copies can have no name (C5.1, C5.2)."""

from collections.abc import Set

from crsyncer.core.model import Key
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.related.fetch_queue import FetchQueue
from crsyncer.errors import Conflict, SyncError

_SHOWN = 3
"""How many originals a message names."""


class FailingOriginals:
    """Why primaries do not have all copies that they need. `to_fetch` knows what cannot be read."""

    def __init__(self, to_fetch: FetchQueue) -> None:
        self._to_fetch = to_fetch
        self._misnamed: dict[Key, str] = {}
        """By original without a copy, why that could have no valid name."""

    def clear(self) -> None:
        """The kind starts again: the names of its copies may be others."""
        self._misnamed.clear()

    def discard(self, key: Key) -> None:
        """Nothing refers to an original any more."""
        self._misnamed.pop(key, None)

    def check_name(self, key: Key, kind: Kind) -> bool:
        """Find out whether the copy of an original can have a name; whether the answer is another than before."""
        before = self._misnamed.pop(key, "")
        try:
            kind.cache.name_on(kind.policy.downstream, key)
        except Conflict:
            pass  # its namespace is not in the namespace map
        except SyncError as error:
            self._misnamed[key] = f": {error}"
        return before != self._misnamed.get(key, "")

    def message(self, originals: Set[Key], *, confidential: bool) -> str:
        """What is wrong about these originals; empty: nothing. `confidential`: without their names (C5.6)."""
        wrong = {**self._misnamed, **self._to_fetch.failures}
        keys = sorted(originals & wrong.keys())
        if keys and confidential:
            return "an original cannot be read, or its copy has no valid name"
        texts = [f"{key}{wrong[key]}" for key in keys[:_SHOWN]]
        return "; ".join([*texts, *([f"and {len(keys) - _SHOWN} more"] if len(keys) > _SHOWN else [])])
