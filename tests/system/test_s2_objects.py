"""S2: which objects are synced, how they are asked for, and how little the agent needs to be allowed in the cloud."""

import re
import shutil
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.api import Api
from tests.link.faults import Request
from tests.system.asked import status_writes
from tests.system.bed import LABEL, OURS, ROBOT, Bed, SideBed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.kinds import account, account_name, another, asked, rules, until_row

MINE = {LABEL: ROBOT}
OTHER = {LABEL: "robot-2"}
SELECTOR = f"{LABEL}={ROBOT}"
UPSTREAM_UID = OURS + "upstream-uid"
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"


def foreign(request: Request) -> bool:
    """Whether a gateway for robots would refuse a request: all but a selected list or watch, and object requests."""
    if re.fullmatch(r"/apis/[^/]+/v1/goals", request.path):
        query = parse_qs(request.query)
        return query.get("labelSelector") != [SELECTOR] or "fieldSelector" in query
    return re.fullmatch(r"/apis/[^/]+/v1/namespaces/default/goals/[^/]+/status", request.path) is None


async def works(bed: Bed) -> None:
    """Specs go down, statuses up, changes and deletions too."""
    await bed.cloud.create("a", spec={"x": 1}, labels=MINE)
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.cloud.delete("a")
    await bed.robot.gone("a", seconds=30)
    assert not any(w.startswith("DELETE") for w in writes(bed.cloud.link))


@pytest.mark.nightly("to be shown by the model")
async def test_S2_1_unfiltered_is_every_object_whatever_its_label(bed: Bed):
    for name, labels in (("plain", {}), ("mine", MINE), ("other", OTHER)):
        await bed.cloud.create(name, spec={"x": 1}, labels=labels)
    for name in ("plain", "mine", "other"):
        await bed.robot.shows(name, spec={"x": 1})
    requests = asked(bed.robot.link) + [r for r in asked(bed.cloud.link) if "limit=1" not in r.split("&")]
    assert not any("robot-name" in request for request in requests)


@pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
async def test_S2_1_filtered_lists_and_watches_carry_the_one_selector_on_both_sides(make_bed: MakeBed, source: str):
    bed = await make_bed(filtered="true", source=source)
    up, down = (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)
    await up.create("a", spec={"x": 1}, labels=MINE)
    await down.shows("a", spec={"x": 1})
    await down.set_status("a", {"done": True})
    await up.shows("a", status={"done": True})
    async with bed.stopped():
        await up.patch("a", {"spec": {"x": 2}})
    await down.shows("a", spec={"x": 2})
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    bed.cloud.link.restore()
    await bed.settled()
    for side in (bed.cloud, bed.robot):
        collection = [r for r in side.link.requests if r.path.endswith("/goals") and r.method == "GET"]
        assert any("watch=" in r.query for r in collection)
        assert any("watch=" not in r.query for r in collection)
        for request in collection:
            query = parse_qs(request.query)
            assert query["labelSelector"] == [SELECTOR], request.target
            assert "fieldSelector" not in query
    by_name = re.compile(r"/namespaces/[^/]+(/[^/]+/[^/]+)?$")
    named = {r.path for r in bed.cloud.link.requests if r.method == "GET" and by_name.search(r.path)}
    assert named <= {KUBE_SYSTEM}


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("status", [400, 403, 404])
async def test_S2_1_a_gateway_that_refuses_all_but_that_one_form_is_enough(make_bed: MakeBed, status: int):
    bed = await make_bed(filtered="true", start=False)
    bed.cloud.link.inject("", status=status, body=b"not for robots\n", when=foreign)
    await bed.start()
    await works(bed)
    await bed.agent.until(lambda status: status["health"] == "healthy")
    async with bed.stopped():
        await bed.cloud.create("b", spec={"x": 1}, labels=MINE)
    await bed.robot.shows("b", spec={"x": 1})
    assert (await bed.kind())["relists"]["cloud"] == 0


async def test_S2_1_list_watch_and_patch_of_status_are_all_rights_that_the_cloud_must_grant(
    make_bed: MakeBed, cloud_api: Api, group: str
):
    token = await account(cloud_api, account_name(group), rules(group, "patch"))
    bed = await make_bed(filtered="true", cloud_token=token)
    await works(bed)
    await bed.agent.until(lambda status: status["health"] == "healthy")
    assert {r.method for r in status_writes(bed.cloud.link)} == {"PATCH"}


async def test_S2_1_update_of_status_in_place_of_patch_will_do_and_is_remembered(
    make_bed: MakeBed, cloud_api: Api, group: str
):
    token = await account(cloud_api, account_name(group), rules(group, "update"))
    bed = await make_bed(filtered="true", cloud_token=token)
    await works(bed)
    await bed.agent.until(lambda status: status["health"] == "healthy")
    methods = [r.method for r in status_writes(bed.cloud.link)]
    assert methods.count("PATCH") == 1
    bed.cloud.link.clear()
    async with bed.stopped():
        pass
    await works(bed)
    assert {r.method for r in status_writes(bed.cloud.link)} == {"PUT"}
    cloud_tasks, robot_tasks = await another(bed)  # the choice is each kind's own
    await cloud_tasks.create("t")
    await robot_tasks.shows("t")
    await robot_tasks.set_status("t", {"done": True})
    await cloud_tasks.shows("t", status={"done": True})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
async def test_S2_2_a_filtered_object_without_our_label_is_not_synced(make_bed: MakeBed, source: str):
    bed = await make_bed(filtered="true", source=source)
    up, down = (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)
    await up.create("plain", spec={"x": 1})
    await up.create("other", spec={"x": 1}, labels=OTHER)
    await up.create("longer", spec={"x": 1}, labels={LABEL: f"{ROBOT}0"})
    await up.create("mine", spec={"x": 1}, labels=MINE)
    await down.shows("mine", spec={"x": 1})
    await bed.settled()
    assert await down.names() == {"mine"}
    assert (await bed.kind())["objects"] == {"cloud": 1, "robot": 1}


@pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
@pytest.mark.fault_27
async def test_S2_2_an_object_that_loses_or_changes_its_label_is_deleted_downstream(make_bed: MakeBed, source: str):
    bed = await make_bed(filtered="true", source=source)
    up, down = (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)
    for name in ("stays", "loses", "changes", "meanwhile"):
        await up.create(name, spec={"x": 1}, labels=MINE)
        await down.shows(name)
    await up.patch("loses", {"metadata": {"labels": {LABEL: None}}})
    await up.patch("changes", {"metadata": {"labels": OTHER}})
    await down.gone("loses")
    await down.gone("changes")
    async with bed.stopped():
        await up.patch("meanwhile", {"metadata": {"labels": OTHER}})
    await down.gone("meanwhile")
    assert await down.names() == {"stays"}
    assert await up.names() == {"stays", "loses", "changes", "meanwhile"}
    await up.patch("changes", {"metadata": {"labels": MINE}})
    await down.shows("changes", spec={"x": 1})


async def held(bed: Bed, reason: str) -> dict[str, Any]:
    """Wait for a hold of the kind under test."""
    status = await bed.agent.until(
        lambda status: any(h["reason"] == reason and h["resource"] == bed.resource for h in status["holds"])
    )
    return next(h for h in status["holds"] if h["reason"] == reason)


async def unchanged(side: SideBed, before: dict[str, Any]) -> None:
    """An object is as it was, to the resourceVersion."""
    assert await side.get(before["metadata"]["name"]) == before


@pytest.mark.nightly("to be shown by the model")
async def test_S2_3_local_objects_of_a_filtered_kind_are_never_touched(make_bed: MakeBed):
    bed = await make_bed(filtered="true", start=False)
    plain = await bed.robot.create("plain", spec={"local": True})
    other = await bed.robot.create("other", spec={"local": True}, labels=OTHER)
    await bed.start()
    later = await bed.robot.create("later", spec={"local": True})
    await bed.cloud.create("mine", labels=MINE)
    await bed.robot.shows("mine")
    await bed.cloud.delete("mine")
    await bed.robot.gone("mine")
    for local in (plain, other, later):
        await unchanged(bed.robot, local)


async def test_S2_3_a_local_object_of_the_same_name_is_left_alone_and_reported_until_it_is_gone(make_bed: MakeBed):
    bed = await make_bed(filtered="true")
    local = await bed.robot.create("a", spec={"local": True})
    await bed.cloud.create("a", spec={"x": 1}, labels=MINE)
    hold = await held(bed, "NameTaken")
    assert hold["objects"] == 1
    assert hold["hint"]
    await bed.cloud.create("b", spec={"x": 1}, labels=MINE)
    await bed.robot.shows("b", spec={"x": 1})
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.cloud.create("c", spec={"x": 1}, labels=MINE)
    await bed.robot.shows("c", spec={"x": 1})
    await unchanged(bed.robot, local)
    document = await bed.agent.status()
    assert document["health"] == "attention"
    assert any(reason["code"] == "NameTaken" for reason in document["reasons"])
    await bed.robot.delete("a")
    await bed.robot.shows("a", spec={"x": 2}, seconds=40)
    await bed.agent.until(lambda status: status["holds"] == [])


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("labels", [{LABEL: None}, OTHER], ids=["stripped", "changed"])
async def test_S2_3_a_copy_whose_label_is_taken_away_gets_it_back(make_bed: MakeBed, labels: dict[str, Any]):
    bed = await make_bed(filtered="true")
    await bed.cloud.create("a", spec={"x": 1}, labels=MINE)
    copy = await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.robot.patch("a", {"metadata": {"labels": labels}, "spec": {"x": 7}})
    again = await bed.robot.shows("a", spec={"x": 1}, status={"phase": "RUNNING"})
    assert again["metadata"]["labels"] == MINE
    assert again["metadata"]["uid"] == copy["metadata"]["uid"]
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    assert (await bed.agent.status())["holds"] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S2_3_a_copy_without_its_label_makes_way_for_an_upstream_object_that_was_created_anew(
    make_bed: MakeBed,
):
    bed = await make_bed(filtered="true")
    await bed.cloud.create("a", spec={"x": 1}, labels=MINE)
    old = await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "OLD"})
    await bed.cloud.shows("a", status={"phase": "OLD"})
    async with bed.stopped():
        await bed.robot.patch("a", {"metadata": {"labels": {LABEL: None}}})
        await bed.cloud.delete("a")
        made = await bed.cloud.create("a", spec={"x": 2}, labels=MINE)
        shutil.rmtree(bed.agent.state_dir)  # whoever remembers the copy need not look for it
        history = await bed.cloud.record("a")

    async def new() -> bool:
        found = await bed.robot.find("a")
        return bool(found and found["metadata"]["annotations"][UPSTREAM_UID] == made["metadata"]["uid"])

    await eventually(new, what="a copy of the new object")
    copy = await bed.robot.shows("a", spec={"x": 2}, status=None)
    assert copy["metadata"]["labels"] == MINE
    assert copy["metadata"]["uid"] != old["metadata"]["uid"]
    await bed.settled()
    assert [status for status in await history.complete() if status] == []


async def test_S2_3_in_the_cloud_a_taken_name_is_reported_and_never_read(make_bed: MakeBed):
    bed = await make_bed(filtered="true", source="robot")
    theirs = await bed.cloud.create("a", spec={"theirs": True}, labels=OTHER)
    await bed.robot.create("a", spec={"x": 1}, labels=MINE)
    await held(bed, "NameTaken")
    await bed.robot.create("b", spec={"x": 1}, labels=MINE)
    await bed.cloud.shows("b", spec={"x": 1})
    await unchanged(bed.cloud, theirs)
    assert not any(r.startswith("GET") and "/goals/" in r for r in asked(bed.cloud.link))
    await until_row(bed, held=1)
