"""S8: clusters that go back in time, and clusters that are not the ones they were."""

import asyncio
from pathlib import Path

import pytest

from crsyncer.sandbox.resource import NAMESPACE
from tests import planes
from tests.system.asked import lists, watches
from tests.system.bed import Bed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.kinds import another, asked, until_row
from tests.system.travel import FORBIDDEN, KUBE_SYSTEM_PATH, SLOW, another_cluster, identity, reconnect

KUBE_SYSTEM = NAMESPACE.object("kube-system")


async def test_S8_1_a_sides_identity_is_the_uid_of_kube_system(bed: Bed):
    for name, side in (("cloud", bed.cloud), ("robot", bed.robot)):
        uid = (await side.api.get(KUBE_SYSTEM))["metadata"]["uid"]
        assert uid in await identity(bed, name)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("status", [403, 404])
async def test_S8_1_where_nothing_can_be_read_server_and_authority_tell_clusters_apart(make_bed: MakeBed, status: int):
    bed = await make_bed(start=False)
    for path in (KUBE_SYSTEM_PATH, "^/apis/apiextensions.k8s.io/"):
        bed.cloud.link.inject(path, status=status, body=FORBIDDEN | {"code": status})
    await bed.start()
    known = await identity(bed)
    assert known
    assert known != await identity(bed, "robot")
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    assert await identity(bed) == known
    assert (await bed.kind())["relists"] == {"cloud": 0, "robot": 0}


@pytest.mark.nightly("to be shown by the model")
async def test_S8_1_a_right_that_comes_or_goes_is_no_other_cluster(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    gone = bed.cloud.link.inject(KUBE_SYSTEM_PATH, status=403, body=FORBIDDEN)
    for step in (2, 3):
        reconnect(bed.cloud.link)
        await bed.cloud.patch("a", {"spec": {"x": step}})
        await bed.robot.shows("a", spec={"x": step}, seconds=SLOW)
        gone.remove()
    assert (await bed.agent.status())["holds"] == []


async def test_S8_2_a_cheap_consistent_list_precedes_every_resume(bed: Bed):
    await another(bed)
    await until_row(bed, "tasks", state="syncing")
    await bed.cloud.create("a", spec={"x": 1})
    await bed.settled()
    for change in ("restart", "reconnect"):
        bed.cloud.link.clear()
        if change == "restart":
            async with bed.stopped():
                bed.cloud.link.clear()
        else:
            reconnect(bed.cloud.link)

        async def both_watched() -> bool:
            return all(any(r.status == 200 for r in watches(bed.cloud.link, plural)) for plural in ("goals", "tasks"))

        await eventually(both_watched, seconds=SLOW, what=f"both kinds are watched after a {change}")
        requests = [r for r in bed.cloud.link.requests if r.path.endswith(("/goals", "/tasks"))]
        first_watch = next(i for i, r in enumerate(requests) if "watch=true" in r.query)
        probes = [r for r in requests[:first_watch] if "limit=1" in r.query.split("&")]
        assert probes, [r.target for r in requests]
        assert all("resourceVersion" not in r.query for r in probes)
        assert all(r.bytes_out < 1000 for r in probes)
        assert lists(bed.cloud.link) == []


@pytest.mark.nightly("to be shown by the model")
async def test_S8_2_a_watch_that_a_server_ended_early_is_not_resumed_unseen_either(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.settled()
    link = bed.cloud.link
    link.inject(r"/goals\?(.*&)?allowWatchBookmarks=true", status=200, body=b"", times=1)
    link.clear()
    reconnect(link)

    async def watched_again() -> bool:
        return len([r for r in watches(link) if r.status == 200]) >= 2

    await eventually(watched_again, seconds=SLOW, what="a watch that ended at once is followed by another")
    first, second, *_ = [link.requests.index(r) for r in watches(link)]
    assert any("limit=1" in r.query.split("&") for r in link.requests[first:second])
    assert lists(link) == []


@pytest.mark.fault_19
@pytest.mark.parametrize(
    "running", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["running", "stopped"]
)
async def test_S8_3_a_restored_cloud_gets_lost_statuses_again_and_costs_no_copy(
    bed: Bed, tmp_path: Path, running: bool
):
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    snapshot = tmp_path / "snapshot"
    await asyncio.to_thread(planes.snapshot, bed.cloud.plane, snapshot)
    await bed.cloud.create("later", spec={"x": 1})
    await bed.robot.shows("later", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.robot.set_status("b", {"phase": "DONE"})
    for name in ("a", "b"):
        await bed.cloud.shows(name, status={"phase": "DONE"})
    await bed.cloud.patch("b", {"spec": {"x": 2}})
    await bed.robot.shows("b", spec={"x": 2})
    await bed.settled()
    if running:
        await asyncio.to_thread(planes.restore, bed.cloud.plane, snapshot)
    else:
        async with bed.stopped():
            await asyncio.to_thread(planes.restore, bed.cloud.plane, snapshot)
    for name in ("a", "b"):
        await bed.cloud.shows(name, status={"phase": "DONE"}, seconds=90)
    await bed.robot.shows("b", spec={"x": 1})
    await bed.cloud.create("new", spec={"x": 1})
    await bed.robot.shows("new", spec={"x": 1})
    status = await bed.agent.until(lambda status: bool(status["holds"]))
    assert [(h["reason"], h["resource"], h["objects"]) for h in status["holds"]] == [("Restored", bed.resource, 1)]
    assert await bed.robot.names() == {"a", "b", "later", "new"}
    async with bed.stopped():
        pass
    status = await bed.agent.until(lambda status: bool(status["holds"]))
    assert [h["reason"] for h in status["holds"]] == ["Restored"]
    assert (await bed.agent.crsyncer("status"))[0] == 12
    await bed.cloud.create("later", spec={"x": 3})  # another object: its copy would be replaced, so that is held too
    await bed.cloud.create("newer", spec={"x": 1})
    await bed.robot.shows("newer", spec={"x": 1})
    assert (await bed.robot.get("later"))["spec"] == {"x": 1}
    assert not any(w.startswith("DELETE") for w in writes(bed.robot.link))


async def test_S8_3_another_cluster_is_left_alone_as_if_the_link_were_cut(bed: Bed):
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.settled()
    other = another_cluster(bed.cloud.link)
    reconnect(bed.cloud.link)
    await bed.until_side("cloud", "identity-changed")
    bed.cloud.link.clear()
    await bed.cloud.create("theirs", spec={"x": 1})
    await bed.cloud.patch("a", {"spec": {"x": 9}})
    await bed.cloud.delete("b")
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    await bed.robot.delete("b")
    await bed.robot.shows("b", spec={"x": 1})  # what was last known is enforced (S7.1)
    await bed.robot.patch("a", {"spec": {"x": 5}})
    await bed.robot.shows("a", spec={"x": 1})
    assert await bed.robot.names() == {"a", "b"}
    assert writes(bed.cloud.link) == []
    assert not any("watch=true" in request for request in asked(bed.cloud.link))
    assert lists(bed.cloud.link) == []
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 12
    assert "crsyncer holds release" in " ".join(screen.split())
    document = await bed.agent.status()
    assert document["health"] == "attention"
    assert [reason["code"] for reason in document["reasons"]].count("IdentityChanged") == 1
    assert [hold["reason"] for hold in document["holds"]] == ["IdentityChanged"]
    async with bed.stopped():
        pass
    await bed.until_side("cloud", "identity-changed")
    other.remove()
    await bed.until_side("cloud", "connected", seconds=90)
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.robot.shows("a", spec={"x": 9})
    await bed.robot.shows("theirs", spec={"x": 1})
    await bed.robot.gone("b")
