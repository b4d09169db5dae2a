"""S9.3 to S9.5: how watches and lists are asked for, silence that is noticed, and trouble that stays where it is."""

import asyncio
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.link.link import Link
from tests.system.asked import lists, watches
from tests.system.bed import Bed, eventually
from tests.system.kinds import another, until_row


async def test_S9_3_watches_ask_for_bookmarks_and_an_end_and_lists_are_consistent(bed: Bed):
    plurals = ("goals", "tasks", "notes")
    for plural in plurals[1:]:
        await another(bed, plural)
        await until_row(bed, plural, state="syncing")
    for link in (bed.cloud.link, bed.robot.link):

        async def all_watched(link: Link = link) -> bool:
            return all(watches(link, plural) for plural in plurals)

        await eventually(all_watched, what="every kind is watched")
        for plural in plurals:
            for request in watches(link, plural):
                query = parse_qs(request.query)
                assert query["allowWatchBookmarks"] == ["true"]
                assert 240 <= int(query["timeoutSeconds"][0]) <= 480
                assert int(query["resourceVersion"][0]) > 0
            listed = lists(link, plural)
            assert listed
            assert not any("resourceVersion" in r.query for r in listed)  # 0 would mean: any old state will do
    every_watch = [r for link in (bed.cloud.link, bed.robot.link) for plural in plurals for r in watches(link, plural)]
    assert len({parse_qs(r.query)["timeoutSeconds"][0] for r in every_watch}) > 1  # they do not all end at once


@pytest.mark.nightly
@pytest.mark.fault_09
async def test_S9_3_packets_that_vanish_are_noticed_within_a_minute_on_both_sides_at_once(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    for link in (bed.cloud.link, bed.robot.link):
        link.half_open()
    down = {"offline", "connecting"}
    await bed.agent.until(lambda s: all(side["state"] in down for side in s["sides"].values()), seconds=66)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.set_status("a", {"phase": "DONE"})
    for link in (bed.cloud.link, bed.robot.link):
        link.restore()
    await bed.robot.shows("a", spec={"x": 2}, seconds=90)
    await bed.cloud.shows("a", status={"phase": "DONE"}, seconds=90)
    assert (await bed.kind())["relists"] == {"cloud": 1, "robot": 1}


async def test_S9_4_a_long_list_is_read_in_pages_of_one_revision(bed: Bed):
    names = [f"goal-{number}" for number in range(520)]
    async with bed.stopped():
        for start in range(0, len(names), 40):
            await asyncio.gather(*(bed.cloud.create(name, spec={"x": 1}) for name in names[start : start + 40]))
        bed.cloud.link.clear()
        for database in bed.agent.state_dir.glob("*.db*"):
            database.unlink()

    def listed(status: dict[str, Any]) -> bool:
        return [(kind["state"], kind["objects"]["cloud"]) for kind in status["kinds"]] == [("syncing", len(names))]

    await bed.agent.until(listed)
    pages = [parse_qs(r.query) for r in lists(bed.cloud.link)]
    assert "continue" not in pages[0]
    assert any("continue" in page for page in pages)
    assert not any("resourceVersion" in page for page in pages)
