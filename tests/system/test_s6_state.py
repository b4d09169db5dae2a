"""S6: what is on disk survives every end of the agent, and its loss costs a relist, never data."""

import asyncio

from tests.system.bed import Bed, eventually, memory, some_at_a_time
from tests.system.crowd import copied, report_all, shown_all


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
