"""S4.4: the last status of a copy that has vanished, and the copy that takes its place."""

import pytest

from tests.system.bed import Bed


@pytest.mark.nightly("to be shown by the model")
async def test_S4_4_a_copy_that_is_being_made_while_the_last_status_is_acknowledged_gets_it(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    bed.robot.link.delay(2.0)  # the second try at the cloud is answered before the new copy is heard of
    bed.cloud.link.inject("/a/status", method="PATCH", status=500, times=1)
    await bed.robot.set_status("a", {"phase": "Done"})
    await bed.robot.delete("a")
    await bed.cloud.shows("a", status={"phase": "Done"}, seconds=90)
    await bed.robot.shows("a", status={"phase": "Done"}, seconds=90)
    await bed.settled()
    assert (await bed.cloud.get("a"))["status"] == {"phase": "Done"}
