"""HAProxy's master socket: commands for the master and for each worker, old ones included."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from crsyncer.door.domain import haproxy_answers as answers
from crsyncer.door.domain.haproxy_answers import Server, Stream, Worker
from crsyncer.errors import SyncError, Unsure

_SECONDS = 10.0
_RELOAD_SECONDS = 30.0
_POLL_SECONDS = 0.1
_CLOSED_SECONDS = 2.0
_BATCH = 500
"""Commands in one go; HAProxy takes 0.1 ms for each (measured)."""
_GONE = "Can't find the target"
_LOG = "see HAProxy's log: is an address in use, or a file not readable for it?"
_HINT = "is it started with haproxy -W -S SOCKET -f DIR/haproxy.cfg, and may this user open the socket?"


class MasterSocket:
    """HAProxy as it runs. Every method raises Unsure where it does not answer, or the worker has ended."""

    def __init__(self, path: Path, map_file: Path) -> None:
        self._path = path
        self._map = str(map_file)

    async def workers(self) -> tuple[Worker, ...]:
        """The processes that serve, the newest first. Raises Unsure where there is none, too."""
        found = answers.processes(await self._ask("show proc"))
        if not found:
            raise Unsure(f"no worker of HAProxy runs at {self._path}", hint="see HAProxy's log")
        return tuple(sorted(found, key=lambda worker: worker.is_old))

    async def is_ours(self, pid: int) -> bool:
        """Whether a worker uses our map: else it is another HAProxy's."""
        return f"({self._map})" in await self._ask("show map", pid=pid)

    async def map_entries(self, pid: int) -> dict[str, str]:
        """The map as a worker has it."""
        return answers.map_entries(await self._ask(f"show map {self._map}", pid=pid))

    async def streams(self, pid: int) -> tuple[Stream, ...]:
        """The requests in progress of a worker."""
        return answers.streams(await self._ask("show table streams", pid=pid))

    async def refused_tokens(self, pid: int) -> int:
        """How many tokens a worker has refused."""
        return answers.refused_tokens(await self._ask("show table refused", pid=pid))

    async def servers(self, pid: int) -> dict[str, Server]:
        """Each shard as a worker sees it. An old one checks nothing."""
        return answers.servers(await self._ask("show servers state", pid=pid))

    async def do(self, commands: Iterable[str], *, pid: int) -> None:
        """Have a worker carry out commands, whose effect the caller looks at."""
        rest = iter(commands)
        while batch := list(islice(rest, _BATCH)):
            await self._ask(*batch, pid=pid)

    async def end_streams(self, pid: int, streams: Sequence[Stream]) -> int:
        """End streams of a worker; returns for how many there was a session."""
        known = answers.sessions(await self._ask("show sess", pid=pid))
        found = [known[key] for each in streams if (key := (each.shard, each.source)) in known]
        await self.do((f"shutdown session {each}" for each in found), pid=pid)
        return len(found)

    async def end_shards(self, worker: Worker, streams: Sequence[Stream]) -> None:
        """End streams of a worker, which are all that it has at their shards.

        For thousands that takes a tenth of the time of ending each alone. An old worker refuses it: its backends are
        stopped.
        """
        if worker.is_old:
            await self.end_streams(worker.pid, streams)
            return
        shards = sorted({each.shard for each in streams})
        await self.do((f"shutdown sessions server {answers.BACKEND}{each}/{each}" for each in shards), pid=worker.pid)

    async def close_frontend(self, pid: int) -> None:
        """Have a worker accept no more robots. The streams that there are go on."""
        await self._ask("disable frontend robots", pid=pid)

    async def reload(self) -> None:
        """Have the master load the configuration again, in new workers; the streams go on in the old ones.

        Raises a SyncError that is no Unsure where HAProxy cannot load it, and goes on with the last one.
        """
        text = await self._ask("show proc")
        before, count = {each.pid for each in answers.processes(text) if not each.is_old}, answers.reloads(text)
        await self._ask("reload")
        loop = asyncio.get_running_loop()
        until = loop.time() + _RELOAD_SECONDS
        while True:
            try:
                text = await self._ask("show proc")
            except Unsure:  # between two workers
                text = ""
            now = {worker.pid for worker in answers.processes(text) if not worker.is_old}
            if now and not now & before:
                return
            if (now and answers.has_refused(text) and answers.reloads(text) > count) or loop.time() > until:
                raise SyncError("HAProxy has not loaded its new configuration, and goes on with the last", hint=_LOG)
            await asyncio.sleep(_POLL_SECONDS)

    async def _ask(self, *commands: str, pid: int = 0) -> str:
        prefix = f"@!{pid} " if pid else ""
        lines = "".join(f"{prefix}{command}\n" for command in commands)
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await self._open()
                try:
                    writer.write(lines.encode())
                    writer.write_eof()
                    text = (await reader.read()).decode(errors="replace")
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or f"no answer within {_SECONDS:g} s"
            raise Unsure(f"HAProxy does not answer at {self._path} ({why.lower()})", hint=_HINT) from None
        if text.startswith(_GONE):
            raise Unsure(f"worker {pid} of HAProxy has ended")
        return text

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection. HAProxy 2.6 closes the socket for a moment when it loads its configuration again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _CLOSED_SECONDS
        while True:
            try:
                return await asyncio.open_unix_connection(self._path)
            except (ConnectionRefusedError, FileNotFoundError):
                if loop.time() > until:
                    raise
                await asyncio.sleep(_POLL_SECONDS)
