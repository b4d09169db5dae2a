"""S1 on real API servers: CRDs that come, go and change while the agent runs; tests/model shows the rest."""

import pytest

from crsyncer.sandbox.resource import CRD, NAMESPACE
from tests.system.bed import Bed, eventually
from tests.system.kinds import row


async def test_S1_7_all_namespaces_are_synced_and_one_missing_on_the_robot_is_made_and_kept(bed: Bed):
    name = f"made-{bed.group.partition('.')[0]}"
    await bed.cloud.api.ensure_namespace(name)
    for namespace in ("default", name):
        await bed.cloud.create("a", spec={"in": namespace}, namespace=namespace)
    await bed.robot.shows("a", spec={"in": "default"}, namespace="default")
    await bed.robot.shows("a", spec={"in": name}, namespace=name)
    await bed.cloud.delete("a", namespace=name)
    await bed.robot.gone("a", namespace=name)
    assert (await bed.robot.api.get(NAMESPACE.object(name)))["status"]["phase"] == "Active"


@pytest.mark.fault_18
async def test_S1_8_a_crd_deleted_on_the_robot_stops_its_kind_and_comes_back_with_everything(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    raw = await bed.robot.api.get(CRD.object(bed.resource))
    await bed.robot.api.delete(CRD.object(bed.resource))

    async def stopped() -> bool:
        found = await row(bed)
        return found is not None and found["state"] == "kind-missing"

    await eventually(stopped, what="the kind is missing, which is told")
    await bed.robot.api.until_gone(CRD.object(bed.resource))
    assert await bed.cloud.names() == {"a"}
    metadata = {"name": bed.resource, "annotations": raw["metadata"]["annotations"]}
    await bed.robot.api.apply_crd(raw | {"metadata": metadata})
    await bed.robot.shows("a", spec={"x": 1})
    assert await bed.cloud.names() == {"a"}
