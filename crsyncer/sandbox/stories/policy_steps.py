"""Runs the steps of `crsyncer demo --policy`: a kind, and what its SyncPolicy makes of its objects."""

import asyncio
import base64
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from crsyncer.core.model import Side
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.cluster import Cluster
from crsyncer.sandbox.relay import Relay
from crsyncer.sandbox.resource import NAMESPACE, Resource
from crsyncer.sandbox.stories.story import Seen, Story
from crsyncer.sandbox.stories.story_steps import agent_says

Json = dict[str, Any]

_FILE = Path(__file__).parent / "policy_demo" / "orders.yaml"
_POLICY = Resource("crsyncer.cloudrobotics.com", "v1alpha1", "syncpolicies", "SyncPolicy", namespaced=False)
_SECRET = Resource("", "v1", "secrets", "Secret")
_SHOP, _PLACE = "toys", "orders"
"""The namespace of the orders in the cloud, and on the robot."""
_FINALIZER = "shop.example.com/driving"
_URL = "http://localhost:8080/"


class PolicySteps:
    """Runs the steps once. `crd` is the file with the CRD of SyncPolicies."""

    def __init__(
        self, story: Story, clusters: Mapping[Side, Cluster], *, link: Relay, agent: AgentProcess, crd: Path
    ) -> None:
        self._story = story
        self._cloud, self._robot = clusters[Side.CLOUD], clusters[Side.ROBOT]
        self._link = link
        self._agent = agent
        self._policy_crd = crd
        self._crd, self._policy = yaml.safe_load_all(_FILE.read_text())
        self._orders = Resource.of_crd(self._crd)
        spec = {"file": "plan-7.pdf", "loginSecret": "login"}
        self._order = self._orders.object("42", namespace=_SHOP, spec=spec)
        self._copy = self._orders.object("toys-42", namespace=_PLACE)
        self._login = _SECRET.object("login", namespace=_SHOP)
        self._login_copy = _SECRET.object("login", namespace=_PLACE)

    async def run(self) -> None:
        """Run every step, up to the first that does not hold. Raises Untrue."""
        for title, step in (
            ("The same CRD is applied to both sides; a SyncPolicy on the robot says what is synced", self._apply),
            ("The agent starts on the robot, with a link to the cloud", self._start),
            ("A shop makes an order that names a Secret", self._make),
            ("The link is cut", self._cut),
            ("The shop rotates the Secret; somebody edits the copy on the robot", self._go_on),
            ("The link is back, and the shop changes the order", self._restore),
            ("The policy's template changes", self._rename),
            ("The agent's store is deleted", self._forget),
            ("The shop deletes the order while the robot still drives", self._delete),
            ("The robot has stopped", self._finish),
        ):
            self._story.step(title)
            await step()

    async def _apply(self) -> None:
        both = (self._cloud, self._robot)
        await asyncio.gather(*(cluster.add_crd(self._crd) for cluster in both))
        await self._robot.add_crd(yaml.safe_load(self._policy_crd.read_text()))
        await self._robot.create(_POLICY, self._policy)
        self._story.quotes(f"\n{yaml.safe_dump(self._policy['spec'], sort_keys=False).rstrip()}")

        async def look() -> Seen:
            served = await self._robot.serves(_POLICY) and await self._robot.serves(self._orders)
            return Seen("robot", "serves SyncPolicies and orders" if served else "does not serve both", served)

        await self._story.expect("the robot serves them", look)

    async def _start(self) -> None:
        await self._agent.start()
        self._story.says("agent", f"crsyncer run, process {self._agent.pid}")
        await self._in_sync("orders and the Secrets that they name are synced because of the policy")

    async def _make(self) -> None:
        for cluster, name in ((self._cloud, _SHOP), (self._robot, _PLACE)):
            await cluster.create(NAMESPACE, NAMESPACE.object(name))
        await self._cloud.create(_SECRET, {**self._login, "data": {"password": _encoded("first")}})
        await self._cloud.create(self._orders, self._order)
        self._story.says("cloud", "creates the Secret toys/login, and the order toys/42: file plan-7.pdf, Secret login")
        await self._story.expect(
            "the order has a name, a namespace and a URL of the robot's own, and the Secret is beside it",
            partial(self._copy_has, self._copy, lambda spec: spec.get("url") == f"{_URL}plan-7.pdf"),
            partial(self._password_is, "first"),
        )

    async def _cut(self) -> None:
        self._link.cut()
        self._story.says("link", "every connection is reset, new ones are refused")
        await self._says("the agent notices", lambda status: status["health"] == "offline")

    async def _go_on(self) -> None:
        await self._cloud.patch(_SECRET, self._login, {"data": {"password": _encoded("second")}})
        self._story.says("cloud", "changes the password in toys/login")
        await self._robot.patch(self._orders, self._copy, {"spec": {"note": "use the back door"}})
        self._story.says("robot", "adds a note to orders/toys-42")
        await self._story.expect(
            "the note stays, and the old password is there",
            partial(self._copy_has, self._copy, lambda spec: spec.get("note") == "use the back door"),
            partial(self._password_is, "first"),
        )

    async def _restore(self) -> None:
        await self._cloud.patch(self._orders, self._order, {"spec": {"file": "plan-8.pdf"}})
        self._story.says("cloud", "changes toys/42: file plan-8.pdf")
        await self._link.restore()
        self._story.says("link", "connections are relayed again")
        await self._story.expect(
            "both changes arrive, and the robot's own note is still there",
            partial(
                self._copy_has,
                self._copy,
                lambda spec: (spec.get("url"), spec.get("note")) == (f"{_URL}plan-8.pdf", "use the back door"),
            ),
            partial(self._password_is, "second"),
        )

    async def _rename(self) -> None:
        uid = await self._uid()
        naming = {"namespace": _PLACE, "name": "{name}-of-{namespace}"}
        await self._robot.patch(_POLICY, self._policy, {"spec": {"naming": naming}})
        self._story.says("robot", 'changes the policy: naming.name is "{name}-of-{namespace}"')
        await self._in_sync("the agent follows the policy as it is now")
        other = self._orders.object("43", namespace=_SHOP, spec={"file": "plan-9.pdf"})
        await self._cloud.create(self._orders, other)
        self._story.says("cloud", "creates toys/43")
        await self._story.expect(
            "new copies have new names, and the old copy is where it was",
            partial(self._copy_has, self._orders.object("43-of-toys", namespace=_PLACE), lambda spec: "url" in spec),
            partial(self._is_still, uid),
            partial(self._password_is, "second"),
        )

    async def _forget(self) -> None:
        uid = await self._uid()
        await self._agent.stop()
        for file in self._agent.state_dir.glob("state.db*"):
            file.unlink()
        self._story.says("agent", "is stopped, its database is deleted, and it is started again")
        await self._agent.start()
        await self._in_sync("it finds its copies by their marks")
        await self._story.expect(
            "the copies are where they were", partial(self._is_still, uid), partial(self._password_is, "second")
        )

    async def _delete(self) -> None:
        await self._robot.patch(self._orders, self._copy, {"metadata": {"finalizers": [_FINALIZER]}})
        self._story.says("robot", f"its application holds orders/toys-42 by the finalizer {_FINALIZER}")
        await self._cloud.delete(self._orders, self._order)
        self._story.says("cloud", "deletes toys/42")
        await self._story.expect(
            "the copy is being deleted, and the order waits in the cloud until the robot has stopped",
            partial(self._terminates, Side.ROBOT, self._copy),
            partial(self._terminates, Side.CLOUD, self._order),
        )

    async def _finish(self) -> None:
        status = {"status": {"phase": "STOPPED"}}
        await self._robot.patch(self._orders, self._copy, status, subresource="status")
        await self._story.expect("the last status is in the cloud", self._has_stopped)
        await self._robot.patch(self._orders, self._copy, {"metadata": {"finalizers": None}})
        self._story.says("robot", "its application lets orders/toys-42 go")
        await self._story.expect(
            "both have gone, and the copy of the Secret with them",
            partial(self._is_gone, Side.ROBOT, self._copy),
            partial(self._is_gone, Side.CLOUD, self._order),
            self._has_no_secret,
        )
        await self._in_sync("nothing waits")

    # Parts of steps

    def _at(self, side: Side) -> Cluster:
        return self._cloud if side is Side.CLOUD else self._robot

    async def _uid(self) -> str:
        return str((await self._robot.get(self._orders, self._copy))["metadata"]["uid"])

    async def _copy_has(self, copy: Json, good: Callable[[Json], bool]) -> Seen:
        found = await self._robot.find(self._orders, copy)
        name = _named(copy)
        if found is None:
            return Seen("robot", f"has no {name}", holds=False)
        spec = found["spec"]
        shown = ", ".join(f"{field} {spec[field]}" for field in ("url", "note") if field in spec)
        return Seen("robot", f"{name}: {shown or 'no url'}", good(spec))

    async def _password_is(self, password: str) -> Seen:
        """The values are compared, and not shown."""
        found = await self._robot.find(_SECRET, self._login_copy)
        if found is None:
            return Seen("robot", "has no Secret orders/login", holds=False)
        same = (found.get("data") or {}).get("password") == _encoded(password)
        return Seen("robot", f"Secret orders/login: {'the' if same else 'not the'} {password} password", same)

    async def _has_no_secret(self) -> Seen:
        found = await self._robot.find(_SECRET, self._login_copy)
        return Seen("robot", f"{'still has' if found else 'has no'} Secret orders/login", found is None)

    async def _is_still(self, uid: str) -> Seen:
        found = await self._robot.find(self._orders, self._copy)
        same = found is not None and found["metadata"]["uid"] == uid
        return Seen("robot", f"orders/toys-42 is {'the same object' if same else 'another object, or gone'}", same)

    async def _terminates(self, side: Side, obj: Json) -> Seen:
        found = await self._at(side).find(self._orders, obj)
        waits = found is not None and "deletionTimestamp" in found["metadata"]
        finalizers = ", ".join((found or {"metadata": {}})["metadata"].get("finalizers") or ["none"])
        text = f"{_named(obj)} is being deleted; finalizers: {finalizers}" if waits else f"{_named(obj)} does not wait"
        return Seen(side, text, waits)

    async def _has_stopped(self) -> Seen:
        found = await self._cloud.find(self._orders, self._order)
        phase = ((found or {}).get("status") or {}).get("phase")
        return Seen("cloud", f"toys/42: phase {phase}", phase == "STOPPED")

    async def _is_gone(self, side: Side, obj: Json) -> Seen:
        found = await self._at(side).find(self._orders, obj)
        return Seen(side, f"{'still has' if found else 'has no'} {_named(obj)}", found is None)

    async def _in_sync(self, what: str) -> None:
        def good(status: Json) -> bool:
            kinds = [kind for kind in status["kinds"] if kind["policy"]]
            waits = any(kind["state"] != "syncing" or any(kind["pending"].values()) for kind in kinds)
            return status["health"] == "healthy" and bool(kinds) and not waits and not status["outbox"]["depth"]

        await self._says(what, good)

    async def _says(self, what: str, good: Callable[[Json], bool]) -> None:
        await agent_says(self._story, self._agent, what, good)


def _named(obj: Json) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _encoded(password: str) -> str:
    return base64.b64encode(password.encode()).decode()
