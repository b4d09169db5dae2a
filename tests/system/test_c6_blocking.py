"""C6 between real API servers: deletion in the cloud waits until the copy has gone and its last status is up."""

from collections.abc import AsyncIterator

import pytest
import yaml

from crsyncer.cli.crds import SYNC_POLICY
from crsyncer.core.content.annotations import OURS
from tests.api import Api
from tests.core.sync_policies import MINIMAL
from tests.system.bed import ROBOT, Bed, SideBed, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import until_row

MINE, LOCAL, FOREIGN = f"{OURS}robot-{ROBOT}", "example.com/cleans-up", "example.com/owner"


@pytest.fixture
async def api(robot_api: Api) -> AsyncIterator[Api]:
    """The robot's API server serves SyncPolicies, and no longer does afterwards."""
    crd = yaml.safe_load(SYNC_POLICY.read_text())
    try:
        await robot_api.apply_crd(crd)
        yield robot_api
    finally:
        if await robot_api.find(crd):
            await robot_api.delete(crd)
            await robot_api.until_gone(crd)


async def block(api: Api, bed: Bed, **deletion: str) -> dict:
    """Give the kind of a bed a policy whose deletion is blocking."""
    resource = {"group": bed.group, "resource": bed.cloud.resource.plural}
    spec = {"resource": resource, "deletion": {"mode": "blocking", **deletion}}
    policy = {**MINIMAL, "metadata": {"name": bed.group}, "spec": spec}
    await api.create(policy)
    await until_row(bed, state="syncing", policy=bed.group)
    return policy


async def has_finalizers(side: SideBed, name: str, *wanted: str) -> None:
    """Wait until an object has these finalizers, in this order."""

    async def found() -> bool:
        return tuple((await side.get(name))["metadata"].get("finalizers") or ()) == wanted

    await eventually(found, what=f"{name} has the finalizers {wanted}")


def finalized(*names: str) -> dict:
    return {"metadata": {"finalizers": list(names) or None}}


async def test_C6_3_deletion_in_the_cloud_waits_for_the_copys_own_finalizer_and_the_last_status(
    api: Api, make_bed: MakeBed
) -> None:
    bed = await make_bed()
    await bed.cloud.create("old", spec={"x": 1})
    await bed.robot.shows("old", spec={"x": 1})
    policy = await block(api, bed)
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
    await api.patch(policy, {"spec": {"deletion": {"mode": "async"}}})
    await has_finalizers(bed.cloud, "old")
    await bed.robot.shows("old", spec={"x": 1})
