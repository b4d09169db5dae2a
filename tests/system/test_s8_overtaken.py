"""S8.2: a cluster that was restored and has been written to since, so that its revision has overtaken our cursors."""

import asyncio
import json
from pathlib import Path

import pytest

from crsyncer.sandbox.resource import NAMESPACE
from tests import planes
from tests.system.asked import REPLAY, hit, lists, replays, watches
from tests.system.bed import Bed, SideBed, eventually, writes
from tests.system.kinds import annotate, another, row, until_row

SLOW = 90.0
CHANGES = 50


async def revision(side: SideBed) -> int:
    """The cluster's resourceVersion now."""
    return int((await side.api.list(side.resource, limit="1"))["metadata"]["resourceVersion"])


async def overtake(side: SideBed, cursor: int) -> None:
    """Write other things until the cluster's revision is beyond a cursor."""
    touched = 0
    while await revision(side) <= cursor:
        for _ in range(10):
            touched += 1
            await side.api.patch(NAMESPACE.object("default"), {"metadata": {"annotations": {"touched": str(touched)}}})


async def go_back(side: SideBed, snapshot: Path, cursor: int) -> None:
    """Restore a plane behind a cut link; change one object where nobody can see it, and have the revision overtake."""
    await asyncio.to_thread(planes.restore, side.plane, snapshot)
    await side.api.until_served(side.resource)
    assert await revision(side) < cursor
    await side.patch("c", {"spec": {"x": 7}})
    await side.set_status("c", {"phase": "MEANWHILE"})
    assert await revision(side) < cursor, "a change that a watch from the cursor would never show"
    await overtake(side, cursor)


async def begun(bed: Bed) -> None:
    """Four objects on both sides, one with a status."""
    for name in ("a", "b", "c", "gone"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.settled()


async def changed(bed: Bed) -> int:
    """Fifty changes that a restore takes back; the cloud's revision after them."""
    for step in range(CHANGES):
        await bed.cloud.patch("b", {"spec": {"x": step + 2}})
    await bed.robot.shows("b", spec={"x": CHANGES + 1})
    await bed.cloud.create("later", spec={"x": 1})
    await bed.robot.shows("later", spec={"x": 1})
    await bed.cloud.delete("gone")
    await bed.robot.gone("gone")
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.settled()
    return await revision(bed.cloud)


@pytest.mark.nightly
@pytest.mark.fault_19
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
async def test_S8_2_S8_3_a_restored_cloud_that_has_overtaken_the_cursor_is_noticed(
    bed: Bed, tmp_path: Path, running: bool
):
    await begun(bed)
    await asyncio.to_thread(planes.snapshot, bed.cloud.plane, tmp_path / "snapshot")
    cursor = await changed(bed)
    bed.cloud.link.cut()
    await bed.robot.set_status("b", {"phase": "LATE"})  # written to the new history before anybody has seen it
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    if running:
        await go_back(bed.cloud, tmp_path / "snapshot", cursor)
        bed.cloud.link.restore()
    else:
        async with bed.stopped():
            await go_back(bed.cloud, tmp_path / "snapshot", cursor)
            bed.cloud.link.restore()
    await bed.robot.shows("c", spec={"x": 7}, seconds=SLOW)
    await bed.robot.shows("b", spec={"x": 1})
    await bed.robot.shows("gone", spec={"x": 1})
    await bed.cloud.shows("a", status={"phase": "DONE"}, seconds=SLOW)
    await bed.cloud.shows("b", status={"phase": "LATE"})
    status = await bed.agent.until(lambda status: bool(status["holds"]))
    assert [(h["reason"], h["resource"], h["objects"]) for h in status["holds"]] == [("Restored", bed.resource, 1)]
    assert await bed.robot.names() == {"a", "b", "c", "gone", "later"}
    assert status["health"] == "attention"


@pytest.mark.nightly
@pytest.mark.fault_19
async def test_S8_2_S8_4_a_restored_robot_that_has_overtaken_the_cursor_is_noticed(bed: Bed, tmp_path: Path):
    await begun(bed)
    await asyncio.to_thread(planes.snapshot, bed.robot.plane, tmp_path / "snapshot")
    await changed(bed)
    cursor = await revision(bed.robot)
    bed.robot.link.cut()
    await go_back(bed.robot, tmp_path / "snapshot", cursor)
    bed.robot.link.restore()
    await bed.cloud.shows("c", status={"phase": "MEANWHILE"}, seconds=SLOW)
    await bed.robot.shows("c", spec={"x": 1})
    await bed.robot.shows("b", spec={"x": CHANGES + 1})
    await bed.robot.shows("later", spec={"x": 1})
    await bed.robot.gone("gone")
    assert (await bed.agent.status())["holds"] == []


async def reconnect(side: SideBed) -> None:
    """Every connection breaks, something else was written meanwhile, and connections can be made again."""
    side.link.cut()
    await overtake(side, await revision(side))
    side.link.clear()
    side.link.restore()


async def watched(side: SideBed, plural: str = "goals") -> None:
    """Wait until a kind is watched again."""

    async def check() -> bool:
        return any(r.status == 200 for r in watches(side.link, plural))

    await eventually(check, seconds=SLOW, what="the kind is watched")


@pytest.mark.nightly("to be shown by the model")
async def test_S8_2_each_kind_proves_its_history_for_few_bytes_and_is_not_listed_also_an_empty_one(bed: Bed):
    await another(bed)
    await until_row(bed, "tasks", state="syncing")
    await begun(bed)
    for _ in range(2):
        await reconnect(bed.cloud)
        for plural in ("goals", "tasks"):
            await watched(bed.cloud, plural)
        assert {r.path.rpartition("/")[2] for r in replays(bed.cloud.link)} == {"goals", "tasks"}
        assert sum(r.bytes_in + r.bytes_out for r in replays(bed.cloud.link)) < 3072
        assert lists(bed.cloud.link) == []
    assert lists(bed.cloud.link, "tasks") == []  # once, where nothing was seen of it, and not again


@pytest.mark.nightly
@pytest.mark.fault_19
async def test_S8_2_a_kind_that_comes_later_is_not_proven_by_what_others_saw_of_the_new_history(
    bed: Bed, tmp_path: Path
):
    cloud_tasks, robot_tasks = await another(bed)
    await until_row(bed, "tasks", state="syncing")
    await cloud_tasks.create("c", spec={"x": 1})
    await robot_tasks.shows("c", spec={"x": 1})
    await begun(bed)
    await asyncio.to_thread(planes.snapshot, bed.cloud.plane, tmp_path / "snapshot")
    await cloud_tasks.patch("c", {"spec": {"x": 2}})
    await robot_tasks.shows("c", spec={"x": 2})
    cursor = await changed(bed)
    await annotate(bed, resource=f"tasks.{bed.group}", spec_source=None)

    async def parked() -> bool:
        return await row(bed, "tasks") is None

    await eventually(parked, what="the tasks are not synced")
    bed.cloud.link.cut()
    await go_back(bed.cloud, tmp_path / "snapshot", cursor)
    bed.cloud.link.restore()
    await bed.robot.shows("c", spec={"x": 7}, seconds=SLOW)
    await bed.cloud.patch("c", {"spec": {"x": 8}})
    await bed.robot.shows("c", spec={"x": 8}, seconds=SLOW)
    await annotate(bed, resource=f"tasks.{bed.group}", spec_source="cloud")
    await robot_tasks.shows("c", spec={"x": 1}, seconds=SLOW)


@pytest.mark.nightly
async def test_S8_2_a_slow_link_is_no_restored_cluster(bed: Bed):
    await begun(bed)
    before = await bed.kind()
    bed.cloud.link.delay(1.5)  # longer than the server is given to repeat what it has
    await reconnect(bed.cloud)
    await bed.cloud.patch("c", {"spec": {"x": 2}})
    await bed.robot.shows("c", spec={"x": 2}, seconds=SLOW)
    assert replays(bed.cloud.link)
    assert (await bed.kind())["relists"] == before["relists"]
    assert (await bed.agent.status())["holds"] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S8_2_a_far_server_that_ends_every_watch_at_once_is_no_restored_cluster(bed: Bed):
    await begun(bed)
    before = await bed.kind()
    bed.cloud.link.delay(0.5)  # so that reaching it takes longer than it is given at first
    ending = bed.cloud.link.inject(REPLAY, status=200)
    await reconnect(bed.cloud)
    await hit(ending, 3)
    ending.remove()
    await bed.cloud.patch("c", {"spec": {"x": 2}})
    await bed.robot.shows("c", spec={"x": 2}, seconds=SLOW)
    assert (await bed.kind())["relists"] == before["relists"]
    assert (await bed.agent.status())["holds"] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S8_2_who_repeats_something_else_has_another_history_and_costs_no_copy(bed: Bed):
    await begun(bed)
    before = (await bed.kind())["relists"]
    metadata = {"uid": "somebody-else", "resourceVersion": str(await revision(bed.cloud)), "name": "other"}
    line = json.dumps({"type": "ADDED", "object": {"metadata": metadata}}).encode() + b"\n"
    bed.cloud.link.inject(REPLAY, status=200, body=line, times=1)
    await reconnect(bed.cloud)

    async def listed() -> bool:
        return bool((await bed.kind())["relists"]["cloud"] > before["cloud"])

    await eventually(listed, seconds=SLOW, what="the cloud is listed")
    await bed.cloud.patch("c", {"spec": {"x": 2}})
    await bed.robot.shows("c", spec={"x": 2}, seconds=SLOW)
    assert await bed.robot.names() == {"a", "b", "c", "gone"}
    assert [write for write in writes(bed.robot.link) if write.startswith("DELETE")] == []


@pytest.mark.nightly
async def test_S8_2_S9_2_a_quiet_kind_is_listed_once_for_each_start_of_an_api_server(bed: Bed):
    await begun(bed)
    before = (await bed.kind())["relists"]["cloud"]
    bed.cloud.link.cut()
    await asyncio.to_thread(bed.cloud.plane.restart, "apiserver")
    await bed.cloud.api.until_served(bed.cloud.resource)
    await reconnect(bed.cloud)
    await watched(bed.cloud)
    assert (await bed.kind())["relists"]["cloud"] == before + 1
    for _ in range(2):
        await reconnect(bed.cloud)
        await watched(bed.cloud)
        assert len(replays(bed.cloud.link)) == 1
    assert (await bed.kind())["relists"]["cloud"] == before + 1
    async with bed.stopped():
        await reconnect(bed.cloud)
    await watched(bed.cloud)
    await bed.cloud.patch("c", {"spec": {"x": 2}})
    await bed.robot.shows("c", spec={"x": 2}, seconds=SLOW)
    assert (await bed.kind())["relists"]["cloud"] == 0
