"""Proves, before a watch goes on where it stopped, that a cluster's history is still the one that we know (S8.2).

A restored cluster that has been written to since may have overtaken our cursor: its revision looks right, and a watch
from the cursor says nothing of what happened in the new history before it (measured). So the newest object that the
watch had shown is asked for again, by a watch from right before its resourceVersion: the same history begins with that
very object, and another cannot, for it has something else, or nothing, at that revision.

Each kind asks for an object that it had seen before its watch ended. A later object may belong to the new history and
would wrongly confirm it. The question costs 1.2 KB, whatever the number
of objects (measured), and a connection.
"""

import asyncio

from crsyncer.core import calls
from crsyncer.core.watch import Checkpoint, History, Lost, Replay, Step, read_answer, read_replay, unproven
from crsyncer.errors import Unsure
from crsyncer.ports import MetaStore
from crsyncer.runtime.connection import Connection

_PATIENCE_SECONDS = 20.0
_WINDOWS = 4
"""How many API servers behind one address are distinguished."""


class ResumeCheck:
    """Asks one side to prove its history.

    If the server has forgotten the checkpoint, nothing is proven and the kind is listed (a digest). The oldest revision
    that the server then remembers is noted (`accept`), so that a quiet kind is listed once per start of an API
    server and not once per flap (`accepts`): a restore always comes with a start.
    """

    def __init__(self, connection: Connection, *, store: MetaStore) -> None:
        self._connection = connection
        self._store = store

    async def ask(self, checkpoint: Checkpoint) -> Replay | Step:
        """Whether the history is that of a checkpoint; or the step to take when that was not answered.

        Asks twice before silence counts as an answer: a server that starts may need a moment to catch up. The second
        wait is longer than the way to the server and back: a server that shuts down ends every watch at once, and on a
        slow link that looks like silence.
        """
        for seconds in calls.REPLAY_SECONDS:
            try:
                answer = await self._replay(checkpoint, seconds)
            except Unsure as error:
                return Lost(str(error))
            if answer is not None:
                break
        found = answer or Replay(History.OTHER)
        return (
            Replay(History.UNKNOWN) if not checkpoint.uid and isinstance(found, Replay) and not found.window else found
        )

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
        return f"windows:{self._connection.name}:{path}"

    async def _replay(self, checkpoint: Checkpoint, seconds: int) -> Replay | Step | None:
        """What the server repeats; None: it had its time, and repeated nothing."""
        loop = asyncio.get_running_loop()
        before = str(int(checkpoint.resource_version) - 1)
        call = calls.replay(checkpoint.collection, before=before, seconds=seconds)
        started = loop.time()
        async with self._connection.cluster.watch(call, read_timeout=_PATIENCE_SECONDS) as stream:
            if stream.reply is not None:
                reply = stream.reply
                return unproven(read_answer(reply.status, reply.body, retry_after=reply.retry_after))
            async for line in stream.lines():
                self._connection.heard()
                found = read_replay(line, checkpoint)
                if found is not None:
                    return found
        # The events come in order, and before the end: a slow line makes this later, but not otherwise.
        if loop.time() - started < seconds * 0.9:
            return Lost("a watch was ended before its time")
        return None
