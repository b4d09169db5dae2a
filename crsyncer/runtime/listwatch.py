"""Lists and watches one collection, and decides when a list is needed instead of a watch (S9.1, S9.2, S8.2).

`core/watching/watch.py` reads the answers; `resume_check.py` proves that a watch may go on from the cursor.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from crsyncer.core.model import Freshness
from crsyncer.core.requests import calls
from crsyncer.core.watching.backoff import RETRY, UNSERVED, Backoff, spread
from crsyncer.core.watching.pages import PageLimit
from crsyncer.core.watching.progress import Progress
from crsyncer.core.watching.restore_detection import Checkpoint, History, Replay
from crsyncer.core.watching.watch import (
    Bookmark,
    Emit,
    EmptyWatches,
    ListReason,
    Relist,
    Rewatch,
    WatchStep,
    is_shared,
    keeps_cursor,
    read_answer,
    read_line,
)
from crsyncer.errors import NotAllowed, NotServed, SyncError, Unsure
from crsyncer.runtime.collection_state import CollectionState
from crsyncer.runtime.paged_list import Listing, PagedList
from crsyncer.runtime.resume_check import ResumeCheck
from crsyncer.runtime.waits import CATCH_UP_SECONDS, chance, first_of

log = logging.getLogger(__name__)

_GRACE_SECONDS = 15
_SPREAD_SECONDS = 5.0
"""Over how long the robots of a cloud spread a list that all of them need: a live change waits half of it."""
_STEADY_SECONDS = 1.0
"""A watch that was open for so long has worked, also without an event."""
_LEARN_SECONDS = 5.0
_REFUSALS = (NotServed, NotAllowed)
_INCONSISTENT = Backoff(15.0, 3600.0)
"""The wait before the next list, by digest, after a list that proves no absence: the watch has caught up by then."""


class Phase(StrEnum):
    """What a list-watch does at present, for `status`."""

    WAITING = "waiting"
    LISTING = "listing"
    WATCHING = "watching"
    MISSING = "missing"
    FORBIDDEN = "forbidden"


class ListWatch:
    """Keeps the objects of a collection up to date, forever.

    `watch_timeout` is in seconds, for one watch; `by_name` is as of PagedList.
    """

    def __init__(
        self,
        state: CollectionState,
        *,
        page: PageLimit,
        by_name: bool,
        watch_timeout: int,
    ) -> None:
        self.connection = state.connection
        self.paged_list = PagedList(state, page=page, by_name=by_name)
        self.phase = Phase.WAITING
        self.message = ""
        self.listed_at = -math.inf
        """When it was listed last, in event loop time."""
        self.open_watch: Progress | None = None
        """The watch that is open; it moves with each line."""
        self.unwatched: float | None = None
        """Since when no watch is open, in event loop time, seconds; None: one is open, or none was tried yet."""
        self.state = state
        self._handler = state.handler
        self._path = state.collection.path
        self._resume_check = ResumeCheck(state.connection, state.collection)
        self._watch_timeout = watch_timeout
        self._empty_watches = EmptyWatches()
        self._opened_at = math.inf
        self._resumed_at = -math.inf
        """When the watch of this round was opened, and when one went on from a cursor last, in event loop time."""
        self._failures = 0
        self._reason: StrEnum = ListReason.FIRST
        self._may_be_restored = True
        """Whether the cluster may have been restored since the last list or watch."""
        self._cut_short = False
        """Whether the last watch ended before its time: another server may answer the next one."""
        self._just_listed = False
        """Whether the cursor comes from a list that no watch has followed yet."""
        self._checkpoint: Checkpoint | None = None
        """The newest object known when the last watch ended; None: a list or watch is newer."""
        self._oldest = ""
        """The oldest resourceVersion that the server still has, where its history is not proven."""
        self._inconsistent = 0
        """How many lists in a row were not consistent."""
        self._revision_before, self._history_before = 0, ""
        """The highest known revision when the list began, and the history that it is of."""
        self._list_due = False
        """Whether a list is due although there is a cursor."""
        self._interrupt = asyncio.Event()
        self._callers: list[asyncio.Future[None]] = []

    async def fresh_list(self, reason: StrEnum) -> None:
        """Return when a consistent list that began after this call has been delivered.

        Raises Unsure when the server did not answer, NotServed when the collection is not served, NotAllowed when the
        credential is not accepted or may not list it.
        """
        loop = asyncio.get_running_loop()
        self._callers.append(done := loop.create_future())
        if (caught_up := self._resumed_at + CATCH_UP_SECONDS) > loop.time():
            loop.call_at(caught_up, self._ask_for_list, reason, done)  # no list shows the last status of what is gone
        else:
            self._ask_for_list(reason)
        await done

    async def run(self) -> None:
        """List and watch, forever."""
        self._checkpoint = self.state.checkpoint()
        with self.connection.history.joined(self):
            refused = False
            while True:
                await self.connection.up.wait()
                step = await self._next_step()
                await self._carry_out(step, refused=refused)
                refused = isinstance(step, _REFUSALS)

    def checkpoint(self) -> Checkpoint | None:
        """The newest object that was seen before the watch ended."""
        return self._checkpoint or self.state.checkpoint()

    def restored(self) -> None:
        """Another collection shows that the cluster was restored."""
        self.state.restored()
        self._checkpoint = None
        self._ask_for_list(ListReason.RESTORED)

    async def _next_step(self) -> WatchStep:
        """List or watch until something has to be done about it."""
        self._opened_at = math.inf
        step = await self._until_down()
        in_time = isinstance(step, Rewatch) and not self._cut_short
        if not in_time and not isinstance(step, _REFUSALS):  # these are answers of the server that was known
            self.connection.history.doubt()
        self.open_watch = None
        if asyncio.get_running_loop().time() - self._opened_at >= _STEADY_SECONDS:
            self._failures = 0
        if not isinstance(step, Rewatch):
            self._handler.freshness_changed(Freshness.STORED)
            self._may_be_restored = True
        if self._checkpoint is None and (self._may_be_restored or self._cut_short):
            self._checkpoint = self.state.checkpoint()  # now: later objects may be of another history
        if isinstance(step, NotServed):
            step = NotServed(f"the {self.connection.name} does not serve {self._path}")
        if isinstance(step, SyncError):
            refused = isinstance(step, _REFUSALS)
            self._answer_callers(step if refused else Unsure(f"the {self.connection.name} did not answer"))
        return step

    async def _until_down(self) -> WatchStep:
        """One round, cancelled when the server turns out to be down: a watch on a dead connection would never end."""
        try:
            step = await first_of(self.connection.while_up(self._round()), self._interrupt)
        except Unsure as error:
            return error
        return Relist(self._reason) if isinstance(step, asyncio.Event) else step

    def _answer_callers(self, error: SyncError | None) -> None:
        """Answer the callers of `fresh_list`. None: the list was delivered; else the reason why it was not."""
        waiting, self._callers = self._callers, []
        for done in (each for each in waiting if not each.done()):
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    async def _carry_out(self, step: WatchStep, *, refused: bool) -> None:
        """Do what the step asks for. `refused`: the step before was a refusal, and the pause for that is over."""
        match step:
            case Relist(reason=reason):
                self._reason = reason
                if reason is ListReason.RESTORED:
                    self._interrupt.clear()  # it may come from another collection, and is no hurry either
                if self._interrupt.is_set() or keeps_cursor(reason):
                    self._list_due = True  # the cursor stays: if the list fails, the next round tries it again
                else:
                    self.state.drop_cursor()
                if not self._interrupt.is_set() and self._failures == 0 and is_shared(reason):
                    await self._pause(_SPREAD_SECONDS * chance())
                if not self._interrupt.is_set() and not refused:
                    await self._back_off(self._failures > 0)
                self._interrupt.clear()
            case Rewatch(pause=pause):
                await self.connection.waits.sleep(spread(pause, chance()))
            case NotServed():
                self._set(Phase.MISSING, str(step))
                await self._back_off(True, UNSERVED)
            case NotAllowed(status=401):
                self._set(Phase.WAITING, str(step))
                self.connection.probe_soon(str(step))
                await self._back_off(True)
            case NotAllowed():
                self._set(Phase.FORBIDDEN, str(step))
                self.connection.cluster.refresh_credentials()
                await self._back_off(True, UNSERVED)
            case SyncError():
                log.info("%s: watch of %s lost: %s", self.connection.name, self._path, step)
                self._set(Phase.WAITING, str(step))
                self.connection.probe_soon(str(step))
                if not self.connection.down.is_set():  # else `run` waits until it is up
                    await self._back_off(self._failures > 0)

    async def _round(self) -> WatchStep:
        # The callers of `fresh_list` keep waiting where the server only asked for a pause.
        if self._list_due and self._reason is ListReason.NO_REVISION and not self._callers:
            # Before the pause the server did not show its revision; a list is needed only if it still does not.
            await self.connection.wait_probed(since=asyncio.get_running_loop().time())
            self._list_due = self.connection.revision == 0
        wanted, self._list_due = self._list_due or bool(self._callers), False
        is_checked = wanted and keeps_cursor(self._reason)  # the resume check is what asked for this list
        if (self._may_be_restored or self._cut_short) and not is_checked:
            # Also before a list, whoever needs it: a list of a restored cluster may look like one of our history.
            obstacle = await self._resume_obstacle()
            if obstacle is not None:
                self._list_due = wanted
                return obstacle
        version = None if wanted else self.state.cursor()
        resumed = version is not None and not self._just_listed
        if version is None:
            has_oldest = bool(self._oldest)
            answer = await self._list()
            if not isinstance(answer, Listing):
                return answer
            version = answer.resource_version
            if not has_oldest and self.state.checkpoint() is None:
                await self._learn_oldest()
        step = await self._watch(version, resumed=resumed)
        if isinstance(step, Relist) and not resumed and self.state.cursor() == version:
            self._just_listed = False  # expired at once: perhaps another server answers now (S8.3)
            return Unsure("the resourceVersion of the list that was just taken has expired")
        return step

    async def _resume_obstacle(self) -> WatchStep | None:
        """Why neither a watch from the cursor nor a list may follow (S8.2); None: one may."""
        proof = await self._resume_check.prove(self)
        has_cursor = self.state.cursor() is not None
        match proof:
            case Replay(history=History.SAME):
                return self._rebooted() if has_cursor else None
            case Replay(history=History.OTHER):
                return Relist(ListReason.RESTORED)
            case Replay(oldest=oldest):
                was_listed = has_cursor and self._resume_check.was_listed(oldest)
                self._oldest = "" if was_listed else oldest
                if not has_cursor:
                    return None
                return self._rebooted() or (None if was_listed else Relist(ListReason.UNPROVEN))
            case Relist() if not has_cursor:
                return None  # a list comes anyway
            case _:
                return proof

    async def _learn_oldest(self) -> None:
        """Note the oldest resourceVersion that the server still has.

        Where no collection has an object, it is the only proof that a later watch may resume.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEARN_SECONDS):
                self._resume_check.note_listed(await self._resume_check.learn_oldest())

    def _rebooted(self) -> Relist | None:
        return Relist(ListReason.REBOOTED) if self.state.rebooted() else None

    async def _list(self) -> Listing | WatchStep:
        self._set(Phase.LISTING, "")
        reason = self._reason
        if not self.paged_list.goes_on:
            self.state.list_wanted(reason)
            self._history_before = self.connection.history_identity
            self._revision_before = self.connection.history.highest_revision(self._history_before)
        listing = await self.paged_list.deliver()
        if not isinstance(listing, Listing):
            return listing
        version = listing.resource_version
        if version.isdigit() and int(version) < self._revision_before:
            self.state.notice_restore()  # since the last probe, or no probe came before this list
        else:
            self.state.list_ends(version, consistent=listing.consistent)
        if self.connection.history_identity != self._history_before:
            return Relist(ListReason.RESTORED)  # what the list showed before that was noticed is distrusted, too
        self.state.set_cursor(version)
        log.info("%s %s is listed: %s", self.connection.name, self.state.name, reason)
        self.listed_at = asyncio.get_running_loop().time()
        self._just_listed = True
        self._checkpoint = None
        self._cut_short = False
        self._inconsistent = 0 if listing.consistent else self._inconsistent + 1
        self._may_be_restored = not listing.consistent  # the watch shows changes; a later list shows absences
        if listing.consistent:
            self._resume_check.note_listed(self._oldest)
            self._oldest = ""
            self._handler.freshness_changed(Freshness.CONFIRMED)
            self._answer_callers(None)
        return listing

    async def _watch(self, version: str, *, resumed: bool) -> WatchStep:
        seconds = round(self._watch_timeout * (0.8 + 0.8 * chance()))
        call = calls.watch(self.state.collection, resource_version=version, timeout_seconds=seconds)
        started = asyncio.get_running_loop().time()
        events = 0
        name = f"the {self.connection.name}'s watch of {self._path}"
        async with self.connection.cluster.watch(call, read_timeout=seconds + _GRACE_SECONDS) as stream:
            if stream.reply is not None:
                reply = stream.reply
                return read_answer(reply.status, reply.body, retry_after=reply.retry_after)
            self._watching(resumed=resumed)
            self.open_watch = Progress(name, self._opened_at, seconds + _GRACE_SECONDS)
            with self._listed_again_later():
                async for line in stream.lines():
                    self.connection.note_answer()
                    self.open_watch = replace(self.open_watch, since=self.connection.active_at)
                    event = read_line(line)
                    match event:
                        case Bookmark(resource_version=version):
                            self.state.set_cursor(version)
                        case Emit(type=event_type, raw=raw, resource_version=version):
                            self.state.watch_shows(event_type, raw)
                            self.state.set_cursor(version)
                            events += 1
                        case _:
                            return event
                    self._failures = 0
        lived = asyncio.get_running_loop().time() - started
        if lived < seconds - 1:
            self._cut_short = True
            self.connection.probe_soon("a watch was ended before its time")
        return self._empty_watches.ended(lived_seconds=lived, events=events)

    def _watching(self, *, resumed: bool) -> None:
        self._opened_at = asyncio.get_running_loop().time()
        self.connection.note_answer()
        if resumed:
            self._resumed_at = self._opened_at
            self.state.watch_resumes()
        if self._may_be_restored:  # also where the connection was lost between a list and its first watch
            self._handler.freshness_changed(Freshness.RESUMED)
        self._checkpoint = None
        self._may_be_restored = self._cut_short = self._just_listed = False
        self.paged_list.begin_anew()
        self._set(Phase.WATCHING, "")

    @contextlib.contextmanager
    def _listed_again_later(self) -> Iterator[None]:
        """After a list that proves no absence, another one interrupts the watch when that has caught up."""
        if not self._inconsistent:
            yield
            return
        wait = _INCONSISTENT.wait(self._inconsistent - 1, chance())
        timer = asyncio.get_running_loop().call_later(wait, self._ask_for_list, ListReason.INCONSISTENT)
        try:
            yield
        finally:
            timer.cancel()

    def _ask_for_list(self, reason: StrEnum, done: asyncio.Future[None] | None = None) -> None:
        if done is None or not done.done():  # else another list has answered meanwhile
            self.paged_list.begin_anew()
            self._reason = reason
            self._interrupt.set()

    def _set(self, phase: Phase, message: str) -> None:
        if (phase, message) != (self.phase, self.message):
            self.phase, self.message = phase, message
            watched = phase is Phase.WATCHING
            self.unwatched = None if watched else self.unwatched or asyncio.get_running_loop().time()
            self._handler.phase_changed()

    async def _back_off(self, needed: bool, backoff: Backoff = RETRY) -> None:
        if needed:
            await self._pause(backoff.wait(self._failures, chance()))
        self._failures += 1

    async def _pause(self, seconds: float) -> None:
        """Wait, unless a fresh list is asked for."""
        await first_of(self.connection.waits.sleep(seconds), self._interrupt)
