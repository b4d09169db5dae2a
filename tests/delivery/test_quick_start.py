"""README's guide to two clusters of one's own: its commands, as they are written, sync an object."""

import asyncio
import contextlib
import re
import subprocess
import sys

from tests.delivery.followed import FINDING, GOAL, HOME, ROOT, Clusters, copy_of_the_documents
from tests.system.bed import eventually


async def test_the_commands_of_the_quick_start_sync_an_object(sandbox, cloud_api, robot_api, tmp_path):
    guide = (ROOT / "README.md").read_text().split("\n**1. Apply")[1].split("\n## ")[0]
    crds, kubeconfig, check_and_run, first_object = map(installed, re.findall(r"```sh\n(.*?)```", guide, re.DOTALL))
    check, run = check_and_run.rstrip().rsplit("\n", 1)
    checkout = copy_of_the_documents(tmp_path)
    clusters = Clusters(sandbox, tmp_path)
    agent = None
    try:
        await asyncio.to_thread(clusters.shell, crds)
        for api in (cloud_api, robot_api):
            for resource in (GOAL, FINDING):
                await api.until_served(resource)
        await clusters.set_up_cloud(cloud_api)
        await asyncio.to_thread(clusters.shell, f"{kubeconfig}{check} || test $? = 13")
        agent = await asyncio.create_subprocess_shell(
            f"exec {run} --listen off", cwd=checkout, stderr=subprocess.DEVNULL
        )

        async def shows_the_copy() -> bool:
            with contextlib.suppress(AssertionError):  # until the agent is in sync, status does not exit with 0
                shown = await asyncio.to_thread(clusters.shell, first_object)
                return "dock" in shown and await robot_api.find(GOAL.object("dock", namespace=HOME)) is not None
            return False  # or healthy right before it hears of the object

        await eventually(shows_the_copy, seconds=90, what="the copy of the first object")
    finally:
        if agent is not None:
            agent.terminate()
            await agent.wait()
        for api in (cloud_api, robot_api):
            await api.remove_kinds(GOAL, FINDING)


def installed(script: str) -> str:
    """A document's commands, with the program under test in place of an installed one."""
    return re.sub(r"^\S*crsyncer(?= [a-z])", f"{sys.executable} -m crsyncer.cli.main", script, flags=re.MULTILINE)
