"""S7: without the link the robot goes on alone; with it again, what matters most comes first."""

from typing import Any

from tests.system.bed import Bed, eventually


async def without_cloud(bed: Bed) -> None:
    """Start the agent anew with the cloud absent since boot."""
    await bed.agent.stop()
    bed.cloud.link.cut()
    bed.robot.link.clear()
    await bed.start(state="waiting")
    await bed.until_side("cloud", "offline")
    await bed.until_side("robot", "connected")


async def test_S7_1_a_copy_deleted_by_hand_is_back_from_the_store_with_the_cloud_absent_since_boot(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1, "text": "ü" * 100}, labels={"l": "1"})
    await bed.robot.shows("a")
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.settled()
    await without_cloud(bed)
    old = await bed.robot.get("a")
    await bed.robot.delete("a")

    async def back() -> bool:
        found = await bed.robot.find("a")
        return bool(found and found["metadata"]["uid"] != old["metadata"]["uid"] and told(found) == told(old))

    await eventually(back, what="the copy is back as it was")


def told(copy: dict[str, Any]) -> list[Any]:
    """What is the same of a copy that was made again."""
    return [copy["spec"], copy.get("status"), copy["metadata"]["labels"], copy["metadata"]["annotations"]]
