"""Shared mode together with what else may happen: shards away, kinds that change, other placements (F10.3)."""

from tests.fleet_model import oracle
from tests.fleet_model.sharded import GOALS, sharded
from tests.fleet_model.sharing import NEW, OLD, mark, returned, shared
from tests.model.simulation.answers import CONFLICT, FORBIDDEN, invalid

FILTER = "cr-syncer.cloudrobotics.com/filter-by-robot-name"
PLACEMENTS, DECISIONS = oracle.PLACEMENTS, f"robotplacementdecisions.{oracle.FLEET}"
READY = "returned.status.phase == 'Ready'"


def test_F10_3_F5_4_copies_that_are_kept_lose_the_mark_of_what_robots_share() -> None:
    with shared(deletionPolicy="KeepReplicas") as fleet:
        fleet.world.unplace()
        fleet.world.settle()
        for name in "bc":
            copy = fleet[name].cloud.get("dock", namespace="default")
            assert copy is not None
            assert (copy["spec"], oracle.texts(copy, "labels"), oracle.texts(copy, "annotations")) == (OLD, {}, {})
        assert mark(fleet) is None
        assert fleet.world.stored(PLACEMENTS) == {}


def test_F10_3_F3_7_an_object_that_is_handed_over_by_its_label_becomes_the_copy() -> None:
    with shared() as fleet:
        fleet["b"].cloud.create("lift", namespace="default", spec=NEW)
        fleet.world.source("lift")
        fleet.world.settle()
        identity = oracle.digest([GOALS, "default", "lift"])
        fleet["b"].cloud.label("lift", namespace="default", **{oracle.SOURCE: identity})
        fleet.agree()
        assert fleet["b"].specs()["default/lift"] == OLD
        assert fleet.world.status()["errors"] == []


def test_F10_3_F10_2_a_shard_that_is_not_in_the_settings_keeps_its_copies_as_they_are() -> None:
    with shared() as fleet:
        fleet.world.kill()
        shard = fleet.shards.pop("b")
        fleet.world.start()
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree()
        fleet.world.pass_time(60)
        assert fleet.world.decided() == {"r0": "Stamped", "rb": "Blocked", "rc": "Stamped"}
        assert shard.specs() == {"default/dock": OLD}
        fleet.world.unplace()
        fleet.world.pass_time(60)
        assert fleet.world.stored(PLACEMENTS) == {}
        assert mark(fleet) is None
        fleet.world.kill()
        fleet.shards["b"] = shard
        fleet.world.start()
        fleet.world.pass_time(200)
        assert shard.specs() == {"default/dock": OLD}


def test_F10_3_F4_2_a_strip_changes_the_copies_alone() -> None:
    with shared() as fleet:
        fleet.world.cloud.set("dock", spec={"x": 1, "y": 2})
        fleet.world.strip("s", "/spec/y")
        fleet.agree()
        assert fleet["b"].specs() == fleet["c"].specs() == {"default/dock": OLD}
        source = fleet.world.cloud.get("dock", namespace="default")
        assert source is not None
        assert source["spec"] == {"x": 1, "y": 2}


def test_F10_3_F5_3_a_new_leader_waits_for_the_copies_of_a_shard_that_is_away() -> None:
    with shared() as fleet:
        fleet.world.cut(fleet["b"].link)
        fleet.world.unplace()
        fleet.world.pass_time(60)
        fleet.world.kill()
        fleet.world.start()
        fleet.world.pass_time(120)
        assert (fleet["b"].specs(), fleet["c"].specs()) == ({"default/dock": OLD}, {})
        assert fleet.world.placement()["metadata"]["finalizers"]
        fleet.world.mend(fleet["b"].link)
        fleet.agree()
        assert fleet["b"].specs() == {}
        assert fleet.world.stored(PLACEMENTS) == {}


def test_F10_3_F5_1_a_copy_goes_once_its_shard_is_back_also_under_a_new_leader() -> None:
    with shared() as fleet:
        fleet.world.source("lift")
        fleet.agree()
        fleet.world.cut(fleet["b"].link)
        fleet.world.cloud.delete("lift")
        fleet.world.pass_time(60)
        fleet.world.kill()
        fleet.world.start()
        fleet.world.pass_time(120)
        assert fleet["b"].specs().keys() == {"default/dock", "default/lift"}
        fleet.world.mend(fleet["b"].link)
        fleet.agree()
        assert fleet["b"].specs().keys() == {"default/dock"}


def test_F10_3_S5_5_a_kind_that_goes_on_a_shard_is_waited_for_by_nobody() -> None:
    with shared() as fleet:
        fleet["b"].cloud.delete_kind()
        while not fleet["b"].cloud.sweep():
            fleet.world.pass_time(1)
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree("c")
        assert fleet.world.condition("Resolved") == ("False", "NotServed")
        fleet.world.unplace()
        fleet.world.settle()
        assert fleet.world.stored(PLACEMENTS) == {}
        assert mark(fleet) is None


def test_F10_3_F2_3_a_kind_that_is_filtered_no_more_keeps_its_replicas_and_is_shared_beside_them() -> None:
    with sharded() as fleet:
        fleet.world.pass_time(5)
        fleet.world.place("q", mode="Shared")
        fleet.world.settle()
        began, clouds = fleet.world.clock.now, [fleet.world.cloud, fleet["b"].cloud, fleet["c"].cloud]
        for cloud in clouds:
            cloud.annotate_kind({FILTER: None})
        fleet.world.settle()
        fleet.world.kill()
        fleet.world.start()
        fleet.world.settle()
        assert fleet.world.condition("Resolved") == ("False", "NotPlaceable")
        assert fleet.world.condition("Resolved", "q") == ("True", "Resolved")
        assert mark(fleet) == fleet.world.placement("q")["metadata"]["uid"]
        for cloud in clouds:
            cloud.annotate_kind({FILTER: "true"})
        fleet.world.settle()
        assert fleet["b"].specs() == {"default/dock": OLD, "robot-rb/dock": OLD}
        assert fleet["b"].verbs(began) == ["create"]
        assert fleet.world.condition("Resolved", "q") == ("False", "NotPlaceable")
        fleet.world.unplace("q")
        fleet.world.settle()
        assert fleet["b"].specs() == {"robot-rb/dock": OLD}
        assert mark(fleet) is None


def test_F10_3_F2_4_two_placements_read_one_status_and_the_older_one_has_the_copies() -> None:
    with shared(readyWhen=READY) as fleet:
        fleet.world.pass_time(5)
        fleet.world.place("q", mode="Shared", readyWhen=READY)
        fleet.agree()
        for robot in ("r0", "rb", "rc"):
            returned(fleet, robot, {"phase": "Ready"})
        fleet.world.settle()
        assert {*fleet.world.decided().values(), *fleet.world.decided("q").values()} == {"Ready"}
        assert [fleet.world.status(name)["counts"]["replicas"] for name in "pq"] == [2, 0]
        fleet.world.unplace()
        fleet.agree()
        assert set(fleet.world.decided("q").values()) == {"Ready"}
        assert fleet.world.status("q")["counts"]["replicas"] == 2


def test_F10_3_a_mark_that_was_refused_is_told_no_more_once_its_source_is_gone() -> None:
    with shared() as fleet:
        fleet.world.source("lift")
        fleet.world.inject(invalid(), verb="patch", part="/goals/lift", times=1)
        fleet.world.pass_time(60)
        [error] = fleet.world.status()["errors"]
        assert error["source"] == "default/lift"
        fleet.world.cloud.delete("lift")
        fleet.agree()
        fleet.world.settle()
        assert fleet.world.status()["errors"] == []


def test_F10_3_F5_2_what_is_held_of_a_placement_that_is_gone_stays_named_while_its_kind_cannot_be_listed() -> None:
    with shared() as fleet:
        fleet.world.kill()
        fleet.world.cloud.finalize("p", kind=PLACEMENTS)
        fleet.world.unplace()
        assert fleet.world.stored(PLACEMENTS) == {}
        for name in "bc":
            fleet.world.inject(FORBIDDEN, verb="list", part="/goals", name=fleet[name].link, times=10)
        fleet.world.start()
        fleet.world.pass_time(60)
        assert len(fleet.world.stored(DECISIONS)) == 1
        fleet.world.pass_time(600)
        assert fleet["b"].specs() == fleet["c"].specs() == {"default/dock": OLD}
        assert len(fleet.world.stored(DECISIONS)) == 1


def test_F10_3_what_a_shard_refuses_of_a_copy_is_told_with_the_shard() -> None:
    with shared() as fleet:
        fleet.world.inject(invalid(), name=fleet["b"].link, verb="create", part="/goals", times=1)
        fleet.world.source("lift")
        fleet.world.pass_time(60)
        [error] = fleet.world.status()["errors"]
        assert (error["robot"], error["source"], error["reason"]) == ("", "default/lift", "Refused")
        assert error["message"].startswith("shard b: ")
        assert fleet.world.decided() == {"r0": "Stamped", "rb": "Blocked", "rc": "Stamped"}
        fleet.agree("c")
        fleet.world.pass_time(3600)
        fleet.agree()


def test_F10_3_F6_4_a_robot_of_the_root_is_counted_again_when_the_first_source_comes_and_the_last_one_goes() -> None:
    with shared() as fleet:
        fleet.world.cloud.delete("dock")
        fleet.agree()
        fleet.world.settle()
        assert fleet.world.decided() == {"r0": "Ready", "rb": "Ready", "rc": "Ready"}
        fleet.world.source("lift")
        fleet.agree()
        fleet.world.settle()
        assert fleet.world.decided() == {"r0": "Stamped", "rb": "Stamped", "rc": "Stamped"}


def test_F10_3_F2_2_a_source_that_is_labelled_for_one_robot_loses_its_mark_and_its_copies() -> None:
    with shared() as fleet:
        fleet.world.cloud.label("dock", **{oracle.ROBOT_LABEL: "r0"})
        fleet.agree()
        assert fleet["b"].specs() == fleet["c"].specs() == {}
        assert mark(fleet) is None


def test_F10_3_F3_3_a_mark_that_meets_a_conflict_is_decided_anew() -> None:
    with shared() as fleet:
        fleet.world.inject(CONFLICT, verb="patch", part="/goals/lift", times=1)
        fleet.world.source("lift")
        fleet.world.pass_time(60)
        assert mark(fleet, "lift")


def test_F10_3_a_mark_that_was_refused_is_tried_again_once_its_source_changes() -> None:
    with shared() as fleet:
        fleet.world.inject(invalid(), verb="patch", part="/goals/lift", times=1)
        fleet.world.source("lift")
        fleet.world.pass_time(60)
        assert mark(fleet, "lift") is None
        fleet.world.cloud.set("lift", spec=NEW)
        fleet.world.pass_time(10)
        assert mark(fleet, "lift")
        assert fleet.world.status()["errors"] == []


def test_F10_3_F6_3_the_decision_of_a_placement_with_copies_names_no_robot_once_the_last_one_is_gone() -> None:
    with shared(robotSelectors=[], robotNames=["r0", "rb"]) as fleet:
        fleet.world.lose_robots("r0", "rb")
        fleet.world.settle()
        assert fleet.world.decided() == {}
        assert len(fleet.world.stored(DECISIONS)) == 1
        began = fleet.world.clock.now
        fleet.world.kill()
        for name in "bc":
            fleet.world.cut(fleet[name].link)
        fleet.world.start()
        fleet.world.pass_time(60)
        for name in "bc":
            fleet.world.mend(fleet[name].link)
        fleet.world.pass_time(60)
        assert fleet.world.written(began, resource=DECISIONS) == []
        fleet.world.unplace()
        fleet.agree()
        assert fleet.world.stored(DECISIONS) == {}


def test_F10_3_F6_3_errors_of_shards_without_robots_are_what_they_were_under_a_new_leader() -> None:
    with shared(robotSelectors=[], robotNames=["r0"]) as fleet:
        for name in "cb":
            fleet[name].cloud.create("lift", namespace="default", spec=NEW)
        fleet.world.source("lift")
        fleet.world.settle()
        began = fleet.world.clock.now
        fleet.world.kill()
        for name in "bc":
            fleet.world.weather[fleet[name].link].latency = 1.0
        fleet.world.start()
        fleet.world.settle()
        assert fleet.world.written(began) == []
        assert [each["message"].partition(" is ")[0] for each in fleet.world.status()["errors"]] == [
            f"{GOALS} default/lift on shard {name}" for name in "bc"
        ]


def test_F10_3_F5_3_a_placement_that_has_lost_its_mode_takes_its_marks_and_copies_with_it() -> None:
    with shared() as fleet:
        fleet.world.edit(mode=None)  # as reading it by the CRD of an older release does
        fleet.world.settle()
        assert fleet.world.condition("Resolved") == ("False", "NotPlaceable")
        assert fleet["b"].specs() == {"default/dock": OLD}
        fleet.world.unplace()
        fleet.agree()
        assert fleet["b"].specs() == fleet["c"].specs() == {}
        assert mark(fleet) is None
        assert fleet.world.stored(PLACEMENTS) == {}
