"""Runs the steps of `crsyncer demo --fleet`: what a placement does for robots, and what it does not do."""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.core.content.replica_mark import replica_annotation
from crsyncer.core.reports.text import count
from crsyncer.sandbox.resource import NAMESPACE
from crsyncer.sandbox.stories.fleet_cast import (
    BAD,
    COPY,
    CRD,
    DECISIONS,
    NAVIGATIONS,
    PLACEMENT,
    PLACEMENTS,
    REPORTS,
    ROBOTS,
    SOURCE,
    FleetCast,
    Json,
    replica,
)
from crsyncer.sandbox.stories.fleet_looks import copy_is, counts_are, ends_with, placement_is, shown
from crsyncer.sandbox.stories.story import Seen, Story

CANARY, OTHER, AWAY = NAMES = ("amr-1", "amr-2", "amr-3")
_LABELS = {CANARY: {"canary": "yes", "site": "north"}, OTHER: {"site": "south"}, AWAY: {"site": "north"}}
_NEW = tuple(f"new-{number}" for number in range(1, 11))
_DELETED = _NEW[1:]
_DECISION = DECISIONS.object("nav-0")
_OVERRIDES = [
    {
        "robotSelector": {"matchLabels": {"site": "south"}},
        "steps": [{"path": "/spec/map", "set": {"value": "hall-b"}}],
    }
]
_ROLLOUT = {
    "groups": [{"matchLabels": {"canary": "yes"}}, {}],
    "maxConcurrency": 1,
    "minReadySeconds": 1,
    "progressDeadlineSeconds": 12,
}
_REMOVAL_SECONDS = 90.0
"""A step with a removal takes so long at most: the replica of a Robot that is gone goes after 30 s."""


class FleetSteps:
    """Runs the steps once. `crds`: files with the fleet's own kinds and the Robot."""

    def __init__(self, story: Story, cast: FleetCast, crds: Sequence[Path]) -> None:
        self._story = story
        self._cast = cast
        self._cloud = cast.cloud
        self._crds = crds

    async def run(self) -> None:
        """Run every step, up to the first that does not hold. Raises Untrue."""
        await self._planes()
        for title, step in (
            ("The cloud gets the fleet's kinds, three Robots and the controller; the agents start", self._start),
            ("One object and one RobotPlacement: every robot has it", self._place),
            (f"The robots of a site get another map, and that is only {OTHER}", self._customise),
            (f"The link of {AWAY} is cut; from now on changes are rolled out, canaries first", self._cut),
            (f"Release {BAD} is bad: the canary fails, and nobody else gets it", self._spoil),
            ("Release 2.1 is good: first the canary gets it, then the others that are there", self._mend),
            (f"The Robot {OTHER} is deleted; somebody may still have second thoughts", self._retire),
            (f"The link of {AWAY} is back: it catches up", self._restore),
            ("Ten Robots are added, whose agents do not run yet", self._add),
            (f"30 s after its Robot, the object of {OTHER} goes", self._retired),
            ("Nine Robots vanish at once: nothing is removed before a human has seen it", self._lose),
            ("A human releases the hold", self._release),
        ):
            self._story.step(title)
            await step()

    async def _planes(self) -> None:
        async def look(who: str) -> Seen:
            cluster = self._cloud if who == "cloud" else self._cast.robots[who].cluster
            return Seen(who, f"kube-apiserver {await cluster.version()}", holds=True)

        await self._story.expect("all API servers answer", *(partial(look, who) for who in ("cloud", *NAMES)))

    async def _start(self) -> None:
        robots = self._cast.robots.values()
        fleet = [crd for path in self._crds for crd in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
        await asyncio.gather(
            *(self._cloud.add_crd(crd) for crd in (CRD, *fleet)), *(each.cluster.add_crd(CRD) for each in robots)
        )
        for name in NAMES:
            await self._cloud.create(NAMESPACE, NAMESPACE.object(robot_namespace(name)))
            await self._cloud.create(ROBOTS, ROBOTS.object(name, labels=_LABELS[name]))
            self._story.says("cloud", f"creates the Robot {name}: {shown(_LABELS[name])}")
        self._cast.controller.start()
        self._story.says("fleet", f"crsyncer fleet run, process {self._cast.controller.pid}")
        await asyncio.gather(*(each.agent.start() for each in robots))
        for each in robots:
            self._story.says(each.name, f"crsyncer run, process {each.agent.pid}")
        await self._story.expect("every agent reports to the cloud", *(partial(self._reports, name) for name in NAMES))

    async def _place(self) -> None:
        await self._cloud.create(NAVIGATIONS, SOURCE)
        self._story.says("cloud", f"creates navigations/nav {shown(SOURCE['spec'])}, and this placement:")
        await self._cloud.create(PLACEMENTS, PLACEMENT)
        self._story.quotes(f"\n{yaml.safe_dump(PLACEMENT['spec'], sort_keys=False, width=90).rstrip()}\n")
        await self._story.expect(
            "each robot's own API server has the object, and their controllers say that they drive with it",
            *(partial(self._copy_is, name, "1.0", "hall-a") for name in NAMES),
            partial(counts_are, self._cloud, selected=3, replicas=3),
        )

    async def _customise(self) -> None:
        await self._edit_placement({"overrides": _OVERRIDES})
        await self._story.expect(
            f"only {OTHER} has another map, and only its object was written again; the agents say who has what",
            partial(self._copy_is, OTHER, "1.0", "hall-b"),
            *(partial(self._copy_is, name, "1.0", "hall-a") for name in (CANARY, AWAY)),
            *(partial(self._was_written, name, 2 if name == OTHER else 1) for name in NAMES),
            partial(counts_are, self._cloud, selected=3, ready=3),
        )

    async def _cut(self) -> None:
        self._cast.link.cut()
        self._story.says("link", f"every connection of {AWAY} is reset, new ones are refused")
        await self._cast.controller.stop()
        await self._cast.backdate_report(AWAY)
        self._cast.controller.start()
        self._story.says(
            "note",
            "A robot is offline 11 minutes after its last report. The demo does not wait: it dates that report back,"
            " and starts the controller again, which finds everything as it was.",
        )
        await self._edit_placement({"rollout": _ROLLOUT})
        await self._story.expect(
            f"{AWAY} is offline, has the last content, and nothing was written",
            partial(counts_are, self._cloud, selected=3, offline=1, ready=3),
            *(partial(self._was_written, name, 2 if name == OTHER else 1) for name in NAMES),
        )

    async def _spoil(self) -> None:
        await self._edit_source(BAD)
        await self._story.expect(
            "the canary crashes and has failed; the rollout stops there",
            partial(self._copy_is, CANARY, BAD, "hall-a", "CRASHED"),
            partial(self._states_are, {CANARY: "Failed", OTHER: "Waiting", AWAY: "Deferred"}),
            partial(self._rolled_out_is, "False", "TooManyFailures"),
            partial(self._copy_is, OTHER, "1.0", "hall-b"),
            partial(self._copy_is, AWAY, "1.0", "hall-a"),
        )
        await self._status(12)

    async def _mend(self) -> None:
        await self._edit_source("2.1")
        await self._story.expect(
            f"the canary drives, {OTHER} too, and {AWAY} keeps what it has until it is back",
            partial(self._copy_is, CANARY, "2.1", "hall-a"),
            partial(self._copy_is, OTHER, "2.1", "hall-b"),
            partial(self._states_are, {CANARY: "Ready", OTHER: "Ready", AWAY: "Deferred"}),
            partial(self._rolled_out_is, "True", "Deferred"),
            partial(self._copy_is, AWAY, "1.0", "hall-a"),
            seconds=_REMOVAL_SECONDS,
        )
        await self._status(0)

    async def _retire(self) -> None:
        await self._delete_robot(OTHER)
        await self._story.expect(
            "it is selected no more, and its object stays for 30 s",
            partial(counts_are, self._cloud, selected=2),
            partial(self._copy_is, OTHER, "2.1", "hall-b"),
        )

    async def _restore(self) -> None:
        await self._cast.link.restore()
        agent = self._cast.robots[AWAY].agent
        await agent.stop()
        await agent.start()
        self._story.says("link", "connections are relayed again")
        self._story.says("note", "The agent is started again: it reports at once then, as after 11 real minutes.")
        await self._story.expect(
            "it is online, and gets its turn",
            partial(self._copy_is, AWAY, "2.1", "hall-a"),
            partial(counts_are, self._cloud, selected=2, ready=2),
            partial(self._rolled_out_is, "True", "RolledOut"),
        )

    async def _add(self) -> None:
        await asyncio.gather(*(self._cloud.create(ROBOTS, ROBOTS.object(name)) for name in _NEW))
        self._story.says("cloud", f"creates the Robots {_NEW[0]} to {_NEW[-1]}")
        await self._story.expect(
            "each has its object and a namespace in the cloud",
            partial(self._have_replicas, _NEW),
            partial(counts_are, self._cloud, selected=12, ready=2, unreported=10),
        )

    async def _retired(self) -> None:
        await self._story.expect(
            "it is gone in the cloud and on the robot; nobody else's is",
            partial(self._copy_is_gone, OTHER),
            partial(self._have_replicas, (CANARY, AWAY, *_NEW), without=(OTHER,)),
            seconds=_REMOVAL_SECONDS,
        )

    async def _lose(self) -> None:
        await asyncio.gather(*(self._delete_robot(name, announced=False) for name in _DELETED))
        self._story.says("cloud", f"deletes the Robots {_DELETED[0]} to {_DELETED[-1]}")
        await self._story.expect(
            "more than max(5, 20 %) of the robots within a minute is a mistake, until a human says otherwise",
            partial(self._holds, len(_DELETED)),
            partial(self._have_replicas, (CANARY, AWAY, *_NEW)),
        )
        await self._status(12)

    async def _release(self) -> None:
        ids = [each["id"] for each in await self._shown_holds()]
        self._story.says("cloud", f"crsyncer fleet release {' '.join(ids)} --yes")
        _, out, error = await self._cast.crsyncer("release", *ids, "--yes")
        self._story.says("release", out.strip() or error.strip())
        await self._story.expect(
            "exactly these nine are removed",
            partial(self._holds, 0),
            partial(self._have_replicas, (CANARY, AWAY, _NEW[0]), without=_DELETED),
            *(partial(self._copy_is, name, "2.1", "hall-a") for name in (CANARY, AWAY)),
        )
        await self._status(0)

    # Parts of steps

    async def _edit_source(self, release: str) -> None:
        await self._cloud.patch(NAVIGATIONS, SOURCE, {"spec": {"release": release}})
        self._story.says("cloud", f"changes navigations/nav: release {release}")

    async def _edit_placement(self, spec: Json) -> None:
        await self._cloud.patch(PLACEMENTS, PLACEMENT, {"spec": spec})
        self._story.says("cloud", f"changes the placement: {json.dumps(spec)}")

    async def _delete_robot(self, name: str, *, announced: bool = True) -> None:
        await self._cloud.delete(ROBOTS, ROBOTS.object(name))
        if announced:
            self._story.says("cloud", f"deletes the Robot {name}")

    async def _reports(self, name: str) -> Seen:
        found = await self._cloud.find(REPORTS, REPORTS.object(name, namespace=robot_namespace(name)))
        if found is None:
            return Seen("cloud", f"{name} has not reported", holds=False)
        return Seen("cloud", f"{name} reports: {found['spec']['health']}", holds=True)

    async def _copy_is(self, name: str, release: str, place: str, phase: str = "DRIVING") -> Seen:
        return await copy_is(self._cast.robots[name], release, place, phase)

    async def _copy_is_gone(self, name: str) -> Seen:
        found = await self._cast.robots[name].cluster.find(NAVIGATIONS, COPY)
        return Seen(name, f"{'has no' if found is None else 'still has'} navigations/nav", found is None)

    async def _was_written(self, name: str, times: int) -> Seen:
        found = await self._cloud.find(NAVIGATIONS, replica(name))
        mark = None if found is None else replica_annotation(found)
        number = None if mark is None else mark["n"]
        return Seen("cloud", f"the object of {name} was written {count(number or 0, 'time')}", number == times)

    async def _have_replicas(self, names: Sequence[str], *, without: Sequence[str] = ()) -> Seen:
        there = [name for name in (*names, *without) if await self._cloud.find(NAVIGATIONS, replica(name))]
        return Seen("cloud", f"has the objects of {', '.join(there) or 'no robot'}", there == list(names))

    async def _rolled_out_is(self, value: str, reason: str) -> Seen:
        def found(status: Json) -> tuple[str, str]:
            each = next(each for each in status["conditions"] if each["type"] == "RolledOut")
            return each["status"], each["reason"]

        return await placement_is(
            self._cloud,
            lambda status: found(status) == (value, reason),
            lambda status: f"RolledOut is {' '.join(found(status))}",
        )

    async def _states_are(self, wanted: Json) -> Seen:
        found = await self._cloud.find(DECISIONS, _DECISION)
        states = {each["name"]: each["state"] for each in (found or {}).get("robots", ())}
        return Seen("decision", shown(states), states == wanted)

    async def _shown_holds(self) -> list[Json]:
        status = (await self._cloud.get(PLACEMENTS, PLACEMENT)).get("status") or {}
        found: list[Json] = status.get("holds") or []
        return found

    async def _holds(self, objects: int) -> Seen:
        holds = await self._shown_holds()
        text = "; ".join(f"hold {each['id']}: {each['message']}" for each in holds)
        return Seen("placement", text or "nothing is held", sum(each["objects"] for each in holds) == objects)

    async def _status(self, code: int) -> None:
        """Show the output of `crsyncer fleet status`, and check its exit code."""
        await ends_with(self._story, "crsyncer fleet status", code, partial(self._cast.crsyncer, "status"))
