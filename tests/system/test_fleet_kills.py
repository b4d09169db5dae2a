"""Controllers that are killed under load, on a real API server: no replica is made twice, and none is lost."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crsyncer.sandbox.plane import Plane
from tests.api import Api, ApiError
from tests.system.bed import eventually
from tests.system.conftest import LEASE
from tests.system.fleet_bed import OURS, FleetBed, make_bed

ROBOTS = [f"r{number}" for number in range(12)]
SOURCES = [f"g{number}" for number in range(4)]


@pytest.fixture
async def bed(fleet_api: Api, cloud: Plane, tmp_path: Path, group: str) -> AsyncIterator[FleetBed]:
    bed = await make_bed(fleet_api, cloud, tmp_path, group)
    try:
        yield bed
    finally:
        await bed.stop()


async def follow(bed: FleetBed, since: str, events: Counter[str]) -> None:
    """Count what a watch shows of replicas: which came and which went."""
    async for kind, obj in bed.api.watch(bed.goals, since=since):
        metadata = obj["metadata"]
        if OURS + "source" in (metadata.get("labels") or {}) and kind != "MODIFIED":
            events[f"{kind} {metadata['namespace']}/{metadata['name']}"] += 1


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.nightly)])
async def test_F3_3_F6_3_a_controller_that_is_killed_again_and_again_makes_no_replica_twice_and_loses_none(
    bed: FleetBed, kills: int
) -> None:
    seeded, over, events, numbers = random.Random(kills), asyncio.Event(), Counter[str](), dict.fromkeys(SOURCES, 0)
    since = (await bed.api.list(bed.goals))["metadata"]["resourceVersion"]
    following = asyncio.create_task(follow(bed, since, events))
    await bed.robots(*ROBOTS)
    for name in SOURCES:
        await bed.api.create(bed.goal(name, number=0))
    await bed.place()

    async def load() -> None:
        while not over.is_set():
            name = seeded.choice(SOURCES)
            numbers[name] += 1
            await bed.api.patch(bed.goal(name), {"spec": {"number": numbers[name]}})
            await asyncio.sleep(0.05)

    loading = asyncio.create_task(load())
    for number in range(kills):
        bed.start(f"c{number}")
        await asyncio.wait([loading], timeout=seeded.uniform(1.0, 5.0))
        assert not loading.done(), loading.exception()
        await bed.controllers[f"c{number}"].kill()
        with contextlib.suppress(ApiError):
            await bed.api.delete(LEASE)  # the next one does not have to wait until the dead one's has run out
    over.set()
    await loading
    bed.start("last")

    async def agree() -> bool:
        found = {place: raw["spec"]["number"] for place, raw in (await bed.replicas()).items()}
        return found == {f"robot-{robot}/{name}": numbers[name] for robot in ROBOTS for name in SOURCES}

    await eventually(agree, seconds=180, what="each robot's replica of each source")
    places = [f"robot-{robot}/{name}" for robot in ROBOTS for name in SOURCES]

    async def shown() -> bool:
        return len(events) >= len(places)

    await eventually(shown, what="a watch that has shown all replicas")
    assert events == Counter(f"ADDED {place}" for place in places)
    following.cancel()
