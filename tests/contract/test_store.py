"""The disk of the simulated world knows what the real store knows, keeps what it keeps, and refuses as it does."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crsyncer.adapters.store import store as store_module
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.agent_ports import Store
from crsyncer.core.model import FinalizerRow, Record, ReferenceRow, Side, Tombstone
from tests.adapters.store_kit import GOALS, body, cursor, key, pending, view
from tests.model.simulation.disk import Disk, Memory
from tests.model.simulation.world import World
from tests.mount import Mount, mounted
from tests.system.bed import eventually


class _Immortal:
    """The owner of a store who is never killed."""

    dead = False

    def step(self) -> None:
        """Nothing comes of it."""

    async def passes(self) -> None:
        """Always."""


class Puts:
    """Random puts, of few keys, so that they meet; the same for every store that they are done to."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)

    def one(self) -> Callable[[Store], None]:
        """The next put."""
        chance = self._chance
        number, version, side = chance.randrange(3), chance.randrange(99), chance.choice(list(Side))
        where, resource = key(number), chance.choice([GOALS, "tasks.lab.example.com"])
        some = chance.random() < 0.7
        match chance.randrange(10):
            case 0 | 1:
                seen, raw = view(number, version, side=side), body(number, version, side=side)
                if not some:
                    return lambda store: store.drop_copy(side, resource, where)
                return lambda store: store.put_copy(side, resource, where, seen, raw)
            case 2:
                to, namespace = cursor(version) if some else None, chance.choice(["", "default"])
                return lambda store: store.put_cursor(side, resource, namespace, to)
            case 3:
                record = Record(str(version), applied="d", generations=((1, version),)) if some else None
                return lambda store: store.put_record(resource, where, record)
            case 4:
                row = pending(number, version) if some else None
                return lambda store: store.put_pending(resource, where, row)
            case 5:
                tombstone = Tombstone(str(version), 1.5, held="Restored", hold_id="h1") if some else None
                return lambda store: store.put_tombstone(resource, where, tombstone)
            case 6:
                kept = FinalizerRow(f"u{version}", "x/robot-r1", "cloud", since=1.5) if some else None
                return lambda store: store.put_finalizer(resource, where, kept)
            case 7:
                refers = (
                    ReferenceRow((("default", f"m{version}"),), selected="lab", text=str(version)) if some else None
                )
                return lambda store: store.put_reference(resource, (("p", "maps"), where), refers)
            case 8:
                return lambda store: store.put_meta(f"name-{number}", {"version": version, "x": [1, None]})
            case _:
                keep = chance.random() < 0.5
                return lambda store: store.forget_kind(resource, keep_outbox=keep)


async def known(store: Store) -> list[Any]:
    """Everything that a store can be asked."""
    found: list[Any] = [store.get_meta(f"name-{number}") for number in range(4)]
    for resource in (GOALS, "tasks.lab.example.com", "others.lab.example.com"):
        found += [await store.load(resource), await store.load(resource, only_outbox=True)]
        found += [await store.load_references(resource)]
        found += [await store.body(side, resource, key(number)) for side in Side for number in range(3)]
    return found


@pytest.mark.parametrize("seed", range(12))
async def test_the_disk_in_memory_knows_what_the_real_store_knows_and_keeps_what_it_keeps(
    tmp_path: Path, seed: int
) -> None:
    puts, disk = Puts(seed), Disk()
    simulated_store = Memory(disk, _Immortal(), Random(seed))
    real = await SqliteStore.open(tmp_path)
    for life in range(4):
        for _ in range(40):
            put = puts.one()
            put(real)
            put(simulated_store)
        assert await known(simulated_store) == await known(real)
        if life % 2:
            await real.durable()
            await simulated_store.durable()
        else:
            simulated_store.close()
        disk.crash(Random(seed))
        await real.close()
        real, simulated_store = await SqliteStore.open(tmp_path), Memory(disk, _Immortal(), Random(seed))
        assert await known(simulated_store) == await known(real)
    await real.close()


def test_a_crash_keeps_a_prefix_of_what_was_put_and_all_that_was_durable() -> None:
    kept = set()
    for seed in range(200):
        with World(seed) as world:

            async def put(world: World = world) -> Disk:
                disk = Disk()
                store = Memory(disk, _Immortal(), Random(world.chance.random()))
                store.put_meta("a", 0)
                await store.durable()
                for number in range(1, 5):
                    store.put_meta("a", number)
                disk.crash(world.chance)
                return disk

            disk = world.clock.run(put())
            kept.add(Memory(disk, _Immortal(), world.chance).get_meta("a"))
    assert kept == {0, 1, 2, 3, 4}


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mount]:
    """A disk that can be made to refuse, and a store that soon tries it again."""
    monkeypatch.setattr(store_module, "RETRY_SECONDS", (0.05, 0.2))
    with mounted(tmp_path / "disk") as made:
        yield made


async def test_S6_5_a_disk_that_refuses_keeps_nothing_more_and_everything_once_it_takes_it_again(mount: Mount) -> None:
    disk = Disk()
    simulated, real = Memory(disk, _Immortal(), Random(1)), await SqliteStore.open(mount.directory)

    async def put(name: str, value: int) -> None:
        for store in (simulated, real):
            store.put_meta(name, value)
            store.put_pending(GOALS, key(value), pending(value, value))
            await store.durable()
        assert await known(simulated) == await known(real)

    await put("name-0", 0)
    mount.fill()
    disk.refuses = True
    await put("name-1", 1)
    kept = Memory(disk.copied(), _Immortal(), Random(1))
    assert (kept.get_meta("name-0"), kept.get_meta("name-1")) == (0, None)
    assert real.state == "degraded"
    mount.make_room()
    disk.refuses = False

    async def taken() -> bool:
        return real.state == "ok"

    await eventually(taken, what="the disk has taken everything")
    await put("name-2", 2)
    await real.close()
    real = await SqliteStore.open(mount.directory)
    assert await known(Memory(disk.copied(), _Immortal(), Random(1))) == await known(real)
    await real.close()
