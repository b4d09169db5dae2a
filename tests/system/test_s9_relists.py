"""S9.4: relists fetch a digest first, then what has changed; what makes them necessary; and that nothing is lost."""

import asyncio
import re
from urllib.parse import parse_qs

import pytest

from crsyncer.core.calls import PARTIAL_LIST
from tests import planes
from tests.link.faults import Request
from tests.link.link import Link
from tests.system.asked import deletes, lists
from tests.system.bed import LABEL, ROBOT, Bed, SideBed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.kinds import edit_crd

SLOW = 60.0
COUNT = 12
FOREIGN = 600
"""More events than an API server keeps of a kind that is not busy."""
OURS = {LABEL: ROBOT}
WATCH = r"/goals\?(.*&)?watch=true&.*allowWatchBookmarks"
GONE = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}


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


async def relisted(bed: Bed, side: str, before: int) -> None:
    """Wait until a side was listed once more, and is watched again."""

    async def check() -> bool:
        kind = await bed.kind()
        return bool(kind["relists"][side] > before and kind["state"] == "syncing")

    await eventually(check, seconds=SLOW, what=f"the {side} is listed anew")


class Expired:
    """Behind a cut link, the server forgets where we were."""

    def __init__(self, bed: Bed, side: SideBed) -> None:
        self.bed, self.side = bed, side
        self.name = "cloud" if side is bed.cloud else "robot"
        self.before = 0

    async def __aenter__(self) -> None:
        self.before = (await self.bed.kind())["relists"][self.name]
        self.side.link.cut()

    async def __aexit__(self, *_: object) -> None:
        self.side.link.clear()
        self.side.link.inject(WATCH, status=410, body=GONE, times=1)
        self.side.link.restore()
        await relisted(self.bed, self.name, self.before)
        await self.bed.settled()


async def test_S9_4_a_relist_asks_for_versions_and_then_for_what_has_changed(bed: Bed):
    await fill(bed)
    async with Expired(bed, bed.cloud):
        pass
    assert digests(bed.cloud.link)
    assert singles(bed.cloud.link) == []
    assert wholes(bed.cloud.link) == []
    async with Expired(bed, bed.cloud):
        await bed.cloud.patch("goal-3", {"spec": {"x": 2}})
        await bed.cloud.create("new", spec={"x": 1})
        await bed.cloud.delete("goal-5")
    await bed.robot.shows("goal-3", spec={"x": 2})
    await bed.robot.shows("new", spec={"x": 1})
    await bed.robot.gone("goal-5")
    assert digests(bed.cloud.link)
    assert set(singles(bed.cloud.link)) == {"goal-3", "new"}
    assert wholes(bed.cloud.link) == []
    async with Expired(bed, bed.robot):
        await bed.robot.set_status("goal-7", {"phase": "DONE"})
    await bed.cloud.shows("goal-7", status={"phase": "DONE"})
    assert set(singles(bed.robot.link)) == {"goal-7"}
    assert wholes(bed.robot.link) == []


@pytest.mark.nightly("to be shown by the model")
async def test_S9_4_where_much_has_changed_everything_is_fetched(bed: Bed):
    await fill(bed)
    async with Expired(bed, bed.cloud):
        for number in range(COUNT // 2):
            await bed.cloud.patch(f"goal-{number}", {"spec": {"x": 2}})
    for number in range(COUNT // 2):
        await bed.robot.shows(f"goal-{number}", spec={"x": 2})
    assert singles(bed.cloud.link) == []
    assert len(wholes(bed.cloud.link)) == 1


@pytest.mark.nightly("to be shown by the model")
async def test_S9_4_S2_1_a_filtered_kind_in_the_cloud_is_listed_by_its_one_selector(make_bed: MakeBed):
    bed = await make_bed(filtered="true")
    await fill(bed, labels=OURS)
    async with Expired(bed, bed.cloud):
        await bed.cloud.create("theirs", spec={"x": 1}, labels={LABEL: "robot-2"})
    assert digests(bed.cloud.link)
    assert wholes(bed.cloud.link) == []
    async with Expired(bed, bed.cloud):
        await bed.cloud.patch("goal-3", {"spec": {"x": 2}})
    await bed.robot.shows("goal-3", spec={"x": 2})
    assert singles(bed.cloud.link) == []
    assert len(wholes(bed.cloud.link)) == 1
    for request in lists(bed.cloud.link):
        assert set(parse_qs(request.query)) <= {"labelSelector", "limit", "continue"}


@pytest.mark.nightly("to be shown by the model")
async def test_S9_4_a_gateway_that_answers_with_whole_objects_is_taken_at_its_word(bed: Bed):
    await fill(bed)
    async with Expired(bed, bed.cloud):
        await bed.cloud.patch("goal-3", {"spec": {"x": 2}})
        whole = await bed.cloud.api.list(bed.cloud.resource)
        bed.cloud.link.inject(
            r"/goals\?",
            status=200,
            body=whole,
            when=lambda r: r.headers["accept"] == PARTIAL_LIST and "watch" not in r.query,
        )
    await bed.robot.shows("goal-3", spec={"x": 2})
    assert wholes(bed.cloud.link) == []


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
    assert (await bed.kind())["relists"]["cloud"] > before["relists"]["cloud"]
    assert digests(bed.cloud.link)
    assert "goal-3" in singles(bed.cloud.link)
    assert wholes(bed.cloud.link) == []
    assert deletes(bed.robot.link) == []


@pytest.mark.fault_14
@pytest.mark.fault_15
async def test_S9_4_a_crd_that_is_edited_in_the_cloud_costs_a_digest_and_no_copy(bed: Bed):
    await fill(bed)
    before = (await bed.kind())["relists"]
    bed.cloud.link.clear()
    bed.robot.link.clear()
    for edit in range(2):
        await edit_crd(bed.cloud)
        await bed.cloud.patch("goal-3", {"spec": {"x": 2 + edit}})
        await bed.robot.shows("goal-3", spec={"x": 2 + edit}, seconds=SLOW)
    await bed.settled()
    kind = await bed.kind()
    assert kind["state"] == "syncing"
    assert kind["relists"]["robot"] == before["robot"]
    assert wholes(bed.cloud.link) == []
    assert deletes(bed.robot.link) == []
    assert not any(
        re.search("kind.missing", reason["code"], re.IGNORECASE) for reason in (await bed.agent.status())["reasons"]
    )


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_12
async def test_S9_4_an_api_server_that_restarts_alone_costs_no_object_and_no_write(bed: Bed):
    """It writes as it starts, if only its own lease (measured): older cursors are 410; nothing of ours has changed."""
    await fill(bed)
    for link in (bed.cloud.link, bed.robot.link):
        link.clear()
    before = (await bed.kind())["relists"]
    await asyncio.to_thread(bed.cloud.plane.restart, "apiserver")
    await bed.cloud.create("new", spec={"x": 1})
    await bed.robot.shows("new", spec={"x": 1}, seconds=SLOW)
    await bed.settled()
    # As it starts it may refuse one (429), which is asked for again.
    assert len([digest for digest in digests(bed.cloud.link) if digest.status == 200]) <= 1
    assert set(singles(bed.cloud.link)) <= {"new"}
    assert wholes(bed.cloud.link) == []
    assert writes(bed.cloud.link) == []
    assert [write.partition(" ")[0] for write in writes(bed.robot.link)] == ["POST"]
    assert (await bed.kind())["relists"]["robot"] == before["robot"]


@pytest.mark.fault_24
@pytest.mark.parametrize("side", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
async def test_S9_2_a_watch_resumes_although_the_history_was_compacted_meanwhile(bed: Bed, side: str):
    await fill(bed)
    here = bed.cloud if side == "cloud" else bed.robot
    before = (await bed.kind())["relists"]
    here.link.cut()
    await bed.cloud.patch("goal-3", {"spec": {"x": 2}})
    await bed.robot.set_status("goal-7", {"phase": "DONE"})
    await asyncio.to_thread(planes.compact, here.plane)
    here.link.restore()
    await bed.robot.shows("goal-3", spec={"x": 2}, seconds=SLOW)
    await bed.cloud.shows("goal-7", status={"phase": "DONE"}, seconds=SLOW)
    await bed.settled()
    assert (await bed.kind())["relists"] == before


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
