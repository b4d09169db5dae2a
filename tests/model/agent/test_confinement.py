"""AccountCheck on virtual time: which accounts are used, and which objects are touched, whatever a server sends."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.kinds.namespaces import same_names
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.engine.kinds import account_check
from crsyncer.ports import Reply
from tests.model.simulation.api_server import ApiServer, Kind
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import copy, scene
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World

PERIOD = 1800.0
"""How long a proof counts here, in seconds: a day would take long to pass."""
MINE = {ROBOT_LABEL: ROBOT}


def grant(world: World, allows: Callable[[dict[str, Any]], bool]) -> None:
    """From now on the cloud answers access reviews like this."""

    def is_review(call: Call) -> bool:
        return call.path.endswith("/selfsubjectaccessreviews")

    def is_allowed(call: Call) -> bool:
        return is_review(call) and allows(call.body["spec"]["resourceAttributes"])

    yes, no = (Reply(201, {"status": {"allowed": allowed}}) for allowed in (True, False))
    rules = world.weather[Side.CLOUD].rules
    rules[:] = [Rule(is_allowed, yes, math.inf), Rule(is_review, no, math.inf)]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert account_check._AGAIN_SECONDS == 86_400.0
    monkeypatch.setattr(account_check, "_AGAIN_SECONDS", PERIOD)


@contextmanager
def confined(allows: Callable[[dict[str, Any]], bool]) -> Iterator[World]:
    """A world whose agent wants its account to be confined; the agent is not started yet."""
    with scene() as world:
        world.settings = replace(world.settings, require_confinement=True)
        grant(world, allows)
        world.cloud.create("a", spec={"x": 1})
        yield world


def is_nothing(_review: dict[str, Any]) -> bool:
    return False


def is_everything(_review: dict[str, Any]) -> bool:
    return True


def lists_goals_everywhere(review: dict[str, Any]) -> bool:
    return (review["verb"], review["resource"], review.get("namespace", "")) == ("list", "goals", "")


def reviews(world: World, since: float = 0.0) -> int:
    return len(world.journal.asked("cloud", part="selfsubjectaccessreviews", since=since))


def cloud_state(world: World) -> tuple[str, str]:
    side = world.status()["sides"]["cloud"]
    return side["state"], side["error"] or ""


def test_an_account_that_may_do_no_more_than_it_should_is_used_and_asked_about_now_and_then() -> None:
    with confined(is_nothing) as world:
        world.begin()
        assert copy(world)["spec"] == {"x": 1}
        world.pass_time(60.0)
        since = world.clock.now
        world.pass_time(PERIOD / 2)
        assert reviews(world, since) == 0
        world.pass_time(PERIOD)
        assert 20 <= reviews(world, since) <= 80
        assert world.status()["health"] == "healthy"


def test_an_administrators_account_is_not_used_and_the_robot_goes_on() -> None:
    with confined(is_everything) as world:
        world.begin(seconds=60.0)
        state, error = cloud_state(world)
        assert state == "unauthorized"
        assert error.startswith(
            "the account is not confined (see crsyncer check-access): it may do everything: this is"
        )
        assert world.status()["health"] == "attention"
        assert (world.robot.objects(), world.journal.asked("cloud", verb="watch")) == ({}, [])
        grant(world, is_nothing)
        world.settle()
        assert copy(world)["spec"] == {"x": 1}


def test_without_the_link_the_agent_starts_and_the_account_is_checked_before_it_is_used() -> None:
    with confined(is_nothing) as world:
        world.begin()
        with world.down():
            world.cut("cloud")
        world.pass_time(60.0)
        world.robot.delete("a")
        world.pass_time(10.0)
        assert copy(world)["spec"] == {"x": 1}, "what is known is enforced"
        world.cloud.set("a", spec={"x": 2})
        world.mend("cloud")
        grant(world, is_everything)
        world.pass_time(120.0)
        assert copy(world)["spec"] == {"x": 1}
        assert cloud_state(world)[0] == "unauthorized"
        grant(world, is_nothing)
        world.settle()
        assert copy(world)["spec"] == {"x": 2}


def test_S9_1_a_link_that_is_lost_between_two_questions_about_the_account_ends_no_agent() -> None:
    with confined(is_nothing) as world:

        def is_later_review(call: Call) -> bool:
            return call.path.endswith("/selfsubjectaccessreviews") and reviews(world) > 1

        lost = Rule(is_later_review, Fate.SNAPPED, math.inf, until=60.0)
        world.weather[Side.CLOUD].rules.insert(0, lost)
        world.begin(seconds=90.0)
        assert lost.met > 0
        world.settle()
        assert copy(world)["spec"] == {"x": 1}
        assert world.status()["health"] == "healthy"


def test_a_right_that_is_granted_later_is_noticed_however_busy_the_connection_is() -> None:
    with confined(is_nothing) as world:
        world.begin()
        world.pass_time(120.0)  # the account is proven, for the kind, too
        grant(world, lists_goals_everywhere)
        world.pass_time(PERIOD - 300.0)
        for number in range(60):  # no silence, so no probe of itself
            world.edit("a", spec={"x": number}, seconds=10.0)
        state, error = cloud_state(world)
        assert state == "unauthorized"
        assert "it may list goals." in error
        assert "everywhere: it reads the objects of all robots" in error
        world.edit("a", spec={"x": -1}, seconds=60.0)
        assert copy(world)["spec"] != {"x": -1}


def test_a_server_that_answers_no_reviews_proves_nothing() -> None:
    with confined(is_nothing) as world:
        world.weather[Side.CLOUD].rules[:] = [
            Rule(lambda call: call.path.endswith("reviews"), Reply(403, {"message": "no"}), math.inf)
        ]
        world.begin(seconds=60.0)
        state, error = cloud_state(world)
        assert state == "unauthorized"
        assert "cannot be proven: the server answers no access reviews" in error


# --- what a server sends is checked before it is applied, whatever was asked for (threat 28)

DISGUISES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another robot's label": lambda obj: obj["metadata"].update(labels={ROBOT_LABEL: "robot-2"}),
    "no label": lambda obj: obj["metadata"].pop("labels"),
    "another namespace": lambda obj: obj["metadata"].update(namespace="kube-system"),
    "no namespace": lambda obj: obj["metadata"].pop("namespace"),
    "another kind": lambda obj: obj.update(apiVersion="v1", kind="Secret"),
    "another version": lambda obj: obj.update(apiVersion=f"{obj['apiVersion']}beta1"),
    "a name that is a path": lambda obj: obj["metadata"].update(name="../../secrets/x"),
    "a name that is none": lambda obj: obj["metadata"].update(name=""),
    "no uid": lambda obj: obj["metadata"].pop("uid"),
}


@pytest.mark.parametrize("listed", [True, False], ids=["by a list", "by a watch"])
@pytest.mark.parametrize("disguise", DISGUISES)
def test_an_object_that_was_not_asked_for_is_not_applied(
    monkeypatch: pytest.MonkeyPatch, disguise: str, listed: bool
) -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.settings = replace(world.settings, namespaces=same_names(("default",)))
        cloud, honest = world.servers[Side.CLOUD], ApiServer.shown

        def shown(server: ApiServer, kind: Kind, obj: dict[str, Any]) -> Any:
            sent = honest(server, kind, obj)
            if server is cloud and sent["metadata"]["name"] == "odd":
                DISGUISES[disguise](sent)
            return sent

        monkeypatch.setattr(ApiServer, "shown", shown)
        if not listed:
            world.begin()
        world.cloud.create("odd", spec={"x": 1}, labels=MINE)
        world.cloud.create("even", spec={"x": 1}, labels=MINE)
        if listed:
            world.start()
        world.settle()
        world.pass_time(600.0)
        assert set(world.robot.objects()) == {"even"}
        assert world.status()["kinds"][0]["objects"] == {"cloud": 1, "robot": 1}
        assert {write.name for write in world.writes} == {"even"}
