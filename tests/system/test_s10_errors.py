"""S10: every answer of a server is one of four: it did not happen, perhaps it did, it never will, the credential."""

from typing import Any

import pytest

from tests.system.asked import deletes, refusal
from tests.system.bed import Bed
from tests.system.commands import reloaded
from tests.system.crowd import copied


@pytest.mark.fault_32
async def test_S10_a_request_that_is_too_large_again_and_again_is_a_dead_letter(bed: Bed):
    await copied(bed, 2)
    large = bed.cloud.link.inject(
        "/g00/status", status=500, body=refusal(500, "etcdserver: request is too large"), method="PATCH"
    )
    await bed.robot.set_status("g00", {"map": "x" * 1000})
    await bed.agent.until(lambda status: status["outbox"]["deadLetters"] == 1, seconds=60)
    assert large.count > 1  # once might have been a mistake
    await bed.robot.set_status("g01", {"phase": "DONE"})
    await bed.cloud.shows("g01", status={"phase": "DONE"})
    large.remove()
    await bed.robot.set_status("g00", {"map": "x"})
    await bed.cloud.shows("g00", status={"map": "x"})
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.fault_35
async def test_S10_a_refused_credential_is_said_and_a_new_one_in_the_kubeconfig_is_taken(bed: Bed):
    names = await copied(bed, 3)
    kubeconfig = bed.directory / "cloud.yaml"
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    bed.cloud.link.kubeconfig(kubeconfig, token="expired")
    await reloaded(bed)  # before a connection can be made with what the agent knew
    bed.cloud.link.restore()
    await bed.until_side("cloud", "unauthorized")
    await bed.robot.set_status("g00", {"phase": "DONE"})
    await bed.agent.until(lambda status: kept(status, "CloudUnauthorized"))
    assert await bed.robot.names() == set(names)
    bed.cloud.link.kubeconfig(kubeconfig)
    await bed.until_side("cloud", "connected", seconds=90)
    await bed.cloud.shows("g00", status={"phase": "DONE"})
    assert deletes(bed.robot.link) == []


def kept(status: dict[str, Any], code: str) -> bool:
    """Whether a human is needed for a reason, and one status is kept that is no dead letter."""
    outbox = (status["outbox"]["depth"], status["outbox"]["deadLetters"])
    return (outbox, status["health"]) == ((1, 0), "attention") and code in [each["code"] for each in status["reasons"]]
