"""S3.6 on virtual time: what a schema refuses is kept, shown, and tried again when something has changed (also S10)."""

import pytest

from tests.model.scenes.shapes import at_most
from tests.model.simulation.journal import Request
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, restart, roles, scene
from tests.model.simulation.world import World
from tests.system.bed import LABEL, ROBOT, crd

BOTH = pytest.mark.parametrize("source", SOURCES)
HOUR = 3600.0


def dead(world: World) -> tuple[int, list[str]]:
    """How many dead letters there are, and what else is the matter."""
    status = world.status()
    return status["outbox"]["deadLetters"], [reason["code"] for reason in status["reasons"]]


def tries(world: World, verb: str, since: float = 0.0) -> list[Request]:
    """The requests of a verb that were refused."""
    return [r for r in world.journal.asked(verb=verb, kind="goals", since=since) if r.status == 422]


@BOTH
def test_S3_6_a_refused_copy_is_a_dead_letter_and_delays_nobody(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        down.apply(crd(GROUP, source=source, schema=at_most(10)))
        world.start()
        up.create("bad", spec={"x": 11})
        world.add("good", source=source, seconds=2)
        assert (set(down.objects()), dead(world)) == ({"good"}, (1, ["DeadLetters"]))
        assert world.status()["health"] == "attention"
        world.edit("bad", spec={"x": 10}, source=source)
        assert (down.objects()["bad"]["spec"], dead(world)) == ({"x": 10}, (0, []))
        # A refused update leaves the copy, and its status, as they were.
        world.edit("bad", spec={"x": 12}, source=source)
        world.report("bad", {"n": 1}, source=source)
        assert (up.objects()["bad"]["status"], down.objects()["bad"]["spec"]) == ({"n": 1}, {"x": 10})
        assert dead(world) == (1, ["DeadLetters"])
        world.remove("bad", source=source)
        assert (set(down.objects()), dead(world)) == ({"good"}, (0, []))


def test_S3_6_a_refused_copy_is_asked_for_once_an_hour_and_whenever_it_changes() -> None:
    with scene() as world:
        world.robot.apply(crd(GROUP, schema=at_most(10)))
        world.begin()
        world.add("bad", spec={"x": 11})
        world.cloud.set_status("bad", {"n": 1})  # no change of content
        world.add("good", seconds=HOUR - 10)
        assert len(tries(world, "create")) == 1
        world.pass_time(3 * HOUR)
        assert len(tries(world, "create")) == 4
        begun = world.clock.now
        world.edit("bad", spec={"x": 12}, seconds=60)
        assert len(tries(world, "create", begun)) == 1


@BOTH
def test_S3_6_a_change_of_the_crd_revives_what_its_schema_refused(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        down.apply(crd(GROUP, source=source, schema=at_most(10)))
        world.start()
        up.create("new", spec={"x": 11})
        world.add("old", source=source)
        world.edit("old", spec={"x": 12}, source=source)
        assert dead(world) == (2, ["DeadLetters"])
        down.apply(crd(GROUP, source=source, schema=at_most(20)))
        world.pass_time(600)
        assert {name: o["spec"]["x"] for name, o in down.objects().items()} == {"new": 11, "old": 12}
        assert (dead(world), world.status()["health"]) == ((0, []), "healthy")


def test_S3_6_a_name_that_was_taken_is_not_taken_any_more_once_the_copy_is_refused() -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.robot.apply(crd(GROUP, filtered="true", schema=at_most(10)))
        world.robot.create("a", spec={"x": 1})
        world.begin("a", labels={LABEL: ROBOT}, spec={"x": 11}, seconds=5)
        assert dead(world) == (0, ["NameTaken"])
        world.robot.delete("a")
        world.pass_time(300)
        assert dead(world) == (1, ["DeadLetters"])


def test_S3_6_a_refusal_survives_a_restart_as_a_refusal_and_ends_with_its_object() -> None:
    with scene() as world:
        world.robot.apply(crd(GROUP, schema=at_most(10)))
        world.begin("bad", spec={"x": 11})
        restart(world)
        assert dead(world) == (1, ["DeadLetters"])
        world.remove("bad")
        assert dead(world) == (0, [])


@BOTH
def test_S10_a_status_that_upstreams_schema_refuses_is_a_dead_letter_until_it_changes(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        up.apply(crd(GROUP, source=source, schema=at_most(10)))
        world.begin("a", "b", source=source)
        down.set_status("a", {"n": 11})
        world.report("b", {"n": 1}, source=source, seconds=1800)
        assert (up.objects()["b"]["status"], "status" in up.objects()["a"]) == ({"n": 1}, False)
        assert (dead(world), len(tries(world, "status"))) == ((1, ["DeadLetters"]), 1)
        world.report("a", {"n": 10}, source=source)
        assert (up.objects()["a"]["status"], dead(world)) == ({"n": 10}, (0, []))
        # It is gone, too, when downstream goes back to what upstream has.
        world.report("a", {"n": 11}, source=source)
        assert dead(world) == (1, ["DeadLetters"])
        world.report("a", {"n": 10}, source=source)
        assert (dead(world), world.status()["health"]) == ((0, []), "healthy")


@BOTH
@pytest.mark.parametrize("touched", [True, False], ids=["its object changes too", "the CRD alone"])
def test_S10_a_refused_status_is_tried_again_when_upstreams_schema_changes(source: str, touched: bool) -> None:
    with scene(goals={"source": source}) as world:
        up, _ = roles(world, source)
        up.apply(crd(GROUP, source=source, schema=at_most(10)))
        world.begin("a", source=source)
        world.report("a", {"n": 11}, source=source)
        assert dead(world) == (1, ["DeadLetters"])
        up.apply(crd(GROUP, source=source, schema=at_most(20)))
        if touched:
            up.set("a", spec={"x": 2})
        world.pass_time(600)
        assert (up.objects()["a"]["status"], dead(world)) == ({"n": 11}, (0, []))
