"""C1: SyncPolicies on the robot configure kinds, beside the annotations or instead of them."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from crsyncer.core.content.annotations import FILTER, ROBOT_LABEL, SPEC_SOURCE
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import SYNC_POLICIES
from tests.model.scenes.policies import (
    EDGE,
    PLURAL,
    apply_policy,
    delete_policy,
    drop_policies,
    edit_policy,
    on_robot,
    policy_rows,
    put_policy,
    ready,
    serve_policies,
    two_tiers,
    with_policy,
)
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import copy, full_lists, original, row, state
from tests.model.simulation.world import World
from tests.system.bed import crd

UNANNOTATED = {"goals": {"source": None}}
TASKS: Mapping[str, Any] = {"tasks": {}}


def test_C1_1_without_the_crd_no_request_is_about_policies() -> None:
    with World() as world:
        world.begin("a")
        world.pass_time(3600)
        assert world.journal.asked(part=SYNC_POLICIES.group) == []
        assert world.status()["policies"] == []
        assert row(world)["policy"] is None


def test_C1_1_a_change_of_a_policy_takes_effect_within_2_s_and_restarts_only_its_kind() -> None:
    with World(kinds={"goals": {}, **TASKS}) as world:
        serve_policies(world.robot)
        for kind in ("goals", "tasks"):
            apply_policy(world.robot, kind, kind=kind)
        two_tiers(world)
        world.begin()
        assert on_robot(world) == {"edge", "other"}
        begun = world.clock.now
        edit_policy(world, "goals", filter=EDGE, seconds=2)
        watches = world.journal.asked(verb="watch", kind="goals", since=begun)
        assert {(watch.side, watch.query["labelSelector"]) for watch in watches} == {(s, "tier=edge") for s in Side}
        assert row(world)["selector"] == "tier=edge"
        assert world.journal.asked(kind="tasks", since=begun) == []
        assert world.troubles == []


def test_C1_1_after_twenty_edits_one_watch_a_side_is_open() -> None:
    with World() as world:
        serve_policies(world.robot)
        world.start()
        for number in range(20):
            edit_policy(world, filter={"selector": {"matchLabels": {"n": str(number)}}}, seconds=2)
        world.settle()
        life = world.life
        assert life is not None
        kind = life.engine.kinds.entries[f"goals.{GROUP}"].kind
        assert kind is not None
        assert [each.state.collection.selector for each in kind.informers] == ["n=19", "n=19"]
        begun = world.clock.now
        world.pass_time(700)  # every open watch ends in this time, and is opened again
        watches = world.journal.asked(verb="watch", kind="goals", since=begun)
        assert {watch.query["labelSelector"] for watch in watches} == {"n=19"}


def test_C1_1_an_edit_that_changes_nothing_restarts_nothing() -> None:
    with with_policy(specSource="cloud") as world:
        world.begin()
        begun = world.clock.now
        edit_policy(world, specSource="cloud", subtree=None, seconds=10)
        assert world.journal.asked(kind="goals", since=begun) == []


@pytest.mark.parametrize("fate", [INTERNAL_ERROR, FORBIDDEN])
def test_C1_1_no_kind_starts_by_its_annotations_before_the_policies_are_known(fate) -> None:
    """A policy may select less, or keep orphans: by the annotations alone too much would be synced for a moment."""
    with with_policy(kinds={"goals": {}, "aims": {}}, filter=EDGE, orphans="keep") as world:
        two_tiers(world)
        world.robot.create("by-hand", spec={"x": 2})
        world.inject("robot", fate, part=f"/{PLURAL}", times=math.inf, seconds=300)
        world.begin(seconds=200)
        assert world.journal.asked(kind="goals") == []
        assert world.journal.asked(kind="aims") == []
        expected = "forbidden" if fate is FORBIDDEN else "waiting"
        assert (state(world), state(world, "aims")) == (expected, expected)
        assert "the robot's SyncPolicies" in row(world)["message"]
        assert world.status()["health"] == ("attention" if fate is FORBIDDEN else "degraded")
        world.pass_time(200)
        world.settle()
        assert on_robot(world) == {"edge", "by-hand"}
        assert (state(world), state(world, "aims")) == ("syncing", "syncing")
        assert world.journal.asked(verb="delete") == []


def test_C1_1_a_kind_that_runs_is_not_disturbed_by_the_crd_that_appears_but_a_new_one_waits() -> None:
    with World(kinds={"goals": {}, "tasks": {"source": None}}) as world:
        world.begin("a")
        begun = world.clock.now
        world.inject("robot", INTERNAL_ERROR, part=f"/{PLURAL}", times=math.inf, seconds=120)
        serve_policies(world.robot)
        world.pass_time(5)
        world.robot.annotate_kind({SPEC_SOURCE: "cloud"}, kind="tasks")
        world.pass_time(60)
        assert (state(world), state(world, "tasks")) == ("syncing", "waiting")
        assert world.journal.asked("cloud", kind="tasks") == []
        world.pass_time(120)
        world.settle()
        assert (state(world), state(world, "tasks")) == ("syncing", "syncing")
        assert world.journal.asked(verb="watch", kind="goals", since=begun) == []
        edit_policy(world, filter=EDGE, seconds=2)
        assert (row(world)["selector"], on_robot(world)) == ("tier=edge", {"a"})


def test_C1_1_when_the_crd_goes_the_annotations_count_again_and_kinds_without_stop() -> None:
    with World(kinds={"goals": {}, "tasks": {"source": None}}) as world:
        serve_policies(world.robot)
        apply_policy(world.robot, "goals", filter=EDGE)
        apply_policy(world.robot, "tasks", kind="tasks", specSource="cloud")
        two_tiers(world)
        world.begin("t", kind="tasks")
        assert (on_robot(world), on_robot(world, "tasks")) == ({"edge"}, {"t"})
        drop_policies(world)
        world.settle()
        assert (on_robot(world), on_robot(world, "tasks")) == ({"edge", "other"}, {"t"})
        assert row(world, "tasks") == {}
        assert world.status()["policies"] == []
        begun = world.clock.now
        world.pass_time(3600)
        assert world.journal.asked(part=SYNC_POLICIES.group, since=begun) == []
        serve_policies(world.robot)
        edit_policy(world, "tasks", kind="tasks", specSource="cloud")
        assert state(world, "tasks") == "syncing"
        assert world.troubles == []


def test_C1_2_two_policies_stop_the_kind_until_one_is_gone() -> None:
    with World(kinds={"goals": {}, **TASKS}) as world:
        serve_policies(world.robot)
        apply_policy(world.robot, "one")
        world.begin("a")
        edit_policy(world, "two", seconds=2)
        world.cloud.set("a", spec={"x": 2})
        world.add("t", kind="tasks", seconds=60)
        said = "the SyncPolicies one and two are for the same kind; allowed: one"
        assert policy_rows(world) == {"one": ("misconfigured", said), "two": ("misconfigured", said)}
        assert (state(world), row(world)["message"]) == ("misconfigured", said)
        assert (copy(world)["spec"], on_robot(world, "tasks")) == ({"x": 1}, {"t"})
        [reason] = world.status()["reasons"]
        assert (reason["code"], said in reason["message"]) == ("Misconfigured", True)
        delete_policy(world.robot, "one")
        world.settle()
        assert (copy(world)["spec"], policy_rows(world)) == ({"x": 2}, {"two": ("active", None)})


def test_C1_2_a_field_and_an_annotation_that_differ_stop_the_kind_and_both_are_named() -> None:
    with with_policy(kinds={"goals": {"filtered": "true"}}, filter={"byRobotName": False}) as world:
        world.begin("a", labels={ROBOT_LABEL: ROBOT}, seconds=600)
        message = row(world)["message"]
        assert state(world) == "misconfigured"
        assert "spec.filter.byRobotName of SyncPolicy p is false" in message
        assert f'{FILTER} is "true"' in message
        assert world.journal.asked(kind="goals") == []
        world.robot.annotate_kind({FILTER: None})
        world.settle()
        assert on_robot(world) == {"a"}


MALFORMED: Mapping[str, Any] = {
    "no spec": None,
    "a list": [],
    "a version that the CRD does not serve": {"resource": {"version": "v9"}},
    "a field": {"mutation": {}},
    "a path": {"mutations": {"down": [{"path": "spec/url", "remove": True}]}},
    "a grace period": {"deletion": {"gracePeriod": "an hour"}},
    "a version in the cloud that the robot does not serve": {"related": [], "projection": {"version": "v2"}},
}
"""What is misread in another place each; all that a policy may have wrong is in tests/core."""


@pytest.mark.parametrize("name", MALFORMED)
def test_C1_3_a_wrong_policy_stops_its_kind_alone_with_one_line_and_copies_stay(name: str) -> None:
    wrong = MALFORMED[name]
    with with_policy(kinds={"goals": {}, **TASKS}) as world:
        world.begin("a")
        begun = world.clock.now
        if isinstance(wrong, dict):
            resource = {"group": GROUP, "resource": "goals", **wrong.get("resource", {})}
            put_policy(world.robot, "p", {**wrong, "resource": resource})
        else:
            # Which kind it was for cannot be read any more: it is for none, and is reported by itself.
            put_policy(world.robot, "p", wrong)
        world.pass_time(2)
        stopped_at = world.clock.now
        world.cloud.set("a", spec={"x": 2})
        world.cloud.delete("a")
        world.add("t", kind="tasks", seconds=300)
        [(policy_state, message)] = policy_rows(world).values()
        assert policy_state == "misconfigured"
        assert message
        assert "\n" not in message
        assert world.status()["health"] == "attention"
        assert len(world.status()["reasons"]) == 1
        assert on_robot(world, "tasks") == {"t"}
        assert full_lists(world, "", begun, kind="tasks") == []
        if isinstance(wrong, dict):
            assert (state(world), state(world, "tasks")) == ("misconfigured", "syncing")
            assert world.journal.asked(kind="goals", since=stopped_at) == []
            assert copy(world)["spec"] == {"x": 1}
            assert message in row(world)["message"]
        edit_policy(world)
        assert (state(world), on_robot(world)) == ("syncing", set())
        assert (world.status()["health"], world.troubles) == ("healthy", [])


def test_C1_3_a_policy_alone_has_an_unannotated_kind_synced_and_keeps_orphans() -> None:
    with World(kinds=UNANNOTATED) as world:
        serve_policies(world.robot)
        world.robot.create("by-hand", spec={"x": 0})
        world.begin(seconds=60)
        assert row(world) == {}
        apply_policy(world.robot, specSource="cloud", subtree="robot")
        world.add("a", seconds=2)
        found = row(world)
        assert (found["specSource"], found["policy"], found["statusSubtree"]) == ("cloud", "p", "robot")
        world.report("a", {"robot": {"at": "dock"}, "local": 1})
        assert original(world)["status"] == {"robot": {"at": "dock"}}
        assert on_robot(world) == {"by-hand", "a"}
        delete_policy(world.robot)
        world.pass_time(2)
        assert (row(world), on_robot(world)) == ({}, {"by-hand", "a"})
        edit_policy(world, specSource="cloud", orphans="delete")
        assert on_robot(world) == {"a"}


def test_C1_4_a_policy_without_a_filter_waits_for_the_crd_of_its_kind() -> None:
    with with_policy(kind="tasks", specSource="cloud") as world:
        world.begin(seconds=60)
        [(policy_state, message)] = policy_rows(world).values()
        assert (policy_state, "has no CRD, and spec.filter" in str(message)) == ("misconfigured", True)
        assert [reason["code"] for reason in world.status()["reasons"]] == ["Misconfigured"]
        explained = world.order("explain", resource=f"tasks.{GROUP}", name="a")
        assert [step["rule"] for step in explained["steps"]] == ["C1.3"]
        for plane in (world.robot, world.cloud):
            plane.apply(crd(GROUP, plural="tasks", source=None))
        world.settle()
        assert (policy_rows(world), ready(world.robot)) == ({"p": ("active", None)}, ("True", "Active", ""))


def test_S2_1_C1_3_only_what_the_selector_selects_is_synced_on_both_sides() -> None:
    selector = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    with with_policy(kinds={"goals": {"filtered": "true"}}, filter={"selector": selector}) as world:
        mine = {ROBOT_LABEL: ROBOT}
        for name, labels in (("in", {"zone": "a"}), ("out", {"zone": "c"}), ("none", {})):
            world.cloud.create(name, spec={"x": 1}, labels=mine | labels)
        world.cloud.create("other", spec={"x": 1}, labels={ROBOT_LABEL: "robot-2", "zone": "a"})
        world.robot.create("local", spec={"x": 1}, labels={"zone": "a"})
        world.begin()
        assert on_robot(world) == {"in", "local"}
        asked = world.journal.asked(kind="goals")
        sent = [each.call.query for each in asked if each.verb in ("list", "watch")]
        wanted = ("labelSelector", f"{ROBOT_LABEL}={ROBOT},zone in (a,b)")
        assert all([query for query in each if query[0] == "labelSelector"] == [wanted] for each in sent)
        world.cloud.label("in", zone="c")
        world.cloud.label("out", zone="b")
        world.settle()
        assert on_robot(world) == {"out", "local"}
        world.robot.label("out", zone=None)  # the copy leaves our sight, and its name is not free
        world.settle()
        assert (mine | {"zone": "b"}).items() <= copy(world, "out")["metadata"]["labels"].items()
