"""Reasons of `status` that only real files and processes can have: each is provoked, and its hint followed.

The others are in tests/model/agent/test_reasons.py.
"""

from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
import yaml

from crsyncer.sandbox.free_ports import free_ports
from tests.model.scenes.provoked import BY_PROCESSES
from tests.mount import Mount, mounted
from tests.system.bed import Bed, eventually
from tests.system.commands import edit
from tests.system.conftest import MakeBed

SHOWN = {"AgentStopped": 13, "ConfigRejected": 12, "StateDegraded": 10, "TlsNotVerified": 10}
"""The exit code of each."""


async def shows(bed: Bed, code: str, *, port: int) -> str:
    """The hint of a reason, once `status`, its exit code and the metrics have it."""
    await bed.agent.until(lambda status: [each["code"] for each in status["reasons"]] == [code])

    async def scraped() -> bool:
        return await metric(port, code) == 1

    await eventually(scraped, what=f"the metric says {code}")
    found, screen, _ = await bed.agent.crsyncer("status")
    assert found == SHOWN[code]
    hint = str((await bed.agent.status())["reasons"][0]["hint"])
    assert "".join(hint.split()) in "".join(screen.split())
    return hint


async def ends(bed: Bed, code: str, *, port: int) -> None:
    """Wait until nothing is wrong any more: an agent that takes over new settings is healthy before and after that."""

    async def healthy() -> bool:
        return (await bed.agent.crsyncer("status"))[0] == 0 and await metric(port, code) == 0

    await eventually(healthy, what=f"{code} has ended")


async def metric(port: int, code: str) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as reply:
        lines = (await reply.text()).splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f'crsyncer_reasons{{code="{code}"}}'))


@pytest.fixture
def port() -> int:
    """Where the agent serves its metrics."""
    return free_ports(1)[0]


@pytest.fixture
def state_disk(tmp_path: Path) -> Iterator[Mount]:
    """The disk of the agent's state; it has to be there before the bed."""
    with mounted(tmp_path / "state") as disk:
        yield disk


async def test_a_rejected_configuration_and_a_stopped_agent(make_bed: MakeBed, port: int, tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text("auditInterval: 3600\n")
    bed = await make_bed(flags=("--listen", f"127.0.0.1:{port}", "--config", str(config)))
    edit(config, "auditIntervall: 3600\n")
    assert "correct it" in await shows(bed, "ConfigRejected", port=port)
    edit(config, "auditInterval: 7200\n")
    await ends(bed, "ConfigRejected", port=port)
    await bed.agent.stop()
    code, screen, _ = await bed.agent.crsyncer("status")
    assert (code, "systemctl start crsyncer (or crsyncer run)" in screen) == (SHOWN["AgentStopped"], True)
    assert [each["code"] for each in (await bed.agent.status())["reasons"]] == ["AgentStopped"]
    with pytest.raises(aiohttp.ClientError):
        await metric(port, "AgentStopped")  # so Prometheus' own `up` is 0
    await bed.start()
    await ends(bed, "AgentStopped", port=port)


async def test_a_full_disk(state_disk: Mount, make_bed: MakeBed, port: int):
    bed = await make_bed(flags=("--listen", f"127.0.0.1:{port}"))
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    state_disk.fill()
    await bed.cloud.create("b", spec={"x": 1})
    await bed.robot.shows("b")
    assert "full, read-only or broken?" in await shows(bed, "StateDegraded", port=port)
    state_disk.make_room()
    await ends(bed, "StateDegraded", port=port)


async def test_a_certificate_that_is_not_verified(make_bed: MakeBed, port: int):
    bed = await make_bed(start=False, flags=("--listen", f"127.0.0.1:{port}", "--insecure-skip-tls-verify"))
    kubeconfig = bed.directory / "cloud.yaml"
    good = kubeconfig.read_text()
    config = yaml.safe_load(good)
    cluster = config["clusters"][0]["cluster"]
    del cluster["certificate-authority"]
    cluster["insecure-skip-tls-verify"] = True
    edit(kubeconfig, yaml.safe_dump(config))
    await bed.start()
    assert "add the CA to the kubeconfig" in await shows(bed, "TlsNotVerified", port=port)
    edit(kubeconfig, good)
    await ends(bed, "TlsNotVerified", port=port)


def test_these_are_all_that_the_model_leaves_out():
    assert set(SHOWN) == BY_PROCESSES
