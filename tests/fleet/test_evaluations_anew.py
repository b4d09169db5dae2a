"""What was evaluated event by event is what a new leader finds (F7.3)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fleet.made import key
from tests.fleet.returns import COUNT, NAME, Returns, column, combined

NAMES = st.sampled_from(["r1", "r2", "r3"])
GOALS = st.sampled_from(["dock", "lift"])
WORDS = st.sampled_from(["a", "b"])
EXPRESSIONS = st.sampled_from(
    [
        "true", "returned.status.w == 'a'", "inventory.labels.k == returned.status.w", "inventory.online",
        "obj.spec.x == 1 || returned.status.w == 'b'", "propagation.acked", "nobody", "returned.status.w == obj.x",
    ]
)  # fmt: skip
PLACEMENT = st.fixed_dictionaries(
    {"robotSelectors": st.sampled_from([[{}], [{"matchLabels": {"k": "a"}}]])},
    optional={
        "readyWhen": EXPRESSIONS,
        "statusCollectors": st.lists(st.sampled_from(["c", "d"]), max_size=2, unique=True),
    },
)
COLLECTOR = st.builds(
    lambda filter_, combines: (
        {"filter": filter_, **({"combinedFields": [COUNT]} if combines else {"select": [NAME, column("x", filter_)]})}
    ),
    EXPRESSIONS,
    st.booleans(),
)
EVENTS = st.one_of(
    st.tuples(st.just("robot"), NAMES, WORDS),
    st.tuples(st.just("gone"), NAMES, st.none()),
    st.tuples(st.just("report"), NAMES, st.booleans()),
    st.tuples(st.just("ack"), NAMES, st.booleans()),
    st.tuples(st.just("goal"), GOALS, st.integers(1, 2)),
    st.tuples(st.just("goal_gone"), GOALS, st.none()),
    st.tuples(st.just("placement"), st.sampled_from(["all", "other"]), PLACEMENT),
    st.tuples(st.just("placement_gone"), st.sampled_from(["all", "other"]), st.none()),
    st.tuples(st.just("collector"), st.sampled_from(["c", "d"]), COLLECTOR),
    st.tuples(st.just("status"), NAMES, st.tuples(GOALS, WORDS)),
    st.tuples(st.just("lost"), NAMES, GOALS),
    st.tuples(st.just("work"), st.integers(1, 3), st.none()),
    st.tuples(st.just("write"), st.none(), st.none()),
)


def happen(found: Returns, event: Any) -> None:
    match event:
        case ("robot", name, label):
            found.robot(name, k=label)
        case ("gone", name, _):
            found.robot_gone(name)
        case ("report", name, online):
            found.report(name, online=online)
        case ("ack", name, acked):
            found.ack(name, acked=acked)
        case ("goal", name, x):
            found.goal(name, spec={"x": x})
        case ("goal_gone", name, _):
            found.goal_gone(name)
        case ("placement", name, spec):
            found.placement(name, **spec)
        case ("placement_gone", name, _):
            found.placement_gone(name)
        case ("collector", name, spec):
            found.collector(name, **spec)
        case ("status", robot, (name, word)):
            if found.fleet.wanted(key(robot, name=name)) is not None:
                found.replica(robot, {"w": word}, name=name)
        case ("lost", robot, name):
            if key(robot, name=name) in found.raws:
                found.replica_gone(key(robot, name=name))
        case ("work", most, _):
            found.due.add(found.evaluations.evaluate_stale(most))
        case _:
            found.write()


def successor(found: Returns) -> Returns:
    """What a new leader finds."""
    new = Returns()
    new.acked, new.online, new.objects = found.acked, found.online, found.objects
    for name, robot in found.fleet.index.robots.items():
        new.robot(name, **robot.labels)
    for name, spec in found.placements.items():
        new.placement(name, **spec)
    for source in found.fleet.index.sources.values():
        new.goal(source.key.name, spec=source.body["spec"])
    for name, spec in found.collectors.items():
        new.collector(name, **spec)
    for place, raw in found.raws.items():
        new.show(place, raw)
    for raw in found.objects.values():
        new.due.add(new.combined.shown(raw))
    return new


@settings(max_examples=150)
@given(st.lists(EVENTS, max_size=25))
def test_F7_3_event_by_event_is_what_a_new_leader_finds_and_it_writes_nothing(events):
    found = Returns()
    found.placement(statusCollectors=["c"])
    for event in events:
        happen(found, event)
    found.write()
    new = successor(found)
    assert new.write() == []
    for text in found.fleet.index.placements:
        assert found.evaluations.problem(text) == new.evaluations.problem(text)
        assert found.evaluations.collected(text) == new.evaluations.collected(text)
        for robot in found.fleet.index.robots:
            assert found.evaluations.ready(text, robot) == new.evaluations.ready(text, robot)
    wanted = {
        combined(source.name, placement=placement.name)
        for text, placement in found.fleet.index.placements.items()
        for source in found.fleet.index.sources_of(text)
        if placement.collectors
    }
    assert found.objects.keys() == wanted
