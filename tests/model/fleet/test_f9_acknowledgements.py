"""F9.5: which replicas a report acknowledges, on virtual time; and what stands in the way of a report."""

import math

import pytest

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.replica_mark import SOURCE
from crsyncer.core.model import Side
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.core.requests.calls import Call
from tests.model.scenes.config_maps import maps
from tests.model.scenes.policies import put_policy, serve_policies
from tests.model.scenes.reporting import (
    HOUR,
    MAPPED,
    OWN,
    PART,
    PLACEMENT,
    STATES,
    acked,
    beats,
    crd_of_reports,
    fleet,
    marks,
    place,
    placed,
    rewrite,
    spec_of,
    writes,
)
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, invalid
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import restart
from tests.model.simulation.weather import Fate


def test_F9_5_a_replica_is_acknowledged_once_its_copy_has_the_content_and_not_before() -> None:
    with fleet() as world:
        uid = placed(world)
        assert acked(world, (uid, 1))
        world.inject("robot", INTERNAL_ERROR, verb="update", part="/goals/", times=math.inf, seconds=300)
        rewrite(world, "dock", 2, spec={"x": 2})
        world.pass_time(200)
        assert acked(world, (uid, 1)), "the copy has the content of the first write"
        world.pass_time(300)
        assert acked(world, (uid, 2))


def test_F9_5_content_that_the_robot_rejects_is_not_acknowledged() -> None:
    with fleet() as world:
        uid = placed(world)
        world.inject("robot", invalid(), verb="update", part="/goals/", times=math.inf)
        rewrite(world, "dock", 2, spec={"x": 2})
        world.pass_time(600)
        assert acked(world, (uid, 1))


def test_F9_5_a_rewrite_of_the_same_content_and_marks_that_go_to_another_placement_are_acknowledged() -> None:
    with fleet() as world:
        uid = placed(world)
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
        uid = placed(world)
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
        uid = placed(world)
        with world.down():
            world.robot.annotate(f"dock-{ROBOT}", {f"{OURS}applied": "{}"})
            world.inject("robot", INTERNAL_ERROR, verb="update", part="/goals/", times=math.inf)
        world.pass_time(400)
        assert acked(world, (uid, 1))


def test_F9_5_a_replica_that_terminates_is_not_reported_any_more() -> None:
    with fleet() as world:
        world.start()
        uid, other = place(world, "dock"), place(world, "gate")
        world.cloud.finalize(f"gate-{ROBOT}", "keeps/it")
        world.pass_time(30)
        assert acked(world, (uid, 1), (other, 1))
        world.remove(f"gate-{ROBOT}", seconds=30)
        assert f"gate-{ROBOT}" in world.cloud.objects()
        assert acked(world, (uid, 1))


@pytest.mark.parametrize("drift", ["revert", "keep"])
def test_F9_5_a_local_change_that_is_kept_or_reverted_counts_as_applied(drift: str) -> None:
    with fleet(kinds={"goals": {"filtered": "true", "drift": drift}}) as world:
        uid = placed(world)
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
        uid = placed(world)
        begin = world.clock.now
        for _ in range(5):
            world.robot.delete(f"dock-{ROBOT}")
            world.pass_time(20)
        assert acked(world, (uid, 1))
        assert writes(world, since=begin) == []


@pytest.mark.parametrize("lost", [False, True])
def test_F9_5_nothing_is_reported_before_the_lists_are_complete(lost: bool) -> None:
    with fleet() as world:
        uid = placed(world)
        with world.down():
            if lost:
                world.lose_database()
            number = len(beats(world))
            world.cut("robot")
        world.pass_time(900)
        assert len(beats(world)) == number
        world.heal("robot", seconds=120)
        assert len(beats(world)) > number
        stored = [write.after["spec"]["applied"] for write in world.writes if write.resource == STATES and write.after]
        assert {tuple(found) for found in stored[1:]} == {(PLACEMENT,)}
        assert acked(world, (uid, 1))


def test_F9_5_a_list_that_fails_is_waited_for() -> None:
    with fleet() as world:
        uid = placed(world)
        with world.down():
            world.lose_database()
            world.inject("robot", INTERNAL_ERROR, verb="list", part="/goals", times=math.inf, seconds=600)
            begin = world.clock.now
        world.pass_time(600)
        assert writes(world, since=begin) == []
        world.pass_time(120)
        assert acked(world, (uid, 1))
        assert len(writes(world, since=begin)) == 1


def test_F9_5_a_restart_without_the_cloud_forgets_no_acknowledgement() -> None:
    with fleet() as world:
        uid = placed(world)
        rewrite(world, "dock", 2)
        world.pass_time(30)
        with world.down():
            world.cut("cloud")
        world.pass_time(60)
        begin = world.clock.now
        world.heal("cloud", seconds=120)
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
        world.begin(seconds=30)
        uid = maps(world.cloud, kind=kind)[f"nav-{ROBOT}"]["metadata"]["uid"]
        assert acked(world, (uid, 1))
        restart(world, seconds=400)
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
        world.add(f"a-{ROBOT}", labels={ROBOT_LABEL: ROBOT}, seconds=30)
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
        world.begin(seconds=10)
        place(world, "dock")
        world.pass_time(2)
        assert f"dock-{ROBOT}" in world.robot.objects()
        world.report(f"dock-{ROBOT}", {"n": 1}, seconds=2)
        assert world.cloud.objects()[f"dock-{ROBOT}"]["status"] == {"n": 1}
        world.pass_time(900)
        assert rule.met > 1
        side = world.status()["sides"]["cloud"]
        assert (side["state"], side["reconnects"]) == ("connected", 0)


def test_F9_where_the_robot_has_the_kind_too_its_objects_and_the_report_leave_each_other_alone() -> None:
    with fleet() as world:
        world.robot.apply(crd_of_reports())
        world.begin(seconds=30)
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
        world.begin(seconds=2 * HOUR)
        assert rule.met == 1
        assert spec_of(world)["robot"] == "theirs"
        assert len(writes(world)) == 1, "the copy is made, as that of any object"
        assert world.status()["health"] == "healthy"
