"""A namespace of the robot has another name in the cloud: each side is asked for its own, and keys are upstream's."""

from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.model import Json, Side
from crsyncer.ports import Reply
from tests.model.scenes.maps import mapped, remap
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, changes, full_lists, holds, restart, roles, settle
from tests.model.simulation.world import World


def places_asked(world: World, side: Side) -> set[str]:
    """The namespaces in which a side was asked for goals."""
    return {request.call.path.split("/")[5] for request in world.journal.asked(side, kind="goals")}


def stamped(obj: Json) -> str:
    return str(obj["metadata"]["annotations"]["crsyncer.cloudrobotics.com/upstream-uid"])


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_S1_7_mapped_namespaces_are_synced_both_ways_and_nothing_else_is_asked_for(source: str, filtered: bool) -> None:
    with mapped(source=source, filtered=str(filtered).lower()) as world:
        up, down = roles(world, source)
        labels = {ROBOT_LABEL: ROBOT, "colour": "red"}
        for plane in (up, down):  # where the other side has its objects
            plane.make_namespace("robot-r1")
            other = next(name for name in ("robot-r1", "default") if name != plane.home)
            plane.create("local", namespace=other, spec={"x": 0}, labels=labels)
        world.start()
        first = up.create("a", spec={"x": 1}, labels=labels)
        world.settle()
        made = down.objects()["a"]
        assert (made["spec"], made["metadata"]["labels"]) == ({"x": 1}, labels)
        assert (made["metadata"]["namespace"], stamped(made)) == (down.home, first["metadata"]["uid"])
        down.set_status("a", {"n": 1})
        world.edit("a", spec={"x": 2}, source=source)
        assert (down.objects()["a"]["spec"], up.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        down.delete("a")
        world.settle()
        assert (down.objects()["a"]["spec"], down.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        world.remove("a", source=source)
        assert up.objects() == down.objects() == {}
        for plane in (up, down):
            assert places_asked(world, plane.side) == {plane.home}
            assert [name for place, name in plane.server.storage.of(f"goals.{GROUP}")] == ["local"]
        for body in [write.call.body for write in world.writes if write.call.method in ("POST", "PUT")]:
            assert body["metadata"]["namespace"] == down.home  # an API server refuses another one than the path has


@pytest.mark.parametrize("source", SOURCES)
def test_S1_7_a_missing_namespace_is_made_by_the_name_that_it_has_there(source: str) -> None:
    with mapped(Namespaces(("robot-r1", "theirs"), ("default", "ours")), source=source) as world:
        up, down = roles(world, source)
        place = {Side.CLOUD: "theirs", Side.ROBOT: "ours"}
        up.make_namespace(place[up.side])
        up.create("a", namespace=place[up.side], spec={"x": 1})
        world.begin("b", source=source, spec={"x": 2})
        assert down.objects(namespace=place[down.side])["a"]["spec"] == {"x": 1}
        assert down.objects()["b"]["spec"] == {"x": 2}
        assert [each.call.body["metadata"] for each in world.journal.asked(verb="create", kind="namespaces")] == [
            {"name": place[down.side]}
        ]


@pytest.mark.parametrize("source", SOURCES)
def test_S1_7_names_may_cross_and_pairs_stay_apart(source: str) -> None:
    with mapped(Namespaces(("one", "two"), ("two", "one")), source=source) as world:
        up, down = roles(world, source)
        for plane in (up, down):
            for name in ("one", "two"):
                plane.make_namespace(name)
        for name in ("one", "two"):
            up.create("a", namespace=name, spec={"in": name})
        world.begin()
        assert down.objects(namespace="one")["a"]["spec"] == {"in": "two"}
        assert down.objects(namespace="two")["a"]["spec"] == {"in": "one"}
        world.report("a", {"n": 1}, namespace="one", source=source)
        assert up.objects(namespace="two")["a"]["status"] == {"n": 1}
        world.remove("a", namespace="two", source=source)
        assert (down.objects(namespace="one"), set(down.objects(namespace="two"))) == ({}, {"a"})


@pytest.mark.parametrize("source", SOURCES)
def test_S1_7_cluster_scoped_kinds_have_no_part_in_a_map(source: str) -> None:
    with mapped(source=source, cluster=True) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        world.report("a", {"n": 1}, source=source)
        assert (down.objects()["a"]["spec"], up.objects()["a"]["status"]) == ({"x": 1}, {"n": 1})
        remap(world, EVERYWHERE)
        assert set(down.objects()) == {"a"}
        assert holds(world) == []
        assert len(full_lists(world, str(up.side))) == 1


def test_S1_7_robots_whose_namespaces_have_one_name_share_a_cloud() -> None:
    with mapped(filtered="true") as one:
        names = ("robot-r1", "robot-r2", "robot-r3")
        others = [
            World(settings=AgentSettings(f"robot-{n}", Namespaces((names[n - 1],), ("default",))), beside=one)
            for n in (2, 3)
        ]
        worlds = [one, *others]
        for world, name in zip(worlds, names, strict=True):
            one.cloud.make_namespace(name)
            labels = {ROBOT_LABEL: world.settings.robot}
            one.cloud.create("a", namespace=name, spec={"for": name}, labels=labels)
            world.start()
        settle(*worlds)
        for world, name in zip(worlds, names, strict=True):
            assert world.robot.objects()["a"]["spec"] == {"for": name}
            world.robot.set_status("a", {"by": name})
        settle(*worlds)
        for world, name in zip(worlds, names, strict=True):
            assert one.cloud.objects(namespace=name)["a"]["status"] == {"by": name}
            assert places_asked(world, Side.CLOUD) == {name}
        for world in others:
            world.__exit__(None, None, None)


# --- what is received is checked


def test_S1_7_an_object_of_another_namespace_is_never_applied_whatever_the_server_says() -> None:
    with mapped() as world:
        world.begin("a")
        world.cloud.make_namespace("default")
        for name in ("default", "robot-r2"):
            world.cloud.make_namespace(name)
            world.cloud.create("b", namespace=name, spec={"x": 2})
        whole = world.cloud.objects() | {"b": world.cloud.objects(namespace="default")["b"]}
        answer = {
            "kind": "GoalList",
            "metadata": {"resourceVersion": str(world.cloud.server.storage.revision)},
            "items": [*whole.values(), world.cloud.objects(namespace="robot-r2")["b"]],
        }
        world.inject("cloud", Reply(200, answer), verb="list", part="/goals")
        world.order("resync")
        world.pass_time(60)
        assert set(world.robot.objects()) == {"a"}
        assert changes(world) == ["robot: create a (201)"]


# --- restarts


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_S6_2_with_a_map_a_restart_resumes_and_writes_nothing(source: str, kill: bool) -> None:
    with mapped(source=source) as world:
        up, down = roles(world, source)
        world.begin(*"abcdefg", source=source)
        for name in "abcdefg":
            down.set_status(name, {"n": 1})
        world.settle()
        since, done = world.clock.now, len(changes(world))
        restart(world, kill=kill)
        for side in Side:
            assert full_lists(world, str(side), since) == []
        up.set("a", spec={"x": 2})
        world.report("b", {"n": 2}, source=source)
        assert (down.objects()["a"]["spec"], up.objects()["b"]["status"]) == ({"x": 2}, {"n": 2})
        assert len(changes(world)) == done + 2


@pytest.mark.parametrize("source", SOURCES)
def test_S9_4_with_a_map_a_list_by_digest_finds_what_is_known(source: str) -> None:
    with mapped(source=source) as world:
        up, down = roles(world, source)
        world.begin(*(f"n{number}" for number in range(20)), source=source)
        done = len(changes(world))
        world.order("resync")
        world.settle()
        for plane in (up, down):
            assert [each.call.accept for each in full_lists(world, str(plane.side))][1:] == [
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            ]
        assert len(changes(world)) == done
        world.cut("cloud")
        world.cut("robot", seconds=10)
        up.set("n3", spec={"x": 2})
        up.delete("n4")
        for plane in (up, down):
            plane.compact()
            world.mend(str(plane.side))
        world.settle()
        assert down.objects()["n3"]["spec"] == {"x": 2}
        assert set(down.objects()) == set(up.objects())


# --- deletions and names


def test_S2_3_with_a_map_a_local_object_of_that_name_is_not_touched() -> None:
    with mapped(filtered="true") as world:
        world.robot.create("a", spec={"x": 7})
        world.begin("a", labels={ROBOT_LABEL: ROBOT}, seconds=60)
        (hold,) = world.status()["holds"]
        assert (hold["reason"], hold["names"]) == ("NameTaken", ["robot-r1/a"])
        assert world.robot.objects()["a"]["spec"] == {"x": 7}
        world.robot.delete("a")
        world.pass_time(60)
        assert world.robot.objects()["a"]["spec"] == {"x": 1}
        assert holds(world) == []


# --- what operators are told


@pytest.mark.parametrize("source", SOURCES)
def test_a_kubernetes_event_is_about_the_object_as_the_robot_calls_it(source: str) -> None:
    with mapped(source=source) as world:
        world.settings = replace(world.settings, kubernetes_events=True)
        world.inject("robot", Reply(201, {}), part="/apis/events.k8s.io/", times=99)
        _, down = roles(world, source)
        world.begin("a", source=source)
        down.set("a", spec={"x": 9})
        world.pass_time(10)
        (event,) = [each.call for each in world.journal.requests if "events.k8s.io" in each.call.path]
        assert event.path == "/apis/events.k8s.io/v1/namespaces/default/events"
        regarding = event.body["regarding"]
        assert (regarding["namespace"], regarding["name"]) == ("default", "a")
        assert regarding["uid"] == world.robot.objects()["a"]["metadata"]["uid"]


@pytest.mark.parametrize("source", SOURCES)
def test_explain_calls_a_pair_by_upstreams_key_and_says_what_the_copy_is_called(source: str) -> None:
    with mapped(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        told = world.order("explain", resource="goals", name="a")
        assert (told["namespace"], told["name"], told["state"]) == (up.home, "a", "in-sync")
        assert told["copy"] == {"namespace": down.home, "name": "a"}
        assert told["differences"] == []
        assert told["objects"][str(down.side)]["object"]["metadata"]["namespace"] == down.home
        other = world.order("explain", resource="goals", name=f"{down.home}/a")
        assert (other["state"], other["copy"]) == ("not-synced", None)
        assert other["summary"] == f"the agent syncs namespaced kinds only in {up.home} (--namespace-map)"
        world.inject(
            str(down.side), Reply(422, {"message": "no", "details": {"causes": [{}]}}), verb="update", times=99
        )
        world.edit("a", spec={"x": 2}, source=source, seconds=10)
        assert [each["namespace"] for each in world.order("pending")["pending"]] == [up.home]
