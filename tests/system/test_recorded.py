"""What is recorded outlives the link it came by, and is not misread when the question changes."""

import pytest

from tests.system.bed import Bed
from tests.system.state_dir import passed


@pytest.mark.nightly("to be shown by the model")
async def test_S7_1_a_recorded_deletion_is_carried_out_although_the_cloud_has_left_since(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    bed.robot.link.cut()
    await bed.until_side("robot", "offline")
    await bed.cloud.delete("a")
    await passed(bed, "a")  # whether the kind is alive is asked while the cloud can still answer
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    bed.robot.link.restore()
    await bed.robot.gone("a")
