"""Performs what a decision asks of downstream, each with its guards, and feeds the answers to the cache."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import accumulate
from typing import assert_never

from crsyncer.agent_ports import Store
from crsyncer.core.content.annotations import DRIFT
from crsyncer.core.content.object_content import differences, key_of, labels, stamp_of
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Key, Side, View
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.actions import Create, Delete, Hold, HoldReason, Seed, Update, Why
from crsyncer.core.pair.compose import compose_copy, selected_labels
from crsyncer.core.pair.decide import is_not_adopted
from crsyncer.core.pair.project import bears_mark, last_desired, objection, status_with, view_of
from crsyncer.core.requests import calls
from crsyncer.core.requests.answers import is_still_there
from crsyncer.engine.caching.cache import Cache
from crsyncer.errors import Conflict, NameTaken, Never, NoStatus, NotAllowed, StatusRejected
from crsyncer.ports import Reply
from crsyncer.runtime.connection import Connection

log = logging.getLogger(__name__)

_SHOWN, _SHOWN_CHARACTERS = 5, 200
"""How many paths of a contested object are named, in how many characters: the actor that fights chooses them."""
_NO_STATUS = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)


Write = Create | Update | Seed | Delete


class Writer:
    """Writes copies of one kind. Every method raises the SyncError that says whether it happened.

    `still_planned(key, write)` is called right before each request of a write: it raises Conflict when the write is not
    to be made any more, because the plan has changed, a hold was placed or the kind was stopped (S5, S1.8).
    """

    def __init__(
        self,
        connection: Connection,
        *,
        policy: KindPolicy,
        cache: Cache,
        store: Store,
        still_planned: Callable[[Key, Write], None],
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._endpoint = policy.endpoint(policy.downstream)
        self._cache = cache
        self._store = store
        self._still_planned = still_planned
        self._unmerged: set[Key] = set()
        """Copies of which it was reported that what was last applied to them is not known."""
        self.unwatched_deleted: Callable[[Key, bool], None] = lambda key, gone: None  # noqa: ARG005
        """Called when a copy was deleted that no watch shows: whether it is gone, or its finalizers keep it (C1.7)."""
        self._deleting = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def deletions_answered(self) -> None:
        """Return when no request for a deletion is under way."""
        await self._quiet.wait()

    async def write(self, key: Key, action: Write) -> None:
        """Make one write. Raises NameTaken where downstream turns out to have another object of that name."""
        self._cache.departed.discard(key)
        match action:
            case Create():
                await self._create(key, action)
            case Update():
                await self._update(key, action)
            case Seed():
                await self._seed(key, action)
            case Delete():
                await self._delete(key, action)
            case _:
                assert_never(action)

    async def contested(self, key: Key) -> Hold:
        """The hold of a copy that somebody keeps changing; it names what differs."""
        view, upstream = await self._upstream(key)
        copy = await self._store.body(self._policy.downstream, self._policy.resource, key)
        wanted = compose_copy(upstream, view, self._policy, downstream=copy)
        found, marks = copy or {"metadata": {}}, self._policy.shape.marks_of(key)
        fields = differences(wanted, found)
        what = _named(fields + (marks.wrong_on(found) if marks is not None else []))
        return Hold(
            HoldReason.CONTESTED,
            f"somebody on the other side keeps changing what upstream owns, in {key}: {what}; reverted once a minute",
            f"find who changes {what} of {key}{self._leave_to_keep() if fields else ''}",
        )

    def _leave_to_keep(self) -> str:
        """The setting by which changes of a copy stay; empty: there is none for this kind, or it is set."""
        policy = self._policy
        if policy.related or policy.sensitive or policy.shape.keep_local:
            return ""
        if policy.sync_policy is not None:
            return f", or set spec.conflict: keepLocal in SyncPolicy {policy.sync_policy.name}"
        return f", or annotate the CRD with {DRIFT}: keep"

    async def _create(self, key: Key, action: Create) -> None:
        if key in self._cache.pending or key in self._cache.tombstones:
            # The last status of a vanished copy is on disk before the copy is made again (S6.1).
            await self._store.durable()
        view, upstream = await self._upstream(key)  # after that: the status may have reached upstream meanwhile
        write = _Intent(key, action, view)
        status = self._effective_status(key, view, upstream)
        copy = self._copy(key)
        body = compose_copy({**upstream, "status": status}, view, self._policy, downstream=None, name=copy)
        seed = status is not None and self._endpoint.status
        chosen = copy if self._policy.shape.marks is not None else None
        if seed or chosen is not None:
            # Recorded before the copy exists: after a crash or an edit it still gets its status, and has one name.
            record = self._cache.record_of(key, view.uid)
            self._cache.remember(key, replace(record, seed=record.seed or seed, called=chosen))
            await self._store.durable()
        create = object_calls.create(self._policy, copy, body)
        try:
            await self._post(write, create, copy, upstream=upstream, seeded=status is not None and not seed)
        except (NameTaken, Never, NotAllowed):
            self._cache.remember(key, replace(self._cache.record_of(key, view.uid), called=None))
            raise

    async def _post(self, write: "_Intent", create: calls.Call, copy: Key, *, upstream: Json, seeded: bool) -> None:
        reply = await self._request(write, create)
        if reply.status == 404 and self._endpoint.namespaced and reply.body:
            # The namespace is missing (S1.7); a kind that is not served answers in plain text.
            (await self._request(write, calls.create_namespace(copy.namespace))).happened(unless=409)
            reply = await self._request(write, create)
        if reply.status == 409:
            await self._exists(write, copy, upstream)
        elif write.upstream is not None:
            self._wrote(write.key, write.upstream, reply.shown(), seeded=seeded)

    async def _update(self, key: Key, action: Update) -> None:
        view, upstream = await self._upstream(key)
        downstream = await self._copy_in(key, action)
        marks = self._policy.shape.marks_of(key) if action.why is Why.MARKS else None
        if marks is not None:
            call = self._put(key, marks.put_on(downstream))
            self._shows(key, (await self._request(_Intent(key, action, view), call)).shown())
            return
        call = self._put(key, self._brought_in_line(key, view, upstream, downstream))
        self._wrote(key, view, (await self._request(_Intent(key, action, view), call)).shown())

    async def _seed(self, key: Key, action: Seed) -> None:
        view, upstream = await self._upstream(key)
        status = self._effective_status(key, view, upstream)
        if status is None and not action.follows:  # the status that waits for upstream is a removal
            self._cache.remember(key, replace(self._cache.record_of(key, view.uid), seed=False))
            return
        takes_metadata = object_calls.takes_metadata(self._policy, self._policy.downstream)
        call = object_calls.seed_status(
            self._policy,
            self._copy(key),
            uid=action.uid,
            resource_version=action.resource_version,
            status=status,
            whole=await self._copy_in(key, action) if takes_metadata else None,
        )
        if action.follows:
            record = self._cache.record_of(key, view.uid)
            self._cache.remember(key, replace(record, seeding=action.resource_version))
        reply = await self._request(_Intent(key, action, view), call)
        if reply.status in _NO_STATUS:
            raise NoStatus(f"the {self._policy.downstream} answers that there is no /status: {reply.status}")
        try:
            answer = reply.shown()
        except Never as error:
            raise StatusRejected(str(error)) from None
        self._wrote(key, view, answer, seeded=True)

    async def _copy_in(self, key: Key, action: Update | Seed) -> Json:
        """The copy in the version that a write is for."""
        copy = await self._store.body(self._policy.downstream, self._policy.resource, key)
        if copy is None or copy["metadata"]["resourceVersion"] != action.resource_version:
            raise Conflict("the copy has changed since")
        return copy

    async def _delete(self, key: Key, action: Delete) -> None:
        await self._store.durable()  # a deletion acts on a recorded tombstone, with its verdict (S6.1, S7.1)
        call = object_calls.delete(
            self._policy,
            self._copy(key),
            action.uid,
            resource_version=action.resource_version,
            propagation=action.propagation,
        )
        view = self._cache.views[self._policy.upstream].get(key)
        self._deleting += 1
        self._quiet.clear()
        try:
            reply = await self._request(_Intent(key, action, view), call)
            stays = reply.happened(unless=404).status != 404 and is_still_there(reply.body, action.uid)
        finally:
            self._deleting -= 1
            if not self._deleting:
                self._quiet.set()
        copy = self._cache.views[self._policy.downstream].get(key)
        if copy is not None and copy.unselected and copy.uid == action.uid:
            if stays:
                self._cache.saw(self._policy.downstream, key, reply.body)
            self.unwatched_deleted(key, not stays)

    async def _exists(self, write: "_Intent", copy: Key, upstream: Json) -> None:
        """A create met an object that our list does not show: read it once (S2.3), but never in the cloud (S2.1).

        It is a copy that lost its label, another actor's object, or one that the watch has not shown yet. Raises
        NameTaken, or Conflict when the pair has to be decided anew.
        """
        key, taken = write.key, NameTaken(f"another object is called {copy}")
        self._cache.awaited_names.setdefault(copy, set()).add(key)
        if self._policy.downstream is Side.CLOUD:
            if self._policy.selector_on(Side.CLOUD) or self._policy.shape.marks is not None:
                raise taken
            raise Conflict("the watch has not shown the object of this name yet")
        found = (await self._request(write, object_calls.get(self._policy, copy))).shown()
        stamp, marks = stamp_of(found), self._policy.shape.marks_of(key)
        foreign = self._policy.related and marks is not None and marks.are_foreign_to(found)
        has_left = self._cache.has_left(key, found["metadata"]["uid"])  # somebody has removed all marks (C2.4)
        is_ours = has_left or self._cache.key_of(self._policy.downstream, found) == key
        is_local = stamp is None and not bears_mark(found) and not has_left
        if foreign or not is_ours or (self._policy.related and self._is_not_adopted(write, found)):
            raise taken
        if not self._policy.selector_on(Side.ROBOT) or not objection(found, self._policy, Side.ROBOT):
            if is_local and not self._policy.selects(labels(found)):
                raise taken  # copies of related objects are found by their marks, and this has none
            self._shows(key, found)
            raise Conflict("an object of this name exists already")
        if is_local:
            raise taken
        if write.upstream is None or (stamp is not None and stamp.upstream_uid != write.upstream.uid):
            # The copy of an earlier upstream object: once the selection shows it again, it is replaced (S5.4).
            found["metadata"]["labels"] = selected_labels(labels(found), labels(upstream), self._policy)
            call = object_calls.update(self._policy, copy, found)
            self._shows(key, (await self._request(write, call)).shown())
            return
        body = self._brought_in_line(key, write.upstream, upstream, found)
        call = object_calls.update(self._policy, copy, body)
        self._wrote(key, write.upstream, (await self._request(write, call)).shown())

    def _is_not_adopted(self, write: "_Intent", found: Json) -> bool:
        """Whether an object that lacks the marks stays as it is: no watch of related copies shows when it goes."""
        copy = view_of(found, self._policy, self._policy.downstream, key=write.key)
        return write.upstream is not None and is_not_adopted(write.upstream, copy, self._policy)

    def _put(self, key: Key, body: Json) -> calls.Call:
        return object_calls.update(self._policy, self._copy(key), body)

    def _copy(self, key: Key) -> Key:
        """What the copy is called."""
        return self._cache.name_on(self._policy.downstream, key)

    def _brought_in_line(self, key: Key, view: View, upstream: Json, copy: Json) -> Json:
        """The copy as it is to be put."""
        unknown = self._policy.shape.keep_local and last_desired(copy, self._policy) is None
        if unknown and key not in self._unmerged:
            self._unmerged.add(key)
            log.warning(
                "%s %s: what was last applied to the copy is missing, broken or over 128 KiB: upstream's fields are"
                " set; the others stay, also those that upstream has removed",
                self._policy.resource,
                key,
            )
        return compose_copy(upstream, view, self._policy, downstream=copy)

    async def _upstream(self, key: Key) -> tuple[View, Json]:
        """Upstream's object, as digests and as its copy is to be: the same version, or the stamp would be another's."""
        view = self._cache.views[self._policy.upstream].get(key)
        body = await self._store.body(self._policy.upstream, self._policy.resource, key)
        if view is None or body is None or self._cache.views[self._policy.upstream].get(key) is not view:
            raise Conflict("upstream has changed since")
        return view, self._policy.shape.desired(body)

    async def _request(self, write: "_Intent", call: calls.Call) -> Reply:
        """Send a request, unless something has changed while the disk or an answer was waited for.

        This is the only way to downstream: nothing may come between the check and the request.
        """
        if self._cache.views[self._policy.upstream].get(write.key) is not write.upstream:
            raise Conflict("upstream has changed since")
        self._still_planned(write.key, write.action)
        return await self._connection.request(call)

    def _effective_status(self, key: Key, view: View, upstream: Json) -> Json | None:
        """Upstream's status as it will be once the outbox is empty; None when there is none, or an empty one.

        That of a related object stays where it is, unless it is asked for (C5.5), and that of a Secret always (C5.6).
        """
        if (self._policy.related and not self._policy.copies_status) or self._policy.sensitive:
            return None
        if view.shared:  # what upstream shows is nobody's, or all robots' (F10.3)
            upstream = {}
        status = upstream.get("status")
        row = self._cache.pending.get(key)
        if row is not None and row.upstream_uid == view.uid:
            status = row.status if row.raw else status_with(upstream, self._policy, row.value)
        return status if isinstance(status, dict) and status else None

    def _wrote(self, key: Key, upstream: View, answer: Json, *, seeded: bool = False) -> None:
        """Record the content of the server's answer. What admission or defaulting made of our write is no drift, but
        every later change is (S3.5).
        """
        answer.setdefault("apiVersion", self._endpoint.api_version)
        copy = view_of(answer, self._policy, self._policy.downstream, key=key, views=self._cache.views)
        record = self._cache.record_of(key, upstream.uid)
        record = replace(record, applied=upstream.content, admitted=copy.content, called=None)
        if seeded:
            record = replace(record, seed=False, seeding="")
            if key not in self._cache.pending:
                # What downstream's schema made of upstream's own status is no news to upstream.
                record = replace(
                    record, acknowledged=copy.status, upstream_status=upstream.status, had_status=bool(copy.status)
                )
        self._cache.remember(key, record)
        self._shows(key, answer)
        self._cache.note_generation(key, copy)  # its echo may have come first, when `admitted` was not known yet

    def _shows(self, key: Key, answer: Json) -> None:
        """Keep the copy of an answer, unless the watch has reported its deletion meanwhile: no event repeats that.

        Nor where the watch has shown another copy meanwhile, which is called differently: that one counts (C2.6).
        """
        downstream = self._policy.downstream
        known = self._cache.views[downstream].get(key)
        another = known is not None and known.uid != answer["metadata"]["uid"]
        if another and self._cache.name_on(downstream, key) != key_of(answer):
            return
        if key not in self._cache.departed:
            self._cache.saw(downstream, key, answer)


@dataclass(frozen=True, slots=True)
class _Intent:
    """A write that has been decided, and the upstream object that it was decided for."""

    key: Key
    action: Write
    upstream: View | None


def _named(paths: list[str]) -> str:
    """The first of these paths."""
    ends = accumulate(len(path) + len(", ") for path in paths[:_SHOWN])
    whole = [path for path, end in zip(paths, ends, strict=False) if end <= _SHOWN_CHARACTERS]
    shown = whole or [path[:_SHOWN_CHARACTERS] for path in paths[:1]]
    return ", ".join(shown) + (", ..." if len(paths) > len(shown) else "")
