"""S9.1 and S9.2: one probe while a side is down; watches go on from where they were."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from crsyncer.sandbox.resource import NAMESPACE
from tests.link.faults import Injection, Request
from tests.link.link import Link
from tests.system.asked import REPLAY, full_list, hit, lists, refusal, watches
from tests.system.bed import Bed, SideBed, memory
from tests.system.flow import begun, flows
from tests.system.kinds import another, asked, row, until_row

SIDES = ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))]
SLOW = 40.0


def watch_of(plural: str) -> str:
    """The pattern of a kind's watches, not of those that only ask for what is known (S8.2)."""
    return rf"/{plural}\?(.*&)?watch=true&.*allowWatchBookmarks"


WATCH = watch_of("goals")


EXPIRED = refusal(410, "too old resource version: 1 (2)", reason="Expired")


def line(kind: str, obj: dict[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def break_connections(link: Link) -> None:
    link.cut()
    link.restore()


def side_of(bed: Bed, side: str) -> SideBed:
    return bed.cloud if side == "cloud" else bed.robot


def most_in_a_second(requests: list[Request]) -> int:
    """The largest number of requests within any second."""
    times = [r.time for r in requests]
    return max(sum(start <= time < start + 1 for time in times) for start in times)


async def refused(bed: Bed, words: str) -> dict[str, Any]:
    """Wait until the cloud is offline for what it answers, and not for a link that was found cut; the status then."""
    return await bed.agent.until(
        lambda status: status["sides"]["cloud"]["state"] == "offline" and words in status["sides"]["cloud"]["error"],
        seconds=SLOW,
    )


@pytest.mark.nightly("measures, or counts, what the model shows")
async def test_S9_1_while_a_side_is_down_one_probe_asks_for_all_kinds(bed: Bed):
    for plural in ("tasks", "notes"):
        await another(bed, plural)
        await until_row(bed, plural, state="syncing")
    await begun(bed)
    down = bed.cloud.link.inject("", status=503, body=refusal(503, "maintenance", reason="ServiceUnavailable"))
    break_connections(bed.cloud.link)
    status = await refused(bed, "maintenance")
    assert status["health"] == "offline"
    bed.cloud.link.clear()
    down.count = 0
    await hit(down, 2)
    assert len({r.target for r in bed.cloud.link.requests}) == 1, [r.target for r in bed.cloud.link.requests]
    assert not any("watch" in r.query for r in bed.cloud.link.requests)
    assert most_in_a_second(bed.cloud.link.requests) <= 4
    down.remove()
    await bed.until_side("cloud", "connected", seconds=90)
    await flows(bed.cloud, bed.robot, 2)
    side = (await bed.agent.status())["sides"]["cloud"]
    assert side["reconnects"] == 1
    assert side["error"] is None
    assert (await bed.kind())["relists"] == {"cloud": 1, "robot": 1}


@pytest.mark.nightly("to be shown by the model")
async def test_S9_1_a_probe_obeys_retry_after(bed: Bed):
    await begun(bed)
    down = bed.cloud.link.inject(
        "", status=503, body=refusal(503, "maintenance", reason="ServiceUnavailable"), headers={"Retry-After": "4"}
    )
    break_connections(bed.cloud.link)
    await refused(bed, "maintenance")
    bed.cloud.link.clear()
    down.count = 0
    await hit(down, 2)
    first, second, *_ = [r.time for r in bed.cloud.link.requests]
    assert second - first >= 4
    down.remove()
    await flows(bed.cloud, bed.robot, 2)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("side", SIDES)
async def test_S9_1_429_while_storage_is_initialized_means_wait_and_not_gone(bed: Bed, side: str):
    before = await begun(bed)
    link = side_of(bed, side).link
    body = refusal(429, "storage is (re)initializing", reason="TooManyRequests")
    busy = link.inject(WATCH, status=429, body=body, headers={"Retry-After": "2"}, times=2)
    break_connections(link)
    link.clear()
    await hit(busy, 2)
    assert (await bed.kind())["state"] != "kind-missing"
    await flows(bed.cloud, bed.robot, 2)
    first, second, third, *_ = [r.time for r in watches(link)]
    assert second - first >= 2
    assert third - second >= 2
    assert (await bed.kind())["relists"] == before["relists"]


def bookmark(version: str) -> bytes:
    """The line of a server that has nothing to say."""
    return line("BOOKMARK", {"kind": "Goal", "metadata": {"resourceVersion": version}})


async def revision(side: SideBed) -> str:
    """The cluster's resourceVersion now."""
    version: str = (await side.api.list(side.resource))["metadata"]["resourceVersion"]
    return version


def faults(version: str) -> dict[str, Callable[[Link, str], Injection]]:
    """What may end a watch, by name; each takes a link and the watch's pattern."""

    def answers(status: int, body: bytes | dict[str, Any]) -> Callable[[Link, str], Injection]:
        return lambda link, watch: link.inject(watch, status=status, body=body, times=1)

    return {
        "clean end": answers(200, b""),
        "end after a bookmark": answers(200, bookmark(version)),
        "half a line": answers(200, b'{"type":"ADDED","object":{"metad'),
        "garbage": answers(200, b"<html>captive portal</html>\n"),
        "not an object": answers(200, line("ADDED", {"metadata": {}})),
        "error line": answers(200, line("ERROR", refusal(500, "etcd is away", reason="InternalError"))),
        "closed without an answer": lambda link, watch: link.stall(watch, times=1, hang_up=True),
        **{
            f"HTTP {code}": answers(code, refusal(code, "trouble", reason="Failure"))
            for code in (400, 403, 404, 408, 500, 502, 504)
        },
    }


@pytest.mark.nightly("measures, or counts, what the model shows")
@pytest.mark.fault_39
@pytest.mark.parametrize("side", SIDES)
async def test_S9_2_a_watch_goes_on_from_the_cursor_whatever_ended_it(bed: Bed, side: str):
    kinds = {"goals": (bed.cloud, bed.robot)}
    for plural in ("tasks", "notes", "plans", "works"):  # several at a time, each with its own trouble
        kinds[plural] = await another(bed, plural)
        await until_row(bed, plural, state="syncing")
    for cloud, robot in kinds.values():
        await cloud.create("a", spec={"x": 0})
        await robot.shows("a", spec={"x": 0})
        await flows(cloud, robot, 1)
    before = {plural: await until_row(bed, plural, state="syncing") for plural in kinds}
    link = side_of(bed, side).link
    link.clear()
    waiting = list(faults(await revision(side_of(bed, side))).items())
    step = 1
    while waiting:
        step += 1
        present, waiting = dict(zip(kinds, waiting, strict=False)), waiting[len(kinds) :]
        injections = [fault(link, watch_of(plural)) for plural, (_, fault) in present.items()]
        break_connections(link)
        for injection in injections:
            await hit(injection)
        for plural, (name, _) in present.items():
            await flows(*kinds[plural], step)
            now = await row(bed, plural)
            assert now
            assert now["relists"] == before[plural]["relists"], name
            assert now["resumes"][side] > before[plural]["resumes"][side], name
    for plural in kinds:
        assert lists(link, plural) == []
        assert all("resourceVersion=" in r.query for r in watches(link, plural))


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("side", SIDES)
async def test_S8_2_S9_2_a_proof_that_cannot_be_had_is_asked_for_again_and_nothing_is_listed(bed: Bed, side: str):
    before = await begun(bed)
    link = side_of(bed, side).link
    version = await revision(side_of(bed, side))
    step = 1
    endings = ("clean end", "end after a bookmark", "half a line", "garbage", "closed without an answer")
    for name in (*endings, "HTTP 403", "HTTP 500"):
        fault = faults(version)[name](link, r"/goals\?.*" + REPLAY)
        written = {"metadata": {"annotations": {"written-by-somebody": name}}}  # else there is nothing to be proven
        await side_of(bed, side).api.patch(NAMESPACE.object("default"), written)
        break_connections(link)
        await hit(fault)
        step += 1
        await flows(bed.cloud, bed.robot, step)
        assert (await bed.kind())["relists"] == before["relists"], name
    assert (await bed.agent.status())["holds"] == []


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_39
async def test_S9_2_a_line_cut_in_the_middle_is_not_applied_and_comes_again(bed: Bed):
    before = await begun(bed)
    cut = bed.cloud.link.truncate(WATCH, after_bytes=200)
    break_connections(bed.cloud.link)
    await hit(cut)
    await flows(bed.cloud, bed.robot, 2)
    await flows(bed.cloud, bed.robot, 3)
    assert (await bed.kind())["relists"] == before["relists"]


@pytest.mark.fault_39
async def test_S9_2_a_line_of_ten_megabytes_is_neither_applied_nor_kept_in_memory(bed: Bed):
    before = await begun(bed)
    huge = await bed.cloud.get("a")
    huge["spec"] = {"text": "x" * (10 << 20)}
    body = line("MODIFIED", huge)
    injection = bed.cloud.link.inject(WATCH, status=200, body=body, times=2)
    most = memory(bed.agent.pid, "VmHWM")
    break_connections(bed.cloud.link)
    await hit(injection, 2)
    await flows(bed.cloud, bed.robot, 2)
    assert (await bed.kind())["relists"] == before["relists"]
    grown = memory(bed.agent.pid, "VmHWM") - most
    print(f"{grown:.1f} MiB more at the most, for two lines of 10 MiB")
    assert grown < 24


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("side", SIDES)
async def test_S9_2_410_as_status_or_as_a_line_causes_one_list_of_that_kind_and_side(bed: Bed, side: str):
    cloud_tasks, robot_tasks = await another(bed)
    await until_row(bed, "tasks", state="syncing")
    await cloud_tasks.create("t", spec={"x": 0})
    await robot_tasks.shows("t", spec={"x": 0})
    await begun(bed)
    here, there = side_of(bed, side).link, side_of(bed, "robot" if side == "cloud" else "cloud").link
    as_line = line("ERROR", EXPIRED)
    step = 1
    for fault in (
        lambda: here.inject(WATCH, status=410, body=EXPIRED, times=1),
        lambda: here.inject(WATCH, status=200, body=as_line, times=1),
    ):
        here.clear()
        there.clear()
        tasks = (await row(bed, "tasks") or {})["relists"]
        injection = fault()
        break_connections(here)
        await hit(injection)
        step += 1
        await flows(bed.cloud, bed.robot, step)
        await bed.settled()
        assert len(lists(here)) == 1
        assert lists(there) == []
        assert all("resourceVersion" not in r.query for r in lists(here))
        assert (await row(bed, "tasks") or {})["relists"] == tasks
        assert not any(r.startswith("DELETE") for r in asked(here) + asked(there))


@pytest.mark.nightly("to be shown by the model")
async def test_S9_2_a_server_that_says_410_to_everything_is_not_stormed(bed: Bed):
    await begun(bed)
    link = bed.cloud.link
    expired = link.inject(WATCH, status=410, body=EXPIRED)
    link.clear()
    break_connections(link)
    await hit(expired, 3)
    assert most_in_a_second([r for r in link.requests if full_list(r)]) <= 3
    expired.remove()
    await flows(bed.cloud, bed.robot, 2)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("speaking", [False, True], ids=["silent", "bookmarks"])
async def test_S9_2_a_server_that_keeps_closing_is_asked_a_few_times_a_second_at_most(bed: Bed, speaking: bool):
    await begun(bed)
    link = bed.cloud.link
    closing = link.inject(WATCH, status=200, body=bookmark(await revision(bed.cloud)) if speaking else b"")
    link.clear()
    break_connections(link)
    await hit(closing, 4)
    assert most_in_a_second(watches(link)) <= 4
    assert most_in_a_second(link.requests) <= 16
    assert lists(link) == []
    closing.remove()
    await flows(bed.cloud, bed.robot, 2)
