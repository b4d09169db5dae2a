"""C6 between real API servers: deletion in the cloud waits until the copy has gone and its last status is up."""

from crsyncer.core.content.annotations import OURS
from tests.api import Api
from tests.system.bed import ROBOT, SideBed, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import set_policy

MINE, LOCAL, FOREIGN = f"{OURS}robot-{ROBOT}", "example.com/cleans-up", "example.com/owner"


async def has_finalizers(side: SideBed, name: str, *wanted: str) -> None:
    """Wait until an object has these finalizers, in this order."""

    async def found() -> bool:
        return tuple((await side.get(name))["metadata"].get("finalizers") or ()) == wanted

    await eventually(found, what=f"{name} has the finalizers {wanted}")


def finalized(*names: str) -> dict:
    return {"metadata": {"finalizers": list(names) or None}}


async def test_C6_3_deletion_in_the_cloud_waits_for_the_copys_own_finalizer_and_the_last_status(
    policy_api: Api, make_bed: MakeBed
) -> None:
    bed = await make_bed()
    await bed.cloud.create("old", spec={"x": 1})
    await bed.robot.shows("old", spec={"x": 1})
    policy = await set_policy(policy_api, bed, deletion={"mode": "blocking"})
    await has_finalizers(bed.cloud, "old", MINE)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await has_finalizers(bed.cloud, "a", MINE)
    await bed.cloud.patch("a", finalized(FOREIGN, MINE))
    await has_finalizers(bed.cloud, "a", FOREIGN, MINE)
    await bed.robot.patch("a", finalized(LOCAL))
    await bed.cloud.delete("a")

    async def terminating() -> bool:
        return "deletionTimestamp" in (await bed.robot.get("a"))["metadata"]

    await eventually(terminating, what="the copy is terminating")
    await has_finalizers(bed.cloud, "a", FOREIGN, MINE)
    await bed.robot.set_status("a", {"phase": "CLEANED_UP"})
    await bed.robot.patch("a", finalized())
    await bed.robot.gone("a")
    await has_finalizers(bed.cloud, "a", FOREIGN)
    await bed.cloud.shows("a", status={"phase": "CLEANED_UP"})
    await bed.cloud.patch("a", finalized())
    await bed.cloud.gone("a")
    await policy_api.patch(policy, {"spec": {"deletion": {"mode": "async"}}})
    await has_finalizers(bed.cloud, "old")
    await bed.robot.shows("old", spec={"x": 1})
