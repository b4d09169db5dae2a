"""S5.5a: a CRD that was deleted and made anew while nobody looked is alive and empty, and nobody meant that."""

import asyncio

import pytest

from crsyncer.core import calls
from crsyncer.sandbox.resource import CRD
from tests.system.asked import deletes, lists
from tests.system.bed import Bed, crd
from tests.system.commands import run
from tests.system.conftest import MakeBed, MakeLooker
from tests.system.crowd import copied, holds_exactly
from tests.system.kinds import account, account_name, rules
from tests.system.vanished import all_held, back, delete_crd, out_of_sight

LONG = pytest.mark.nightly
SECONDS = 90.0
OUT_OF_SIGHT = ["down", pytest.param("cut", marks=pytest.mark.nightly("a variation"))]


async def make_anew(bed: Bed, *names: str) -> None:
    """Delete the CRD in the cloud, with all its objects, and apply it again; then create objects of these names."""
    await delete_crd(bed)
    await bed.cloud.api.apply_crd(crd(bed.group))
    for name in names:
        await bed.cloud.create(name, spec={"x": 2})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
@pytest.mark.parametrize("count", [2, pytest.param(20, marks=LONG)])
@pytest.mark.parametrize("how", OUT_OF_SIGHT)
async def test_S5_5a_a_kind_made_anew_out_of_sight_costs_no_copy_and_goes_on_when_its_objects_are_back(
    bed: Bed, how: str, count: int
):
    names = await copied(bed, count)
    bed.robot.link.clear()
    async with out_of_sight(bed, how):
        await make_anew(bed)
    hold = await all_held(bed, count, state="held", seconds=SECONDS)
    await holds_exactly(bed.robot, names)
    assert deletes(bed.robot.link) == []
    async with bed.stopped(kill=True):
        pass
    assert (await all_held(bed, count, state="held"))["id"] == hold["id"]
    assert deletes(bed.robot.link) == []
    await back(bed, names)
    await bed.cloud.delete(names[0])
    await bed.robot.gone(names[0])


@pytest.mark.fault_16
async def test_S5_5a_a_kind_made_anew_before_our_eyes_costs_no_copy(bed: Bed):
    names = await copied(bed, 3)
    bed.robot.link.clear()
    await bed.cloud.api.delete(CRD.object(bed.resource))
    await bed.cloud.api.until_gone(CRD.object(bed.resource))
    await bed.cloud.api.apply_crd(crd(bed.group))
    await all_held(bed, 3, state="held", seconds=SECONDS)
    assert await bed.robot.names() == set(names)
    assert deletes(bed.robot.link) == []


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
async def test_S5_5a_what_a_kind_made_anew_lacks_is_held_and_can_be_let_go(bed: Bed):
    names = await copied(bed, 4)
    async with out_of_sight(bed, "down"):
        await make_anew(bed, *names[:2])
    hold = await all_held(bed, 2, state="held", seconds=SECONDS)
    for name in names[:2]:
        await bed.robot.shows(name, spec={"x": 2})
    assert f"2 objects of {bed.resource}" in await run(bed, "holds", "release", hold["id"], "--yes")
    await holds_exactly(bed.robot, names[:2])
    # It is accepted: what is deleted from now on, somebody means.
    for name in names[:2]:
        await bed.cloud.delete(name)
    await holds_exactly(bed.robot, [])
    assert (await bed.agent.until(lambda status: status["health"] == "healthy"))["holds"] == []


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
async def test_S5_5a_a_kind_made_anew_with_all_its_objects_holds_nothing_back_later(bed: Bed):
    names = await copied(bed, 2)
    async with out_of_sight(bed, "down"):
        await make_anew(bed, *names)
    for name in names:
        await bed.robot.shows(name, spec={"x": 2}, seconds=SECONDS)
    await bed.settled()
    async with bed.stopped():
        pass
    await bed.cloud.delete(names[0])
    await holds_exactly(bed.robot, names[1:], seconds=SECONDS)
    assert (await bed.agent.until(lambda status: status["health"] == "healthy"))["holds"] == []


@pytest.mark.fault_16
@pytest.mark.parametrize("how", OUT_OF_SIGHT)
async def test_S5_5a_a_small_account_that_may_read_the_crd_and_kube_system_is_enough(make_bed: MakeBed, how: str):
    bed = await make_bed(start=False)
    reading = [
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
    ]
    token = await account(bed.cloud.api, account_name(bed.group), rules(bed.group, "patch") + reading)
    bed.cloud.link.kubeconfig(bed.directory / "cloud.yaml", token=token)
    await bed.start()
    names = await copied(bed, 3)
    async with out_of_sight(bed, how):
        await make_anew(bed)
    await all_held(bed, 3, state="held", seconds=SECONDS)
    assert await bed.robot.names() == set(names)
    await back(bed, names)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("count", [2, 20])
async def test_S5_5b_where_crds_may_not_be_read_a_kind_made_anew_out_of_sight_is_a_kind_that_was_emptied(
    make_looker: MakeLooker, count: int
):
    """What remains without the right: many deletions are verified, by a list that shows the objects gone, and done.

    Whoever wants more gives the account the right to read CRDs (cloud/README.md).
    """
    bed = await make_looker("list and watch")
    await copied(bed, count)
    await bed.settled()
    bed.cloud.link.clear()
    async with out_of_sight(bed, "down"):
        await make_anew(bed)
    await holds_exactly(bed.robot, [], seconds=SECONDS)
    assert len(lists(bed.cloud.link)) == (1 if count <= 5 else 2)
    refused = [r for r in bed.cloud.link.requests if r.path == f"{calls.CRDS}/{bed.resource}" and r.status == 403]
    assert len(refused) <= len(lists(bed.cloud.link)) + 2, "who may not read it does not ask for every batch"


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
async def test_S5_5a_a_kind_is_asked_for_with_two_small_requests_a_batch(bed: Bed):
    names = await copied(bed, 5)
    await bed.settled()
    bed.cloud.link.clear()
    await asyncio.gather(*(bed.cloud.delete(name) for name in names[:4]))
    await holds_exactly(bed.robot, names[4:])
    asked = [r for r in bed.cloud.link.requests if r.path == f"{calls.CRDS}/{bed.resource}"]
    assert 1 <= len(asked) <= 4
    assert {r.headers["accept"] for r in asked} == {calls.PARTIAL}
    assert 1 <= len([r for r in bed.cloud.link.requests if r.path == f"/apis/{bed.group}/v1"]) <= 4
