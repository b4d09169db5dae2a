"""S9.3: silence that is noticed."""

import pytest

from tests.system.bed import Bed


@pytest.mark.nightly
@pytest.mark.fault_09
async def test_S9_3_packets_that_vanish_are_noticed_within_a_minute_on_both_sides_at_once(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    for link in (bed.cloud.link, bed.robot.link):
        link.half_open()
    down = {"offline", "connecting"}
    await bed.agent.until(lambda s: all(side["state"] in down for side in s["sides"].values()), seconds=66)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.set_status("a", {"phase": "DONE"})
    for link in (bed.cloud.link, bed.robot.link):
        link.restore()
    await bed.robot.shows("a", spec={"x": 2}, seconds=90)
    await bed.cloud.shows("a", status={"phase": "DONE"}, seconds=90)
    assert (await bed.kind())["relists"] == {"cloud": 1, "robot": 1}
