"""What an operator sees: `crsyncer status` through an outage, the end of the agent and its next start."""

import json
from typing import Any

from tests.system.bed import Bed
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
