"""Proves, before watches go on where they stopped, that a cluster's history is still the one that we know (S8.2).

A restored cluster that has been written to since may have overtaken our cursors: its revision looks right, and a watch
from the cursor says nothing of what happened in the new history before it (measured). So the newest object that is
known of the cluster is asked for again, by a watch from right before its resourceVersion: the same history begins with
that very object, and another cannot, for it has something else, or nothing, at that revision.

One question is enough for all kinds of a side. It costs some 2 KB, whatever the number of objects (measured).
"""

import asyncio
from collections.abc import Callable

from crsyncer.core import calls
from crsyncer.core.watch import Anchor, History, Lost, Proof, Rewatch, Step, read_answer, read_replay, unproven
from crsyncer.errors import Unsure
from crsyncer.loop.shared import Shared
from crsyncer.loop.side import SideLink
from crsyncer.ports import Store

_PATIENCE_SECONDS = 20.0
_TRIES = 2
_FRESH_SECONDS = 30.0
_WINDOWS = 4
"""How many API servers behind one address are told apart."""


class Fence:
    """What is known of one side's history. `anchor` returns the newest object of all kinds, None where there is none.

    Where the server has forgotten the anchor, nothing is proven, and the kind has to be listed: a digest. What the
    server then says it remembers is noted (`accept`), so that a quiet kind is listed once for each start of an API
    server, and not for each flap of the link (`accepts`): a restore comes with a start.
    """

    def __init__(self, link: SideLink, *, store: Store, anchor: Callable[[], Anchor | None]) -> None:
        self._link = link
        self._store = store
        self._anchor = anchor
        self._question = Shared(self._put)
        self._proven_at: float | None = None
        """Event loop time, in seconds; None: not since the last doubt."""
        self._doubts = 0
        self._patience = 0.0
        """Event loop time, in seconds, before which the server wants no further question."""

    def doubt(self) -> None:
        """A connection broke: whoever answers from now on may be another cluster."""
        self._doubts += 1
        self._proven_at = None

    async def ask(self) -> Proof | Step:
        """What the side's history is, proven after the last doubt; or the step to take when that was not answered."""
        return self._known() or await self._question.answer()

    def accepts(self, path: str, window: str) -> bool:
        """Whether a collection has been listed since the server that remembers just this much was started."""
        return bool(window) and window in self._windows(path)

    def accept(self, path: str, window: str) -> None:
        """A collection has been listed, of a server that remembers just this much."""
        if window and not self.accepts(path, window):
            self._store.put_meta(self._name(path), [*self._windows(path), window][-_WINDOWS:])

    def _windows(self, path: str) -> list[str]:
        return list(self._store.get_meta(self._name(path)) or ())

    def _name(self, path: str) -> str:
        return f"windows:{self._link.side}:{path}"

    def _known(self) -> Proof | Step | None:
        """What need not be asked again."""
        now = asyncio.get_running_loop().time()
        if self._proven_at is not None and now < self._proven_at + _FRESH_SECONDS:
            return Proof(History.SAME)
        return Rewatch(self._patience - now) if now < self._patience else None

    async def _put(self) -> Proof | Step:
        """Ask twice before silence is taken for an answer: a server that starts may need a moment to catch up."""
        known = self._known()
        if known is not None:
            return known
        doubts = self._doubts
        anchor = self._anchor()
        if anchor is None:
            return Proof(History.UNKNOWN)
        answer: Proof | Step | None = None
        for _ in range(_TRIES):
            try:
                answer = await self._replay(anchor)
            except Unsure as error:
                return Lost(str(error))
            if answer is not None:
                break
        now = asyncio.get_running_loop().time()
        match answer:
            case Proof(history=History.SAME) if doubts == self._doubts:
                self._proven_at = now
            case Rewatch(pause=pause):
                self._patience = now + pause
        return answer or Proof(History.OTHER)

    async def _replay(self, anchor: Anchor) -> Proof | Step | None:
        """What the server repeats; None: it had its time, and repeated nothing."""
        loop = asyncio.get_running_loop()
        call = calls.replay(anchor.path, anchor.selector, before=str(int(anchor.resource_version) - 1))
        started = loop.time()
        async with self._link.cluster.watch(call, read_timeout=_PATIENCE_SECONDS) as stream:
            if stream.reply is not None:
                reply = stream.reply
                return unproven(read_answer(reply.status, reply.body, retry_after=reply.retry_after))
            async for line in stream.lines():
                self._link.heard()
                found = read_replay(line, anchor)
                if found is not None:
                    return found
        # The events come in order, and before the end: a slow line makes this later, but not otherwise.
        if loop.time() - started < calls.REPLAY_SECONDS * 0.9:
            return Lost("a watch was ended before its time")
        return None
