"""S9.3 to S9.5: how watches and lists are asked for, silence that is noticed, and trouble that stays where it is."""

import asyncio
import itertools
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.system.asked import hit, lists, refusal, watches
from tests.system.bed import Bed, SideBed, eventually
from tests.system.conftest import MakeBed
from tests.system.flow import flows
from tests.system.kinds import another, edit_crd, row, until_row

BUSY = refusal(429, "storage is (re)initializing", reason="TooManyRequests")
WEBHOOK_DOWN = refusal(500, "conversion webhook for example.com failed: no endpoints", reason="InternalError")


async def test_S9_3_watches_ask_for_bookmarks_and_an_end_and_lists_are_consistent(bed: Bed):
    for plural in ("tasks", "notes"):
        await another(bed, plural)
        await until_row(bed, plural, state="syncing")
    for link in (bed.cloud.link, bed.robot.link):
        for plural in ("goals", "tasks", "notes"):
            for request in watches(link, plural):
                query = parse_qs(request.query)
                assert query["allowWatchBookmarks"] == ["true"]
                assert 240 <= int(query["timeoutSeconds"][0]) <= 480
                assert int(query["resourceVersion"][0]) > 0
            listed = lists(link, plural)
            assert listed
            assert not any("resourceVersion" in r.query for r in listed)  # 0 would mean: any old state will do
        every_watch = [r for plural in ("goals", "tasks", "notes") for r in watches(link, plural)]
        assert len({parse_qs(r.query)["timeoutSeconds"][0] for r in every_watch}) > 1  # they do not all end at once


@pytest.mark.nightly("to be shown by the model")
async def test_S9_3_the_length_of_a_watch_is_configurable(make_bed: MakeBed, tmp_path: Path):
    config = tmp_path / "crsyncer.yaml"
    config.write_text("watchTimeout: 30\n")
    bed = await make_bed(flags=("--config", str(config)))
    for link in (bed.cloud.link, bed.robot.link):
        asked = [int(parse_qs(watch.query)["timeoutSeconds"][0]) for watch in watches(link)]
        assert asked
        assert all(24 <= seconds <= 48 for seconds in asked)


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
    await bed.until_kind("syncing", seconds=60)
    first, second, *_ = lists(bed.cloud.link)
    assert "continue" not in first.query
    assert parse_qs(second.query)["continue"]
    assert not any("resourceVersion" in r.query for r in (first, second))
    assert (await bed.kind())["objects"]["cloud"] == len(names)


async def test_S9_5_a_side_that_is_down_does_not_stop_what_the_other_needs(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.patch("a", {"spec": {"x": 5}})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.delete("a")
    await bed.robot.shows("a", spec={"x": 1})
    status = await bed.agent.status()
    assert status["sides"]["robot"]["state"] == "connected"


async def two_kinds(make_bed: MakeBed) -> tuple[Bed, SideBed, SideBed]:
    """Goals and tasks, an object of each in sync; goals are the ones that a probe begins with. Tasks on both sides."""
    bed = await make_bed(start=False)
    cloud_tasks, robot_tasks = await another(bed)
    for cloud in (bed.cloud, cloud_tasks):
        await cloud.create("a", spec={"x": 0})
    await bed.start()
    await until_row(bed, "tasks", state="syncing")
    for cloud, robot in ((bed.cloud, bed.robot), (cloud_tasks, robot_tasks)):
        await robot.shows("a", spec={"x": 0})
        await flows(cloud, robot, 1)
    await bed.settled()
    return bed, cloud_tasks, robot_tasks


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_14
@pytest.mark.parametrize("side", ["cloud", "robot"])
async def test_S9_1_S9_5_a_kind_whose_storage_is_initialized_keeps_no_other_from_its_side(make_bed: MakeBed, side: str):
    bed, cloud_tasks, robot_tasks = await two_kinds(make_bed)
    here = bed.cloud if side == "cloud" else bed.robot
    before = (await bed.agent.status())["sides"][side]
    busy = here.link.inject(r"/goals\?", method="GET", status=429, body=BUSY, headers={"Retry-After": "1"})
    await edit_crd(here)
    await hit(busy, 4)
    await flows(cloud_tasks, robot_tasks, 2)
    found = await row(bed)
    assert found
    assert found["state"] != "kind-missing"
    busy.remove()
    await flows(bed.cloud, bed.robot, 3)
    after = (await bed.agent.status())["sides"][side]
    assert [after[key] for key in ("state", "since", "reconnects")] == ["connected", before["since"], 0]
    log = bed.agent.tail(1000)
    assert f"{side} is offline" not in log


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("side", ["cloud", "robot"])
async def test_S9_5_a_kind_that_its_server_cannot_read_keeps_no_other_from_its_side(make_bed: MakeBed, side: str):
    bed, cloud_tasks, robot_tasks = await two_kinds(make_bed)
    here = bed.cloud if side == "cloud" else bed.robot
    relists = {plural: (await until_row(bed, plural))["relists"] for plural in ("goals", "tasks")}
    here.link.clear()
    broken = here.link.inject(r"/goals(/|\?)", status=500, body=WEBHOOK_DOWN)
    here.link.cut()
    await bed.until_side(side, "offline")
    here.link.restore()
    await bed.until_side(side, "connected")
    await hit(broken, 3)
    await flows(cloud_tasks, robot_tasks, 2)

    def said(status: dict[str, Any]) -> bool:
        found = next(kind for kind in status["kinds"] if kind["resource"] == bed.resource)
        return found["state"] == "waiting" and "webhook" in str(found["message"])

    status = await bed.agent.until(said, seconds=60)
    assert status["health"] == "degraded"
    assert "webhook" in str(status["reasons"])
    broken.remove()
    await flows(bed.cloud, bed.robot, 3)
    assert (await bed.agent.status())["sides"][side]["reconnects"] == 1
    assert {plural: (await until_row(bed, plural))["relists"] for plural in relists} == relists


@pytest.mark.nightly("to be shown by the model")
async def test_S9_1_a_side_that_asks_everybody_for_patience_stays_connected_and_is_given_it(bed: Bed):
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    await bed.settled()
    before = (await bed.agent.status())["sides"]["cloud"]
    bed.cloud.link.clear()
    busy = bed.cloud.link.inject("", status=429, body=BUSY, headers={"Retry-After": "2"})
    await edit_crd(bed.cloud)

    def asked() -> list[float]:
        return [r.time for r in bed.cloud.link.requests if r.path == "/version"]

    async def asked_again() -> bool:
        return len(asked()) > 2

    await eventually(asked_again, seconds=40, what="some probes")
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(asked()))
    during = (await bed.agent.status())["sides"]["cloud"]
    assert [during[key] for key in ("state", "since", "reconnects")] == ["connected", before["since"], 0]
    busy.remove()
    await flows(bed.cloud, bed.robot, 1)
