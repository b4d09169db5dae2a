"""Each robot's replicas are on its own shard, and a shard that is away stops nothing but itself (F1.1, F5, F10.2)."""

import pytest

from crsyncer.ports import Reply
from tests.fleet_model.oracle import ROBOTS
from tests.fleet_model.sharded import GOALS, SHARD_LABEL, SYNC_STATES, Sharded, sharded
from tests.fleet_model.world_parts import DECISIONS
from tests.model.simulation.answers import FORBIDDEN

NEW, OLD = {"x": 2}, {"x": 1}


def test_F10_2_each_robot_gets_its_replicas_on_its_own_shard_alone() -> None:
    with sharded() as fleet:
        assert list(fleet.world.specs()) == ["robot-r0/dock"]
        assert list(fleet["b"].specs()) == ["robot-rb/dock"]
        assert list(fleet["c"].specs()) == ["robot-rc/dock"]
        assert fleet.world.status()["counts"]["replicas"] == 3
        assert fleet["b"].cloud.objects("namespaces")["robot-rb"]["metadata"]["labels"]
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree()
        assert fleet["b"].specs() == {"robot-rb/dock": NEW}


def test_F3_4_a_restart_writes_nothing_on_any_shard() -> None:
    with sharded() as fleet:
        fleet.world.kill()
        began = fleet.world.clock.now
        fleet.world.start()
        fleet.world.settle()
        assert fleet["b"].verbs(began) == fleet["c"].verbs(began) == []
        assert fleet.world.written(began, resource="goals") == []


def test_F5_1_what_nobody_wants_goes_on_each_shard() -> None:
    with sharded() as fleet:
        fleet.world.lose_robots("rb")
        fleet.agree()
        assert fleet["b"].specs() == {}
        fleet.world.cloud.delete("dock")
        fleet.agree()
        assert fleet["c"].specs() == fleet.world.specs() == {}


def test_F5_3_the_finalizer_waits_for_the_shards_of_its_robots() -> None:
    with sharded() as fleet:
        fleet.world.cut(fleet["b"].link)
        fleet.world.unplace()
        fleet.world.pass_time(300)
        assert fleet["c"].specs() == {}
        assert fleet.world.placement()["metadata"]["finalizers"]
        fleet.world.mend(fleet["b"].link)
        fleet.agree()
        assert fleet["b"].specs() == {}
        assert fleet.world.stored("robotplacements.fleet.crsyncer.cloudrobotics.com") == {}


def test_F1_1_a_shard_that_is_away_stops_no_other_and_loses_nothing() -> None:
    with sharded() as fleet:
        began = fleet.world.clock.now
        fleet.world.cut(fleet["b"].link)
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.pass_time(200)
        assert fleet["c"].specs() == {"robot-rc/dock": NEW}
        assert fleet.world.specs() == {"robot-r0/dock": NEW}
        assert fleet["b"].verbs(began) == []
        assert fleet.world.decided()["rb"] == "Waiting"
        assert fleet.world.holds() == {}
        fleet.world.mend(fleet["b"].link)
        fleet.agree()
        assert fleet["b"].specs() == {"robot-rb/dock": NEW}
        assert fleet["b"].verbs(began) == ["patch"]


def test_F1_1_F6_3_a_decision_names_no_robot_that_has_gone_while_a_new_leader_cannot_see_a_shard() -> None:
    with sharded(robotSelectors=[], robotNames=["r0"]) as fleet:
        fleet.world.settle()
        assert set(fleet.world.decided()) == {"r0"}
        fleet.world.kill()
        fleet.world.cut(fleet["b"].link)
        fleet.world.start()
        fleet.world.pass_time(60)
        fleet.world.edit(robotNames=["r9"])
        fleet.world.pass_time(60)
        assert fleet.world.specs() == {}
        assert fleet.world.decided() == {}
        assert len(fleet.world.stored(DECISIONS)) == 1
        fleet.world.mend(fleet["b"].link)
        fleet.agree()
        assert fleet.world.stored(DECISIONS) == {}


def test_F1_1_a_new_leader_goes_on_without_a_shard_that_is_away_and_changes_nothing_there() -> None:
    with sharded() as fleet:
        fleet.world.kill()
        fleet.world.cut(fleet["b"].link)
        began = fleet.world.clock.now
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.lose_robots("rc")
        fleet.world.start()
        fleet.world.pass_time(300)
        assert fleet.world.specs() == {"robot-r0/dock": NEW}
        assert fleet["c"].specs() == {}
        assert fleet.world.decided()["rb"] == "Waiting"
        assert fleet.world.status()["counts"]["blocked"] == 0
        fleet.world.mend(fleet["b"].link)
        fleet.agree()
        assert fleet["b"].verbs(began) == ["patch"]


@pytest.mark.parametrize("part", ["/goals", "customresourcedefinitions"], ids=["the kind", "the CRDs"])
def test_F1_1_nothing_is_written_to_a_kind_on_a_shard_before_it_is_listed_there(part: str) -> None:
    with sharded(start=False) as fleet:
        rule = fleet.world.inject(FORBIDDEN, name=fleet["b"].link, part=part, times=1_000_000, seconds=200)
        fleet.world.start()
        fleet.world.pass_time(150)
        assert rule.met
        assert fleet["b"].verbs() == []
        assert list(fleet["c"].specs()) == ["robot-rc/dock"]
        assert fleet.world.decided()["rb"] == "Waiting"
        fleet.agree()


def test_F5_2_an_empty_list_of_a_shard_removes_nothing_and_makes_nothing_twice() -> None:
    with sharded() as fleet:
        began = fleet.world.clock.now
        empty = Reply(200, {"metadata": {"resourceVersion": "999999"}, "items": []})
        fleet.world.inject(empty, name=fleet["b"].link, verb="list", part="/goals")
        fleet["b"].cloud.others_write(5)
        fleet["b"].cloud.restart()
        fleet.world.pass_time(200)
        fleet.agree()
        assert "delete" not in fleet["b"].verbs(began)
        assert fleet["c"].verbs(began) == []


def test_F5_2_what_a_restored_shard_brings_back_is_held() -> None:
    with sharded() as fleet:
        for number in range(3):
            fleet.world.source(f"s{number}")
        fleet.agree()
        old = fleet["b"].cloud.snapshot()
        fleet.world.cloud.delete("s0")
        fleet.agree()
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree()
        began = fleet.world.clock.now
        fleet["b"].cloud.restore(old)
        fleet.world.pass_time(200)
        assert fleet.world.holds() == {"Restored": 1}
        assert "delete" not in fleet["b"].verbs(began)
        assert fleet["c"].verbs(began) == []
        assert fleet["b"].specs()["robot-rb/dock"] == NEW
        assert "robot-rb/s0" in fleet["b"].specs()


def test_F5_2_what_is_lost_on_other_shards_is_not_held_because_one_was_restored() -> None:
    with sharded() as fleet:
        for number in range(3):
            fleet.world.source(f"s{number}")
        fleet.agree()
        old = fleet["b"].cloud.snapshot()
        fleet["b"].cloud.others_write(20)
        fleet["b"].cloud.restore(old)
        fleet.world.cloud.delete("s0")
        fleet.world.pass_time(200)
        assert "robot-rc/s0" not in fleet["c"].specs()


def test_F10_2_G7_1_a_label_alone_moves_nothing() -> None:
    with sharded() as fleet:
        fleet.move("rb", "c")
        fleet.world.pass_time(1)
        began = fleet.world.clock.now
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.pass_time(200)
        assert fleet["b"].specs() == {"robot-rb/dock": OLD}
        assert list(fleet["c"].specs()) == ["robot-rc/dock"]
        assert fleet["b"].verbs(began) == []
        assert fleet.world.decided()["rb"] == "Blocked"
        assert fleet.world.status()["errors"][0]["reason"] == "OtherShard"
        assert "door split" in fleet.world.status()["errors"][0]["message"]
        fleet.move("rb", "b")
        fleet.agree()
        assert fleet["b"].specs() == {"robot-rb/dock": NEW}


def test_G7_2_after_a_split_by_a_clone_the_new_shard_goes_on_and_the_old_one_is_left_alone() -> None:
    with sharded() as fleet:
        fleet.world.kill()
        fleet["c"].cloud.restore(fleet["b"].cloud.snapshot())
        fleet.world.lose_robots("rc")
        fleet.move("rb", "c")
        began = fleet.world.clock.now
        uid = fleet["c"].server.storage.of(GOALS)["robot-rb", "dock"]["metadata"]["uid"]
        fleet.world.start()
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.source("lift")
        fleet.world.settle()
        assert fleet["c"].specs() == {"robot-rb/dock": NEW, "robot-rb/lift": OLD}
        assert fleet["c"].server.storage.of(GOALS)["robot-rb", "dock"]["metadata"]["uid"] == uid
        assert fleet["b"].specs() == {"robot-rb/dock": OLD}
        assert fleet["b"].verbs(began) == []
        assert fleet.world.decided()["rb"] in ("Ready", "Stamped")
        fleet["b"].cloud.delete("dock", namespace="robot-rb")
        fleet.agree()


def test_F5_3_a_replica_that_is_left_at_the_old_shard_keeps_no_placement() -> None:
    with sharded() as fleet:
        fleet.move("rb", "c")
        fleet.world.pass_time(60)
        fleet.world.unplace()
        fleet.world.pass_time(120)
        assert fleet.world.stored("robotplacements.fleet.crsyncer.cloudrobotics.com") == {}
        assert list(fleet["b"].specs()) == ["robot-rb/dock"]


def test_F10_2_without_the_Robot_its_replicas_go_where_they_are() -> None:
    with sharded() as fleet:
        fleet.move("rb", "c")
        fleet.world.pass_time(60)
        fleet.world.lose_robots("rb")
        fleet.world.pass_time(120)
        assert fleet["b"].specs() == {}


def test_G4_1_a_robot_on_a_shard_that_nobody_knows_is_blocked_and_says_why() -> None:
    with sharded() as fleet:
        fleet.enrol("rz", "z")
        fleet.world.pass_time(120)
        assert fleet.world.decided()["rz"] == "Blocked"
        error = fleet.world.status()["errors"][0]
        assert (error["robot"], error["reason"]) == ("rz", "UnknownShard")
        assert f"{SHARD_LABEL} names z; the controller's --shard has b, c, root" in error["message"]
        fleet.move("rz", "b")
        fleet.agree()


def test_F9_1_a_report_counts_on_the_robots_own_shard_alone() -> None:
    def report(fleet: Sharded, shard: str, robot: str) -> None:
        fleet[shard].cloud.make_namespace(f"robot-{robot}")
        fleet[shard].cloud.create(
            robot,
            kind=SYNC_STATES,
            namespace=f"robot-{robot}",
            labels={"cloudrobotics.com/robot-name": robot},
            annotations={"crsyncer.cloudrobotics.com/robot": robot},
            spec={"robot": robot, "beat": 1},
        )

    with sharded() as fleet:
        report(fleet, "b", "rb")
        report(fleet, "b", "rc")
        fleet.world.pass_time(60)
        assert fleet.world.status()["counts"]["unreported"] == 2
        report(fleet, "c", "rc")
        fleet.world.pass_time(60)
        assert fleet.world.status()["counts"]["unreported"] == 1


def test_F8_5_no_robot_of_a_shard_that_is_away_is_begun_and_those_of_others_are() -> None:
    rollout = {"maxConcurrency": 5, "minReadySeconds": 0}
    with sharded(start=False) as fleet:
        fleet.world.unplace()
        fleet.world.place("q", readyWhen="true", rollout=rollout)
        fleet.world.start()
        fleet.agree()
        fleet.world.cut(fleet["b"].link)
        fleet.world.pass_time(30)
        began = fleet.world.clock.now
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.pass_time(120)
        assert fleet["c"].specs() == {"robot-rc/dock": NEW}
        assert fleet.world.decided("q")["rb"] == "Waiting"
        assert fleet["b"].verbs(began) == []
        fleet.world.mend(fleet["b"].link)
        fleet.agree()


def test_F8_1_F8_5_a_new_leader_begins_no_later_group_while_the_shard_of_the_canaries_is_away() -> None:
    rollout = {"groups": [{"matchLabels": {"ring": "canary"}}], "minReadySeconds": 0}
    with sharded(start=False) as fleet:
        fleet.world.unplace()
        fleet.world.cloud.label("rb", kind=ROBOTS, ring="canary")
        fleet.world.place("q", readyWhen="true", rollout=rollout)
        fleet.world.start()
        fleet.agree()
        fleet.world.kill()
        fleet.world.cut(fleet["b"].link)
        began = fleet.world.clock.now
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.start()
        fleet.world.pass_time(200)
        assert fleet["c"].verbs(began) == []
        fleet.world.mend(fleet["b"].link)
        fleet.agree()


def test_F2_3_a_kind_that_a_shard_does_not_serve_is_not_written_there() -> None:
    with sharded(start=False) as fleet:
        fleet["b"].cloud.delete_kind()
        fleet["b"].cloud.sweep()
        fleet.world.start()
        fleet.agree("c")
        assert fleet["b"].verbs() == []
        assert fleet.world.decided()["rb"] == "Waiting"


def test_F2_3_F5_2_the_CRD_of_a_shard_that_goes_loses_nothing_else() -> None:
    with sharded() as fleet:
        began = fleet.world.clock.now
        fleet["b"].cloud.delete_kind()
        fleet["b"].cloud.sweep()
        fleet.world.pass_time(120)
        assert fleet["b"].verbs(began) == fleet["c"].verbs(began) == []
        assert fleet.world.holds() == {}
