"""Runs the steps of the demo, for any set of kinds."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from crsyncer.core.model import Side
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.cluster import Cluster
from crsyncer.sandbox.relay import Relay
from crsyncer.sandbox.stories.story import Seen, Story
from crsyncer.sandbox.stories.story_kinds import Json, Kind, content

_MEANING = {0: "healthy", 11: "offline: the robot keeps working offline", 13: "the agent is not running"}


class Steps:
    """Runs the steps once. People and controllers use the API servers directly; only the agent uses the link."""

    def __init__(
        self, story: Story, kinds: list[Kind], clusters: Mapping[Side, Cluster], *, link: Relay, agent: AgentProcess
    ) -> None:
        self._story = story
        self._kinds = kinds
        self._clusters = clusters
        self._link = link
        self._agent = agent
        self._reporting = [kind for kind in kinds if kind.report(1) is not None]
        self._on_robot = [kind for kind in kinds if kind.policy.downstream is Side.ROBOT]
        self._waiting = sum(kind in self._on_robot for kind in self._reporting)
        """How many objects have a status that the cloud does not know, once the link is cut."""

    async def run(self) -> None:
        """Run every step, up to the first that does not hold. Raises Untrue."""
        await self._planes()
        for title, step in (
            (
                "The same CRDs are applied to both sides; the robot's annotations define the sync",
                self._apply,
            ),
            ("The agent starts on the robot, with a link to the cloud", self._start),
            ("Objects that are created on one side appear on the other", self._make),
            ("A controller beside the copy reports a status", self._first_report),
            ("The link is cut", self._cut),
            ("Both sides keep working without the link", self._go_on),
            ("Somebody deletes copies on the robot, still offline", self._delete_copies),
            ("The agent is killed (SIGKILL)", self._kill),
            ("The agent starts again, still offline", self._start_offline),
            ("The link is back", self._restore),
        ):
            self._story.step(title)
            await step()

    async def _planes(self) -> None:
        async def look(side: Side) -> Seen:
            return Seen(side, f"kube-apiserver {await self._clusters[side].version()}", holds=True)

        await self._story.expect("both API servers answer", *(partial(look, side) for side in Side))

    async def _apply(self) -> None:
        for kind in self._kinds:
            self._story.says("apply", f"{kind.policy.resource}: {_described(kind)}")
            await asyncio.gather(*(cluster.add_crd(kind.crd) for cluster in self._clusters.values()))

        async def look(side: Side) -> Seen:
            served = sum([await self._clusters[side].serves(kind.resource) for kind in self._kinds])
            return Seen(side, f"serves {served} of {len(self._kinds)}", served == len(self._kinds))

        await self._story.expect("both API servers serve every kind", *(partial(look, side) for side in Side))

    async def _start(self) -> None:
        await self._agent.start()
        self._story.says("agent", f"crsyncer run, process {self._agent.pid}")
        await self._agent_says("healthy, every kind syncing", partial(self._in_sync, objects=0))

    async def _make(self) -> None:
        for kind in self._kinds:
            for number in (1, 2):
                made = await self._clusters[kind.policy.upstream].create(kind.resource, kind.object(number, 1))
                self._story.says(kind.policy.upstream, f"creates {_shown(kind, made)}")
        await self._story.expect(
            "each has a copy with the same content on the other side",
            *(partial(self._copy_has, kind, number, 1) for kind in self._kinds for number in (1, 2)),
        )

    async def _first_report(self) -> None:
        await self._report(1)
        for kind in self._kinds:
            if kind not in self._reporting:
                self._story.says("note", f"{kind.name} have no status: their schema keeps none")
        await self._story.expect(
            "the original has the same status",
            *(partial(self._original_has, kind, 1) for kind in self._reporting),
        )
        await self._agent_says("healthy, nothing waits", partial(self._in_sync, objects=2))
        await self._status(0)

    async def _cut(self) -> None:
        self._link.cut()
        self._story.says("link", "every connection is reset, new ones are refused")
        await self._agent_says("the agent notices", lambda status: status["health"] == "offline")
        await self._status(11)

    async def _go_on(self) -> None:
        for kind in self._kinds:
            cluster = self._clusters[kind.policy.upstream]
            changed = await cluster.patch(kind.resource, kind.object(1, 1), kind.content(2))
            self._story.says(kind.policy.upstream, f"changes {_shown(kind, changed)}")
            await cluster.delete(kind.resource, kind.object(2, 1))
            self._story.says(kind.policy.upstream, f"deletes {_named(kind, 2)}")
        await self._report(2)
        await self._story.expect(
            f"nothing is synced, nothing is lost: {self._waiting} in the outbox, the copies are unchanged",
            self._waits,
            *(partial(self._copy_has, kind, number, 1) for kind in self._kinds for number in (1, 2)),
            *(partial(self._original_has, kind, 1) for kind in self._reporting),
        )

    async def _delete_copies(self) -> None:
        if not self._on_robot:
            self._story.says("note", "no kind has copies on the robot")
            return
        robot = self._clusters[Side.ROBOT]
        old = {}
        for kind in self._on_robot:
            copy = await robot.get(kind.resource, kind.object(1, 1))
            old[kind.name] = copy["metadata"]["uid"]
            await robot.delete(kind.resource, copy)
            self._story.says(Side.ROBOT, f"deletes {_named(kind, 1)}, uid {old[kind.name][:8]}…")

        async def look(kind: Kind) -> Seen:
            found = await robot.find(kind.resource, kind.object(1, 1))
            if found is None:
                return Seen(Side.ROBOT, f"has no {_named(kind, 1)}", holds=False)
            uid = found["metadata"]["uid"]
            same = content(found) == kind.content(1)
            return Seen(Side.ROBOT, f"{_shown(kind, found)}, uid {uid[:8]}…", same and uid != old[kind.name])

        await self._story.expect(
            "the agent creates the copies again, from the last known state of the cloud",
            *(partial(look, kind) for kind in self._on_robot),
        )
        await self._report(3, kinds=self._on_robot)
        await self._story.expect("only the newest status of each object waits", self._waits)

    async def _kill(self) -> None:
        await self._agent.kill()
        self._story.says("agent", "is killed, without a clean stop")
        await self._status(13)

    async def _start_offline(self) -> None:
        await self._agent.start()
        self._story.says("agent", f"crsyncer run, process {self._agent.pid}")
        await self._agent_says(
            "the agent reports that the cloud is offline", lambda status: status["health"] == "offline"
        )
        await self._story.expect("the waiting statuses have survived", self._waits)
        await self._status(11)

    async def _restore(self) -> None:
        await self._link.restore()
        self._story.says("link", "connections are relayed again")

        async def gone(kind: Kind) -> Seen:
            side = kind.policy.downstream
            found = await self._clusters[side].find(kind.resource, kind.object(2, 1))
            return Seen(side, f"{'still has' if found else 'has no'} {_named(kind, 2)}", found is None)

        await self._story.expect(
            "both sides agree: the last spec, the last status, and deleted objects are gone",
            *(partial(self._copy_has, kind, 1, 2) for kind in self._kinds),
            *(partial(self._original_has, kind, 3 if kind in self._on_robot else 2) for kind in self._reporting),
            *(partial(gone, kind) for kind in self._kinds),
        )
        await self._agent_says("healthy, nothing waits", partial(self._in_sync, objects=1))
        await self._status(0)

    # Parts of steps

    def _in_sync(self, status: Json, *, objects: int) -> bool:
        """Whether nothing waits, and so many objects of each kind are on the robot."""
        syncing = [kind for kind in status["kinds"] if kind["state"] == "syncing" and not any(kind["pending"].values())]
        counted = [kind["objects"]["robot"] for kind in syncing] == [objects] * len(self._kinds)
        return status["health"] == "healthy" and counted and not status["outbox"]["depth"]

    async def _report(self, number: int, *, kinds: list[Kind] | None = None) -> None:
        """Write the status of each first copy, as its controller does."""
        for kind in self._reporting:
            if kinds is not None and kind not in kinds:
                continue
            side = kind.policy.downstream
            status = kind.report(number)
            subresource = "status" if kind.subresource else ""
            change = {"status": status}
            await self._clusters[side].patch(kind.resource, kind.object(1, 1), change, subresource=subresource)
            self._story.says(side, f"reports {_named(kind, 1)} status {_json(status)}")

    async def _copy_has(self, kind: Kind, number: int, spec: int) -> Seen:
        side = kind.policy.downstream
        found = await self._clusters[side].find(kind.resource, kind.object(number, 1))
        if found is None:
            return Seen(side, f"has no {_named(kind, number)}", holds=False)
        return Seen(side, _shown(kind, found), content(found) == kind.content(spec))

    async def _original_has(self, kind: Kind, report: int) -> Seen:
        side = kind.policy.upstream
        found = (await self._clusters[side].get(kind.resource, kind.object(1, 1))).get("status")
        holds = kind.synced(found) == kind.synced(kind.report(report))
        return Seen(side, f"{_named(kind, 1)} status {_json(found)}", holds)

    async def _waits(self) -> Seen:
        status = await self._agent.ask()
        depth = status["outbox"]["depth"] if status else None
        return Seen("agent", f"{depth} in the outbox", depth == self._waiting)

    async def _agent_says(self, what: str, good: Callable[[Json], bool]) -> None:
        await agent_says(self._story, self._agent, what, good)

    async def _status(self, code: int) -> None:
        """Show the output of `crsyncer status`, and check its exit code."""
        screen = ""

        async def look() -> Seen:
            nonlocal screen
            ended, screen, _ = await self._agent.crsyncer("status")
            return Seen("status", f"crsyncer status ends with {ended}", ended == code)

        await self._story.expect(f"exit code {code} ({_MEANING[code]})", look)
        self._story.quotes(f"\n{screen.rstrip()}")


async def agent_says(story: Story, agent: AgentProcess, what: str, good: Callable[[Json], bool]) -> None:
    """Expect that the agent's status document becomes good. Raises Untrue."""

    async def look() -> Seen:
        status = await agent.ask()
        if status is None:
            return Seen("agent", "does not answer", holds=False)
        states = Counter(kind["state"] for kind in status["kinds"])
        kinds = ", ".join(f"{number} of {states.total()} kinds {state}" for state, number in states.items())
        return Seen("agent", f"{status['health']}; {kinds or 'no kinds'}", good(status))

    await story.expect(what, look)


def _described(kind: Kind) -> str:
    policy = kind.policy
    words = [f"spec from the {policy.upstream}"]
    if policy.filtered:
        words.append(f"those labelled {policy.robot}")
    if policy.subtree is not None:
        words.append(f"status.{policy.subtree} only")
    if not kind.subresource:
        words.append("no status subresource")
    if not policy.namespaced:
        words.append("cluster-scoped")
    return ", ".join(words)


def _named(kind: Kind, number: int) -> str:
    return f"{kind.name}/{kind.object(number, 1)['metadata']['name']}"


def _shown(kind: Kind, obj: Json) -> str:
    shown = content(obj)
    return f"{kind.name}/{obj['metadata']['name']} {_json(shown.get('spec', shown))}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
