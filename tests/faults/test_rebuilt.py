"""Row 22: the cloud is built anew, with the same certificates and address but other uids, empty or filled again."""

import asyncio
from pathlib import Path

import pytest

from tests import planes
from tests.system.bed import Bed, crd, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.travel import FORBIDDEN, KUBE_SYSTEM_PATH, SLOW, reconnect, restore, snapshot


async def lived(bed: Bed) -> dict[str, str]:
    """Objects with statuses, and their copies: the copies' uids."""
    for name in ("a", "b", "c"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
        await bed.robot.set_status(name, {"phase": "DONE"})
        await bed.cloud.shows(name, status={"phase": "DONE"})
    await bed.settled()
    return await uids(bed)


async def uids(bed: Bed) -> dict[str, str]:
    return {name: (await bed.robot.get(name))["metadata"]["uid"] for name in await bed.robot.names()}


async def rebuild(bed: Bed, *names: str) -> None:
    """The cloud is empty, gets the CRD, and some objects of the old names."""
    await asyncio.to_thread(planes.wipe, bed.cloud.plane)
    await bed.cloud.api.apply_crd(crd(bed.group))
    for name in names:
        await bed.cloud.create(name, spec={"x": 2})


async def held(bed: Bed, count: int) -> str:
    """Wait until so much is held for the restore; the hold's id."""

    def good(status: dict) -> bool:
        return [(hold["reason"], hold["objects"]) for hold in status["holds"]] == [("Restored", count)]

    return str((await bed.agent.until(good, seconds=SLOW))["holds"][0]["id"])


@pytest.mark.nightly
@pytest.mark.fault_22
async def test_a_cloud_that_was_built_anew_and_is_empty_deletes_nothing(bed: Bed):
    copies = await lived(bed)
    bed.robot.link.clear()
    await rebuild(bed)
    await bed.until_side("cloud", "identity-changed", seconds=SLOW)
    status = await bed.agent.status()
    assert status["health"] == "attention"
    (reason,) = status["reasons"]
    assert reason["code"] == "IdentityChanged"
    assert "crsyncer holds release cloud" in reason["hint"]
    assert (await bed.agent.crsyncer("holds", "release", "cloud", "--yes"))[0] == 0
    hold = await held(bed, 3)
    async with bed.stopped():
        pass
    assert await held(bed, 3) == hold
    assert await uids(bed) == copies
    assert writes(bed.robot.link) == []
    await bed.agent.crsyncer("holds", "release", hold, "--yes")
    for name in copies:
        await bed.robot.gone(name)
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.nightly
@pytest.mark.fault_22
async def test_a_cloud_that_was_built_anew_with_half_of_the_objects_replaces_nothing_unasked(bed: Bed):
    copies = await lived(bed)
    async with bed.stopped():
        await rebuild(bed, "a", "b")
    await bed.until_side("cloud", "identity-changed", seconds=SLOW)
    await bed.agent.crsyncer("holds", "release", "cloud", "--yes")
    hold = await held(bed, 3)  # two are other objects now, which is a deletion as well
    await bed.cloud.create("new", spec={"x": 1})
    await bed.robot.shows("new", spec={"x": 1})
    assert {name: uid for name, uid in (await uids(bed)).items() if name != "new"} == copies
    for name in ("a", "b"):
        assert "status" not in await bed.cloud.get(name), "the old objects' statuses are not theirs"
    await bed.agent.crsyncer("holds", "release", hold, "--yes")
    for name in ("a", "b"):
        await bed.robot.shows(name, spec={"x": 2}, seconds=SLOW)
    await bed.robot.gone("c")
    await bed.agent.until(lambda status: status["health"] == "healthy")
    for name in ("a", "b"):
        assert "status" not in await bed.cloud.get(name)


@pytest.mark.nightly
@pytest.mark.fault_22
@pytest.mark.parametrize("names", [(), ("a", "b")], ids=["empty", "half"])
async def test_a_cloud_that_was_built_anew_is_noticed_where_kube_system_cannot_be_read(
    make_bed: MakeBed, names: tuple[str, ...]
):
    bed = await make_bed(start=False)
    bed.cloud.link.inject(KUBE_SYSTEM_PATH, status=403, body=FORBIDDEN)
    await bed.start()
    copies = await lived(bed)
    reconnect(bed.cloud.link)

    async def crd_known() -> bool:
        return str((await bed.agent.status())["sides"]["cloud"]["identity"]).startswith("crd:")

    await eventually(crd_known, seconds=SLOW, what="the CRD's uid is known")
    async with bed.stopped():
        await rebuild(bed, *names)
        bed.robot.link.clear()
    await bed.until_side("cloud", "identity-changed", seconds=SLOW)
    await bed.agent.crsyncer("holds", "release", "cloud", "--yes")
    await held(bed, 3)
    assert await uids(bed) == copies
    assert writes(bed.robot.link) == []


@pytest.mark.nightly
@pytest.mark.fault_19
async def test_a_restored_cloud_that_has_overtaken_what_we_knew_is_noticed(bed: Bed, tmp_path: Path):
    await lived(bed)
    old = await snapshot(bed.cloud, tmp_path)
    await bed.cloud.patch("a", {"spec": {"x": 5}})
    await bed.cloud.create("lost", spec={"x": 1})
    await bed.robot.shows("lost")
    await bed.robot.set_status("b", {"phase": "AGAIN"})
    await bed.cloud.shows("b", status={"phase": "AGAIN"})
    await bed.settled()
    known = int((await bed.cloud.api.list(bed.cloud.resource))["metadata"]["resourceVersion"])
    async with bed.stopped():
        await restore(bed.cloud, old, past=known + 20)
        await bed.cloud.create("new", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1}, seconds=SLOW)
    await bed.robot.shows("new", spec={"x": 1})
    await bed.cloud.shows("b", status={"phase": "AGAIN"}, seconds=SLOW)
    await held(bed, 1)
    assert await bed.robot.names() == {"a", "b", "c", "lost", "new"}
