"""S5.5a: what vanishes with its kind is kept and shown, whoever may look, and goes on by itself when all is back."""

import asyncio

import pytest

from tests.system.asked import deletes
from tests.system.bed import Bed, crd
from tests.system.commands import ask, run
from tests.system.conftest import MakeBed, MakeLooker
from tests.system.crowd import copied, holds_exactly
from tests.system.roles import UID
from tests.system.vanished import RIGHTS, all_held, back, delete_crd, out_of_sight

LONG = pytest.mark.nightly


@pytest.mark.fault_16
@pytest.mark.parametrize(
    "rights", [RIGHTS[0], *(pytest.param(rights, marks=pytest.mark.nightly("a variation")) for rights in RIGHTS[1:])]
)
@pytest.mark.parametrize("count", [2, pytest.param(215, marks=LONG)])
async def test_S5_5a_a_kind_deleted_in_the_cloud_is_held_and_goes_on_by_itself_when_it_is_back(
    make_looker: MakeLooker, count: int, rights: str
):
    bed = await make_looker(rights)
    names = await copied(bed, count)
    await bed.robot.set_status(names[0], {"phase": "DONE"})
    await bed.cloud.shows(names[0], status={"phase": "DONE"})
    before = {name: (await bed.robot.get(name))["metadata"]["uid"] for name in names[:2]}
    bed.robot.link.clear()
    await delete_crd(bed)
    hold = await all_held(bed, count)
    assert await bed.robot.names() == set(names)
    assert deletes(bed.robot.link) == []
    # All who are asked say the same.
    listed = (await ask(bed, "holds", "list"))["holds"]
    assert [(each["id"], each["objects"]) for each in listed] == [(hold["id"], count)]
    explained = await ask(bed, "explain", bed.resource, names[0])
    assert (explained["state"], explained["holds"][0]["id"]) == ("held", hold["id"])
    # New objects of the old names are others: the copies are replaced, and no old status shows on a new object.
    await back(bed, names)
    copies = {name: await bed.robot.get(name) for name in names[:2]}
    for name, copy in copies.items():
        upstream = await bed.cloud.get(name)
        assert copy["metadata"]["uid"] != before[name]
        assert copy["metadata"]["annotations"][UID] == upstream["metadata"]["uid"]
        assert "status" not in upstream
    await holds_exactly(bed.robot, names)
    await bed.cloud.delete(names[0])
    await bed.robot.gone(names[0])


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
@pytest.mark.parametrize("rights", RIGHTS)
@pytest.mark.parametrize("how", ["down", "cut"])
async def test_S5_5a_a_kind_deleted_out_of_sight_is_held_before_anything_is_put_back(
    make_looker: MakeLooker, how: str, rights: str
):
    bed = await make_looker(rights)
    names = await copied(bed, 8)
    bed.robot.link.clear()
    async with out_of_sight(bed, how):
        await delete_crd(bed)
    hold = await all_held(bed, 8)
    # The CRD comes back before its objects do: what it lacks is no wish of anybody.
    await bed.cloud.api.apply_crd(crd(bed.group))
    await bed.cloud.create(names[0], spec={"x": 2})
    await bed.robot.shows(names[0], spec={"x": 2})
    again = await all_held(bed, 7, state="held")
    assert (again["id"], again["since"]) == (hold["id"], hold["since"])
    async with bed.stopped(kill=True):
        pass
    assert (await all_held(bed, 7, state="held"))["id"] == hold["id"]
    assert {name for name, _ in deletes(bed.robot.link)} == {names[0]}
    await asyncio.gather(*(bed.cloud.create(name, spec={"x": 2}) for name in names[1:]))
    await bed.agent.until(lambda status: status["health"] == "healthy" and not status["holds"])
    for name in names:
        await bed.robot.shows(name, spec={"x": 2})


@pytest.mark.nightly
@pytest.mark.fault_16
@pytest.mark.parametrize("how", ["down", "cut"])
async def test_S5_5a_215_copies_of_a_kind_deleted_out_of_sight_are_held(make_looker: MakeLooker, how: str):
    bed = await make_looker("list and watch")
    names = await copied(bed, 215)
    async with out_of_sight(bed, how):
        await delete_crd(bed)
    await all_held(bed, 215)
    await holds_exactly(bed.robot, names)
    await back(bed, names)
    await holds_exactly(bed.robot, names)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
async def test_S5_5a_what_is_held_for_a_missing_kind_can_be_let_go_for_good(bed: Bed):
    await copied(bed, 8)
    async with out_of_sight(bed, "down"):
        await delete_crd(bed)
    hold = await all_held(bed, 8)
    assert f"8 objects of {bed.resource}" in await run(bed, "holds", "release", hold["id"], "--yes")
    await holds_exactly(bed.robot, [])
    status = await bed.agent.until(lambda status: not status["holds"])
    assert (status["kinds"][0]["state"], status["kinds"][0]["held"]) == ("kind-missing", 0)
    assert "there is no hold" in await run(bed, "holds", "release", hold["id"], code=1)
    async with bed.stopped():
        pass
    await bed.until_kind("kind-missing")
    await back(bed, ["g00"])


@pytest.mark.fault_16
async def test_S5_5a_a_kind_deleted_on_the_robot_costs_no_copy_in_the_cloud(make_bed: MakeBed):
    bed = await make_bed(source="robot")
    names = [f"g{number}" for number in range(3)]
    await asyncio.gather(*(bed.robot.create(name, spec={"x": 1}) for name in names))
    await holds_exactly(bed.cloud, names)
    await bed.settled()
    await delete_crd(bed, "robot")
    await bed.agent.until(lambda status: status["kinds"] == [])
    await bed.robot.api.apply_crd(crd(bed.group, source="robot"))
    await all_held(bed, 3, state="held")
    assert await bed.cloud.names() == set(names)
    await asyncio.gather(*(bed.robot.create(name, spec={"x": 2}) for name in names))
    for name in names:
        await bed.cloud.shows(name, spec={"x": 2})
    await bed.agent.until(lambda status: status["health"] == "healthy" and not status["holds"])
    await bed.robot.delete(names[0])
    await bed.cloud.gone(names[0])


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
async def test_S5_5a_a_gateway_that_knows_no_path_for_a_while_leaves_nothing_held(bed: Bed):
    names = await copied(bed, 8)
    lost = bed.cloud.link.inject(rf"^/apis/{bed.group}", status=404, body=b"404 page not found\n")
    async with bed.stopped():
        pass
    await all_held(bed, 8)
    lost.remove()
    await bed.agent.until(lambda status: status["health"] == "healthy" and not status["holds"], seconds=90)
    assert await bed.robot.names() == set(names)
    await bed.cloud.delete(names[0])
    await bed.robot.gone(names[0])
