"""What a server forbids (403) is tried again soon, by one write of each kind for all that wait (S10, section 7)."""

import pytest

from crsyncer.core.model import Json
from crsyncer.ports import Reply
from tests.fleet_model.asking import Asked
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.oracle import FLEET
from tests.fleet_model.sharded import sharded
from tests.fleet_model.sharing import mark, shared
from tests.fleet_model.world_parts import PLACEMENTS
from tests.model.simulation.answers import FORBIDDEN, failure, too_many
from tests.model.simulation.weather import Rule

INVALID = failure(422, "Invalid", "it is invalid", causes=[{"field": "robots"}])
COLLECTORS, COMBINED = f"statuscollectors.{FLEET}", f"combinedstatuses.{FLEET}"
NEW, OLD = {"x": 2}, {"x": 1}


def forbid_half_an_hour(world: FleetWorld, failing: Rule, *, least: int, most: int) -> None:
    """So many are tried at first, then one a minute for all; when they are allowed, all are written."""
    world.pass_time(30)
    assert least <= failing.met <= most
    world.pass_time(1770)
    assert least + 25 <= failing.met <= most + 59
    failing.times = 0
    world.pass_time(130)


@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
def test_S10_a_shard_that_forbids_every_write_for_5_s_after_its_start_is_as_it_shall_be_a_minute_later(
    verb: str,
) -> None:
    with sharded() as fleet:
        for number in range(1, 30):
            fleet.enrol(f"r{number}", "b")
        fleet.agree()
        fleet.world.inject(FORBIDDEN, name=fleet["b"].link, verb=verb, part="/goals", times=1e6, seconds=5)
        match verb:
            case "create":
                fleet.world.source("lift")
            case "patch":
                fleet.world.cloud.set("dock", spec=NEW)
            case _:
                fleet.world.unplace()
        fleet.world.pass_time(60)
        assert fleet["b"].disagreements() == fleet["c"].disagreements() == []


def test_S10_a_robots_namespace_whose_creation_is_forbidden_for_5_s_is_made() -> None:
    with fleet(robots=1) as world:
        world.inject(FORBIDDEN, verb="create", part="/namespaces", times=1e6, seconds=5)
        world.robots("r7")
        world.pass_time(60)
        assert world.specs() == {"robot-r1/dock": OLD, "robot-r7/dock": OLD}


@pytest.mark.parametrize("spec", [{}, {"readyWhen": "true", "rollout": {"maxConcurrency": "100%"}}])
def test_S10_what_is_forbidden_for_hours_costs_a_request_a_minute_for_all_and_is_shown(spec: Json) -> None:
    robots = 50
    with fleet(robots=robots) as world:
        world.edit(**spec)
        world.agree()
        failing = world.inject(FORBIDDEN, verb="patch", part="/goals", times=1e6)
        world.cloud.set("dock", spec=NEW)
        world.pass_time(30)
        assert robots <= failing.met <= robots + 6
        world.pass_time(1770)
        assert world.status()["counts"]["blocked"] == robots
        assert {each["reason"] for each in world.status()["errors"]} == {"Refused"}
        assert robots + 25 <= failing.met <= robots + 6 + 59  # a wait is of 30 to 60 s
        failing.times = 0
        world.pass_time(65)
        assert set(map(str, world.specs().values())) == {str(NEW)}
        world.agree()
        assert world.status()["errors"] == []


def test_S10_a_write_that_alone_is_forbidden_is_tried_soon_and_delays_no_other() -> None:
    with fleet(robots=5) as world:
        failing = world.inject(FORBIDDEN, verb="patch", part="/robot-r2/", times=1e6)
        for number in range(2, 30):
            world.cloud.set("dock", spec={"x": number})
            world.pass_time(2)
            expected = {f"robot-r{robot}/dock": {"x": number} for robot in (1, 3, 4, 5)}
            assert world.specs() == {**expected, "robot-r2/dock": OLD}
        assert failing.met <= 2 * 28
        failing.times = 0
        world.pass_time(65)
        assert world.specs()["robot-r2/dock"] == {"x": 29}


def test_S10_a_right_in_one_namespace_after_the_other_is_used_within_the_hour() -> None:
    with fleet(robots=20) as world:
        failing = [world.inject(FORBIDDEN, verb="patch", part=f"/robot-r{robot}/", times=1e6) for robot in range(1, 21)]
        world.cloud.set("dock", spec=NEW)
        world.pass_time(600)
        for each in failing[10:]:
            each.times = 0
        world.pass_time(3700)
        assert list(world.specs().values()).count(NEW) == 10
        assert sum(each.met for each in failing) < 20 + 20 + 4300 / 60 + 10 * 9


def test_S10_F10_3_a_mark_that_is_forbidden_is_tried_again_with_waits_that_grow_and_is_shown() -> None:
    with shared() as fleet:
        failing = fleet.world.inject(FORBIDDEN, verb="patch", part="/goals/lift", times=1e6)
        fleet.world.source("lift")
        fleet.world.pass_time(55)
        assert [each["reason"] for each in fleet.world.status()["errors"]] == ["Refused"]
        assert 4 <= failing.met <= 6
        fleet.world.pass_time(1800)
        assert failing.met <= 6 + 60
        failing.times = 0
        fleet.world.pass_time(65)
        assert mark(fleet, "lift")
        assert fleet.world.status()["errors"] == []


@pytest.mark.parametrize(
    ("verb", "part"),
    [("patch", "/default/goals/dock/status"), ("create", "/combinedstatuses"), ("patch", "/statuscollectors")],
)
def test_S10_F6_2_F7_a_status_that_is_forbidden_is_tried_again_with_waits_that_grow(verb: str, part: str) -> None:
    with fleet(robots=1) as world:
        failing = world.inject(FORBIDDEN, verb=verb, part=part, times=1e6)
        world.cloud.create("c", kind=COLLECTORS, spec={"select": [{"name": "r", "def": "inventory.bad("}], "limit": 1})
        world.edit(statusReturn="Singleton", statusCollectors=["c"])
        world.cloud.set_status("dock", {"phase": "Ready"}, namespace="robot-r1")
        world.pass_time(55)
        assert 4 <= failing.met <= 6
        is_singleton = "goals" in part
        assert [each["reason"] for each in world.status().get("errors") or []] == ["Refused"] * is_singleton
        failing.times = 0
        world.pass_time(65)
        assert (world.cloud.get("dock") or {})["status"] == {"phase": "Ready"}
        assert len(world.stored(COMBINED)) == 1
        assert world.stored(COLLECTORS)["", "c"]["status"]["errors"]
        assert (world.status().get("errors") or []) == []


@pytest.mark.parametrize(
    ("verb", "part"),
    [
        ("patch", "/p/status"),
        ("update", "/robotplacementdecisions/"),
        ("create", "/combinedstatuses"),
        ("patch", "/goals/dock/status"),
    ],
)
def test_S9_1_S10_a_pause_that_the_server_asks_for_before_one_of_our_own_objects_is_kept(verb: str, part: str) -> None:
    with fleet(robots=1) as world:
        world.cloud.create("c", kind=COLLECTORS, spec={"select": [{"name": "phase", "def": "returned.status.phase"}]})
        asked = world.inject(too_many(30.0), verb=verb, part=part, times=1e6)
        world.edit(statusReturn="Singleton", statusCollectors=["c"])
        world.cloud.set_status("dock", {"phase": "Ready"}, namespace="robot-r1")
        if "decisions" in part:
            world.robots("r2")
        world.pass_time(28)
        assert asked.met == 1
        asked.times = 0
        world.pass_time(40)
        world.agree()


def test_S10_F7_combined_statuses_that_are_forbidden_cost_a_request_a_minute_for_all() -> None:
    sources = 30
    with fleet(robots=1) as world:
        for number in range(1, sources):
            world.source(f"s{number}")
        world.agree()
        failing = world.inject(FORBIDDEN, verb="create", part="/combinedstatuses", times=1e6)
        world.cloud.create("c", kind=COLLECTORS, spec={"select": [{"name": "phase", "def": "returned.status.phase"}]})
        world.edit(statusCollectors=["c"])
        forbid_half_an_hour(world, failing, least=sources, most=sources + 6)
        assert len(world.stored(COMBINED)) == sources


@pytest.mark.parametrize("part", ["/robotplacements/p/status", "/robotplacementdecisions"])
def test_S10_F6_3_a_placements_own_objects_that_are_forbidden_are_tried_again_with_waits_that_grow(part: str) -> None:
    with fleet(robots=1) as world:
        failing = [world.inject(FORBIDDEN, verb=verb, part=part, times=1e6) for verb in ("patch", "update")]
        world.robots("r2")
        world.pass_time(55)
        assert 4 <= sum(each.met for each in failing) <= 6
        world.pass_time(1800)
        assert sum(each.met for each in failing) <= 6 + 60
        for each in failing:
            each.times, each.standing = 0, True
        world.pass_time(65)
        assert world.status()["counts"]["selected"] == 2
        assert world.decided() == {"r1": "Stamped", "r2": "Stamped"}


@pytest.mark.parametrize(
    ("verb", "part"),
    [
        ("patch", "/status"),
        ("update", "/robotplacementdecisions/"),
        ("create", "/robotplacementdecisions"),
        ("patch", "/robotplacements/n"),
    ],
)
def test_S10_F6_3_own_objects_of_many_placements_that_are_forbidden_cost_a_request_a_minute_for_all(
    verb: str, part: str
) -> None:
    placements = 30
    with fleet(robots=1) as world:
        is_new = verb == "create" or part.endswith("/n")
        names = [f"n{number}" for number in range(placements)]
        if not is_new:
            for name in names:
                world.place(name)
            world.agree()
        failing = world.inject(FORBIDDEN, verb=verb, part=part, times=1e6)
        if is_new:
            for name in names:
                world.place(name)
        world.robots("r7")
        forbid_half_an_hour(world, failing, least=placements, most=placements + 7)
        assert all(len(world.decided(name)) == 2 for name in names)
        assert all(world.status(name)["counts"]["selected"] == 2 for name in names)


def test_S10_F6_3_placements_that_are_gone_take_no_turn_of_those_whose_status_is_forbidden() -> None:
    with fleet(robots=1) as world:
        names = [f"n{number}" for number in range(20)]
        for name in names:
            world.place(name)
        world.agree()
        failing = world.inject(FORBIDDEN, verb="patch", part="/status", times=1e6)
        world.robots("r7")
        world.pass_time(120)
        for name in names:
            world.unplace(name)
        world.pass_time(300)
        failing.times = 0
        world.pass_time(130)
        assert world.status()["counts"]["selected"] == 2


@pytest.mark.parametrize("refusal", [FORBIDDEN, INVALID])
@pytest.mark.parametrize(
    ("verb", "part", "write"),
    [
        ("update", "/robotplacementdecisions/", f"update robotplacementdecisions.{FLEET}"),
        ("patch", "/p/status", f"patch robotplacements.{FLEET}/status"),
    ],
)
def test_S10_what_a_server_refuses_of_the_controllers_own_objects_needs_a_human_until_it_is_written(
    verb: str, part: str, write: str, refusal: Reply
) -> None:
    with fleet(robots=2) as world:
        failing = world.inject(refusal, verb=verb, part=part, times=1e6)
        world.robots("r7")
        for _ in range(4):
            world.pass_time(100)
            found = Asked(world).status()
            assert found["health"] == "attention"
            assert [each["code"] for each in found["reasons"]] == ["NotWritten"]
            assert write in found["reasons"][0]["message"]
        failing.times = 0
        world.pass_time(70)
        world.agree()
        assert Asked(world).status()["reasons"] == []


def test_S10_a_write_that_is_not_wanted_any_more_is_told_no_longer() -> None:
    with fleet(robots=2) as world:
        world.inject(FORBIDDEN, verb="create", part="/combinedstatuses", times=1e6)
        world.cloud.create("all", kind=COLLECTORS, spec={"select": [{"name": "robot", "def": "inventory.name"}]})
        world.edit("p", statusCollectors=["all"])
        world.pass_time(60)
        assert f"create {COMBINED}" in Asked(world).status()["reasons"][0]["message"]
        world.edit("p", statusCollectors=[])
        world.pass_time(200)
        assert Asked(world).status()["reasons"] == []


@pytest.mark.parametrize(("policy", "verb"), [("Delete", "delete"), ("KeepReplicas", "patch")])
def test_S10_a_removal_that_the_server_refuses_needs_a_human_until_it_is_done(policy: str, verb: str) -> None:
    with fleet(robots=2) as world:
        world.edit("p", deletionPolicy=policy)
        world.settle()
        failing = world.inject(FORBIDDEN, verb=verb, part="/goals/", times=1e6)
        world.unplace("p")
        for _ in range(3):
            world.pass_time(100)
            found = Asked(world).status()
            assert [each["code"] for each in found["reasons"]] == ["NotWritten"]
            assert "removal of goals.lab.example.com" in found["reasons"][0]["message"]
        failing.times = 0
        world.pass_time(70)
        assert world.replicas() == world.cloud.objects(PLACEMENTS) == {}
        assert Asked(world).status()["reasons"] == []


@pytest.mark.parametrize("refusal", [FORBIDDEN, INVALID])
def test_S10_a_removal_that_is_refused_needs_a_human_also_when_others_of_the_kind_are_carried_out(
    refusal: Reply,
) -> None:
    with fleet(robots=3) as world:
        failing = world.inject(refusal, verb="delete", part="/robot-r1/", times=1e6)
        world.unplace("p")
        world.pass_time(100)
        assert list(world.specs()) == ["robot-r1/dock"]
        assert [each["code"] for each in Asked(world).status()["reasons"]] == ["NotWritten"]
        failing.times = 0
        world.cloud.delete("dock", namespace="robot-r1")
        world.pass_time(70)
        assert Asked(world).status()["reasons"] == []


@pytest.mark.parametrize(("verb", "part"), [("update", "/robotplacementdecisions/"), ("patch", "/p/status")])
def test_S10_F6_3_what_is_forbidden_of_a_placement_is_not_tried_at_each_change_of_the_fleet(
    verb: str, part: str
) -> None:
    with fleet(robots=2) as world:
        failing = world.inject(FORBIDDEN, verb=verb, part=part, times=1e6)
        for number in range(110):
            world.robots(f"n{number}")
            world.pass_time(0.5)
        assert 4 <= failing.met <= 6


def test_S10_F6_3_a_combined_status_that_is_forbidden_is_not_tried_at_each_change_of_a_status() -> None:
    with fleet(robots=1) as world:
        failing = world.inject(FORBIDDEN, verb="create", part="/combinedstatuses", times=1e6)
        world.cloud.create("c", kind=COLLECTORS, spec={"select": [{"name": "phase", "def": "returned.status.phase"}]})
        world.edit(statusCollectors=["c"])
        for number in range(110):
            world.cloud.set_status("dock", {"phase": str(number)}, namespace="robot-r1")
            world.pass_time(0.5)
        assert 4 <= failing.met <= 6
