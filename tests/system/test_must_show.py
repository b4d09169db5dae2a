"""What an operator sees: `crsyncer status` in every situation, settings that cannot be used, and live reload."""

import json
from pathlib import Path
from typing import Any

from crsyncer.sandbox.agent_process import AgentProcess
from tests.system.bed import LABEL, Bed
from tests.system.commands import edit
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.state_dir import quiet


def synced(status: dict[str, Any]) -> bool:
    """Whether three copies were made, and everything is well."""
    kinds = [(kind["objects"], kind["pending"]) for kind in status["kinds"]]
    well = (status["health"], status["holds"], status["reasons"]) == ("healthy", [], [])
    made = status["writes"]["robot"]
    return well and kinds == [({"cloud": 3, "robot": 3}, {"spec": 0, "status": 0})] and made["create"] >= 3


async def test_status_is_healthy_then_offline_then_of_a_killed_agent_and_healthy_again(bed: Bed):
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

    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    for name in ("g00", "g01"):
        await bed.robot.set_status(name, {"phase": "DONE"})

    def without_cloud(status: dict[str, Any]) -> bool:
        sides = {name: side["state"] for name, side in status["sides"].items()}
        said = (status["health"], [reason["code"] for reason in status["reasons"]])
        known = sides == {"cloud": "offline", "robot": "connected"} and said == ("offline", ["CloudOffline"])
        return known and status["outbox"]["depth"] == 2

    await bed.agent.until(without_cloud)
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 11
    assert "offline" in screen.splitlines()[0].lower()

    await quiet(bed)
    await bed.agent.kill()
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 13
    assert "not running" in screen
    document = await bed.agent.status()
    assert (document["agent"]["state"], document["agent"]["pid"]) == ("stopped", None)
    assert document["outbox"]["depth"] == 2
    assert document["kinds"][0]["objects"] == {"cloud": 3, "robot": 3}
    assert document["kinds"][0]["pending"]["status"] == 2
    assert "AgentStopped" in [reason["code"] for reason in document["reasons"]]

    bed.cloud.link.restore()
    await bed.agent.start()
    await bed.cloud.shows("g00", status={"phase": "DONE"})
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


async def test_status_of_a_directory_that_no_agent_has_used_says_so(tmp_path: Path):
    nobody = AgentProcess(tmp_path, cloud_kubeconfig=tmp_path / "none", robot_kubeconfig=tmp_path / "none")
    code, screen, _ = await nobody.crsyncer("status")
    assert code == 13
    assert str(nobody.state_dir) in "".join(screen.split()), "where it is wrapped, too"
    assert not nobody.state_dir.exists()
