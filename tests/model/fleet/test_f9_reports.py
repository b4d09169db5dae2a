"""F9: the agent's report to a fleet, on virtual time: what is in it, how often it is written, what it never does."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from crsyncer import __version__
from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT as ROBOT_ANNOTATION
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.ports import Reply
from tests.model.scenes.reporting import (
    HOUR,
    MAPPED,
    OWN,
    PART,
    PLACEMENT,
    REPORTING,
    STATES,
    acked,
    beats,
    crd_of_reports,
    fleet,
    place,
    report,
    requests,
    rewrite,
    spec_of,
    writes,
)
from tests.model.simulation.answers import (
    FORBIDDEN,
    GARBAGE,
    INTERNAL_ERROR,
    NOT_SERVED,
    UNAUTHORIZED,
    invalid,
    too_many,
)
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import restart
from tests.model.simulation.weather import Fate

MISSING = Reply(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"})


def test_F9_1_a_report_has_the_robots_name_label_and_annotation_and_says_how_the_agent_is() -> None:
    with fleet() as world:
        world.begin(seconds=5)
        found = report(world)
        assert found is not None
        assert found["metadata"]["labels"] == {ROBOT_LABEL: ROBOT}
        assert found["metadata"]["annotations"] == {ROBOT_ANNOTATION: ROBOT}
        spec = dict(found["spec"])
        assert spec.pop("beat") > 0
        assert spec == {"robot": ROBOT, "agentVersion": __version__, "health": "healthy", "applied": {}}
        world.cut("robot", seconds=60)
        assert spec_of(world)["health"] == world.status()["health"] == "degraded"


@pytest.mark.parametrize("namespaces", [MAPPED.namespaces, Namespaces((OWN, "lab"), (OWN, "lab"))])
def test_F9_1_a_report_is_in_the_robots_own_namespace_where_the_settings_name_that(namespaces: Namespaces) -> None:
    with fleet(replace(REPORTING, namespaces=namespaces, report_namespace="reports")) as world:
        for name in namespaces.cloud:
            world.cloud.make_namespace(name)
        world.begin(seconds=5)
        assert spec_of(world, OWN)["robot"] == ROBOT


def test_F9_1_a_report_follows_the_setting_and_goes_with_off() -> None:
    with fleet(replace(REPORTING, report_namespace="reports")) as world:
        for name in ("reports", "other"):
            world.cloud.make_namespace(name)
        for place in ("reports", "other"):
            world.settings = replace(REPORTING, report_namespace=place)
            world.begin(seconds=15)
            assert spec_of(world, place)["robot"] == ROBOT
            world.stop()
        world.settings = replace(REPORTING, report_namespace=None)
        world.begin(seconds=2 * HOUR)
        assert report(world) is None
        assert len(requests(world, verb="delete")) == 2
        assert world.status()["health"] == "healthy"


def test_F9_1_with_off_a_report_goes_that_an_agent_with_another_store_has_made() -> None:
    with fleet() as world:
        world.begin(seconds=15)
        with world.down():
            world.lose_database()
            world.settings = replace(REPORTING, report_namespace=None)
        world.pass_time(15)
        assert report(world) is None


def test_F9_1_a_report_that_may_not_be_deleted_keeps_none_from_being_made() -> None:
    with fleet() as world:
        world.cloud.make_namespace("other")
        world.begin(seconds=15)
        with world.down():
            world.inject("cloud", FORBIDDEN, verb="delete", part=PART)
            world.settings = replace(REPORTING, report_namespace="other")
        world.pass_time(15)
        assert set(world.cloud.server.storage.of(STATES)) == {("default", ROBOT), ("other", ROBOT)}


@pytest.mark.parametrize("robot", ["", "Robot_1", "r.1"])
def test_F9_1_an_agent_whose_name_no_robot_of_a_fleet_has_asks_nothing(robot: str) -> None:
    with fleet(replace(REPORTING, robot=robot), kinds={"goals": {}}) as world:
        world.begin(seconds=2 * HOUR)
        assert requests(world) == []


def test_F9_2_where_there_is_no_fleet_one_question_is_asked_an_hour() -> None:
    with fleet(served=False) as world:
        world.begin(seconds=5 * HOUR - 60)
        assert [request.verb for request in requests(world)] == ["discover"] * 5
        world.cloud.apply(crd_of_reports())
        world.pass_time(HOUR)
        assert report(world) is not None


def test_F9_2_a_fleet_that_is_being_removed_is_none() -> None:
    with fleet() as world:
        world.cloud.create(f"other-{ROBOT}", kind=STATES, finalizers=["keeps/it"])
        world.cloud.delete_kind(STATES)
        world.begin(seconds=HOUR - 60)
        assert [request.verb for request in requests(world)] == ["discover"]


@pytest.mark.parametrize("answer", [FORBIDDEN, MISSING, NOT_SERVED, invalid()])
@pytest.mark.parametrize("verb", ["discover", "list", "create"])
def test_F9_2_a_refusal_is_tried_again_hourly_and_no_fault(verb: str, answer: Reply) -> None:
    with fleet() as world:
        rule = world.inject("cloud", answer, verb=verb, part=PART, times=math.inf)
        world.begin(seconds=3 * HOUR - 60)
        assert rule.met == 3
        assert world.status()["health"] == "healthy"
        rule.times = 0
        world.pass_time(HOUR)
        assert report(world) is not None


@pytest.mark.parametrize("answer", [FORBIDDEN, NOT_SERVED])
def test_F9_2_what_was_taken_before_and_is_refused_for_a_moment_makes_no_robot_offline(answer: Reply) -> None:
    with fleet() as world:
        world.begin(seconds=15)
        rule = world.inject("cloud", answer, verb="update", part=PART)
        world.pass_time(HOUR)
        assert rule.met == 1
        assert max(after - before for before, after in pairwise(writes(world))) < 660
        rule = world.inject("cloud", answer, part=PART, times=math.inf, seconds=3 * HOUR)
        world.pass_time(3 * HOUR)
        assert 4 <= rule.met <= 5


def test_F9_2_the_question_is_asked_at_once_where_an_operator_ends_the_waits() -> None:
    with fleet(served=False) as world:
        world.begin(seconds=60)
        world.cloud.apply(crd_of_reports())
        world.order("resync")
        world.pass_time(10)
        assert report(world) is not None


@pytest.mark.parametrize("answer", [INTERNAL_ERROR, UNAUTHORIZED, GARBAGE, too_many(30.0), *Fate])
def test_F9_2_S10_after_a_failure_the_agent_looks_again(answer: Reply | Fate) -> None:
    with fleet() as world:
        world.begin(seconds=15)
        before = spec_of(world)["beat"]
        rule = world.inject("cloud", answer, verb="update", part=PART, times=2)
        place(world, "dock")
        world.pass_time(600)
        assert rule.met == 2
        assert spec_of(world)["beat"] > before
        assert set(spec_of(world)["applied"]) == {PLACEMENT}
        found = beats(world)
        assert found == sorted(set(found))


def test_F9_2_S10_failing_writes_are_tried_with_waits_that_grow() -> None:
    with fleet() as world:
        rule = world.inject("cloud", INTERNAL_ERROR, verb="create", part=PART, times=math.inf)
        world.begin(seconds=HOUR)
        assert 12 <= rule.met <= 24
        assert world.status()["health"] == "healthy"


def test_F9_2_a_quiet_robot_writes_every_300_seconds_give_or_take_a_fifth() -> None:
    with fleet() as world:
        world.begin(seconds=10 * HOUR)
        times = writes(world)
        gaps = [after - before for before, after in pairwise(times)]
        assert len(gaps) > 90
        assert all(240 <= gap <= 361 for gap in gaps)
        assert max(gaps) - min(gaps) > 60
        assert len(requests(world)) == len(times) + 2, "one discovery, one list"


def test_F9_2_each_write_raises_the_beat_whatever_the_agent_has_forgotten() -> None:
    with fleet() as world:
        world.begin(seconds=1000)
        restart(world, kill=True, seconds=1000)
        restart(world, lost=True, seconds=1000)
        world.remove(ROBOT, kind=STATES, seconds=1000)
        with world.down():
            world.cloud.delete(ROBOT, kind=STATES)
            world.lose_database()
        world.pass_time(1000)
        found = beats(world)
        assert len(found) > 12
        assert found == sorted(set(found))


def test_F9_2_the_beat_rises_where_somebody_else_has_raised_it_and_where_the_cloud_was_restored() -> None:
    with fleet() as world:
        world.begin(seconds=30)
        backup, before = world.cloud.snapshot(), spec_of(world)["beat"]
        world.edit(ROBOT, kind=STATES, spec={"beat": before + 10**6}, seconds=400)
        assert spec_of(world)["beat"] > before + 10**6
        assert spec_of(world)["robot"] == ROBOT
        world.cut("cloud", seconds=30)
        before = spec_of(world)["beat"]
        world.cloud.restore(backup)
        world.heal("cloud", seconds=120)
        assert spec_of(world)["beat"] > before


def test_F9_3_a_wave_of_500_replicas_costs_one_write_in_ten_seconds() -> None:
    with fleet() as world:
        world.begin(seconds=60)
        begin = world.clock.now
        uids = {}
        for number in range(500):
            uids[place(world, f"dock-{number}")] = 1
            if number % 10 == 0:
                world.pass_time(0.5)
        world.pass_time(60)
        times = writes(world, since=begin)
        assert acked(world, *uids.items())
        assert all(after - before >= 10 for before, after in pairwise(times))
        assert len(times) <= 4, times
        for number in range(500):
            rewrite(world, f"dock-{number}", 2, spec={"x": 2})
        begin = world.clock.now
        world.pass_time(60)
        assert acked(world, *dict.fromkeys(uids, 2).items())
        assert 1 <= len(writes(world, since=begin)) <= 2
