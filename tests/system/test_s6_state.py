"""S6: what is on disk survives every end of the agent, and its loss costs a relist, never data."""

import asyncio
from typing import Any

import pytest

from tests.system.asked import deletes, status_writes
from tests.system.bed import Bed, eventually, memory, some_at_a_time
from tests.system.crowd import copied, report_all, shown_all
from tests.system.state_dir import remove_database


@pytest.mark.parametrize("database", ["kept", "deleted"])
async def test_S6_3_twenty_statuses_of_an_outage_survive_kill_9_and_arrive_once(bed: Bed, database: str):
    names = await copied(bed, 20)
    await report_all(bed, names, "BEFORE")
    await shown_all(bed, names, "BEFORE")
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    for phase in ("STARTED", "RUNNING", "DONE"):
        await report_all(bed, names, phase)
    items = (await bed.robot.api.list(bed.robot.resource))["items"]
    last = max(int(item["metadata"]["resourceVersion"]) for item in items)

    def collected(status: dict[str, Any]) -> bool:
        return bool(status["outbox"]["depth"] == 20 and int(status["kinds"][0]["cursor"]["robot"] or 0) >= last)

    await bed.agent.until(collected)
    await bed.agent.kill()
    if database == "deleted":
        remove_database(bed.agent.state_dir)
    bed.cloud.link.clear()
    await bed.agent.start()
    await bed.agent.until(collected)
    bed.cloud.link.restore()
    await shown_all(bed, names, "DONE")
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0)
    await bed.settled()
    # What was merged on the way never went up.
    sent = {(r.path, b"DONE" in r.body) for r in status_writes(bed.cloud.link)}
    assert sent == {(bed.cloud.api.path(bed.cloud.goal(name)) + "/status", True) for name in names}
    assert deletes(bed.robot.link) == deletes(bed.cloud.link) == []


async def test_S6_5_sigterm_in_the_middle_of_work_exits_0_and_loses_nothing(bed: Bed):
    names = await copied(bed, 20)
    bed.cloud.link.stall("/status", method="PATCH")
    bed.robot.link.delay(0.2)
    await asyncio.gather(report_all(bed, names, "DONE"), *(bed.cloud.patch(name, {"spec": {"x": 2}}) for name in names))
    assert await bed.agent.stop() == 0
    bed.cloud.link.heal()
    bed.robot.link.heal()
    await bed.agent.start()
    await shown_all(bed, names, "DONE")
    for name in names:
        await bed.robot.shows(name, spec={"x": 2})


async def test_S6_6_bodies_live_on_disk(bed: Bed):
    """600 objects of 20 kB on two sides are 24 MB of JSON, and several times that as Python objects."""
    await copied(bed, 5)
    few = memory(bed.agent.pid)
    text = "x" * 20_000
    await some_at_a_time(bed.cloud.create(f"big-{n}", spec={"text": text, "number": n}) for n in range(600))

    async def all_there() -> bool:
        return bool((await bed.kind())["objects"]["robot"] == 605)

    await eventually(all_there, what="605 copies")
    await bed.settled(seconds=60)
    grown = memory(bed.agent.pid) - few
    print(f"600 objects of 20 kB: {grown:.1f} MiB more")
    assert grown < 40
