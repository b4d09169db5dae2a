"""S6: what is on disk survives every end of the agent, and its loss costs a relist, never data."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.system.asked import deletes, lists, status_writes, watches
from tests.system.bed import LABEL, Bed, eventually, memory, some_at_a_time, writes
from tests.system.conftest import MakeBed
from tests.system.crowd import copied, report_all, shown_all
from tests.system.state_dir import quiet, remove_database


@pytest.mark.parametrize("database", ["kept", "deleted"])
async def test_S6_3_twenty_statuses_of_an_outage_survive_kill_9_and_arrive_once(bed: Bed, database: str):
    names = await copied(bed, 20)
    await report_all(bed, names, "BEFORE")
    await shown_all(bed, names, "BEFORE")
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    for phase in ("STARTED", "RUNNING", "DONE"):
        await report_all(bed, names, phase)
    items = (await bed.robot.api.list(bed.robot.resource))["items"]
    last = max(int(item["metadata"]["resourceVersion"]) for item in items)

    def collected(status: dict[str, Any]) -> bool:
        return bool(status["outbox"]["depth"] == 20 and int(status["kinds"][0]["cursor"]["robot"] or 0) >= last)

    await bed.agent.until(collected)
    await bed.agent.kill()
    if database == "deleted":
        remove_database(bed.agent.state_dir)
    bed.cloud.link.clear()
    await bed.agent.start()
    await bed.agent.until(collected)
    bed.cloud.link.restore()
    await shown_all(bed, names, "DONE")
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0)
    await bed.settled()
    # What was merged on the way never went up.
    sent = {(r.path, b"DONE" in r.body) for r in status_writes(bed.cloud.link)}
    assert sent == {(bed.cloud.api.path(bed.cloud.goal(name)) + "/status", True) for name in names}
    assert deletes(bed.robot.link) == deletes(bed.cloud.link) == []


@pytest.mark.nightly("to be shown by the model")
async def test_S6_3_the_outbox_keeps_one_row_an_object_and_its_first_dirty_time(bed: Bed):
    await copied(bed, 1)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("g00", {"step": 0})
    first = (await bed.agent.until(lambda status: (status["outbox"]["oldestSeconds"] or 0) >= 2))["outbox"]
    for step in range(1, 6):
        last = await bed.robot.set_status("g00", {"step": step})
    status = await bed.agent.until(
        lambda status: int(status["kinds"][0]["cursor"]["robot"]) >= int(last["metadata"]["resourceVersion"])
    )
    assert first["depth"] == status["outbox"]["depth"] == 1
    assert status["outbox"]["oldestSeconds"] >= first["oldestSeconds"]
    bed.cloud.link.restore()
    await bed.cloud.shows("g00", status={"step": 5})


@pytest.mark.nightly("to be shown by the model")
async def test_S6_1_kill_9_at_any_moment_is_followed_by_a_replay_that_changes_nothing(bed: Bed):
    names = await copied(bed, 8)
    for phase in ("ONE", "TWO", "THREE"):
        await asyncio.gather(
            report_all(bed, names, phase), *(bed.cloud.patch(name, {"spec": {"x": phase}}) for name in names)
        )
        await bed.agent.kill()
        await bed.agent.start()
    await shown_all(bed, names, "THREE")
    for name in names:
        await bed.robot.shows(name, spec={"x": "THREE"})
    await bed.settled()
    before = [await side.api.list(side.resource) for side in (bed.cloud, bed.robot)]
    async with bed.stopped(kill=True):
        pass
    await bed.until_kind("syncing")
    await bed.settled()
    after = [await side.api.list(side.resource) for side in (bed.cloud, bed.robot)]
    assert [each["items"] for each in after] == [each["items"] for each in before]


@pytest.mark.nightly("measures, or counts, what the model shows")
@pytest.mark.parametrize("kill", [pytest.param(False, marks=pytest.mark.nightly("a variation")), True])
async def test_S6_2_a_restart_with_300_objects_writes_nothing_and_lists_nothing(bed: Bed, kill: bool):
    await copied(bed, 300)
    await quiet(bed)
    await (bed.agent.kill() if kill else bed.agent.stop())
    before = [await side.api.list(side.resource) for side in (bed.cloud, bed.robot)]
    for side in (bed.cloud, bed.robot):
        side.link.clear()
    await bed.agent.start()
    kind = await bed.until_kind("syncing")
    await bed.settled()
    for side in (bed.cloud, bed.robot):
        assert writes(side.link) == []
        assert lists(side.link) == []
        (watch,) = watches(side.link)
        assert "resourceVersion=" in watch.query
        print(f"{side.plane.name}: {side.link.bytes_down} bytes down, {side.link.bytes_up} up")
        assert side.link.bytes_down < 60_000  # 300 objects are some 300,000 bytes, and so is a digest of them 30,000
    assert kind["resumes"] == {"cloud": 1, "robot": 1}
    assert kind["relists"] == {"cloud": 0, "robot": 0}
    assert kind["objects"] == {"cloud": 300, "robot": 300}
    after = [await side.api.list(side.resource) for side in (bed.cloud, bed.robot)]
    assert [each["items"] for each in after] == [each["items"] for each in before]


@pytest.mark.nightly("to be shown by the model")
async def test_S6_2_a_cursor_of_another_selector_is_worth_nothing(make_bed: MakeBed, tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text("robotName: robot-1\n")
    bed = await make_bed(filtered="true", robot_name="", flags=("--config", str(config)))
    await bed.cloud.create("yours", labels={LABEL: "robot-2"})
    await bed.cloud.create("mine", labels={LABEL: "robot-1"})
    await bed.robot.shows("mine")
    await bed.settled()
    async with bed.stopped():
        config.write_text("robotName: robot-2\n")
    await bed.robot.shows("yours")
    await bed.until_kind("syncing")
    await bed.settled()
    # What another robot's copy was is not this robot's any more: local, and never touched.
    assert await bed.robot.names() == {"mine", "yours"}
    assert deletes(bed.robot.link) == deletes(bed.cloud.link) == []


async def test_S6_5_sigterm_in_the_middle_of_work_exits_0_and_loses_nothing(bed: Bed):
    names = await copied(bed, 20)
    bed.cloud.link.stall("/status", method="PATCH")
    bed.robot.link.delay(0.2)
    await asyncio.gather(report_all(bed, names, "DONE"), *(bed.cloud.patch(name, {"spec": {"x": 2}}) for name in names))
    assert await bed.agent.stop() == 0
    bed.cloud.link.heal()
    bed.robot.link.heal()
    await bed.agent.start()
    await shown_all(bed, names, "DONE")
    for name in names:
        await bed.robot.shows(name, spec={"x": 2})


async def test_S6_6_bodies_live_on_disk(bed: Bed):
    """600 objects of 20 kB on two sides are 24 MB of JSON, and several times that as Python objects."""
    await copied(bed, 5)
    few = memory(bed.agent.pid)
    text = "x" * 20_000
    await some_at_a_time(bed.cloud.create(f"big-{n}", spec={"text": text, "number": n}) for n in range(600))

    async def all_there() -> bool:
        return bool((await bed.kind())["objects"]["robot"] == 605)

    await eventually(all_there, what="605 copies")
    await bed.settled(seconds=60)
    grown = memory(bed.agent.pid) - few
    print(f"600 objects of 20 kB: {grown:.1f} MiB more")
    assert grown < 40
