"""S8: clusters that go back in time, and clusters that are not the ones they were."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crsyncer.sandbox.resource import NAMESPACE
from tests import planes
from tests.system.bed import Bed
from tests.system.commands import until_held
from tests.system.travel import another_cluster, identity, reconnect

KUBE_SYSTEM = NAMESPACE.object("kube-system")


async def test_S8_1_a_sides_identity_is_the_uid_of_kube_system(bed: Bed):
    for name, side in (("cloud", bed.cloud), ("robot", bed.robot)):
        uid = (await side.api.get(KUBE_SYSTEM))["metadata"]["uid"]
        assert uid in await identity(bed, name)


def said(status: dict[str, Any]) -> bool:
    """Whether a human is asked about another cluster, once."""
    codes = [reason["code"] for reason in status["reasons"]]
    holds = [hold["reason"] for hold in status["holds"]]
    return (status["health"], codes.count("IdentityChanged"), holds) == ("attention", 1, ["IdentityChanged"])


@pytest.mark.fault_19
async def test_S8_3_a_restored_cloud_gets_lost_statuses_again_and_costs_no_copy(bed: Bed, tmp_path: Path):
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
    await asyncio.to_thread(planes.restore, bed.cloud.plane, snapshot)
    for name in ("a", "b"):
        await bed.cloud.shows(name, status={"phase": "DONE"}, seconds=90)
    await bed.robot.shows("b", spec={"x": 1})
    await bed.cloud.create("new", spec={"x": 1})
    await bed.robot.shows("new", spec={"x": 1})
    await until_held(bed, 1, "Restored")
    assert await bed.robot.names() == {"a", "b", "later", "new"}


async def test_S8_3_another_cluster_is_left_alone_and_what_was_last_known_is_enforced(bed: Bed):
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.settled()
    other = another_cluster(bed.cloud.link)
    reconnect(bed.cloud.link)
    await bed.until_side("cloud", "identity-changed")
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
    await bed.agent.until(said)
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 12
    assert "crsyncer holds release" in " ".join(screen.split())
    async with bed.stopped():
        pass
    await bed.until_side("cloud", "identity-changed")
    other.remove()
    await bed.until_side("cloud", "connected", seconds=90)
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.robot.shows("a", spec={"x": 9})
    await bed.robot.shows("theirs", spec={"x": 1})
    await bed.robot.gone("b")
