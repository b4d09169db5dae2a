"""Plays a schedule on two planes, waits until all is settled, and brings back what was seen."""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from crsyncer.cli.crds import SYNC_POLICY
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CRD
from tests.api import Api
from tests.faults.chaos.checker import disagreements
from tests.faults.chaos.faults import Faults
from tests.faults.chaos.history import Asked, Done, Evidence, Relist, Sample
from tests.faults.chaos.kinds import GROUP, KINDS, SIDES
from tests.faults.chaos.recorder import Recorder
from tests.faults.chaos.schedule import Step
from tests.faults.chaos.writers import Writers
from tests.link.link import Link
from tests.system.bed import ROBOT, eventually, memory

ROOT = Path(__file__).parents[3]
_RELIST = re.compile(
    r'^crsyncer_relists_total\{reason="(\w+)",resource="(\w+)\.[^"]*",side="(\w+)"\} (\d+)', re.MULTILINE
)
_OBJECT = re.compile(rf"/apis/{re.escape(GROUP)}/v1/(?:namespaces/default/)?(\w+)(?:/([\w-]+))?(?:/status)?$")


@dataclass
class Run:
    """A run in progress: what was done, and what was seen besides the objects."""

    agent: AgentProcess
    port: int
    began: float = 0.0
    done: list[Done] = field(default_factory=list)
    relists: list[Relist] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    _counted: dict[tuple[int, str, str, str], int] = field(default_factory=dict)

    async def sample(self, session: aiohttp.ClientSession) -> None:
        """Look at the agent once a second: its metrics do not outlive it."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                await self.look(session)
            await asyncio.sleep(1.0)

    async def look(self, session: aiohttp.ClientSession) -> None:
        """Read metrics, memory and descriptors. Raises when the agent does not answer."""
        now, pid = asyncio.get_running_loop().time(), self.agent.pid
        if not pid:
            return
        with contextlib.suppress(StopIteration):  # a process that has just ended has no memory any more
            self.samples.append(Sample(now, pid, memory(pid), len(os.listdir(f"/proc/{pid}/fd"))))
        timeout = aiohttp.ClientTimeout(total=8)
        async with session.get(f"http://127.0.0.1:{self.port}/metrics", timeout=timeout) as reply:
            text = await reply.text()
        for reason, kind, side, count in _RELIST.findall(text):
            key = (pid, side, kind, reason)
            new = int(count) - self._counted.get(key, 0)
            self._counted[key] = int(count)
            self.relists += [Relist(now, side, kind, reason)] * new


async def play(
    steps: list[Step],
    *,
    planes: dict[str, Plane],
    directory: Path,
    wrapper: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
    patience: float = 240.0,
    progress: Callable[[str], None] = lambda _line: None,
) -> Evidence:
    """Play, lift every fault, wait until both sides agree (bounded), and return the evidence.

    `wrapper` becomes the agent, with `environment`; `patience` is in seconds, for the end to settle.
    """
    async with contextlib.AsyncExitStack() as stack:
        apis = {
            side: await stack.enter_async_context(Api(plane.server, ca_file=plane.ca_file, token=plane.admin_token))
            for side, plane in planes.items()
        }
        links = {side: await stack.enter_async_context(Link(plane)) for side, plane in planes.items()}
        for kind in KINDS.values():
            for api in apis.values():
                await api.apply_crd(kind.crd)
        stack.push_async_callback(_clean, apis)
        await apis["robot"].apply_crd(_policies())
        for kind in KINDS.values():
            if kind.settings:
                await apis["robot"].create(kind.policy)
        (port,) = free_ports(1)
        agent = AgentProcess(
            directory,
            cloud_kubeconfig=links["cloud"].kubeconfig(directory / "cloud.yaml"),
            robot_kubeconfig=links["robot"].kubeconfig(directory / "robot.yaml"),
            robot_name=ROBOT,
            flags=("--listen", f"127.0.0.1:{port}"),
            environment={"PYTHONPATH": str(ROOT), **(environment or {})},
            wrapper=wrapper,
        )
        stack.push_async_callback(agent.kill)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        recorder, run = Recorder(apis), Run(agent, port)
        background = [asyncio.create_task(recorder.run()), asyncio.create_task(run.sample(session))]
        try:
            await agent.start(ready=False)
            await agent.until(_well, seconds=60)
            await run.look(session)  # the first lists belong to the time before the schedule
            await _perform_all(run, steps, apis=apis, links=links, agent=agent, progress=progress)
            final = await _settle(run, recorder, patience, progress)
            status = await agent.ask() or {}
            await run.look(session)
        finally:
            blind = [task for task in background if task.done()]
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
        for task in blind:
            task.result()  # a run that was not watched to its end proves nothing
        return Evidence(
            began=run.began,
            seen=tuple(recorder.seen),
            done=tuple(run.done),
            asked=tuple(sorted((a for side in SIDES for a in _asked(side, links[side])), key=lambda a: a.at)),
            relists=tuple(run.relists),
            samples=tuple(run.samples),
            gaps=tuple(recorder.gaps),
            final=final,
            status=status,
            log=agent.log.read_text(errors="replace"),
        )


async def _perform_all(
    run: Run,
    steps: list[Step],
    *,
    apis: dict[str, Api],
    links: dict[str, Link],
    agent: AgentProcess,
    progress: Callable[[str], None],
) -> None:
    clock = asyncio.get_running_loop().time
    writers, faults = Writers(apis), Faults(links=links, apis=apis, agent=agent)
    run.began = clock()
    told = 0

    async def perform(step: Step) -> None:
        began = clock()
        performer = writers if "kind" in step.arguments else faults
        answer = await performer.perform(step.action, **step.arguments)
        run.done.append(Done(step, began, clock(), answer))

    async with asyncio.TaskGroup() as tasks:
        for step in steps:
            await asyncio.sleep(max(0.0, run.began + step.at - clock()))
            tasks.create_task(perform(step))
            if clock() - run.began >= 10 * (told + 1):
                told += 1
                status = await agent.ask()
                health = status["health"] if status else "no answer"
                progress(f"{clock() - run.began:6.0f} s  {len(run.done)} steps of {len(steps)} done; agent: {health}")
    await faults.lift()


async def _settle(run: Run, recorder: Recorder, patience: float, progress: Callable[[str], None]) -> dict[Any, Any]:
    """Wait until the agent says that all is well and both sides agree, or for long enough; what both sides have."""
    final: dict[Any, Any] = {}
    since = asyncio.get_running_loop().time()

    async def settled() -> bool:
        nonlocal final
        status = await run.agent.ask()
        final = await recorder.final()
        agree = not any(True for _ in disagreements(final))
        if not (agree and status and _well(status)):
            await asyncio.sleep(0.5)
            return False
        return True

    with contextlib.suppress(AssertionError):
        await eventually(settled, seconds=patience)
    progress(f"settled after {asyncio.get_running_loop().time() - since:.0f} s")
    await asyncio.sleep(1.0)  # the recorder's last events
    return final


def _well(status: dict[str, Any]) -> bool:
    """Whether the agent says that there is nothing left to do."""
    return (
        status["health"] == "healthy"
        and len(status["kinds"]) >= len(KINDS)
        and all(kind["state"] == "syncing" and not any(kind["pending"].values()) for kind in status["kinds"])
        and not status["holds"]
    )


def _asked(side: str, link: Link) -> list[Asked]:
    found = []
    for request in link.requests:
        match = _OBJECT.search(request.path)
        if match is None or "watch=true" in request.query or "limit=1&" in f"{request.query}&":
            continue
        kind, name = match[1], match[2] or ""
        method = "LIST" if request.method == "GET" and not name else request.method
        body = _json(request.body)
        if method == "POST":
            name = body.get("metadata", {}).get("name", "")
        uid = (body.get("preconditions") or {}).get("uid", "")
        found.append(Asked(request.time, side, kind, method, name, request.status, uid))
    return found


def _json(body: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        value = json.loads(body)
        return value if isinstance(value, dict) else {}
    return {}


def _policies() -> dict[str, Any]:
    """The CRD of SyncPolicies."""
    definition: dict[str, Any] = yaml.safe_load(SYNC_POLICY.read_text())
    return definition


async def _clean(apis: dict[str, Api]) -> None:
    """Leave the planes as they were: finalizers would keep the kinds."""
    for api in apis.values():
        for kind in KINDS.values():
            for item in (await api.list(kind.resource))["items"]:
                if item["metadata"].get("finalizers"):
                    whole = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **item}
                    await api.patch(whole, {"metadata": {"finalizers": None}})
            await api.delete(CRD.object(kind.crd["metadata"]["name"]))
        if await api.find(_policies()):
            await api.delete(_policies())
            await api.until_gone(_policies(), seconds=60)
        for kind in KINDS.values():
            await api.until_gone(CRD.object(kind.crd["metadata"]["name"]), seconds=60)
