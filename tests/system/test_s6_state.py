"""S6: what is on disk survives every end of the agent, and its loss costs a relist, never data."""

from tests.system.bed import Bed, eventually, memory, some_at_a_time
from tests.system.crowd import copied


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
