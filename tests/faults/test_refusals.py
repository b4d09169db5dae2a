"""What servers refuse, for a while or for good, and credentials that do not fit: nothing is lost, and it is said."""

import asyncio
import time
from typing import Any

import pytest
import yaml

from crsyncer.sandbox.plane import Plane
from tests.system.asked import deletes
from tests.system.bed import Bed, crd, eventually
from tests.system.commands import edit, reloaded, run
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.kinds import another


async def reported(bed: Bed, names: list[str], status: dict[str, Any]) -> None:
    await asyncio.gather(*(bed.robot.set_status(name, status) for name in names))


async def all_reported(bed: Bed, names: list[str], status: dict[str, Any], *, seconds: float = 120.0) -> None:
    for name in names:
        await bed.cloud.shows(name, status=status, seconds=seconds)


@pytest.mark.fault_18
async def test_S1_8_a_kind_whose_crd_is_missing_on_the_robot_starts_when_it_appears(make_bed: MakeBed):
    bed = await make_bed(start=False)
    name = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": bed.resource},
    }
    await bed.robot.api.delete(name)
    await bed.robot.api.until_gone(name)
    cloud_tasks, robot_tasks = await another(bed)
    await bed.cloud.create("a", spec={"x": 1})
    await cloud_tasks.create("t", spec={"x": 1})
    await bed.agent.start()
    await robot_tasks.shows("t", spec={"x": 1})

    def well(status: dict[str, Any]) -> bool:
        kinds = [kind["resource"] for kind in status["kinds"]]
        return (status["health"], kinds) == ("healthy", [f"tasks.{bed.group}"])

    await bed.agent.until(well)
    await bed.robot.api.apply_crd(crd(bed.group))
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})


@pytest.mark.fault_35
async def test_S10_a_new_token_in_its_file_is_taken_within_half_a_minute(bed: Bed, cloud: Plane):
    names = await copied(bed, 3)
    token = bed.directory / "token"
    token.write_text(cloud.admin_token)
    bed.cloud.link.kubeconfig(bed.directory / "cloud.yaml", token_file=token)
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    token.write_text("expired")
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await reloaded(bed)  # before a connection can be made with what the agent knew
    bed.cloud.link.restore()
    await bed.until_side("cloud", "unauthorized")
    await reported(bed, names, {"phase": "DONE"})
    await bed.agent.until(lambda status: (status["outbox"]["depth"], status["health"]) == (3, "attention"))
    assert await bed.robot.names() == set(names)
    pid, began = bed.agent.pid, time.monotonic()
    token.write_text(cloud.admin_token)
    await bed.until_side("cloud", "connected", seconds=60)
    print(f"connected after {time.monotonic() - began:.1f} s")
    await all_reported(bed, names, {"phase": "DONE"})
    assert bed.agent.pid == pid
    assert deletes(bed.robot.link) == []


def trusting(bed: Bed, **changes: str) -> None:
    """Have the kubeconfig trust something else."""
    path = bed.directory / "cloud.yaml"
    document = yaml.safe_load(path.read_text())
    document["clusters"][0]["cluster"].update(changes)
    edit(path, yaml.safe_dump(document))


@pytest.mark.fault_38
@pytest.mark.parametrize(
    ("elsewhere", "said", "remedy"),
    [
        pytest.param("certificate-authority", "CA", "fetch certificate-authority", id="another CA"),
        pytest.param("tls-server-name", "name", "check server and tls-server-name", id="another name"),
    ],
)
async def test_S10_a_server_that_cannot_prove_who_it_is_is_refused_and_nothing_is_lost(
    bed: Bed, robot: Plane, elsewhere: str, said: str, remedy: str
):
    names = await copied(bed, 3)
    good, pid = (bed.directory / "cloud.yaml").read_text(), bed.agent.pid
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    trusting(bed, **{elsewhere: str(robot.ca_file) if said == "CA" else "elsewhere"})
    await reloaded(bed)  # before a connection can be made with what the agent knew
    bed.cloud.link.restore()
    bed.cloud.link.clear()

    def is_refused(status: dict[str, Any]) -> bool:
        cloud = status["sides"]["cloud"]
        hints = [reason["hint"] for reason in status["reasons"]][:1]
        told = (cloud["state"], status["health"]) == ("unauthorized", "attention") and said in str(cloud["error"])
        return told and any(remedy in hint for hint in hints)

    await bed.agent.until(is_refused)
    await reported(bed, names, {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 3)
    assert bed.cloud.link.requests == []  # no token was shown to it

    async def shown() -> bool:
        error = str((await bed.agent.status())["sides"]["cloud"]["error"])
        return said in error and error in " ".join((await run(bed, "status", code=12)).split())

    await eventually(shown, what="the reason is on the screen")
    assert await bed.robot.names() == set(names)
    edit(bed.directory / "cloud.yaml", good)
    await all_reported(bed, names, {"phase": "DONE"})
    assert bed.agent.pid == pid
    assert deletes(bed.robot.link) == []
