"""The index: what each event concerns, and that events lead to what a fresh look at everything finds."""

from dataclasses import replace
from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.replica_plan import Removal
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Nothing,
    Patch,
    PlacedKind,
    Reason,
    RenderFailed,
    Rendering,
    Strategy,
    Target,
    Verdict,
    Wait,
)
from tests.fleet.events import config_map, strip
from tests.fleet.made import GOALS, KIND, decided, goal, goal_id, key, placed, raw_placement, raw_robot, ready_fleet

MAPS = PlacedKind("maps.lab.example.com", "lab.example.com", "maps", "Map", "v1", namespaced=False)


def content(fleet: Fleet, robot: str = "r1", **options: Any) -> Any:
    wanted = fleet.wanted(key(robot, **options))
    assert wanted is not None
    return wanted.rendering.content if isinstance(wanted.rendering, Rendering) else wanted.rendering


def test_F1_1_nothing_is_written_before_all_is_listed():
    fleet = Fleet(home="default")
    fleet.kind_shown(KIND)
    fleet.robot_shown(raw_robot("r1"))
    fleet.placement_shown(raw_placement(robotSelectors=[{}]))
    fleet.object_shown(goal(), GOALS)
    for each in Input:
        assert isinstance(decided(fleet), Wait)
        assert fleet.inputs_listed(each).keys == set()
    assert isinstance(decided(fleet), Wait)
    assert fleet.inputs_listed(GOALS).keys == {key("r1")}
    assert isinstance(decided(fleet), Create)


def test_a_source_concerns_the_robots_of_the_placements_that_select_it():
    fleet = ready_fleet(robots=["r1", "r2"], sources=["dock", "lift"])
    assert fleet.object_shown(goal(spec={"x": 2}), GOALS).keys == {key("r1"), key("r2")}
    assert fleet.object_shown(goal(spec={"x": 2}), GOALS).keys == set()
    gone = fleet.object_gone(GOALS, "site", "dock")
    assert (gone.keys, gone.lost_sources) == ({key("r1"), key("r2")}, {(GOALS, goal_id())})
    assert fleet.wanted(key("r1")) is None
    assert fleet.object_gone(GOALS, "site", "none").keys == set()
    assert fleet.object_shown(goal(namespace="elsewhere"), GOALS).keys == set()
    assert fleet.index.count(GOALS) == 1
    assert fleet.index.is_selected(goal_id("lift"))
    assert not fleet.index.is_selected(goal_id())


def test_F2_1_a_source_that_terminates_is_lost():
    fleet = ready_fleet()
    raw = goal()
    raw["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
    assert fleet.object_shown(raw, GOALS).lost_sources == {(GOALS, goal_id())}
    assert fleet.object_shown(raw, GOALS).lost_sources == set()


def test_F2_2_a_source_that_becomes_a_robots_object_is_lost():
    fleet = ready_fleet()
    raw = goal()
    raw["metadata"]["labels"] = {ROBOT_LABEL: "r1"}
    assert fleet.object_shown(raw, GOALS).lost_sources == {(GOALS, goal_id())}


def test_a_label_of_a_robot_concerns_its_own_placements_alone():
    fleet = ready_fleet(
        raw_placement("halls", robotSelectors=[{"matchLabels": {"site": "hall"}}]),
        raw_placement("all", robotSelectors=[{}], resources=[]),
        robots=["r1", "r2"],
    )
    found = fleet.robot_shown(raw_robot("r1", site="hall"))
    assert (found.keys, found.placements) == ({key("r1")}, {"site/halls", "site/all"})
    assert fleet.robot_shown(raw_robot("r1", site="hall", other="x")).keys == set()
    away = fleet.robot_shown(raw_robot("r1"))
    assert (away.keys, away.left, away.lost_robots, away.edited) == ({key("r1")}, {("uid-halls", "r1")}, set(), set())


def test_a_label_that_an_override_reads_concerns_that_robot():
    step = {"path": "/spec/y", "set": {"value": 1}}
    by = raw_placement(robotSelectors=[{}], overrides=[{"robotSelector": {"matchLabels": {"a": "b"}}, "steps": [step]}])
    fleet = ready_fleet(by, robots=["r1", "r2"])
    assert fleet.robot_shown(raw_robot("r1", a="b")).keys == {key("r1")}
    assert content(fleet) == {"spec": {"x": 1, "y": 1}}
    assert content(fleet, "r2") == {"spec": {"x": 1}}


def test_F2_1_a_robot_that_is_gone_or_terminates_is_lost():
    fleet = ready_fleet(robots=["r1", "r2"])
    gone = fleet.robot_gone("r1")
    assert (gone.keys, gone.lost_robots, gone.left) == ({key("r1")}, {"r1"}, {("uid-all", "r1")})
    assert fleet.robot_gone("r1").lost_robots == set()
    raw = raw_robot("r2")
    raw["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
    assert fleet.robot_shown(raw).lost_robots == {"r2"}


def test_a_named_robot_that_comes_or_goes_concerns_the_placements_errors():
    fleet = ready_fleet(raw_placement(robotNames=["r9"]))
    assert fleet.robot_shown(raw_robot("r9")).placements == {"site/all"}
    assert fleet.robot_gone("r9").placements == {"site/all"}


def test_a_robot_with_a_bad_name_gets_nothing():
    fleet = ready_fleet(robots=["Bad.Name"])
    assert fleet.all_keys() == set()


def test_a_property_concerns_its_robot_where_a_placement_uses_properties():
    by = raw_placement(robotSelectors=[{}], expand=True)
    fleet = ready_fleet(by, robots=["r1", "r2"], raws=[goal(spec={"x": '{{ .map | default "none" }}'})])
    assert fleet.properties_shown(config_map(map="m1")).keys == {key("r1")}
    assert fleet.properties_shown(config_map(map="m1")).keys == set()
    assert content(fleet) == {"spec": {"x": "m1"}}
    assert fleet.properties_gone("r1").keys == {key("r1")}
    assert content(fleet) == {"spec": {"x": "none"}}
    assert fleet.properties_shown(config_map("r9", map="m1")).keys == set()
    assert ready_fleet().properties_shown(config_map(map="m1")).keys == set()


def test_F4_4_each_of_many_robots_has_its_own_properties_and_equal_ones_are_rendered_once():
    steps = [{"path": "/spec/zone", "property": {"name": "zone"}}]
    places = {f"r{number}": f"zone-{number // 2}" for number in range(100)}
    raw = raw_placement(robotSelectors=[{}], overrides=[{"steps": steps}])
    fleet = ready_fleet(raw, robots=places)
    for robot, zone in places.items():
        fleet.robot_shown(raw_robot(robot, zone=zone))
    wanted = {robot: fleet.wanted(key(robot)) for robot in places}
    found = {robot: each.rendering for robot, each in wanted.items() if each is not None}
    zones = {robot: each.content["spec"]["zone"] for robot, each in found.items() if isinstance(each, Rendering)}
    assert zones == places
    assert all(found[f"r{number}"] is found[f"r{number + 1}"] for number in range(0, 100, 2))
    (text,) = fleet.index.placements
    fleet.placement_gone(*text.split("/"))
    assert fleet.wanted(key("r1")) is None


def test_F4_4_properties_that_are_too_large_block_where_they_are_used():
    step = {"path": "/spec/p", "property": {"name": "p"}}
    fleet = ready_fleet(raw_placement(robotSelectors=[{}], overrides=[{"steps": [step]}]))
    fleet.properties_shown(config_map(p="a" * (65 << 10)))
    assert isinstance(content(fleet), RenderFailed)
    plain = ready_fleet()
    plain.properties_shown(config_map(p="a" * (65 << 10)))
    assert content(plain) == {"spec": {"x": 1}}


def test_a_strip_concerns_its_kind_alone():
    fleet = ready_fleet()
    assert fleet.strip_shown(strip()).keys == {key("r1")}
    assert content(fleet) == {"spec": {}}
    assert fleet.strip_shown(strip()).keys == set()
    assert fleet.strip_shown(strip(resource="maps")).keys == {key("r1")}
    assert content(fleet) == {"spec": {"x": 1}}
    assert fleet.strip_gone("s").keys == set()
    assert fleet.strip_gone("s").keys == set()


def test_F4_2_a_strip_that_cannot_be_read_renders_nothing():
    fleet = ready_fleet()
    fleet.strip_shown(strip(path="x"))
    failed = content(fleet)
    assert isinstance(failed, RenderFailed)
    assert failed.message.startswith("FieldStrip s: spec.remove[0] is")
    assert isinstance(decided(fleet), Blocked)


def test_F4_2_while_strips_are_not_served_nothing_is_written():
    fleet = ready_fleet()
    assert fleet.served(Input.STRIPS, is_served=False).keys == {key("r1")}
    assert fleet.served(Input.STRIPS, is_served=False).keys == set()
    assert decided(fleet) == Wait("the cloud does not serve FieldStrips")
    assert fleet.served(Input.STRIPS, is_served=True).keys == {key("r1")}
    assert isinstance(decided(fleet), Create)
    assert fleet.served(GOALS, is_served=False).keys == {key("r1")}


def test_an_edit_of_a_placement_concerns_what_it_selected_and_selects():
    fleet = ready_fleet(raw_placement(robotNames=["r1"]), robots=["r1", "r2", "r3"])
    found = fleet.placement_shown(raw_placement(robotNames=["r2"]))
    assert (found.keys, found.edited) == ({key("r1"), key("r2")}, {key("r1")})
    raw = raw_placement(robotNames=["r2"])
    raw["metadata"]["generation"] = 9
    again = fleet.placement_shown({**raw, "status": {"counts": {}}})
    assert (again.keys, again.placements) == (set(), {"site/all"})
    assert fleet.index.placements["site/all"].generation == 9


def test_F5_1_a_placement_that_terminates_is_an_edit_and_one_that_vanishes_is_none():
    fleet = ready_fleet()
    assert fleet.placement_gone("site", "all").edited == set()
    assert fleet.index.placement("uid-all") is None
    fleet = ready_fleet()
    assert fleet.placement_shown(raw_placement(robotSelectors=[{}], terminating=True)).edited == {key("r1")}
    gone = fleet.placement_gone("site", "all")
    assert (gone.keys, gone.edited, gone.placements) == (set(), set(), {"site/all"})


def test_F5_2_a_placement_with_another_uid_is_another_placement():
    fleet = ready_fleet()
    raw = raw_placement()
    raw["metadata"]["uid"] = "other"
    found = fleet.placement_shown(raw)
    assert (found.keys, found.edited) == ({key("r1")}, set())


def test_F2_3_an_edit_that_cannot_be_read_removes_and_writes_nothing():
    fleet = ready_fleet()
    found = fleet.placement_shown(raw_placement(robotSelectors="all"))
    assert found.edited == set()
    wait = decided(fleet)
    assert isinstance(wait, Wait)
    assert "spec.robotSelectors" in wait.reason
    assert fleet.placement_shown(raw_placement(robotSelectors=[{}])).keys == {key("r1")}
    assert isinstance(decided(fleet), Create)


def test_F2_3_what_went_with_its_crd_is_forgotten_and_listed_before_it_is_made_again():
    fleet = ready_fleet()
    fleet.object_shown(placed(fleet), GOALS)
    assert fleet.kind_gone(GOALS).keys == {key("r1")}
    assert fleet.index.kinds[GOALS].verdict is Verdict.NOT_SERVED
    assert fleet.rows == {}
    fleet.kind_shown(KIND)
    assert decided(fleet) == Wait("its kind is not listed")


def test_F2_3_a_kind_that_may_not_be_placed_keeps_its_replicas():
    fleet = ready_fleet()
    fleet.object_shown(placed(fleet), GOALS)
    gone = replace(KIND, verdict=Verdict.NOT_SERVED, message=f"the cloud does not serve {GOALS}")
    assert fleet.kind_shown(gone).keys == {key("r1")}
    assert decided(fleet) == Wait(f"the cloud does not serve {GOALS}")
    assert fleet.kind_shown(KIND).keys == {key("r1")}
    assert fleet.kind_shown(KIND).keys == set()
    assert decided(fleet) == Nothing()


def test_F2_2_cluster_scoped_kinds_are_placed_beside_the_controller_alone():
    entry = {"name": "t", "group": "lab.example.com", "resource": "maps", "object": {"spec": {}}}
    for namespace, count in (("default", 1), ("site", 0)):
        fleet = Fleet(home="default")
        fleet.kind_shown(MAPS)
        fleet.robot_shown(raw_robot("r1"))
        fleet.placement_shown(raw_placement(namespace=namespace, robotSelectors=[{}], templates=[entry]))
        keys = fleet.all_keys()
        assert len(keys) == count
        for each in keys:
            wanted = fleet.wanted(each)
            assert wanted is not None
            assert (each.target, wanted.namespace, wanted.name) == (Target.SAME, "", "t-r1")
            assert fleet.wanted(each._replace(target=Target.PER_ROBOT)) is None
            assert fleet.wanted(each._replace(resource=GOALS)) is None


def test_F2_4_the_oldest_placement_governs_and_the_next_one_follows():
    fleet = ready_fleet(
        raw_placement("new", created="2026-11-02T00:00:00Z", robotSelectors=[{}]),
        raw_placement("old", robotSelectors=[{}]),
    )
    first = placed(fleet)
    fleet.object_shown(first, GOALS)
    assert decided(fleet) == Nothing()
    assert fleet.placement_shown(raw_placement("old", robotSelectors=[{}], terminating=True)).keys == {key("r1")}
    plan = decided(fleet)
    assert isinstance(plan, Patch)
    assert "uid-new" in str(plan.operations)


def test_the_first_entry_gives_the_strategy_and_templates_have_their_own():
    entry = {"group": "lab.example.com", "resource": "goals", "strategy": "CreateOnly", "names": ["dock"]}
    fleet = ready_fleet(raw_placement(robotSelectors=[{}], resources=[entry]))
    wanted = fleet.wanted(key("r1"))
    assert wanted is not None
    assert wanted.strategy is Strategy.CREATE_ONLY


def test_a_replica_that_is_gone_is_made_again():
    fleet = ready_fleet(sources=["dock", "lift"])
    for name in ("dock", "lift"):
        fleet.object_shown(placed(fleet, name=name), GOALS)
    assert fleet.object_gone(GOALS, "robot-r1", "dock").keys == {key("r1")}
    assert fleet.rows_by_robot.keys() == {"r1"}
    assert fleet.rows_by_robot["r1"].keys() == {key("r1", name="lift")}
    fleet.object_gone(GOALS, "robot-r1", "lift")
    assert fleet.rows_by_robot == {}
    assert isinstance(decided(fleet), Create)


def test_F3_2_a_replica_whose_marks_are_taken_away_is_one_no_more():
    fleet = ready_fleet()
    raw = placed(fleet)
    fleet.object_shown(raw, GOALS)
    raw["metadata"]["annotations"] = {}
    del raw["metadata"]["labels"][SOURCE]
    assert fleet.object_shown(raw, GOALS).keys == {key("r1")}
    plan = decided(fleet)
    assert isinstance(plan, Blocked)
    assert plan.reason is Reason.NAME_TAKEN


def test_F3_7_a_taken_name_is_refused_until_it_is_handed_over_or_free():
    fleet = ready_fleet(raw_placement(robotSelectors=[{}], target="Same"))
    at: Any = {"target": Target.SAME}
    other = goal("dock-r1", namespace="site")
    other["metadata"]["labels"] = {ROBOT_LABEL: "r1"}
    assert fleet.object_shown(other, GOALS).keys == {key("r1", **at)}
    assert isinstance(decided(fleet, **at), Blocked)
    other["metadata"]["labels"][SOURCE] = goal_id()
    assert fleet.object_shown(other, GOALS).keys == {key("r1", **at)}
    assert isinstance(decided(fleet, **at), Create)
    wanted = fleet.wanted(key("r1", **at))
    assert wanted is not None
    assert fleet.is_handed_over(wanted)
    assert fleet.object_gone(GOALS, "site", "dock-r1").keys == {key("r1", **at)}
    assert not fleet.is_handed_over(wanted)


def test_F3_7_the_name_of_another_sources_replica_is_refused_until_it_is_free():
    fleet = ready_fleet(
        raw_placement(robotSelectors=[{}]), raw_placement("hall", namespace="hall", robotSelectors=[{}])
    )
    fleet.object_shown(placed(fleet), GOALS)
    fleet.object_shown(goal(namespace="hall"), GOALS)
    (other,) = fleet.all_keys() - {key("r1")}
    wanted = fleet.wanted(other)
    plan = fleet.decide(other, wanted, removal=Removal.UNKNOWN)
    assert isinstance(plan, Blocked)
    assert plan.reason is Reason.NAME_TAKEN
    assert fleet.object_gone(GOALS, "robot-r1", "dock").keys == {key("r1"), other}
    assert isinstance(fleet.decide(other, wanted, removal=Removal.UNKNOWN), Create)


def test_a_source_that_becomes_a_replica_is_a_source_no_more():
    fleet = ready_fleet(raw_placement(robotSelectors=[{}], target="Same"))
    at: Any = {"target": Target.SAME}
    raw = placed(fleet, **at)
    fleet.object_shown(goal("dock-r1"), GOALS)
    assert isinstance(fleet.wanted(key("r1", name="dock-r1", **at)), object)
    change = fleet.object_shown(raw, GOALS)
    assert change.lost_sources == {(GOALS, goal_id("dock-r1"))}
    assert fleet.wanted(key("r1", name="dock-r1", **at)) is None


def test_a_replica_at_the_place_of_another_one_replaces_it():
    fleet = ready_fleet(sources=["dock", "lift"])
    first = placed(fleet)
    fleet.object_shown(first, GOALS)
    text = first["metadata"]["annotations"]["crsyncer.cloudrobotics.com/replica"]
    first["metadata"]["labels"][SOURCE] = "0" * 24
    first["metadata"]["annotations"]["crsyncer.cloudrobotics.com/replica"] = text.replace("site/dock", "hall/dock")
    change = fleet.object_shown(first, GOALS)
    assert key("r1") in change.keys
    assert [each.source_id for each in fleet.rows] == ["0" * 24]


def test_F2_3_the_objects_of_a_kind_can_be_forgotten_and_no_others():
    fleet = Fleet(home="default")
    fleet.kind_shown(KIND)
    fleet.kind_shown(MAPS)
    fleet.object_shown(goal(), GOALS)
    fleet.object_shown(goal("hall"), MAPS.resource)
    assert [each.name for each in fleet.index.forget_sources(GOALS)] == ["dock"]
    assert [each.name for each in fleet.index.sources] == ["hall"]
    assert fleet.index.forget_sources(GOALS) == []
