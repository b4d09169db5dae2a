"""S3.6: what downstream's schema refuses is kept, shown and tried again when something has changed."""

from typing import Any

import pytest

from tests.system.bed import Bed, crd, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import one_sided
from tests.system.roles import roles, status_writes

SLOW = 90.0
"""Seconds until a change that only the end of a watch tells of has had its effect."""
BOTH = pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])


def at_most(maximum: int) -> dict[str, Any]:
    """A schema in which spec.x and status.n have a limit."""
    limited = {"type": "integer", "maximum": maximum}
    return {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"x": limited}},
            "status": {"type": "object", "properties": {"n": limited}},
        },
    }


async def dead(bed: Bed, count: int, *, depth: int | None = None) -> dict[str, Any]:
    """Wait until there are so many dead letters, and nothing else is the matter; the status.

    `depth`: how many of them wait in the outbox.
    """
    codes = ["DeadLetters"] if count else []

    def good(status: dict[str, Any]) -> bool:
        found = status["outbox"]["deadLetters"], [reason["code"] for reason in status["reasons"]]
        return found == (count, codes) and depth in (None, status["outbox"]["depth"])

    return await bed.agent.until(good, seconds=60)


async def tries(bed: Bed, method: str, ending: str) -> int:
    """How often the robot was asked."""
    return len([r for r in bed.robot.link.requests if r.method == method and r.path.endswith(ending)])


@BOTH
async def test_S3_6_a_refused_copy_is_a_dead_letter_and_delays_nobody(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source, **one_sided("robot" if source == "cloud" else "cloud", at_most(10)))
    up, down = roles(bed, source)
    await up.create("bad", spec={"x": 11})
    assert (await dead(bed, 1))["health"] == "attention"
    await up.create("good", spec={"x": 1})
    await down.shows("good", spec={"x": 1})
    assert await down.find("bad") is None
    await up.patch("bad", {"spec": {"x": 10}})
    await down.shows("bad", spec={"x": 10})
    assert (await dead(bed, 0))["health"] == "healthy"
    # A refused update leaves the copy, and its status, as they were.
    await up.patch("bad", {"spec": {"x": 12}})
    await dead(bed, 1)
    await down.set_status("bad", {"n": 1})
    await up.shows("bad", status={"n": 1}, spec={"x": 12})
    await down.shows("bad", spec={"x": 10})
    await bed.settled()
    await dead(bed, 1)
    await up.delete("bad")
    await down.gone("bad")
    await dead(bed, 0)


@pytest.mark.nightly("to be shown by the model")
async def test_S3_6_a_refused_copy_is_not_asked_for_again_until_something_changes(make_bed: MakeBed) -> None:
    bed = await make_bed(**one_sided("robot", at_most(10)))
    await bed.cloud.create("bad", spec={"x": 11})
    await dead(bed, 1)
    before = await tries(bed, "POST", "/goals")
    await bed.cloud.set_status("bad", {"n": 1})  # no change of content
    await bed.cloud.create("good", spec={"x": 1})
    await bed.robot.shows("good", spec={"x": 1})
    await bed.settled()
    assert await tries(bed, "POST", "/goals") == before + 1
    await bed.cloud.patch("bad", {"spec": {"x": 12}})

    async def asked() -> bool:
        return await tries(bed, "POST", "/goals") == before + 2

    await eventually(asked, what="the changed object was tried")
    await dead(bed, 1)


async def test_S3_6_a_change_of_the_crd_revives_what_its_schema_refused(make_bed: MakeBed) -> None:
    bed = await make_bed(**one_sided("robot", at_most(10)))
    await bed.cloud.create("new", spec={"x": 11})
    await bed.cloud.create("old", spec={"x": 1})
    await bed.robot.shows("old", spec={"x": 1})
    await bed.cloud.patch("old", {"spec": {"x": 12}})
    await dead(bed, 2)
    await bed.robot.api.apply_crd(crd(bed.group, schema=at_most(20)))
    await bed.robot.shows("new", spec={"x": 11})
    await bed.robot.shows("old", spec={"x": 12})
    assert (await dead(bed, 0))["health"] == "healthy"


@pytest.mark.nightly("to be shown by the model")
async def test_S3_6_a_refusal_survives_a_restart_as_a_refusal(make_bed: MakeBed) -> None:
    bed = await make_bed(**one_sided("robot", at_most(10)))
    await bed.cloud.create("bad", spec={"x": 11})
    await dead(bed, 1)
    async with bed.stopped():
        pass
    await dead(bed, 1)
    await bed.cloud.delete("bad")
    await dead(bed, 0)


@BOTH
async def test_S10_a_status_that_upstreams_schema_refuses_is_a_dead_letter_until_it_changes(
    make_bed: MakeBed, source: str
) -> None:
    bed = await make_bed(source=source, **one_sided(source, at_most(10)))
    up, down = roles(bed, source)
    for name in ("a", "b"):
        await up.create(name, spec={"x": 1})
        await down.shows(name, spec={"x": 1})
    await down.set_status("a", {"n": 11})
    assert (await dead(bed, 1, depth=1))["health"] == "attention"
    await down.set_status("b", {"n": 1})
    await up.shows("b", status={"n": 1})
    refused = len(status_writes(up, "a"))
    await down.set_status("b", {"n": 2})
    await up.shows("b", status={"n": 2})
    assert len(status_writes(up, "a")) == refused
    await down.set_status("a", {"n": 10})
    await up.shows("a", status={"n": 10})
    await dead(bed, 0)
    # It is gone, too, when downstream goes back to what upstream has.
    await down.set_status("a", {"n": 11})
    await dead(bed, 1)
    await down.set_status("a", {"n": 10})
    assert (await dead(bed, 0))["health"] == "healthy"


@pytest.mark.nightly("to be shown by the model")
async def test_S10_a_refused_status_is_tried_again_when_its_upstream_object_changes(make_bed: MakeBed) -> None:
    bed = await make_bed(**one_sided("cloud", at_most(10)))
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"n": 11})
    await dead(bed, 1)
    await bed.cloud.api.apply_crd(crd(bed.group, schema=at_most(20)))
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.cloud.shows("a", status={"n": 11})
    await dead(bed, 0)


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S10_a_change_of_the_clouds_crd_alone_revives_what_its_schema_refused(
    make_bed: MakeBed, source: str
) -> None:
    bed = await make_bed(source=source, **one_sided("cloud", at_most(10)))
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1})
    await down.shows("a", spec={"x": 1})
    await (down.set_status("a", {"n": 11}) if source == "cloud" else up.patch("a", {"spec": {"x": 11}}))
    await dead(bed, 1)
    await bed.cloud.api.apply_crd(crd(bed.group, source=source, schema=at_most(20)))
    await (
        up.shows("a", status={"n": 11}, seconds=SLOW)
        if source == "cloud"
        else down.shows("a", spec={"x": 11}, seconds=SLOW)
    )
    await dead(bed, 0)
