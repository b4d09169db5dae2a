"""Kinds as fleets have them, all at once: our examples, and the Go cr-syncer's real CRDs, unchanged."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crsyncer.sandbox.agent_process import AgentProcess
from tests.api import Api
from tests.link.link import Link
from tests.system.bed import LABEL, ROBOT, eventually, writes
from tests.system.fleet import EXAMPLES, PREDECESSORS, Fleet, Kind, crds, kinds

UID = "crsyncer.cloudrobotics.com/upstream-uid"


@pytest.fixture(params=[EXAMPLES, PREDECESSORS], ids=["examples", "predecessors"])
async def fleet(
    request: pytest.FixtureRequest,
    cloud_api: Api,
    robot_api: Api,
    cloud_link: Link,
    robot_link: Link,
    tmp_path: Path,
) -> AsyncIterator[Fleet]:
    """Every kind of a set on both planes; the agent is not started yet."""
    found = crds(request.param)
    if not found:
        pytest.skip(f"the real CRDs are not on this machine: {request.param}")
    agent = AgentProcess(
        tmp_path,
        cloud_kubeconfig=cloud_link.kubeconfig(tmp_path / "cloud.yaml"),
        robot_kubeconfig=robot_link.kubeconfig(tmp_path / "robot.yaml"),
        robot_name=ROBOT,
    )
    try:
        for api in (cloud_api, robot_api):
            for crd in found:
                await api.apply_crd(crd)
        bound = kinds(found, cloud=cloud_api, robot=robot_api, cloud_link=cloud_link, robot_link=robot_link)
        yield Fleet(list(bound), agent, cloud_link, robot_link)
    finally:
        await agent.kill()
        for api in (cloud_api, robot_api):
            await api.remove_crds(*found)


async def settled(fleet: Fleet) -> None:
    """Wait until a marker of each kind, created last, has made its way, and nothing is pending."""
    for kind in fleet.kinds:
        name = f"marker-{secrets.token_hex(4)}"
        await kind.cloud.create(name, spec=kind.sample.spec, labels=kind.label)
        await kind.robot.shows(name)
    await fleet.agent.until(lambda status: all(not any(kind["pending"].values()) for kind in status["kinds"]))


async def in_step(kind: Kind, name: str) -> None:
    """Wait until both sides show the same content, and the same status where the robot owns all of it."""

    async def check() -> bool:
        up, copy = await kind.cloud.get(name), await kind.robot.find(name)
        if copy is None or copy["spec"] != up["spec"]:
            return False
        subtree = kind.annotations.get("status-subtree")
        statuses = [obj.get("status") or {} for obj in (up, copy)]
        return statuses[0] == statuses[1] if subtree is None else statuses[0].get(subtree) == statuses[1].get(subtree)

    await eventually(check, what=f"{kind.name} {name} is in step")


async def stamped(kind: Kind, name: str) -> None:
    """Wait until a copy says whose it is."""

    async def check() -> bool:
        return UID in ((await kind.robot.get(name))["metadata"].get("annotations") or {})

    await eventually(check, what=f"{kind.name} {name} is stamped")


async def test_S1_every_kind_is_read_as_its_annotations_say(fleet: Fleet) -> None:
    rows = {row["resource"]: row for row in (await fleet.start())["kinds"]}
    for kind in fleet.kinds:
        row = rows[kind.name]
        assert row["filterByRobotName"] is kind.filtered
        assert row["statusSubtree"] == kind.annotations.get("status-subtree")
        assert row["specSource"] == "cloud"
        assert row["scope"] == kind.crd["spec"]["scope"]
    assert {row["scope"] for row in rows.values()} == {"Namespaced", "Cluster"}
    assert len(rows) == 5


async def test_S3_S4_specs_go_down_statuses_come_up_and_nothing_else_moves(fleet: Fleet) -> None:
    await fleet.start()
    for kind in fleet.kinds:
        await kind.cloud.create("a", spec=kind.sample.spec, labels=kind.label)
        if kind.filtered:
            await kind.cloud.create("b", spec=kind.sample.spec, labels={LABEL: "another"})
    for kind in fleet.kinds:
        made = await kind.cloud.get("a")
        copy = await kind.robot.shows("a", spec=made["spec"])
        assert copy["metadata"]["annotations"][UID] == made["metadata"]["uid"]
        for status in kind.sample.statuses:
            await kind.robot.set_status("a", status)
            await in_step(kind, "a")
            assert (await kind.cloud.get("a"))["status"]
    for kind in fleet.kinds:
        await kind.cloud.patch("a", {"spec": kind.sample.change})
        await in_step(kind, "a")
        await kind.robot.patch("a", {"metadata": {"labels": {"theirs": "1"}}, "spec": kind.sample.spec})
        await in_step(kind, "a")
        assert await kind.robot.find("b") is None
    await settled(fleet)
    for link in (fleet.cloud_link, fleet.robot_link):
        link.clear()
    await fleet.agent.stop()
    await fleet.start()
    await settled(fleet)
    for kind in fleet.kinds:
        await in_step(kind, "a")
    touched = [
        w for link in (fleet.cloud_link, fleet.robot_link) for w in writes(link) if "/a" in w[-len("/a/status") :]
    ]
    assert touched == []
    for kind in fleet.kinds:
        await kind.cloud.delete("a")
        await kind.robot.gone("a")


async def test_S4_3_what_the_predecessor_left_behind_is_taken_over_without_losing_a_status(fleet: Fleet) -> None:
    """Its copies carry no annotations; some have reported already, some have not, and the cloud knows statuses."""
    histories = []
    for kind in fleet.kinds:
        sample = kind.sample
        for name in ("reported", "silent"):
            await kind.cloud.create(name, spec=sample.spec, labels=kind.label)
            await kind.robot.create(name, spec=sample.spec, labels=kind.label)
            if sample.statuses:
                await kind.cloud.set_status(name, sample.statuses[0] | sample.neighbours)
        if sample.statuses:
            await kind.robot.set_status("reported", sample.statuses[1])
            histories.append((kind, await kind.cloud.record("silent")))
    before = {
        (kind.name, name): (await kind.robot.get(name))["metadata"]["uid"]
        for kind in fleet.kinds
        for name in ("reported", "silent")
    }
    await fleet.start()
    await settled(fleet)
    for kind in fleet.kinds:
        sample = kind.sample
        for name in ("reported", "silent"):
            await stamped(kind, name)
            assert (await kind.robot.get(name))["metadata"]["uid"] == before[kind.name, name]
        if sample.statuses:
            assert "status" not in await kind.robot.get("silent")
            await in_step(kind, "reported")
            cloud = await kind.cloud.get("reported")
            assert cloud["status"].items() >= sample.neighbours.items()
            assert cloud["status"] == (await kind.robot.get("reported"))["status"] | sample.neighbours
    for kind, history in histories:
        expected = kind.sample.statuses[0] | kind.sample.neighbours
        assert [status for status in await history.complete() if status != expected] == []
    assert [w for w in writes(fleet.robot_link) if w.startswith("DELETE")] == []
