"""Notices what was synced and is not any more, kinds and former names of the robot, and counts the copies (S1.8)."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Container, Mapping
from dataclasses import replace

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.read_kind import is_terminating
from crsyncer.core.kinds.stopped_kind import SyncedKind, former_name, from_store, remembered, to_store
from crsyncer.core.model import Key, Loaded, Side
from crsyncer.core.pair.actions import Hold, HoldReason
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.reports.text import count
from crsyncer.core.requests.calls import PARTIAL_LIST, Call
from crsyncer.engine.context import EngineContext
from crsyncer.errors import Conflict, NotAllowed, SyncError, Unsure
from crsyncer.ports import Reply
from crsyncer.runtime.list_objects import objects

_STORED = "synced-kinds"
"""The name under which the store keeps what is remembered."""
_COUNT_SECONDS = 600.0
_RETRY_SECONDS = 30.0
_REFUSED_SECONDS = 86400.0
_PAGE = 500
_GONE = "its CRD is gone from the robot, so nothing of it is synced, and what copies there are stay as they are"
HINT = (
    "apply the CRD on the robot again, and the hold ends; if it was deleted on purpose: crsyncer holds release {id},"
    " which deletes nothing"
)


class StoppedKinds:
    """Every kind that is synced, or was. Nothing is ever deleted because of it.

    `changed` is called when there is news for `status`.
    """

    def __init__(self, context: EngineContext, *, changed: Callable[[], None]) -> None:
        self._context = context
        self._changed = changed
        self._kinds = from_store(context.store.get_meta(_STORED) or {})
        self._copies: dict[str, frozenset[Key]] = {}
        """The copies of each kind that has stopped, once they are known."""
        self._wake = asyncio.Event()

    @property
    def stopped(self) -> Mapping[str, SyncedKind]:
        """The kinds that have stopped, by name."""
        return {name: kind for name, kind in self._kinds.items() if kind.since and not kind.uids}

    @property
    def former(self) -> Mapping[str, SyncedKind]:
        """What was synced for a former name of the robot, by that name and the kind's: robot-1/goals.example.com."""
        return {name: kind for name, kind in self._kinds.items() if kind.uids}

    def copies(self, name: str) -> int:
        """How many copies of a stopped kind, or of a former name, follow nothing, as far as is known."""
        kind = self._kinds.get(name)
        return len(self._copies.get(name, () if kind is None else kind.uids))

    def runs(self, policy: KindPolicy, loaded: Loaded) -> None:
        """A kind is synced from now on; `loaded` is what the store had of it. Related ones are told of with others."""
        if policy.related:
            return
        resource, now = policy.resource, remembered(policy)
        before = self._kinds.get(resource)
        if before is not None and before.is_former(now):
            self._renamed(resource, former_name(before, loaded), now.robot)
        for name, kind in self.former.items():
            if name.endswith(f"/{resource}") and not kind.is_former(now):
                self._forget(name)
        self._found(resource)
        self._remember(resource, now)

    def _renamed(self, resource: str, former: SyncedKind, robot: str) -> None:
        """The robot was called otherwise when the kind was synced last."""
        if former.uids:
            self._remember(f"{former.robot}/{resource}", replace(former, since=self._context.clock()))
            self._wake.set()
            text = f"{count(len(former.uids), 'copy')} made as {former.robot}: the robot is called {robot} now"
            self._context.recorder.record(Fact(former.downstream, resource, None, Action.STOPPED, "S1.8", text))

    def update(self, configured: Container[str], crds: Mapping[str, str]) -> None:
        """Compare what was synced with the kinds that are configured now. `crds` are the robot's, as JSON.

        What had a CRD and has none is missing, also where a SyncPolicy names it: that would be a kind without a CRD.
        """
        for name, kind in list(self._kinds.items()):
            missing = kind.has_crd and (name not in crds or is_terminating(json.loads(crds[name])))
            stopped = missing or name not in configured
            since = (kind.since or self._context.clock()) if stopped else 0.0
            if stopped and not kind.since:
                self._wake.set()
            if not missing:
                self._found(name)
            if not stopped:
                self._copies.pop(name, None)
            hold_id = self._hold(name, replace(kind, since=since)) if missing else ""
            self._remember(name, replace(kind, since=since, missing=missing, hold_id=hold_id))

    def _found(self, name: str) -> None:
        """A kind is not missing, or not any more."""
        if name in self._kinds and self._kinds[name].missing:
            self._context.holds.clear(name, reason=HoldReason.KIND_MISSING)
            self._wake.set()

    def acknowledge(self, resource: str) -> None:
        """An operator knows that the CRD is gone: nothing is told of the kind any more."""
        self._forget(resource)
        self._changed()

    async def run(self) -> None:
        """Count the copies that follow nothing, forever."""
        while True:
            done = [await self._count(name) for name in (*self.stopped, *self.former)]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((_COUNT_SECONDS if all(done) else _RETRY_SECONDS) if done else None):
                    await self._wake.wait()
            self._wake.clear()

    async def _count(self, name: str) -> bool:
        """Find out which copies there are; False where downstream could not be asked."""
        kind = self._kinds.get(name)
        if kind is None or not kind.since:
            return True  # meanwhile it is synced again, or nothing is told of it any more
        if kind.missing and kind.downstream is Side.ROBOT:
            self._show(name, frozenset())  # the copies went with their CRD
            return True
        if name not in self._copies and not kind.uids:
            views = (await self._context.store.load(name)).views[kind.downstream]
            self._show(name, frozenset(key for key, view in views.items() if view.stamp is not None))
        try:
            found = await self._list(kind)
        except NotAllowed:
            # The account of another name may not look, so nothing would ever end what is shown.
            if kind.uids and self._context.clock() - kind.since > _REFUSED_SECONDS:
                self._show(name, frozenset())
                self._forget(name)
            return bool(kind.uids)
        except SyncError:
            return False
        self._show(name, found)
        if not found and self._is_shown(name) and not self._kinds[name].missing:
            self._forget(name)
        return True

    async def _list(self, kind: SyncedKind) -> frozenset[Key]:
        """The copies of a kind, by complete lists. Raises SyncError where there was none."""
        connection, found, uids = self._context.connections[kind.downstream], set(), frozenset(kind.uids)

        async def send(call: Call) -> Reply:
            if not connection.up.is_set():
                raise Unsure(f"the {connection.name} is {connection.state}")
            return await connection.while_up(connection.request(call))

        for collection in kind.copies:
            with contextlib.suppress(Conflict):  # 404: a kind that is not served has no copies
                async for raw in objects(send, collection, page=_PAGE, accept=PARTIAL_LIST):
                    if kind.is_copy(raw) and (not uids or raw["metadata"].get("uid") in uids):
                        found.add(Key(raw["metadata"].get("namespace", ""), raw["metadata"]["name"]))
        return frozenset(found)

    def _is_shown(self, name: str) -> bool:
        return name in self._kinds and bool(self._kinds[name].since)

    def _show(self, name: str, copies: frozenset[Key]) -> None:
        if self._is_shown(name) and self._copies.get(name) != copies:
            self._copies[name] = copies
            if self._kinds[name].missing:
                self._context.holds.clear(name, reason=HoldReason.KIND_MISSING)
                self._hold(name, self._kinds[name])
            self._changed()

    def _hold(self, name: str, kind: SyncedKind) -> str:
        """Show the hold of a missing CRD; its id."""
        hold = Hold(HoldReason.KIND_MISSING, _GONE, HINT)
        group = self._context.hold_kind(name, hold, since=kind.since, hold_id=kind.hold_id)
        group.keys |= self._copies.get(name, frozenset())
        group.hint = HINT.format(id=group.id)
        return group.id

    def _forget(self, name: str) -> None:
        self._context.holds.clear(name, reason=HoldReason.KIND_MISSING)
        self._copies.pop(name, None)
        del self._kinds[name]
        self._context.store.put_meta(_STORED, to_store(self._kinds))

    def _remember(self, name: str, kind: SyncedKind) -> None:
        if self._kinds.get(name) != kind:
            self._kinds[name] = kind
            self._context.store.put_meta(_STORED, to_store(self._kinds))
