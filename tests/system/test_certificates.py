"""Certificates that do not fit, on real planes: a human is called, nothing is lost, and a correction is enough."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.adapters.kube_server import always, answer, hostile, make_certificates
from tests.system.bed import Bed
from tests.system.conftest import MakeBed


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Replace a kubeconfig by one with another cluster, as an editor does."""
    config = yaml.safe_load(path.read_text())
    change(config["clusters"][0]["cluster"])
    new = path.with_suffix(".new")
    new.write_text(yaml.safe_dump(config))
    new.chmod(0o600)
    new.replace(path)


async def calls_a_human(bed: Bed, *, error: str, remedy: str) -> None:
    """Wait until `status` says so, with the remedy."""

    def is_said(status: dict[str, Any]) -> bool:
        first, cloud = (status["reasons"] or [{}])[0], status["sides"]["cloud"]
        if (status["health"], cloud["state"]) != ("attention", "unauthorized"):
            return False
        return error in first["message"] and remedy in first["hint"]

    await bed.agent.until(is_said)
    code, screen, _ = await bed.agent.crsyncer("status")
    assert (code, "OFFLINE" in screen, error in screen) == (12, False, True)


async def test_a_CA_file_beside_the_kubeconfig_that_is_replaced_is_enough(make_bed: MakeBed):
    bed = await make_bed(start=False)
    authority = bed.directory / "cloud-ca.pem"
    authority.write_bytes(bed.robot.plane.ca_file.read_bytes())
    edit(bed.directory / "cloud.yaml", lambda cluster: cluster.update({"certificate-authority": str(authority)}))
    await bed.agent.start()
    await calls_a_human(
        bed, error="not signed by a CA that the kubeconfig trusts", remedy="fetch certificate-authority"
    )
    authority.write_bytes(bed.cloud.plane.ca_file.read_bytes())
    await bed.until_kind("syncing")


@pytest.mark.fault_49
@pytest.mark.parametrize("is_early", [False, True])
async def test_a_certificate_of_the_past_and_one_of_the_future_need_a_human(make_bed: MakeBed, is_early: bool):
    bed = await make_bed(start=False)
    right = (bed.directory / "cloud.yaml").read_text()
    certificates = make_certificates(bed.directory)
    pair = certificates.issue_for_2040("server") if is_early else certificates.issue("server", days=-1)
    async with hostile(always(answer()), pair=pair) as server:
        fields = {"server": server.url, "certificate-authority": str(certificates.ca)}
        edit(bed.directory / "cloud.yaml", lambda cluster: cluster.update(fields))
        await bed.agent.start()
        if is_early:
            await calls_a_human(bed, error="this machine's clock is behind", remedy="set this machine's clock")
            assert (await bed.agent.status())["reasons"][0]["code"] == "ClockSuspect"
        else:
            await calls_a_human(bed, error="has expired", remedy="check this machine's clock")
        assert server.requests == []
    async with bed.stopped():
        (bed.directory / "cloud.yaml").write_text(right)  # another server, so another start
    await bed.until_kind("syncing")
