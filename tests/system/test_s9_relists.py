"""S9.4: relists fetch a digest first, then what has changed; what makes them necessary; and that nothing is lost."""

import asyncio
from urllib.parse import parse_qs

import pytest

from crsyncer.core.requests.calls import PARTIAL_LIST
from tests import planes
from tests.link.faults import Request
from tests.link.link import Link
from tests.system.asked import deletes, lists
from tests.system.bed import LABEL, ROBOT, Bed
from tests.system.conftest import MakeBed

SLOW = 60.0
COUNT = 12
FOREIGN = 600
"""More events than an API server keeps of a kind that is not busy."""
OURS = {LABEL: ROBOT}


def digests(link: Link) -> list[Request]:
    """Lists of metadata only."""
    return [r for r in lists(link) if r.headers["accept"] == PARTIAL_LIST]


def singles(link: Link) -> list[str]:
    """The names of objects that were listed one by one."""
    queries = [parse_qs(r.query).get("fieldSelector", [""])[0] for r in lists(link)]
    return [query.removeprefix("metadata.name=") for query in queries if query]


def wholes(link: Link) -> list[Request]:
    """Lists of whole objects."""
    return [r for r in lists(link) if r not in digests(link) and "fieldSelector" not in r.query]


async def fill(bed: Bed, count: int = COUNT, **fields: object) -> None:
    """Objects on both sides, nothing left to do."""
    names = [f"goal-{number}" for number in range(count)]
    await asyncio.gather(*(bed.cloud.create(name, spec={"x": 1}, **fields) for name in names))
    for name in names:
        await bed.robot.shows(name, spec={"x": 1})
    await bed.settled()


@pytest.mark.fault_13
async def test_S9_4_an_api_server_that_restarts_one_event_later_costs_a_digest(bed: Bed):
    await fill(bed)
    before = await bed.kind()
    bed.cloud.link.cut()
    await bed.cloud.patch("goal-3", {"spec": {"x": 2}})
    await asyncio.to_thread(bed.cloud.plane.restart, "apiserver")
    await bed.cloud.api.until_served(bed.cloud.resource)
    bed.cloud.link.clear()
    bed.robot.link.clear()
    bed.cloud.link.restore()
    await bed.robot.shows("goal-3", spec={"x": 2}, seconds=SLOW)
    await bed.settled()
    await bed.agent.until(lambda status: status["kinds"][0]["relists"]["cloud"] > before["relists"]["cloud"])
    assert digests(bed.cloud.link)
    assert "goal-3" in singles(bed.cloud.link)
    assert deletes(bed.robot.link) == []


@pytest.mark.fault_24
async def test_S9_2_a_watch_resumes_although_the_history_was_compacted_meanwhile(bed: Bed):
    await fill(bed)
    before = (await bed.kind())["resumes"]["cloud"]
    bed.cloud.link.cut()
    await bed.cloud.patch("goal-3", {"spec": {"x": 2}})
    await bed.robot.set_status("goal-7", {"phase": "DONE"})
    await asyncio.to_thread(planes.compact, bed.cloud.plane)
    bed.cloud.link.restore()
    await bed.robot.shows("goal-3", spec={"x": 2}, seconds=SLOW)
    await bed.cloud.shows("goal-7", status={"phase": "DONE"}, seconds=SLOW)
    await bed.settled()
    await bed.agent.until(lambda status: status["kinds"][0]["resumes"]["cloud"] > before)


@pytest.mark.nightly
@pytest.mark.fault_08
async def test_S9_4_a_cut_that_outlasts_the_servers_memory_costs_a_digest_and_what_has_changed(make_bed: MakeBed):
    """An API server forgets events of a kind that are older than 75 s and more than fit into its ring."""
    bed = await make_bed(filtered="true")
    await fill(bed, labels=OURS)
    async with bed.stopped():
        for link in (bed.cloud.link, bed.robot.link):
            link.clear()
        await asyncio.sleep(80)  # the fault itself
        theirs = await bed.cloud.create("theirs", spec={"x": 0}, labels={LABEL: "robot-2"})
        for number in range(FOREIGN):
            await bed.cloud.api.patch(theirs, {"spec": {"x": number}})
    await bed.until_kind("syncing", seconds=SLOW)
    await bed.settled()
    assert digests(bed.cloud.link)
    assert wholes(bed.cloud.link) == []
    assert lists(bed.robot.link) == []
    assert deletes(bed.robot.link) == []
    await bed.cloud.patch("goal-3", {"spec": {"x": 2}})
    await bed.robot.shows("goal-3", spec={"x": 2})
