"""C9 on virtual time: the cloud is a workspace of kcp, and kcp moves it, makes it anew or is away."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crsyncer.ports import Reply
from tests.model.scenes.named import named
from tests.model.simulation.answers import FORBIDDEN, NOT_SERVED, UNAVAILABLE
from tests.model.simulation.scene import copy, full_lists, holds, restart, scene, travels
from tests.model.simulation.world import World

DEFAULT = "/namespaces/default"
ABSENT = Reply(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'namespaces "default" not found'})


@contextmanager
def workspace() -> Iterator[World]:
    """As `synced`, and the cloud is the logical cluster 2hnrv0u1m7d8h2ar."""
    with scene() as world:
        world.cloud.become_workspace("2hnrv0u1m7d8h2ar")
        world.begin("a")
        yield world


def identity(world: World) -> str:
    """By what the cloud is known."""
    return str(world.status()["sides"]["cloud"]["identity"])


def connection(world: World) -> str:
    """The state of the cloud."""
    return str(world.status()["sides"]["cloud"]["state"])


def asked_for_default(world: World) -> int:
    """How often the cloud was asked for its namespace `default`."""
    return sum(r.call.path.endswith(DEFAULT) for r in world.journal.asked("cloud", verb="get"))


def uids(world: World) -> dict[str, str]:
    """The uids of the robot's objects."""
    return {name: found["metadata"]["uid"] for name, found in world.robot.objects().items()}


# The identity (C9.1)


def test_C9_1_the_identity_is_the_logical_cluster_and_costs_one_request_a_connection() -> None:
    with workspace() as world:
        assert identity(world) == "kcp:2hnrv0u1m7d8h2ar"
        since = world.clock.now
        restart(world)
        assert (identity(world), full_lists(world, "cloud", since)) == ("kcp:2hnrv0u1m7d8h2ar", [])
        assert asked_for_default(world) == 2
        assert not [r for r in world.journal.asked("cloud") if r.call.path.endswith("/namespaces/kube-system")]


def test_C9_1_where_no_path_names_a_logical_cluster_its_namespace_is_not_asked_for(world: World) -> None:
    restart(world)
    assert asked_for_default(world) == 0


def test_C9_1_another_logical_cluster_of_the_same_path_is_another_cluster() -> None:
    with workspace() as world:
        world.cut("cloud", seconds=10)
        world.cloud.rebuild()
        world.cloud.become_workspace("0ther0u1m7d8h2ar")
        world.heal("cloud", seconds=60)
        assert (connection(world), holds(world)) == ("identity-changed", [("IdentityChanged", 0)])
        assert set(world.robot.objects()) == {"a"}
        world.order("release", id="cloud")
        world.pass_time(120)
        assert (identity(world), set(world.robot.objects())) == ("kcp:0ther0u1m7d8h2ar", {"a"})
        assert holds(world) == [("Restored", 1)]


def test_C9_1_a_right_to_read_it_that_comes_or_goes_is_no_other_cluster() -> None:
    with workspace() as world:
        for number, forbidden in enumerate((True, False), start=2):
            if forbidden:
                world.inject("cloud", FORBIDDEN, part=DEFAULT, times=math.inf)
            since = world.clock.now
            restart(world)
            world.edit("a", spec={"x": number})
            assert (copy(world)["spec"], holds(world)) == ({"x": number}, [])
            assert (identity(world), full_lists(world, "cloud", since)) == ("kcp:2hnrv0u1m7d8h2ar", [])
            world.mend("cloud")


def test_C9_1_an_agent_that_knew_the_path_alone_learns_the_logical_cluster_and_lists_nothing() -> None:
    with scene() as world:
        world.cloud.become_workspace("2hnrv0u1m7d8h2ar")
        world.inject("cloud", FORBIDDEN, verb="get", times=math.inf)
        world.begin("a")
        assert identity(world).startswith("server:")
        world.mend("cloud")
        since = world.clock.now
        restart(world)
        assert (identity(world), full_lists(world, "cloud", since)) == ("kcp:2hnrv0u1m7d8h2ar", [])


def test_C9_1_any_object_tells_the_logical_cluster_where_nothing_else_can_be_read() -> None:
    with scene() as world:
        world.cloud.become_workspace("2hnrv0u1m7d8h2ar")
        world.cloud.create("a", spec={"x": 1}, annotations={"kcp.io/cluster": "2hnrv0u1m7d8h2ar"})
        world.inject("cloud", FORBIDDEN, verb="get", times=math.inf)
        world.begin()
        restart(world)
        assert identity(world) == "kcp:2hnrv0u1m7d8h2ar"
        world.cut("cloud", seconds=10)
        world.cloud.rebuild()
        world.cloud.become_workspace("0ther0u1m7d8h2ar")
        world.cloud.create("b", spec={"x": 1}, annotations={"kcp.io/cluster": "0ther0u1m7d8h2ar"})
        world.mend("cloud")
        world.inject("cloud", FORBIDDEN, verb="get", times=math.inf)
        world.pass_time(60)
        assert (connection(world), set(world.robot.objects())) == ("identity-changed", {"a"})


def test_C9_1_a_workspace_without_its_namespace_is_none_yet() -> None:
    with workspace() as world:
        world.inject("cloud", ABSENT, part=DEFAULT, times=math.inf)
        world.cut("cloud", seconds=5)
        world.weather[world.cloud.side].cut = False
        world.edit("a", spec={"x": 2}, seconds=60)
        assert (connection(world), copy(world)["spec"]) == ("offline", {"x": 1})
        assert "namespace default" in str(world.status()["sides"]["cloud"]["error"])
        world.heal("cloud")
        assert (copy(world)["spec"], holds(world)) == ({"x": 2}, [])


PATH = "root:robots:r1"
SHOWS_PATH = Reply(200, {"metadata": {"name": "cluster", "annotations": {"kcp.io/path": PATH}}})


def upstream_path(world: World, name: str = "a") -> str | None:
    """What the copy of an object says of its original's workspace."""
    found = copy(world, name)["metadata"]["annotations"].get("crsyncer.cloudrobotics.com/upstream-path")
    return None if found is None else str(found)


def test_C9_1_copies_name_the_path_of_the_workspace_which_is_asked_for_once() -> None:
    with scene() as world:
        world.cloud.become_workspace("2hnrv0u1m7d8h2ar")
        world.inject("cloud", SHOWS_PATH, part="/logicalclusters/cluster", times=math.inf)
        world.begin("a")
        assert upstream_path(world) == PATH
        world.mend("cloud")
        restart(world)
        world.add("b")
        assert upstream_path(world, "b") == PATH
        assert len([r for r in world.journal.asked("cloud") if "logicalclusters" in r.call.path]) == 1
        assert identity(world) == "kcp:2hnrv0u1m7d8h2ar"


def test_C9_1_a_path_that_cannot_be_read_is_left_out_and_looked_for_at_the_next_connection() -> None:
    with workspace() as world:
        assert upstream_path(world) is None
        world.inject("cloud", SHOWS_PATH, part="/logicalclusters/cluster", times=math.inf)
        restart(world)
        world.edit("a", spec={"x": 2})
        assert upstream_path(world) == PATH
        world.add("b", annotations={"kcp.io/path": "another"})
        assert upstream_path(world, "b") == PATH


def test_C9_1_objects_may_name_the_path_themselves_and_only_those_of_a_workspace() -> None:
    with workspace() as world:
        world.add("b", annotations={"kcp.io/path": PATH})
        assert upstream_path(world, "b") == PATH
    with scene() as world:
        world.begin("b", annotations={"kcp.io/path": PATH})
        assert upstream_path(world, "b") is None


def test_C2_1_what_kcp_writes_on_every_object_is_not_copied() -> None:
    with workspace() as world:
        kcps = {"kcp.io/cluster": "2hnrv0u1m7d8h2ar", "internal.apis.kcp.io/seen": "1"}
        plain = {"lab.example.com/note": "kept", "notkcp.io/note": "kept"}
        world.add("b", annotations=kcps | plain)
        annotations = copy(world, "b")["metadata"]["annotations"]
        assert annotations.keys() & (kcps.keys() | plain.keys()) == plain.keys()
        writes = len(world.writes)
        world.cloud.annotate("b", {"internal.apis.kcp.io/seen": "2"})
        world.settle()
        assert len(world.writes) == writes


# A shard move (C9.2)

SHARDS = {"lower": (40, 0), "higher": (90_000, 90_000), "higher, with a past of its own": (90_000, 0)}
"""The revision of the other shard and its oldest one, before the workspace is moved there."""


@pytest.mark.parametrize("shard", SHARDS)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_C9_2_a_shard_move_changes_no_copy(running: bool, shard: str) -> None:
    with workspace() as world:
        for number in range(12):
            world.cloud.create(f"g{number}", spec={"x": number})
        world.settle()
        for number in range(12):
            world.robot.set_status(f"g{number}", {"n": number})
        world.settle()
        before, writes = uids(world), len(world.writes)
        with world.down(not running):
            revision, oldest = SHARDS[shard]
            world.cloud.move_shard(revision=revision, oldest=oldest)
        world.pass_time(120)
        assert (uids(world), holds(world)) == (before, [])
        assert [str(write) for write in world.writes[writes:] if write.before != write.after] == []
        assert (identity(world), connection(world)) == ("kcp:2hnrv0u1m7d8h2ar", "connected")
        for number in range(2):
            travels(world, number, seconds=10.0)


@pytest.mark.parametrize("shard", ["lower", "higher, with a past of its own"])
def test_C9_2_what_is_missing_after_a_shard_move_is_held(shard: str) -> None:
    with workspace() as world:
        world.add("lost", "c", "d")
        world.cut("cloud", seconds=10)
        world.cloud.delete("lost")
        revision, oldest = SHARDS[shard]
        world.cloud.move_shard(revision=revision, oldest=oldest)
        world.heal("cloud", seconds=120)
        assert (set(world.robot.objects()), holds(world)) == ({"a", "lost", "c", "d"}, [("Restored", 1)])
        world.order("release", id=world.status()["holds"][0]["id"])
        world.settle()
        assert set(world.robot.objects()) == {"a", "c", "d"}


# A workspace that does not answer as usual (C9.2)


def test_C9_2_while_a_moving_workspace_answers_503_the_agent_waits_and_goes_on_where_it_was() -> None:
    with workspace() as world:
        since = world.clock.now
        world.inject("cloud", UNAVAILABLE, times=math.inf)
        world.cut("cloud", seconds=2)
        world.weather[world.cloud.side].cut = False
        world.report("a", {"n": 1}, seconds=120)
        assert (connection(world), set(world.robot.objects()), holds(world)) == ("offline", {"a"}, [])
        world.heal("cloud")
        assert world.cloud.objects()["a"]["status"] == {"n": 1}
        assert full_lists(world, "cloud", since) == []


@pytest.mark.parametrize("reply", [FORBIDDEN, NOT_SERVED, ABSENT], ids=["403", "404", "404 of a Status"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_C9_2_a_workspace_that_is_inactive_or_refuses_deletes_nothing(running: bool, reply: Reply) -> None:
    with workspace() as world:
        for number in range(12):
            world.cloud.create(f"g{number}", spec={"x": number})
        world.settle()
        before = uids(world)
        with world.down(not running):
            world.inject("cloud", reply, times=math.inf)
            world.cloud.restart()
        world.pass_time(600)
        assert uids(world) == before
        world.mend("cloud")
        world.pass_time(120)  # a kind that is missing or forbidden is asked for with back-off
        travels(world, 1)
        assert (set(before) <= set(uids(world)), holds(world)) == (True, [])


def test_C9_2_a_workspace_that_was_emptied_deletes_nothing() -> None:
    """Without its bindings it serves the kind no more; its watches show every object deleted."""
    with workspace() as world:
        for number in range(3):
            world.cloud.create(f"g{number}", spec={"x": number})
        world.settle()
        before = uids(world)
        world.cloud.drop_kind()
        world.pass_time(600)
        assert (uids(world), connection(world)) == (before, "connected")
        assert holds(world) == [("KindMissing", 4)]


# One upstream (C9.3)


def test_C9_3_agents_of_two_workspaces_have_copies_of_their_own_on_one_robot() -> None:
    with named({"name": "{cluster}-{name}"}) as world:
        world.cloud.become_workspace("one")
        world.begin("a")
        [one] = world.robot.objects().values()
        with world.down():
            of_one, past = world.disk.copied(), world.cloud.snapshot()
            world.cloud.rebuild()
            world.cloud.become_workspace("two")
            world.cloud.create("a", spec={"x": 2})
            world.lose_database()  # the other agent has a state directory of its own
        world.settle()
        assert sorted(each["spec"]["x"] for each in world.robot.objects().values()) == [1, 2]
        world.cloud.delete("a")
        world.add("b", spec={"x": 3})
        found = world.robot.objects()
        assert found[one["metadata"]["name"]] == one
        assert sorted(each["spec"]["x"] for each in found.values()) == [1, 3]
        with world.down():
            world.cloud.restore(past)
            world.cloud.set("a", spec={"x": 4})
            world.put_back(of_one)
        world.settle()
        assert sorted(each["spec"]["x"] for each in world.robot.objects().values()) == [3, 4]
