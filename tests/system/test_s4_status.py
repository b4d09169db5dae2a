"""S4: what real servers make of our status writes: guards, subresources, generations and schemas."""

from typing import Any

from tests.system.bed import Bed, SideBed, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import one_sided
from tests.system.roles import decoded, status_writes

FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
NEIGHBOURS: dict[str, Any] = {"cloud": {"plan": 1}, "configuration": {"trolley": True}}


async def copied(bed: Bed, **fields: Any) -> None:
    """Create a in the cloud, and wait for its copy."""
    await bed.cloud.create("a", spec={"x": 1}, **fields)
    await bed.robot.shows("a", spec={"x": 1})


async def test_S4_1_a_status_cannot_land_on_a_re_created_object(bed: Bed) -> None:
    await copied(bed)
    await bed.settled()
    stall = bed.cloud.link.stall("/goals/a", method="PATCH")
    await bed.robot.set_status("a", {"phase": "OLD"})

    async def asked() -> bool:
        return stall.count > 0

    await eventually(asked, what="the old status is on its way")
    history = await bed.cloud.record("a")
    await bed.cloud.delete("a")
    await bed.cloud.create("a", spec={"x": 2})
    stall.remove()
    await bed.robot.shows("a", spec={"x": 2}, status=None)
    await bed.robot.set_status("a", {"phase": "NEW"})
    await bed.cloud.shows("a", status={"phase": "NEW"})
    assert [s for s in await history.complete() if s not in (None, {"phase": "NEW"})] == []


async def test_S4_2_where_patch_is_refused_a_put_of_the_bare_status_is_made(bed: Bed) -> None:
    bed.cloud.link.inject("/goals/", method="PATCH", status=403, body=FORBIDDEN)
    await copied(bed, labels={"zone": "b"})
    upstream = await bed.cloud.get("a")
    await bed.robot.set_status("a", {"phase": "ONE"})
    found = await bed.cloud.shows("a", status={"phase": "ONE"}, spec={"x": 1})
    assert found["metadata"]["labels"] == {"zone": "b"}
    identity = {key: upstream["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    kind = {"apiVersion": upstream["apiVersion"], "kind": "Goal"}
    assert decoded(status_writes(bed.cloud, "a")[-1]) == {**kind, "metadata": identity, "status": {"phase": "ONE"}}
    await bed.robot.set_status("a", None)
    await bed.cloud.shows("a", status=None, spec={"x": 1})
    await bed.agent.until(lambda status: status["health"] == "healthy")


async def observed(bed: Bed, value: int) -> int:
    """What the cloud shows when the robot's controller reports a generation, with a note that makes it a change."""
    note = f"{value}-{len(bed.cloud.link.requests)}"
    await bed.robot.set_status("a", {"observedGeneration": value, "note": note})

    async def check() -> dict[str, Any] | None:
        status: dict[str, Any] = (await bed.cloud.get("a")).get("status") or {}
        return status if status.get("note") == note else None

    return int((await eventually(check, what=f"the status with {note}"))["observedGeneration"])


async def generation(side: SideBed) -> int:
    """The object's generation."""
    return int((await side.get("a"))["metadata"]["generation"])


async def test_S4_9_what_upstreams_schema_made_of_a_status_is_remembered(make_bed: MakeBed) -> None:
    fields = {"n": {"type": "integer"}, "level": {"type": "string", "default": "low"}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "properties": fields},
        },
    }
    bed = await make_bed(**one_sided("cloud", schema))
    await copied(bed)
    for number in (1, 2):
        await bed.robot.set_status("a", {"n": number, "unknown": {"pruned": True}})
        await bed.cloud.shows("a", status={"n": number, "level": "low"})
        await bed.settled()
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0 and status["health"] == "healthy")
