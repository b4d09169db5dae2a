"""S7.2, S6.3: a long outage leaves one status an object, and these go up by what they are worth."""

from typing import Any

import pytest

from tests.system.asked import status_writes
from tests.system.bed import Bed, eventually, memory
from tests.system.crowd import each

OFTEN = 5
"""How often those objects report that report periodically."""


def status(step: int) -> dict[str, Any]:
    return {"step": step, "conditions": [{"type": "Ready", "status": "True", "message": "x" * 200}]}


async def report(bed: Bed, names: list[str], step: int) -> None:
    """Objects report, and the agent has heard them."""

    async def one(name: str) -> int:
        change = {"status": status(step)}
        done = await bed.robot.api.patch(bed.robot.goal(name), change, subresource="status")
        return int(done["metadata"]["resourceVersion"])

    last = max(await each(names, one))
    await bed.agent.until(
        lambda status: bool(int(status["kinds"][0]["cursor"]["robot"]) >= last), seconds=60 + len(names) / 20
    )


@pytest.mark.nightly
@pytest.mark.fault_52
async def test_S7_2_a_backlog_goes_up_by_priority_the_newest_of_each_at_flat_memory(bed: Bed) -> None:
    count = 10_000
    names = [f"g{number}" for number in range(count)]
    periodic = names[:: count // 50]
    await each(names, bed.cloud.create)

    async def all_there() -> bool:
        return bool((await bed.kind())["objects"] == {"cloud": count, "robot": count})

    await eventually(all_there, seconds=60 + count / 5, what="every copy is there")
    await bed.settled(seconds=300)
    before = memory(bed.agent.pid)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")

    await report(bed, names, 1)
    bed.robot.link.cut()  # in a long outage everything has been looked at again, and was worth something else then
    await bed.until_side("robot", "offline")
    bed.robot.link.restore()
    await bed.until_side("robot", "connected")
    for step in range(2, OFTEN + 2):
        await report(bed, periodic, step)
    waiting = await bed.agent.until(lambda status: bool(status["outbox"]["depth"] == count))
    assert waiting["health"] == "offline"
    queued = memory(bed.agent.pid)
    bed.cloud.link.clear()
    bed.cloud.link.restore()
    await bed.agent.until(lambda status: bool(status["outbox"]["depth"] == 0), seconds=120 + count / 5)
    await bed.settled(seconds=300)
    peak = memory(bed.agent.pid, "VmHWM")
    print(f"{count} objects: {before:.0f} MiB, with their statuses queued {queued:.0f}, at most {peak:.0f}")
    sent = [request.path.split("/")[-2] for request in status_writes(bed.cloud.link)]
    assert sorted(sent) == sorted(names)  # once each
    early = [name for name in sent[: count - len(periodic)] if name in periodic]
    assert len(early) <= 16  # as many as are on their way at a time
    items = (await bed.cloud.api.list(bed.cloud.resource))["items"]
    assert {item["metadata"]["name"]: item["status"] for item in items} == {
        name: status(OFTEN + 1 if name in periodic else 1) for name in names
    }
    assert queued - before < 10 + count / 250  # 4 KiB each
