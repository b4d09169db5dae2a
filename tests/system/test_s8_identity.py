"""S8.1 where kube-system cannot be read: a CRD's uid tells clusters apart, else the server and its authority."""

from tests.system.conftest import MakeBed
from tests.system.kinds import account, another, until_row
from tests.system.travel import SLOW, identity, reconnect


async def test_S8_1_who_may_read_neither_syncs(make_bed: MakeBed):
    bed = await make_bed(start=False)
    await another(bed)
    verbs = [
        {"apiGroups": [bed.group], "resources": ["goals", "tasks"], "verbs": ["list", "watch"]},
        {"apiGroups": [bed.group], "resources": ["goals/status", "tasks/status"], "verbs": ["update"]},
    ]
    token = await account(bed.cloud.api, f"robot-{bed.group[:7]}", verbs)
    bed.cloud.link.kubeconfig(bed.directory / "cloud.yaml", token=token)
    await bed.start()
    await until_row(bed, "tasks", state="syncing")
    reconnect(bed.cloud.link)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1}, seconds=SLOW)
    assert (await identity(bed)).startswith("server:")
