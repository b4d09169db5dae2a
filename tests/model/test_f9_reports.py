"""F9: the agent's report to a fleet, on virtual time: what is in it, how often it is written, what it never does."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from crsyncer import __version__
from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT as ROBOT_ANNOTATION
from crsyncer.core.content.replica_mark import SOURCE
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Side
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.answers import FORBIDDEN, GARBAGE, INTERNAL_ERROR, NOT_SERVED, UNAUTHORIZED, invalid, too_many
from tests.model.config_maps import maps
from tests.model.life import ROBOT
from tests.model.policies import put_policy, serve_policies
from tests.model.reporting import (
    PART,
    PLACEMENT,
    REPORTING,
    STATES,
    acked,
    crd_of_reports,
    fleet,
    marks,
    place,
    report,
    requests,
    rewrite,
    spec_of,
    writes,
)
from tests.model.weather import Fate
from tests.model.world import World

OWN = f"robot-{ROBOT}"
MAPPED = replace(REPORTING, namespaces=Namespaces((OWN,), ("default",)))
MISSING = Reply(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"})
HOUR = 3600.0


def beats(world: World) -> list[int]:
    """The beat of each report that was stored, in order."""
    found = [write for write in world.writes if write.resource == STATES and write.status < 300 and write.after]
    return [write.after["spec"]["beat"] for write in found if write.after is not None]


def test_F9_1_a_report_has_the_robots_name_label_and_annotation_and_says_how_the_agent_is() -> None:
    with fleet() as world:
        world.start()
        world.pass_time(5)
        found = report(world)
        assert found is not None
        assert found["metadata"]["labels"] == {ROBOT_LABEL: ROBOT}
        assert found["metadata"]["annotations"] == {ROBOT_ANNOTATION: ROBOT}
        spec = dict(found["spec"])
        assert spec.pop("beat") > 0
        assert spec == {"robot": ROBOT, "agentVersion": __version__, "health": "healthy", "applied": {}}
        world.cut("robot")
        world.pass_time(60)
        assert spec_of(world)["health"] == world.status()["health"] == "degraded"


@pytest.mark.parametrize("namespaces", [MAPPED.namespaces, Namespaces((OWN, "lab"), (OWN, "lab"))])
def test_F9_1_a_report_is_in_the_robots_own_namespace_where_the_settings_name_that(namespaces: Namespaces) -> None:
    with fleet(replace(REPORTING, namespaces=namespaces, report_namespace="reports")) as world:
        for name in namespaces.cloud:
            world.cloud.make_namespace(name)
        world.start()
        world.pass_time(5)
        assert spec_of(world, OWN)["robot"] == ROBOT


def test_F9_1_a_report_follows_the_setting_and_goes_with_off() -> None:
    with fleet(replace(REPORTING, report_namespace="reports")) as world:
        for name in ("reports", "other"):
            world.cloud.make_namespace(name)
        for place in ("reports", "other"):
            world.settings = replace(REPORTING, report_namespace=place)
            world.start()
            world.pass_time(15)
            assert spec_of(world, place)["robot"] == ROBOT
            world.stop()
        world.settings = replace(REPORTING, report_namespace=None)
        world.start()
        world.pass_time(2 * HOUR)
        assert report(world) is None
        assert len(requests(world, verb="delete")) == 2
        assert world.status()["health"] == "healthy"


def test_F9_1_with_off_a_report_goes_that_an_agent_with_another_store_has_made() -> None:
    with fleet() as world:
        world.start()
        world.pass_time(15)
        world.stop()
        world.lose_database()
        world.settings = replace(REPORTING, report_namespace=None)
        world.start()
        world.pass_time(15)
        assert report(world) is None


def test_F9_1_a_report_that_may_not_be_deleted_keeps_none_from_being_made() -> None:
    with fleet() as world:
        world.cloud.make_namespace("other")
        world.start()
        world.pass_time(15)
        world.stop()
        world.inject("cloud", FORBIDDEN, verb="delete", part=PART)
        world.settings = replace(REPORTING, report_namespace="other")
        world.start()
        world.pass_time(15)
        assert set(world.cloud.server.storage.of(STATES)) == {("default", ROBOT), ("other", ROBOT)}


@pytest.mark.parametrize("robot", ["", "Robot_1", "r.1"])
def test_F9_1_an_agent_whose_name_no_robot_of_a_fleet_has_asks_nothing(robot: str) -> None:
    with fleet(replace(REPORTING, robot=robot), kinds={"goals": {}}) as world:
        world.start()
        world.pass_time(2 * HOUR)
        assert requests(world) == []


def test_F9_2_where_there_is_no_fleet_one_question_is_asked_an_hour() -> None:
    with fleet(served=False) as world:
        world.start()
        world.pass_time(5 * HOUR - 60)
        assert [request.verb for request in requests(world)] == ["discover"] * 5
        world.cloud.apply(crd_of_reports())
        world.pass_time(HOUR)
        assert report(world) is not None


def test_F9_2_a_fleet_that_is_being_removed_is_none() -> None:
    with fleet() as world:
        world.cloud.create(f"other-{ROBOT}", kind=STATES, finalizers=["keeps/it"])
        world.cloud.delete_kind(STATES)
        world.start()
        world.pass_time(HOUR - 60)
        assert [request.verb for request in requests(world)] == ["discover"]


@pytest.mark.parametrize("answer", [FORBIDDEN, MISSING, NOT_SERVED, invalid()])
@pytest.mark.parametrize("verb", ["discover", "list", "create"])
def test_F9_2_a_refusal_is_tried_again_hourly_and_no_fault(verb: str, answer: Reply) -> None:
    with fleet() as world:
        rule = world.inject("cloud", answer, verb=verb, part=PART, times=math.inf)
        world.start()
        world.pass_time(3 * HOUR - 60)
        assert rule.met == 3
        assert world.status()["health"] == "healthy"
        rule.times = 0
        world.pass_time(HOUR)
        assert report(world) is not None


@pytest.mark.parametrize("answer", [FORBIDDEN, NOT_SERVED])
def test_F9_2_what_was_taken_before_and_is_refused_for_a_moment_makes_no_robot_offline(answer: Reply) -> None:
    with fleet() as world:
        world.start()
        world.pass_time(15)
        rule = world.inject("cloud", answer, verb="update", part=PART)
        world.pass_time(HOUR)
        assert rule.met == 1
        assert max(after - before for before, after in pairwise(writes(world))) < 660
        rule = world.inject("cloud", answer, part=PART, times=math.inf, seconds=3 * HOUR)
        world.pass_time(3 * HOUR)
        assert 4 <= rule.met <= 5


def test_F9_2_the_question_is_asked_at_once_where_an_operator_ends_the_waits() -> None:
    with fleet(served=False) as world:
        world.start()
        world.pass_time(60)
        world.cloud.apply(crd_of_reports())
        world.order("resync")
        world.pass_time(10)
        assert report(world) is not None


@pytest.mark.parametrize("answer", [INTERNAL_ERROR, UNAUTHORIZED, GARBAGE, too_many(30.0), *Fate])
def test_F9_2_S10_after_a_failure_the_agent_looks_again(answer: Reply | Fate) -> None:
    with fleet() as world:
        world.start()
        world.pass_time(15)
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
        world.start()
        world.pass_time(HOUR)
        assert 12 <= rule.met <= 24
        assert world.status()["health"] == "healthy"


def test_F9_2_a_quiet_robot_writes_every_300_seconds_give_or_take_a_fifth() -> None:
    with fleet() as world:
        world.start()
        world.pass_time(10 * HOUR)
        times = writes(world)
        gaps = [after - before for before, after in pairwise(times)]
        assert len(gaps) > 90
        assert all(240 <= gap <= 361 for gap in gaps)
        assert max(gaps) - min(gaps) > 60
        assert len(requests(world)) == len(times) + 2, "one discovery, one list"


def test_F9_2_each_write_raises_the_beat_whatever_the_agent_has_forgotten() -> None:
    with fleet() as world:
        world.start()
        world.pass_time(1000)
        world.crash()
        world.start()
        world.pass_time(1000)
        world.stop()
        world.lose_database()
        world.start()
        world.pass_time(1000)
        world.cloud.delete(ROBOT, kind=STATES)
        world.pass_time(1000)
        world.stop()
        world.cloud.delete(ROBOT, kind=STATES)
        world.lose_database()
        world.start()
        world.pass_time(1000)
        found = beats(world)
        assert len(found) > 12
        assert found == sorted(set(found))


def test_F9_2_the_beat_rises_where_somebody_else_has_raised_it_and_where_the_cloud_was_restored() -> None:
    with fleet() as world:
        world.start()
        world.pass_time(30)
        backup, before = world.cloud.snapshot(), spec_of(world)["beat"]
        world.cloud.set(ROBOT, kind=STATES, spec={"beat": before + 10**6})
        world.pass_time(400)
        assert spec_of(world)["beat"] > before + 10**6
        assert spec_of(world)["robot"] == ROBOT
        world.cut("cloud")
        world.pass_time(30)
        before = spec_of(world)["beat"]
        world.cloud.restore(backup)
        world.mend("cloud")
        world.pass_time(120)
        assert spec_of(world)["beat"] > before


def test_F9_3_a_wave_of_500_replicas_costs_one_write_in_ten_seconds() -> None:
    with fleet() as world:
        world.start()
        world.pass_time(60)
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


def test_F9_5_a_replica_is_acknowledged_once_its_copy_has_the_content_and_not_before() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        assert acked(world, (uid, 1))
        world.inject("robot", INTERNAL_ERROR, verb="update", part="/goals/", times=math.inf, seconds=300)
        rewrite(world, "dock", 2, spec={"x": 2})
        world.pass_time(200)
        assert acked(world, (uid, 1)), "the copy has the content of the first write"
        world.pass_time(300)
        assert acked(world, (uid, 2))


def test_F9_5_content_that_the_robot_rejects_is_not_acknowledged() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        world.inject("robot", invalid(), verb="update", part="/goals/", times=math.inf)
        rewrite(world, "dock", 2, spec={"x": 2})
        world.pass_time(600)
        assert acked(world, (uid, 1))


def test_F9_5_a_rewrite_of_the_same_content_and_marks_that_go_to_another_placement_are_acknowledged() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        rewrite(world, "dock", 2)
        world.pass_time(30)
        assert acked(world, (uid, 2))
        rewrite(world, "dock", 3, placement="other")
        world.pass_time(30)
        assert set(spec_of(world)["applied"]) == {"other"}
        assert acked(world, (uid, 3), placement="other")
        assert len([write for write in world.writes if write.side is Side.ROBOT]) == 1


def test_F9_5_content_that_comes_back_is_acknowledged_with_its_last_write() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        world.cut("robot")
        rewrite(world, "dock", 2, spec={"x": 2})
        world.pass_time(60)
        rewrite(world, "dock", 3, spec={"x": 1})
        world.pass_time(60)
        assert acked(world, (uid, 3))


def test_F9_5_a_replica_that_goes_leaves_the_report_and_one_that_is_made_anew_is_another() -> None:
    with fleet() as world:
        world.start()
        first, other = place(world, "dock"), place(world, "gate", placement="other")
        world.pass_time(30)
        assert acked(world, (first, 1))
        assert acked(world, (other, 1), placement="other")
        for name in ("dock", "gate"):
            world.cloud.delete(f"{name}-{ROBOT}")
        second = place(world, "dock")
        world.pass_time(30)
        assert set(spec_of(world)["applied"]) == {PLACEMENT}
        assert acked(world, (second, 1))


def test_F9_5_a_replica_that_is_made_anew_is_not_acknowledged_by_what_the_former_was() -> None:
    with fleet() as world:
        world.start()
        place(world, "dock")
        world.pass_time(30)
        world.inject("robot", INTERNAL_ERROR, verb="delete", part="/goals/", times=math.inf, seconds=300)
        world.cloud.delete(f"dock-{ROBOT}")
        uid = place(world, "dock")
        world.pass_time(200)
        assert spec_of(world)["applied"] == {}
        world.pass_time(300)
        assert acked(world, (uid, 1))


def test_F9_5_a_stamp_that_somebody_changes_unmakes_no_acknowledgement() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        world.stop()
        world.robot.annotate(f"dock-{ROBOT}", {f"{OURS}applied": "{}"})
        world.inject("robot", INTERNAL_ERROR, verb="update", part="/goals/", times=math.inf)
        world.start()
        world.pass_time(400)
        assert acked(world, (uid, 1))


def test_F9_5_a_replica_that_terminates_is_not_reported_any_more() -> None:
    with fleet() as world:
        world.start()
        uid, other = place(world, "dock"), place(world, "gate")
        world.cloud.finalize(f"gate-{ROBOT}", "keeps/it")
        world.pass_time(30)
        assert acked(world, (uid, 1), (other, 1))
        world.cloud.delete(f"gate-{ROBOT}")
        world.pass_time(30)
        assert f"gate-{ROBOT}" in world.cloud.objects()
        assert acked(world, (uid, 1))


@pytest.mark.parametrize("drift", ["revert", "keep"])
def test_F9_5_a_local_change_that_is_kept_or_reverted_counts_as_applied(drift: str) -> None:
    with fleet(kinds={"goals": {"filtered": "true", "drift": drift}}) as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        name = f"dock-{ROBOT}"
        world.inject("robot", INTERNAL_ERROR, verb="update", part="/goals/", times=math.inf, standing=True)
        world.robot.set(name, spec={"x": 9})
        for _ in range(2):
            world.pass_time(400)
            assert acked(world, (uid, 1))
            world.crash()
            world.start()
        world.pass_time(60)
        world.robot.annotate(name, {f"{OURS}applied": "{}"})
        world.pass_time(400)
        assert acked(world, (uid, 1))
        found = world.robot.objects()[name]
        assert found["spec"] == {"x": 9}


def test_F9_5_a_copy_that_somebody_deletes_costs_no_report() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        begin = world.clock.now
        for _ in range(5):
            world.robot.delete(f"dock-{ROBOT}")
            world.pass_time(20)
        assert acked(world, (uid, 1))
        assert writes(world, since=begin) == []


@pytest.mark.parametrize("lost", [False, True])
def test_F9_5_nothing_is_reported_before_the_lists_are_complete(lost: bool) -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        world.stop()
        if lost:
            world.lose_database()
        number = len(beats(world))
        world.cut("robot")
        world.start()
        world.pass_time(900)
        assert len(beats(world)) == number
        world.mend("robot")
        world.pass_time(120)
        assert len(beats(world)) > number
        stored = [write.after["spec"]["applied"] for write in world.writes if write.resource == STATES and write.after]
        assert {tuple(found) for found in stored[1:]} == {(PLACEMENT,)}
        assert acked(world, (uid, 1))


def test_F9_5_a_list_that_fails_is_waited_for() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        world.stop()
        world.lose_database()
        world.inject("robot", INTERNAL_ERROR, verb="list", part="/goals", times=math.inf, seconds=600)
        begin = world.clock.now
        world.start()
        world.pass_time(600)
        assert writes(world, since=begin) == []
        world.pass_time(120)
        assert acked(world, (uid, 1))
        assert len(writes(world, since=begin)) == 1


def test_F9_5_a_restart_without_the_cloud_forgets_no_acknowledgement() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        world.pass_time(30)
        rewrite(world, "dock", 2)
        world.pass_time(30)
        world.stop()
        world.cut("cloud")
        world.start()
        world.pass_time(60)
        begin = world.clock.now
        world.mend("cloud")
        world.pass_time(120)
        assert acked(world, (uid, 2))
        assert len(writes(world, since=begin)) == 1
        assert world.life is not None
        assert not [key for key in world.life.tally.relists if key[0] == "cloud" and key[1].startswith("goals")]


def test_F9_5_a_kind_that_cannot_be_synced_keeps_no_other_from_being_acknowledged() -> None:
    kinds = {"goals": {"filtered": "true"}, "tasks": {"filtered": "true"}}
    with fleet(kinds=kinds) as world:
        world.inject("cloud", FORBIDDEN, part="/tasks", times=math.inf)
        world.start()
        uid = place(world, "dock")
        world.pass_time(120)
        assert acked(world, (uid, 1))


def test_F9_5_a_replica_in_the_robots_own_namespace_is_acknowledged_under_a_map() -> None:
    with fleet(MAPPED) as world:
        world.start()
        labels = {ROBOT_LABEL: ROBOT, SOURCE: "0" * 24}
        made = world.cloud.create("dock", spec={"x": 1}, labels=labels, annotations=marks("dock", 4))
        world.pass_time(30)
        assert world.robot.objects()["dock"]["metadata"]["namespace"] == "default"
        assert spec_of(world, OWN)["applied"] == {PLACEMENT: applied_digest([(made["metadata"]["uid"], 4)])}


@pytest.mark.parametrize("kind", ["configmaps", "secrets"])
def test_F9_5_a_replica_of_a_kind_without_a_crd_is_acknowledged_also_after_a_restart(kind: str) -> None:
    with fleet() as world:
        serve_policies(world.robot)
        named = {"group": "", "resource": kind}
        put_policy(world.robot, "p", {"resource": named, "specSource": "cloud", "filter": {"byRobotName": True}})
        metadata = {"name": f"nav-{ROBOT}", "labels": {ROBOT_LABEL: ROBOT, SOURCE: "0" * 24}}
        body = {"metadata": metadata | {"annotations": marks("nav", 1)}, "data": {"speed": "MQ=="}}
        world.cloud.server.answer(Call("create", "POST", f"/api/v1/namespaces/default/{kind}", body=body))
        world.start()
        world.pass_time(30)
        uid = maps(world.cloud, kind=kind)[f"nav-{ROBOT}"]["metadata"]["uid"]
        assert acked(world, (uid, 1))
        world.stop()
        world.start()
        world.pass_time(400)
        assert acked(world, (uid, 1))
        stored = [write.after["spec"]["applied"] for write in world.writes if write.resource == STATES and write.after]
        assert all(stored), "no report lacks it"


def test_F9_5_of_what_is_no_replica_for_this_robot_nothing_is_reported() -> None:
    with fleet() as world:
        world.start()
        uid = place(world, "dock")
        found = world.cloud.get(f"dock-{ROBOT}")
        assert found is not None
        metadata = {key: found["metadata"][key] for key in ("labels", "annotations")}
        world.cloud.create("a-copy-of-its-manifest", spec={"x": 1}, **metadata)
        world.cloud.create(f"a-{ROBOT}", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT})
        world.pass_time(30)
        assert len(world.robot.objects()) == 3
        assert acked(world, (uid, 1))


def test_F9_5_a_report_has_500_placements_at_most() -> None:
    with fleet() as world:
        world.start()
        for number in range(503):
            place(world, f"dock-{number}", placement=f"placement-{number:03}")
        world.pass_time(60)
        assert sorted(spec_of(world)["applied"]) == [f"placement-{number:03}" for number in range(500)]


def test_F9_a_report_that_is_never_answered_delays_no_object() -> None:
    with fleet() as world:
        rule = world.inject("cloud", Fate.HUNG, part=PART, times=math.inf)
        world.start()
        world.pass_time(10)
        place(world, "dock")
        world.pass_time(2)
        assert f"dock-{ROBOT}" in world.robot.objects()
        world.robot.set_status(f"dock-{ROBOT}", {"n": 1})
        world.pass_time(2)
        assert world.cloud.objects()[f"dock-{ROBOT}"]["status"] == {"n": 1}
        world.pass_time(900)
        assert rule.met > 1
        side = world.status()["sides"]["cloud"]
        assert (side["state"], side["reconnects"]) == ("connected", 0)


def test_F9_where_the_robot_has_the_kind_too_its_objects_and_the_report_leave_each_other_alone() -> None:
    with fleet() as world:
        world.robot.apply(crd_of_reports())
        world.start()
        world.pass_time(30)
        world.robot.create("spare", kind=STATES, labels={ROBOT_LABEL: ROBOT}, spec={"robot": "spare"})
        world.pass_time(700)
        found = world.cloud.objects(STATES)
        assert {name: each["spec"]["robot"] for name, each in found.items()} == {ROBOT: ROBOT, "spare": "spare"}
        assert world.status()["health"] == "healthy"
        assert set(world.robot.objects(STATES)) == {"spare"}


def test_F9_a_copy_that_has_the_reports_name_is_not_written_over() -> None:
    with fleet() as world:
        world.robot.apply(crd_of_reports())
        world.robot.create(ROBOT, kind=STATES, labels={ROBOT_LABEL: ROBOT}, spec={"robot": "theirs"})
        rule = world.inject("cloud", INTERNAL_ERROR, verb="discover", part=PART, times=1)
        world.start()
        world.pass_time(2 * HOUR)
        assert rule.met == 1
        assert spec_of(world)["robot"] == "theirs"
        assert len(writes(world)) == 1, "the copy is made, as that of any object"
        assert world.status()["health"] == "healthy"
