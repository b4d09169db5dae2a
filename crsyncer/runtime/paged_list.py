"""Lists a collection, consistently and cheaply: where objects are known, first only the versions (S9.4).

Measured per object of 2.2 KB, on the wire, in pages of 500: whole 883 bytes, metadata only 45, for API servers compress
answers above 128 KiB (about 150 objects' metadata). A Table of the versions alone has 88 and is not compressed, and
needs printer columns that no known CRD has. So the digest is the list of metadata, also of small collections, where it
is a third of the whole.

Pages are as large as the objects and the line allow (core/watching/pages.py). A page that fails in the middle of a list
is requested again, smaller, and the list goes on from there: a continue token belongs to the list, not to the
connection. Where the token has expired (410), the list goes on with the token that the server then offers. Such a list
is of two moments: it shows every object, and proves no absence (Kubernetes documentation, API concepts, "Retrieving
large results sets in chunks"). A watch from the first moment shows changes, and a digest shows absences. The same is
true of a list that goes on after an outage: the cluster may have been restored meanwhile, and have another history.

Changed objects are then fetched. One object costs 3 KB with its headers, so up to a quarter of the collection is
fetched one by one, by name; else everything. Gateways in the cloud let through a single label selector: for a filtered
kind there it is everything as soon as anything has changed. After a restart of the API server nothing has, mostly.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from crsyncer.core.model import Json, Key, ObjectVersion
from crsyncer.core.requests import calls
from crsyncer.core.requests.answers import is_inconclusive
from crsyncer.core.watching.backoff import RETRY, capped, spread
from crsyncer.core.watching.pages import PageLimit
from crsyncer.core.watching.watch import WatchStep, listed_at, newer, read_answer, version_of
from crsyncer.errors import TooLarge, Unsure
from crsyncer.ports import Reply
from crsyncer.runtime.collection_state import CollectionState
from crsyncer.runtime.event_loop import give_way
from crsyncer.runtime.waits import chance

log = logging.getLogger(__name__)

_WORTH_A_DIGEST = 5
"""Copies; of fewer, the whole list is as cheap as asking twice."""
_SINGLES = 64
_AT_ONCE = 4
_TRIES = 6
"""Times in a row that one page of a list may fail before the list is given up."""
_LATE_SECONDS = 5.0
"""How far a watch may be behind a list."""
_DIGEST_PAGE = 500
"""Objects on the first page of a digest: above 128 KiB, so that it is compressed."""

Take = Callable[[Json, bool, str], None]
"""Takes an object of a page, whether it is whole, and the list's resourceVersion."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that has been read to its end, and from which resourceVersion a watch goes on."""

    resource_version: str
    consistent: bool = True
    """Every page is of this very resourceVersion. If not, an object that the list does not show may exist."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """The rest of a list: its first page's resourceVersion ("": it has none yet), and the next one's token."""

    resource_version: str = ""
    token: str = ""
    cluster: str | None = None


_WHOLE = _Rest()


class PagedList:
    """Lists one collection. `by_name`: its objects may also be listed one by one, by name."""

    def __init__(self, state: CollectionState, *, page: PageLimit, by_name: bool) -> None:
        self._state = state
        self._connection = state.connection
        self._collection = state.collection
        self._limits = {calls.JSON: page, calls.PARTIAL_LIST: PageLimit(_DIGEST_PAGE)}
        self._by_name = by_name
        self._rest = _WHOLE
        """The rest of the last list of whole objects, where its connection was lost."""

    @property
    def goes_on(self) -> bool:
        """Whether the last list was cut off in the middle, so that the next one goes on there."""
        return bool(self._rest.token) and self._rest.cluster == self._connection.cluster_identity

    def begin_anew(self) -> None:
        """The next list begins at its first page, because it must show the present."""
        self._rest = _WHOLE

    async def deliver(self) -> Listing | WatchStep:
        """Show every object that is not known; the step to take where the answer was an error.

        Raises Unsure when there was no answer.
        """
        if not self.goes_on:
            found = await self._by_digest() if self._state.are_comparable(_WORTH_A_DIGEST) else None
            if found is not None:
                return found
            self._state.list_begins()
            self.begin_anew()
        return await self.read(calls.JSON, lambda raw, _, version: self._state.list_shows(raw, version), self._rest)

    async def agrees(self) -> bool:
        """Whether a digest shows just the known objects. The watch goes on meanwhile.

        Raises Unsure when there was no answer, or no list.
        """
        state = self._state
        shown: set[Key] = set()
        odd: list[ObjectVersion] = []

        def take(raw: Json, _whole: bool, _listed_at: str) -> None:
            version = state.version_of(raw)
            if version is not None:
                shown.add(version.key)
                if not state.knows(version):
                    odd.append(version)

        listing = await self.read(calls.PARTIAL_LIST, take)
        if not isinstance(listing, Listing) or not listing.consistent:
            raise Unsure(f"the {self._connection.name} did not list {self._collection.path} in time")
        listed_at = listing.resource_version
        if not odd and not state.missing(shown, listed_at):
            return True
        await asyncio.sleep(_LATE_SECONDS)
        objects = state.handler.objects
        return not state.missing(shown, listed_at) and all(
            state.knows(version) or (version.key in objects and newer(objects[version.key].resource_version, listed_at))
            for version in odd
        )

    async def read(self, accept: str, take: Take, rest: _Rest = _WHOLE) -> Listing | WatchStep:
        """Hand every object of a list to `take`, page by page; or the step to take when an answer was an error.

        Raises Unsure when there was no answer.
        """
        begun, resume, consistent = rest.resource_version, rest.token, not rest.token
        while True:
            reply = await self._page(accept, resume)
            if reply.status == 410 and (token := _offered(reply)) not in ("", resume):
                log.info("the list of %s goes on with a new token: the last one has expired", self._collection.path)
                resume, consistent = token, False
                continue
            if reply.status != 200:
                self.begin_anew()
                return read_answer(reply.status, reply.body, retry_after=reply.retry_after)
            version = listed_at(reply.body)
            if not version:
                return Unsure("a list was asked for, and the answer is none")
            begun = begun or version
            self._state.page_arrives(version)
            whole = reply.body.get("kind") != calls.PARTIAL_LIST_KIND
            for raw in reply.body["items"] or []:
                take(raw, whole, version)
            resume = reply.body["metadata"].get("continue") or ""
            if accept == calls.JSON:
                self._rest = _Rest(begun, resume, self._connection.cluster_identity)
            if not resume:
                return Listing(begun, consistent)
            await give_way()  # a long list must not keep live changes waiting

    async def _page(self, accept: str, resume: str) -> Reply:
        """One page; one in the middle of a list is asked for again when it fails. Raises Unsure as `request` does."""
        loop, limit = asyncio.get_running_loop(), self._limits[accept]
        failures = 0
        while True:
            call = calls.list_page(self._collection, limit=limit.limit, resume=resume, accept=accept)
            began = loop.time()
            wait = 0.0
            try:
                reply = await self._connection.request(call)
            except TooLarge:
                if not limit.halve():
                    raise
                continue
            except Unsure:
                limit.halve()
                failures += 1
                if not resume or failures == _TRIES:
                    raise
            else:
                if reply.status == 200:
                    limit.arrived(len(reply.body.get("items") or ()), reply.size, loop.time() - began)
                    return reply
                failures += 1
                if not resume or failures == _TRIES or not is_inconclusive(reply.status):
                    return reply
                if reply.status >= 500:
                    limit.halve()
                wait = spread(capped(reply.retry_after), chance())
            await self._connection.waits.sleep(max(wait, RETRY.wait(failures - 1, chance())))

    async def _by_digest(self) -> Listing | WatchStep | None:
        """The list by its digest; None where so much has changed that everything has to be fetched."""
        shown = 0
        changed: list[Key | None] = []

        def take(raw: Json, whole: bool, version: str) -> None:
            nonlocal shown
            shown += 1
            if whole:
                self._state.list_shows(raw, version)
                return
            found = self._state.version_of(raw)
            if found is None and self._state.is_stranger(raw):
                return
            if found is None or not self._state.is_current(found, version):
                own = version_of(raw)  # the object is asked for by the name that the server calls it
                changed.append(own.key if own is not None and found is not None else None)

        self._state.list_begins()
        listing = await self.read(calls.PARTIAL_LIST, take)
        if not isinstance(listing, Listing) or not changed:
            return listing
        keys = [key for key in changed if key is not None]
        if not self._by_name or len(keys) < len(changed) or len(keys) > min(_SINGLES, shown // 4):
            return None
        return listing if await self._fetch(keys) else None

    async def _fetch(self, keys: list[Key]) -> bool:
        """Fetch some objects; False when an answer was an error. The watch shows deletions since the list."""
        for start in range(0, len(keys), _AT_ONCE):
            wanted = [calls.list_one(self._collection, key) for key in keys[start : start + _AT_ONCE]]
            for reply in await asyncio.gather(*(self._connection.request(call) for call in wanted)):
                version = listed_at(reply.body)
                if reply.status != 200 or not version:
                    return False
                for raw in reply.body["items"] or []:
                    self._state.list_shows(raw, version)
        return True


def _offered(reply: Reply) -> str:
    """The continue token with which an expired list can go on, where the server offers one."""
    return str((reply.body.get("metadata") or {}).get("continue") or "")
