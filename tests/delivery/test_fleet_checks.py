"""What `crsyncer fleet doctor` says of a fleet, judged from values."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.fleet.fleet_checks import judge_crd, judge_fleet, judge_leader, judge_rights
from crsyncer.cli.fleet.shard_checks import ShardSeen, judge_labels, judge_shard
from crsyncer.cli.fleet.whole_fleet import WholeFleet
from crsyncer.console.set_up.doctor_report import Check, Mark, document, exit_code, with_offline
from crsyncer.core.content.annotations import SHARD_LABEL, SHARED
from crsyncer.errors import SyncError
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.resolution import is_built_in
from crsyncer.fleet.domain.rollout.decisions import decision_of
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.shown.fleet_facts import Leader, Reported
from crsyncer.fleet.domain.values import Robot, Verdict
from crsyncer.fleet.rights import shard_rights
from tests.fleet.lossy import World
from tests.fleet.made import GOALS, KIND, goal, goal_id, raw_placement, raw_robot

NOW = 1_800_000_000.0
ALL: Any = {"robotSelectors": [{}]}


def judged(world: World, *, settings: Any = (), **options: Any) -> dict[str, Check]:
    fields = {name: options.pop(name) for name in ("decisions", "marked", "acted", "failures") if name in options}
    found = WholeFleet(FleetSettings(**dict(settings)), world.fleet, world.losses, NOW, **fields)
    options = {"has_properties": True, "expressions": "", "problems": {}, "reports": {}, **options}
    return by_name(judge_fleet(found, **options))


def by_name(checks: Iterable[Check]) -> dict[str, Check]:
    return {f"{each.name} {each.resource}".strip(): each for each in checks}


def test_a_fleet_without_a_fault():
    found = judged(World(robots=2))
    assert {each.state for each in found.values()} == {Mark.OK}
    assert found["robots robots.registry.cloudrobotics.com"].message == "2 robots in namespace default"
    assert found[f"kind {GOALS}"].message == "1 source selected, 2 replicas"
    assert found["placement site/all"].message == "1 source for 2 robots"


def test_a_robot_whose_name_is_none_is_named():
    world = World(robots=1)
    world.do(world.fleet.robot_shown(raw_robot("R.1")))
    check = judged(world)["robots robots.registry.cloudrobotics.com"]
    assert (check.state, check.message) == (Mark.WARN, "no robot's name: R.1")
    none = judged(World(robots=0))
    assert none["robots robots.registry.cloudrobotics.com"].state is Mark.WARN
    assert none["placement site/all"].message == "selects no robot"


def test_F9_1_robots_that_are_silent_for_a_day_are_named():
    days = {f"r{number}": 8 - number for number in range(7)} | {"r7": 0.5}
    reports = {name: Reported(Report.OFFLINE, NOW - 86400 * each) for name, each in days.items()}
    reports["r8"] = Reported(None)
    check = judged(World(robots=9), reports=reports)["reports"]
    assert (check.state, check.message) == (*(Mark.WARN, "offline for more than a day: r0, r1, r2, r3, r4 and 2 more"),)


def test_properties_are_missed_only_where_they_are_used():
    using = World(raw_placement(**ALL, expand=True), robots=1)
    assert judged(using, has_properties=False)["properties"].state is Mark.WARN
    assert judged(using)["properties"].state is Mark.OK
    assert judged(World(robots=1), has_properties=False)["properties"].message.endswith("no placement needs it")


def test_kinds_that_cannot_be_placed_or_listed_fail():
    world = World(robots=1)
    world.do(world.fleet.kind_shown(replace(KIND, verdict=Verdict.NOT_PLACEABLE, message="it says nothing")))
    found = judged(world)
    assert found[f"kind {GOALS}"].message == "NotPlaceable: it says nothing"
    assert found["placement site/all"].message == "NotPlaceable: it says nothing"
    silent = World(robots=1)
    silent.fleet.listed.discard(GOALS)
    assert f"kind {GOALS}" not in judged(silent)
    failed = judged(silent, failures=[SyncError("goals cannot be listed: forbidden")])
    assert (failed["kind"].state, failed["kind"].message) == (Mark.FAIL, "goals cannot be listed: forbidden")


def test_F2_3_controllers_in_the_cloud_that_act_on_a_kind_are_told():
    assert judged(World(robots=1), acted={GOALS})[f"kind {GOALS}"].state is Mark.WARN
    groups = {"apps": True, "": True, "policy.k8s.io": True, "lab.example.com": False}
    assert {group: is_built_in(replace(KIND, group=group)) for group in groups} == groups


def test_F10_3_what_all_robots_get_is_shown_where_somebody_places_it_or_copies_are_left():
    world = World(raw_placement(resources=[]), robots=1)
    world.do(world.fleet.kind_shown(replace(KIND, shared=True)))
    assert f"kind {GOALS}" not in judged(world)
    world.do(world.fleet.placement_shown(raw_placement("q", mode="Shared")))
    assert judged(world)[f"kind {GOALS}"].message == "1 source selected, 0 replicas"


def test_F10_3_sources_that_a_placement_left_marked_as_shared_are_named():
    world, marked = World(raw_placement("q", mode="Shared"), robots=1), goal()
    world.do(world.fleet.kind_shown(replace(KIND, shared=True)))
    marked["metadata"]["annotations"] = {SHARED: "a-former-one"}
    world.do(world.fleet.object_shown(marked, GOALS))
    assert "shared" not in judged(world)  # the next placement sets its own mark
    world.do(world.fleet.placement_gone("site", "q"))
    check = judged(world)["shared"]
    assert (check.state, check.message.partition(": ")[2]) == (Mark.WARN, f"{GOALS}/site/dock")


def test_a_placement_without_sources_or_that_goes_is_told():
    world = World(robots=1)
    world.do(world.fleet.object_gone(GOALS, "site", "dock"))
    assert judged(world)["placement site/all"].message == "selects no source"
    world.do(world.fleet.placement_shown(raw_placement(**ALL, name="all", terminating=True)))
    assert judged(world)["placement site/all"].message == "is being deleted, 1 replica left"


def test_F3_2_what_has_our_marks_and_is_no_replica_is_named_unless_it_is_handed_over():
    world = World(robots=1)
    world.do(world.fleet.object_gone(GOALS, "robot-r0", "dock"))
    raw = goal(namespace="robot-r0")
    raw["metadata"]["labels"] = {SOURCE: goal_id()}
    world.do(world.fleet.object_shown(raw, GOALS))
    marked = [(GOALS, "robot-r0", "dock"), (GOALS, "robot-r0", "else")]
    assert judged(world, marked=marked)["marks"].message.endswith(f": {GOALS}/robot-r0/else")
    assert "marks" not in judged(world, marked=marked[:1])


def test_F5_2_replicas_that_no_decision_remembers_are_named():
    world = World(robots=1)
    world.do(world.fleet.placement_gone("site", "all"))
    assert judged(world)["strays"].message.endswith(f": {GOALS}/robot-r0/dock")
    decision = {"metadata": {"name": "all-0", "namespace": "site"}, "placement": {"name": "all", "uid": "uid-all"}}
    assert "strays" not in judged(world, decisions=[decision_of(decision)])


def test_G1_2_a_namespace_that_too_many_robots_watch_is_told():
    world = World(raw_placement(**ALL, target="Same"), robots=1)
    assert "fan-out" not in judged(world)
    for number in range(3001):
        world.fleet.robot_shown(raw_robot(f"n{number}"))
    assert "3002 robots share namespace site: above 49 writes/s" in judged(world)["fan-out"].message


def test_expressions_are_missed_only_where_they_are_used():
    assert "expressions" not in judged(World(robots=1), expressions="missing")
    using = World(raw_placement(**ALL, readyWhen="true"), robots=1)
    assert judged(using, expressions="missing")["expressions"].message == "missing; site/all need it"
    assert judged(using)["expressions"].state is Mark.OK


def test_a_controller_that_has_stopped_does_not_count_against_the_set_up():
    assert judge_leader(Leader("pod-a", NOW - 5), NOW, "fleet").message == "pod-a leads, renewed 5 s ago"
    stopped = judge_leader(Leader("pod-a", NOW - 50), NOW, "fleet")
    assert (stopped.state, stopped.health) == (Mark.WARN, "healthy")
    assert "pod-a held it last, renewed 50 s ago" in stopped.message
    assert "nobody holds it" in judge_leader(Leader(), NOW, "fleet").message


def crd(established: str = "True", schema: Any = 1) -> Any:
    return {
        "metadata": {"name": "a.b"},
        "spec": {"versions": [{"name": "v1", "schema": schema}]},
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


@pytest.mark.parametrize(
    ("stored", "mark"),
    [(None, Mark.FAIL), (crd("False"), Mark.FAIL), (crd(schema=2), Mark.WARN), (crd(), Mark.OK)],
)
def test_a_crd_is_installed_established_and_of_this_version(stored, mark):
    assert judge_crd(crd(), stored).state is mark


def test_each_right_that_is_missing_is_named():
    rights: Any = {
        "a": {"get": True, "list": True},
        "b": {"get": False, "list": None},
        "c": {"get": True, "list": None},
    }
    assert [(each.resource, each.state, each.message) for each in judge_rights(rights)] == [
        ("a", Mark.OK, "may get, list"),
        ("b", Mark.FAIL, "may not get"),
        ("c", Mark.UNKNOWN, "no access review of list"),
    ]


def test_F7_a_placement_with_a_bad_expression_is_a_failure():
    check = judged(World(robots=1), problems={"site/all": "spec.readyWhen: line 1"})["placement site/all"]
    assert (check.state, check.message) == (Mark.FAIL, "BadExpression: spec.readyWhen: line 1")
    raw = raw_placement(**ALL)
    wrong = {"type": "Collected", "status": "False", "reason": "CollectorMissing", "message": "there is none"}
    check = judged(World({**raw, "status": {"conditions": [wrong]}}, robots=1))["placement site/all"]
    assert (check.state, check.message) == (Mark.FAIL, "CollectorMissing: there is none")


def test_F10_2_a_shard_answers_serves_the_placed_kinds_and_gives_the_rights():
    goal_rights = {"get": True, "patch": True}
    seen = ShardSeen(kinds=[KIND], crds=[crd()], rights={GOALS: goal_rights})
    good = by_name(judge_shard("b", seen, crds=[crd()]))
    assert {name: each.state for name, each in good.items()} == {
        "shard b": Mark.OK, "crd b/a.b": Mark.OK, f"kind b/{GOALS}": Mark.OK, f"permissions b/{GOALS}": Mark.OK,
    }  # fmt: skip
    missing = replace(KIND, verdict=Verdict.NOT_SERVED, message="it is not served")
    seen = ShardSeen(kinds=[missing], crds=[None], rights={GOALS: {"get": True, "patch": False}})
    bad = by_name(judge_shard("b", seen, crds=[crd()]))
    assert {name: each.message for name, each in bad.items() if each.state is Mark.FAIL} == {
        "crd b/a.b": "is not installed",
        f"kind b/{GOALS}": "NotServed: it is not served",
        f"permissions b/{GOALS}": "may not patch",
    }


def test_F10_2_replicas_on_shards_that_were_not_read_are_not_counted_and_that_is_said():
    world = World(robots=2)
    world.fleet.unread.add("b")
    assert judged(world)[f"kind {GOALS}"].message == "1 source selected, 2 replicas on the shards that were read"


def test_a_shard_that_cannot_be_read_is_one_failure_and_degrades():
    [check] = judge_shard("b", SyncError("connection refused"), crds=[crd()])
    assert (check.state, check.health, check.message) == (
        Mark.FAIL,
        "degraded",
        "it cannot be read: connection refused",
    )
    assert "--shard right?" in check.hint


def test_F10_2_labels_that_name_no_known_shard_are_told_by_shard():
    robots = [Robot("r0", "u"), *(Robot(f"r{each}", "u", {SHARD_LABEL: "bcc"[each - 1]}) for each in (1, 2, 3))]
    [check] = judge_labels(robots, ["b"])
    assert (check.state, check.resource) == (Mark.FAIL, "c")
    assert check.message == "it is not in --shard, and is the shard of 2 Robots: r2, r3"
    assert "add --shard c=KUBECONFIG" in check.hint
    assert [each.resource for each in judge_labels(robots, [])] == ["b", "c"]


def test_F10_2_at_a_shard_the_controller_needs_no_right_of_its_own_kinds_but_to_read_reports():
    rights = {each.resource: each.verbs for each in shard_rights([replace(KIND, has_status=True)])}
    assert rights["goals"] == ("get", "list", "watch", "create", "patch", "delete")
    reports = ("robotsyncstates", "robotobjectstatuses")
    assert {rights[each] for each in reports} == {("get", "list", "watch")}
    assert rights.keys() == {"customresourcedefinitions", "syncpolicies", *reports, "namespaces", "goals"}


@pytest.mark.parametrize(
    ("healths", "code"),
    [(("offline", "degraded"), 11), (("degraded",), 10), (("offline", "attention"), 12), (("healthy",), 0)],
)
def test_in_the_report_of_a_fleet_or_a_door_an_absence_outweighs_what_is_degraded(healths, code):
    checks = [Check("x", Mark.FAIL, "y", health=health) for health in healths]
    assert exit_code(with_offline(document(checks, pid=0), checks)) == code
