"""Kubernetes Events on virtual time: few, about the copy, and whatever becomes of them changes nothing else."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, NOT_SERVED
from tests.model.simulation.check import Checker, specs
from tests.model.simulation.journal import Request
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import changes, rival
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World

EVENTS = "/apis/events.k8s.io/"
MADE = Reply(201, {"metadata": {"name": "e", "uid": "e"}})
MISSING = Reply(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"})


@contextmanager
def publishing(answer: Reply | Fate | None) -> Iterator[World]:
    """An agent that writes Kubernetes Events, to which the robot always gives an answer; None: it writes none."""
    with World(settings=AgentSettings(kubernetes_events=answer is not None)) as world:
        checker = Checker(world, specs(world.kinds))
        if answer is not None:
            world.inject("robot", answer, part=EVENTS, times=math.inf, standing=True)
        world.begin("a")
        yield world
        assert checker.violations + world.troubles == []


def published(world: World) -> list[Request]:
    """The requests about Events."""
    return [request for request in world.journal.requests if request.call.path.startswith(EVENTS)]


def test_drift_is_an_event_about_the_copy_and_ordinary_work_is_none() -> None:
    with publishing(MADE) as world:
        world.cloud.set("a", spec={"x": 2})
        world.report("a", {"n": 1})
        assert published(world) == []
        world.robot.set("a", spec={"x": 9})
        world.pass_time(5)
        (request,) = published(world)
        uid = world.robot.objects()["a"]["metadata"]["uid"]
        assert (request.side, request.call.body["reason"]) == (Side.ROBOT, "Reverted")
        about = {"apiVersion": f"{GROUP}/v1", "kind": "Goal", "namespace": "default", "name": "a", "uid": uid}
        assert request.call.body["regarding"] == about


def test_a_fight_is_few_requests_an_hour() -> None:
    with publishing(MADE) as world:
        with rival(world, world.robot, seconds=1.0, spec={"x": 2}):
            world.pass_time(3600)
        found = published(world)
        assert {request.call.body.get("reason") for request in found if request.verb == "create"} == {
            "Reverted",
            "RateLimited",
        }
        assert len(found) <= 16
        assert max(request.call.body["series"]["count"] for request in found if request.verb == "patch") > 30


def test_an_event_that_has_expired_is_written_anew() -> None:
    with publishing(MADE) as world:
        world.robot.set("a", spec={"x": 9})
        world.pass_time(7200)
        world.mend("robot")
        world.inject("robot", MISSING, verb="patch", part=EVENTS, times=math.inf, standing=True)
        world.inject("robot", MADE, verb="create", part=EVENTS, times=math.inf, standing=True)
        world.robot.set("a", spec={"x": 9})
        world.pass_time(5)
        assert [request.verb for request in published(world)] == ["create", "patch", "create"]


def test_a_hold_of_a_kind_is_an_event_about_its_crd() -> None:
    with publishing(MADE) as world:
        world.order("hold", resource="goals")
        world.pass_time(5)
        (request,) = published(world)
        assert request.call.body["regarding"]["kind"] == "CustomResourceDefinition"
        assert request.call.body["reason"] == "Held"


@pytest.mark.parametrize(
    "answer", [FORBIDDEN, NOT_SERVED, INTERNAL_ERROR, MISSING, Fate.LOST], ids=["403", "none", "500", "404", "lost"]
)
def test_a_robot_that_takes_no_events_changes_nothing(answer: Reply | Fate) -> None:
    came: list[tuple[list[str], dict[str, object]]] = []
    for each in (None, answer):
        with publishing(each) as world:
            for number in range(12):
                world.robot.set("a", spec={"x": 90 + number})
                world.report("a", {"n": number}, seconds=20)
            world.remove("a", seconds=60)
            status = world.status()
            came.append((sorted(changes(world)), {part: status[part] for part in ("health", "outbox", "holds")}))
            assert status["sides"]["robot"]["reconnects"] == 0
            assert len(published(world)) <= (0 if each is None else 12)
    assert came[0] == came[1]


def test_after_a_refusal_the_robot_is_left_alone_for_a_minute() -> None:
    with publishing(FORBIDDEN) as world:
        world.add(*"bcdefgh")
        for name in "abcdefgh":
            world.robot.set(name, spec={"x": 9})
        world.pass_time(30)
        assert len(published(world)) == 1
        world.pass_time(60)
        world.robot.set("a", spec={"x": 9})
        world.pass_time(120)
        world.robot.set("b", spec={"x": 9})
        world.pass_time(10)
        assert len(published(world)) == 3


def test_while_the_robot_is_away_nothing_is_kept_for_it() -> None:
    with publishing(MADE) as world:
        world.cut("robot", seconds=60)
        world.order("hold", resource="goals")
        world.pass_time(60)
        world.heal("robot", seconds=120)
        assert published(world) == []
        assert set(world.robot.objects()) == {"a"}
