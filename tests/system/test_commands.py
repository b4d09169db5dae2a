"""What operators can ask and order: holds, pending, resync, explain, on real planes."""

import asyncio

from tests.system.bed import Bed, SideBed, eventually
from tests.system.commands import ask, run
from tests.system.conftest import MakeBed

TEXT_ONLY = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def copied(bed: Bed, *names: str) -> None:
    """Create these objects in the cloud, and wait until they are on both sides and nothing is left to do."""
    await asyncio.gather(*(bed.cloud.create(name, spec={"x": 1}) for name in names))
    await until_names(bed.robot, set(names))
    await bed.settled()


async def until_names(side: SideBed, names: set[str]) -> None:
    async def check() -> bool:
        return await side.names() == names

    await eventually(check, what=f"{side.plane.name} has exactly {names}")


async def test_S6_3_what_waits_for_the_cloud_is_listed_with_and_without_an_agent(bed: Bed):
    assert await run(bed, "pending", "list") == "nothing is pending\n"
    await copied(bed, "a")
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("a", {"phase": "A"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    (row,) = (await ask(bed, "pending", "list"))["pending"]
    assert (row["resource"], row["namespace"], row["name"], row["what"]) == (bed.resource, "default", "a", "status")
    assert (row["dead"], row["to"]) == (False, "cloud")
    assert "default/a" in await run(bed, "pending", "list")
    assert "has no dead letter" in await run(bed, "pending", "drop", bed.resource, "a", "--yes", code=1)
    explained = await ask(bed, "explain", bed.resource, "a")
    assert explained["state"] == "waiting"
    assert [entry["what"] for entry in explained["pending"]] == ["status"]
    async with bed.stopped():
        (stored,) = (await ask(bed, "pending", "list"))["pending"]
        assert (stored["name"], stored["what"], stored["since"]) == ("a", "status", row["since"])
        explained = await ask(bed, "explain", bed.resource, "default/a")
        assert (explained["agent"], explained["objects"]["robot"]["state"]) == ("stopped", "seen")
        assert explained["pending"][0]["since"] == row["since"]
        bed.cloud.link.restore()
    await bed.cloud.shows("a", status={"phase": "A"})


async def test_S10_a_dead_letter_is_listed_tried_again_and_given_up(make_bed: MakeBed):
    bed = await make_bed(schema=LOOSE, cloud_crd={"schema": TEXT_ONLY})
    await copied(bed, "a", "b")
    await bed.robot.set_status("a", {"phase": 1})

    async def is_dead() -> bool:
        rows = (await ask(bed, "pending", "list"))["pending"]
        explained = await ask(bed, "explain", bed.resource, "a")
        told = [(row["name"], row["dead"], "phase" in (row["error"] or ""), bool(row["nextTry"])) for row in rows]
        errors = [row["error"] for row in rows] == [entry["error"] for entry in explained["pending"]]
        why = "S10" in [step["rule"] for step in explained["steps"] if step["ok"] is False]
        return told == [("a", True, True, True)] and errors and why and explained["state"] == "refused"

    await eventually(is_dead, what="the status is a dead letter, and explained")
    bed.cloud.link.clear()
    assert "retrying 1 object" in await run(bed, "pending", "retry")

    async def tried() -> bool:
        return any(r.method == "PATCH" and r.done for r in bed.cloud.link.requests)

    await eventually(tried, what="the status is sent again at once")
    await bed.agent.until(lambda status: status["outbox"]["deadLetters"] == 1)
    said = await run(bed, "pending", "drop", f"{bed.resource}/a")
    assert '{"phase": 1}' in said
    assert "--yes" in said
    assert "dropped" in await run(bed, "pending", "drop", bed.resource, "default/a", "--yes")
    async with bed.stopped():
        pass
    await bed.agent.until(lambda status: status["health"] == "healthy" and status["outbox"]["depth"] == 0)
    await run(bed, "resync")
    await bed.agent.until(lambda now: now["outbox"] == {"depth": 0, "oldestSeconds": None, "deadLetters": 0})
    assert "status" not in await bed.cloud.get("a")
    await bed.robot.set_status("a", {"phase": "good"})
    await bed.cloud.shows("a", status={"phase": "good"})
    assert await run(bed, "pending", "retry", bed.resource) == "there are no dead letters\n"
