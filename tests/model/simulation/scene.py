"""Scenes in the made-up world, and what there is to be seen in them."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crsyncer.core.model import Json, Side
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR
from tests.model.simulation.check import Checker, specs
from tests.model.simulation.journal import Request
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World, Write
from tests.system.bed import crd

SOURCES = ("cloud", "robot")
"""Where specs come from."""


@contextmanager
def scene(seed: int = 0, **kinds: Mapping[str, Any]) -> Iterator[World]:
    """A world in which nothing may happen that must never happen, whatever else a test asserts."""
    with World(seed, kinds=kinds or None) as made:
        checker = Checker(made, specs(made.kinds))
        yield made
        wrong = checker.violations + made.troubles
        assert wrong == [], "\n".join(map(str, wrong))


@contextmanager
def synced(seed: int = 0, *, crds: Reply | None = None) -> Iterator[World]:
    """One unfiltered kind, spec from the cloud; the agent runs, and has made the copy of a.

    `crds`: how the cloud has always answered to whoever asks for a CRD.
    """
    with scene(seed) as made:
        if crds is not None:
            made.inject("cloud", crds, verb="get", part="/customresourcedefinitions/", times=10_000)
        made.start()
        made.cloud.create("a", spec={"x": 1})
        made.settle()
        yield made


def copy(world: World, name: str = "a") -> Json:
    """The robot's object."""
    return world.robot.objects()[name]


def original(world: World, name: str = "a") -> Json:
    """The cloud's object."""
    return world.cloud.objects()[name]


def changes(world: World) -> list[str]:
    """What the agent has changed so far."""
    return [str(write) for write in world.writes if write.before != write.after]


def restart(world: World, *, kill: bool = False, lost: bool = False, seconds: float | None = None) -> None:
    """The agent is stopped, or killed, perhaps loses its store, is started, and settles or goes on for so long."""
    if kill:
        world.crash()
    else:
        world.stop()
    if lost:
        world.lose_database()
    world.start()
    world.settle() if seconds is None else world.pass_time(seconds)


def settle(*worlds: World, seconds: float = 600.0) -> None:
    """Let the agents of worlds that share a cloud go on until none has anything left to do; raises AssertionError."""
    deadline = worlds[0].clock.now + seconds
    done = -1
    while done != (done := sum(len(world.writes) for world in worlds)):
        assert worlds[0].clock.now < deadline, f"not settled within {seconds} s"
        for world in worlds:
            world.settle(seconds=seconds)


def roles(world: World, source: str) -> tuple[Plane, Plane]:
    """Upstream and downstream."""
    return (world.cloud, world.robot) if source == "cloud" else (world.robot, world.cloud)


def row(world: World, plural: str = "goals") -> dict[str, Any]:
    """A kind's row in `status`; {} when it has none."""
    return next((k for k in world.status()["kinds"] if k["resource"].startswith(f"{plural}.")), {})


def state(world: World, plural: str = "goals") -> str:
    """What `status` calls a kind's state; "" where it has no row."""
    return str(row(world, plural).get("state", ""))


def define(world: World, side: str, *, seconds: float | None = None, **keywords: Any) -> None:
    """A side gets the CRD of goals, or another one in its place; the agent goes on for so long, or settles."""
    world.planes[Side(side)].apply(crd(GROUP, **keywords))
    world.settle() if seconds is None else world.pass_time(seconds)


def redefine(world: World, *names: str) -> None:
    """The CRD is deleted, and its objects with it, and both made anew: the CRD, and objects of these names."""
    world.cloud.drop_kind()
    world.cloud.apply(crd(GROUP))
    for name in names:
        world.cloud.create(name, spec={"x": 2})


@contextmanager
def out_of_sight(world: World, how: str) -> Iterator[None]:
    """What happens inside, the agent does not see."""
    if how == "cut":
        world.cut("cloud")
        world.pass_time(60)
        yield
        world.mend("cloud")
    else:
        world.crash()
        yield
        world.start()


def holds(world: World) -> list[tuple[str, int]]:
    """What is held: reason, and how many objects."""
    return [(hold["reason"], hold["objects"]) for hold in world.status()["holds"]]


def release(world: World) -> None:
    """An operator releases every hold."""
    for hold in world.status()["holds"]:
        world.order("release", id=hold["id"])


def names(plane: Plane, kind: str = "goals") -> set[str]:
    """The objects of a kind, without their numbers, and how many there are."""
    found = [name.rstrip("0123456789") for name in plane.objects(kind)]
    return {f"{name} {found.count(name)}" for name in found}


def full_lists(world: World, side: str, since: float = 0.0, *, kind: str = "goals") -> list[Request]:
    """The lists of a kind; one of at most one object only asks for the revision."""
    found = world.journal.asked(side, verb="list", kind=kind, since=since)
    return [request for request in found if request.query.get("limit") != "1"]


def refuse_lists(world: World, fate: Fate | Reply = INTERNAL_ERROR, *, side: Side = Side.CLOUD) -> Rule:
    """A side does not list goals any more, until the rule is removed."""

    def matches(call: Call) -> bool:
        return call.verb == "list" and call.path.endswith("/goals") and dict(call.query).get("limit") != "1"

    rule = Rule(matches, fate, math.inf)
    world.weather[side].add(rule)
    return rule


def travels(world: World, number: int, *, kind: str = "goals", seconds: float = 5.0) -> None:
    """A spec and a status of b reach the other side in so many seconds."""
    if world.cloud.get("b", kind=kind) is None:
        world.cloud.create("b", kind=kind, spec={"x": 0})
        world.pass_time(seconds)
    world.cloud.set("b", kind=kind, spec={"x": number})
    world.robot.set_status("b", {"n": number}, kind=kind)
    world.pass_time(seconds)
    assert world.robot.objects(kind)["b"]["spec"] == {"x": number}
    assert world.cloud.objects(kind)["b"]["status"] == {"n": number}


def confine(world: World, rights: str) -> None:
    """The cloud lets the agent see everything, only what an account that may "list and watch" sees, or less."""
    questions = {"list and watch": 1, "no discovery": 2}.get(rights, 0)
    for verb, part in (("get", f"{calls.CRDS}/"), ("discover", f"/apis/{GROUP}"))[:questions]:
        world.inject("cloud", FORBIDDEN, verb=verb, part=part, times=math.inf, standing=True)


def crowd(world: World, count: int, rights: str = "everything") -> list[str]:
    """Start the agent, with so many objects on both sides."""
    confine(world, rights)
    names = [f"g{number:03}" for number in range(count)]
    for name in names:
        world.cloud.create(name, spec={"x": 1})
    world.start()
    world.settle()
    return names


def identity(world: World) -> list[tuple[str, str, int]]:
    """What an operator knows holds by."""
    return [(hold["id"], hold["since"], hold["objects"]) for hold in world.status()["holds"]]


@contextmanager
def rival(world: World, plane: Plane, *, seconds: float, times: float = 1e9, **fields: Any) -> Iterator[None]:
    """Somebody sets an object back so long after each write of the agent; 0: before its answer is there."""
    left = [times]

    def undo() -> None:
        if left[0] > 0:
            left[0] -= 1
            plane.set("a", **fields)

    def witness(write: Write) -> None:
        if (write.side, write.name, write.verb, write.status) == (plane.side, "a", "update", 200):
            world.clock.loop.call_later(seconds, undo) if seconds else undo()

    undo()
    world.witnesses.append(witness)
    yield
    world.witnesses.remove(witness)
