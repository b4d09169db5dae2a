"""What is edited while the agent runs: kubeconfigs that lead elsewhere, namespaces."""

from typing import Any

import pytest

from tests.system.bed import Bed
from tests.system.commands import edit


@pytest.mark.fault_22
async def test_S8_3_a_kubeconfig_that_leads_to_another_cluster_is_noticed_and_back_again(bed: Bed):
    kubeconfig = bed.directory / "cloud.yaml"
    text, pid = kubeconfig.read_text(), bed.agent.pid
    await bed.cloud.create("a", spec={"x": 1})
    uid = (await bed.robot.shows("a", spec={"x": 1}))["metadata"]["uid"]
    bed.robot.link.kubeconfig(kubeconfig)

    def is_noticed(status: dict[str, Any]) -> bool:
        holds = [hold["reason"] for hold in status["holds"]]
        return (status["sides"]["cloud"]["state"], holds) == ("identity-changed", ["IdentityChanged"])

    await bed.agent.until(is_noticed)
    assert await bed.robot.names() == {"a"}
    edit(kubeconfig, text)
    await bed.until_side("cloud", "connected")
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    await bed.agent.until(lambda status: status["health"] == "healthy")
    assert (await bed.robot.get("a"))["metadata"]["uid"] == uid
    assert bed.agent.pid == pid
