"""The agent's hand on a simulated API server (ports.Cluster), through weather."""

import asyncio
import contextlib
import json
import math
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.errors import TooLarge, Unsure
from crsyncer.ports import Reply
from tests.model.simulation.answers import NOT_SERVED
from tests.model.simulation.api_server import ApiServer
from tests.model.simulation.journal import Journal
from tests.model.simulation.watches import Watch, gone, open_watch, too_old
from tests.model.simulation.weather import Fate, Weather

_BOOKMARK_SECONDS = 60.0
_LATE_SECONDS = 20.0
_TEAR_DOWN_SECONDS = 1.0
"""How long after a change of its CRD a watch ends; what happens meanwhile, the next one has to tell."""


class Wire(Protocol):
    """What connects an agent to the world: it may be torn out at any moment."""

    async def passes(self) -> None:
        """Return if the agent still lives; else never."""
        ...

    def perform(self, call: Call, *, late: bool = False) -> Reply:
        """Have the server carry a request out, in front of witnesses."""
        ...

    def outlives(self, call: Call) -> None:
        """A request is on its way that may arrive although the agent has died."""
        ...

    def abandon(self, call: Call, seconds: float) -> None:
        """Nobody waits for a request any more: if it is on its way, it arrives in so many seconds, or never."""
        ...


@dataclass(slots=True)
class Signal:
    """Wakes everybody who waits for something to happen at a server."""

    event: asyncio.Event

    def ring(self) -> None:
        """Something has happened."""
        self.event.set()
        self.event = asyncio.Event()


class Connection:
    """Implements ports.Cluster. Nothing passes without the wire's consent, in either direction."""

    def __init__(
        self, side: Side, server: ApiServer, *, weather: Weather, signal: Signal, wire: Wire, journal: Journal
    ) -> None:
        self.server = f"https://{server.storage.name}.example.com{server.path}"
        self.fallback_identity = server.storage.name
        self.clock_offset: float | None = None
        self._side = side
        self._api = server
        self._weather = weather
        self._signal = signal
        self._wire = wire
        self.watched: Counter[str] = Counter()
        """How many watches of each path are open."""
        self._journal = journal
        self.asking = 0
        """How many requests are under way, and watches that are not open yet."""

    async def request(self, call: Call, *, progress: Callable[[], None] | None = None) -> Reply:
        """One request, whatever befalls it."""
        await self._wire.passes()
        noted = self._journal.note(self._side, call, _now())
        try:
            with self._under_way():
                reply = await self._request(call, progress)
        except asyncio.CancelledError:
            self._wire.abandon(call, self._weather.travel())
            raise
        noted.answer(reply.status, _now())
        self.clock_offset = self._weather.clock_offset
        return reply

    @contextlib.contextmanager
    def _under_way(self) -> Iterator[None]:
        self.asking += 1
        try:
            yield
        finally:
            self.asking -= 1

    async def _request(self, call: Call, progress: Callable[[], None] | None) -> Reply:
        patience = min(call.timeout, call.gap or math.inf)
        await self._reach(patience)
        fate = self._weather.fate(call, _now())
        if isinstance(fate, Reply):
            await asyncio.sleep(self._weather.travel())
            return fate
        if fate is Fate.LATE:
            late = partial(self._wire.perform, call, late=True)
            asyncio.get_running_loop().call_later(patience + _LATE_SECONDS, late)
        if fate in (Fate.LATE, Fate.LOST, Fate.HUNG):
            await asyncio.sleep(patience)
            raise Unsure(f"no answer within {patience:.0f} s")
        self._wire.outlives(call)
        await asyncio.sleep(self._weather.travel())
        await self._wire.passes()
        await self._reach(patience)
        reply = self._wire.perform(call)
        await self._wire.passes()
        if fate is Fate.REPLY_LOST:
            await asyncio.sleep(patience)
        if fate is not None:
            raise Unsure("the connection was closed before the answer came")
        await asyncio.sleep(self._weather.travel())
        await self._reach(patience)
        size = len(json.dumps(reply.body)) if call.verb == "list" else 0
        if size > call.most:
            raise TooLarge("the answer is too large")
        if self._weather.bytes_per_second is not None:
            await self._carry(call, size or len(json.dumps(reply.body)), progress)
        await self._wire.passes()
        return replace(reply, size=size)

    async def _carry(self, call: Call, size: int, progress: Callable[[], None] | None) -> None:
        """Wait until a narrow line has carried an answer; raises Unsure when that takes longer than is waited."""
        loop, weather = asyncio.get_running_loop(), self._weather
        began = loop.time()
        start = max(began, weather.busy_until)
        weather.busy_until = start + size / (weather.bytes_per_second or math.inf)
        end, deadline = weather.busy_until, began + call.timeout
        while (now := loop.time()) < end:
            if now >= deadline:
                weather.busy_until -= end - max(now, start)
                raise Unsure(f"no answer within {call.timeout:.0f} s")
            await asyncio.sleep(min(1.0, end - now, max(1e-3, deadline - now)))
            await self._reach(call.timeout)
            if progress is not None and loop.time() > start:
                progress()

    def watch(self, call: Call, *, read_timeout: float) -> AbstractAsyncContextManager["WatchStream"]:
        """Open a watch."""
        return self._watch(call, read_timeout)

    def refresh_credentials(self) -> bool:
        """There are none."""
        return False

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _reach(self, patience: float) -> None:
        """Return when a message gets through; raises Unsure when it does not, at once or after waiting."""
        if self._weather.cut:
            await asyncio.sleep(self._weather.travel())
            raise Unsure("connection refused")
        if self._weather.silent:
            await asyncio.sleep(patience)
            raise Unsure(f"no answer within {patience:.0f} s")

    @contextlib.asynccontextmanager
    async def _watch(self, call: Call, read_timeout: float) -> AsyncIterator["WatchStream"]:
        await self._wire.passes()
        noted = self._journal.note(self._side, call, _now())
        with self._under_way():
            await self._reach(call.timeout)
            await asyncio.sleep(self._weather.travel())
            fate = self._weather.fate(call, _now())
            if fate is Fate.HUNG:
                await asyncio.sleep(read_timeout)
                raise Unsure(f"no answer within {read_timeout:.0f} s")
        query = dict(call.query)
        address = self._api.address(call.path)
        refusal = fate if isinstance(fate, Reply) else NOT_SERVED if address is None else None
        if refusal is not None or address is None:
            noted.answer((refusal or NOT_SERVED).status, _now())
            yield WatchStream.refused(refusal or NOT_SERVED)
            return
        watch = open_watch(self._api, address, query)
        if watch is None and self._weather.gone_as_status:
            noted.answer(410, _now())
            yield WatchStream.refused(Reply(410, too_old(self._api, address, query)))
            return
        noted.answer(200, _now())
        seconds = float(query.get("timeoutSeconds", "300"))
        lines = (
            _each(gone(too_old(self._api, address, query)))
            if watch is None
            else self._lines(watch, read_timeout, seconds)
        )
        stream = WatchStream(200, None, lines)
        self.watched[call.path] += 1
        try:
            yield stream
        finally:
            try:
                await asyncio.sleep(self._weather.closing)
            finally:
                self.watched[call.path] -= 1
                await stream.close()

    async def _lines(self, watch: Watch, read_timeout: float, seconds: float) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        begin = heard = loop.time()
        while True:
            await self._wire.passes()
            if self._weather.silent:
                await self._wait(heard + read_timeout - loop.time())
                if loop.time() >= heard + read_timeout:
                    raise Unsure("the watch has been silent for too long")
                continue
            if self._weather.cut or watch.epoch != self._api.storage.epoch:
                raise Unsure("the watch was cut")
            if self._weather.closes:
                return
            for happened, told in list(watch.lines()):
                line = told
                if self._weather.ends > 0:
                    self._weather.ends -= 1
                    return
                due = happened + self._weather.behind()
                await asyncio.sleep(max(0.0, due - loop.time()) + self._weather.chance.uniform(0.0001, 0.003))
                await self._wire.passes()
                if self._weather.cut or self._weather.silent or watch.epoch != self._api.storage.epoch:
                    raise Unsure("the watch was cut")
                if self._weather.garbage > 0:
                    self._weather.garbage -= 1
                    line = b"<html>Welcome</html>"
                yield line
                if self._weather.repeats > 0:
                    self._weather.repeats -= 1
                    yield line
                heard = loop.time()
            if watch.position < len(self._api.storage.history):
                continue
            if not self._served(watch):
                return
            if watch.is_torn_down():
                await asyncio.sleep(_TEAR_DOWN_SECONDS)
                return
            left = begin + seconds - loop.time()
            if left <= 0:
                return
            await self._wait(min(left, heard + _BOOKMARK_SECONDS - loop.time()))
            if loop.time() >= heard + _BOOKMARK_SECONDS:
                heard = loop.time()
                yield watch.bookmark()

    def _served(self, watch: Watch) -> bool:
        kind = watch.address.kind
        return any((k.resource, k.version) == (kind.resource, kind.version) for k in self._api.kinds())

    async def _wait(self, seconds: float) -> None:
        """Wait until something happens, for so long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._signal.event.wait()


class WatchStream:
    """Implements ports.Stream."""

    def __init__(self, status: int, reply: Reply | None, lines: AsyncGenerator[bytes, None]) -> None:
        self.status = status
        self.reply = reply
        self._lines = lines

    @classmethod
    def refused(cls, reply: Reply) -> "WatchStream":
        """What comes instead of a watch."""
        return cls(reply.status, reply, _each())

    def lines(self) -> AsyncIterator[bytes]:
        """See ports.Stream."""
        return self._lines

    async def close(self) -> None:
        """Whoever leaves early leaves nothing running."""
        await self._lines.aclose()


def _now() -> float:
    """Seconds since the world began."""
    return asyncio.get_running_loop().time()


async def _each(*lines: bytes) -> AsyncGenerator[bytes, None]:
    for line in lines:
        yield line
