"""Histories of puts, what a store must know after them, and a process that writes one."""

import asyncio
import os
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Key, Loaded, Record, Side, Tombstone
from tests.adapters.store_kit import GOALS, body, cursor, pending, view

Operation = tuple[Any, ...]
"""A put: its name and arguments, of which the last one, a number, is what is put; None removes."""

RESOURCES = (GOALS, "b.c")
KEYS = (Key("", "a"), Key("a", "a"), Key("a", "b"))
STEP = "step"
"""The small value that says how many operations have been put."""
PROMISES = "promises"
"""The file to which a history writes how many operations are durable, each time in its place."""


def put(store: SqliteStore, operation: Operation) -> None:
    """Put one operation into a store."""
    match operation:
        case "copy", side, resource, key, number:
            store.put_copy(side, resource, key, view(number), body(number))
        case "drop", side, resource, key:
            store.drop_copy(side, resource, key)
        case "cursor", side, resource, number:
            store.put_cursor(side, resource, "", None if number is None else cursor(number))
        case "record", resource, key, number:
            store.put_record(resource, key, _record(number))
        case "pending", resource, key, number:
            store.put_pending(resource, key, None if number is None else pending(number, number))
        case "tombstone", resource, key, number:
            store.put_tombstone(resource, key, _tombstone(number))
        case "forget", resource, keep_outbox:
            store.forget_kind(resource, keep_outbox=keep_outbox)
        case _:
            raise AssertionError(operation)


class Model:
    """What a store knows: dictionaries."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        self.kinds = {resource: Loaded() for resource in RESOURCES}
        self.bodies: dict[tuple[Side, str, Key], Any] = {}
        for operation in operations:
            self.put(operation)

    def put(self, operation: Operation) -> None:
        """Put one operation."""
        match operation:
            case "copy", side, resource, key, number:
                self.kinds[resource].views[side][key] = view(number)
                self.bodies[side, resource, key] = body(number)
            case "drop", side, resource, key:
                self.kinds[resource].views[side].pop(key, None)
                self.bodies.pop((side, resource, key), None)
            case "cursor", side, resource, number:
                _set(self.kinds[resource].cursors, (side, ""), None if number is None else cursor(number))
            case "record", resource, key, number:
                _set(self.kinds[resource].records, key, _record(number))
            case "pending", resource, key, number:
                _set(self.kinds[resource].pending, key, None if number is None else pending(number, number))
            case "tombstone", resource, key, number:
                _set(self.kinds[resource].tombstones, key, _tombstone(number))
            case "forget", resource, keep_outbox:
                self.kinds[resource] = Loaded(pending=self.kinds[resource].pending if keep_outbox else {})
                self.bodies = {place: value for place, value in self.bodies.items() if place[1] != resource}

    async def is_in(self, store: SqliteStore) -> bool:
        """Whether a store knows exactly this."""
        for resource, loaded in self.kinds.items():
            if await store.load(resource) != loaded:
                return False
            keys = {*KEYS, *(key for seen in loaded.views.values() for key in seen)}
            for side in Side:
                for key in keys:
                    if await store.body(side, resource, key) != self.bodies.get((side, resource, key)):
                        return False
        return True


def _set(rows: dict[Any, Any], place: Any, value: Any) -> None:
    rows.pop(place, None)
    if value is not None:
        rows[place] = value


def _record(number: int | None) -> Record | None:
    return None if number is None else Record(str(number))


def _tombstone(number: int | None) -> Tombstone | None:
    return None if number is None else Tombstone(str(number), 1.0)


def history(seed: int, count: int) -> list[Operation]:
    """A random history over some thirty objects; "durable" and "reopen" are no puts."""
    seeded, keys = random.Random(seed), [Key("a", f"goal-{number}") for number in range(30)]
    found: list[Operation] = []
    for _ in range(count):
        side, resource, key = seeded.choice(list(Side)), seeded.choice(RESOURCES), seeded.choice(keys)
        number = seeded.choice([None, *range(5)])
        choices: list[Operation] = [
            ("copy", side, resource, key, number or 0),
            ("drop", side, resource, key),
            ("cursor", side, resource, number),
            ("record", resource, key, number),
            ("pending", resource, key, number),
            ("tombstone", resource, key, number),
            ("forget", resource, seeded.random() < 0.5),
            ("durable",),
            ("reopen",),
        ]
        found += seeded.choices(choices, [60, 10, 30, 20, 30, 10, 1, 15, 2])
    return found


def puts(operations: Iterable[Operation]) -> list[Operation]:
    """Those operations that put something."""
    return [operation for operation in operations if operation[0] not in ("durable", "reopen")]


async def write(directory: Path, operations: Iterable[Operation]) -> None:
    """Put a history, each operation before the number of its step, and write down what is promised to be on disk."""
    promises = os.open(directory / PROMISES, os.O_RDWR | os.O_CREAT)
    store, step = await SqliteStore.open(directory / "state"), 0
    for operation in operations:
        if operation[0] not in ("durable", "reopen"):
            put(store, operation)
            step += 1
            store.put_meta(STEP, step)
            continue
        if operation[0] == "durable":
            await store.durable()
        else:
            await store.close()
        os.pwrite(promises, str(step).encode(), 0)
        if operation[0] == "reopen":
            store = await SqliteStore.open(directory / "state")
    await store.close()
    os.close(promises)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), history(int(sys.argv[2]), int(sys.argv[3]))))
