"""Proves that a cluster's history is still the known one, before a watch goes on where it stopped (S8.2).

A restored cluster that has been written to since may have overtaken the cursor: its revision looks right, and a watch
from the cursor does not show what happened in the new history before it (measured). So the newest object that the
watch had shown (the checkpoint) is watched again from right before its resourceVersion. The same history begins with
that very object. Another history cannot: it has something else, or nothing, at that revision.

One object is asked for on behalf of all collections, the newest that any of them had seen before its watch ended: a
later one may belong to the new history, and would wrongly confirm it. The check costs 1.2 KB, whatever the number of
objects (measured), and a connection.
"""

import asyncio
import contextlib

from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Collection
from crsyncer.core.watching.restore_detection import Checkpoint, History, Replay, not_replayed, read_replay
from crsyncer.core.watching.watch import ListReason, Relist, WatchStep, read_answer
from crsyncer.errors import Unsure
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.known_history import Member

_ANSWER_SECONDS = 20.0
_SHARED_SECONDS = 8.0
"""How long a collection with an object of its own waits for what proves the history of all; silence takes 6 s."""
_SERVERS = 4
"""How many API servers behind one address are distinguished."""


class ResumeCheck:
    """Asks a server to prove its history, for one of the collections that share the answer.

    If the server no longer has the checkpoint, nothing is proven, and the list-watch lists the collection. The oldest
    revision that the server still has is noted (`note_listed`), so that a quiet collection is listed once per
    start of an API server and not once per flap (`was_listed`): a restore always comes with a start.
    """

    def __init__(self, connection: Connection, collection: Collection) -> None:
        self._connection = connection
        self._collection = collection
        self._history = connection.history
        one = f"/{collection.name}" if collection.name else ""
        self._name = f"oldest:{connection.name}:{collection.path}{one}"

    async def prove(self, member: Member) -> Replay | WatchStep:
        """Whether the history is the one that all collections know; or the step to take when that was not answered.

        When it is another one, all of them are told. A collection that has an object of its own waits only so long for
        what others ask: the server may have lost one collection, and answer for the rest (S9.5).
        """
        waits = None if member.checkpoint() is None else _SHARED_SECONDS
        shared = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(waits):
                shared = await self._history.lock.acquire()
        try:
            answer = await self._prove(member, waits if shared else 0.0)
        finally:
            if shared:
                self._history.lock.release()
        if isinstance(answer, Replay) and answer.history is History.OTHER:
            self._history.restored()
        return answer

    async def learn_oldest(self) -> str:
        """The oldest revision that the server still has; "" where it is not known, or an object proves the history."""
        if self._history.newest() is not None:
            return ""
        answer = await self._ask(self._collection, None)
        return answer.oldest if isinstance(answer, Replay) else ""

    async def _prove(self, member: Member, seconds: float | None) -> Replay | WatchStep:
        """The answer for this collection. A watch would not show that the cluster was restored.

        The newest object of all collections is asked for, for so long; where that proves nothing, as the server may not
        show or no longer have it, this collection's own.
        """
        history, connection = self._history, self._connection
        if history.is_proven(member):
            return Replay(History.SAME)
        since = history.doubted_at
        # An object written during a probe may be newer than its answer: only versions known before count.
        highest = history.highest_revision(connection.history_identity)
        if not highest and not history.has_cursor():
            history.proven("0", revision=0, since=since)  # nothing is known that it could contradict
            return Replay(History.SAME)
        await connection.wait_probed(since=since)
        if connection.revision < highest:
            # The last probe may be the older one.
            await connection.wait_probed(since=asyncio.get_running_loop().time())
        if connection.revision == 0:
            return Relist(ListReason.NO_REVISION)
        if connection.revision < highest:
            return Replay(History.OTHER)
        own = member.checkpoint()
        former = history.newest(listed_by=since)
        proves = former is not None or own is not None  # else nothing that was known before is at stake
        newest = former if proves else history.newest()
        asked = [] if newest is None or newest[1] == own or seconds == 0.0 else [(*newest, seconds)]
        for collection, checkpoint, limit in (*asked, (self._collection, own, None)):
            answer: Replay | WatchStep = Unsure("no answer in time")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    answer = await self._ask(collection, checkpoint)
            match answer:
                case Replay(history=History.SAME) if checkpoint is not None:
                    history.proven(checkpoint.resource_version if proves else "0", revision=highest, since=since)
                    return answer
                case Replay(history=History.OTHER):
                    return answer
        return answer

    async def _ask(self, collection: Collection, checkpoint: Checkpoint | None) -> Replay | WatchStep:
        """Whether the history is that of a checkpoint; or the step to take when that was not answered.

        Without a checkpoint nothing can be proven, but the server names the oldest resourceVersion that it still has.

        Asks twice before silence counts as an answer: a server that starts may need a moment to catch up. The second
        wait is longer than a round trip: a server that shuts down ends every watch at once, and on a
        slow link that looks like silence.
        """
        for seconds in calls.REPLAY_SECONDS:
            try:
                answer = await self._replay(collection, checkpoint or Checkpoint("", "2"), seconds)
            except Unsure as error:
                return error
            if answer is not None:
                break
        found = answer or Replay(History.OTHER)
        return (
            Replay(History.UNKNOWN) if checkpoint is None and isinstance(found, Replay) and not found.oldest else found
        )

    def was_listed(self, oldest: str) -> bool:
        """Whether the collection has been listed since the start of the server whose oldest resourceVersion this is."""
        return bool(oldest) and oldest in self._noted()

    def note_listed(self, oldest: str) -> None:
        """The collection has been listed; the server's oldest resourceVersion is this."""
        if oldest and not self.was_listed(oldest):
            self._connection.store.put_meta(self._name, [*self._noted(), oldest][-_SERVERS:])

    def _noted(self) -> list[str]:
        return list(self._connection.store.get_meta(self._name) or ())

    async def _replay(self, collection: Collection, checkpoint: Checkpoint, seconds: int) -> Replay | WatchStep | None:
        """The history that the server repeats; None: it repeated nothing in that time."""
        loop = asyncio.get_running_loop()
        before = str(int(checkpoint.resource_version) - 1)
        call = calls.replay(collection, before=before, seconds=seconds)
        started = loop.time()
        async with self._connection.cluster.watch(call, read_timeout=_ANSWER_SECONDS) as stream:
            if stream.reply is not None:
                reply = stream.reply
                return not_replayed(read_answer(reply.status, reply.body, retry_after=reply.retry_after))
            async for line in stream.lines():
                self._connection.note_answer()
                found = read_replay(line, checkpoint)
                if found is not None:
                    return found
            lasted = loop.time() - started  # our own closing of the connection may take a while after that
        # Events come in order, and before the end of the watch: a slow link delays them, and changes nothing else.
        return Unsure("a watch was ended before its time") if lasted < seconds * 0.9 else None
