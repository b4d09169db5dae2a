"""C4.3 to C4.5 on virtual time: steps that do not compile, steps that fail, and what is missing."""

import asyncio
import math
from collections.abc import Mapping

import pytest

from crsyncer.adapters.expressions import CelProgram, Expressions, RePattern
from crsyncer.console.compare.cluster_diff import compare
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError
from tests.model.scenes.blocking import block, blocking
from tests.model.scenes.policies import ready, senders
from tests.model.scenes.shapes import at_most, reshape, setting, shaped, unshape
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, copy, holds, original, restart, roles, row, state
from tests.system.bed import crd

BOTH = pytest.mark.parametrize("source", SOURCES)
NEXT: Json = {"path": "/spec/x", "cel": "value + 1"}


class Missing(Expressions):
    """An installation without the extra."""

    def pattern(self, text: str) -> RePattern:
        raise ConfigError(f"{text} needs google-re2", hint="install it")

    def program(self, text: str, variables: Mapping[str, type]) -> CelProgram:
        raise ConfigError(f"{text} over {len(variables)} variables needs cel-expr-python", hint="install it")


@pytest.mark.parametrize(
    "wrong", [{"cel": "self.map(x, x)"}, {"cel": "1 +"}, {"regex": {"pattern": "(", "replacement": ""}}]
)
def test_C4_3_what_does_not_compile_stops_the_kind_and_its_copies_stay(wrong: Json) -> None:
    with shaped(down=[setting("m")]) as world:
        world.begin("a")
        reshape(world, down=[{"path": "/spec/x", **wrong}])
        world.edit("a", spec={"x": 2}, seconds=60)
        assert (copy(world)["spec"], state(world)) == ({"x": 1, "mode": "m"}, "misconfigured")
        status, _, said = ready(world.robot)
        assert (status, "spec.mutations.down[0]." in said) == ("False", True)
        reshape(world, down=[setting("n")])
        world.settle()
        assert (copy(world)["spec"], state(world)) == ({"x": 2, "mode": "n"}, "syncing")


@pytest.mark.parametrize("verb", [{"cel": "1"}, {"regex": {"pattern": "a", "replacement": "b"}}])
def test_C4_5_without_the_extra_only_kinds_whose_policy_needs_it_stop(verb: Json) -> None:
    with shaped(down=[setting("m")]) as world:
        world.settings = AgentSettings(expressions=Missing)
        world.begin("a")
        assert copy(world)["spec"] == {"x": 1, "mode": "m"}
        reshape(world, down=[{"path": "/spec/x", **verb}])
        world.pass_time(5)
        assert state(world) == "misconfigured"
        assert "install" in row(world)["message"]


@BOTH
def test_C4_4_an_object_on_which_a_step_fails_is_held_and_its_copy_stays(source: str) -> None:
    with shaped(source=source, down=[NEXT]) as world:
        up, down = roles(world, source)
        world.begin("a", "b", source=source)
        up.set("a", spec={"x": "text"})
        world.add("c", source=source, spec={})
        world.report("a", {"n": 1}, source=source)
        assert holds(world) == [("MutationFailed", 2)]
        assert (world.status()["health"], set(down.objects())) == ("attention", {"a", "b"})
        assert "spec.mutations.down[0], /spec/x: " in world.status()["holds"][0]["message"]
        assert (down.objects()["a"]["spec"], up.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        up.set("b", spec={"x": 5})
        down.set("a", spec={"x": 9})
        world.settle()
        assert (down.objects()["b"]["spec"], down.objects()["a"]["spec"]) == ({"x": 6}, {"x": 9})
        for kill in (False, True):
            restart(world, kill=kill)
            assert holds(world) == [("MutationFailed", 2)]
        up.set("a", spec={"x": 3})
        world.remove("c", source=source)
        assert (down.objects()["a"]["spec"], holds(world), set(down.objects())) == ({"x": 4}, [], {"a", "b"})
        assert world.status()["health"] == "healthy"


@pytest.mark.parametrize("kill", [False, True])
def test_C4_4_the_hold_ends_with_the_step_that_failed(kill: bool) -> None:
    with shaped(down=[NEXT]) as world:
        world.begin("a", spec={"x": "text"})
        assert (holds(world), world.robot.objects()) == ([("MutationFailed", 1)], {})
        with world.down(kill, kill=True):
            reshape(world, down=[setting("m")])
        world.settle()
        assert (holds(world), copy(world)["spec"]) == ([], {"x": "text", "mode": "m"})
        reshape(world, down=[NEXT])
        world.settle()
        assert (holds(world), copy(world)["spec"]) == ([("MutationFailed", 1)], {"x": "text", "mode": "m"})
        unshape(world)
        world.settle()
        assert (holds(world), copy(world)["spec"]) == ([], {"x": "text"})


@pytest.mark.parametrize("answer", ["refused", "none"])
def test_C4_4_the_hold_ends_with_the_step_that_failed_although_the_next_write_fails(answer: str) -> None:
    with shaped(down=[NEXT]) as world:
        world.robot.apply(crd(GROUP, schema=at_most(10)))
        world.begin("a")
        world.edit("a", spec={"x": "text"})
        assert holds(world) == [("MutationFailed", 1)]
        if answer == "none":
            world.inject("robot", INTERNAL_ERROR, verb="update", part="/goals/", times=math.inf)
        reshape(world, down=[setting(11, "/spec/x")])
        world.pass_time(30)
        assert (holds(world), copy(world)["spec"]) == ([], {"x": 2})


@BOTH
def test_C4_4_a_copy_is_not_replaced_by_one_that_cannot_be_made_and_is_deleted_with_its_object(source: str) -> None:
    with shaped(source=source, down=[NEXT]) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        uid = down.objects()["a"]["metadata"]["uid"]
        up.delete("a")
        world.add("a", source=source, spec={"x": "text"})
        assert (down.objects()["a"]["metadata"]["uid"], holds(world)) == (uid, [("MutationFailed", 1)])
        world.remove("a", source=source)
        assert (down.objects(), holds(world)) == ({}, [])


def test_C4_4_a_copy_goes_with_its_object_although_its_successor_is_being_deleted() -> None:
    with shaped(down=[NEXT]) as world:
        world.begin("a")
        with world.down():
            world.cloud.delete("a")
            world.cloud.create("a", spec={"x": "text"}, finalizers=["example.com/wait"])
            world.cloud.delete("a")
        world.settle()
        assert (world.robot.objects(), holds(world)) == ({}, [])


def test_C4_4_a_status_on_which_a_step_fails_is_held_and_content_goes_on() -> None:
    with shaped(up=[{"path": "/status/n", "cel": "value + 1"}]) as world:
        world.begin("a")
        world.report("a", {"n": 1})
        world.robot.set_status("a", {"n": "text"})
        world.edit("a", spec={"x": 2})
        assert (original(world)["status"], copy(world)["spec"]) == ({"n": 2}, {"x": 2})
        assert (holds(world), world.status()["outbox"]["depth"]) == ([("MutationFailed", 1)], 1)
        assert "spec.mutations.up[0], /status/n: " in world.status()["holds"][0]["message"]
        restart(world, kill=True)
        assert holds(world) == [("MutationFailed", 1)]
        world.report("a", {"n": 5})
        assert (original(world)["status"], holds(world)) == ({"n": 6}, [])


@pytest.mark.parametrize("offline", [False, True])
def test_C4_1_S4_1_a_status_on_which_a_step_fails_outlives_its_copy_and_is_sent_once_the_step_is_mended(
    offline: bool,
) -> None:
    with shaped(up=[{"path": "/status/said", "cel": "value + 1"}]) as world:
        world.begin("a")
        if offline:
            world.cut("cloud", seconds=5)
        world.report("a", {"said": "DONE"}, seconds=5)
        assert holds(world) == [("MutationFailed", 1)]
        world.robot.delete("a")
        world.pass_time(5)
        restart(world, kill=True, seconds=5)
        reshape(world, up=[{"path": "/status/said", "cel": "value + '!'"}])
        world.heal("cloud")
        assert (original(world)["status"], holds(world)) == ({"said": "DONE!"}, [])
        assert world.status()["outbox"]["depth"] == 0


def test_C4_4_a_status_on_which_a_step_fails_goes_with_the_object_that_would_take_it_or_is_dropped() -> None:
    with shaped(up=[{"path": "/status/said", "cel": "value + 1"}]) as world:
        world.begin("a", "b")
        for name in ("a", "b"):
            world.report(name, {"said": "text"})
        world.remove("a")
        assert (holds(world), world.status()["outbox"]["depth"]) == ([("MutationFailed", 1)], 1)
        world.order("drop", resource="goals", name="b", confirmed=True)
        for _ in range(2):
            world.settle()
            assert (holds(world), world.status()["outbox"]["depth"]) == ([("MutationFailed", 1)], 0)
            restart(world)


def test_C4_4_C6_3_an_object_waits_for_a_status_on_which_a_step_fails() -> None:
    with blocking(grace="10m") as world:
        block(world, grace="10m", mutations={"up": [{"path": "/status/said", "cel": "value + 1"}]})
        world.begin("a")
        world.report("a", {"said": "text"})
        world.remove("a", seconds=60)
        assert (world.robot.objects(), set(world.cloud.objects())) == ({}, {"a"})
        block(world, grace="10m")
        taken = []
        world.witnesses.append(lambda write: taken.append(write.after) if write.verb == "status" else None)
        world.settle()
        assert world.cloud.objects() == {}
        assert [each["status"] for each in taken if each is not None and "spec" in each] == [{"said": "text"}]


def test_C4_4_explain_names_the_step_that_fails() -> None:
    with shaped(down=[NEXT]) as world:
        world.begin("a")
        agreed = world.order("explain", resource="goals", name="a")
        assert (agreed["state"], agreed["differences"]) == ("in-sync", [])
        world.edit("a", spec={})
        found = world.order("explain", resource="goals", name="a")
        assert found["state"] == "held"
        assert any(step["rule"] == "C4.4" and "/spec/x" in step["text"] for step in found["steps"])


def test_C4_4_diff_compares_all_objects_but_those_on_which_a_step_fails() -> None:
    with shaped(down=[NEXT]) as world:
        world.begin("a", "b")
        policy = next(iter(world.life.engine.kinds.entries.values())).policy if world.life else None
        assert policy is not None
        agreed = asyncio.run(compare(policy, senders(world)))
        assert (agreed["differences"], agreed["error"]) == ([], None)
        world.stop()
        world.cloud.set("a", spec={})
        world.cloud.set("b", spec={"x": 5})
        found = asyncio.run(compare(policy, senders(world)))
        assert [each["cloud"]["spec"] for each in found["differences"]] == [{"x": 6}]
        assert "default/a cannot be compared: spec.mutations.down[0], /spec/x" in found["error"]
