"""Controllers that are killed under load, on a real API server: no replica is made twice, and none is lost."""

import asyncio
import contextlib
import random
from collections import Counter

import pytest

from tests.api import ApiError
from tests.system.bed import eventually
from tests.system.conftest import LEASE
from tests.system.fleet_bed import OURS, FleetBed

ROBOTS = [f"r{number}" for number in range(12)]
SOURCES = [f"g{number}" for number in range(4)]


async def follow(fleet: FleetBed, since: str, events: Counter[str]) -> None:
    """Count what a watch shows of replicas: which came and which went."""
    async for kind, obj in fleet.api.watch(fleet.goals, since=since):
        metadata = obj["metadata"]
        if OURS + "source" in (metadata.get("labels") or {}) and kind != "MODIFIED":
            events[f"{kind} {metadata['namespace']}/{metadata['name']}"] += 1


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.nightly)])
async def test_F3_3_F6_3_a_controller_that_is_killed_again_and_again_makes_no_replica_twice_and_loses_none(
    fleet: FleetBed, kills: int
) -> None:
    seeded, over, events, numbers = random.Random(kills), asyncio.Event(), Counter[str](), dict.fromkeys(SOURCES, 0)
    since = (await fleet.api.list(fleet.goals))["metadata"]["resourceVersion"]
    following = asyncio.create_task(follow(fleet, since, events))
    await fleet.robots(*ROBOTS)
    for name in SOURCES:
        await fleet.api.create(fleet.goal(name, number=0))
    await fleet.place()

    async def load() -> None:
        while not over.is_set():
            name = seeded.choice(SOURCES)
            numbers[name] += 1
            await fleet.api.patch(fleet.goal(name), {"spec": {"number": numbers[name]}})
            await asyncio.sleep(0.05)

    loading = asyncio.create_task(load())
    for number in range(kills):
        fleet.start(f"c{number}")
        await asyncio.wait([loading], timeout=seeded.uniform(1.0, 5.0))
        assert not loading.done(), loading.exception()
        await fleet.controllers[f"c{number}"].kill()
        with contextlib.suppress(ApiError):
            await fleet.api.delete(LEASE)  # the next one does not have to wait until the dead one's has run out
    over.set()
    await loading
    fleet.start("last")

    async def agree() -> bool:
        found = {place: raw["spec"]["number"] for place, raw in (await fleet.replicas()).items()}
        return found == {f"robot-{robot}/{name}": numbers[name] for robot in ROBOTS for name in SOURCES}

    await eventually(agree, seconds=180, what="each robot's replica of each source")
    places = [f"robot-{robot}/{name}" for robot in ROBOTS for name in SOURCES]

    async def shown() -> bool:
        return len(events) >= len(places)

    await eventually(shown, what="a watch that has shown all replicas")
    assert events == Counter(f"ADDED {place}" for place in places)
    following.cancel()
