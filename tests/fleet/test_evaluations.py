"""Whether robots are ready by `readyWhen`, and what is evaluated when something changes (F7)."""

from typing import Any

import pytest

from crsyncer.fleet.domain.values import Target
from tests.fleet.events import strip
from tests.fleet.made import KIND, key
from tests.fleet.returns import COUNT, NAME, PHASE, Returns, Without, combined

READY = "returned.status.phase == 'Ready'"


def world(*robots: str, ready: str = READY, **spec: Any) -> Returns:
    found = Returns(*(robots or ("r1",)))
    found.placement(readyWhen=ready, **spec)
    found.goal()
    found.settle()
    return found


def test_F7_1_without_ready_when_there_is_nothing_to_ask():
    found = Returns("r1")
    found.placement()
    found.goal()
    found.replica("r1", {"phase": "Ready"})
    assert found.evaluations.ready("site/all", "r1") is None
    assert found.evaluations.problem("site/all") == ""
    assert found.evaluations.collected("site/all") is None
    assert found.settle().ready == set()


def test_F7_1_a_robot_is_ready_while_it_holds_for_all_its_replicas():
    found = world("r1", "r2")
    found.goal("lift")
    assert found.evaluations.ready("site/all", "r1") is False
    found.replica("r1", {"phase": "Ready"})
    assert found.settle().ready == {("site/all", "r1")}
    assert found.evaluations.ready("site/all", "r1") is False
    lift = found.replica("r1", {"phase": "Ready"}, name="lift")
    assert found.evaluations.ready("site/all", "r1") is True
    assert found.evaluations.ready("site/all", "r2") is False
    found.settle()
    found.replica("r1", {"phase": "Ready", "more": 1}, name="lift")
    assert found.settle().ready == set()
    found.replica("r1", {"phase": "Driving"}, name="lift")
    assert found.settle().ready == {("site/all", "r1")}
    assert found.evaluations.ready("site/all", "r1") is False
    found.replica_gone(lift)
    assert found.settle().ready == {("site/all", "r1")}
    found.goal_gone("lift")
    assert found.evaluations.ready("site/all", "r1") is True


@pytest.mark.parametrize(
    "status",
    [
        None, {}, {"phase": 1}, {"phase": "Ready\0"}, {"phase": "Ready", "deep": "\ud800"},
        {"phase": "Ready", "large": "x" * (256 << 10)},
    ],
)  # fmt: skip
def test_F7_2_an_error_in_ready_when_means_not_ready(status):
    found = world()
    found.replica("r1", status)
    assert found.evaluations.ready("site/all", "r1") is False


@pytest.mark.parametrize("ready", ["'true'", "1", "returned.status", "null", "[true]", "1 / 0 == 1"])
def test_F7_2_another_value_than_true_means_not_ready(ready):
    found = world(ready=ready)
    found.replica("r1", {"phase": "Ready"})
    assert found.evaluations.ready("site/all", "r1") is False
    assert found.evaluations.problem("site/all") == ""


def test_F7_1_true_needs_no_status_and_reads_nothing():
    found = world(ready="true")
    found.replica("r1", "no status at all")
    assert found.evaluations.ready("site/all", "r1") is True
    rows = found.expressions.rows
    found.replica("r1", {"phase": "a"})
    assert found.expressions.rows == rows
    found.placement(readyWhen="true && true")
    assert found.evaluations.ready("site/all", "r1") is False
    assert found.settle().read == set()
    assert found.evaluations.ready("site/all", "r1") is True


@pytest.mark.parametrize(
    ("ready", "said"),
    [
        ("returned.", "spec.readyWhen: line 1"),
        ("[1].filter(x, x > 0).size() > 0", "spec.readyWhen: calls map or filter, whose order is not stable"),
        ("robot == 'r1'", "spec.readyWhen: line 1, column 1: undeclared reference to 'robot'"),
    ],
)
def test_F7_1_a_bad_expression_is_told_and_nothing_is_ready(ready, said):
    found = world(ready=ready)
    found.replica("r1", {"phase": "Ready"})
    assert found.evaluations.problem("site/all").startswith(said)
    assert found.evaluations.ready("site/all", "r1") is False
    found.placement(readyWhen=READY)
    found.settle()
    assert found.evaluations.problem("site/all") == ""
    assert found.evaluations.ready("site/all", "r1") is True


def test_F7_1_without_the_extra_it_is_told_how_to_install_it():
    found = Returns("r1", expressions=Without)
    found.collector(combinedFields=[COUNT])
    found.placement(readyWhen="true", statusCollectors=["c"])
    found.goal()
    found.replica("r1")
    assert found.evaluations.problem("site/all") == (
        "spec.readyWhen: true needs cel-expr-python for 4 variables; install it"
    )
    assert found.rows() == [["1"]]


VARIABLES = [
    ("obj.spec.x == 1 && obj.kind == 'Goal' && obj.metadata.name == 'dock'", True),
    ("has(obj.status) || has(obj.metadata.resourceVersion)", False),
    ("inventory.name == 'r1' && inventory.labels.site == 'a' && !inventory.online", True),
    ("inventory.properties.robotName == 'r1' && inventory.annotations.size() == 0", True),
    ("!propagation.acked && propagation.generation == 1", True),
    ("propagation.lastReturnedUpdateTimestamp == null", True),
    ("timestamp('2026-11-01T00:00:00Z') < timestamp('2026-11-02T00:00:00Z')", True),
    ("returned.status.observedGeneration == propagation.generation", True),
]


@pytest.mark.parametrize(("ready", "expected"), VARIABLES)
def test_F7_1_the_variables_are_what_they_are_called(ready, expected):
    found = Returns("r1")
    found.robot("r1", site="a")
    found.placement(readyWhen=ready)
    found.goal()
    found.replica("r1", {"observedGeneration": 1})
    assert found.evaluations.ready("site/all", "r1") is expected


def test_F7_1_the_time_of_the_last_status_is_known():
    found = world(ready="timestamp(propagation.lastReturnedUpdateTimestamp) > timestamp('2026-11-01T00:00:00Z')")
    found.replica("r1", managedFields=[{"subresource": "status", "time": "2026-11-02T00:00:00Z"}])
    assert found.evaluations.ready("site/all", "r1") is True


def test_F7_1_the_properties_of_a_robot_are_those_of_its_config_map_too():
    found = world(ready="inventory.properties.site == 'a' && returned.status.on")
    found.replica("r1", {"on": True})
    assert found.evaluations.ready("site/all", "r1") is False
    for site, ready in (("a", True), ("x" * (65 << 10), False)):
        raw = {"metadata": {"name": "r1", "namespace": "crsyncer-properties"}, "data": {"site": site}}
        found.change(found.fleet.properties_shown(raw))
        found.evaluations.robot_changed("r1")
        assert found.settle().read == set()
        assert found.evaluations.ready("site/all", "r1") is ready


def test_F7_1_what_changes_without_the_replica_is_seen():
    parts = [
        "returned.status.on",
        "obj.spec.x == 2",
        "inventory.online",
        "propagation.acked",
        "inventory.labels.k == 'a'",
    ]
    found = world(ready=" && ".join(parts))
    found.replica("r1", {"on": True})
    steps = [
        lambda: found.goal(spec={"x": 2}),
        lambda: found.report("r1", online=True),
        lambda: found.ack("r1"),
        lambda: found.robot("r1", k="a"),
    ]
    for step in steps:
        assert found.evaluations.ready("site/all", "r1") is False
        step()
        assert found.settle().read == set()
    assert found.evaluations.ready("site/all", "r1") is True
    found.ack("r1", acked=False)
    assert found.settle().ready == {("site/all", "r1")}
    assert found.evaluations.ready("site/all", "r1") is False


def test_F7_1_a_template_that_is_edited_is_seen():
    def template(x: int) -> Any:
        return [{"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"x": x}}}]

    found = Returns("r1")
    found.placement(readyWhen="obj.spec.x == returned.status.x", templates=template(1), resources=[])
    source = next(iter(found.fleet.index.sources_of("site/all")))
    place = next(found.fleet.index.keys("site/all"))
    assert source.placement == "all"
    wanted = found.fleet.wanted(place)
    assert wanted is not None
    body = found.fleet.decide(place, wanted, removal=None).body | {"status": {"x": 2}}  # type: ignore[arg-type, union-attr]
    body["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    found.show(place, body)
    assert found.evaluations.ready("site/all", "r1") is False
    found.placement(readyWhen="obj.spec.x == returned.status.x", templates=template(2), resources=[])
    found.settle()
    assert found.evaluations.ready("site/all", "r1") is True


def test_F7_3_an_event_evaluates_one_row():
    robots = [f"r{number}" for number in range(30)]
    found = world(*robots, statusCollectors=["c", "d"])
    found.collector("c", select=[NAME, PHASE])
    found.collector("d", combinedFields=[COUNT], filter="inventory.online")
    for robot in robots:
        found.replica(robot, {"phase": "Ready"})
    found.write()
    found.expressions.rows = 0
    found.replica("r7", {"phase": "Driving"})
    assert found.expressions.rows == 1
    assert found.settle().combined == {combined()}
    found.report("r3", online=True)
    found.settle()
    assert found.expressions.rows == 2
    found.goal(status={"x": 1})
    found.robot("r3", site="b")
    found.settle()
    assert found.expressions.rows == 3


def test_F7_3_an_event_that_nobody_asks_about_evaluates_nothing():
    found = world("r1", "r2")
    found.replica("r1", {"phase": "Ready"})
    found.placement("other", readyWhen="true", robotSelectors=[], robotNames=["r2"])
    found.settle()
    rows = found.expressions.rows
    found.report("r1", online=True)
    found.ack("r1")
    found.ack("r1", placement="site/nobody")
    found.goal(spec={"x": 3})
    found.change(found.fleet.strip_shown(strip()))
    assert found.settle().ready == set()
    assert found.expressions.rows == rows


def test_F3_9_statuses_are_read_again_after_an_edit_unless_they_are_kept():
    found = world("r1", "r2")
    found.robot("r1", k="a")
    found.robot("r2", k="b")
    one, two = (found.replica(robot, {"phase": "Ready", "mode": "Auto"}) for robot in ("r1", "r2"))
    found.settle()
    found.placement(readyWhen="returned.status.mode == 'Auto' && inventory.labels.k == 'a'")
    assert found.evaluations.ready("site/all", "r1") is False
    due = found.settle()
    assert (due.read, due.ready) == ({one, two}, {("site/all", "r1"), ("site/all", "r2")})
    assert [found.evaluations.ready("site/all", robot) for robot in ("r1", "r2")] == [True, False]
    found.placement(readyWhen="returned.status.mode == 'Auto' && inventory.labels.k == 'b'")
    assert found.settle().read == set()
    assert [found.evaluations.ready("site/all", robot) for robot in ("r1", "r2")] == [False, True]
    found.placement(readyWhen=READY)
    assert found.settle().read == set()
    found.replica("r1", {"phase": "Ready"})
    found.placement(readyWhen="returned.status.phase == 'Driving'")
    assert found.settle().read == {one}


def test_F3_9_the_name_of_a_robot_is_no_reason_to_keep_its_status():
    found = world("r1", ready="returned.status.phase == inventory.name")
    one = found.replica("r1", {"phase": "r1"})
    assert found.evaluations.ready("site/all", "r1") is True
    found.robot("r1", k="b")
    assert not found.evaluations.is_stale
    found.placement(readyWhen="returned.status.phase != inventory.name")
    assert found.settle().read == {one}


def test_F3_9_a_replica_that_cannot_be_read_stays_unread_until_it_is_shown_or_gone():
    found = world("r1", "r2")
    one, two = (found.replica(robot, {"phase": "Ready"}) for robot in ("r1", "r2"))
    found.placement(readyWhen="returned.status.phase != ''")
    first = found.evaluations.evaluate_stale(1).read
    assert len(first) == 1
    assert first | found.evaluations.evaluate_stale(9).read == {one, two}
    assert found.evaluations.unread == {one, two}
    assert not found.evaluations.is_stale
    found.replica_gone(one)
    assert found.evaluations.unread == {two}
    found.show(two, found.raws[two])
    assert found.evaluations.unread == set()
    assert found.evaluations.ready("site/all", "r2") is True


def test_F6_4_it_is_known_whether_what_is_there_was_evaluated():
    found = Returns("r1")
    found.placement(readyWhen=READY)
    found.goal()
    assert not found.evaluations.is_evaluating("site/all")
    found.replica("r1", {"phase": "Ready"})
    assert not found.evaluations.is_evaluating("site/all")
    found.placement(readyWhen="returned.status.phase == 'Driving'")
    assert found.evaluations.is_evaluating("site/all")
    found.evaluations.evaluate_stale(1)
    assert found.evaluations.unread
    assert found.evaluations.is_evaluating("site/all")
    found.replica("r1", {"phase": "Ready"})
    assert not found.evaluations.is_evaluating("site/all")
    found.placement()
    assert not found.evaluations.is_evaluating("site/all")


def test_F7_1_an_edited_collector_does_not_unsettle_who_is_ready():
    found = world(statusCollectors=["c"])
    found.collector(select=[NAME])
    found.replica("r1", {"phase": "Ready"})
    found.settle()
    found.collector(select=[PHASE])
    assert found.evaluations.ready("site/all", "r1") is True
    assert found.settle().ready == set()
    assert found.rows() == [["Ready"]]


def test_a_placement_that_is_made_anew_or_loses_its_expressions_is_forgotten():
    found = world("r1", "r2", statusCollectors=["c"])
    found.collector(select=[NAME])
    found.replica("r1", {"phase": "Ready"})
    assert found.write() == ["Put"]
    found.placement()
    due = found.settle()
    assert due.ready == {("site/all", "r1")}
    assert combined() in due.combined
    assert found.evaluations.ready("site/all", "r1") is None
    found.placement(readyWhen=READY)
    found.placement_gone()
    found.change(found.fleet.kind_shown(KIND))
    assert found.evaluations.ready("site/all", "r1") is None
    assert not found.evaluations.is_stale
    found.placement(readyWhen=READY)
    found.settle()
    assert found.evaluations.ready("site/all", "r1") is True


def test_a_placement_of_another_uid_is_another_one():
    found = world()
    found.replica("r1", {"phase": "Ready"})
    raw = {
        "metadata": {"name": "all", "namespace": "site", "uid": "new", "creationTimestamp": ""},
        "spec": {
            "robotSelectors": [{}],
            "readyWhen": READY,
            "resources": [{"group": "lab.example.com", "resource": "goals", "names": ["dock"]}],
        },
    }
    found.change(found.fleet.placement_shown(raw))
    found.settle()
    assert found.evaluations.ready("site/all", "r1") is True


def test_F2_4_each_placement_that_selects_a_replica_asks_for_itself():
    found = world("r1", "r2")
    found.placement("other", robotSelectors=[], robotNames=["r1"], readyWhen="propagation.acked", target="PerRobot")
    found.placement("beside", readyWhen="true", target="Same")
    found.replica("r1", {"phase": "Driving"})
    found.ack("r1", placement="site/other")
    found.settle()
    texts = ["site/all", "site/other", "site/beside"]
    assert [found.evaluations.ready(text, "r1") for text in texts] == [False, True, False]
    found.replica("r1", target=Target.SAME)
    assert found.evaluations.ready("site/beside", "r1") is True
    found.robot_gone("r1")
    assert [found.evaluations.ready(text, "r2") for text in texts] == [False, False, False]


def test_a_replica_that_the_fleet_does_not_know_is_not_evaluated():
    found = world()
    place = found.replica("r1", {"phase": "Ready"})
    raw = found.raws[place]
    found.replica_gone(place)
    found.replica_shown(place, raw)
    assert found.evaluations.ready("site/all", "r1") is False
    found.replica_shown(key("r9"), raw)
