"""Rollouts through the real controller, with robots that report, on virtual time (F8)."""

from typing import Any

import pytest

from tests.fleet_model.asking import Asked
from tests.fleet_model.fleet_agents import OFFLINE_SECONDS
from tests.fleet_model.rolling import entries, rolling
from tests.fleet_model.world_parts import DECISIONS, INVENTORY_KIND

CANARY: dict[str, Any] = {"groups": [{"matchLabels": {"canary": "yes"}}]}
CANARIES = {"o3": {"canary": "yes"}, "o4": {"canary": "yes"}}


def test_F8_1_canaries_come_first_and_the_others_wait_until_one_is_ready():
    with rolling(6, labels=CANARIES, **CANARY) as fleet:
        fleet.change(2)
        fleet.settle()
        assert set(fleet.watch.robots[:2]) == {"o3", "o4"}
        assert set(fleet.states().values()) == {"Ready"}
        assert fleet.with_content(2) == {f"o{number}" for number in range(1, 7)}


def test_F8_1_canaries_that_are_bad_stop_the_rest():
    with rolling(6, labels=CANARIES, maxFailures=5, **CANARY) as fleet:
        fleet.change("bad")
        fleet.settle()
        assert fleet.with_content("bad") == {"o3", "o4"}
        assert fleet.world.condition("RolledOut") == ("False", "WaitingForGroup")
        assert fleet.world.status()["group"] == 1


def test_F8_2_at_most_maxConcurrency_robots_are_in_flight():
    with rolling(8) as fleet:
        fleet.change(2)
        fleet.settle()
        assert fleet.watch.most == 2
        assert len(fleet.watch.begun) == 8
        assert set(fleet.states().values()) == {"Ready"}


def test_F8_2_paused_begins_none_and_finishes_what_was_begun():
    with rolling(5, delay=20.0) as fleet:
        fleet.change(2, seconds=5.0)
        begun = fleet.with_content(2)
        assert len(begun) == 2
        fleet.world.edit("p", rollout={**fleet.world.placement()["spec"]["rollout"], "paused": True})
        fleet.settle()
        assert fleet.with_content(2) == begun
        assert {name for name, state in fleet.states().items() if state == "Ready"} == begun
        assert fleet.world.condition("RolledOut") == ("False", "Paused")
        fleet.world.edit("p", rollout={**fleet.world.placement()["spec"]["rollout"], "paused": False})
        fleet.settle()
        assert set(fleet.states().values()) == {"Ready"}


def test_F8_3_maxFailures_stops_and_mended_content_goes_on():
    with rolling(6, maxFailures=1) as fleet:
        fleet.change("bad")
        fleet.settle()
        assert 2 <= len(fleet.with_content("bad")) <= 4
        assert fleet.world.condition("RolledOut") == ("False", "TooManyFailures")
        failed = {name: each for name, each in entries(fleet.world).items() if each["state"] == "Failed"}
        assert failed.keys() == fleet.with_content("bad")
        assert {each["message"] for each in failed.values()} == {"readyWhen does not hold"}
        fleet.change(3)
        fleet.settle()
        assert set(fleet.states().values()) == {"Ready"}
        assert len(fleet.with_content(3)) == 6


def test_F8_3_a_robot_fails_after_progressDeadlineSeconds_and_not_before():
    with rolling(1, progressDeadlineSeconds=300) as fleet:
        fleet.change("bad", seconds=290.0)
        assert fleet.states() == {"o1": "InFlight"}
        fleet.world.pass_time(30.0)
        assert fleet.states() == {"o1": "Failed"}


def test_F8_bad_content_reaches_at_most_maxConcurrency_and_maxFailures_and_one_robots():
    with rolling(100, offline=10, silent=10, maxConcurrency=5, maxFailures=2) as fleet:
        fleet.change("bad")
        fleet.settle()
        bad = fleet.with_content("bad")
        assert 3 <= len(bad) <= 5 + 2 + 1
        assert all(name.startswith("o") for name in bad)
        failed = {name for name, state in fleet.states().items() if state == "Failed"}
        assert failed == bad
        assert fleet.world.condition("RolledOut") == ("False", "TooManyFailures")
        fleet.agents.connect(*(f"f{number}" for number in range(1, 11)))
        fleet.world.pass_time(700)
        assert fleet.with_content("bad") == bad


def test_F8_content_that_kills_agents_reaches_no_more_robots():
    with rolling(30, offline=3, silent=3, maxConcurrency=3, maxFailures=1) as fleet:
        fleet.change("fatal")
        fleet.settle()
        assert len(fleet.with_content("fatal")) <= 3 + 1 + 1
        fleet.world.pass_time(3000.0)
        assert len(fleet.with_content("fatal")) <= 3 + 1 + 1
        assert all(name.startswith("o") for name in fleet.with_content("fatal"))


def test_F8_4_an_offline_robot_keeps_its_content_and_catches_up():
    with rolling(3, offline=2) as fleet:
        fleet.change(2)
        fleet.settle()
        assert fleet.with_content(2) == {"o1", "o2", "o3"}
        assert fleet.states()["f1"] == fleet.states()["f2"] == "Deferred"
        assert fleet.world.condition("RolledOut") == ("True", "Deferred")
        fleet.agents.connect("f1")
        fleet.settle()
        assert fleet.with_content(2) == {"o1", "o2", "o3", "f1"}
        assert (fleet.states()["f1"], fleet.states()["f2"]) == ("Ready", "Deferred")


def test_F8_4_robots_that_bad_content_took_offline_get_better_content_though_their_decision_is_deleted():
    with rolling(4, offline=1) as fleet:
        fleet.change("fatal", seconds=30.0)
        assert fleet.with_content("fatal")
        fleet.world.kill()
        for _, name in sorted(fleet.world.stored(DECISIONS)):
            fleet.world.cloud.delete(name, kind=DECISIONS)
        fleet.world.pass_time(OFFLINE_SECONDS)
        fleet.world.cloud.set("dock", spec={"x": 3})
        fleet.world.start()
        fleet.settle()
        assert fleet.with_content(3) == {"o1", "o2", "o3", "o4"}
        assert fleet.states()["f1"] == "Deferred"


def test_F8_5_without_reports_a_rollout_orders_and_gates_nothing():
    with rolling(0, silent=5, **CANARY, labels={"s2": {"canary": "yes"}}) as fleet:
        fleet.change(2)
        fleet.settle()
        assert len(fleet.with_content(2)) == 5
        for number in range(1, 6):
            fleet.world.cloud.set_status("dock", {"phase": "Ready"}, namespace=f"robot-s{number}")
        fleet.settle()
        assert fleet.world.condition("RolledOut") == ("True", "Ungated")
        assert set(fleet.states().values()) == {"Ready"}


def test_F8_5_without_the_CRD_of_reports_none_is_begun_and_nothing_is_removed():
    with rolling(4, silent=2) as fleet:
        definition = fleet.world.definition("robotsyncstates.fleet.crsyncer.cloudrobotics.com")
        fleet.world.cloud.delete_kind("robotsyncstates.fleet.crsyncer.cloudrobotics.com")
        fleet.world.cloud.sweep("robotsyncstates", group="fleet.crsyncer.cloudrobotics.com")
        fleet.world.pass_time(60)
        fleet.change(2)
        fleet.settle()
        assert fleet.with_content(1) == {"o1", "o2", "o3", "o4", "s1", "s2"}
        assert fleet.world.condition("RolledOut") == ("False", "NoReports")
        fleet.world.kill()
        fleet.world.start()
        fleet.settle()
        assert fleet.with_content(2) == set()
        fleet.world.serve(definition)
        fleet.world.pass_time(310)
        fleet.settle()
        assert {state for name, state in fleet.states().items() if name.startswith("o")} == {"Ready"}
        assert len(fleet.with_content(2)) == 6


def test_F8_1_a_removal_from_a_robot_with_replicas_due_comes_after_them():
    with rolling(2, maxConcurrency=1) as fleet:
        world = fleet.world
        world.source("lift")
        fleet.settle()
        began = world.clock.now
        world.cloud.delete("lift")
        fleet.change(2)
        fleet.settle()
        done = [f"{each.verb} {each.namespace}/{each.name}" for each in world.written(began, resource="goals")]
        for robot in ("o1", "o2"):
            assert done.index(f"patch robot-{robot}/dock") < done.index(f"delete robot-{robot}/lift")
        assert set(fleet.states().values()) == {"Ready"}


def test_F8_a_robot_that_joins_in_the_middle_is_begun_within_the_limits():
    with rolling(4) as fleet:
        fleet.change(2, seconds=5.0)
        fleet.world.robots("o9")
        fleet.agents.connect("o9")
        fleet.settle()
        assert fleet.watch.most == 2
        assert set(fleet.states().values()) == {"Ready"}
        assert "o9" in fleet.with_content(2)


def test_F8_a_robot_that_is_gone_frees_its_place():
    with rolling(5, maxConcurrency=1, delay=20.0) as fleet:
        fleet.change(2, seconds=5.0)
        (begun,) = fleet.with_content(2)
        fleet.world.cloud.delete(begun, kind=INVENTORY_KIND)
        fleet.agents.cut(begun)
        fleet.settle()
        assert set(fleet.states().values()) == {"Ready"}
        assert len(fleet.with_content(2)) == 4


@pytest.mark.parametrize("ready_when", ["true", "returned.status.phase == 'Ready'"])
def test_F8_without_a_rollout_all_are_written_at_once_and_reports_only_change_states(ready_when):
    with rolling(4, offline=2, silent=1, begin=False, ready_when=ready_when) as fleet:
        fleet.change("bad", seconds=3.0)
        assert len(fleet.with_content("bad")) == 7
        fleet.settle()
        states = set(fleet.states().values())
        assert not states & {"Failed", "Deferred", "Waiting"}
        expected = "Ready" if ready_when == "true" else "InFlight"
        assert {fleet.states()[f"o{number}"] for number in range(1, 5)} == {expected}


def test_F8_4_the_plan_says_that_a_robot_that_is_offline_is_written_when_it_is_back():
    with rolling(2, offline=1) as fleet:
        fleet.change(2)
        fleet.settle()
        assert Asked(fleet.world).whens() == {"update robot-f1/dock": "deferred"}
        (replica,) = Asked(fleet.world).explain("p", "f1")["replicas"]
        assert replica["verdict"] == "deferred"
