"""Removes finalizers of ours from objects that are out of sight, and those of kinds that have stopped (C6.2, C6.3)."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from crsyncer.agent_ports import Store
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import FinalizerRow, Key, Loaded, Side
from crsyncer.core.pair.finalizer_calls import KeptObject, remove_finalizer, remove_finalizer_at, test_uid
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.requests.answers import causes_of, shown
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.engine.context import EngineContext
from crsyncer.errors import NotServed, SyncError
from crsyncer.ports import Reply
from crsyncer.runtime.connection import Connection

KINDS = "finalizers"
"""Under which name the store keeps the kinds of which it may have rows."""
_PLACES = 32
"""How many places of a list are tried that is not shown."""


async def remove_unseen(key: Key, row: FinalizerRow, context: EngineContext, *, sensitive: bool = True) -> None:
    """Remove a finalizer from wherever it is in an object's list, or find that it is not there (C6.2).

    Raises SyncError where it may still be there. Whether the objects of a kind that is gone are Secrets is not known.
    """
    connection, objects = context.connections[Side(row.side)], Collection(*row.place)
    for place in range(_PLACES):
        call = remove_finalizer_at(objects, key, row.upstream_uid, name=row.name, place=place)
        reply = await ask(connection, call, sensitive=sensitive, expected=(404, 422))
        if reply.status == 422 and place:
            continue
        if reply.status == 422:  # an object with another uid, or our finalizer is elsewhere in the list
            call = test_uid(objects, key, row.upstream_uid)
            reply = await ask(connection, call, sensitive=sensitive, expected=(403, 404, 422))
            if reply.status == 403:
                continue  # the cloud's admission policy: our finalizer may not stay on an object that is not ours
        left = tuple(reply.body["metadata"].get("finalizers") or ()) if reply.status == 200 else ()
        if row.name in left:  # also beside one that was removed: servers keep duplicates (measured)
            kept = KeptObject(key, row.upstream_uid, left, None)
            await ask(connection, remove_finalizer(objects, kept, row.name), sensitive=sensitive, expected=(404,))
        return


async def ask(connection: Connection, call: Call, *, sensitive: bool, expected: tuple[int, ...] = ()) -> Reply:
    """Patch an object. Raises the error that an answer means, unless it is `expected` and not about the whole kind."""
    reply = await connection.request(replace(call, sensitive=sensitive))
    causes = causes_of(reply.body)
    error = reply.error(patch=True)
    if error is not None and (reply.status not in expected or isinstance(error, NotServed) or causes):
        raise error
    if error is None:
        shown(reply.body)
    return reply


def remember(resource: str, store: Store) -> None:
    """There may be rows of a kind, or soon will be: also once it is not synced any more (C6.3)."""
    known = store.get_meta(KINDS) or ()
    if resource not in known:
        store.put_meta(KINDS, [*known, resource])


def place_of(policy: KindPolicy, side: Side) -> tuple[str, str, str]:
    """Where the objects of a kind are on a side, as rows say it."""
    endpoint = policy.endpoint(side)
    return endpoint.group, endpoint.version, endpoint.plural


def hand_over(policy: KindPolicy, rows: dict[Key, FinalizerRow], store: Store) -> None:
    """Hand over to `Removals` the rows of objects that the kind does not mean any more: by direction or projection."""
    wanted = policy.endpoint(policy.upstream).resource
    for key, row in list(rows.items()):
        place = row.place or place_of(policy, Side(row.side))
        resource = Collection(*place).resource
        if (row.side, resource) == (policy.upstream, wanted):
            rows[key] = replace(row, place=place_of(policy, policy.upstream))  # in another version, maybe
        else:
            former = f"{policy.resource}@{row.side}/{resource}"
            remember(former, store)
            store.put_finalizer(former, key, replace(rows.pop(key), place=place))
        if rows.get(key) != row:
            store.put_finalizer(policy.resource, key, rows.get(key))
    if rows:
        remember(policy.resource, store)


class Removals:
    """Removes the finalizers of kinds that are not synced any more: by policy, annotation or CRD (C6.3).

    `lock(resource)` is held while the kind itself runs.
    """

    def __init__(
        self,
        context: EngineContext,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        lock: Callable[[str], asyncio.Lock],
    ) -> None:
        self.rows: dict[str, dict[Key, FinalizerRow]] = {}
        """By kind, those that wait."""
        self._context = context
        self._spawn = spawn
        self._lock = lock
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def update(self, synced: Callable[[str], bool]) -> None:
        """Begin with the kinds that are not `synced` any more, and stop with those that are again."""
        for resource in self._context.store.get_meta(KINDS) or ():
            if synced(resource):
                task = self._tasks.pop(resource, None)
                if task is not None:
                    task.cancel()
                    self.rows.pop(resource, None)
            elif resource not in self._tasks:
                self._tasks[resource] = self._spawn(self._run(resource))

    async def _run(self, resource: str) -> None:
        async with self._lock(resource):
            store = self._context.store
            while rows := _placed(loaded := await store.load(resource)):  # a kind may hand over more meanwhile
                self.rows[resource] = rows
                await remove_all(resource, rows, loaded, self._context)
                del self.rows[resource]
            store.put_meta(KINDS, [each for each in store.get_meta(KINDS) or () if each != resource])
            del self._tasks[resource]


def _placed(loaded: Loaded) -> dict[Key, FinalizerRow]:
    """The rows that say where the finalizer is; a kind completes the others when it is synced again."""
    return {key: row for key, row in loaded.finalizers.items() if row.place}


async def remove_all(resource: str, rows: dict[Key, FinalizerRow], loaded: Loaded, context: EngineContext) -> None:
    """Remove the finalizers of a kind; its rows and the store are kept as they are."""

    def note(key: Key, row: FinalizerRow | None) -> None:
        if row is None:
            del rows[key]
        else:
            rows[key] = row
        context.store.put_finalizer(resource, key, row)

    for key, row in list(rows.items()):
        note(key, replace(row, since=row.since or context.clock()))
    context.report_changed()
    failures = 0
    while rows:
        for key, row in list(rows.items()):
            connection = context.connections[Side(row.side)]
            await connection.up.wait()
            try:
                if not row.removed:
                    await remove_unseen(key, row, context)
            except SyncError as error:
                note(key, replace(row, attempts=row.attempts + 1, error=str(error)))
                await connection.waits.back_off(failures)
                failures += 1
            else:
                await _remove_stored(resource, key, row, loaded, context.store)
                note(key, None)
                failures = 0
                context.recorder.record(Fact(Side(row.side), resource, key, Action.UNFINALIZED, "C6.3"))
    context.report_changed()


async def _remove_stored(resource: str, key: Key, row: FinalizerRow, loaded: Loaded, store: Store) -> None:
    """Remove a finalizer from the stored copy, too: the kind may be back before its watch shows that (C6.1)."""
    side = Side(row.side)
    view, body = loaded.views[side].get(key), await store.body(side, resource, key)
    if view is not None and view.finalized and view.uid == row.upstream_uid and body is not None:
        body["metadata"]["finalizers"] = [each for each in body["metadata"].get("finalizers", ()) if each != row.name]
        store.put_copy(side, resource, key, replace(view, finalized=False), body)
