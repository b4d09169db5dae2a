"""S4.8: the audit, which finds what no event has told of, and which nobody notices otherwise."""

from dataclasses import replace

import pytest

from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.calls import PARTIAL_LIST
from crsyncer.core.model import Side
from tests.link.link import Link
from tests.system.asked import deletes, lists, watches
from tests.system.bed import Bed, eventually, writes
from tests.system.conftest import MakeBed

OFTEN = ("--audit-interval", "10")
SLOW = 60.0


def audits(link: Link) -> int:
    """How often the kind's versions were listed."""
    return sum(r.headers["accept"] == PARTIAL_LIST for r in lists(link))


async def audited(bed: Bed, times: int = 1) -> None:
    """Wait until both sides have been audited so often."""

    async def check() -> bool:
        return all(audits(link) >= times for link in (bed.cloud.link, bed.robot.link))

    await eventually(check, seconds=SLOW, what=f"{times} audits of both sides")


async def skip(bed: Bed, side: str, version: str) -> None:
    """Put the stored cursor of a side ahead, as if its watch had been silent about what came before."""
    store = await SqliteStore.open(bed.agent.state_dir, on_trouble=lambda _: None)
    cursor = (await store.load(bed.resource)).cursors[Side(side), ""]
    store.put_cursor(Side(side), bed.resource, "", replace(cursor, resource_version=version))
    await store.close()


@pytest.mark.fault_29
async def test_S4_8_an_audit_overrules_who_wrote_the_status_upstream_and_keeps_the_neighbours(make_bed: MakeBed):
    bed = await make_bed(subtree="robot", flags=OFTEN)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"robot": {"phase": "DONE"}})
    await bed.cloud.shows("a", status={"robot": {"phase": "DONE"}})
    await bed.settled()
    before = (await bed.kind())["relists"]
    await bed.cloud.set_status("a", {"robot": {"phase": "WRONG"}, "cloud": {"seen": True}})
    await bed.cloud.shows("a", status={"robot": {"phase": "DONE"}, "cloud": {"seen": True}}, seconds=SLOW)
    assert (await bed.kind())["relists"] == before


@pytest.mark.nightly("to be shown by the model")
async def test_S4_8_S9_4_an_audit_that_finds_nothing_lists_versions_and_writes_nothing(make_bed: MakeBed):
    bed = await make_bed(flags=OFTEN)
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
        await bed.robot.set_status(name, {"phase": "DONE"})
        await bed.cloud.shows(name, status={"phase": "DONE"})
    await bed.settled()
    before = (await bed.kind())["relists"]
    for link in (bed.cloud.link, bed.robot.link):
        link.clear()
    await audited(bed, 2)
    for link in (bed.cloud.link, bed.robot.link):
        assert writes(link) == []
        assert watches(link) == []
        assert len(lists(link)) == audits(link)
    assert (await bed.kind())["relists"] == before
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.parametrize("side", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
async def test_S4_8_S9_4_an_audit_finds_what_the_watch_has_not_shown(make_bed: MakeBed, side: str):
    bed = await make_bed(flags=OFTEN)
    for name in ("a", "gone"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.settled()
    here = bed.cloud if side == "cloud" else bed.robot
    async with bed.stopped():
        await here.patch("a", {"spec": {"x": 2}})
        await here.delete("gone")
        await here.create("new", spec={"x": 1})
        version = (await here.api.list(here.resource))["metadata"]["resourceVersion"]
        await skip(bed, side, version)
    if side == "cloud":
        await bed.robot.shows("a", spec={"x": 2}, seconds=SLOW)
        await bed.robot.shows("new", spec={"x": 1}, seconds=SLOW)
        await bed.robot.gone("gone", seconds=SLOW)
    else:
        await bed.robot.shows("a", spec={"x": 1}, seconds=SLOW)
        await bed.robot.shows("gone", spec={"x": 1}, seconds=SLOW)
        await bed.robot.gone("new", seconds=SLOW)
    assert (await bed.kind())["relists"][side] == 1
    assert all(options["preconditions"]["uid"] for _, options in deletes(bed.robot.link))
