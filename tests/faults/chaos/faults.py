"""What goes wrong: on the links, with the planes, to the agent. Each fault ends by itself; `lift` ends them all."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress

from crsyncer.errors import SyncError
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.resource import CRD
from tests import planes
from tests.api import Api
from tests.faults.chaos.kinds import GROUP, KINDS
from tests.link.faults import Injection, Request
from tests.link.link import Link

_OBJECTS = GROUP.replace(".", r"\.")
_REASONS = {500: "InternalError", 503: "ServiceUnavailable", 429: "TooManyRequests", 409: "Conflict"}


class Faults:
    """Performs what the schedule asks of links, planes and agent. Each returns "" or why it could not be done."""

    def __init__(self, *, links: dict[str, Link], apis: dict[str, Api], agent: AgentProcess) -> None:
        self._links = links
        self._apis = apis
        self._agent = agent
        self._number = 0
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._actions: dict[str, Callable[..., Awaitable[str | None]]] = {
            "cut": self._cut,
            "half_open": self._half_open,
            "delay": self._delay,
            "throttle": self._throttle,
            "truncate": self._truncate,
            "answer": self._answer,
            "lost_reply": self._lost_reply,
            "restart": self._restart,
            "pause": self._pause,
            "compact": self._compact,
            "crd": self._edit_crds,
            "agent_pause": self._pause_agent,
            "agent_kill": self._kill_agent,
            "agent_stop": self._stop_agent,
            "agent_forget": self._forget_agent,
        }

    async def perform(self, action: str, **arguments: object) -> str:
        """One fault, from its beginning to its end. Faults of one plane, or of the agent, follow each other."""
        of = {"restart": "plane", "pause": "plane", "compact": "plane", "cut": "wire", "half_open": "wire"}
        one_at_a_time = "agent" if action.startswith("agent") else f"{of.get(action, action)} {arguments.get('side')}"
        async with self._locks[one_at_a_time]:
            try:
                return await self._actions[action](**arguments) or ""
            except (SyncError, OSError, subprocess.TimeoutExpired) as error:
                return f"{type(error).__name__}: {error}"

    async def lift(self) -> None:
        """All is well again, and the agent runs."""
        for link in self._links.values():
            link.heal()
            if not await asyncio.to_thread(link.plane.healthy):
                for component in link.plane.pids():
                    planes.resume(link.plane, component)
                await asyncio.to_thread(link.plane.start)
        if not self._agent.running:
            await self._agent.start(ready=False)

    async def _cut(self, side: str, seconds: float) -> None:
        await self._wire(self._links[side], self._links[side].cut, seconds)

    async def _half_open(self, side: str, seconds: float) -> None:
        await self._wire(self._links[side], self._links[side].half_open, seconds)

    async def _wire(self, link: Link, fault: Callable[[], None], seconds: float) -> None:
        fault()
        await asyncio.sleep(seconds)
        link.restore()

    async def _delay(self, side: str, seconds: float, late: float) -> None:
        self._links[side].delay(late)
        await asyncio.sleep(seconds)
        self._links[side].delay(0)

    async def _throttle(self, side: str, seconds: float, rate: float) -> None:
        self._links[side].throttle(rate)
        await asyncio.sleep(seconds)
        self._links[side].throttle(None)

    async def _truncate(self, side: str, after: int) -> None:
        self._links[side].truncate(rf"{_OBJECTS}.*watch=true", after)

    async def _answer(self, side: str, seconds: float, status: int, times: int) -> None:
        body = {"kind": "Status", "apiVersion": "v1", "code": status, "reason": _REASONS[status], "message": "chaos"}
        headers = {"Retry-After": "1"} if status == 429 else {}
        when = _writes if status == 409 else None
        pattern = _OBJECTS
        injection = self._links[side].inject(
            pattern, status=status, body={**body, "status": "Failure"}, headers=headers, when=when, times=times
        )
        await self._for(injection, seconds)

    async def _lost_reply(self, side: str, seconds: float, times: int) -> None:
        injection = self._links[side].stall(_OBJECTS, when=_writes, times=times, after_request=True, hang_up=True)
        await self._for(injection, seconds)

    async def _for(self, injection: Injection, seconds: float) -> None:
        await asyncio.sleep(seconds)
        injection.remove()

    async def _restart(self, side: str) -> None:
        await asyncio.to_thread(self._links[side].plane.restart, "apiserver")

    async def _pause(self, side: str, seconds: float) -> None:
        await asyncio.to_thread(planes.pause, self._links[side].plane)
        await asyncio.sleep(seconds)
        planes.resume(self._links[side].plane)

    async def _compact(self, side: str) -> None:
        await asyncio.to_thread(planes.compact, self._links[side].plane)

    async def _edit_crds(self, side: str) -> None:
        """A new description of one kind after the other: its storage is made anew, and answers 429 meanwhile."""
        self._number += 1
        kind = list(KINDS.values())[self._number % len(KINDS)]
        operation = {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/description",
            "value": f"edited {self._number} times",
        }
        with suppress(Exception):
            await asyncio.wait_for(self._apis[side].patch(CRD.object(kind.crd["metadata"]["name"]), [operation]), 10)

    async def _pause_agent(self, seconds: float) -> None:
        if self._agent.pid:
            os.kill(self._agent.pid, signal.SIGSTOP)
            await asyncio.sleep(seconds)
            os.kill(self._agent.pid, signal.SIGCONT)

    async def _kill_agent(self, seconds: float) -> None:
        await self._agent.kill()
        await self._start_agent(seconds)

    async def _stop_agent(self, seconds: float) -> str:
        code: int | str = "it does not end"
        begun = await self._agent.ask() is not None
        try:
            code = await self._agent.stop()
        except subprocess.TimeoutExpired:
            await self._agent.kill()
        await self._start_agent(seconds)
        # A process that has not come as far as its own handlers ends by the signal itself.
        return "" if code == 0 or (code == -signal.SIGTERM and not begun) else f"ended with {code}"

    async def _forget_agent(self, seconds: float) -> None:
        await self._agent.kill()
        shutil.rmtree(self._agent.state_dir)
        await self._start_agent(seconds)

    async def _start_agent(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._agent.start(ready=False)


def _writes(request: Request) -> bool:
    return request.method != "GET"
