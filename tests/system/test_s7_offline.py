"""S7: without the link the robot goes on alone; with it again, what matters most comes first."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.system.asked import deletes, lists, status_writes, watches
from tests.system.bed import Bed, cpu_seconds, eventually
from tests.system.conftest import MakeBed
from tests.system.crowd import copied, holds_exactly
from tests.system.state_dir import passed

ENDED = 20 - 16 + 1
"""How many of 20 writes have ended before what comes next begins: 16 are under way at a time, in no order."""


async def without_cloud(bed: Bed) -> None:
    """Start the agent anew with the cloud absent since boot."""
    await bed.agent.stop()
    bed.cloud.link.cut()
    bed.robot.link.clear()
    await bed.start(state="waiting")
    await bed.until_side("cloud", "offline")
    await bed.until_side("robot", "connected")


async def test_S7_1_a_copy_deleted_by_hand_is_back_from_the_store_with_the_cloud_absent_since_boot(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1, "text": "ü" * 100}, labels={"l": "1"})
    await bed.robot.shows("a")
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.settled()
    await without_cloud(bed)
    old = await bed.robot.get("a")
    await bed.robot.delete("a")

    async def back() -> bool:
        found = await bed.robot.find("a")
        return bool(found and found["metadata"]["uid"] != old["metadata"]["uid"] and found.get("status"))

    await eventually(back, what="the copy is back")
    copy = await bed.robot.get("a")
    assert copy["spec"] == old["spec"]
    assert copy["status"] == old["status"]
    assert copy["metadata"]["labels"] == old["metadata"]["labels"]
    assert copy["metadata"]["annotations"] == old["metadata"]["annotations"]


@pytest.mark.nightly("to be shown by the model")
async def test_S7_1_a_copy_that_was_deleted_before_boot_is_made_again(bed: Bed):
    await copied(bed, 3)
    await bed.agent.stop()
    bed.cloud.link.cut()
    await bed.robot.delete("g01")
    await bed.start(state="waiting")
    await holds_exactly(bed.robot, ["g00", "g01", "g02"])


@pytest.mark.nightly("to be shown by the model")
async def test_S7_1_drift_is_reverted_with_the_cloud_absent_since_boot(bed: Bed):
    await copied(bed, 1)
    await without_cloud(bed)
    await bed.robot.patch("g00", {"spec": {"x": 99, "more": True}})
    await bed.robot.shows("g00", spec={"x": 1})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_05
async def test_S7_1_statuses_are_collected_with_the_cloud_absent_since_boot(bed: Bed):
    await copied(bed, 3)
    await without_cloud(bed)
    for name in ("g00", "g01"):
        await bed.robot.set_status(name, {"phase": "DONE"})
    status = await bed.agent.until(lambda status: status["outbox"]["depth"] == 2)
    assert status["health"] == "offline"
    assert status["kinds"][0]["pending"]["status"] == 2
    bed.cloud.link.restore()
    for name in ("g00", "g01"):
        await bed.cloud.shows(name, status={"phase": "DONE"})


@pytest.mark.nightly("to be shown by the model")
async def test_S7_1_nothing_is_deleted_on_old_knowledge_alone(bed: Bed):
    await copied(bed, 2)
    await without_cloud(bed)
    await bed.robot.create("by-hand", spec={"x": 1})

    async def seen() -> bool:
        return bool((await bed.kind())["objects"]["robot"] == 3)

    await eventually(seen, what="the agent has seen what was made by hand")
    await bed.robot.patch("g00", {"spec": {"x": 2}})
    await bed.robot.shows("g00", spec={"x": 1})
    assert deletes(bed.robot.link) == []
    bed.cloud.link.restore()
    await bed.robot.gone("by-hand")


async def test_S7_1_a_recorded_tombstone_is_carried_out_without_the_cloud(bed: Bed):
    await copied(bed, 8)
    bed.robot.link.cut()
    await bed.until_side("robot", "offline")
    await bed.cloud.delete("g03")
    await passed(bed, "g03")
    await bed.agent.stop()
    bed.cloud.link.cut()
    bed.robot.link.restore()
    await bed.start(state="waiting")
    await bed.robot.gone("g03")
    assert len(await bed.robot.names()) == 7


@pytest.mark.nightly("measures, or counts, what the model shows")
async def test_S7_2_after_an_outage_deletions_go_first_and_everything_arrives(bed: Bed):
    names = await copied(bed, 60)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    doomed, changed, reported = names[:20], names[20:40], names[40:]
    await asyncio.gather(*(bed.cloud.patch(name, {"spec": {"x": 2}}) for name in changed))
    await asyncio.gather(*(bed.cloud.create(f"new-{name}", spec={"x": 3}) for name in changed[:5]))
    await asyncio.gather(*(bed.cloud.delete(name) for name in doomed))
    await asyncio.gather(*(bed.robot.set_status(name, {"phase": "DONE"}) for name in reported))
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 20)
    # Nothing is written before all is heard, and the deletions are known to be meant (S5.5b); and then slowly: so that
    # work queues up and its order can be seen.
    bed.robot.link.cut()
    await bed.until_side("robot", "offline")
    bed.robot.link.clear()
    bed.cloud.link.clear()
    bed.cloud.link.restore()
    await bed.agent.until(lambda status: status["kinds"][0]["objects"]["cloud"] == 45)
    await passed(bed, *doomed)
    bed.robot.link.delay(0.1)
    bed.robot.link.restore()
    await holds_exactly(bed.robot, [*changed, *reported, *(f"new-{name}" for name in changed[:5])])
    for name in changed:
        await bed.robot.shows(name, spec={"x": 2})
    for name in reported:
        await bed.cloud.shows(name, status={"phase": "DONE"})
    done = [r for r in bed.robot.link.requests if r.method != "GET" and r.status < 300]
    order = "".join({"DELETE": "D", "PUT": "S", "POST": "N"}[r.method] for r in done)
    assert sorted(order) == sorted("D" * 20 + "S" * 20 + "N" * 5)
    assert order[:ENDED] == "D" * ENDED
    assert order.index("N") >= 20 + ENDED
    assert len(status_writes(bed.cloud.link)) == 20


def robot_seen(version: int, status: dict[str, Any]) -> bool:
    """Whether the agent has seen the robot up to a resourceVersion."""
    return int(status["kinds"][0]["cursor"]["robot"] or 0) >= version


@pytest.mark.nightly("to be shown by the model")
async def test_S7_2_final_statuses_go_before_periodic_ones(bed: Bed):
    names = await copied(bed, 40)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    periodic, final = names[:20], names[20:]
    for beat in range(8):
        await asyncio.gather(*(bed.robot.set_status(name, {"beat": beat}) for name in periodic))
        last = await bed.robot.get(periodic[-1])
        version = int(last["metadata"]["resourceVersion"])
        await bed.agent.until(partial(robot_seen, version))
    await asyncio.gather(*(bed.robot.set_status(name, {"phase": "DONE"}) for name in final))
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 40)
    bed.cloud.link.clear()
    bed.cloud.link.delay(0.1)
    bed.cloud.link.restore()
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0)
    order = [request.path.split("/")[-2] for request in status_writes(bed.cloud.link)]
    assert sorted(order) == names
    assert set(order[:ENDED]) <= set(final), order


@pytest.mark.nightly("measures, or counts, what the model shows")
@pytest.mark.fault_06
async def test_S7_3_with_both_sides_absent_the_agent_waits_idly(make_bed: MakeBed):
    bed = await make_bed(start=False)
    for side in (bed.cloud, bed.robot):
        side.link.cut()
    await bed.start(state=None)
    await bed.until_side("robot", "offline")
    await bed.until_side("cloud", "offline")
    before, started = cpu_seconds(bed.agent.pid), asyncio.get_running_loop().time()
    connects = bed.cloud.link.connects + bed.robot.link.connects
    await asyncio.sleep(5.0)  # there is nothing to poll for: nothing is what is measured
    elapsed = asyncio.get_running_loop().time() - started
    used = (cpu_seconds(bed.agent.pid) - before) / elapsed
    print(f"{used:.2%} CPU with both sides absent")
    assert used < 0.03  # the rule says 1 %; a clock of 10 ms and a busy machine ask for slack
    assert bed.cloud.link.connects + bed.robot.link.connects - connects <= 20
    for side in (bed.cloud, bed.robot):
        side.link.restore()
    await bed.until_kind("syncing")


@pytest.mark.nightly("to be shown by the model")
async def test_S7_3_a_robot_that_is_absent_at_start_is_waited_for(make_bed: MakeBed):
    bed = await make_bed()
    await copied(bed, 2)
    await bed.agent.stop()
    bed.robot.link.cut()
    await bed.start(state=None)
    await bed.until_side("robot", "offline")
    await bed.until_side("cloud", "connected")
    status = await bed.agent.status()
    assert status["health"] == "degraded"
    assert "RobotOffline" in [reason["code"] for reason in status["reasons"]]
    bed.robot.link.restore()
    await bed.until_kind("syncing")
    await bed.cloud.patch("g00", {"spec": {"x": 2}})
    await bed.robot.shows("g00", spec={"x": 2})


@pytest.mark.nightly("to be shown by the model")
async def test_S7_a_robot_that_vanishes_while_running_makes_its_kinds_wait(bed: Bed):
    await copied(bed, 1)
    bed.robot.link.cut()
    await bed.until_kind("waiting")
    await bed.cloud.patch("g00", {"spec": {"x": 2}})
    for side in (bed.cloud, bed.robot):
        side.link.clear()
    bed.robot.link.restore()
    await bed.robot.shows("g00", spec={"x": 2})
    await bed.until_kind("syncing")
    assert lists(bed.robot.link) == []
    assert len(watches(bed.robot.link)) == 1


@pytest.mark.nightly("to be shown by the model")
async def test_S7_1_an_agent_that_starts_offline_knows_when_the_cloud_last_answered(bed: Bed):
    await bed.until_side("cloud", "connected")
    async with bed.stopped():
        bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    status = await bed.agent.until(lambda status: status["health"] == "offline")
    assert status["sides"]["cloud"]["lastOk"] <= status["agent"]["since"]
    assert not any("never" in reason["message"] for reason in status["reasons"])
