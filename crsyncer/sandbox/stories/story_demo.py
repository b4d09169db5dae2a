"""The demo: one robot, its cloud, the real agent between them, and a link that is cut."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crsyncer.core.model import Side
from crsyncer.errors import SyncError
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.binaries import cache_directory
from crsyncer.sandbox.cluster import connected
from crsyncer.sandbox.relay import Relay
from crsyncer.sandbox.stories.policy_steps import PolicySteps
from crsyncer.sandbox.stories.story import Story, tell
from crsyncer.sandbox.stories.story_kinds import OWN, Kind, load
from crsyncer.sandbox.stories.story_steps import Steps
from crsyncer.sandbox.two_planes import Sandbox

ROBOT = "robot-1"


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Options of the demo's agent: a state directory and a configuration file, both absolute."""

    state_dir: Path | None = None
    config: Path | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of `crsyncer run`, except --state-dir."""
        return ("--config", str(self.config)) if self.config else ()


def play(
    story: Story,
    *,
    crds: Path | None = None,
    policy_crd: Path | None = None,
    keep: bool = False,
    options: AgentOptions = AgentOptions(),
) -> int:
    """Play the demo, and return its exit code: 1 when a step fails.

    With `policy_crd`, the file with the CRD of SyncPolicies, it is the story of a SyncPolicy. With `keep` everything is
    left running, also after a failed step. Raises SyncError where the demo cannot begin, and passes KeyboardInterrupt
    on; nothing is left running then.
    """
    kinds = load(crds or OWN, ROBOT)
    directory = _kept_directory() if keep else None
    story.step("Two control planes start on this machine")
    sandbox = Sandbox.up(directory, detached=keep, progress=partial(story.says, "sandbox"))
    kept = False
    try:
        code = tell(story, lambda: asyncio.run(_perform(story, sandbox, kinds, options, policy_crd)))
        if keep:
            asyncio.run(_leave(story, sandbox, kinds, options))
            kept = True
    finally:
        if not kept:
            sandbox.down()
    return code


async def _perform(
    story: Story, sandbox: Sandbox, kinds: list[Kind], options: AgentOptions, policy_crd: Path | None
) -> None:
    """Run every step with an agent behind a link; the agent has ended when this returns."""
    async with AsyncExitStack() as stack:
        clusters = {
            side: await stack.enter_async_context(connected(sandbox.kubeconfig(plane.name)))
            for side, plane in zip(Side, sandbox.planes, strict=True)
        }
        link = await stack.enter_async_context(Relay(sandbox.cloud.port))
        link_kubeconfig = sandbox.cloud.kubeconfig(sandbox.cloud.directory / "link.kubeconfig", server=link.server)
        agent = _agent(sandbox, options, cloud_kubeconfig=link_kubeconfig)
        stack.push_async_callback(_end, agent)
        try:
            if policy_crd is not None:
                await PolicySteps(story, clusters, link=link, agent=agent, crd=policy_crd).run()
            else:
                await Steps(story, kinds, clusters, link=link, agent=agent).run()
        except Exception as error:
            if (log := agent.tail()) and log not in str(error):
                story.says("agent", "the end of its log:")
                story.quotes(log)
            raise


async def _end(agent: AgentProcess) -> None:
    try:
        await agent.stop()
    except subprocess.TimeoutExpired:
        await agent.kill()


def _agent(sandbox: Sandbox, options: AgentOptions, *, cloud_kubeconfig: Path, detached: bool = False) -> AgentProcess:
    sandbox.agent_home.mkdir(mode=0o700, exist_ok=True)
    return AgentProcess(
        sandbox.agent_home,
        cloud_kubeconfig=cloud_kubeconfig,
        robot_kubeconfig=sandbox.kubeconfig("robot"),
        robot_name=ROBOT,
        flags=options.flags,
        detached=detached,
        state_dir=options.state_dir,
    )


def _kept_directory() -> Path:
    """The directory of a kept demo: always the same, so that it can be found and stopped."""
    directory = cache_directory() / "demo"
    if Sandbox.attach(directory) is not None:
        raise SyncError(f"a kept demo is still running in {directory}", hint=f"stop it: {_stop(directory)}")
    shutil.rmtree(directory, ignore_errors=True)
    return directory


async def _leave(story: Story, sandbox: Sandbox, kinds: list[Kind], options: AgentOptions) -> None:
    """Start the agent again without the link, which ends with this process, and print commands to try."""
    agent = _agent(sandbox, options, cloud_kubeconfig=sandbox.kubeconfig("cloud"), detached=True)
    await agent.start()
    kind = next((each for each in kinds if each.policy.upstream is Side.CLOUD), kinds[0])
    up, down = (
        f"$KUBECTL --kubeconfig ${side.upper()}_KUBECONFIG" for side in (kind.policy.upstream, kind.policy.downstream)
    )
    name = kind.object(1, 1)["metadata"]["name"]
    change = shlex.quote(json.dumps(kind.content(3)))
    story.quotes(
        f"""
Everything is left running; the agent (pid {agent.pid}) is now connected without the link:
  cloud  {sandbox.kubeconfig("cloud")}
  robot  {sandbox.kubeconfig("robot")}

Three commands to try, after
  eval "$({_program()} sandbox env --directory {shlex.quote(str(sandbox.directory))})"

  {up} patch {kind.policy.resource} {name} \\
    --type=merge -p {change}
  {down} get {kind.policy.resource} -A -o yaml
  {_program()} status --state-dir {shlex.quote(str(agent.state_dir))}

Stop it all:
  {_stop(sandbox.directory)}"""
    )


def _stop(directory: Path) -> str:
    return f"{_program()} sandbox down --directory {shlex.quote(str(directory))}"


def _program() -> str:
    """This installation's command, as it can be typed here."""
    path = Path(sys.executable).with_name("crsyncer")
    inside = path.is_relative_to(Path.cwd())
    return shlex.quote(os.path.relpath(path) if inside else str(path))
