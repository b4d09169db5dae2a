"""S8.1 where kube-system cannot be read: a CRD's uid tells clusters apart, else the server and its authority."""

import pytest

from crsyncer.sandbox.resource import CRD
from tests.system.asked import refusal
from tests.system.bed import Bed, crd, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.kinds import account, another, until_row
from tests.system.travel import FORBIDDEN, KUBE_SYSTEM_PATH, SLOW, identity, reconnect


@pytest.fixture
async def blind(make_bed: MakeBed) -> Bed:
    """A bed whose agent may not read kube-system in the cloud, and knows the kind's CRD there."""
    bed = await make_bed(start=False)
    bed.cloud.link.inject(KUBE_SYSTEM_PATH, status=403, body=FORBIDDEN)
    await bed.start()
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    reconnect(bed.cloud.link)
    await crd_is_the_identity(bed)
    await bed.settled()
    return bed


async def crd_is_the_identity(bed: Bed) -> None:
    async def check() -> bool:
        uid = (await bed.cloud.api.get(CRD.object(bed.resource)))["metadata"]["uid"]
        return bool(await identity(bed) == f"crd:{bed.resource}:{uid}")

    await eventually(check, seconds=SLOW, what="the CRD's uid is the identity")


async def recreate(bed: Bed) -> None:
    """The CRD is deleted in the cloud, with its objects, and made anew."""
    await bed.cloud.api.delete(CRD.object(bed.resource))
    await bed.cloud.api.until_gone(CRD.object(bed.resource))
    await bed.cloud.api.apply_crd(crd(bed.group))


async def test_S8_1_a_crd_of_another_uid_is_another_cluster(blind: Bed):
    async with blind.stopped():
        await recreate(blind)
        blind.robot.link.clear()
    await blind.until_side("cloud", "identity-changed")
    assert await blind.robot.names() == {"a", "b"}
    assert [hold["reason"] for hold in (await blind.agent.status())["holds"]] == ["IdentityChanged"]
    await blind.agent.crsyncer("holds", "release", "cloud", "--yes")
    status = await blind.agent.until(lambda status: bool(status["holds"]) and status["holds"][0]["objects"] == 2)
    assert [hold["reason"] for hold in status["holds"]] == ["Restored"]
    assert writes(blind.robot.link) == []
    await crd_is_the_identity(blind)


@pytest.mark.nightly("to be shown by the model")
async def test_S8_1_a_crd_made_anew_before_our_eyes_is_the_same_cluster(blind: Bed):
    await blind.cloud.api.delete(CRD.object(blind.resource))
    await blind.until_kind("kind-missing", seconds=SLOW)
    await blind.cloud.api.until_gone(CRD.object(blind.resource))
    async with blind.stopped():
        await blind.cloud.api.apply_crd(crd(blind.group))
    for name in ("a", "b"):
        await blind.cloud.create(name, spec={"x": 2})
    for name in ("a", "b"):
        await blind.robot.shows(name, spec={"x": 2}, seconds=SLOW)
    await blind.agent.until(lambda status: status["health"] == "healthy")
    await crd_is_the_identity(blind)


@pytest.mark.nightly("to be shown by the model")
async def test_S8_1_one_crd_of_several_made_anew_is_the_same_cluster(blind: Bed):
    await another(blind)
    await until_row(blind, "tasks", state="syncing")
    reconnect(blind.cloud.link)
    await blind.until_side("cloud", "connected")
    await blind.cloud.patch("a", {"spec": {"x": 3}})
    await blind.robot.shows("a", spec={"x": 3}, seconds=SLOW)
    async with blind.stopped():
        await recreate(blind)
        for name in ("a", "b"):
            await blind.cloud.create(name, spec={"x": 4})
    for name in ("a", "b"):
        await blind.robot.shows(name, spec={"x": 4}, seconds=SLOW)
    assert (await blind.agent.status())["sides"]["cloud"]["state"] == "connected"


@pytest.mark.nightly("to be shown by the model")
async def test_S8_1_a_right_that_is_withdrawn_leaves_what_was_known(bed: Bed):
    known = await identity(bed)
    gone = bed.cloud.link.inject(KUBE_SYSTEM_PATH, status=403, body=FORBIDDEN)
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    assert await identity(bed) == known
    assert (await bed.kind())["relists"] == {"cloud": 0, "robot": 0}
    gone.remove()
    metadata = {"name": "kube-system", "uid": "another", "resourceVersion": "5"}
    bed.cloud.link.inject(KUBE_SYSTEM_PATH, status=200, body={"metadata": metadata})
    reconnect(bed.cloud.link)
    await bed.until_side("cloud", "identity-changed")


@pytest.mark.nightly("to be shown by the model")
async def test_S8_1_a_server_that_has_not_made_its_namespaces_is_no_cluster_yet(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    body = refusal(404, 'namespaces "kube-system" not found', reason="NotFound")
    young = bed.cloud.link.inject(KUBE_SYSTEM_PATH, status=404, body=body)
    reconnect(bed.cloud.link)
    await bed.agent.until(lambda status: "kube-system" in str(status["sides"]["cloud"]["error"]), seconds=SLOW)
    assert (await bed.agent.status())["sides"]["cloud"]["state"] == "offline"
    young.remove()
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2}, seconds=SLOW)
    assert (await bed.agent.status())["holds"] == []


async def test_S8_1_who_may_read_neither_asks_for_little_and_syncs(make_bed: MakeBed):
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
    bed.cloud.link.clear()
    reconnect(bed.cloud.link)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1}, seconds=SLOW)
    crds = {r.path.rpartition("/")[2] for r in bed.cloud.link.requests if "/customresourcedefinitions" in r.path}
    assert crds == {bed.resource}, "what is refused for one CRD is not asked of every other"
    assert (await identity(bed)).startswith("server:")
