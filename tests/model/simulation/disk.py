"""A store in memory that promises what the real one does, and keeps no more than that (ports.Store, S6.1 to S6.3).

What is put becomes durable in the order in which it was put, at the latest 250 ms later: the real store commits all at
once, but its thread may begin to do so between any two puts.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from crsyncer.core.model import (
    Cursor,
    FinalizerRow,
    Json,
    Key,
    Loaded,
    Pending,
    Record,
    ReferenceRow,
    Side,
    Source,
    Tombstone,
    View,
)

GROUP_SECONDS = 0.25
RETRY_SECONDS = 10.0
"""Within so long after a disk takes writes again, everything is on it."""

_Row = tuple[str, str, Any, Any]
"""Part, resource, place, and what is there; None: nothing. A part of "" forgets a resource."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a store told an agent when it started."""

    at: float
    reached: Mapping[Side, int]
    """Up to which revision it knew a side."""
    uids: frozenset[str]
    """The objects that it knew, or knew something of."""


class Owner(Protocol):
    """The agent whose store it is."""

    @property
    def dead(self) -> bool:
        """Whether it was killed."""
        ...

    def step(self) -> None:
        """Something happens of which a crash may be the next thing."""
        ...

    async def passes(self) -> None:
        """Return if the agent still lives; else never."""
        ...


@dataclass(slots=True)
class Disk:
    """What outlives an agent: the rows in the order in which they were put, and how many of them are durable."""

    rows: list[_Row] = field(default_factory=list)
    durable: int = 0
    commit_seconds: float = 0.02
    """The longest that a commit takes somebody who waits for it."""
    refuses: bool = False
    """It is full or read-only: what is put from now on is in memory only, until it takes everything again."""

    def copied(self) -> "Disk":
        """A backup of what is durable."""
        return Disk(self.rows[: self.durable], self.durable, self.commit_seconds)

    def kept(self, name: str) -> Any:
        """The value of this name that no crash can take any more; None: there is none."""
        row = next((row for row in reversed(self.rows[: self.durable]) if row[0] == "meta" and row[2] == name), None)
        return None if row is None or row[3] is None else json.loads(row[3])

    def known(self, at: float) -> Known:
        """What it tells an agent that has just opened it."""
        reached, uids = dict.fromkeys(Side, 0), set()
        for part, _, place, value in self.rows:
            if part == "cursor":
                reached[place[0]] = max(reached[place[0]], int(value.resource_version))
            elif part == "copy":
                uids.add(value[0].uid)
            elif part in ("record", "pending", "tombstone", "finalizer"):
                uids.add(value.upstream_uid)
        return Known(at, reached, frozenset(uids))

    def crash(self, chance: Random) -> None:
        """Lose what was not durable, or only a part of it: the next commit may have been on its way."""
        del self.rows[self.durable if self.refuses else chance.randint(self.durable, len(self.rows)) :]
        self.durable = len(self.rows)


class Memory:
    """Implements ports.Store for one life of an agent."""

    def __init__(self, disk: Disk, owner: Owner, chance: Random) -> None:
        self._disk = disk
        self._owner = owner
        self._chance = chance
        self._state: dict[tuple[str, str, Any], Any] = {}
        self._due: asyncio.TimerHandle | None = None
        for row in disk.rows:
            self._apply(row)
        _squeeze(disk, self._state)

    async def load(self, resource: str, *, only_outbox: bool = False) -> Loaded:
        """See ports.Store."""
        await self._owner.passes()
        loaded = Loaded()
        for (part, of, place), value in self._state.items():
            if of != resource or (only_outbox and part not in ("pending", "finalizer")):
                continue
            match part:
                case "copy":
                    loaded.views[place[0]][place[1]] = value[0]
                case "cursor":
                    loaded.cursors[place] = value
                case "record":
                    loaded.records[place] = value
                case "pending":
                    loaded.pending[place] = value
                case "finalizer":
                    loaded.finalizers[place] = value
                case "tombstone":
                    loaded.tombstones[place] = value
        return loaded

    async def body(self, side: Side, resource: str, key: Key) -> Json | None:
        """See ports.Store. Now and then it has to be read from the disk."""
        if self._chance.random() < 0.2:
            await asyncio.sleep(self._chance.uniform(0.0, 0.005))
        await self._owner.passes()
        found = self._state.get(("copy", resource, (side, key)))
        return None if found is None else json.loads(found[1])

    def put_copy(self, side: Side, resource: str, key: Key, view: View, body: Json) -> None:
        """See ports.Store."""
        metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
        self._put("copy", resource, (side, key), (view, json.dumps({**body, "metadata": metadata})))

    def drop_copy(self, side: Side, resource: str, key: Key) -> None:
        """See ports.Store."""
        self._put("copy", resource, (side, key), None)

    def put_cursor(self, side: Side, resource: str, namespace: str, cursor: Cursor | None) -> None:
        """See ports.Store."""
        self._put("cursor", resource, (side, namespace), cursor)

    def put_record(self, resource: str, key: Key, record: Record | None) -> None:
        """See ports.Store."""
        self._put("record", resource, key, record)

    def put_pending(self, resource: str, key: Key, pending: Pending | None) -> None:
        """See ports.Store."""
        self._put("pending", resource, key, pending)

    def put_tombstone(self, resource: str, key: Key, tombstone: Tombstone | None) -> None:
        """See ports.Store."""
        self._put("tombstone", resource, key, tombstone)

    def put_finalizer(self, resource: str, key: Key, row: FinalizerRow | None) -> None:
        """See ports.Store."""
        self._put("finalizer", resource, key, row)

    async def load_references(self, resource: str) -> dict[Source, ReferenceRow]:
        """See ports.Store."""
        await self._owner.passes()
        return {place: row for (part, of, place), row in self._state.items() if (part, of) == ("reference", resource)}

    def put_reference(self, resource: str, source: Source, row: ReferenceRow | None) -> None:
        """See ports.Store."""
        self._put("reference", resource, source, row)

    def forget_kind(self, resource: str, *, keep_outbox: bool = True) -> None:
        """See ports.Store."""
        self._put("", resource, keep_outbox, None)

    def get_meta(self, name: str) -> Any:
        """See ports.Store."""
        text = self._state.get(("meta", "", name))
        return None if text is None else json.loads(text)

    def put_meta(self, name: str, value: Any) -> None:
        """See ports.Store."""
        self._put("meta", "", name, json.dumps(value))

    async def durable(self) -> bool:
        """See ports.Store."""
        await self._owner.passes()
        upto = len(self._disk.rows)
        if upto > self._disk.durable:
            await asyncio.sleep(self._chance.uniform(0.0, self._disk.commit_seconds))
            await self._owner.passes()
            if not self._disk.refuses:
                self._disk.durable = max(self._disk.durable, upto)
        return not self._disk.refuses

    def close(self) -> None:
        """Write what is left, if the disk takes it."""
        if not self._owner.dead and not self._disk.refuses:
            self._commit()

    def _put(self, part: str, resource: str, place: Any, value: Any) -> None:
        self._owner.step()
        if self._owner.dead:
            return
        row = (part, resource, place, value)
        self._apply(row)
        self._disk.rows.append(row)
        if self._due is None:
            self._commit_within(max(GROUP_SECONDS, self._disk.commit_seconds))

    def _commit_within(self, seconds: float) -> None:
        self._due = asyncio.get_running_loop().call_later(self._chance.uniform(0.0, seconds), self._commit)

    def _commit(self) -> None:
        self._due = None
        if self._owner.dead:
            return
        if self._disk.refuses:
            self._commit_within(RETRY_SECONDS)
        else:
            self._disk.durable = len(self._disk.rows)

    def _apply(self, row: _Row) -> None:
        part, resource, place, value = row
        if part:
            if value is None:
                self._state.pop((part, resource, place), None)
            else:
                self._state[part, resource, place] = value
            return
        kept = {"reference", *(("pending", "finalizer") if place else ())}
        for known in [k for k in self._state if k[1] == resource and k[0] not in kept]:
            del self._state[known]


def _squeeze(disk: Disk, state: dict[tuple[str, str, Any], Any]) -> None:
    """Have the disk hold what its rows come to, so that it does not grow from life to life."""
    disk.rows = [(part, resource, place, value) for (part, resource, place), value in state.items()]
    disk.durable = len(disk.rows)
