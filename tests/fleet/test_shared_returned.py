"""Shared mode: what robots return is evaluated like the statuses of replicas (F7, F10.3)."""

from crsyncer.adapters.expressions import Expressions
from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.returned.combined_objects import COMBINED_STATUSES, STATUS_COLLECTORS, CombinedObjects, Put
from crsyncer.fleet.domain.returned.evaluations import Evaluations
from crsyncer.fleet.domain.values import PlacedKind, Verdict, Wait
from tests.fleet.made import GOALS, goal, goal_id
from tests.fleet.returns import done
from tests.fleet.shared_made import STATUSES, copied, made, raw_shared, returned

PLURAL, _, GROUP = STATUSES.partition(".")
SERVED = PlacedKind(STATUSES, GROUP, PLURAL, "RobotObjectStatus", "v1", True, verdict=Verdict.NOT_PLACEABLE, shard="b")


def follow(fleet: Fleet) -> Evaluations:
    found = Evaluations(
        fleet, expressions=Expressions, is_acked=lambda *_: False, is_online=lambda robot: robot == "rb"
    )
    found.changed(fleet.kind_shown(SERVED))
    return found


def show(fleet: Fleet, statuses: Evaluations, raw: Json) -> None:
    statuses.changed(fleet.statuses.shown(raw, shard="b", robots_namespace="default"))
    statuses.evaluate_stale(100)


def test_F7_1_a_robot_is_ready_while_ready_when_holds_for_what_it_returns():
    fleet = made()
    statuses = follow(fleet)
    statuses.changed(
        fleet.placement_shown(raw_shared(readyWhen="returned.status.phase == 'Ready' && inventory.online"))
    )
    assert statuses.ready("site/all", "rb") is False
    show(fleet, statuses, returned())
    assert statuses.ready("site/all", "rb") is False  # there is no copy yet
    statuses.changed(fleet.object_shown(copied(fleet), f"b/{GOALS}"))
    assert statuses.is_stale
    statuses.evaluate_stale(100)
    assert [statuses.ready("site/all", robot) for robot in ("rb", "r0")] == [True, False]
    statuses.robot_changed("rb")
    assert statuses.is_stale
    show(fleet, statuses, returned(status={"phase": "Busy"}))
    assert statuses.ready("site/all", "rb") is False
    assert statuses.unread == set()


def test_F7_3_nothing_is_combined_before_the_statuses_of_each_shard_are_listed():
    fleet = made(raw_shared(statusCollectors=["c"]))
    statuses = follow(fleet)
    combined = CombinedObjects(fleet, statuses)
    for name in (STATUS_COLLECTORS, COMBINED_STATUSES):
        combined.listed(name)
    spec = {"select": [{"name": "phase", "def": "returned.status.phase"}]}
    statuses.collector_shown({"metadata": {"name": "c", "uid": "c"}, "spec": spec})
    statuses.changed(fleet.placement_shown(raw_shared(statusCollectors=["c"], expand=False)))
    statuses.changed(fleet.object_shown(goal(), GOALS))
    statuses.changed(fleet.object_shown(copied(fleet), f"b/{GOALS}"))
    place = Key("site", f"{goal_id()}.uid-all")
    assert isinstance(done(combined.plan(place)), Wait)
    fleet.statuses.listed.add("b")
    show(fleet, statuses, returned())
    plan = done(combined.plan(place))
    assert isinstance(plan, Put)
    assert plan.body["results"][0]["rows"] == [[{"type": "String", "value": "Ready"}]]
