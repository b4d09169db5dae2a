"""S3.5: upstream's content is enforced, patiently: what admission made of it is not fought, and a fight is slow."""

from itertools import pairwise
from typing import Any

import pytest

from tests.system.bed import Bed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.kinds import one_sided
from tests.system.roles import FINALIZER, UID, Rival, roles, touched

BOTH = pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "speed": {"type": "string", "default": "slow"},
                "limits": {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 7}}},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@BOTH
@pytest.mark.fault_28
async def test_S3_5_a_downstream_change_of_content_is_reverted(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1, "y": {"z": 1}}, labels={"zone": "b"})
    await down.shows("a", spec={"x": 1, "y": {"z": 1}})
    await down.patch("a", {"spec": {"x": 9, "y": None}, "more": {"added": 1}})
    await down.shows("a", spec={"x": 1, "y": {"z": 1}}, more=None)
    await down.patch("a", {"metadata": {"labels": {"zone": None, "theirs": "1"}}, "spec": {"w": 1}})
    copy = await down.shows("a", spec={"x": 1, "y": {"z": 1}})
    assert copy["metadata"]["labels"] == {"zone": "b", "theirs": "1"}


@pytest.mark.nightly("to be shown by the model")
async def test_S3_5_a_revert_does_not_touch_status_or_what_others_own(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"n": 1})
    await bed.robot.patch("a", {"metadata": {"finalizers": [FINALIZER], "annotations": {"theirs": "1"}}})
    await bed.robot.patch("a", {"spec": {"x": 2}})
    copy = await bed.robot.shows("a", spec={"x": 1}, status={"n": 1})
    assert copy["metadata"]["finalizers"] == [FINALIZER]
    assert copy["metadata"]["annotations"]["theirs"] == "1"
    await bed.robot.patch("a", {"metadata": {"finalizers": None}})


@pytest.mark.nightly("to be shown by the model")
async def test_S3_5_our_annotations_on_a_copy_are_restored(bed: Bed) -> None:
    upstream = await bed.cloud.create("a", spec={"x": 1})
    uid = (await bed.robot.shows("a", spec={"x": 1}))["metadata"]["uid"]
    await bed.settled()
    await bed.robot.patch("a", {"metadata": {"annotations": None}})
    await bed.settled()
    copy = await bed.robot.get("a")
    assert copy["metadata"]["annotations"][UID] == upstream["metadata"]["uid"]
    assert copy["metadata"]["uid"] == uid


@pytest.mark.nightly("to be shown by the model")
async def test_S3_5_drift_that_happened_while_the_agent_was_down_is_reverted(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    async with bed.stopped():
        await bed.robot.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 1})


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S3_5_drift_keep_leaves_it_until_the_next_upstream_change(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source, drift="keep")
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1}, labels={"zone": "b"})
    await down.shows("a", spec={"x": 1})
    await down.patch("a", {"spec": {"x": 2}, "metadata": {"labels": {"zone": "c"}}})
    await touched(bed, up)
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await bed.settled()
    copy = await down.get("a")
    assert (copy["spec"], copy["metadata"]["labels"]) == ({"x": 2}, {"zone": "c"})
    await down.set_status("a", {"n": 1})
    await up.shows("a", status={"n": 1}, spec={"x": 1})
    await up.patch("a", {"spec": {"y": 1}})
    copy = await down.shows("a", spec={"x": 1, "y": 1})
    assert copy["metadata"]["labels"] == {"zone": "b"}


@BOTH
async def test_S3_5_what_downstreams_schema_adds_is_not_fought(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source, **one_sided("robot" if source == "cloud" else "cloud", DEFAULTS))
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1, "unknown": 1})
    admitted = {"x": 1, "speed": "slow", "limits": {"n": 7}}
    await down.shows("a", spec=admitted)
    await down.set_status("a", {"n": 1})
    await up.shows("a", status={"n": 1}, spec={"x": 1, "unknown": 1})
    await bed.settled()
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await touched(bed, up)
    assert [w.partition(" ")[0] for w in writes(down.link) if w.endswith(("/goals", "/a"))] == ["POST", "POST"]
    # What is not admission's work is still drift, and upstream's next change still arrives.
    await down.patch("a", {"spec": {"speed": "fast"}})
    await down.shows("a", spec=admitted)
    await up.patch("a", {"spec": {"x": 2, "speed": "fast"}})
    await down.shows("a", spec={"x": 2, "speed": "fast", "limits": {"n": 7}})
    await touched(bed, up)
    assert len([w for w in writes(down.link) if w.endswith("/a")]) == 2


@pytest.mark.nightly("to be shown by the model")
@BOTH
@pytest.mark.fault_28
async def test_S3_5_a_fight_slows_down_and_is_reported_with_what_differs(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1, "deep": {"speed": 1}})
    await up.create("b", spec={"x": 1})
    await down.shows("a", spec={"x": 1, "deep": {"speed": 1}})
    await down.shows("b", spec={"x": 1})
    await bed.settled()
    down.link.clear()
    async with Rival(down, "a", {"spec": {"x": 1, "deep": {"speed": 2}}}) as rival:
        status = await bed.agent.until(lambda status: bool(status["holds"]), seconds=60)
        assert [(h["reason"], h["objects"], h["resource"]) for h in status["holds"]] == [("Contested", 1, bed.resource)]
        assert status["health"] == "attention"
        reason = next(r for r in status["reasons"] if r["code"] == "Contested")
        kind = await bed.kind()
        assert "spec.deep.speed" in str(kind["message"]) + reason["message"]
        # Others are not delayed, and neither is upstream.
        await down.patch("b", {"spec": {"x": 2}})
        await down.shows("b", spec={"x": 1})
        reverts = [w for w in writes(down.link) if w.endswith("/a")]
        assert len(reverts) <= 6
        assert rival.count <= len(reverts) + 1
    await up.patch("a", {"spec": {"x": 3}})
    await down.shows("a", spec={"x": 3, "deep": {"speed": 1}})
    await bed.agent.until(lambda status: not status["holds"])


@pytest.mark.nightly("to be shown by the model")
async def test_S3_5_a_rival_that_is_faster_than_our_answer_does_not_pass_for_admission(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    async with Rival(bed.robot, "a", {"spec": {"x": 2}}, limit=4) as rival:

        async def over() -> bool:
            return rival.count == 4

        await eventually(over, what="the rival has given up")
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    assert (await bed.robot.get("a"))["spec"] == {"x": 1}


@pytest.mark.nightly
@pytest.mark.fault_28
async def test_S3_5_a_fight_is_one_revert_a_minute_and_over_by_itself_when_the_rival_stops(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    async with Rival(bed.robot, "a", {"spec": {"x": 2}}) as rival:
        await bed.agent.until(lambda status: bool(status["holds"]), seconds=60)
        slow = rival.count

        async def minutes() -> bool:
            return rival.count >= slow + 2

        await eventually(minutes, seconds=240, what="two more reverts")
        status = await bed.agent.status()
        assert [(h["reason"], h["objects"]) for h in status["holds"]] == [("Contested", 1)]
    reverts = [r.time for r in bed.robot.link.requests if r.method == "PUT" and r.path.endswith("/a")]
    assert all(later - earlier >= 59 for earlier, later in pairwise(reverts[-3:]))
    await bed.robot.shows("a", spec={"x": 1}, seconds=90)
    await bed.agent.until(lambda status: status["health"] == "healthy" and not status["holds"])
