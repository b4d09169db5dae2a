"""Performs what a decision asks of downstream, each with its guards, and feeds the answers to the cache."""

from dataclasses import replace
from typing import assert_never

from crsyncer.core import calls
from crsyncer.core.actions import Create, Delete, Hold, HoldReason, Seed, Update
from crsyncer.core.answers import judge, shown
from crsyncer.core.model import Json, Key, Side, View
from crsyncer.core.policy import DRIFT, ROBOT_LABEL, Policy
from crsyncer.core.project import UPSTREAM_UID, compose_copy, differences, objection, status_with, view_of
from crsyncer.engine.cache import Cache
from crsyncer.errors import Refused
from crsyncer.ports import Reply, Store
from crsyncer.runtime.connection import Connection

NAME_TAKEN = Hold(
    HoldReason.NAME_TAKEN,
    "an object of this name exists downstream that is not labelled for this robot and not a copy",
    "rename or delete one of the two objects",
)

_SHOWN, _SHOWN_CHARACTERS = 5, 200
"""How many paths of a contested object are named, in how many characters: whoever fights may choose them."""


class Writer:
    """Writes copies of one kind. Every method raises the SyncError that says whether it happened."""

    def __init__(self, connection: Connection, *, policy: Policy, cache: Cache, store: Store) -> None:
        self._connection = connection
        self._policy = policy
        self._cache = cache
        self._store = store

    async def perform(self, key: Key, action: Create | Update | Seed | Delete) -> Hold | None:
        """Do it. A Hold comes back where a look at downstream showed that it must not be done."""
        self._cache.departed.discard(key)
        match action:
            case Create():
                return await self._create(key)
            case Update():
                await self._update(key, action)
            case Seed():
                await self._seed(key, action)
            case Delete():
                await self._delete(key, action)
            case _:
                assert_never(action)
        return None

    async def contested(self, key: Key) -> Hold:
        """Why a copy is not set right for now: somebody keeps undoing it. Says what differs."""
        view, upstream = await self._upstream(key)
        copy = await self._store.body(self._policy.downstream, self._policy.resource, key)
        wanted = compose_copy(upstream, view, self._policy, downstream=copy)
        paths = differences(wanted, copy or {"metadata": {}})
        what = (", ".join(paths[:_SHOWN]) + (", ..." if len(paths) > _SHOWN else ""))[:_SHOWN_CHARACTERS]
        return Hold(
            HoldReason.CONTESTED,
            f"somebody on the other side keeps changing what upstream owns, in {key}: {what}; reverted once a minute",
            f"find who changes {what} of {key}, or annotate the CRD with {DRIFT}: keep",
        )

    async def _create(self, key: Key) -> Hold | None:
        if key in self._cache.pending or key in self._cache.tombstones:
            # The last status of a vanished copy is on disk before the copy is made again (S6.1).
            await self._store.durable()
        view, upstream = await self._upstream(key)  # after that: what waited may be upstream's by now
        status = self._effective_status(key, view, upstream)
        body = compose_copy({**upstream, "status": status}, view, self._policy, downstream=None)
        owed = status is not None and self._policy.status_endpoint[self._policy.downstream]
        if owed:
            # Recorded before the copy exists: whoever finds it without a status knows that it is still owed one.
            self._cache.remember(key, replace(self._cache.record_of(key, view.uid), seed=True))
            await self._store.durable()
            self._still(key, view)
        reply = await self._connection.request(calls.create(self._policy, key.namespace, body))
        if reply.status == 404 and self._policy.namespaced and reply.body:
            # The namespace is missing (S1.7); a kind that is not served answers in plain text.
            await self._do(calls.create_namespace(key.namespace), unless=409)
            reply = await self._connection.request(calls.create(self._policy, key.namespace, body))
        if reply.status == 409:
            return await self._name_taken(key, view, upstream)
        self._wrote(key, view, _object(reply), seeded=status is not None and not owed)
        return None

    async def _update(self, key: Key, action: Update) -> None:
        view, upstream = await self._upstream(key)
        downstream = await self._store.body(self._policy.downstream, self._policy.resource, key)
        if downstream is None or downstream["metadata"]["resourceVersion"] != action.resource_version:
            raise Refused("the copy has changed since")
        body = compose_copy(upstream, view, self._policy, downstream=downstream)
        self._wrote(key, view, await self._ask(calls.update(self._policy, key, body)))

    async def _seed(self, key: Key, action: Seed) -> None:
        view, upstream = await self._upstream(key)
        status = self._effective_status(key, view, upstream)
        if status is None:  # what is waiting for upstream will remove it
            self._cache.remember(key, replace(self._cache.record_of(key, view.uid), seed=False))
            return
        call = calls.seed_status(
            self._policy, key, uid=action.uid, resource_version=action.resource_version, status=status
        )
        self._wrote(key, view, await self._ask(call), seeded=True)

    async def _delete(self, key: Key, action: Delete) -> None:
        await self._do(
            calls.delete(self._policy, key, action.uid, resource_version=action.resource_version), unless=404
        )

    async def _name_taken(self, key: Key, view: View, upstream: Json) -> Hold | None:
        """A create met an object that our list does not show: a copy that lost its label, or somebody else's (S2.3)."""
        if self._policy.downstream is Side.CLOUD:
            return NAME_TAKEN if self._policy.filtered else None
        found = await self._ask(calls.get(self._policy, key))
        annotations = found["metadata"].get("annotations") or {}
        if not self._policy.filtered:
            self._shows(key, found)
            return None
        if UPSTREAM_UID not in annotations:
            return NAME_TAKEN if objection(found, self._policy, "") else None
        if annotations[UPSTREAM_UID] != view.uid:
            # The copy of an earlier upstream object: once it is in our sight again, it is replaced as such (S5.4).
            found["metadata"].setdefault("labels", {})[ROBOT_LABEL] = self._policy.robot
            self._shows(key, await self._ask(calls.update(self._policy, key, found)))
            return None
        body = compose_copy(upstream, view, self._policy, downstream=found)
        self._wrote(key, view, await self._ask(calls.update(self._policy, key, body)))
        return None

    async def _upstream(self, key: Key) -> tuple[View, Json]:
        """What upstream shows, as digests and whole: the same version, or a copy would be stamped with another's."""
        view = self._cache.views[self._policy.upstream].get(key)
        body = await self._store.body(self._policy.upstream, self._policy.resource, key)
        self._still(key, view)
        if view is None or body is None:
            raise Refused("upstream has changed since")
        return view, body

    def _still(self, key: Key, view: View | None) -> None:
        """Raise Refused when upstream has changed while the disk was waited for."""
        if self._cache.views[self._policy.upstream].get(key) is not view:
            raise Refused("upstream has changed since")

    def _effective_status(self, key: Key, view: View, upstream: Json) -> Json | None:
        """Upstream's status as it will be once the outbox is empty; None when there is none worth copying."""
        status = upstream.get("status")
        row = self._cache.pending.get(key)
        if row is not None and row.upstream_uid == view.uid:
            status = status_with(upstream, self._policy, row.value)
        return status if isinstance(status, dict) and status else None

    async def _ask(self, call: calls.Call) -> Json:
        return _object(await self._connection.request(call))

    async def _do(self, call: calls.Call, *, unless: int) -> None:
        """`unless`: the status that says that it was done before."""
        reply = await self._connection.request(call)
        if reply.status != unless:
            _happened(reply)

    def _wrote(self, key: Key, upstream: View, answer: Json, *, seeded: bool = False) -> None:
        """Remember what downstream made of our write, which is then not fought (S3.5); what came after it is."""
        answer.setdefault("apiVersion", self._policy.api_version)
        copy = view_of(answer, self._policy, self._policy.downstream)
        record = self._cache.record_of(key, upstream.uid)
        record = replace(record, applied=upstream.content, admitted=copy.content)
        if seeded:
            record = replace(record, seed=False)
            if key not in self._cache.pending:
                # What downstream's schema made of upstream's own status is no news to upstream.
                record = replace(record, sent=copy.status, accepted=upstream.status, had_status=bool(copy.status))
        self._cache.remember(key, record)
        self._shows(key, answer)
        self._cache.note_generation(key, copy)  # its echo may have come first, when `admitted` was not known yet

    def _shows(self, key: Key, answer: Json) -> None:
        """An answer shows the copy, unless its end was heard of before it came: nothing would tell of that again."""
        if key not in self._cache.departed:
            self._cache.saw(self._policy.downstream, key, answer)


def _object(reply: Reply) -> Json:
    _happened(reply)
    shown(reply.body)
    return reply.body


def _happened(reply: Reply) -> None:
    error = judge(reply.status, reply.body, text=reply.text, retry_after=reply.retry_after)
    if error is not None:
        raise error
