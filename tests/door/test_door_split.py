"""`crsyncer door split` on a shard and its clone, with agents that come through the door and write all the time."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters.retries import until
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.door.conftest import Audited
from tests.door.open_door import Kept, OpenDoor, Watch
from tests.door.split_bed import MOVING, SECONDS, STAYING, SplitBed, StatusWriter
from tests.system.confined import KINDS, ROBOTS, at, thing, where


@pytest.fixture
async def bed(audited: Audited, sandbox: Sandbox, robot_api: Api, tmp_path: Path) -> AsyncIterator[SplitBed]:
    """A root with three robots, whose agents run."""
    for plural in ("goals", "findings"):
        await robot_api.apply_crd(KINDS[plural])
    bed = SplitBed(tmp_path, audited, sandbox)
    try:
        await bed.start_agents()
        yield bed
    finally:
        await bed.close()
        await robot_api.remove_crds(KINDS["goals"], KINDS["findings"])


@pytest.mark.nightly("the demo of shards splits one, and checks what robots keep")
async def test_G7_2_a_shard_is_split_step_by_step_under_writes_and_every_copy_stays(bed: SplitBed) -> None:
    cloud = bed.root.cloud
    made = {name: [cloud.create("goals", name) for _ in range(2)] for name in ROBOTS}
    for name in ROBOTS:
        cloud.create("errands", name)
        bed.config_map(name, "settings")
    goals = [each for found in made.values() for each in found]
    copies = {bed.copy_path(each): await bed.copied(each) for each in goals}
    writer = StatusWriter(bed, list(copies))
    finding = bed.on_robot.ask("POST", at("findings", "bay-r1"), thing("findings", "bay-r1", "f1"))
    assert finding.status == 201, finding
    await bed.root_has(at("findings", "robot-r1", "f1"))
    try:
        await asyncio.to_thread(bed.clone)
        # Robots go on, with what they make as well; so do people who write for robots that stay.
        late = cloud.create("goals", STAYING)
        changed = [{"op": "replace", "path": "/spec/secret", "value": "pear"}]
        assert bed.on_robot.patch(at("findings", "bay-r1", "f1"), *changed).status == 200
        await bed.root_has(at("findings", "robot-r1", "f1"), secret="pear")

        assert bed.states() == ["done", "open", "open", "open", "open"]
        assert bed.states("--step", "1", "--yes") == ["done"]
        refused = bed.split("--step", "4", "--yes")
        assert (refused.returncode, "step 4 is refused, for step 2 does not hold" in refused.stderr) == (1, True)
        assert bed.states("--step", "2", "--yes") == ["done"]
        assert bed.states("--step", "3", "--yes") == ["done"]
        assert bed.states("--step", "4", "--yes") == ["done"]
        assert bed.states() == ["done", "done", "done", "done", "open"]
        assert bed.states("--step", "5", "--yes") == ["done"]
        assert bed.states("--yes") == ["done"] * 5
    finally:
        writer.stop()

    for name in MOVING:
        assert not bed.left(cloud.admin, name)
        assert "settings" in bed.left(bed.b, name)
    assert not bed.left(bed.b, STAYING)
    assert late["metadata"]["name"] in bed.left(cloud.admin, STAYING)
    for name, found in made.items():
        at_shard = cloud.admin if name == STAYING else bed.b
        for each in found:
            await bed.status_is_at(at_shard, each, writer.last[bed.copy_path(each)])
            edit = {"op": "replace", "path": "/spec/secret", "value": "plum"}
            assert at_shard.patch(where(each), edit).status == 200
            now = await bed.copied(each, "plum")
            assert now["metadata"]["uid"] == copies[bed.copy_path(each)]["metadata"]["uid"]
    for agent in bed.agents.values():
        status = await agent.until(lambda now: now["health"] == "healthy", seconds=SECONDS)
        assert status["holds"] == []
        assert status["writes"]["robot"]["delete"] == 0


@pytest.mark.nightly("test_simulated_split shows each of these on virtual time")
async def test_G7_2_a_split_is_refused_undone_and_resumed(bed: SplitBed, tmp_path: Path) -> None:
    cloud = bed.root.cloud
    made = {name: cloud.create("goals", name) for name in ROBOTS}
    copies = {name: await bed.copied(each) for name, each in made.items()}
    await asyncio.to_thread(bed.clone)
    assert bed.kept is not None

    bed.names.write_text("r1\nnobody\n")
    refused = bed.split()
    assert (refused.returncode, refused.stdout) == (1, ""), refused
    assert refused.stderr.startswith("crsyncer: there is no robot nobody\n")
    bed.names.write_text("\n".join(MOVING))

    late = cloud.create("goals", "r1")
    refused = bed.split("--yes")
    why = f"goals.confined.example.com/robot-r1/{late['metadata']['name']} is at root alone"
    assert (refused.returncode, why in refused.stderr) == (1, True), refused
    assert cloud.admin.ask("DELETE", where(late)).status == 200
    assert until(lambda: bed.states() == ["done", "open", "open", "open", "open"], seconds=SECONDS)

    await asyncio.to_thread(bed.kept.stop)
    refused = bed.split("--yes")
    assert (refused.returncode, "does not answer" in refused.stderr) == (1, True), refused
    bed.kept = Kept(bed.door)
    bed.kept.wait_ready()

    # Another door, which may not read Robots any more: it goes on with the map that it has.
    second = OpenDoor(tmp_path / "second", bed.door.kubeconfig, bed.door.shards)
    second.configure()
    second.start()
    second.kubeconfig = bed.root.plane.kubeconfig(tmp_path / "weak", token=cloud.robots["r1"].token)
    kept = Kept(second)
    try:
        kept.wait_ready()
        watch = Watch(second, at("goals", "robot-r1"), cloud.robots["r1"].token)
        both = ("--door", f"127.0.0.1:{kept.port}")
        assert bed.states("--step", "2", "--yes", *both) == ["done"]
        refused = bed.split("--step", "4", "--yes", *both)
        assert (refused.returncode, "2 robots still at root: r1, r2" in refused.stderr) == (1, True), refused
        assert bed.states("--step", "3", *both, code=1) == ["failed"]
        watch.close()
    finally:
        kept.stop()
        second.stop()
    await bed.wait_at("b", MOVING)

    # Somebody writes to the shard all the same: nothing of that robot's goes there.
    wrong = cloud.create("goals", "r2")
    refused = bed.split("--yes")
    why = f"goals.confined.example.com/robot-r2/{wrong['metadata']['name']} is at root alone"
    assert (refused.returncode, why in refused.stderr) == (1, True), refused
    assert cloud.admin.ask("DELETE", where(wrong)).status == 200
    edit = {"op": "replace", "path": "/spec/secret", "value": "kiwi"}
    assert cloud.admin.patch(where(made["r2"]), edit).status == 200
    refused = bed.split("--step", "4", "--yes")
    why = f"goals.confined.example.com/robot-r2/{made['r2']['metadata']['name']} differs in its content"
    assert (refused.returncode, why in refused.stderr) == (1, True), refused
    assert {name: cloud.admin.ask("GET", where(each)).status for name, each in made.items()} == dict.fromkeys(made, 200)
    edit["value"] = "apple"
    assert cloud.admin.patch(where(made["r2"]), edit).status == 200

    # Undone: the robots are at the root again, and everything is as it was.
    for name in MOVING:
        bed.label(name, None)
    await bed.wait_at("root", ROBOTS)
    for name, each in made.items():
        edit = {"op": "replace", "path": "/spec/secret", "value": "fig"}
        if name == STAYING:
            assert cloud.admin.patch(where(each), edit).status == 200
            await bed.copied(each, "fig")
        body = {"op": "add", "path": "/status", "value": {"undone": name}}
        assert bed.on_robot.patch(f"{bed.copy_path(each)}/status", body).status == 200
        await bed.status_is_at(cloud.admin, each, body["value"])

    # Killed in the middle, and resumed.
    process = bed.start_split("--yes")
    assert until(lambda: bed.robot_label("r1") == "b", seconds=SECONDS)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert bed.states("--yes") == ["done"] * 5
    content = json.loads(bed.split("--json").stdout)
    assert (content["schema"], content["robots"]) == ("crsyncer.door-split/v1", [*MOVING])
    assert not content["done"], "everything is skipped"
    for name, each in made.items():
        now: dict[str, Any] = bed.on_robot.ask("GET", bed.copy_path(each)).body
        assert now["metadata"]["uid"] == copies[name]["metadata"]["uid"]
        at_shard, other = (cloud.admin, bed.b) if name == STAYING else (bed.b, cloud.admin)
        assert at_shard.ask("GET", where(each)).status == 200
        assert other.ask("GET", where(each)).status == 404
    for agent in bed.agents.values():
        status = await agent.until(lambda now: now["health"] == "healthy", seconds=SECONDS)
        assert status["holds"] == []
