"""The real agent with one defect planted, which the checker must catch: the `wrapper` of an agent's command.

The variable PLANTED says which.
"""

import asyncio
import copy
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crsyncer.adapters.store.store import SqliteStore
from crsyncer.cli.main import main
from crsyncer.core.holds.deletion_holds import DeletionHolds
from crsyncer.core.model import Gap, Key, Observation, Side, View
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.pairs.outbox import Outbox

_LATE_SECONDS = 5.0


def status_for_anybody() -> None:
    """An old object's status is sent to its successor."""
    send = Outbox.send

    async def careless(self: Outbox, key: Key, failures: int) -> bool:
        row, upstream = self._cache.pending.get(key), self._cache.observe(Side.CLOUD, key).found
        if row is not None and isinstance(upstream, View):
            self._cache.set_pending(key, replace(row, upstream_uid=upstream.uid))
        return await send(self, key, failures)

    _plant(Outbox, "send", careless)


def acknowledged_by_key() -> None:
    """An acknowledgement erases whatever status waits by then, also a newer one."""
    acknowledge = Outbox._acknowledge

    def careless(self: Outbox, key: Key, row: Any, **said: Any) -> None:
        acknowledge(self, key, self._cache.pending.get(key) or row, **said)

    _plant(Outbox, "_acknowledge", careless)


def cursor_ahead() -> None:
    """The position reaches the disk seconds before what it covers."""
    put_copy = SqliteStore.put_copy

    def late(self: SqliteStore, *what: Any) -> None:
        asyncio.get_running_loop().call_later(_LATE_SECONDS, put_copy, self, *copy.deepcopy(what))

    _plant(SqliteStore, "put_copy", late)


def unseen_is_gone() -> None:
    """What cannot be seen is taken for deleted, and nobody looks twice."""
    sight = Cache.observe

    def careless(self: Cache, side: Side, key: Key) -> Observation:
        seen = sight(self, side, key)
        return replace(seen, found=Gap.ABSENT, deleted_uid="") if seen.found is Gap.UNSEEN else seen

    def rash(_self: DeletionHolds, _key: Key) -> None:
        return None

    _plant(Cache, "observe", careless)
    _plant(DeletionHolds, "keeps", rash)


def _plant(owner: type, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


DEFECTS = {
    "": lambda: None,
    "status_for_anybody": status_for_anybody,
    "acknowledged_by_key": acknowledged_by_key,
    "cursor_ahead": cursor_ahead,
    "unseen_is_gone": unseen_is_gone,
}

if __name__ == "__main__":
    DEFECTS[os.environ["PLANTED"]]()
    sys.exit(main(sys.argv[sys.argv.index("run") :]))
