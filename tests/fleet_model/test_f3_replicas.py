"""How replicas are called and marked, and exactly which writes are made of them (F3)."""

from typing import Any

import pytest

from crsyncer.ports import Reply
from tests.fleet_model.controlling import control, fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.judged_objects import marks
from tests.fleet_model.oracle import REPLICA, ROBOT_LABEL, SOURCE, digest
from tests.fleet_model.world_parts import INVENTORY_KIND
from tests.model.simulation.answers import CONFLICT, FORBIDDEN, INTERNAL_ERROR, invalid
from tests.model.simulation.plane import GROUP
from tests.model.simulation.weather import Fate

ONCE: dict[str, Any] = {
    "resources": [{"group": GROUP, "resource": "goals", "selectors": [{}], "strategy": "CreateOnly"}]
}


def writes(world: FleetWorld, since: float) -> list[str]:
    """What was written of goals since then."""
    return [f"{each.verb} {each.namespace}/{each.name}" for each in world.written(since, resource="goals")]


def test_F3_1_F3_2_a_replica_is_named_after_source_and_robot_and_marked() -> None:
    with FleetWorld(control) as world:
        world.robots("r1")
        world.source("dock", labels={"a": "b", ROBOT_LABEL.replace("robot-name", "other"): "c"}, annotations={"n": "1"})
        world.place("p")
        world.place("q", target="Same")
        world.start()
        world.agree()
        found = world.replicas()
        assert sorted(found) == ["default/dock-r1", "robot-r1/dock"]
        labels = found["robot-r1/dock"]["metadata"]["labels"]
        assert labels[SOURCE] == digest([f"goals.{GROUP}", "default", "dock"])
        assert labels[ROBOT_LABEL] == "r1"
        said = marks(found["robot-r1/dock"])
        assert (said["n"], said["source"], said["annotations"]) == (1, "default/dock", ["n"])
        assert said["placement"] == world.placement("p")["metadata"]["uid"]
        assert "finalizers" not in found["robot-r1/dock"]["metadata"]
        assert "ownerReferences" not in found["robot-r1/dock"]["metadata"]


def test_F3_1_a_long_name_is_cut_and_keeps_a_digest() -> None:
    with FleetWorld(control) as world:
        world.robots("r1")
        world.source("d" * 250)
        world.place("p", target="Same")
        world.start()
        world.settle()
        (name,) = (place.partition("/")[2] for place in world.replicas())
        assert len(name) <= 253
        assert name.startswith("d" * 200)
        assert name.endswith("-r1")


def test_F3_2_what_has_only_some_of_our_marks_is_left_alone() -> None:
    with fleet(robots=1) as world:
        body = {"stamp": "a", "n": 1, "source": "default/dock", "placement": "x", "labels": [], "annotations": []}
        text = {REPLICA: str(body).replace("'", '"')}
        world.cloud.create("other", namespace="robot-r1", spec={}, labels={SOURCE: "0" * 24, ROBOT_LABEL: "r1"})
        world.cloud.create("another", namespace="robot-r1", spec={}, annotations=text, labels={ROBOT_LABEL: "r1"})
        world.cloud.create("third", namespace="robot-r1", spec={}, annotations=text, labels={SOURCE: "0" * 24})
        began = world.clock.now
        world.unplace("p")
        world.settle()
        assert writes(world, began) == ["delete robot-r1/dock"]


def test_F3_3_an_update_sets_and_removes_what_the_source_has_gained_and_lost() -> None:
    with fleet(robots=1, start=False) as world:
        world.cloud.set("dock", spec={"x": 1, "y": 2}, data="old")
        world.cloud.label("dock", a="1", b="2")
        world.start()
        world.agree()
        world.cloud.set("dock", spec={"x": 3}, data=None, more=[1])
        world.cloud.label("dock", a="2", b=None)
        world.cloud.label("dock", namespace="robot-r1", theirs="kept")
        world.settle()
        found = world.replicas()["robot-r1/dock"]
        assert (found["spec"], found.get("data"), found["more"]) == ({"x": 3}, None, [1])
        labels = found["metadata"]["labels"]
        assert (labels["a"], labels.get("b"), labels["theirs"]) == ("2", None, "kept")


def test_F3_3_a_write_that_is_refused_looks_and_decides_anew() -> None:
    with fleet(robots=2) as world:
        for fate in (CONFLICT, Fate.REPLY_LOST, Fate.LOST, Fate.LATE, INTERNAL_ERROR, Fate.SNAPPED):
            began = world.clock.now
            world.inject(fate, verb="patch", part="/goals")
            world.cloud.set("dock", spec={"x": began})
            world.agree()
            assert sorted(writes(world, began)) == ["patch robot-r1/dock", "patch robot-r2/dock"]


@pytest.mark.parametrize("fate", [Fate.REPLY_LOST, Fate.LOST, Fate.LATE, Fate.SNAPPED], ids=lambda fate: fate.name)
def test_F3_3_a_lost_answer_to_a_creation_or_deletion_is_no_second_one(fate: Fate) -> None:
    with fleet(robots=2) as world:
        began = world.clock.now
        world.inject(fate, verb="create", part="/goals")
        world.source("lift")
        world.agree()
        assert sorted(writes(world, began)) == ["create robot-r1/lift", "create robot-r2/lift"]
        began = world.clock.now
        world.inject(fate, verb="delete", part="/goals")
        world.cloud.delete("lift")
        world.agree()
        assert sorted(writes(world, began)) == ["delete robot-r1/lift", "delete robot-r2/lift"]


def test_F3_4_what_concerns_no_replica_costs_no_request() -> None:
    with fleet(robots=3) as world:
        began = world.clock.now
        world.cloud.set_status("dock", {"seen": True})
        world.cloud.annotate("dock", {"kubectl.kubernetes.io/last-applied-configuration": "{}"})
        world.cloud.label("r1", kind=INVENTORY_KIND, colour="red")
        world.set_properties("r2", colour="blue")
        world.strip("s", "/spec/nothing")
        world.edit("p", overrides=[{"steps": [{"path": "/spec/x", "set": {"value": 1}}]}])
        world.settle()
        assert writes(world, began) == []


def test_F3_4_a_source_that_is_made_anew_is_a_change() -> None:
    with fleet(robots=1) as world:
        uid = world.replicas()["robot-r1/dock"]["metadata"]["uid"]
        world.cloud.delete("dock")
        world.source("dock", spec={"x": 9})
        world.agree()
        found = world.replicas()["robot-r1/dock"]
        assert (found["metadata"]["uid"], found["spec"]) == (uid, {"x": 9})


@pytest.mark.parametrize("restart", [False, True])
def test_F3_5_drift_is_reverted_also_by_a_new_leader(restart: bool) -> None:
    with fleet(robots=2) as world:
        if restart:
            world.kill()
        began = world.clock.now
        world.cloud.set("dock", namespace="robot-r1", spec={"x": "drift"})
        world.cloud.set_status("dock", {"phase": "Ready"}, namespace="robot-r2")
        if restart:
            world.start()
        world.agree()
        assert writes(world, began) == ["patch robot-r1/dock"]
        assert world.specs()["robot-r1/dock"] == {"x": 1}


def test_F3_5_what_the_server_adds_is_not_drift() -> None:
    defaults = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"speed": {"type": "integer", "default": 3}},
            }
        },
    }
    with FleetWorld(control, kinds={"goals": {"schema": defaults}}) as world:
        world.robots("r1")
        world.place(
            "p",
            robotSelectors=[{}],
            resources=[],
            templates=[{"name": "dock", "group": GROUP, "resource": "goals", "object": {"spec": {"x": 1}}}],
        )
        world.start()
        world.settle()
        began = world.clock.now
        world.kill()
        world.start()
        world.settle()
        assert world.specs() == {"robot-r1/dock": {"x": 1, "speed": 3}}
        assert writes(world, began) == []


def test_F3_5_a_fight_is_slowed_down_and_told() -> None:
    with fleet(robots=1) as world:
        began = world.clock.now
        for number in range(120):
            world.cloud.set("dock", namespace="robot-r1", spec={"x": f"theirs {number}"})
            world.pass_time(1)
        assert len(writes(world, began)) <= 20
        assert [each["reason"] for each in world.status()["errors"]] == ["Contested"]
        world.agree()
        world.pass_time(120)
        assert world.status()["errors"] == []


def test_F3_5_drift_is_undone_where_a_rollout_begins_nobody() -> None:
    with fleet(robots=1) as world:
        world.agree()
        world.edit("p", readyWhen="true", rollout={"minReadySeconds": 0, "paused": True})
        world.settle()
        world.cloud.set("dock", namespace="robot-r1", spec={"x": "theirs"})
        world.settle()
        assert world.cloud.objects("goals", namespace="robot-r1")["dock"]["spec"] == {"x": 1}


def test_F3_6_a_create_only_replica_is_made_once_and_made_again() -> None:
    with fleet(robots=1, start=False) as world:
        world.edit("p", **ONCE)
        world.start()
        world.agree()
        world.cloud.set("dock", spec={"x": 2})
        world.cloud.set("dock", namespace="robot-r1", spec={"x": "mine"})
        world.settle()
        assert world.specs() == {"robot-r1/dock": {"x": "mine"}}
        assert world.condition("Stamped") == ("True", "Stamped")
        world.cloud.delete("dock", namespace="robot-r1")
        world.settle()
        assert world.specs() == {"robot-r1/dock": {"x": 2}}


def test_F3_7_an_object_of_that_name_is_refused_until_its_label_hands_it_over() -> None:
    with fleet(robots=1, start=False) as world:
        world.server.make_namespace("robot-r1")
        world.cloud.create("dock", namespace="robot-r1", spec={"x": "theirs"})
        world.start()
        world.settle()
        (error,) = world.status()["errors"]
        assert (error["reason"], error["robot"]) == ("NameTaken", "r1")
        assert world.decided() == {"r1": "Blocked"}
        source_id = digest([f"goals.{GROUP}", "default", "dock"])
        assert source_id in error["message"]
        uid = world.cloud.objects("goals", "robot-r1")["dock"]["metadata"]["uid"]
        found = dict(world.cloud.objects("goals", "robot-r1")["dock"])
        found["metadata"] = {**found["metadata"], "labels": {SOURCE: source_id}}
        world.cloud.set("dock", namespace="robot-r1", metadata=found["metadata"])
        world.agree()
        assert world.replicas()["robot-r1/dock"]["metadata"]["uid"] == uid
        assert world.status()["errors"] == []


def test_F3_7_the_name_of_another_sources_replica_is_refused_until_it_is_free() -> None:
    with fleet(robots=1) as world:
        world.agree()
        world.server.make_namespace("site")
        world.source("dock", namespace="site", spec={"x": "site's"})
        world.place("q", namespace="site")
        since = world.clock.now
        world.settle()
        tried = [each for each in world.writes if each.time >= since and "goals" in each.resource]
        assert len(tried) <= 1
        placed = world.placement("q", namespace="site")["status"]
        assert [(each["reason"], each["robot"]) for each in placed["errors"]] == [("NameTaken", "r1")]
        assert world.specs() == {"robot-r1/dock": {"x": 1}}
        world.unplace("p")
        world.settle()
        assert world.specs() == {"robot-r1/dock": {"x": "site's"}}
        assert world.placement("q", namespace="site")["status"]["errors"] == []


def test_F3_8_a_rendering_that_is_too_large_blocks_its_robot_alone() -> None:
    steps = [{"path": "/spec/blob", "set": {"value": "x" * (520 << 10)}}]
    with fleet(robots=3, start=False) as world:
        world.cloud.label("r2", kind=INVENTORY_KIND, site="north")
        world.edit("p", overrides=[{"robotSelector": {"matchLabels": {"site": "north"}}, "steps": steps}])
        world.start()
        world.agree()
        assert sorted(world.replicas()) == ["robot-r1/dock", "robot-r3/dock"]
        assert [each["reason"] for each in world.status()["errors"]] == ["TooLarge"]


def test_a_replica_that_the_server_refuses_blocks_its_robot_alone_and_is_tried_hourly() -> None:
    with fleet(robots=3) as world:
        world.inject(invalid("spec.x: it is too new"), verb="patch", part="/robot-r2/goals", times=2)
        world.cloud.set("dock", spec={"x": 2})
        world.settle()
        assert world.specs() == {"robot-r1/dock": {"x": 2}, "robot-r2/dock": {"x": 1}, "robot-r3/dock": {"x": 2}}
        (error,) = world.status()["errors"]
        assert (error["robot"], error["reason"]) == ("r2", "Refused")
        world.pass_time(7300)
        world.agree()
        assert world.status()["errors"] == []


def test_F3_5_drift_is_seen_also_where_the_kind_could_not_be_placed_when_a_leader_began() -> None:
    with fleet(robots=1) as world:
        world.kill()
        world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": "robot"})
        world.establish("goals")
        world.cloud.set("dock", namespace="robot-r1", spec={"x": "theirs"})
        world.start()
        world.pass_time(60)
        world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": "cloud"})
        world.establish("goals")
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1}}


@pytest.mark.parametrize("part", ["/robotplacements", "/robots", "/configmaps"])
def test_F3_5_drift_is_seen_also_where_a_new_leader_lists_an_input_late(part: str) -> None:
    with fleet(robots=1) as world:
        world.kill()
        world.cloud.set("dock", namespace="robot-r1", spec={"x": "theirs"})
        world.inject(INTERNAL_ERROR, verb="list", part=part, times=2)
        world.start()
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1}}


def test_F3_5_drift_is_seen_also_where_nobody_wanted_the_replica_when_a_leader_began() -> None:
    with fleet(robots=1) as world:
        world.kill()
        world.cloud.set("dock", namespace="robot-r1", spec={"x": "theirs"})
        world.lose_robots("r1")
        world.start()
        world.pass_time(60)
        world.robots("r1")
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1}}


@pytest.mark.parametrize(
    ("answer", "most"), [(INTERNAL_ERROR, 30), (FORBIDDEN, 12), (CONFLICT, 30)], ids=["500", "403", "409"]
)
@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
def test_S10_a_write_that_fails_is_tried_again_with_waits_that_grow(verb: str, answer: Reply, most: int) -> None:
    with fleet(robots=2) as world:
        failing = world.inject(answer, verb=verb, part="/goals", times=1e6, seconds=60)
        match verb:
            case "create":
                world.source("lift")
            case "patch":
                world.cloud.set("dock", spec={"x": 2})
            case _:
                world.unplace()
        world.pass_time(55)
        assert 2 <= failing.met <= most
        world.pass_time(65)
        assert world.judge.disagreements() == []
        world.agree()
