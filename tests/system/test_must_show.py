"""What an operator sees: `crsyncer status` in every situation, settings that cannot be used, and live reload."""

import json
from pathlib import Path
from typing import Any

from crsyncer.sandbox.agent_process import AgentProcess
from tests.system.bed import LABEL, Bed, writes
from tests.system.commands import edit
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.state_dir import quiet


async def test_status_of_a_robot_in_sync_is_healthy_and_exits_0(bed: Bed):
    await copied(bed, 3)
    await bed.agent.until(synced)
    code, screen, error = await bed.agent.crsyncer("status")
    assert (code, error) == (0, "")
    assert "healthy" in screen.splitlines()[0].lower()
    assert bed.resource in screen
    code, text, _ = await bed.agent.crsyncer("status", "--json")
    document = json.loads(text)
    assert (code, document["schema"], synced(document)) == (0, "crsyncer.status/v1", True)
    assert document["agent"] | {"since": ""} == {"state": "running", "pid": bed.agent.pid, "since": ""}


def synced(status: dict[str, Any]) -> bool:
    """Whether three copies were made, and everything is well."""
    kinds = [(kind["objects"], kind["pending"]) for kind in status["kinds"]]
    well = (status["health"], status["holds"], status["reasons"]) == ("healthy", [], [])
    made = status["writes"]["robot"]
    return well and kinds == [({"cloud": 3, "robot": 3}, {"spec": 0, "status": 0})] and made["create"] >= 3


async def test_status_with_the_link_cut_is_offline_and_exits_11(bed: Bed):
    await copied(bed, 2)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("g00", {"phase": "DONE"})

    def without_cloud(status: dict[str, Any]) -> bool:
        sides = {name: side["state"] for name, side in status["sides"].items()}
        said = (status["health"], [reason["code"] for reason in status["reasons"]])
        known = sides == {"cloud": "offline", "robot": "connected"} and said == ("offline", ["CloudOffline"])
        return known and status["outbox"]["depth"] == 1

    await bed.agent.until(without_cloud)
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 11
    assert "offline" in screen.splitlines()[0].lower()
    assert without_cloud(await bed.agent.status())
    bed.cloud.link.restore()
    await bed.cloud.shows("g00", status={"phase": "DONE"})
    await bed.agent.until(lambda status: status["health"] == "healthy")
    assert (await bed.agent.crsyncer("status"))[0] == 0


async def test_status_of_a_killed_agent_tells_the_truth_and_exits_13(bed: Bed):
    await copied(bed, 5)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    for name in ("g00", "g01", "g02"):
        await bed.robot.set_status(name, {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 3)
    await quiet(bed)
    await bed.agent.kill()
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 13
    assert "not running" in screen
    document = await bed.agent.status()
    assert (document["agent"]["state"], document["agent"]["pid"]) == ("stopped", None)
    assert document["outbox"]["depth"] == 3
    assert document["kinds"][0]["objects"] == {"cloud": 5, "robot": 5}
    assert document["kinds"][0]["pending"]["status"] == 3
    assert "AgentStopped" in [reason["code"] for reason in document["reasons"]]
    bed.cloud.link.restore()
    await bed.agent.start()
    await bed.agent.until(lambda status: status["health"] == "healthy")
    assert (await bed.agent.crsyncer("status"))[0] == 0


async def test_a_good_edit_of_the_configuration_applies_and_a_bad_one_is_reported(make_bed: MakeBed, tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text("robotName: robot-1\n")
    bed = await make_bed(filtered="true", robot_name="", flags=("--config", str(config)))
    for number in (1, 2):
        await bed.cloud.create(f"of-{number}", spec={"x": 1}, labels={LABEL: f"robot-{number}"})
    await bed.robot.shows("of-1")
    pid = bed.agent.pid

    edit(config, "robotName: robot 3\n")

    def is_rejected(status: dict[str, Any]) -> bool:
        said = [(reason["code"], "robotName" in reason["message"]) for reason in status["reasons"]]
        goes_on = (status["robot"], [kind["state"] for kind in status["kinds"]]) == ("robot-1", ["syncing"])
        return goes_on and (status["health"], said) == ("attention", [("ConfigRejected", True)])

    await bed.agent.until(is_rejected)
    await bed.cloud.patch("of-1", {"spec": {"x": 2}})
    await bed.robot.shows("of-1", spec={"x": 2})

    edit(config, "robotName: robot-2\n")
    await bed.agent.until(lambda status: status["robot"] == "robot-2" and status["health"] == "healthy")
    await bed.robot.shows("of-2")
    assert bed.agent.pid == pid
    assert await bed.robot.names() == {"of-1", "of-2"}


async def test_a_filtered_kind_without_a_robot_name_stays_closed_and_says_so(make_bed: MakeBed):
    bed = await make_bed(filtered="true", robot_name="", start=False)
    await bed.cloud.create("a", labels={LABEL: "robot-1"})
    await bed.start(state="misconfigured")
    for side in ("cloud", "robot"):
        await bed.until_side(side, "connected")
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 12
    assert "--robot-name" in screen
    assert writes(bed.robot.link) == []


async def test_status_of_a_directory_that_no_agent_has_used_says_so(tmp_path: Path):
    nobody = AgentProcess(tmp_path, cloud_kubeconfig=tmp_path / "none", robot_kubeconfig=tmp_path / "none")
    code, screen, _ = await nobody.crsyncer("status")
    assert code == 13
    assert str(nobody.state_dir) in "".join(screen.split()), "where it is wrapped, too"
    assert not nobody.state_dir.exists()
