"""What is recorded outlives the link it came by, and is not misread when the question changes."""

import pytest

from crsyncer.sandbox.resource import CRD
from tests.system.bed import SYNCER, Bed
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


@pytest.mark.nightly("to be shown by the model")
async def test_S4_5_a_subtree_that_is_annotated_later_is_not_confused_with_the_whole_status(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"robot": {"phase": "A"}, "other": 1})
    await bed.cloud.shows("a", status={"robot": {"phase": "A"}, "other": 1})
    annotation = {SYNCER + "status-subtree": "robot"}
    await bed.robot.api.patch(CRD.object(bed.resource), {"metadata": {"annotations": annotation}})
    await bed.agent.until(lambda status: status["kinds"][0]["statusSubtree"] == "robot")
    await bed.robot.set_status("a", {"robot": {"phase": "B"}, "other": 2})
    await bed.cloud.shows("a", status={"robot": {"phase": "B"}, "other": 1})


@pytest.mark.nightly("to be shown by the model")
async def test_S4_3_a_copy_that_somebody_put_in_the_place_of_ours_does_not_wipe_the_status_upstream(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    copy = await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.settled()
    history = await bed.cloud.record("a")
    async with bed.stopped():
        await bed.robot.delete("a")
        kept = {k: v for k, v in copy["metadata"].items() if k in ("name", "namespace", "annotations")}
        await bed.robot.api.create({**copy, "metadata": kept})
    await bed.settled()
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    await bed.settled()
    assert {str(status) for status in await history.complete()} == {"{'phase': 'DONE'}"}
