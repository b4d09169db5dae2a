"""S1.5 to S1.7 on virtual time: which version is spoken, kinds that are missing or forbidden, scopes and namespaces."""

import math
from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.kinds.namespaces import same_names
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.backoff import UNSERVED
from crsyncer.errors import SyncError
from crsyncer.ports import Reply
from tests.model.simulation.answers import FORBIDDEN, NO_LISTS, NOT_SERVED
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import (
    SOURCES,
    confine,
    copy,
    define,
    holds,
    original,
    release,
    restart,
    roles,
    row,
    scene,
    state,
)
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World
from tests.system.bed import crd

HOUR = 3600.0


def versions(world: World, since: float = 0.0) -> set[str]:
    """The versions in which goals were asked for."""
    return {request.call.path.split("/")[3] for request in world.journal.asked(kind="goals", since=since)}


def no_discovery(world: World, reply: Reply) -> None:
    """The cloud does not tell which versions and resources it has."""
    paths = {f"/apis/{GROUP}", *(f"/apis/{GROUP}/v{number}" for number in (1, 2))}
    world.weather[Side.CLOUD].add(Rule(lambda call: call.path in paths, reply, math.inf))


def both_ways(world: World, *, name: str = "a") -> None:
    """A spec goes down, its status comes up."""
    world.add(name)
    world.report(name, {"done": True})
    assert (copy(world, name)["spec"], original(world, name)["status"]) == ({"x": 1}, {"done": True})


def test_S1_5_the_robots_storage_version_is_spoken_and_no_other_where_the_cloud_serves_it() -> None:
    with scene(goals={"versions": ("v1", "v2"), "storage": "v1"}) as world:
        world.cloud.apply(crd(GROUP, versions=("v1", "v2"), storage="v2"))
        world.start()
        both_ways(world)
        restart(world)
        world.pass_time(HOUR)
        assert (row(world)["version"], versions(world)) == ("v1", {"v1"})


@pytest.mark.parametrize(
    ("cloud", "spoken"),
    [
        (("v1alpha9", "v1beta2", "v1beta10", "v11alpha1"), "v1beta10"),
        (("v1alpha9", "v11alpha1"), "v11alpha1"),
        (("v1alpha9", "v1beta2", "v3"), "v3"),
    ],
)
def test_S1_5_else_the_newest_version_that_both_serve_by_priority(cloud: tuple[str, ...], spoken: str) -> None:
    kind = {"versions": ("v1alpha9", "v1beta2", "v1beta10", "v11alpha1", "v2", "v3"), "storage": "v2"}
    with scene(goals=kind) as world:
        world.cloud.apply(crd(GROUP, versions=cloud))
        world.start()
        both_ways(world)
        assert (row(world)["version"], state(world)) == (spoken, "syncing")


def test_S1_5_no_common_version_names_both_lists_until_there_is_one() -> None:
    with scene(goals={"versions": ("v1", "v1beta1"), "storage": "v1"}, tasks={}) as world:
        world.cloud.apply(crd(GROUP, versions=("v2", "v3")))
        world.robot.create("local", spec={"x": 0})
        world.begin("t", kind="tasks", seconds=HOUR)
        assert state(world) == "version-mismatch"
        message = row(world)["message"]
        assert all(version in message for version in ("v1", "v1beta1", "v2", "v3")), message
        assert world.journal.asked(verb="write", kind="goals") == []
        assert (set(world.robot.objects()), set(world.robot.objects("tasks"))) == ({"local"}, {"t"})
        world.cloud.apply(crd(GROUP, versions=("v2", "v3", "v1beta1"), storage="v3"))
        world.add("a", seconds=90)
        assert (row(world)["version"], copy(world)["spec"]) == ("v1beta1", {"x": 1})


@pytest.mark.parametrize("reply", [FORBIDDEN, NOT_SERVED, *NO_LISTS], ids=["403", "404", "html", "no list"])
def test_S1_5_where_discovery_is_refused_the_storage_version_is_tried(reply: Reply) -> None:
    with scene(goals={"versions": ("v1", "v2"), "storage": "v1"}) as world:
        no_discovery(world, reply)
        world.start()
        both_ways(world)
        assert versions(world) == {"v1"}


@pytest.mark.parametrize("answer", NO_LISTS)
@pytest.mark.parametrize("part", [f"/apis/{GROUP}", f"/apis/{GROUP}/v1"])
def test_S1_5_S5_5a_an_answer_that_is_no_discovery_shows_no_version_and_holds_nothing(answer: Reply, part: str) -> None:
    with scene(goals={"versions": ("v1", "v2"), "storage": "v2"}) as world:
        world.cloud.apply(crd(GROUP))
        world.weather[Side.CLOUD].add(Rule(lambda call: call.path == part, answer, 1))
        world.start()
        both_ways(world)
        assert (row(world)["version"], state(world)) == ("v1", "syncing")
        assert [event for event in world.order("events")["events"] if event["action"] == "held"] == []


def test_S1_5_a_version_that_the_cloud_stops_serving_is_left_for_one_that_it_serves_and_costs_no_copy() -> None:
    with scene(goals={"versions": ("v1", "v2"), "storage": "v1"}) as world:
        world.cloud.apply(crd(GROUP, versions=("v1",)))
        world.start()
        both_ways(world)
        world.cloud.apply(crd(GROUP, versions=("v2",)))
        world.cloud.restart()
        world.pass_time(120)
        assert (row(world)["version"], state(world)) == ("v2", "syncing")
        both_ways(world, name="b")
        assert world.journal.asked(verb="delete") == []


def test_S1_5_S5_5a_versions_that_change_while_the_cloud_is_asked_for_them_are_asked_for_again_before_a_release() -> (
    None
):
    with scene() as world:

        def edit(_: Side, call: Call, __: Reply) -> None:
            if call.path == f"/apis/{GROUP}":
                world.listeners.remove(edit)
                world.cloud.apply(crd(GROUP, versions=("v2",)))

        world.begin("a")
        world.listeners.append(edit)
        define(world, "robot", versions=("v1", "v3"), storage="v1", seconds=1)
        assert holds(world) == [("KindMissing", 1)]
        with pytest.raises(SyncError, match="cannot be released before"):
            release(world)
        world.pass_time(10)
        assert (set(world.robot.objects()), state(world)) == ({"a"}, "version-mismatch")


def test_S1_5_a_version_that_the_cloud_stops_serving_is_not_called_a_removed_crd_nor_is_a_release_advised() -> None:
    with scene() as world:
        world.begin("a", "b")
        define(world, "cloud", versions=("v2",), seconds=20)
        status = world.status()
        assert [(reason["code"], reason["hint"]) for reason in status["reasons"]] == [
            ("VersionMismatch", "serve one version of the CRD on both sides")
        ]
        assert (status["health"], state(world)) == ("attention", "version-mismatch")
        assert set(world.robot.objects()) == {"a", "b"}
        define(world, "cloud", versions=("v1", "v2"), storage="v2")
        assert (world.status()["reasons"], set(world.robot.objects())) == ([], {"a", "b"})


def test_S1_5_a_status_subresource_that_comes_or_goes_in_the_cloud_alone_is_noticed() -> None:
    with World() as world:
        world.cloud.apply(crd(GROUP, status=False))
        world.start()
        both_ways(world)
        for number, there in enumerate((True, False), start=2):
            world.cloud.apply(crd(GROUP, status=there))
            # Sent where it went before, it would be dropped in silence, or refused for good.
            world.report("a", {"n": number}, seconds=90)
            assert (original(world)["status"], original(world)["spec"]) == ({"n": number}, {"x": 1})
            assert world.status()["health"] == "healthy"


def test_S1_5_a_new_version_in_the_robots_crd_is_spoken_from_then_on() -> None:
    with scene() as world:
        world.cloud.apply(crd(GROUP, versions=("v1", "v2"), storage="v1"))
        world.start()
        both_ways(world)
        define(world, "robot", versions=("v1", "v2"), storage="v2", seconds=5)
        begun = world.clock.now
        both_ways(world, name="b")
        assert (row(world)["version"], versions(world, begun)) == ("v2", {"v2"})


def test_S1_6_a_kind_that_the_cloud_does_not_serve_waits_without_harm_and_starts_when_it_comes() -> None:
    with scene(goals={}, tasks={}) as world:
        world.cloud.drop_kind()
        world.robot.create("by-hand", spec={"x": 0})
        world.begin("t", kind="tasks", seconds=HOUR)
        assert (state(world), world.status()["health"]) == ("kind-missing", "degraded")
        assert (set(world.robot.objects()), set(world.robot.objects("tasks"))) == ({"by-hand"}, {"t"})
        assert world.journal.asked(verb="write", kind="goals") == []
        lists = world.journal.asked("cloud", verb="list", kind="goals")
        assert 100 < len(lists) < 300, "asked again with growing pauses"
        assert len(world.journal.asked("cloud", verb="list", kind="tasks")) == 1
        world.cloud.apply(crd(GROUP))
        world.add("a", seconds=90)
        assert (state(world), copy(world)["spec"]) == ("syncing", {"x": 1})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rights", ["everything", "no discovery"])
@pytest.mark.parametrize("alone", [True, False])
def test_S1_6_a_kind_that_is_served_again_waits_for_one_back_off_at_most(source: str, rights: str, alone: bool) -> None:
    for seed in range(2):
        with scene(seed, goals={"source": source}, **({} if alone else {"tasks": {"source": source}})) as world:
            up, down = roles(world, source)
            confine(world, rights)
            world.start()
            for kind in ("goals",) if alone else ("goals", "tasks"):
                up.create("a", kind=kind, spec={"x": 1})
            world.settle()
            world.cloud.drop_kind()
            world.pass_time(300)
            assert state(world) == "kind-missing"
            world.cloud.apply(crd(GROUP, source=source))
            world.add("b", source=source, spec={"x": 2}, seconds=UNSERVED.last + 5.0)
            assert (state(world) == "kind-missing", set(down.objects())) == (False, {"a", "b"}), seed


@pytest.mark.fault_36
@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize(("reply", "called"), [(NOT_SERVED, "kind-missing"), (FORBIDDEN, "forbidden")])
@pytest.mark.parametrize("running", [True, False])
def test_S1_6_a_kind_that_is_missing_or_forbidden_says_so_deletes_nothing_and_leaves_others_alone(
    side: Side, reply: Reply, called: str, running: bool
) -> None:
    with scene(goals={}, tasks={}) as world:
        world.start()
        both_ways(world)
        world.inject(side, reply, part="/goals", times=math.inf)
        if running:
            world.weather[side].ends = 1
            world.planes[side].create("other", spec={"x": 1})  # the watch ends
            world.pass_time(60)
        else:
            restart_unsettled(world)
        assert state(world) == called
        assert (str(side) if called == "kind-missing" else called) in row(world)["message"]
        assert [(event["side"], event["rule"]) for event in refusals(world)] == [(side, "S1.6")], "once, however often"
        world.add("t", kind="tasks", seconds=HOUR)
        assert (set(world.robot.objects("tasks")), state(world, "tasks")) == ({"t"}, "syncing")
        assert copy(world)["spec"] == {"x": 1}
        assert world.journal.asked(verb="delete") == []
        if called == "forbidden":
            assert world.status()["health"] == "attention"
        world.weather[side].rules.clear()
        world.edit("a", spec={"x": 2}, seconds=90)
        assert (state(world), copy(world)["spec"]) == ("syncing", {"x": 2})


def refusals(world: World) -> list[dict[str, Any]]:
    """The events that say why a kind is not synced."""
    return [event for event in world.order("events")["events"] if event["action"] == "refused" and not event["name"]]


def restart_unsettled(world: World) -> None:
    """The agent is stopped and started, where a kind will not come to rest."""
    restart(world, seconds=60)


def test_S1_6_a_404_about_an_object_does_not_mean_that_the_kind_is_missing() -> None:
    body = {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'clusters "lab" not found'}
    with scene() as world:
        world.inject("cloud", Reply(404, body), part="/goals", times=math.inf)
        world.start()
        states = set()
        for _ in range(60):
            world.pass_time(1)
            states.add(state(world))
        assert not states & {"kind-missing", "syncing"}
        world.weather[Side.CLOUD].rules.clear()
        world.pass_time(90)
        assert state(world) == "syncing"


@pytest.mark.parametrize("source", SOURCES)
def test_S1_7_all_namespaces_are_synced_and_one_missing_downstream_is_made_and_never_deleted(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        up.make_namespace("made")
        up.create("a", namespace="default", spec={"in": "default"})
        world.begin("a", source=source, namespace="made", spec={"in": "made"})
        for place in ("default", "made"):
            assert down.objects(namespace=place)["a"]["spec"] == {"in": place}
        assert len(world.journal.asked(verb="create", kind="namespaces")) == 1
        world.remove("a", namespace="made", source=source, seconds=HOUR)
        assert down.objects(namespace="made") == {}
        assert ("", "made") in down.server.storage.of("namespaces")
        assert world.journal.asked(verb="delete", kind="namespaces") == []


def test_S1_7_namespaces_can_be_restricted_and_nothing_is_asked_of_others() -> None:
    with World(settings=AgentSettings(namespaces=same_names(("one", "two")))) as world:
        for place in ("one", "two", "other"):
            world.cloud.make_namespace(place)
            world.cloud.create("a", namespace=place, spec={"in": place})
        world.robot.make_namespace("other")
        world.robot.create("local", namespace="other", spec={"x": 0})
        world.begin()
        world.cloud.create("b", namespace="other", spec={"x": 1})
        world.add("b", namespace="two")
        restart(world)
        assert set(world.robot.objects(namespace="one")) == {"a"}
        assert set(world.robot.objects(namespace="two")) == {"a", "b"}
        assert set(world.robot.objects(namespace="other")) == {"local"}
        paths = {request.call.path.split("/")[5] for request in world.journal.asked(kind="goals")}
        assert paths == {"one", "two"}
        assert row(world)["objects"] == {"cloud": 3, "robot": 3}


@pytest.mark.parametrize("source", SOURCES)
def test_S1_7_cluster_scoped_kinds_are_synced_also_where_namespaces_are_restricted(source: str) -> None:
    kind: dict[str, Any] = {"cluster": True, "source": source, "filtered": "true"}
    with World(kinds={"goals": kind}, settings=AgentSettings(namespaces=same_names(("one",)))) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, labels={ROBOT_LABEL: ROBOT})
        world.report("a", {"done": True}, source=source)
        assert (down.objects()["a"]["spec"], up.objects()["a"]["status"]) == ({"x": 1}, {"done": True})
        assert row(world)["scope"] == "Cluster"
        world.remove("a", source=source)
        assert down.objects() == {}


@pytest.mark.parametrize("cluster", [False, True])
@pytest.mark.parametrize("late", [False, True], ids=["at once", "discovery comes late"])
def test_S1_7_a_scope_that_differs_is_misconfigured_and_touches_nothing(cluster: bool, late: bool) -> None:
    with World(kinds={"goals": {"cluster": cluster}, "tasks": {}}) as world:
        world.cloud.drop_kind()
        world.cloud.apply(crd(GROUP, cluster=not cluster))
        world.robot.create("local", spec={"x": 0})
        world.cloud.create("a", spec={"x": 1})
        world.cloud.create("t", kind="tasks", spec={"x": 1})
        if late:
            no_discovery(world, Reply(503, {}))
        world.begin(seconds=120)
        world.weather[Side.CLOUD].rules.clear()
        world.pass_time(HOUR)
        assert state(world) == "misconfigured"
        message = row(world)["message"]
        assert ("Namespaced" in message, "Cluster" in message) == (True, True)
        explained = world.order("explain", resource=f"goals.{GROUP}", name="a")
        assert [refusals(world)[-1]["rule"], *(step["rule"] for step in explained["steps"])] == ["S1.7", "S1.7"]
        assert (set(world.robot.objects()), set(world.robot.objects("tasks"))) == ({"local"}, {"t"})
        writes = [r for r in world.journal.asked(verb="write", kind="goals") if (r.status or 0) < 300]
        assert writes == []


@pytest.mark.parametrize("how", ["watched", "agent down", "cloud cut"])
def test_S1_7_a_crd_that_comes_back_to_the_robot_in_another_scope_makes_no_copy_in_it(how: str) -> None:
    with World() as world:
        world.begin("a")
        if how == "cloud cut":
            world.cut("cloud", seconds=60)
        with world.down(how == "agent down", kill=True):
            world.robot.drop_kind()
            if how == "watched":
                world.pass_time(5)
            world.robot.apply(crd(GROUP, cluster=True))
        world.pass_time(60)
        assert state(world) == ("waiting" if how == "cloud cut" else "misconfigured")
        world.mend("cloud")
        world.pass_time(120)
        assert (state(world), world.robot.objects(), holds(world)) == ("misconfigured", {}, [])
        world.robot.drop_kind()
        world.robot.apply(crd(GROUP))
        world.pass_time(120)
        assert (state(world), holds(world), copy(world)["spec"]) == ("syncing", [], {"x": 1})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("stopped", [False, True], ids=["watched", "agent down"])
def test_S6_2_what_is_stored_of_a_kind_in_another_scope_is_nothing_of_it(source: str, stopped: bool) -> None:
    with World(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        with world.down(stopped, kill=True):
            for plane in (world.robot, world.cloud):
                plane.drop_kind()
            world.cloud.apply(crd(GROUP, cluster=True))
            world.robot.apply(crd(GROUP, cluster=True, source=source))
        up.create("b", spec={"x": 2})
        world.pass_time(300)
        assert (state(world), holds(world)) == ("syncing", [])
        assert {name: each["spec"] for name, each in down.objects().items()} == {"b": {"x": 2}}
