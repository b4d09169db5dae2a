"""The store when the power is cut: what was promised is there, the rest is there in order or not at all (fault 3)."""

import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from crsyncer.adapters.store.store import SqliteStore
from tests.adapters.platter import Platter
from tests.adapters.store_histories import PROMISES, STEP, Model, Operation, history, puts
from tests.adapters.store_kit import lay_out
from tests.disk import SYNCS, Change, Disk

STEPS = 250


@dataclass(frozen=True, slots=True)
class Recording:
    """A history that a store wrote, and all that it asked of the disk meanwhile."""

    operations: list[Operation]
    trace: list[Change]
    before: Platter
    foreign: bool = False
    """It began with files that cannot be used."""


def record(disk: Disk, *, seed: int, steps: int = STEPS) -> Recording:
    """Have a process of its own write a history, with what is there now."""
    directory = disk.directory / "written"
    directory.mkdir(exist_ok=True)
    before = Platter(directory)
    program = (sys.executable, "-m", "tests.adapters.store_histories", str(directory), str(seed), str(steps))
    subprocess.run([*disk.wrapper, *program], check=True, cwd=Path(__file__).parents[2])
    return Recording(puts(history(seed, steps)), disk.trace, before)


async def violations(recording: Recording, scratch: Path, *, seed: int, cuts: int) -> list[str]:
    """Cut the power at random moments, mostly around syncs, and say what must not have happened then."""
    seeded, platter, promised, found = random.Random(seed), recording.before, 0, []
    trace = recording.trace
    weights = [5 if {change.call, before.call} & set(SYNCS) else 1 for before, change in pairwise([trace[0], *trace])]
    moments = Counter(seeded.choices(range(len(trace)), weights, k=cuts))
    for at, change in enumerate(trace):
        for again in range(moments[at]):
            left, directory = platter.cut(seeded), scratch / f"{seed}-{at}-{again}"
            if wrong := await unlike(left, recording, directory, promised):
                found.append(f"cut {at} ({change.call} {change.path.name}), {promised} were promised: {wrong}")
        platter.apply(change)
        if change.path.name == PROMISES and change.call == "write":
            promised = int(change.data)
    return found


async def unlike(files: dict[Path, bytes], recording: Recording, directory: Path, promised: int) -> str:
    """How what a power cut left differs from what must be left; nothing, where it does not."""
    directory.mkdir()
    for path, content in files.items():
        target = directory / path.relative_to(recording.before.root)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o600)
    store = await SqliteStore.open(directory / "state")
    step = store.get_meta(STEP) or 0
    # What was put and the number of its step may be in two commits.
    known = [await Model(recording.operations[:count]).is_in(store) for count in (step, step + 1)]
    state, notes = store.state, store.notes
    await store.close()
    if state != "ok" and (promised or not recording.foreign):
        return f"{state}: {notes}"
    if step < promised:
        return f"only {step} are there"
    return "" if any(known) else f"it knows neither what was put until {step}, nor one more"


async def check(recording: Recording, scratch: Path, *, seed: int, cuts: int) -> None:
    assert await violations(recording, scratch, seed=seed, cuts=cuts) == []
    for path, content in recording.before.live().items():
        assert path.read_bytes() == content, path  # nothing that was asked of the disk has escaped us


@pytest.mark.fault_03
async def test_fault_03_a_power_cut_leaves_a_prefix_with_all_that_was_promised(disk, tmp_path):
    await check(record(disk, seed=1), tmp_path, seed=1, cuts=70)


@pytest.mark.fault_03
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 10))
async def test_fault_03_power_cuts_in_many_histories(disk, tmp_path, seed):
    await check(record(disk, seed=seed, steps=400), tmp_path, seed=seed, cuts=500)


@pytest.mark.fault_03
async def test_fault_03_a_power_cut_while_a_foreign_database_is_set_aside(disk, tmp_path):
    lay_out(tmp_path / "written" / "state", {"": b"foreign" * 1000, "-wal": b"foreign" * 1000})
    recording = replace(record(disk, seed=1, steps=30), foreign=True)
    await check(recording, tmp_path, seed=1, cuts=40)


@pytest.mark.fault_03
async def test_fault_03_without_its_syncs_a_power_cut_takes_what_was_promised(disk, tmp_path):
    """Shows that the cuts can tell: a store whose WAL is not synced would be caught."""
    recording = record(disk, seed=1, steps=60)
    unsynced = [change for change in recording.trace if not (change.call in SYNCS and change.path.suffix == ".db-wal")]
    found = await violations(replace(recording, trace=unsynced), tmp_path, seed=1, cuts=60)
    assert any("are there" in violation for violation in found)
