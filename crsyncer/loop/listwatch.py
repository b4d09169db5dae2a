"""Lists and watches one collection: carries answers to core.watch and obeys (S9.1, S9.2, S8.2)."""

import asyncio
import logging
import random
from enum import StrEnum
from typing import Any, Protocol, cast

from crsyncer.core import calls
from crsyncer.core.model import Json
from crsyncer.core.queue import backoff
from crsyncer.core.watch import (
    Denied,
    Emit,
    EventType,
    Haste,
    Lost,
    Missing,
    Moved,
    Relist,
    Rewatch,
    Step,
    read_answer,
    read_line,
)
from crsyncer.errors import Refused, Unsure
from crsyncer.loop.side import SideLink
from crsyncer.ports import Reply

log = logging.getLogger(__name__)

_GRACE_SECONDS = 15
_FIRST_RETRY_SECONDS = 1.0
_LAST_RETRY_SECONDS = 60.0


class Phase(StrEnum):
    """Where a list-watch stands, for `status`."""

    WAITING = "waiting"
    LISTING = "listing"
    WATCHING = "watching"
    MISSING = "missing"
    FORBIDDEN = "forbidden"


class Coverage(StrEnum):
    """What an object that is not there means."""

    NONE = "none"
    """Nothing: the side has not been listed, or is out of reach."""
    RESUMED = "resumed"
    """It was absent at the cursor, and the watch has gone on from there; not enough to delete on."""
    COMPLETE = "complete"
    """A consistent list of this connection says it is absent."""


class Sink(Protocol):
    """Takes what a list-watch delivers, in the server's order."""

    def cursor(self) -> str | None:
        """The resourceVersion to go on from; None: a list is needed."""
        ...

    def moved(self, resource_version: str | None) -> None:
        """Everything up to here has been delivered; None: the cursor is worth nothing."""
        ...

    def listing(self, reason: str) -> None:
        """A full list begins."""
        ...

    def item(self, raw: Json) -> None:
        """The list shows an object."""
        ...

    def listed(self, resource_version: str) -> None:
        """The list is complete: what it did not show is gone."""
        ...

    def event(self, event_type: EventType, raw: Json) -> None:
        """The watch shows a change."""
        ...

    def resumed(self) -> None:
        """The watch goes on from a cursor."""
        ...

    def covers(self, coverage: Coverage) -> None:
        """What an absent object means has changed."""
        ...

    def went_back(self) -> None:
        """The cluster is older than the cursor: it was restored."""
        ...

    def rebooted(self) -> bool:
        """Whether the side's machine has booted since the cursor, so that a list is needed all the same."""
        ...

    def noticed(self) -> None:
        """The phase has changed."""
        ...


class ListWatch:
    """Keeps a sink true, forever. `watch_timeout` is in seconds, for one watch."""

    def __init__(self, link: SideLink, sink: Sink, *, path: str, selector: str, page: int, watch_timeout: int) -> None:
        self.link = link
        self.phase = Phase.WAITING
        self.message = ""
        self._sink = sink
        self._path = path
        self._selector = selector
        self._page = page
        self._watch_timeout = watch_timeout
        self._haste = Haste()
        self._failures = 0
        self._reason = "first"
        self._unsure = True
        """Whether the cluster may have gone back in time since the last watch."""
        self._cut_short = False
        """Whether the last watch was ended before its time: the next may be answered by another server."""
        self._just_listed = False
        """Whether the cursor comes from a list that no watch has followed yet."""
        self._interrupt = asyncio.Event()
        self._awaiting: list[asyncio.Future[None]] = []

    async def fresh_list(self, reason: str) -> None:
        """Return when a consistent list that began after this call has been delivered.

        Raises Unsure when the side did not answer, Refused when the collection is not served or may not be listed.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaiting.append(done)
        self._reason = reason
        self._interrupt.set()
        await done

    async def run(self) -> None:
        """List and watch, forever."""
        while True:
            await self.link.up.wait()
            step = await self._until_down()
            if not isinstance(step, Rewatch):
                self._sink.covers(Coverage.NONE)
                self._unsure = True
            if isinstance(step, Lost | Missing | Denied):
                self._settle(step)
            await self._obey(step)

    async def _until_down(self) -> Step:
        """One round, given up when the side turns out to be down: a watch on a dead connection would never say so."""
        tasks: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(self._round()),
            asyncio.ensure_future(self.link.down.wait()),
            asyncio.ensure_future(self._interrupt.wait()),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0] in done:
                return cast("Step", tasks[0].result())
            return Lost(f"the {self.link.side} is {self.link.state}") if tasks[1] in done else Relist(self._reason)
        except Unsure as error:
            return Lost(str(error))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _settle(self, step: Step | None) -> None:
        """Answer those who wait for a fresh list: None, it is there; else why it is not."""
        waiting, self._awaiting = self._awaiting, []
        for done in waiting:
            if done.done():
                continue
            match step:
                case None:
                    done.set_result(None)
                case Missing() | Denied():
                    done.set_exception(Refused(f"the {self.link.side} does not list {self._path}"))
                case _:
                    done.set_exception(Unsure(f"the {self.link.side} did not answer"))

    async def _obey(self, step: Step) -> None:
        match step:
            case Relist(reason=reason):
                self._reason = reason
                self._sink.moved(None)
                if self._interrupt.is_set():
                    self._interrupt.clear()
                else:
                    await self._back_off(self._failures > 0)
            case Rewatch(pause=pause):
                await asyncio.sleep(pause * random.uniform(1.0, 1.5))  # noqa: S311 - never earlier than asked for
            case Lost(reason=reason):
                log.info("%s: watch of %s lost: %s", self.link.side, self._path, reason)
                self._set(Phase.WAITING, reason)
                self.link.doubt(reason)
                await self._back_off(self._failures > 0)
            case Missing():
                self._set(Phase.MISSING, f"the {self.link.side} does not serve {self._path}")
                await self._back_off(True)
            case Denied(status=401, message=message):
                self._set(Phase.WAITING, message)
                self.link.doubt(message)
                await self._back_off(True)
            case Denied(message=message):
                self._set(Phase.FORBIDDEN, message)
                self.link.cluster.refresh_credentials()
                await self._back_off(True)

    async def _round(self) -> Step:
        version = self._sink.cursor()
        resumed = version is not None and not self._just_listed
        if version is not None and (self._unsure or self._cut_short):
            await self.link.verified()
            if self.link.revision == 0:
                return Relist("unverified")
            if self._went_back(version):
                self._sink.went_back()
                return Relist("restored")
            if self._sink.rebooted():
                return Relist("rebooted")
        if version is None:
            answer = await self._list()
            if not isinstance(answer, str):
                return answer
            version = answer
        return await self._watch(version, resumed=resumed)

    def _went_back(self, version: str) -> bool:
        """A list revision below the cursor: the cluster was restored. A watch would be silent about it (S8.2)."""
        return version.isdigit() and self.link.revision < int(version)

    async def _list(self) -> str | Step:
        self._set(Phase.LISTING, "")
        self._sink.listing(self._reason)
        resume = ""
        while True:
            reply = await self.link.request(
                calls.list_page(self._path, self._selector, limit=self._page, resume=resume)
            )
            if reply.status != 200:
                return _answer(reply)
            for raw in reply.body.get("items") or []:
                self._sink.item(raw)
            metadata = reply.body.get("metadata") or {}
            resume = metadata.get("continue") or ""
            if not resume:
                break
            await asyncio.sleep(0)  # a long list must not keep live changes waiting
        version = str(metadata.get("resourceVersion") or "")
        self._sink.listed(version)
        self._sink.moved(version)
        self._just_listed = True
        self._sink.covers(Coverage.COMPLETE)
        self._settle(None)
        return version

    async def _watch(self, version: str, *, resumed: bool) -> Step:
        seconds = round(self._watch_timeout * random.uniform(0.8, 1.6))  # noqa: S311
        call = calls.watch(self._path, self._selector, resource_version=version, timeout_seconds=seconds)
        started = asyncio.get_running_loop().time()
        events = 0
        async with self.link.cluster.watch(call, read_timeout=seconds + _GRACE_SECONDS) as stream:
            if stream.reply is not None:
                return _answer(stream.reply)
            self._watching(resumed=resumed)
            async for line in stream.lines():
                self.link.heard()
                event = read_line(line)
                match event:
                    case Moved(resource_version=version):
                        self._sink.moved(version)
                    case Emit(type=event_type, raw=raw, resource_version=version):
                        self._sink.event(event_type, raw)
                        self._sink.moved(version)
                        events += 1
                    case _:
                        return event
                self._failures = 0
        lived = asyncio.get_running_loop().time() - started
        if lived < seconds - 1:
            self._cut_short = True
            self.link.doubt("a watch was ended before its time")
        return self._haste.ended(lived_seconds=lived, events=events)

    def _watching(self, *, resumed: bool) -> None:
        self.link.heard()
        if resumed:
            self._sink.resumed()
            if self._unsure:
                self._sink.covers(Coverage.RESUMED)
        self._unsure = self._cut_short = self._just_listed = False
        self._set(Phase.WATCHING, "")

    def _set(self, phase: Phase, message: str) -> None:
        if (phase, message) != (self.phase, self.message):
            self.phase, self.message = phase, message
            self._sink.noticed()

    async def _back_off(self, needed: bool) -> None:
        if needed:
            seconds = backoff(self._failures, first=_FIRST_RETRY_SECONDS, last=_LAST_RETRY_SECONDS)
            await asyncio.sleep(seconds * random.uniform(0.5, 1.0))  # noqa: S311
        self._failures += 1


def _answer(reply: Reply) -> Step:
    return read_answer(reply.status, reply.body, retry_after=reply.retry_after)
