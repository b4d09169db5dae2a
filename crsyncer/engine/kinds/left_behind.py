"""Finds the copies that an edited selection leaves behind, and has them deleted or held (C1.7).

Where downstream has the kind that it had, they are among the copies of the cache: they are deleted like all copies
whose objects are gone, with their related copies. Where an edited projection names another kind in the cloud, they are
deleted here, from where they were.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from crsyncer.core.content.object_content import key_of, stamp_of
from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.kinds.naming import original_in
from crsyncer.core.model import Freshness, Gap, Json, Key, Observation
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.actions import HoldReason, SendStatus
from crsyncer.core.pair.decide import decide, is_signed, may_delete
from crsyncer.core.pair.project import objection, view_of
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.reports.text import brief, count, some
from crsyncer.core.requests.answers import is_still_there
from crsyncer.core.requests.calls import Collection
from crsyncer.engine.caching.creates import LATEST_SECONDS, unanswered_creates
from crsyncer.engine.caching.informer_set import InformerSet
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.former_places import FormerCopy, FormerPlace, FormerPlaces, Obstacle
from crsyncer.engine.pairs.hold_driver import HoldDriver
from crsyncer.engine.pairs.reconciler import Reconciler
from crsyncer.errors import Never, NotAllowed, NotServed, SyncError, Throttled, Unsure
from crsyncer.runtime import list_objects

log = logging.getLogger(__name__)

_SELECTION = HoldReason.SELECTION_CHANGED


class LeftBehind:
    """What edits of one kind's selection have left behind. `counted()` is called when it is known how much that is."""

    def __init__(
        self,
        reconciler: Reconciler,
        *,
        context: EngineContext,
        informer_set: InformerSet,
        hold_driver: HoldDriver,
        counted: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        reconciler.writer.unwatched_deleted = self._deleted
        self._reconciler = reconciler
        self._cache = reconciler.cache
        self._policy = reconciler.policy
        self._context = context
        self._informer_set = informer_set
        self._hold_driver = hold_driver
        self._holds = hold_driver.holds
        self._counted = counted
        self._connection = context.connections[self._policy.downstream]
        self._places = FormerPlaces(self._policy.resource, context.store)
        self._places.be_at(self._policy.endpoint(self._policy.downstream))
        self._cache.elsewhere = dict.fromkeys(self.originals(), False)
        self._cache.uncounted = self._is_uncounted
        self._obstacles: dict[str, Obstacle] = {}
        """What keeps copies in former places from being deleted, by uid."""
        self._spawn = spawn
        self._task: asyncio.Task[None] | None = None
        self._may_be_back = False
        """Whether copies may be there again that the selector does not match (S8.4)."""
        self._awaits_copies = bool(unanswered_creates(self._cache.records, self._holds.copies))
        """Whether creates before the edit had no answer, so that their copies may come after the count (S10)."""

    def expect_unknown(self) -> None:
        """Until copies are counted, lists may show what no former selection matched: that is no restore (S8.3)."""
        for informer in self._informer_set.on(self._policy.downstream):
            informer.state.selective = self._holds.is_counting

    def originals(self) -> set[Key]:
        """The originals of the copies that are where they were."""
        return {copy.original for each in self._places.places for copy in each.copies.values()}

    def undeleted(self) -> Iterator[tuple[Endpoint, FormerCopy, Obstacle]]:
        """The copies that cannot be deleted from where they are: the place, the copy, and why."""
        for each in self._places.places:
            for uid, copy in each.copies.items():
                if uid in self._obstacles:
                    yield each.place, copy, self._obstacles[uid]
        side = self._policy.downstream
        for key, view in self._holds.copies.items():
            if view.unselected and view.deleted_at:
                why = Obstacle(view.deleted_at, "it waits for its finalizers", is_terminating=True)
                yield self._policy.endpoint(side), FormerCopy(self._cache.name_on(side, key), key), why

    def _is_uncounted(self) -> bool:
        return self._holds.is_counting and bool(self._policy.selector_on(self._policy.downstream))

    def count_again(self) -> None:
        """Downstream may have copies again, or by now, that an edit of the selection has left behind."""
        if self._marks and self._policy.selector_on(self._policy.downstream) and not self._policy.related:
            with self._hold_driver.event() as machine:
                machine.holds.count_selection(self._context.clock())

    def look_again(self) -> None:
        """Downstream has booted: it may have copies again that an edit had left behind, as its last writes are lost."""
        self._may_be_back = bool(self._marks)

    async def _count_late(self) -> None:
        await asyncio.sleep(LATEST_SECONDS)
        self.count_again()
        self.wake()

    def wake(self) -> None:
        """More may be known, or allowed: find what is left behind and have it deleted, where there may be any."""
        if (self._task is None or self._task.done()) and self._has_work():
            self._task = self._spawn(self._work())

    async def _work(self) -> None:
        failures = 0
        while self._has_work():
            if failures:
                await self._connection.waits.back_off(failures - 1)
            try:
                await self._look()
            except SyncError as error:
                log.info("%s: copies without a selected original are not deleted yet: %s", self._policy.resource, error)
            failures += 1

    def _has_work(self) -> bool:
        if not self._connection.up.is_set() or self._reconciler.stopped:
            return False
        if self._holds.is_counting or self._may_be_back or not all(self._cache.elsewhere.values()):
            return all(
                Freshness.STORED not in self._informer_set.freshnesses(side) for side in self._context.connections
            )
        if _SELECTION in self._holds.kind_wide:
            return self._context.holds.group(self._policy.resource, _SELECTION) is None  # nothing is held any more
        if self._holds.held_every() is not None:
            return False
        return bool(self._places.places) or any(
            view.unselected and view.terminating for view in self._holds.copies.values()
        )

    async def _look(self) -> None:
        if self._may_be_back:
            await self._find_unselected()
            self._may_be_back = False
            if any(view.unselected for view in self._holds.copies.values()):
                self.count_again()
        counting = self._holds.is_counting or _SELECTION in self._holds.kind_wide
        if counting:
            incomplete = [side for side in self._context.connections if not self._informer_set.is_complete(side)]
            if incomplete:
                await self._informer_set.fresh(AgentListReason.SELECTION, *incomplete)
        if counting or any(view.unselected for view in self._holds.copies.values()):
            await self._find_unselected()
        there: dict[Key, Json] = {}
        for place in list(self._places.places):
            there |= await self._find(place)  # the place that was left last counts
        self._read(there)
        if counting:
            if not all(map(self._informer_set.is_complete, self._context.connections)):
                raise Unsure("a side was lost while the copies were looked for")
            self._count()
            if self._awaits_copies:
                self._awaits_copies = False
                self._spawn(self._count_late())
        if self._holds.held_every() is None and self._places.places:
            await self._delete()

    def _count(self) -> None:
        upstream, resource = self._policy.upstream, self._policy.resource

        def absent(key: Key, uid: str) -> bool:
            found = self._cache.observe(upstream, key)
            return (found.of(uid) if uid else found.found) is Gap.ABSENT

        former = [copy for each in self._places.places if not each.undone for copy in each.copies.values()]
        with self._hold_driver.event() as machine:
            left = machine.holds.left_behind(absent)
            machine.holds.elsewhere = {copy.original for copy in former}
            left_behind = left | machine.holds.elsewhere
            copies = len(machine.holds.copies) + len(former)
            held = machine.holds.selection_counted(left_behind, copies=copies, now=self._context.clock())
        if held:
            text = f"{_SELECTION}: of {count(copies, 'object')}, {len(left_behind)} have no selected original any more"
            self._context.recorder.record(Fact(self._policy.downstream, resource, None, Action.HELD, "C1.7", text))
        else:
            self._context.holds.clear(resource, reason=_SELECTION)
        self.expect_unknown()
        self._cache.on_freshness()
        self._counted()

    # Copies that the selector does not match

    def _deleted(self, key: Key, gone: bool) -> None:
        """A copy was deleted that no watch shows; its own finalizers may keep it."""
        if gone:
            self._gone(key)
        self.wake()

    def _gone(self, key: Key) -> None:
        self._informer_set.on(self._policy.downstream)[0].absent(key)

    async def _find_unselected(self) -> None:
        """List downstream once without the selector, but for the marks, where that may show other objects."""
        policy, side = self._policy, self._policy.downstream
        if not policy.selector_on(side):
            return
        shown: set[str] = set()
        try:
            for namespace in policy.places_on(side):
                objects = object_calls.collection(policy, side, namespace)
                async for raw in self._list(replace(objects, selector=self._marks)):
                    self._seen(raw, objects.namespace)
                    shown.add(str(raw["metadata"].get("uid")))
        except (NotAllowed, Never) as error:
            log.info("%s: what the store knows of copies counts (C1.7): %s", policy.resource, error)
            shown = {view.uid for view in self._holds.copies.values() if not view.terminating}
        for key in [key for key, view in self._holds.copies.items() if view.unselected and view.uid not in shown]:
            self._gone(key)

    def _seen(self, raw: Json, namespace: str) -> None:
        policy, side = self._policy, self._policy.downstream
        policy.endpoint(side).complete(raw)
        if objection(raw, policy, side, namespace=namespace, leaving=True):
            return
        key = self._cache.key_of(side, raw)
        if key is None:
            return
        known, view = self._holds.copies.get(key), view_of(raw, policy, side, key=key)
        if known is not None and known.unselected and known.uid != view.uid:
            self._gone(key)  # the store knew another copy, and no watch shows that it is gone
            known = None
        is_copy = bool(self._marks) and view.stamp is not None and may_delete(view, policy)
        if view.unselected and (known.uid == view.uid if known is not None else is_copy):
            self._cache.saw(side, key, raw)

    # Copies where the kind was before

    async def _find(self, former: FormerPlace) -> dict[Key, Json]:
        """Find which copies are where they were, by their originals; they are only this robot's (S5.3).

        Those that were made before the kind had a policy bear no marks: only a list of everything shows them.
        """
        found: dict[str, FormerCopy] = {}
        shown: dict[Key, Json] = {}
        try:
            for selector in dict.fromkeys((self._marks, "")):
                if selector or not self._marks or former.copies.keys() - found.keys():
                    async for uid, raw in self._in_place(former.place, selector):
                        known = former.copies.get(uid)
                        if known is not None or selector:
                            name = key_of(raw)
                            found[uid] = known or FormerCopy(name, original_in(raw) or name)
                            shown[found[uid].original] = raw
        except NotServed:
            return {}  # it may be served again: what is there is not gone
        except (NotAllowed, Never) as error:
            log.info("%s: what the store knows of copies counts (C1.7): %s", self._policy.resource, error)
            return {}
        self._places.found(former, found)
        return shown

    async def _in_place(self, place: Endpoint, selector: str) -> AsyncIterator[tuple[str, Json]]:
        """The copies of this robot in a former place, each with its uid. Raises SyncError."""
        there = replace(self._policy, in_cloud=place)
        endpoint = there.endpoint(self._policy.downstream)
        namespaces = self._policy.namespaces.on(self._policy.downstream) if place.namespaced else ()
        for namespace in namespaces or ("",):
            async for raw in self._list(place.objects(namespace, selector)):
                raw |= {"apiVersion": endpoint.api_version, "kind": endpoint.kind}
                sound = not objection(raw, there, self._policy.downstream, leaving=True)
                stamp = stamp_of(raw) if sound else None
                if stamp is None or stamp.robot != self._policy.robot or stamp.bare:
                    continue
                uid = str(raw["metadata"]["uid"])
                if raw["metadata"].get("deletionTimestamp") is not None:
                    self._is_terminating(uid, raw)
                yield uid, raw

    def _read(self, there: Mapping[Key, Json]) -> None:
        """Take the last statuses of copies where they were: they go upstream before the new copies are made (S5.2)."""
        cache, policy = self._cache, self._policy
        arrived = self._arrived()
        for key, raw in there.items():
            if key in arrived:
                continue  # the copy in its new place has the status by now
            view = view_of(raw, policy, policy.downstream, key=key)
            upstream, pending = cache.observe(policy.upstream, key), cache.pending.get(key)
            status = decide(upstream, Observation(view), policy, cache.record(key), pending=pending).status
            if isinstance(status, SendStatus):
                self._reconciler.take(key, status, raw)
        self._look_again()

    def _arrived(self) -> set[Key]:
        """The pairs whose copies are in their new place; what only has the name of one there is somebody else's."""
        return {key for key, copy in self._holds.copies.items() if is_signed(copy, self._policy)}

    def _look_again(self) -> None:
        """Last statuses were read, and copies may have gone: those of what upstream deletes are waited for (C6.3)."""
        cache, left = self._cache, self.originals()
        upstream = cache.views[self._policy.upstream]
        going = {key for key in cache.elsewhere if key not in upstream or upstream[key].terminating}
        waiting = (going & left) - self._arrived()
        changed = [key for key, is_read in cache.elsewhere.items() if not is_read or key not in waiting]
        cache.elsewhere = dict.fromkeys(waiting, True)
        for key in changed:
            self._reconciler.enqueue(key)

    async def _delete(self) -> None:
        await self._context.store.durable()
        policy, failed = self._policy, None
        for former in list(self._places.places):
            place = former.place
            there = replace(policy, in_cloud=place)
            left = dict(former.copies)
            terminating = {uid for uid, why in self._obstacles.items() if why.is_terminating}
            for uid, copy in [each for each in left.items() if each[0] not in terminating]:
                if self._reconciler.stopped or self._holds.held_every() is not None:
                    return
                if self._waits(copy.original):
                    continue
                call = object_calls.delete(there, copy.name, uid, propagation=policy.propagation)
                reply = await self._connection.request(call)
                error = reply.error()
                if isinstance(error, Throttled):
                    raise error
                if error is not None and reply.status not in (404, 409):
                    failed = error  # of this copy, maybe: the others do not wait for it (S9.5)
                    self._cannot_delete(uid, brief(str(error)), is_forbidden=reply.status == HTTPStatus.FORBIDDEN)
                    continue
                if error is None and is_still_there(reply.body, uid):
                    self._is_terminating(uid, reply.body)
                    continue
                del left[uid]
                text = f"it was a {place.plural}, which the projection does not name any more"
                fact = Fact(policy.downstream, policy.resource, copy.original, Action.DELETED, "C1.7", text)
                self._context.recorder.record(fact)
            self._places.found(former, left)
            self._look_again()
            for uid in former.copies.keys() - left.keys():
                self._reconciler.enqueue(former.copies[uid].original)
        if failed is not None:
            raise failed

    def _is_terminating(self, uid: str, copy: Json) -> None:
        found = copy["metadata"].get("finalizers")
        finalizers = some([*map(str, found)]) if isinstance(found, list) else "not named"
        self._cannot_delete(uid, f"it waits for its finalizers: {finalizers}", is_terminating=True)

    def _cannot_delete(self, uid: str, message: str, **why: Any) -> None:
        known = self._obstacles.get(uid)
        obstacle = Obstacle(self._context.clock() if known is None else known.since, message, **why)
        if obstacle != known:
            self._obstacles[uid] = obstacle
            self._context.report_changed()

    def _waits(self, original: Key) -> bool:
        """Whether a copy waits for related ones, which go before it (C6.3)."""
        first = self._reconciler.related_first
        if first is None or not first.delay(original):
            return False
        return original not in self._cache.elsewhere or first.release(original) != 0

    @property
    def _marks(self) -> str:
        """The selector of all copies with marks; empty: copies have none."""
        marks = self._policy.shape.marks_of(Key("", ""))
        return "" if marks is None else marks.selector

    async def _list(self, objects: Collection) -> AsyncIterator[Json]:
        """Each object of a collection. Raises SyncError."""
        async for raw in list_objects.objects(self._connection.request, objects):
            if isinstance(raw, dict) and isinstance(raw.get("metadata"), dict):
                yield raw
