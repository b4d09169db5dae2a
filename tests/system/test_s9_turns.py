"""S9.5: a crowd of writes has neither another kind nor a newcomer wait for all of them."""

import os
import signal

import pytest

from tests.system.asked import status_writes
from tests.system.bed import Bed, eventually, some_at_a_time
from tests.system.crowd import copied
from tests.system.kinds import another, until_row

CROWD = 160
FAR = 0.4


async def reported(bed: Bed) -> int:
    """How many of the crowd have a status in the cloud."""
    items = (await bed.cloud.api.list(bed.cloud.resource))["items"]
    return sum(item.get("status") == {"phase": "RUNNING"} for item in items)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("whose", ["another kind", "the same kind"])
async def test_S9_5_a_change_does_not_wait_for_a_crowd_that_came_before_it(bed: Bed, whose: str):
    cloud, robot = await another(bed) if whose == "another kind" else (bed.cloud, bed.robot)
    await until_row(bed, cloud.resource.plural, state="syncing")
    names = await copied(bed, CROWD)
    await cloud.create("live", spec={"x": 1})
    await robot.shows("live", spec={"x": 1})
    await bed.settled()
    link = bed.cloud.link
    link.delay(FAR)
    link.cut()  # what is open was near
    await bed.until_side("cloud", "offline")
    link.restore()
    await bed.until_side("cloud", "connected")
    await until_row(bed, cloud.resource.plural, state="syncing")
    link.clear()
    os.kill(bed.agent.pid, signal.SIGSTOP)  # it hears of all of it at once, however long the telling takes
    await some_at_a_time(bed.robot.set_status(name, {"phase": "RUNNING"}) for name in names)
    await robot.set_status("live", {"phase": "DONE"})
    os.kill(bed.agent.pid, signal.SIGCONT)
    await cloud.shows("live", status={"phase": "DONE"}, seconds=60)
    before = [write.path for write in status_writes(link)].index(
        f"{cloud.resource.path(namespace='default', name='live')}/status"
    )
    print(f"{before} of {CROWD} were sent before it")
    assert before < CROWD / 2
    link.delay(0)

    async def all_reported() -> bool:
        return await reported(bed) == CROWD

    await eventually(all_reported, seconds=120, what="all statuses are in the cloud")
