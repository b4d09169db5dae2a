"""C1.4 on virtual time: kinds without a CRD on the robot."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import PARTIAL_LIST
from crsyncer.ports import Reply
from tests.model.scenes.config_maps import data, delete_map, maps, put_map
from tests.model.scenes.policies import delete_policy, policy_rows, put_policy, ready, serve_policies
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.scene import restart, scene
from tests.model.simulation.world import World
from tests.system.bed import crd

EDGE = {"selector": {"matchLabels": {"tier": "edge"}}}
LABELS = {"tier": "edge"}


@contextmanager
def with_maps(*, source: str = "cloud", resource: str = "configmaps", group: str = "", **spec: Any) -> Iterator[World]:
    """A world with a policy for ConfigMaps, or another kind without a CRD."""
    with scene() as world:
        serve_policies(world.robot)
        named = {"group": group, "resource": resource}
        put_policy(world.robot, "p", {"resource": named, "specSource": source, "filter": EDGE, **spec})
        world.begin()
        yield world


def state(world: World, resource: str = "configmaps") -> tuple[str, str]:
    """State and message of a kind."""
    [row] = [row for row in world.status()["kinds"] if row["resource"] == resource]
    return row["state"], row["message"] or ""


@pytest.mark.parametrize("source", ["cloud", "robot"])
def test_C1_4_config_maps_are_synced_like_any_kind(source: str) -> None:
    with with_maps(source=source) as world:
        up, down = (world.cloud, world.robot) if source == "cloud" else (world.robot, world.cloud)
        put_map(up, "a", labels=LABELS, x="1")
        put_map(up, "other", x="1")
        world.pass_time(2)
        assert data(down) == {"a": {"x": "1"}}
        put_map(up, "a", x="2", y="3")
        world.pass_time(2)
        assert data(down) == {"a": {"x": "2", "y": "3"}}
        put_map(down, "a", x="drift")
        world.pass_time(2)
        assert data(down) == {"a": {"x": "2", "y": "3"}}
        delete_map(down, "a")
        world.pass_time(2)
        assert data(down) == {"a": {"x": "2", "y": "3"}}
        delete_map(up, "a")
        world.settle()
        assert data(down) == {}
        assert state(world) == ("syncing", "")
        [row] = [row for row in world.status()["kinds"] if row["resource"] == "configmaps"]
        assert (row["version"], row["scope"], row["policy"]) == ("v1", "Namespaced", "p")


def test_C1_4_what_discovery_has_shown_is_remembered() -> None:
    with with_maps() as world:
        put_map(world.cloud, "a", labels=LABELS, x="1")
        world.settle()
        with world.down(kill=True):
            delete_map(world.robot, "a")
            world.cut("cloud")
            world.inject("robot", INTERNAL_ERROR, verb="discover", times=math.inf, seconds=600)
        world.pass_time(60)
        assert data(world.robot) == {"a": {"x": "1"}}
        assert state(world) == ("waiting", "the cloud is offline")


@pytest.mark.parametrize("filter_", [{}, {"byRobotName": False}, {"selector": {}}])
def test_C1_4_without_a_filter_such_a_kind_is_misconfigured(filter_: dict[str, Any]) -> None:
    with with_maps(filter=filter_) as world:
        put_map(world.cloud, "a", labels=LABELS, x="1")
        world.pass_time(60)
        assert data(world.robot) == {}
        assert state(world)[0] == "misconfigured"
        assert "configmaps has no CRD, and spec.filter" in state(world)[1]
        assert ready(world.robot)[1] == "Misconfigured"
        named = {"group": "", "resource": "configmaps"}
        put_policy(world.robot, "p", {"resource": named, "specSource": "cloud", "filter": EDGE})
        world.pass_time(3)
        assert data(world.robot) == {"a": {"x": "1"}}


def test_C1_4_a_filter_by_robot_name_is_enough() -> None:
    with with_maps(filter={"byRobotName": True}) as world:
        put_map(world.cloud, "a", labels={"cloudrobotics.com/robot-name": "robot-1"}, x="1")
        put_map(world.cloud, "b", labels=LABELS, x="1")
        world.settle()
        assert data(world.robot) == {"a": {"x": "1"}}


def test_C1_4_a_kind_that_the_robot_does_not_serve_is_missing_until_its_crd_is_there() -> None:
    with with_maps(resource="tasks", group="lab.example.com") as world:
        world.pass_time(5)
        assert state(world, "tasks.lab.example.com") == (
            "kind-missing",
            "the robot has no CRD of tasks.lab.example.com, and serves no such kind",
        )
        assert policy_rows(world) == {"p": ("active", None)}
        for plane in (world.cloud, world.robot):
            plane.apply(crd("lab.example.com", plural="tasks", source=None))
        world.add("a", kind="tasks", labels=LABELS, seconds=5)
        assert state(world, "tasks.lab.example.com")[0] == "syncing"
        assert world.robot.objects("tasks")["a"]["spec"] == {"x": 1}
        delete_policy(world.robot)
        world.pass_time(2)
        assert [row["resource"] for row in world.status()["kinds"]] == ["goals.lab.example.com"]
        assert set(world.robot.objects("tasks")) == {"a"}


def test_C1_4_when_the_policy_is_gone_copies_stay_and_are_only_counted() -> None:
    with with_maps() as world:
        put_map(world.cloud, "a", labels=LABELS, x="1")
        world.settle()
        delete_policy(world.robot)
        world.pass_time(2)
        since = world.clock.now
        delete_map(world.cloud, "a")
        world.pass_time(3600)
        assert data(world.robot) == {"a": {"x": "1"}}
        counted = world.journal.asked("robot", part="/configmaps", since=since)
        assert {request.call.accept for request in counted} == {PARTIAL_LIST}
        assert len(counted) <= 7
        restart(world)
        assert set(maps(world.robot)) == {"a"}
        [reason] = world.status()["reasons"]
        assert (reason["code"], "apply the SyncPolicy p again" in reason["hint"]) == ("KindStopped", True)


def test_C1_6_a_policy_that_is_a_copy_names_kinds_without_a_crd_only_if_they_are_trusted() -> None:
    for trust, wanted in (((), "misconfigured"), (("configmaps",), "syncing")):
        with World(kinds={"goals": {}}, settings=AgentSettings(trust=trust)) as world:
            serve_policies(world.robot, source="cloud")
            serve_policies(world.cloud)
            named = {"group": "", "resource": "configmaps"}
            put_policy(world.cloud, "p", {"resource": named, "specSource": "cloud", "filter": EDGE})
            put_map(world.cloud, "a", labels=LABELS, x="1")
            world.begin()
            world.pass_time(10)
            assert state(world)[0] == wanted, state(world)
            assert bool(data(world.robot)) is (wanted == "syncing")
            assert ("policies.trust (--trust)" in state(world)[1]) is (wanted == "misconfigured")
            assert world.troubles == []


def test_C1_4_a_kind_that_is_served_later_is_found() -> None:
    with scene() as world:
        serve_policies(world.robot)
        named = {"group": "", "resource": "configmaps"}
        put_policy(world.robot, "p", {"resource": named, "specSource": "cloud", "filter": EDGE})
        world.inject("robot", Reply(200, {"resources": []}), verb="discover", times=math.inf, seconds=100)
        world.start()
        put_map(world.cloud, "a", labels=LABELS, x="1")
        world.pass_time(90)
        assert state(world) == ("kind-missing", "the robot has no CRD of configmaps, and serves no such kind")
        world.pass_time(60)
        assert data(world.robot) == {"a": {"x": "1"}}


@pytest.mark.parametrize("how", ["", "restart", "new"])
def test_C1_3_a_policy_that_cannot_be_read_does_not_hide_such_a_kind(how: str) -> None:
    wrong: Json = {"mutations": {"down": [{"path": "/data/x", "template": "{nope}"}]}}
    named: Json = {"resource": {"group": "", "resource": "configmaps"}, "specSource": "cloud", "filter": EDGE}
    with with_maps(**(wrong if how == "new" else {})) as world:
        put_map(world.cloud, "a", labels=LABELS, x="1")
        world.settle()
        put_policy(world.robot, "p", named | wrong)
        world.settle()
        if how == "restart":
            restart(world)
        found, message = state(world)
        assert (found, "{nope}" in message) == ("misconfigured", True)
        assert {reason["code"] for reason in world.status()["reasons"]} == {"Misconfigured"}
        put_policy(world.robot, "p", named)
        world.settle()
        assert (data(world.robot), state(world)) == ({"a": {"x": "1"}}, ("syncing", ""))
