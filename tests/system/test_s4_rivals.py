"""S4.8 to S4.10: others who write the status upstream, and schemas that change it, are not fought."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.sandbox.agent import AgentProcess
from tests.system.bed import Bed, SideBed
from tests.system.conftest import MakeBed
from tests.system.kinds import one_sided
from tests.system.roles import roles, status_writes, touched

BOTH = pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])


async def reported(up: SideBed, down: SideBed, status: dict[str, Any]) -> None:
    """An object whose copy reports a status that upstream has."""
    await up.create("a", spec={"x": 1})
    await down.shows("a", spec={"x": 1})
    await down.set_status("a", status)
    await up.shows("a", status=status)


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S4_8_a_status_written_upstream_is_let_stand_until_downstream_changes(
    make_bed: MakeBed, source: str
) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await reported(up, down, {"n": 1})
    await bed.settled()
    up.link.clear()
    await up.set_status("a", {"by": "somebody"})
    await touched(bed, up)
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await touched(bed, up)
    assert status_writes(up, "a") == []
    assert (await up.get("a"))["status"] == {"by": "somebody"}
    assert (await down.get("a"))["status"] == {"n": 1}
    await down.set_status("a", {"n": 2})
    await up.shows("a", status={"n": 2})


@pytest.mark.nightly("to be shown by the model")
async def test_S4_8_a_status_removed_upstream_comes_back_with_the_next_change(bed: Bed) -> None:
    await reported(bed.cloud, bed.robot, {"n": 1})
    await bed.cloud.set_status("a", None)
    await touched(bed, bed.cloud)
    assert (await bed.robot.get("a"))["status"] == {"n": 1}
    await bed.robot.set_status("a", {"n": 2})
    await bed.cloud.shows("a", status={"n": 2})


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S4_9_a_status_that_upstream_has_already_is_not_sent(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1})
    await down.shows("a", spec={"x": 1})
    await up.set_status("a", {"n": 1, "m": [1.0, {"k": None}]})
    await touched(bed, up)
    await down.set_status("a", {"m": [1, {"k": None}], "n": 1.0})
    await touched(bed, down)
    assert status_writes(up, "a") == []
    await down.set_status("a", None)
    await up.shows("a", status=None)


@BOTH
async def test_S4_9_what_upstreams_schema_made_of_a_status_is_remembered_and_not_fought(
    make_bed: MakeBed, source: str
) -> None:
    fields = {"n": {"type": "integer"}, "level": {"type": "string", "default": "low"}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "properties": fields},
        },
    }
    bed = await make_bed(source=source, **one_sided(source, schema))
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1})
    await down.shows("a", spec={"x": 1})
    await down.set_status("a", {"n": 1, "unknown": {"pruned": True}})
    await up.shows("a", status={"n": 1, "level": "low"})
    await touched(bed, down)
    await up.patch("a", {"spec": {"x": 2}})
    await down.shows("a", spec={"x": 2}, status={"n": 1, "unknown": {"pruned": True}})
    await bed.settled()
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await touched(bed, down)
    assert len(status_writes(up, "a")) == 1
    await down.set_status("a", {"n": 2, "unknown": 2})
    await up.shows("a", status={"n": 2, "level": "low"})
    await touched(bed, down)
    assert len(status_writes(up, "a")) == 2


@pytest.mark.nightly("to be shown by the model")
async def test_S4_10_two_robots_that_write_one_status_do_not_play_ping_pong(make_bed: MakeBed, tmp_path: Any) -> None:
    bed = await make_bed()
    await reported(bed.cloud, bed.robot, {"n": 1})
    # A second agent on the same planes stands for another robot whose copy is older: it says something else.
    await bed.settled()
    (tmp_path / "second").mkdir()
    second = AgentProcess(
        tmp_path / "second",
        cloud_kubeconfig=bed.cloud.link.kubeconfig(tmp_path / "second" / "cloud.yaml"),
        robot_kubeconfig=bed.robot.link.kubeconfig(tmp_path / "second" / "robot.yaml"),
        robot_name="robot-2",
    )
    await second.start()
    try:
        await second.until(lambda status: any(kind["state"] == "syncing" for kind in status["kinds"]))
        bed.cloud.link.clear()
        for number in range(2, 5):
            await bed.robot.set_status("a", {"n": number})
            await bed.cloud.shows("a", status={"n": number})
        both = bed, replace(bed, agent=second)
        for each in both:
            await touched(each, bed.robot)
        writes = len(status_writes(bed.cloud, "a"))
        assert writes <= 6  # each robot once for each change
        for each in both:
            await touched(each, bed.cloud)
        assert len(status_writes(bed.cloud, "a")) == writes
    finally:
        await second.kill()


async def test_S4_10_an_upstream_status_that_another_robot_changed_is_not_answered(bed: Bed) -> None:
    await reported(bed.cloud, bed.robot, {"robot": 1})
    await bed.settled()
    bed.cloud.link.clear()
    bed.robot.link.clear()
    for number in range(10):
        await bed.cloud.set_status("a", {"robot": 2, "n": number})
    await touched(bed, bed.cloud)
    assert status_writes(bed.cloud, "a") == []
    assert status_writes(bed.robot, "a") == []
    await bed.robot.set_status("a", {"robot": 1, "n": "mine"})

    await bed.cloud.shows("a", status={"robot": 1, "n": "mine"})  # the last writer wins
    assert len(status_writes(bed.cloud, "a")) == 1
