"""CombinedStatuses: row by row of the table of `CombinedObjects.plan`, and what is in them (F7.3)."""

from typing import Any

import pytest

from crsyncer.core.model import Key
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.returned.combined_objects import COMBINED_STATUSES, STATUS_COLLECTORS, Put
from crsyncer.fleet.domain.values import Nothing, Wait
from tests.fleet.made import GOALS
from tests.fleet.returns import NAME, PHASE, Returns, column, combined, done


def world(*robots: str, **spec: Any) -> Returns:
    found = Returns(*(robots or ("r1",)))
    found.placement(statusCollectors=["c"])
    found.collector(**(spec or {"select": [NAME, PHASE]}))
    found.goal()
    return found


def test_F7_3_an_object_is_beside_its_placement_and_owned_by_it():
    found = world()
    found.replica("r1", {"phase": "Ready"})
    assert found.write() == ["Put"]
    assert found.objects[combined()] == {
        "apiVersion": "fleet.crsyncer.cloudrobotics.com/v1alpha1",
        "kind": "CombinedStatus",
        "metadata": {
            "namespace": "site",
            "name": combined().name,
            "ownerReferences": [
                {
                    "apiVersion": "fleet.crsyncer.cloudrobotics.com/v1alpha1",
                    "kind": "RobotPlacement",
                    "name": "all",
                    "uid": "uid-all",
                }
            ],
        },
        "source": {"group": "lab.example.com", "resource": "goals", "name": "dock"},
        "placement": "all",
        "results": [
            {
                "collector": "c",
                "columns": ["robot", "phase"],
                "rows": [[{"type": "String", "value": "r1"}, {"type": "String", "value": "Ready"}]],
                "total": 1,
                "truncated": False,
                "rowErrors": [],
            }
        ],
    }


def test_F6_3_it_is_written_when_it_changes_and_only_then():
    found = world("r1", "r2")
    assert found.write() == ["Put"]
    found.replica("r1", {"phase": "Ready"})
    assert found.write() == ["Put"]
    found.replica("r1", {"phase": "Ready", "battery": 5})
    assert found.write() == []
    found.replica("r2", {"phase": "Driving"})
    found.replica("r1", {"phase": "Driving"})
    assert found.write() == ["Put"]
    assert found.rows() == [["r1", "Driving"], ["r2", "Driving"]]
    assert done(found.combined.plan(combined())) == Nothing()
    found.robot_gone("r2")
    assert found.rows() == [["r1", "Driving"]]


def test_F6_3_what_it_shall_be_is_found_some_robots_at_a_time():
    robots = [f"r{number:02}" for number in range(25)]
    found = world(*robots)
    for robot in robots:
        found.replica(robot, {"phase": robot})
    found.settle()
    work = found.combined.plan(combined(), most=10)
    assert [next(work) for _ in range(2)] == [None, None]
    plan = done(work)
    assert isinstance(plan, Put)
    assert plan.body["results"][0]["total"] == 25
    assert plan == done(found.combined.plan(combined()))


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.collector(select=[NAME]),
        lambda found: found.collector_gone("c"),
        lambda found: found.placement_gone(),
        lambda found: found.goal_gone(),
    ],
)
def test_F7_3_what_changes_while_robots_are_asked_leaves_it_to_the_next_time(change):
    found = world("r1", "r2")
    for robot in ("r1", "r2"):
        found.replica(robot, {"phase": "Ready"})
    found.settle()
    work = found.combined.plan(combined(), most=1)
    next(work)
    change(found)
    assert isinstance(done(work), Nothing | Wait)
    assert combined() in found.settle().combined


def test_what_somebody_changed_or_deleted_is_put_right():
    found = world()
    found.replica("r1", {"phase": "Ready"})
    found.write()
    raw = {**found.objects[combined()], "results": [], "source": None}
    found.due.add(found.combined.shown(raw))
    assert found.write() == ["Put"]
    del found.objects[combined()]
    found.due.add(found.combined.gone(*combined()))
    assert found.write() == ["Put"]
    assert found.rows() == [["r1", "Ready"]]


def test_what_nobody_wants_any_more_is_deleted():
    found = world()
    found.goal("lift")
    assert found.write() == ["Put", "Put"]
    found.goal_gone("lift")
    assert found.write() == ["Drop"]
    found.placement()
    assert found.write() == ["Drop"]
    assert done(found.combined.plan(combined())) == Nothing()
    found.placement(statusCollectors=["c"])
    assert found.write() == ["Put"]
    found.placement_gone()
    assert found.write() == ["Drop"]
    found.due.add(found.combined.gone(*combined()))
    assert found.write() == []


@pytest.mark.parametrize(
    "source",
    [
        {"group": "lab.example.com", "resource": "goals", "name": "lost"},
        pytest.param({"group": "lab.example.com", "resource": "others", "name": "x"}, id="not listed"),
        pytest.param("nonsense", id="nonsense"),
    ],
)
def test_F1_1_a_leftover_is_deleted_once_the_kind_of_its_source_is_listed(source):
    found = world()
    metadata = {"namespace": "site", "name": "a" * 24 + ".uid-all", "uid": "u", "resourceVersion": "1"}
    raw = {"metadata": metadata, "source": source, "placement": "all", "results": []}
    found.due.add(found.combined.shown(raw))
    assert Key("site", metadata["name"]) in found.settle().combined
    plan = done(found.combined.plan(Key("site", metadata["name"])))
    assert isinstance(plan, Wait) is (source != {"group": "lab.example.com", "resource": "goals", "name": "lost"})


def test_an_object_of_that_name_elsewhere_is_not_the_placements():
    found = world()
    raw = {
        "metadata": {"namespace": "other", "name": combined().name, "uid": "u", "resourceVersion": "1"},
        "source": {"group": "lab.example.com", "resource": "goals"},
    }
    found.due.add(found.combined.shown(raw))
    found.objects[Key("other", combined().name)] = raw
    assert sorted(found.write()) == ["Drop", "Put"]


def test_F1_1_nothing_is_written_before_all_is_listed():
    new = Unlisted()
    new.placement(statusCollectors=["c"])
    new.goal()
    new.replica("r1", {"phase": "Ready"})
    for name in (STATUS_COLLECTORS, COMBINED_STATUSES, *Input, GOALS):
        assert new.write() == []
        assert isinstance(done(new.combined.plan(combined())), Wait)
        if name == STATUS_COLLECTORS:
            new.collector(select=[NAME])
        new.listed(name)
    assert new.write() == ["Put"]
    assert new.rows() == [["r1"]]


class Unlisted(Returns):
    """A controller that has just started."""

    def __init__(self) -> None:
        super().__init__("r1")

    def listed(self, *names: str) -> None:
        if len(names) == 1:
            super().listed(*names)


def test_F1_1_nothing_is_written_before_all_replicas_are_evaluated():
    found = world("r1", "r2")
    for robot in ("r1", "r2"):
        found.replica(robot, {"phase": "Ready"})
    found.write()
    found.collector(select=[PHASE])
    assert done(found.combined.plan(combined())) == Wait("not all replicas are evaluated")
    assert found.write() == ["Put"]
    found.placement(statusCollectors=["d", "c"])
    found.collector("d", select=[NAME])
    assert isinstance(done(found.combined.plan(combined())), Wait)
    assert found.write() == ["Put"]
    assert found.rows(place=1) == [["Ready"], ["Ready"]]


def test_F7_3_results_are_in_the_order_of_the_collectors():
    found = world()
    found.placement(statusCollectors=["b", "c", "a"])
    for name in "abc":
        found.collector(name, select=[column(name, f"'{name}'")])
    found.replica("r1")
    found.write()
    assert [each["collector"] for each in found.objects[combined()]["results"]] == ["b", "c", "a"]


def test_F7_3_the_limit_counts_and_the_rows_before_it_are_told():
    robots = [f"r{number:02}" for number in range(30)]
    found = world(*robots, select=[NAME], limit=3, filter="returned.status.n < 25")
    for number, robot in reversed(list(enumerate(robots))):
        found.replica(robot, {"n": number})
    result = found.result()
    assert found.rows() == [["r00"], ["r01"], ["r02"]]
    assert (result["total"], result["truncated"]) == (25, True)


def test_F7_3_numbers_come_up_as_texts_and_errors_as_lines():
    found = world(
        "r1",
        "r2",
        "r3",
        groupBy=[PHASE],
        combinedFields=[
            {"name": "n", "type": "COUNT"},
            {"name": "avg", "type": "AVG", "subject": "returned.status.battery"},
        ],
    )
    found.replica("r1", {"phase": "a", "battery": 5})
    found.replica("r2", {"phase": "a", "battery": 6})
    found.replica("r3", {"phase": "a"})
    assert found.rows() == [["a", "2", "5.5"]]
    assert found.result()["rowErrors"] == ['r3: Key not found in map : "battery"']


def test_F2_3_a_template_has_a_combined_status_too():
    found = Returns("r1")
    template = {"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {}}}
    found.placement(statusCollectors=["c"], templates=[template], resources=[])
    found.collector(combinedFields=[{"name": "n", "type": "COUNT"}])
    assert found.write() == ["Put"]
    (made,) = found.objects.values()
    assert made["source"] == {"group": "lab.example.com", "resource": "goals", "name": "t"}
    assert made["results"][0]["rows"] == [[{"type": "Number", "value": "0"}]]
    assert done(found.combined.plan(combined())) == Nothing()
