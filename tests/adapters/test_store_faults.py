"""The store through deaths and disks that refuse (faults 1, 2, 43, 44)."""

import asyncio
import random
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from crsyncer.adapters.store import store as store_module
from crsyncer.adapters.store.offline import read_offline
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Side
from tests.adapters.store_child import DURABLE, OBJECTS, Nursery
from tests.adapters.store_kit import COMPANIONS, GOALS, body, crash, cursor, key, known, lay_out, report_status
from tests.mount import mounted


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


async def check_prefix(directory: Path) -> int:
    """Both cursors cover only what is there, all that was durable is there; returns the cloud's cursor."""
    acknowledged = [int(line) for line in (directory / DURABLE).read_text().split()] or [0]
    store = await SqliteStore.open(directory / "state")
    assert (store.state, store.notes) == ("ok", [])
    loaded = await store.load(GOALS)
    cursors = {}
    for side in Side:
        found = loaded.cursors.get((side, ""))
        cursors[side] = last = int(found.resource_version) if found else 0
        assert last >= acknowledged[-1]
        for version in range(max(1, last - OBJECTS + 1), last + 1):
            seen = loaded.views[side][key(version % OBJECTS)]
            assert int(seen.resource_version) in (version, last + 1)
            stored = await store.body(side, GOALS, key(version % OBJECTS))
            assert stored == body(version % OBJECTS, int(seen.resource_version), side=side)
    await store.close()
    return cursors[Side.CLOUD]


@pytest.mark.parametrize("point", ["commit", "committed"])
@pytest.mark.fault_01
async def test_fault_01_kill_9_at_every_commit_leaves_a_prefix(tmp_path, nursery, point):
    for number in range(1, 8):
        directory = tmp_path / str(number)
        directory.mkdir()
        assert nursery.run(directory, changes=20, fault=f"{point}:{number}") == -signal.SIGKILL
        assert await check_prefix(directory) >= 3 * (number - (point == "commit")) - 2
        assert nursery.run(directory, changes=20) == 0
        assert await check_prefix(directory) >= 20


@pytest.mark.fault_02
async def test_fault_02_kill_9_at_any_time_under_load_leaves_a_prefix(tmp_path, nursery):
    seeded, reached = random.Random(2), 0
    for run in range(40):
        if run >= 12 and reached:
            break
        # Where a process hardly gets to run, the later ones live longer.
        code = nursery.run(tmp_path, changes=10**6, kill_after=seeded.uniform(0.02, 0.4) * max(1, run - 10))
        assert code == -signal.SIGKILL
        if (tmp_path / DURABLE).exists():
            kinds = read_offline(tmp_path / "state").kinds
            now = await check_prefix(tmp_path)
            assert now >= reached
            assert not now or int(kinds[GOALS].cursors[Side.CLOUD, ""].resource_version) == now
            reached = now
    assert reached


class Operator:
    """Writes down what the store reports."""

    def __init__(self) -> None:
        self.heard: list[str | None] = []
        self.worried, self.well = asyncio.Event(), asyncio.Event()

    def hear(self, message: str | None) -> None:
        """What the store calls."""
        self.heard.append(message)
        (self.well if message is None else self.worried).set()


async def check_refusal(directory: Path, elsewhere: Path, refuse, relent) -> None:
    operator = Operator()
    store = await SqliteStore.open(directory, on_trouble=operator.hear)
    report_status(store, 1, 1)
    await store.durable()
    refuse()
    for number in range(2, 400):
        report_status(store, number, number)
    await store.durable()
    await asyncio.wait_for(operator.worried.wait(), 60)
    assert store.state == "degraded"
    report_status(store, 1, 400)  # newest wins over what is stuck
    await store.durable()
    loaded = await store.load(GOALS)
    assert loaded.views[Side.ROBOT][key(1)].resource_version == "400"
    assert await store.body(Side.ROBOT, GOALS, key(300)) == body(300, 300)
    frozen = {suffix: (directory / f"state.db{suffix}").read_bytes() for suffix in COMPANIONS}
    copied = await SqliteStore.open(lay_out(elsewhere, frozen))
    on_disk = await copied.load(GOALS)
    frozen_at = int(on_disk.cursors[Side.CLOUD, ""].resource_version)
    assert frozen_at < 399
    covered = {int(seen.resource_version) for seen in on_disk.views[Side.CLOUD].values()}
    assert covered == set(range(1, frozen_at + 1))  # frozen with the data it covers
    await copied.close()
    relent()
    await asyncio.wait_for(operator.well.wait(), 60)
    assert [message is None for message in operator.heard] == [False, True]
    await store.durable()
    await store.close()
    store = await SqliteStore.open(directory)
    assert (await store.load(GOALS)).cursors[Side.CLOUD, ""] == cursor(400)
    assert len((await store.load(GOALS)).views[Side.ROBOT]) == 399
    await store.close()


@pytest.fixture
def quick_retry(monkeypatch):
    monkeypatch.setattr(store_module, "RETRY_SECONDS", (0.05, 0.2))


@pytest.mark.fault_44
async def test_fault_44_a_disk_that_refuses_is_reported_and_loses_nothing(tmp_path, quick_retry):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        await check_refusal(
            tmp_path / "state",
            tmp_path / "copied",
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1])),
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before),
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def no_space():
    """Refuse every file that grows. Over before the test ends: what the runner prints may go to a file, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_on_a_full_disk_the_agent_still_starts_with_what_is_there(tmp_path):
    directory = lay_out(tmp_path / "state", {"": (await crash(tmp_path / "original"))["closed"]})
    with no_space():
        store = await SqliteStore.open(directory)
        loaded = await store.load(GOALS)
        report_status(store, 1, 3)
        assert not await store.durable()
        state = store.state
        await store.close()
    assert loaded.views == known(2).views
    assert state == "degraded"


@pytest.mark.fault_43
async def test_fault_43_a_full_disk_is_reported_and_loses_nothing(tmp_path, quick_retry):
    with mounted(tmp_path / "disk") as disk:
        await check_refusal(
            disk.directory / "state", tmp_path / "copied", lambda: disk.fill(leave=200_000), disk.make_room
        )
