"""What a SyncPolicy costs: five steps, one of them CEL, and a Secret for each object, beside the same without it."""

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import yaml

from crsyncer.cli.crds import SYNC_POLICY
from crsyncer.core.requests.calls import SYNC_POLICIES
from crsyncer.sandbox.resource import Resource
from tests.bench.stage import Counting, Figure, Stage, cpu_seconds, rss_mib, running

_SECRETS = Resource("", "v1", "secrets", "Secret", namespaced=True)
_STEPS = (
    {"path": "/spec/mode", "set": {"value": "robot"}},
    {"path": "/spec/internal", "remove": True},
    {"path": "/spec/url", "regex": {"pattern": "^http:(.*)", "replacement": "https:$1"}},
    {"path": "/spec/title", "template": "{namespace}-{name}-{/spec/x}"},
    {"path": "/spec/x", "cel": "value + self.spec.offset"},
)
_IDLE_SECONDS = 60
_SECONDS = 1_800.0


async def figures(on: Stage, *, count: int) -> AsyncIterator[Figure]:
    """Many objects at once, an idle minute, and memory: without a policy, then with one."""
    definition = yaml.safe_load(SYNC_POLICY.read_text())
    for api in (on.cloud, on.robot):
        api.learn(_SECRETS)
    try:
        for named in (False, True):
            await on.fresh_kind()
            await on.each(count, lambda i: on.cloud.create(_secret(i)))
            if named:
                await on.robot.apply_crd(definition)
                await on.robot.create(_policy(on))
            async for figure in _measured(on, count=count, named=named):
                yield figure
            await _drop_secrets(on)
    finally:
        if await on.robot.find(definition):
            await on.robot.delete(definition)
            await on.robot.until_gone(definition)


async def _measured(on: Stage, *, count: int, named: bool) -> AsyncIterator[Figure]:
    which = f"{count} objects, {'five steps and a Secret each' if named else 'without a policy'}"
    async with running(on.agent(f"policy-{named}-{on.resource.group}"), on.resource) as agent, _counted(on) as seen:
        before, started = cpu_seconds(agent.pid), time.monotonic()
        await on.each(count, lambda i: on.cloud.create(_goal(on, i)))
        ends = [await each.reach(count, seconds=_SECONDS) for each in (seen if named else seen[:1])]
        yield Figure(f"{which}: all on the robot", "s", (max(ends) - started,))
        await asyncio.sleep(5)
        yield Figure(f"{which}: CPU", "s", (cpu_seconds(agent.pid) - before,))
        before = cpu_seconds(agent.pid)
        await asyncio.sleep(_IDLE_SECONDS)
        yield Figure(f"{which}: CPU, idle, over {_IDLE_SECONDS} s", "s", (cpu_seconds(agent.pid) - before,))
        yield Figure(f"{which}: RSS", "MiB", (rss_mib(agent.pid),))


@contextlib.asynccontextmanager
async def _counted(on: Stage) -> AsyncIterator[tuple[Counting, Counting]]:
    """The objects and the Secrets that arrive at the robot."""

    def is_ours(secret: dict[str, Any]) -> bool:
        return str(secret["metadata"]["name"]).startswith("bench-")

    async with (
        Counting(on.robot, on.resource, lambda _: True) as objects,
        Counting(on.robot, _SECRETS, is_ours) as secrets,
    ):
        yield objects, secrets


def _goal(on: Stage, number: int) -> dict[str, Any]:
    goal = on.goal(f"o{number}")
    more = {"secret": f"bench-{number}", "url": "http://shop.example.com/a", "internal": "x", "offset": 1}
    return goal | {"spec": goal["spec"] | more}


def _secret(number: int) -> dict[str, Any]:
    data = {"password": base64.b64encode(f"word-{number:06}".encode()).decode()}
    return _SECRETS.object(f"bench-{number}", data=data)


def _policy(on: Stage) -> dict[str, Any]:
    related = {
        "id": "secret",
        "origin": "cloud",
        "resource": {"group": "", "resource": "secrets"},
        "object": {"reference": "/spec/secret"},
    }
    return {
        "apiVersion": f"{SYNC_POLICIES.group}/{SYNC_POLICIES.version}",
        "kind": "SyncPolicy",
        "metadata": {"name": "bench"},
        "spec": {
            "resource": {"group": on.resource.group, "resource": on.resource.plural},
            "mutations": {"down": [*_STEPS]},
            "related": [related],
        },
    }


async def _drop_secrets(on: Stage) -> None:
    for api in (on.cloud, on.robot):
        found = (await api.list(_SECRETS, namespace="default"))["items"]
        ours = [each["metadata"]["name"] for each in found if each["metadata"]["name"].startswith("bench-")]
        await on.each(len(ours), lambda i, api=api, ours=ours: api.delete(_SECRETS.object(ours[i])))  # type: ignore[misc]
