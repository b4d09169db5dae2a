"""Decisions, counts and conditions: what is said of a placement, and how often it is written (F6.3, F6.4)."""

import itertools

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_machine import HELD
from tests.fleet_model.world_parts import DECISIONS, PLACEMENTS
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR
from tests.model.simulation.plane import GROUP


def test_F6_3_a_status_and_a_decision_are_written_on_change_and_at_most_every_5_s() -> None:
    with fleet(robots=3) as world:
        began = world.clock.now
        for number in range(60):
            world.cloud.set("dock", spec={"x": number})
            world.pass_time(0.5)
        for resource, verbs in ((PLACEMENTS, ("status",)), (DECISIONS, ("update",))):
            times = [each.time for each in world.written(began, resource=resource) if each.verb in verbs]
            assert all(after - before >= 4.9 for before, after in itertools.pairwise(times)), times
        world.settle()
        quiet = world.clock.now
        world.pass_time(600)
        assert world.written(quiet) == []


def test_F6_3_nothing_is_written_while_the_finalizer_cannot_be_stored() -> None:
    with fleet(robots=2) as world:
        world.inject(INTERNAL_ERROR, verb="patch", part="/robotplacements", times=1000, seconds=60)
        world.cloud.finalize("p", kind=PLACEMENTS)
        world.pass_time(1)
        began = world.clock.now
        world.cloud.set("dock", spec={"x": 2})
        world.pass_time(55)
        assert world.written(began, resource="goals") == []
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 2}, "robot-r2/dock": {"x": 2}}


def test_F6_3_a_decision_has_at_most_500_robots_and_the_lowest_free_number() -> None:
    with fleet(robots=3, start=False) as world:
        world.cloud.delete("dock")
        world.robots(*(f"x{number:04}" for number in range(510)))
        world.start()
        world.pass_time(20)
        found = {name: len(raw["robots"]) for (_, name), raw in world.stored(DECISIONS).items()}
        assert found == {"p-0": 500, "p-1": 13}
        assert world.status()["counts"]["selected"] == 513


@pytest.mark.parametrize("placement", [{"name": "p", "uid": "another"}, {"name": "another"}, None])
def test_F6_3_a_decision_that_somebody_gave_to_another_placement_is_written_again(placement: Json | None) -> None:
    with fleet(robots=3) as world:
        uid = world.placement()["metadata"]["uid"]
        world.cloud.set("p-0", kind=DECISIONS, placement=placement and {"uid": uid, **placement})
        world.settle()
        found = {raw["placement"]["uid"]: len(raw["robots"]) for raw in world.stored(DECISIONS).values()}
        assert found == {uid: 3}
        assert {raw["placement"]["name"] for raw in world.stored(DECISIONS).values()} == {"p"}


def test_F6_4_unreported_robots_are_stamped_when_nothing_is_due() -> None:
    with fleet(robots=3) as world:
        assert world.decided() == {"r1": "Stamped", "r2": "Stamped", "r3": "Stamped"}
        counts = world.status()["counts"]
        assert (counts["selected"], counts["replicas"], counts["stamped"], counts["unreported"]) == (3, 3, 3, 3)
        assert world.condition("Stamped") == ("True", "Stamped")
        assert world.condition("RolledOut")[0] == "True"


def test_F6_4_a_robot_without_replicas_is_ready() -> None:
    with fleet(robots=2) as world:
        world.cloud.delete("dock")
        world.settle()
        assert world.decided() == {"r1": "Ready", "r2": "Ready"}


def test_F6_4_a_replica_that_terminates_is_due_and_made_again_when_it_is_gone() -> None:
    with fleet(robots=1) as world:
        world.cloud.finalize("dock", HELD, namespace="robot-r1")
        world.cloud.delete("dock", namespace="robot-r1")
        world.settle()
        assert world.decided() == {"r1": "Waiting"}
        assert world.condition("Stamped")[0] == "False"
        world.cloud.finalize("dock", namespace="robot-r1")
        world.agree()
        assert world.decided() == {"r1": "Stamped"}


def test_F6_3_rights_that_are_taken_away_stop_only_what_needs_them() -> None:
    with fleet(robots=2) as world:
        world.inject(FORBIDDEN, verb="create", part="/namespaces", times=1_000_000, seconds=3000)
        world.robots("r3")
        world.cloud.set("dock", spec={"x": 2})
        world.settle()
        assert world.specs() == {"robot-r1/dock": {"x": 2}, "robot-r2/dock": {"x": 2}}
        assert [each["robot"] for each in world.status()["errors"]] == ["r3"]
        world.pass_time(4000)
        world.agree()
        assert len(world.replicas()) == 3


def test_F11_many_writes_of_one_placement_do_not_hold_up_another() -> None:
    with fleet(robots=0, start=False) as world:
        world.robots(*(f"r{number}" for number in range(150)))
        world.source("lift", labels={"use": "yes"})
        world.edit("p", resources=[{"group": GROUP, "resource": "goals", "names": ["dock"]}])
        world.place(
            "q",
            resources=[{"group": GROUP, "resource": "goals", "names": ["lift"]}],
            robotNames=["r1"],
            robotSelectors=[],
        )
        world.start()
        world.agree()
        world.weather["a"].latency = 0.5
        began = world.clock.now
        world.cloud.set("dock", spec={"x": 2})
        world.pass_time(1)
        world.cloud.set("lift", spec={"x": 2})
        world.pass_time(60)
        world.weather["a"].latency = 0.0
        written = world.written(began, resource="goals")
        (lift,) = [number for number, each in enumerate(written) if each.name == "lift"]
        assert len(written) == 151
        assert written[lift].time - began < 5.0
        assert lift < 140


def test_F6_4_what_the_server_refuses_stays_blocked_under_a_new_leader_and_at_each_try() -> None:
    with fleet(robots=2) as world:
        rule = world.inject(FORBIDDEN, verb="create", part="/goals", times=1_000_000, seconds=20_000)
        world.robots("r3")
        world.settle()
        before = (world.decided(), world.status()["errors"])
        assert before[0]["r3"] == "Blocked"
        began = world.clock.now
        world.kill()
        world.start()
        world.settle()
        world.pass_time(4000)
        assert rule.times <= 1_000_000 - 3  # once by each leader, and hourly
        assert [str(each) for each in world.written(began) if each.resource in (PLACEMENTS, DECISIONS)] == []
        assert (world.decided(), world.status()["errors"]) == before
