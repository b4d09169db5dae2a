"""S6: what is on disk survives every end of the agent, and its loss costs a relist, never data."""

from tests.system.bed import Bed, eventually, memory, some_at_a_time
from tests.system.crowd import copied


async def test_S6_6_bodies_live_on_disk(bed: Bed):
    """200 objects of 60 kB on two sides are 24 MB of JSON, and several times that as Python objects."""
    await copied(bed, 5)
    few = memory(bed.agent.pid)
    text = "x" * 60_000
    await some_at_a_time(bed.cloud.create(f"big-{n}", spec={"text": text, "number": n}) for n in range(200))

    async def all_there() -> bool:
        return bool((await bed.kind())["objects"]["robot"] == 205)

    await eventually(all_there, what="205 copies")
    await bed.settled(seconds=60)
    grown = memory(bed.agent.pid) - few
    print(f"200 objects of 60 kB: {grown:.1f} MiB more")
    assert grown < 40
