"""S4.7: observedGeneration, copied verbatim by default, translated to upstream's numbers on request."""

from typing import Any

import pytest

from tests.system.bed import Bed, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import one_sided
from tests.system.roles import roles, touched

BOTH = pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
COMPLETING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"speed": {"type": "string", "default": "slow"}},
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


async def observed(bed: Bed, source: str, value: Any) -> Any:
    """What upstream shows when downstream's controller reports a generation, with a note that makes it a change."""
    up, down = roles(bed, source)
    note = f"{value}-{len(up.link.requests)}"
    await down.set_status("a", {"observedGeneration": value, "note": note})

    async def check() -> dict[str, Any] | None:
        status: dict[str, Any] = (await up.get("a")).get("status") or {}
        return status if status.get("note") == note else None

    return (await eventually(check, what=f"the status with {note}"))["observedGeneration"]


async def generation(side: Any) -> int:
    """The object's generation."""
    return int((await side.get("a"))["metadata"]["generation"])


@BOTH
async def test_S4_7_it_is_copied_verbatim_by_default(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1})
    await down.shows("a", spec={"x": 1})
    assert await observed(bed, source, 7) == 7
    assert await observed(bed, source, "7") == "7"


@BOTH
@pytest.mark.parametrize(
    "subresource", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["subresource", "main"]
)
async def test_S4_7_map_reports_the_upstream_generation_of_the_content_that_was_observed(
    make_bed: MakeBed, source: str, subresource: bool
) -> None:
    bed = await make_bed(source=source, observed_generation="map", status=subresource)
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 0})
    await down.shows("a", spec={"x": 0})
    for number in (1, 2):
        await up.patch("a", {"spec": {"x": number}})
        await down.shows("a", spec={"x": number})
    current = await generation(up)
    assert await observed(bed, source, await generation(down)) == current
    # Drift and its revert: two downstream generations more, none upstream.
    await bed.settled()
    drifted = (await down.patch("a", {"spec": {"x": 9}}))["metadata"]["generation"]
    await down.shows("a", spec={"x": 2})
    await bed.settled()
    if subresource:  # without it, every status is a generation of its own
        assert await observed(bed, source, await generation(down)) == await generation(up)
        assert await observed(bed, source, drifted) == 0
    before = await generation(down)
    behind = await generation(up)
    await up.patch("a", {"spec": {"x": 3}})
    await down.shows("a", spec={"x": 3})
    await bed.settled()
    # A controller that is late, one that has caught up, and one that knows the future.
    if subresource:
        assert await observed(bed, source, before) == behind
        assert await observed(bed, source, await generation(down)) == behind + 1
    assert await observed(bed, source, 1000) == 0


@pytest.mark.nightly("to be shown by the model")
async def test_S4_7_map_never_reports_more_than_upstream_has_reached(make_bed: MakeBed) -> None:
    bed = await make_bed(observed_generation="map")
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    await bed.settled()
    for number in range(3):  # the copy's generation runs ahead of upstream's
        await bed.robot.patch("a", {"spec": {"x": 50 + number}})
        await bed.robot.shows("a", spec={"x": 0})
    assert await generation(bed.robot) > await generation(bed.cloud) == 1
    history = await bed.cloud.record("a")
    assert await observed(bed, "cloud", await generation(bed.robot)) == 1
    assert all((status or {}).get("observedGeneration", 0) <= 1 for status in await history.complete())


@pytest.mark.nightly("to be shown by the model")
async def test_S4_7_map_knows_content_that_downstreams_schema_has_completed(make_bed: MakeBed) -> None:
    bed = await make_bed(observed_generation="map", **one_sided("robot", COMPLETING))
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0, "speed": "slow"})
    first = await generation(bed.robot)
    for number in (1, 2):
        await bed.cloud.patch("a", {"spec": {"x": number}})
        await bed.robot.shows("a", spec={"x": number, "speed": "slow"})
    await bed.settled()
    assert await observed(bed, "cloud", first) == 1
    assert await observed(bed, "cloud", await generation(bed.robot)) == 3


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("restarted", [False, True])
async def test_S4_7_map_makes_good_what_was_reported_before_its_own_write_was_answered(
    make_bed: MakeBed, restarted: bool
) -> None:
    bed = await make_bed(observed_generation="map", **one_sided("robot", COMPLETING))
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0, "speed": "slow"})
    await bed.settled()
    stall = bed.robot.link.stall("/goals/a$", method="PUT", after_request=True)
    await bed.cloud.patch("a", {"spec": {"x": 1}})
    await bed.robot.shows("a", spec={"x": 1, "speed": "slow"})
    await bed.robot.set_status("a", {"observedGeneration": await generation(bed.robot)})
    await bed.cloud.shows("a", status={"observedGeneration": 0})  # whose content that is, only the answer tells
    if restarted:
        await bed.agent.stop()
    stall.remove()
    if restarted:
        await bed.agent.start()
    await bed.cloud.shows("a", status={"observedGeneration": 2})
    await bed.settled()
    bed.cloud.link.clear()
    await touched(bed, bed.robot)
    assert [r for r in bed.cloud.link.requests if r.method == "PATCH"] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S4_7_map_remembers_over_a_restart(make_bed: MakeBed) -> None:
    bed = await make_bed(observed_generation="map")
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    first = await generation(bed.robot)
    await bed.cloud.patch("a", {"spec": {"x": 1}})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    async with bed.stopped():
        await bed.robot.set_status("a", {"observedGeneration": first, "note": "while it was down"})
    await bed.cloud.shows("a", status={"observedGeneration": 1, "note": "while it was down"})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("value", ["3", 1.5, True, None, [1], {"n": 1}], ids=str)
async def test_S4_7_map_copies_what_is_not_an_integer(make_bed: MakeBed, value: Any) -> None:
    bed = await make_bed(observed_generation="map")
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    await bed.robot.set_status("a", {"observedGeneration": value, "nested": {"observedGeneration": 1000}})
    made = (await bed.robot.get("a"))["status"]
    await bed.cloud.shows("a", status=made)


@pytest.mark.nightly("to be shown by the model")
async def test_S4_7_map_leaves_a_subtree_alone(make_bed: MakeBed) -> None:
    bed = await make_bed(observed_generation="map", subtree="robot")
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    await bed.robot.set_status("a", {"robot": {"observedGeneration": 1000}, "observedGeneration": 1})
    await bed.cloud.shows("a", status={"robot": {"observedGeneration": 1000}})


@pytest.mark.nightly("to be shown by the model")
async def test_S4_7_a_mapped_status_settles(make_bed: MakeBed) -> None:
    bed = await make_bed(observed_generation="map")
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    assert await observed(bed, "cloud", 1000) == 0
    await bed.settled()
    bed.cloud.link.clear()
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await touched(bed, bed.robot)
    assert [r for r in bed.cloud.link.requests if r.method == "PATCH"] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S4_7_a_copy_that_was_made_anew_counts_its_own_generations(make_bed: MakeBed) -> None:
    bed = await make_bed(observed_generation="map")
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    for number in (1, 2):
        await bed.cloud.patch("a", {"spec": {"x": number}})
        await bed.robot.shows("a", spec={"x": number})
    assert await observed(bed, "cloud", 2) == 2
    old = (await bed.robot.get("a"))["metadata"]["uid"]
    await bed.robot.delete("a")

    async def anew() -> bool:
        copy = await bed.robot.find("a")
        return copy is not None and copy["metadata"]["uid"] != old

    await eventually(anew, what="the copy is there again")
    await bed.settled()
    await bed.robot.patch("a", {"spec": {"x": 9}})
    await bed.robot.shows("a", spec={"x": 2})
    await bed.settled()
    # Its second generation was somebody else's; that of the copy before it had been upstream's second.
    assert await observed(bed, "cloud", 2) == 0
    assert await observed(bed, "cloud", await generation(bed.robot)) == 3
