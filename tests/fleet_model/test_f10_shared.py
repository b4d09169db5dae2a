"""Shared mode: one write of ours per shard reaches every robot, and their statuses are objects of their own (F10.3)."""

from crsyncer.ports import Reply
from tests.fleet_model import oracle
from tests.fleet_model.oracle import SHARED
from tests.fleet_model.sharded import GOALS, sharded
from tests.fleet_model.sharing import NEW, OLD, mark, returned, shared
from tests.model.simulation.answers import invalid
from tests.model.simulation.plane import GROUP


def test_F10_3_one_write_for_each_shard_brings_an_edit_to_every_robot() -> None:
    with shared() as fleet:
        assert fleet["b"].specs() == fleet["c"].specs() == {"default/dock": OLD}
        assert mark(fleet) == fleet.world.placement()["metadata"]["uid"]
        assert fleet.world.status()["counts"]["replicas"] == 2
        began = fleet.world.clock.now
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree()
        assert fleet["b"].specs() == fleet["c"].specs() == {"default/dock": NEW}
        assert fleet["b"].verbs(began) == fleet["c"].verbs(began) == ["patch"]
        assert sorted(each.process for each in fleet.world.written(began, resource=GOALS)) == ["a@b", "a@c"]


def test_F10_3_copies_have_our_marks_and_are_for_no_robot() -> None:
    with shared() as fleet:
        copy = fleet["b"].cloud.get("dock", namespace="default")
        assert copy is not None
        assert oracle.texts(copy, "labels") == {oracle.SOURCE: oracle.digest([GOALS, "default", "dock"])}
        uid = fleet.world.placement()["metadata"]["uid"]
        assert oracle.texts(copy, "annotations")[SHARED] == uid


def test_F10_3_a_copy_that_is_missing_is_made_again_and_removes_nothing() -> None:
    with shared() as fleet:
        began = fleet.world.clock.now
        fleet["b"].cloud.delete("dock", namespace="default")
        fleet.agree()
        assert fleet["b"].specs() == {"default/dock": OLD}
        assert fleet["b"].verbs(began) == ["create"]
        assert fleet["c"].verbs(began) == []
        assert mark(fleet)


def test_F10_3_F3_5_a_copy_that_somebody_changes_is_written_again_but_a_status_there_is_the_robots() -> None:
    with shared() as fleet:
        began = fleet.world.clock.now
        fleet["b"].cloud.set_status("dock", {"phase": "Ready"}, namespace="default")
        fleet.world.settle()
        assert fleet["b"].verbs(began) == []
        fleet["b"].cloud.set("dock", namespace="default", spec=NEW)
        fleet.agree()
        assert fleet["b"].specs() == {"default/dock": OLD}
        fleet["b"].cloud.annotate("dock", {SHARED: None}, namespace="default")
        fleet.agree()
        copy = fleet["b"].cloud.get("dock", namespace="default")
        assert copy is not None
        assert SHARED in oracle.texts(copy, "annotations")
        assert copy["status"] == {"phase": "Ready"}


def test_F10_3_a_restart_writes_nothing() -> None:
    with shared(readyWhen="returned.status.phase == 'Ready'") as fleet:
        for robot in ("r0", "rb", "rc"):
            returned(fleet, robot, {"phase": "Ready"})
        fleet.world.settle()
        fleet.world.kill()
        began = fleet.world.clock.now
        fleet.world.start()
        fleet.world.settle()
        assert fleet.world.written(began) == []
        assert set(fleet.world.decided().values()) == {"Ready"}


def test_F10_3_F8_5_a_robot_is_stamped_until_what_it_returns_is_as_ready_when_asks() -> None:
    with shared(readyWhen="returned.status.phase == 'Ready'") as fleet:
        assert fleet.world.decided() == {"r0": "Stamped", "rb": "Stamped", "rc": "Stamped"}
        returned(fleet, "r0", {"phase": "Ready"})
        returned(fleet, "rb", {"phase": "Ready"})
        returned(fleet, "rc", {"phase": "Busy"})
        fleet.world.settle()
        assert fleet.world.decided() == {"r0": "Ready", "rb": "Ready", "rc": "Stamped"}
        returned(fleet, "rc", {"phase": "Ready"})
        fleet.world.settle()
        assert fleet.world.status()["counts"]["ready"] == 3
        source = fleet.world.cloud.get("dock", namespace="default")
        assert source is not None
        assert "status" not in source


def test_F10_3_only_a_status_of_the_very_object_that_a_robot_has_counts() -> None:
    with shared(readyWhen="returned.status.phase == 'Ready'") as fleet:
        returned(fleet, "rb", {"phase": "Ready"}, uid="another")
        returned(fleet, "rc", {"phase": "Ready"})
        fleet.world.settle()
        assert fleet.world.decided() == {"r0": "Stamped", "rb": "Stamped", "rc": "Ready"}
        fleet["c"].cloud.delete("dock", namespace="default")
        fleet.agree()
        assert fleet.world.decided()["rc"] == "Stamped"


def test_F10_3_collectors_read_what_robots_return() -> None:
    collector = {
        "select": [{"name": "robot", "def": "inventory.name"}, {"name": "phase", "def": "returned.status.phase"}]
    }
    with shared(statusCollectors=["phases"]) as fleet:
        fleet.world.cloud.create("phases", kind="statuscollectors.fleet.crsyncer.cloudrobotics.com", spec=collector)
        for robot in ("r0", "rb", "rc"):
            returned(fleet, robot, {"phase": robot.upper()})
        fleet.world.settle()
        [combined] = fleet.world.stored("combinedstatuses.fleet.crsyncer.cloudrobotics.com").values()
        [result] = combined["results"]
        assert [[cell["value"] for cell in row] for row in result["rows"]] == [["r0", "R0"], ["rb", "RB"], ["rc", "RC"]]


def test_F10_3_a_source_that_is_selected_no_more_loses_its_mark_and_its_copies() -> None:
    with shared() as fleet:
        fleet.world.edit(resources=[{"group": GROUP, "resource": "goals", "names": ["other"]}])
        fleet.agree()
        assert fleet["b"].specs() == fleet["c"].specs() == {}
        assert mark(fleet) is None
        assert fleet.world.cloud.get("dock", namespace="default")


def test_F10_3_F5_3_the_finalizer_waits_for_marks_and_for_copies_on_each_shard() -> None:
    with shared() as fleet:
        fleet.world.cut(fleet["b"].link)
        fleet.world.unplace()
        fleet.world.pass_time(120)
        assert fleet["c"].specs() == {}
        assert mark(fleet) is None
        assert fleet.world.placement()["metadata"]["finalizers"]
        fleet.world.mend(fleet["b"].link)
        fleet.agree()
        assert fleet["b"].specs() == {}
        assert fleet.world.stored("robotplacements.fleet.crsyncer.cloudrobotics.com") == {}


def test_F10_3_F5_3_the_finalizer_waits_for_a_mark_that_cannot_be_removed() -> None:
    with shared() as fleet:
        fleet.world.inject(invalid(), verb="patch", part="/goals/dock", times=1)
        fleet.world.unplace()
        fleet.world.pass_time(120)
        assert fleet["b"].specs() == fleet["c"].specs() == {}
        assert fleet.world.placement()["metadata"]["finalizers"]
        [error] = fleet.world.status()["errors"]
        assert (error["source"], error["reason"]) == ("default/dock", "Refused")
        fleet.world.pass_time(3600)
        assert mark(fleet) is None
        assert fleet.world.stored("robotplacements.fleet.crsyncer.cloudrobotics.com") == {}


def test_F10_3_S8_a_restored_shard_gets_its_copies_again_and_what_it_brings_back_is_held() -> None:
    with shared() as fleet:
        empty = fleet["b"].cloud.snapshot()
        fleet.world.source("lift")
        fleet.agree()
        full = fleet["b"].cloud.snapshot()
        fleet["b"].cloud.restore(empty)
        fleet.agree()
        assert set(fleet["b"].specs()) == {"default/dock", "default/lift"}
        fleet.world.cloud.delete("lift")
        fleet.agree()
        fleet["b"].cloud.restore(full)
        fleet.world.pass_time(200)
        assert fleet.world.holds() == {"Restored": 1}
        assert set(fleet["b"].specs()) == {"default/dock", "default/lift"}
        assert set(fleet["c"].specs()) == {"default/dock"}


def test_F10_3_F10_2_a_robot_on_a_shard_that_nobody_knows_is_blocked() -> None:
    with shared() as fleet:
        fleet.enrol("rx", "x")
        fleet.world.settle()
        assert fleet.world.decided()["rx"] == "Blocked"
        [error] = fleet.world.status()["errors"]
        assert (error["robot"], error["reason"]) == ("rx", "UnknownShard")


def test_F10_3_F2_4_the_next_placement_takes_over_by_one_write_for_each_object() -> None:
    with shared() as fleet:
        fleet.world.pass_time(5)
        fleet.world.place("q", mode="Shared")
        fleet.agree()
        began = fleet.world.clock.now
        fleet.world.unplace()
        fleet.agree()
        assert mark(fleet) == fleet.world.placement("q")["metadata"]["uid"]
        assert fleet["b"].verbs(began) == fleet["c"].verbs(began) == ["patch"]


def test_F10_3_F3_7_an_object_of_that_name_on_a_shard_is_not_taken() -> None:
    with shared() as fleet:
        fleet["b"].cloud.create("lift", namespace="default", spec=NEW)
        fleet.world.source("lift")
        fleet.world.settle()
        assert fleet["c"].specs() == {"default/dock": OLD, "default/lift": OLD}
        [error] = fleet.world.status()["errors"]
        assert (error["robot"], error["reason"]) == ("", "NameTaken")
        assert error["message"].startswith(f"{GOALS} default/lift on shard b is not of this source; label it ")
        assert fleet.world.decided() == {"r0": "Stamped", "rb": "Blocked", "rc": "Stamped"}


def test_F10_3_F5_1_a_copy_goes_with_its_source_and_no_robot_that_leaves_takes_one_with_it() -> None:
    with shared() as fleet:
        fleet.world.lose_robots("rb", "rc")
        fleet.world.settle()
        assert fleet["b"].specs() == fleet["c"].specs() == {"default/dock": OLD}
        fleet.world.source("lift")
        fleet.agree()
        fleet.world.cloud.delete("lift")
        fleet.agree()
        assert fleet["b"].specs() == {"default/dock": OLD}


def test_F2_3_each_kind_is_placed_in_its_own_mode_alone() -> None:
    with shared() as fleet:
        fleet.world.place("q", mode="Replica")
        fleet.world.pass_time(60)
        assert fleet.world.condition("Resolved", "q") == ("False", "NotPlaceable")
        assert fleet.world.condition("Resolved") == ("True", "Resolved")
        assert fleet.world.specs() == {}
    with sharded() as fleet:
        fleet.world.place("q", mode="Shared")
        fleet.world.pass_time(60)
        assert fleet.world.condition("Resolved", "q") == ("False", "NotPlaceable")
        assert mark(fleet) is None


def test_F10_3_F6_2_no_status_lands_on_a_source_and_the_condition_says_so() -> None:
    with shared(statusReturn="Singleton", robotSelectors=[], robotNames=["rb"]) as fleet:
        returned(fleet, "rb", {"phase": "Ready"})
        for name in "bc":  # an agent that does not know the mark
            fleet[name].cloud.set_status("dock", {"phase": "Ready"}, namespace="default")
        fleet.world.settle()
        source = fleet.world.cloud.get("dock", namespace="default")
        assert source is not None
        assert "status" not in source
        [message] = [each["message"] for each in fleet.world.status()["conditions"] if each["type"] == "Resolved"]
        assert "statusReturn has no effect" in message


def test_F10_3_without_other_shards_a_source_is_marked_and_let_go() -> None:
    with sharded(shards=(), filtered=None, mode="Shared") as fleet:
        fleet.world.settle()
        assert mark(fleet)
        assert [each.verb for each in fleet.world.written(resource=GOALS)] == ["patch"]
        began = fleet.world.clock.now
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.settle()
        assert fleet.world.written(began, resource=GOALS) == []
        fleet.world.unplace()
        fleet.world.settle()
        assert mark(fleet) is None
        assert fleet.world.stored("robotplacements.fleet.crsyncer.cloudrobotics.com") == {}


def test_F10_3_a_source_that_cannot_be_marked_stops_no_other() -> None:
    with shared() as fleet:
        fleet.world.source("lift")
        answer = Reply(500, {"kind": "Status", "code": 500, "message": "a webhook is broken"})
        fleet.world.inject(answer, verb="patch", part="/goals/lift", times=3)
        fleet.world.source("other")
        fleet.world.pass_time(60)
        assert mark(fleet, "other")
        assert fleet["b"].specs().keys() == {"default/dock", "default/lift", "default/other"}
        fleet.agree()
        fleet.world.pass_time(120)
        assert mark(fleet, "lift")
        assert fleet.world.status()["errors"] == []
