"""S5: deletion is owned upstream. Each row of the table, in both directions, and what is never deleted."""

import pytest

from tests.system.asked import deletes, status_writes
from tests.system.bed import OURS, Bed, History, SideBed, eventually, writes
from tests.system.conftest import MakeBed

UPSTREAM_UID = OURS + "upstream-uid"
SOURCES = ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))]
FINALIZER = {"metadata": {"finalizers": ["example.com/wait"]}}
NO_FINALIZER = {"metadata": {"finalizers": None}}


def up_and_down(bed: Bed, source: str) -> tuple[SideBed, SideBed]:
    """Upstream and downstream."""
    return (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)


async def terminating(side: SideBed, name: str) -> None:
    """Wait until the object is being deleted."""

    async def check() -> bool:
        found = await side.find(name)
        return bool(found and "deletionTimestamp" in found["metadata"])

    await eventually(check, what=f"{name} is terminating")


async def history_ends(history: History, status: object) -> None:
    """Wait until the watch has shown a status."""

    async def check() -> bool:
        return history.statuses()[-1:] == [status]

    await eventually(check, what=f"the history ends with {status}")


@pytest.mark.parametrize("source", SOURCES)
async def test_S5_upstream_absent_deletes_the_copy_by_uid_and_in_the_background(make_bed: MakeBed, source: str):
    bed = await make_bed(source=source)
    up, down = up_and_down(bed, source)
    await up.create("a", spec={"x": 1})
    uid = (await down.shows("a"))["metadata"]["uid"]
    await up.delete("a")
    await down.gone("a")
    assert [name for name, _ in deletes(up.link)] == []
    name, options = deletes(down.link)[0]
    assert name == "a"
    assert options["preconditions"]["uid"] == uid
    assert options["propagationPolicy"] == "Background"


@pytest.mark.parametrize("source", SOURCES)
async def test_S5_upstream_terminating_deletes_the_copy_and_takes_its_final_status(make_bed: MakeBed, source: str):
    bed = await make_bed(source=source)
    up, down = up_and_down(bed, source)
    await up.create("a", spec={"x": 1})
    await down.shows("a")
    # Both deletions wait: upstream's for a controller there, the copy's for one that still cleans up.
    await up.patch("a", FINALIZER)
    await down.patch("a", FINALIZER)
    await up.delete("a")
    await terminating(down, "a")
    await down.set_status("a", {"phase": "CLEANED_UP"})
    await up.shows("a", status={"phase": "CLEANED_UP"})
    await down.patch("a", NO_FINALIZER)
    await down.gone("a")
    # Upstream does not wait for us, and a terminating upstream is never copied anew.
    await up.patch("a", {"metadata": {"labels": {"still": "here"}}})
    await bed.settled()
    assert await down.find("a") is None
    await up.patch("a", NO_FINALIZER)
    await up.gone("a")


@pytest.mark.nightly("to be shown by the model")
async def test_S5_upstream_unseen_does_nothing(make_bed: MakeBed):
    bed = await make_bed(start=False)
    await bed.robot.create("by-hand", spec={"x": 1})
    bed.cloud.link.cut()
    await bed.start(state="waiting")

    await bed.until_side("cloud", "offline")

    async def looked_at() -> bool:
        kind = await bed.kind()
        return bool(kind["objects"]["robot"] == 1 and kind["pending"]["spec"] == 0)

    await eventually(looked_at, what="the robot has been listed, and what it has was looked at")
    assert writes(bed.robot.link) == []
    bed.cloud.link.restore()
    await bed.robot.gone("by-hand")


@pytest.mark.parametrize("source", SOURCES)
async def test_S5_2_a_copy_deleted_downstream_only_comes_back(make_bed: MakeBed, source: str):
    bed = await make_bed(source=source)
    up, down = up_and_down(bed, source)
    await up.create("a", spec={"x": 1})
    old = (await down.shows("a"))["metadata"]["uid"]
    await down.set_status("a", {"phase": "RUNNING"})
    await up.shows("a", status={"phase": "RUNNING"})
    await down.delete("a")

    async def back() -> bool:
        found = await down.find("a")
        return bool(found and found["metadata"]["uid"] != old and found.get("status") == {"phase": "RUNNING"})

    await eventually(back, what="the copy is back, with its status")
    assert (await up.get("a"))["status"] == {"phase": "RUNNING"}


@pytest.mark.nightly("to be shown by the model")
async def test_S5_2_the_last_unsent_status_goes_up_before_the_copy_comes_back(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    await bed.settled()
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.agent.stop()
    bed.robot.link.clear()
    await bed.robot.set_status("a", {"phase": "LAST_WORDS"})
    await bed.agent.start()
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    bed.robot.link.inject("/goals", status=503, method="POST")
    await bed.robot.delete("a")

    async def tried() -> bool:
        return any(r.method == "POST" for r in bed.robot.link.requests)

    await eventually(tried, what="the copy is made again offline")
    bed.cloud.link.clear()
    bed.cloud.link.restore()
    await bed.cloud.shows("a", status={"phase": "LAST_WORDS"})
    assert await bed.robot.find("a") is None
    bed.robot.link.heal()
    await bed.robot.shows("a", status={"phase": "LAST_WORDS"})
    assert len(status_writes(bed.cloud.link, "a")) == 1


@pytest.mark.nightly("to be shown by the model")
async def test_S5_2_S4_4_a_copy_deleted_in_an_outage_comes_back_with_the_status_that_is_still_owed(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    bed.cloud.link.cut()
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.until_kind("waiting")
    old = (await bed.robot.get("a"))["metadata"]["uid"]
    await bed.robot.delete("a")

    async def again() -> bool:
        copy = await bed.robot.find("a")
        return copy is not None and copy["metadata"]["uid"] != old and copy.get("status") == {"phase": "DONE"}

    await eventually(again, what="the copy is back, where it was")
    bed.cloud.link.restore()
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.settled()
    assert (await bed.cloud.get("a"))["status"] == {"phase": "DONE"}
    assert [w for w in writes(bed.cloud.link) if w.endswith("/status")] == [
        f"PATCH /apis/{bed.group}/v1/namespaces/default/goals/a/status"
    ]


async def test_S5_1_a_copy_whose_finalizer_blocks_is_waited_for(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.cloud.create("b", spec={"x": 1})
    await bed.robot.shows("b")
    await bed.robot.shows("a")
    await bed.robot.patch("a", FINALIZER)
    await bed.cloud.delete("a")
    await terminating(bed.robot, "a")
    await bed.cloud.patch("b", {"spec": {"x": 2}})
    await bed.robot.shows("b", spec={"x": 2})
    await bed.settled()
    assert {name for name, _ in deletes(bed.robot.link)} == {"a"}
    await bed.robot.patch("a", NO_FINALIZER)
    await bed.robot.gone("a")


@pytest.mark.parametrize("source", SOURCES)
async def test_S5_4_status_of_the_old_object_never_shows_on_its_successor(make_bed: MakeBed, source: str):
    bed = await make_bed(source=source)
    up, down = up_and_down(bed, source)
    await up.create("a", spec={"x": 1})
    await down.shows("a")
    await down.set_status("a", {"phase": "OLD"})
    await up.shows("a", status={"phase": "OLD"})
    old = (await down.get("a"))["metadata"]["uid"]
    async with bed.stopped():
        await up.delete("a")
        history = await up.record("a")
        await up.create("a", spec={"x": 2})
        await down.set_status("a", {"phase": "OLDER"})

    async def replaced() -> bool:
        found = await down.find("a")
        return bool(found and found["metadata"]["uid"] != old and found["spec"] == {"x": 2})

    await eventually(replaced, what="the copy is of the new object")
    await down.set_status("a", {"phase": "NEW"})
    await up.shows("a", status={"phase": "NEW"})
    await history_ends(history, {"phase": "NEW"})
    assert [status for status in history.statuses() if status] == [{"phase": "NEW"}]


@pytest.mark.nightly("to be shown by the model")
async def test_S5_4_a_blocked_copy_keeps_its_status_from_the_successor(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    await bed.robot.patch("a", FINALIZER)
    await bed.robot.set_status("a", {"phase": "OLD"})
    await bed.cloud.shows("a", status={"phase": "OLD"})
    await bed.cloud.delete("a")
    await terminating(bed.robot, "a")
    history = await bed.cloud.record("a")
    await bed.cloud.create("a", spec={"x": 2})
    await bed.robot.set_status("a", {"phase": "OLDER"})
    await bed.settled()
    await bed.robot.patch("a", NO_FINALIZER)
    copy = await bed.robot.shows("a", spec={"x": 2})
    assert "status" not in copy
    await bed.robot.set_status("a", {"phase": "NEW"})
    await history_ends(history, {"phase": "NEW"})
    assert [status for status in history.statuses() if status] == [{"phase": "NEW"}]


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_25
@pytest.mark.parametrize("restarted", [False, True])
async def test_S5_4_what_an_outage_left_in_the_outbox_is_not_for_the_successor(bed: Bed, restarted: bool):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    await bed.settled()
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("a", {"phase": "OLD"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    await bed.cloud.delete("a")
    history = await bed.cloud.record("a")
    await bed.cloud.create("a", spec={"x": 2})
    if restarted:
        await bed.agent.stop()
        await bed.agent.start()
    bed.cloud.link.restore()
    assert "status" not in await bed.robot.shows("a", spec={"x": 2})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0)
    await bed.robot.set_status("a", {"phase": "NEW"})
    await history_ends(history, {"phase": "NEW"})
    assert [status for status in history.statuses() if status] == [{"phase": "NEW"}]


async def test_S5_4_a_copy_without_our_annotation_is_adopted_in_place_with_its_status(make_bed: MakeBed):
    bed = await make_bed(start=False)
    made = await bed.cloud.create("a", spec={"x": 1})
    old = await bed.robot.create("a", spec={"x": 0})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.start()
    copy = await bed.robot.shows("a", spec={"x": 1}, status={"phase": "RUNNING"})
    assert copy["metadata"]["uid"] == old["metadata"]["uid"]
    assert copy["metadata"]["annotations"][UPSTREAM_UID] == made["metadata"]["uid"]
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
