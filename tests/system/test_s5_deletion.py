"""S5: what real servers make of deletions: finalizers, whole collections, and CRDs that take their objects along."""

import pytest

from tests.system.bed import crd
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.kinds import account, account_name, rules
from tests.system.vanished import all_held, back, delete_crd, out_of_sight


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
