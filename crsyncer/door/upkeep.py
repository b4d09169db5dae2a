"""Keeps HAProxy's map and streams as the Robots want them, in all its workers, and notices when it is restarted."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crsyncer.core.model import Json
from crsyncer.door.domain.haproxy_answers import Server, Stream, Worker
from crsyncer.door.domain.lost_shards import Losses, Silence
from crsyncer.door.domain.robots_map import Routes, changes, map_text, read_map
from crsyncer.door.domain.upkeep_plan import shard_users, strays
from crsyncer.door.door_files import MAP, put_map, read_text
from crsyncer.door.master_socket import MasterSocket
from crsyncer.errors import SyncError, Unsure

log = logging.getLogger(__name__)

_ROUND_SECONDS = 1.0
_AGAIN_SECONDS = 0.2
"""Until it is looked again whether a stream that was ended is gone."""
_TRIES = 50
_LOOK_ROUNDS = 10
"""Without a change, streams are looked at in each round of so many."""
_READ_ROUNDS = 30
"""Without a change, the workers' maps are read in each round of so many: others can write at HAProxy's socket, too."""


@dataclass(slots=True)
class Seen:
    """HAProxy as it was last seen, for health and metrics."""

    workers: tuple[Worker, ...] = ()
    servers: dict[str, Server] = field(default_factory=dict)
    refused: dict[int, int] = field(default_factory=dict)
    trouble: SyncError | None = None
    """Why HAProxy does not answer, or does not do as it is told."""
    unwritten: SyncError | None = None
    """Why the file of the map is not as wanted."""
    map_is_written: bool = False
    loaded_at: float = math.inf
    """When HAProxy loaded its configuration, to the second: Unix time; infinity: not known."""
    at: float = 0.0
    """Event loop time, in seconds."""

    @property
    def shards_up(self) -> dict[str, bool]:
        """Whether each shard is up; empty: not known."""
        return {name: server.is_up for name, server in self.servers.items()}


class Upkeep:
    """The loop that makes HAProxy agree with the wanted map.

    `wanted` is the last map; an empty one is none, and what HAProxy has holds until the Robots are known. `silence` has
    the shards that give no answer. `wrote(result)` is called for each change of a map, `ended(number)` for streams that
    were ended.
    """

    def __init__(
        self,
        haproxy: MasterSocket,
        directory: Path,
        wanted: Routes,
        *,
        silence: Silence,
        wrote: Callable[[str], None],
        ended: Callable[[int], None],
    ) -> None:
        self.seen = Seen()
        self._haproxy = haproxy
        self._directory = directory
        self._wanted = wanted
        self._is_known = bool(wanted)
        """Whether `wanted` is more than the lack of a file: else what HAProxy has holds."""
        self._is_dirty = True
        """Whether the file, or a stream, may not be as wanted."""
        self._silence = silence
        self._losses = Losses()
        self._maps: dict[int, Routes] = {}
        """The map of each worker, as it was last seen or made."""
        self._wrote = wrote
        self._ended = ended
        self._changed = asyncio.Event()
        self._rounds = 0

    @property
    def wanted(self) -> Routes:
        """The map as it shall be."""
        return self._wanted

    def want(self, wanted: Routes) -> None:
        """The Robots are listed, or have changed."""
        if wanted != self._wanted or not self._is_known:
            self._wanted, self._is_known, self._is_dirty = wanted, True, True
            self._changed.set()

    async def run(self) -> None:
        """Keep it so, for ever."""
        while True:
            self._changed.clear()
            await self.once()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ROUND_SECONDS):
                    await self._changed.wait()

    async def once(self) -> None:
        """Look at HAProxy once, and make it so. Never raises: `seen` has what is wrong."""
        self._rounds += 1
        self._keep_file()
        try:
            await self._round()
            self._note(None)
        except SyncError as error:
            self._note(error)
        self.seen.at = asyncio.get_running_loop().time()

    async def at_shard(self, shard: str) -> Json:
        """Who is at a shard, by all workers: robots with streams, and robots whose next request goes there.

        Raises Unsure.
        """
        streams: list[Stream] = []
        # The file too: where it cannot be written, a restart of HAProxy leads robots to where they were.
        maps: list[Routes] = [self._wanted, read_map(read_text(self._directory / MAP) or "")]
        for worker in await self._haproxy.workers():
            maps.append(await self._haproxy.map_entries(worker.pid))
            streams += await self._haproxy.streams(worker.pid)
        return shard_users(shard, streams, maps, is_up=self.seen.shards_up.get(shard))

    def _keep_file(self) -> None:
        before, trouble = str(self.seen.unwritten or ""), None
        try:
            if self._is_known or read_text(self._directory / MAP) is None:  # HAProxy needs the file
                put_map(self._directory, map_text(self._wanted))
            self.seen.map_is_written = self._is_known
        except SyncError as error:
            self._wrote("failed")
            trouble = error
        self.seen.unwritten = trouble
        if trouble is not None and str(trouble) != before:
            log.warning("%s: a restart of HAProxy begins with the last map", trouble)
        elif trouble is None and before:
            log.info("the file of the map is written again")

    async def _round(self) -> None:
        workers = await self._haproxy.workers()
        self.seen.loaded_at = time.time() - min(worker.uptime for worker in workers)
        if self._rounds % _READ_ROUNDS == 0:
            self._maps = {}
        self._maps = {pid: routes for pid, routes in self._maps.items() if any(pid == each.pid for each in workers)}
        current = [worker for worker in workers if not worker.is_old]
        for worker in workers:
            with _may_end(worker):
                await self._sync_map(worker)
        servers = await self._haproxy.servers(current[0].pid) if current else {}
        if servers:
            self._judge_losses(servers)
        if self._losses.lost:
            await self._end_lost()
        if self._is_known and (self._is_dirty or self._rounds % _LOOK_ROUNDS == 0):
            await self._end_strays()
            self._is_dirty = False
        self.seen.workers, self.seen.servers = workers, servers
        self.seen.refused = {worker.pid: await self._haproxy.refused_tokens(worker.pid) for worker in current}

    def _judge_losses(self, servers: Mapping[str, Server]) -> None:
        before, down = self._losses.lost, frozenset(shard for shard, server in servers.items() if not server.is_up)
        for shard in sorted(self._losses.judge(down=down, silent=self._silence.shards) - before):
            log.warning("shard %s gives no answer: its streams are ended", shard)

    async def _sync_map(self, worker: Worker) -> None:
        """Make the map of a worker the wanted one, and look whether it is."""
        known = self._maps.get(worker.pid)
        if known is None:
            if not await self._haproxy.is_ours(worker.pid):
                raise Unsure(
                    f"the HAProxy at the socket does not use {self._directory / MAP}",
                    hint="is this the right --socket, and was HAProxy started with the haproxy.cfg beside that map?",
                )
            known = await self._haproxy.map_entries(worker.pid)
            self._is_dirty = True  # its streams were never looked at
        if not self._is_known:
            if worker.is_old or not known:
                return
            self.want(known)
        wanted = self._wanted
        commands = list(changes(known, wanted, str(self._directory / MAP))) if known != wanted else []
        if commands:
            await self._haproxy.do(commands, pid=worker.pid)
            known = await self._haproxy.map_entries(worker.pid)
            self._wrote("done" if known == wanted else "failed")
            self._is_dirty = True
            log.info("map of worker %d: %d changes", worker.pid, len(commands))
        self._maps[worker.pid] = known
        if known != wanted:
            del self._maps[worker.pid]
            raise Unsure(f"worker {worker.pid} of HAProxy has not taken the map", hint="see HAProxy's log")

    async def _end_lost(self) -> None:
        """End the streams at lost shards, once: the next round looks whether these are lost still (G5.1)."""
        for worker in await self._haproxy.workers():
            with _may_end(worker):
                lost = [each for each in await self._haproxy.streams(worker.pid) if each.shard in self._losses.lost]
                if lost:
                    await self._haproxy.end_shards(worker, lost)
                    self._ended(len(lost))
                    log.info("worker %d: ended %d streams at shards that give no answer", worker.pid, len(lost))

    async def _end_strays(self) -> None:
        """End the streams that are where they must not be, until none is left (G4.3)."""
        for attempt in range(_TRIES):
            left = 0
            for worker in await self._haproxy.workers():
                with _may_end(worker):
                    wrong = strays(await self._haproxy.streams(worker.pid), self._wanted)
                    if wrong:
                        left += len(wrong)
                        number = await self._haproxy.end_streams(worker.pid, wrong)
                        self._ended(number)
                        log.info("worker %d: ended %d streams of robots that moved or are gone", worker.pid, number)
            if not left:
                return
            await asyncio.sleep(_AGAIN_SECONDS if attempt else 0.0)
        raise Unsure(f"{left} streams of robots that moved or are gone cannot be ended", hint="restart HAProxy")

    def _note(self, error: SyncError | None) -> None:
        """Remember and log what is wrong, once."""
        before = str(self.seen.trouble or "")
        if error is not None and str(error) != before:
            log.warning("%s", error)
        elif error is None and before:
            log.info("HAProxy answers, and its map is written")
        if error is not None:
            self.seen.workers, self.seen.servers, self.seen.loaded_at = (), {}, math.inf
        self.seen.trouble = error


@contextlib.contextmanager
def _may_end(worker: Worker) -> Iterator[None]:
    """An old worker may end at any time: what it does not answer inside is nothing wrong."""
    try:
        yield
    except Unsure:
        if not worker.is_old:
            raise
