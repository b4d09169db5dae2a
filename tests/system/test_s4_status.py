"""S4.1 to S4.4: a status goes up once, guarded by uid, and is never blanked; a new copy starts where it was."""

import json
from typing import Any

import pytest

from crsyncer.core.calls import PARTIAL
from tests.system.bed import Bed, SideBed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.roles import answered, decoded, roles, status_writes, touched

BOTH = pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}


async def copied(up: SideBed, down: SideBed, name: str = "a", **fields: Any) -> dict[str, Any]:
    """Create upstream, wait for the copy, and return it."""
    await up.create(name, spec={"x": 1}, **fields)
    return await down.shows(name, spec={"x": 1})


# S4.1 the newest, guarded by uid


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S4_1_a_changed_status_goes_up_and_is_sent_once(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await copied(up, down)
    await down.set_status("a", {"phase": "RUNNING", "steps": [1, 2]})
    await up.shows("a", status={"phase": "RUNNING", "steps": [1, 2]}, spec={"x": 1})
    await touched(bed, down)
    assert len(status_writes(up, "a")) == 1


async def test_S4_1_only_the_newest_value_is_sent_after_a_cut_and_never_an_older_one(bed: Bed) -> None:
    await copied(bed.cloud, bed.robot)
    await bed.robot.set_status("a", {"n": 0})
    await bed.cloud.shows("a", status={"n": 0})
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    history = await bed.cloud.record("a")
    for number in range(1, 30):
        await bed.robot.set_status("a", {"n": number})
    await bed.heard(bed.robot)
    bed.cloud.link.clear()
    bed.cloud.link.restore()
    await bed.cloud.shows("a", status={"n": 29}, seconds=60)
    assert [status["n"] for status in await history.complete()] == [29]
    assert len(status_writes(bed.cloud, "a")) == 1


@pytest.mark.nightly("to be shown by the model")
async def test_S4_1_a_status_that_came_back_to_what_upstream_has_is_not_sent_after_a_cut(bed: Bed) -> None:
    await copied(bed.cloud, bed.robot)
    await bed.robot.set_status("a", {"n": 1})
    await bed.cloud.shows("a", status={"n": 1})
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    history = await bed.cloud.record("a")
    await bed.robot.set_status("a", {"n": 2})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    await bed.robot.set_status("a", {"n": 1})
    await bed.heard(bed.robot)
    bed.cloud.link.restore()
    await touched_after_cut(bed)
    assert [status for status in await history.complete() if status != {"n": 1}] == []
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0)


async def touched_after_cut(bed: Bed) -> None:
    """Wait until the link works again and everything has been carried."""
    await bed.until_side("cloud", "connected")
    await bed.until_kind("syncing")
    await touched(bed, bed.robot)


@pytest.mark.nightly("to be shown by the model")
async def test_S4_1_a_status_that_flips_while_it_is_being_sent_ends_as_downstream_has_it(bed: Bed) -> None:
    await copied(bed.cloud, bed.robot)
    await bed.robot.set_status("a", {"n": 1})
    await bed.cloud.shows("a", status={"n": 1})
    await bed.settled()
    bed.cloud.link.delay(0.7)
    bed.cloud.link.cut()  # the delay counts for new connections
    await bed.until_side("cloud", "offline")
    bed.cloud.link.restore()
    await bed.until_kind("syncing", seconds=60)
    bed.cloud.link.clear()
    await bed.robot.set_status("a", {"n": 2})

    async def asked() -> bool:
        return bool(status_writes(bed.cloud, "a"))

    await eventually(asked, what="the status is on its way")
    await bed.robot.set_status("a", {"n": 1})
    await answered(bed.cloud, "a", 2)
    await bed.cloud.shows("a", status={"n": 1})
    await bed.settled()
    assert (await bed.cloud.get("a"))["status"] == {"n": 1}


@BOTH
async def test_S4_1_a_status_cannot_land_on_a_re_created_object(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await copied(up, down)
    await bed.settled()
    stall = up.link.stall("/goals/a", method="PATCH")
    await down.set_status("a", {"phase": "OLD"})

    async def asked() -> bool:
        return stall.count > 0

    await eventually(asked, what="the old status is on its way")
    history = await up.record("a")
    await up.delete("a")
    await up.create("a", spec={"x": 2})
    stall.remove()
    await down.shows("a", spec={"x": 2}, status=None)
    await down.set_status("a", {"phase": "NEW"})
    await up.shows("a", status={"phase": "NEW"})
    assert [s for s in await history.complete() if s not in (None, {"phase": "NEW"})] == []


# S4.2 on the wire


@BOTH
@pytest.mark.parametrize(
    "subresource", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["subresource", "main"]
)
async def test_S4_2_it_is_a_json_patch_that_first_tests_the_uid(
    make_bed: MakeBed, source: str, subresource: bool
) -> None:
    bed = await make_bed(source=source, status=subresource)
    up, down = roles(bed, source)
    await copied(up, down)
    uid = (await up.get("a"))["metadata"]["uid"]
    await down.set_status("a", {"phase": "DONE"})
    (request,) = await answered(up, "a")
    path = up.resource.path(namespace="default", name="a", subresource="status" if subresource else "")
    assert (request.method, request.path) == ("PATCH", path)
    assert request.headers["content-type"] == "application/json-patch+json"
    assert request.headers["accept"] == PARTIAL
    operations = decoded(request)
    assert operations[0] == {"op": "test", "path": "/metadata/uid", "value": uid}
    assert [op["path"] for op in operations[1:]] == ["/status"]
    assert request.status == 200
    assert request.bytes_out < 2_000


async def test_S4_2_where_patch_is_refused_a_put_of_the_bare_status_is_made_and_remembered(bed: Bed) -> None:
    refusal = bed.cloud.link.inject("/goals/", method="PATCH", status=403, body=FORBIDDEN)
    await copied(bed.cloud, bed.robot, labels={"zone": "b"})
    upstream = await bed.cloud.get("a")
    await bed.robot.set_status("a", {"phase": "ONE"})
    await bed.cloud.shows("a", status={"phase": "ONE"}, spec={"x": 1})
    assert refusal.count == 1
    put = status_writes(bed.cloud, "a")[-1]
    identity = {key: upstream["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    assert put.path.endswith("/a/status")
    assert decoded(put) == {
        "apiVersion": upstream["apiVersion"],
        "kind": "Goal",
        "metadata": identity,
        "status": {"phase": "ONE"},
    }
    await bed.robot.set_status("a", {"phase": "TWO"})
    await bed.cloud.shows("a", status={"phase": "TWO"})
    await bed.robot.set_status("a", None)
    await bed.cloud.shows("a", status=None, spec={"x": 1})
    async with bed.stopped():
        await bed.robot.set_status("a", {"phase": "THREE"})
    await bed.cloud.shows("a", status={"phase": "THREE"})
    assert refusal.count == 1
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.nightly("to be shown by the model")
async def test_S4_2_the_put_is_guarded_like_the_patch_and_made_anew_after_a_conflict(bed: Bed) -> None:
    bed.cloud.link.inject("/goals/", method="PATCH", status=403, body=FORBIDDEN)
    await copied(bed.cloud, bed.robot)
    await bed.robot.set_status("a", {"n": 1})
    await bed.cloud.shows("a", status={"n": 1})
    await bed.settled()
    stall = bed.cloud.link.stall("/goals/a", method="PUT")
    await bed.robot.set_status("a", {"n": 2})

    async def asked() -> bool:
        return stall.count > 0

    await eventually(asked, what="the put is on its way")
    await bed.cloud.patch("a", {"spec": {"x": 2}, "metadata": {"labels": {"new": "1"}}})
    stall.remove()
    await bed.cloud.shows("a", status={"n": 2}, spec={"x": 2})
    await bed.robot.shows("a", status={"n": 2}, spec={"x": 2})


@pytest.mark.nightly("to be shown by the model")
async def test_S4_2_a_put_without_the_subresource_carries_the_whole_object(make_bed: MakeBed) -> None:
    bed = await make_bed(status=False)
    bed.cloud.link.inject("/goals/", method="PATCH", status=403, body=FORBIDDEN)
    await copied(bed.cloud, bed.robot, data={"k": "v"}, labels={"zone": "b"}, annotations={"note": "kept"})
    for number in range(3):
        await bed.robot.set_status("a", {"n": number})
        upstream = await bed.cloud.shows("a", status={"n": number}, spec={"x": 1}, data={"k": "v"})
    assert upstream["metadata"]["labels"] == {"zone": "b"}
    assert upstream["metadata"]["annotations"] == {"note": "kept"}


# S4.3 never blanked, removed only where it was


@pytest.mark.nightly("to be shown by the model")
@BOTH
@pytest.mark.parametrize(
    "subresource", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["subresource", "main"]
)
@pytest.mark.parametrize("subtree", [None, "robot"], ids=["whole", "subtree"])
async def test_S4_3_a_status_from_before_the_first_sync_is_never_replaced_by_nothing(
    make_bed: MakeBed, source: str, subresource: bool, subtree: str | None
) -> None:
    bed = await make_bed(source=source, status=subresource, subtree=subtree, start=False)
    up, down = roles(bed, source)
    before = {"robot": {"phase": "DONE"}, "cloud": {"since": 1}}
    await up.create("a", spec={"x": 1})
    await up.set_status("a", before)
    # A predecessor's copy, without our annotations and without a status, or with an empty one.
    if source == "cloud":
        for name, empty in (("bare", None), ("empty", {})):
            await up.create(name, spec={"x": 1})
            await up.set_status(name, before)
            await down.create(name, spec={"x": 0}, **({} if subresource or empty is None else {"status": empty}))
            if subresource and empty is not None:
                await down.set_status(name, empty)
    histories = [await up.record(name) for name in ("a", "bare", "empty")]
    await bed.start()
    await down.shows("a", spec={"x": 1})

    async def seeded() -> bool:
        status = (await down.get("a")).get("status") or {}
        return status.get("robot") == before["robot"]

    await eventually(seeded, what="the created copy has upstream's status (S4.4)")
    await up.patch("a", {"spec": {"x": 2}})
    await down.shows("a", spec={"x": 2})
    assert await seeded()
    if source == "cloud":
        await down.shows("bare", spec={"x": 1})
        await down.shows("empty", spec={"x": 1})
    await touched(bed, up)
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await bed.settled()
    for history in histories:
        assert [status for status in await history.complete() if status != before] == []
    assert [w for w in writes(up.link) if "/goals/" in w] == []


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("subtree", [None, "robot"], ids=["whole", "subtree"])
async def test_S4_3_an_adopted_copy_keeps_its_status_and_sends_it(make_bed: MakeBed, subtree: str | None) -> None:
    bed = await make_bed(subtree=subtree, start=False)
    await bed.robot.create("a", spec={"x": 0}, labels={"theirs": "1"})
    copy = await bed.robot.set_status("a", {"robot": {"n": 5}})
    await bed.cloud.create("a", spec={"x": 1})
    await bed.cloud.set_status("a", {"robot": {"n": 4}, "cloud": {"m": 1}})
    history = await bed.robot.record("a")
    await bed.start()
    adopted = await bed.robot.shows("a", spec={"x": 1}, status={"robot": {"n": 5}})
    assert adopted["metadata"]["uid"] == copy["metadata"]["uid"]
    assert adopted["metadata"]["labels"] == {"theirs": "1"}
    await bed.cloud.shows("a", status={"robot": {"n": 5}, **({"cloud": {"m": 1}} if subtree else {})})
    assert {json.dumps(status) for status in await history.complete()} == {'{"robot": {"n": 5}}'}


@BOTH
@pytest.mark.parametrize(
    "subresource", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["subresource", "main"]
)
async def test_S4_3_a_status_that_was_there_and_is_gone_is_removed_upstream(
    make_bed: MakeBed, source: str, subresource: bool
) -> None:
    bed = await make_bed(source=source, status=subresource)
    up, down = roles(bed, source)
    for name in ("a", "b"):
        await copied(up, down, name)
        await down.set_status(name, {"phase": "DONE"})
        await up.shows(name, status={"phase": "DONE"})
    await down.set_status("a", None)
    await up.shows("a", status=None, spec={"x": 1})
    async with bed.stopped():
        await down.set_status("b", None)  # also what happens while nobody looks
    await up.shows("b", status=None, spec={"x": 1})
    await down.set_status("a", {"phase": "AGAIN"})
    await up.shows("a", status={"phase": "AGAIN"})


# S4.4 seeding


@BOTH
@pytest.mark.parametrize(
    "subresource", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["subresource", "main"]
)
async def test_S4_4_a_created_copy_gets_upstreams_status_once(
    make_bed: MakeBed, source: str, subresource: bool
) -> None:
    bed = await make_bed(source=source, status=subresource)
    up, down = roles(bed, source)
    await copied(up, down)
    await down.set_status("a", {"n": 1})
    await up.shows("a", status={"n": 1})
    await bed.settled()
    up.link.clear()
    await down.delete("a")  # the robot is re-installed
    await down.shows("a", status={"n": 1})
    await bed.settled()
    assert status_writes(up, "a") == []
    await up.set_status("a", {"n": 99})  # from then on downstream owns it
    await touched(bed, up)
    assert (await down.get("a"))["status"] == {"n": 1}
    await down.set_status("a", {"n": 2})
    await up.shows("a", status={"n": 2})


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S4_4_no_seed_follows_later_when_upstream_gets_a_status(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await copied(up, down)
    await up.set_status("a", {"by": "upstream"})
    await touched(bed, up)
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await bed.settled()
    assert "status" not in await down.get("a")
    assert (await up.get("a"))["status"] == {"by": "upstream"}


@pytest.mark.nightly("to be shown by the model")
async def test_S4_4_a_controller_that_writes_first_wins_over_the_seed(make_bed: MakeBed) -> None:
    bed = await make_bed(start=False)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.cloud.set_status("a", {"n": "old"})
    stall = bed.robot.link.stall("/goals/a/status", method="PUT")
    history = await bed.robot.record("a")
    await bed.start()

    async def seeding() -> bool:
        return stall.count > 0

    await eventually(seeding, what="the seed is on its way")
    await bed.robot.set_status("a", {"n": "new"})
    stall.remove()
    await bed.cloud.shows("a", status={"n": "new"})
    await bed.settled()
    assert {"n": "old"} not in await history.complete()
    await bed.robot.set_status("a", None)
    await bed.cloud.shows("a", status=None)
    await bed.cloud.set_status("a", {"by": "upstream"})
    await touched(bed, bed.cloud)
    assert "status" not in await bed.robot.get("a")


@pytest.mark.nightly("to be shown by the model")
async def test_S4_4_a_seed_that_is_interrupted_by_a_crash_is_still_given(make_bed: MakeBed) -> None:
    bed = await make_bed(start=False)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.cloud.set_status("a", {"n": "old"})
    stall = bed.robot.link.stall("/goals/a/status", method="PUT")
    await bed.start()

    async def seeding() -> bool:
        return stall.count > 0

    await eventually(seeding, what="the seed is on its way")
    async with bed.stopped(kill=True):
        stall.remove()
    await bed.robot.shows("a", status={"n": "old"})
    assert (await bed.cloud.get("a"))["status"] == {"n": "old"}
