"""What the agent reports as done or refused, on virtual time: once, with its rule, through crashes, and no storm."""

import logging
import math
from random import Random

import pytest

from crsyncer.core.model import Key, Side
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.engine.reporting.recorder import Recorder
from tests.model.simulation.answers import invalid
from tests.model.simulation.disk import Disk, Memory
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import define, restart, rival, scene
from tests.model.simulation.world import World
from tests.system.bed import crd

GOALS = f"goals.{GROUP}"


def events(world: World) -> list[tuple[str, str, str, str, int]]:
    """What `crsyncer events` shows: side, name, action, rule, count."""
    rows = world.order("events")["events"]
    return [(row["side"], row["name"], row["action"], row["rule"], row["count"]) for row in rows]


def stored(world: World) -> list[object]:
    """Every event that was put into the store."""
    return [row[3] for row in world.disk.rows if str(row[2]).startswith("event:")]


def message(world: World, action: str) -> str:
    """The message of the latest event with an action."""
    return [str(row["message"]) for row in world.order("events")["events"] if row["action"] == action][-1]


def test_each_write_to_a_copy_is_one_event_with_its_rule(world: World) -> None:
    assert events(world) == [("robot", "a", "created", "S3.2", 1)]
    world.edit("a", spec={"x": 2})
    world.robot.set("a", spec={"x": 9})
    world.settle()
    world.remove("a")
    assert events(world) == [
        ("robot", "a", "created", "S3.2", 1),
        ("robot", "a", "updated", "S3.2", 1),
        ("robot", "a", "reverted", "S3.5", 1),
        ("robot", "a", "deleted", "S5", 1),
    ]
    row = world.order("events")["events"][-1]
    assert (row["resource"], row["namespace"], row["several"]) == (GOALS, "default", False)
    assert row["message"] == "upstream does not have the object"


def test_statuses_are_no_events_and_put_nothing_into_the_store(world: World) -> None:
    before = stored(world)
    for number in range(20):
        world.report("a", {"n": number})
    assert events(world) == [("robot", "a", "created", "S3.2", 1)]
    assert stored(world) == before


def test_events_are_known_after_kill_9_and_counted_on(world: World) -> None:
    world.edit("a", spec={"x": 2}, seconds=2)
    restart(world, kill=True)
    assert events(world) == [("robot", "a", "created", "S3.2", 1), ("robot", "a", "updated", "S3.2", 1)]
    world.edit("a", spec={"x": 3})
    assert events(world)[-1] == ("robot", "a", "updated", "S3.2", 2)


def test_a_count_is_stored_when_the_agent_stops() -> None:
    with World() as world:

        async def record() -> Memory:
            store = Memory(Disk(), _Immortal(), Random(0))
            recorder = Recorder(store, clock=lambda: 5.0)
            for _ in range(3):
                recorder.record(Fact(Side.ROBOT, GOALS, Key("default", "a"), Action.UPDATED, "S3.2"))
            assert [event.count for event in Recorder(store, clock=lambda: 5.0).events] == [1]
            recorder.save()
            return store

        store = world.clock.run(record())
        assert [event.count for event in Recorder(store, clock=lambda: 5.0).events] == [3]


def test_a_storm_is_one_event_and_few_rows_in_the_store(world: World) -> None:
    with rival(world, world.robot, seconds=1.0, spec={"x": 2}):
        world.pass_time(3600)
    (reverted,) = (event for event in events(world) if event[2] == "reverted")
    assert reverted[4] > 50
    assert [event[:2] for event in events(world) if event[2:4] == ("held", "S3.5")] == [("robot", "a")]
    assert message(world, "held").startswith("Contested: ")
    assert len(stored(world)) <= 20


def test_a_storm_is_few_lines_in_the_log_with_their_fields(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="crsyncer.engine.reporting.recorder")
    with rival(world, world.robot, seconds=1.0, spec={"x": 2}):
        world.pass_time(3600)
    lines = [vars(record) for record in caplog.records if vars(record).get("action") == "reverted"]
    assert 2 <= len(lines) <= 8
    assert {(each["side"], str(each["key"]), each["rule"]) for each in lines} == {("robot", "default/a", "S3.5")}


def test_of_many_objects_ten_are_named(world: World) -> None:
    world.add(*(f"o-{number}" for number in range(200)))
    found = world.order("events")["events"]
    assert len(found) <= 12
    assert (found[-1]["several"], sum(row["count"] for row in found)) == (True, 201)


def test_a_dead_letter_is_an_event_that_quotes_no_content(world: World) -> None:
    limited = {"type": "object", "properties": {"spec": {"properties": {"x": {"type": "integer", "maximum": 10}}}}}
    define(world, "robot", schema=limited)
    world.add("bad", spec={"x": 4711})
    assert events(world)[-1] == ("robot", "bad", "dead letter", "S3.6", 1)
    assert "4711" not in message(world, "dead letter")
    world.order("retry")
    world.settle()
    assert [event[2] for event in events(world)[-2:]] == ["retried", "dead letter"]


def test_what_an_operator_drops_is_an_event(world: World) -> None:
    world.inject("cloud", invalid(), verb="patch", times=math.inf)
    world.report("a", {"n": 1})
    assert events(world)[-1] == ("cloud", "a", "dead letter", "S10", 1)
    world.order("drop", resource="goals", name="a", confirmed=True)
    assert events(world)[-1] == ("cloud", "a", "dropped", "S10", 1)


def test_a_held_kind_its_copies_and_their_release_are_events(world: World) -> None:
    hold = world.order("hold", resource="goals")["id"]
    assert events(world)[-1] == ("robot", "", "held", "S5.5", 1)
    world.remove("a")
    assert events(world)[-1] == ("robot", "a", "held", "S5.5", 1)
    assert message(world, "held").startswith("Manual: ")
    world.order("release", id=hold)
    assert message(world, "released") == "Manual: an operator released 1 object"
    world.settle()
    assert [event[1:3] for event in events(world)[-2:]] == [("", "released"), ("a", "deleted")]


def test_a_kind_that_is_missing_is_an_event_and_so_is_its_return(world: World) -> None:
    world.cloud.drop_kind()
    world.pass_time(60)
    assert ("robot", "", "held", "S5.5", 1) in events(world)
    world.cloud.apply(crd(GROUP))
    world.add("a", seconds=120)
    assert "serves the kind again" in message(world, "released")


def test_what_is_not_synced_is_an_event_of_the_kind() -> None:
    with scene(goals={"filtered": "maybe"}) as world:
        world.begin()
        assert events(world) == [("robot", "", "refused", "S1.3", 1)]
        world.robot.delete_kind()
        world.settle()
        assert events(world)[-1] == ("robot", "", "stopped", "S1.8", 1)


class _Immortal:
    """The owner of a store who is never killed."""

    dead = False

    def step(self) -> None:
        """Nothing comes of it."""

    async def passes(self) -> None:
        """Always."""
