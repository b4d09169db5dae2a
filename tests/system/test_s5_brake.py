"""S5.5: what vanishes with its kind is kept, what an operator deletes is gone, however much it is."""

import asyncio
import time

import pytest

from crsyncer.sandbox.resource import CRD
from tests.system.asked import deletes, full_list, hit, lists
from tests.system.bed import Bed, crd, writes
from tests.system.conftest import MakeBed
from tests.system.crowd import copied, holds_exactly
from tests.system.kinds import forbid_discovery


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.nightly("a variation")), 30])
@pytest.mark.fault_16
async def test_S5_5a_a_crd_deleted_in_the_cloud_deletes_nothing_on_the_robot(bed: Bed, count: int):
    names = await copied(bed, count)
    await bed.cloud.api.delete(CRD.object(bed.resource))
    await bed.cloud.api.until_gone(CRD.object(bed.resource))

    def held(status: dict) -> bool:
        (kind,) = status["kinds"]
        return bool(kind["state"] == "kind-missing" and kind["held"] == count)

    status = await bed.agent.until(held)
    assert status["health"] == "attention"
    assert "KindMissing" in [reason["code"] for reason in status["reasons"]]
    # A restart does not forget why they are kept.
    async with bed.stopped():
        pass
    await bed.until_kind("kind-missing")
    assert await bed.robot.names() == set(names)
    # The CRD and its objects come back, and it goes on by itself.
    await bed.cloud.api.apply_crd(crd(bed.group))
    for name in names:
        await bed.cloud.create(name, spec={"x": 2})
    status = await bed.agent.until(lambda status: status["health"] == "healthy", seconds=90)
    await bed.robot.shows(names[0], spec={"x": 2})
    assert status["holds"] == []
    await bed.cloud.delete(names[0])
    await bed.robot.gone(names[0])


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
async def test_S5_5a_a_kind_that_was_deleted_while_the_agent_was_down_is_missing_too(bed: Bed):
    names = await copied(bed, 2)
    async with bed.stopped():
        await bed.cloud.api.delete(CRD.object(bed.resource))
        await bed.cloud.api.until_gone(CRD.object(bed.resource))
        bed.robot.link.clear()
    await bed.until_kind("kind-missing")
    assert await bed.robot.names() == set(names)
    assert writes(bed.robot.link) == []


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
async def test_S5_5a_a_kind_that_is_only_being_deleted_is_missing_already(bed: Bed):
    await copied(bed, 3)
    await bed.cloud.patch("g02", {"metadata": {"finalizers": ["example.com/wait"]}})  # keeps the CRD terminating
    await bed.settled()
    bed.robot.link.clear()
    await bed.cloud.api.delete(CRD.object(bed.resource))
    await bed.cloud.gone("g00")
    await bed.cloud.gone("g01")
    await bed.until_kind("kind-missing")
    await bed.agent.until(lambda status: status["kinds"][0]["held"] >= 2)
    assert {"g00", "g01"} <= await bed.robot.names()
    await bed.cloud.patch("g02", {"metadata": {"finalizers": None}})
    await bed.cloud.api.until_gone(CRD.object(bed.resource))


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5a_where_discovery_is_forbidden_one_deletion_of_many_is_looked_at_twice(make_bed: MakeBed):
    bed = await make_bed(start=False)
    forbid_discovery(bed)
    await bed.start()
    await copied(bed, 10)
    bed.cloud.link.clear()
    await bed.cloud.delete("g00")
    await bed.robot.gone("g00")
    assert len(lists(bed.cloud.link)) == 1  # for it may be the first of a kind that is being deleted


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5a_where_discovery_is_forbidden_the_last_copies_are_looked_at_twice(make_bed: MakeBed):
    bed = await make_bed(start=False)
    forbid_discovery(bed)
    await bed.start()
    await copied(bed, 2)
    bed.cloud.link.clear()
    began = time.monotonic()
    await bed.cloud.delete("g00")
    await bed.cloud.delete("g01")
    await holds_exactly(bed.robot, [])
    look, *_ = lists(bed.cloud.link)
    assert look.time - began > 2.9  # the agent heard of it later, and then waits for 3 s
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5a_where_discovery_is_forbidden_a_deleted_crd_still_deletes_nothing(make_bed: MakeBed):
    bed = await make_bed(start=False)
    forbid_discovery(bed)
    await bed.start()
    names = await copied(bed, 2)
    await bed.cloud.api.delete(CRD.object(bed.resource))
    await bed.cloud.api.until_gone(CRD.object(bed.resource))
    await bed.agent.until(lambda status: status["kinds"][0]["held"] == 2)
    assert await bed.robot.names() == set(names)


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_a_mass_deletion_is_verified_by_a_fresh_list_and_goes_on_at_once(bed: Bed):
    names = await copied(bed, 20)
    bed.cloud.link.clear()
    await asyncio.gather(*(bed.cloud.delete(name) for name in names[:12]))
    await holds_exactly(bed.robot, names[12:])
    assert lists(bed.cloud.link)
    assert (await bed.agent.status())["holds"] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_a_mass_deletion_that_cannot_be_verified_is_held_until_the_objects_come_back(bed: Bed):
    names = await copied(bed, 20)
    bed.cloud.link.inject("/goals", status=500, when=full_list)
    await asyncio.gather(*(bed.cloud.delete(name) for name in names[:12]))
    status = await bed.agent.until(lambda status: bool(status["holds"]))
    assert [hold["reason"] for hold in status["holds"]] == ["MassDeletion"]
    assert status["health"] == "attention"
    kept = await bed.robot.names()
    assert len(kept) > 8
    bed.cloud.link.heal()
    for name in names[:12]:
        await bed.cloud.create(name, spec={"x": 2})
    status = await bed.agent.until(lambda status: status["health"] == "healthy")
    assert status["holds"] == []
    await holds_exactly(bed.robot, names)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_16
@pytest.mark.parametrize("where", [r"/goals\?", ""], ids=["the kind", "everything"])
@pytest.mark.parametrize("body", [b"<html>sign in to go on</html>", b'{"items": []}'], ids=["html", "{}"])
async def test_S5_a_200_that_is_no_list_deletes_nothing(bed: Bed, where: str, body: bytes):
    names = await copied(bed, 3)
    portal = bed.cloud.link.inject(where, method="GET", status=200, body=body)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    bed.cloud.link.restore()
    await hit(portal, 8, seconds=120)
    assert deletes(bed.robot.link) == []
    assert (await bed.agent.status())["health"] != "healthy"
    portal.remove()
    await bed.cloud.patch(names[0], {"spec": {"x": 2}})
    await bed.robot.shows(names[0], spec={"x": 2}, seconds=120)
    assert await bed.robot.names() == set(names)
