"""S5: what real servers make of deletions: finalizers, whole collections, and CRDs that take their objects along."""

import pytest

from tests.system.bed import Bed, crd
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.kinds import account, account_name, rules
from tests.system.vanished import all_held, back, delete_crd, out_of_sight


@pytest.mark.fault_16
async def test_S5_5a_a_kind_deleted_in_the_cloud_is_held_and_goes_on_by_itself_when_it_is_back(bed: Bed):
    names = await copied(bed, 3)
    before = {name: (await bed.robot.get(name))["metadata"]["uid"] for name in names}
    await delete_crd(bed)
    await all_held(bed, 3)
    assert await bed.robot.names() == set(names)
    # New objects of the old names are others: the copies are replaced.
    await back(bed, names)
    for name in names:
        assert (await bed.robot.get(name))["metadata"]["uid"] != before[name]
    await bed.cloud.delete(names[0])
    await bed.robot.gone(names[0])


@pytest.mark.fault_16
async def test_S5_5a_a_small_account_that_may_read_the_crd_and_kube_system_is_enough(make_bed: MakeBed):
    bed = await make_bed(start=False)
    reading = [
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
    ]
    token = await account(bed.cloud.api, account_name(bed.group), rules(bed.group, "patch") + reading)
    bed.cloud.link.kubeconfig(bed.directory / "cloud.yaml", token=token)
    await bed.start()
    names = await copied(bed, 3)
    async with out_of_sight(bed, "down"):
        await delete_crd(bed)
        await bed.cloud.api.apply_crd(crd(bed.group))
    await all_held(bed, 3, state="held")
    assert await bed.robot.names() == set(names)
    await back(bed, names)
