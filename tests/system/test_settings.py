"""What is edited while the agent runs: kubeconfigs that lead elsewhere, namespaces."""

from typing import Any

import pytest

from tests.system.bed import Bed
from tests.system.commands import edit
from tests.system.conftest import MakeBed


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


async def test_a_kubeconfig_that_leads_elsewhere_and_cannot_be_used_leaves_everything_as_it_was(bed: Bed):
    kubeconfig = bed.directory / "cloud.yaml"
    text = kubeconfig.read_text()
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    elsewhere = text.replace(bed.cloud.link.server, "https://elsewhere.example.com")
    edit(kubeconfig, elsewhere.replace("user: cloud", "user: nobody"))

    def is_rejected(status: dict[str, Any]) -> bool:
        said = [(reason["code"], "--cloud-kubeconfig" in reason["message"]) for reason in status["reasons"]]
        return (status["health"], said) == ("attention", [("ConfigRejected", True)])

    await bed.agent.until(is_rejected)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    edit(kubeconfig, text)
    await bed.agent.until(lambda status: status["health"] == "healthy")


async def test_a_kubeconfig_that_turns_out_to_be_unusable_is_one_line_that_names_its_key(make_bed: MakeBed):
    bed = await make_bed(start=False)
    kubeconfig = bed.directory / "cloud.yaml"
    assert "user: cloud" in kubeconfig.read_text()
    kubeconfig.write_text(kubeconfig.read_text().replace("user: cloud", "user: nobody"))
    robot = ("--robot-kubeconfig", str(bed.directory / "robot.yaml"), "--listen", "off")
    code, _, error = await bed.agent.crsyncer("run", "--cloud-kubeconfig", str(kubeconfig), *robot)
    assert code == 2
    (line,) = error.strip().splitlines()
    assert "--cloud-kubeconfig" in line
    assert "nobody" in line
    assert not bed.agent.state_dir.exists()
