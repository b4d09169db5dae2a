"""A link that is slow, far and lossy: 16 kbit/s, 600 ms, 5 % (row 41)."""

import asyncio

import pytest

from tests.system.bed import Bed, some_at_a_time
from tests.system.crowd import all_show, copied

OBJECTS = 16
_SLOW = 300.0


@pytest.mark.nightly
@pytest.mark.fault_41
async def test_over_a_slow_and_lossy_link_everything_arrives_and_no_watch_is_given_up(bed: Bed):
    names = await copied(bed, 2 * OBJECTS)
    before = await bed.kind()
    link = bed.cloud.link
    link.throttle(2000)
    link.delay(0.3, loss=0.05)
    link.cut()  # what is open was faster
    await bed.until_side("cloud", "offline")
    changed, reported = names[:OBJECTS], names[OBJECTS:]
    text = "x" * 1000
    await some_at_a_time(bed.cloud.patch(name, {"spec": {"x": 2, "text": text}}) for name in changed)
    await some_at_a_time(bed.robot.set_status(name, {"phase": "DONE", "text": text}) for name in reported)
    link.clear()
    link.restore()
    started = asyncio.get_running_loop().time()
    await all_show(bed.robot, changed, "spec", {"x": 2, "text": text}, seconds=_SLOW)
    await all_show(bed.cloud, reported, "status", {"phase": "DONE", "text": text}, seconds=_SLOW)
    seconds = asyncio.get_running_loop().time() - started
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0, seconds=_SLOW)
    print(f"{OBJECTS} changes of 1 KB each way in {seconds:.0f} s: {link.bytes_up} bytes up, {link.bytes_down} down,")
    print(f"{link.connects} connections, {len([r for r in link.requests if r.method == 'PATCH'])} status writes")
    status = await bed.agent.status()
    assert status["sides"]["cloud"]["reconnects"] == 1  # the cut
    assert (await bed.kind())["relists"] == before["relists"]
