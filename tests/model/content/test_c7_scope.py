"""C7 on virtual time: a kind that is cluster-scoped on one side and in namespaces on the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.kinds.namespaces import Namespaces
from tests.model.scenes.named import BOTH
from tests.model.scenes.policies import apply_policy, edit_policy, policy_rows, ready, serve_policies
from tests.model.scenes.projected import FROM_CLUSTER, PROJECTION, TASKS, TO_CLUSTER, Pair, projected
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import full_lists, holds, restart, row, state
from tests.model.simulation.world import World
from tests.system.bed import crd

DIRECTIONS = pytest.mark.parametrize(("source", "cluster"), [(s, c) for s in ("cloud", "robot") for c in (False, True)])
"""Upstream, and whether it is cluster-scoped there."""


@contextmanager
def rescoped(source: str, *, cluster: bool, given: bool = True, naming: Any = None, **more: Any) -> Iterator[World]:
    """A world where upstream has another scope than downstream; `given`: the policy says so."""
    in_cloud = cluster if source == "cloud" else not cluster
    projection = PROJECTION | ({"scope": "Cluster" if in_cloud else "Namespaced"} if given else {})
    naming = (FROM_CLUSTER if cluster else TO_CLUSTER) if naming is None else naming
    spec = {"naming": naming} if naming else {}
    with projected(
        source,
        projection=projection,
        cloud={"cluster": in_cloud},
        cluster=not in_cloud,
        spec=spec,
        **more,
    ) as world:
        yield world


def copies(pair: Pair, *, cluster: bool) -> dict[str, Any]:
    """The specs of the copies."""
    found = pair.down.objects("home" if cluster else "")
    return {name: each["spec"] for name, each in found.items()}


@DIRECTIONS
@pytest.mark.parametrize("given", [True, False])
def test_C7_a_copy_in_the_other_scope_is_synced_both_ways(source: str, cluster: bool, given: bool) -> None:
    with rescoped(source, cluster=cluster, given=given) as world:
        pair = Pair(world, source)
        pair.up.create("a", spec={"x": 1})
        copy, place = ("a", "home") if cluster else ("default-a", "")
        world.begin()
        assert copies(pair, cluster=cluster) == {copy: {"x": 1}}
        pair.down.set_status(copy, {"n": 1}, namespace=place)
        pair.up.set("a", spec={"x": 2})
        world.settle()
        assert (copies(pair, cluster=cluster), pair.up.objects()["a"]["status"]) == ({copy: {"x": 2}}, {"n": 1})
        pair.down.set(copy, spec={"x": 9}, namespace=place)
        world.pass_time(2)
        assert copies(pair, cluster=cluster) == {copy: {"x": 2}}
        pair.down.delete(copy, namespace=place)
        world.settle()
        assert copies(pair, cluster=cluster) == {copy: {"x": 2}}
        explained = world.order("explain", resource="goals", name="a")
        assert (explained["state"], explained["copy"]) == ("in-sync", {"namespace": place, "name": copy})
        pair.up.delete("a")
        world.settle()
        assert (pair.up.objects(), copies(pair, cluster=cluster), holds(world)) == ({}, {}, [])


@DIRECTIONS
def test_C7_without_a_projection_another_scope_stops_the_kind_and_an_empty_one_is_enough(
    source: str, cluster: bool
) -> None:
    in_cloud = cluster if source == "cloud" else not cluster
    naming = FROM_CLUSTER if cluster else TO_CLUSTER
    with World(kinds={"goals": {"source": source, "cluster": not in_cloud}}) as world:
        world.cloud.drop_kind()
        world.cloud.apply(crd(GROUP, cluster=in_cloud))
        serve_policies(world.robot)
        apply_policy(world.robot, naming=naming)
        world.begin()
        assert state(world) == "misconfigured"
        assert row(world)["message"].endswith("in the cloud; allowed with spec.projection: {}")
        edit_policy(world, naming=naming, projection={})
        assert state(world) == "syncing"


@DIRECTIONS
@pytest.mark.parametrize("lost", [False, True])
def test_C7_a_restart_moves_no_copy_to_another_scope(source: str, cluster: bool, lost: bool) -> None:
    with rescoped(source, cluster=cluster) as world:
        pair = Pair(world, source)
        for name in "abcdefg":
            pair.up.create(name, spec={"x": 1})
        world.begin()
        before = {name: each["metadata"]["uid"] for name, each in pair.down.objects("home").items()}
        made = len(world.writes)
        with world.down():
            if lost:
                world.lose_database()
            pair.up.delete("b")
        world.settle()
        after = {name: each["metadata"]["uid"] for name, each in pair.down.objects("home").items()}
        gone = "b" if cluster else "default-b"
        assert after == {name: uid for name, uid in before.items() if name != gone}
        assert [
            write.verb for write in world.writes[made:] if "events" not in write.resource and write.name != "p"
        ] == ["delete"]
        restart(world, kill=True)
        assert len(pair.down.objects("home")) == 6


@BOTH
def test_C7_copies_from_two_namespaces_have_two_names_in_one_scope(source: str) -> None:
    with rescoped(source, cluster=False) as world:
        pair = Pair(world, source)
        for place in ("default", "home"):
            pair.up.create("a", namespace=place, spec={"in": place})
        world.begin()
        assert copies(pair, cluster=False) == {"default-a": {"in": "default"}, "home-a": {"in": "home"}}
        pair.up.delete("a", namespace="home")
        world.settle()
        assert copies(pair, cluster=False) == {"default-a": {"in": "default"}}


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(
    ("source", "cluster", "naming", "words"),
    [
        ("cloud", False, {}, "spec.naming.name of SyncPolicy p has neither {namespace} nor {hash}"),
        ("robot", False, {"name": "{robot}-{name}"}, "has neither {namespace} nor {hash}"),
        ("robot", False, {"name": "{name}-{hash}"}, ""),
        ("cloud", True, {}, "spec.naming.namespace of SyncPolicy p is not fixed"),
        ("robot", True, {"name": "x-{name}"}, "is not fixed"),
        ("cloud", True, {"namespace": "home-{name}"}, "is not fixed"),
        ("robot", True, {"namespace": "{robot}"}, ""),
    ],
)
def test_C7_names_in_the_other_scope_do_not_clash(
    source: str, cluster: bool, naming: Any, words: str, given: bool
) -> None:
    with rescoped(source, cluster=cluster, given=given, naming=naming) as world:
        Pair(world, source).up.create("a", spec={"x": 1})
        world.begin(seconds=10)
        shown = row(world)
        assert shown["state"] == ("misconfigured" if words else "syncing"), shown["message"]
        assert words in (shown["message"] or "")
        assert policy_rows(world)["p"][0] == ("misconfigured" if words else "active")
        assert ready(world.robot)[1] == ("Misconfigured" if words else "Active")


@BOTH
def test_C7_what_the_policy_alone_shows_is_said_without_the_cloud(source: str) -> None:
    with rescoped(source, cluster=False, naming={}) as world:
        world.cut("cloud")
        world.begin(seconds=10)
        assert (state(world), policy_rows(world)["p"][0]) == ("misconfigured", "misconfigured")


def test_C7_a_scope_that_the_cloud_does_not_have_is_misconfigured() -> None:
    projection = PROJECTION | {"scope": "Cluster"}
    with projected(projection=projection, spec={"naming": FROM_CLUSTER}) as world:
        world.begin(seconds=10)
        shown = row(world)
        assert shown["state"] == "misconfigured"
        assert f"is Cluster, but the scope of {TASKS} in the cloud is Namespaced" in shown["message"]


def test_C7_restricted_namespaces_are_those_of_the_side_that_has_some() -> None:
    namespaces = Namespaces(("default", "shop"), ("default", "shop"))
    with rescoped("cloud", cluster=False, namespaces=namespaces) as world:
        for place in ("default", "shop", "home"):
            world.cloud.make_namespace(place)
            world.cloud.create("a", kind=TASKS, namespace=place, spec={"in": place})
        world.begin()
        assert set(world.robot.objects()) == {"default-a", "shop-a"}
        assert [len(full_lists(world, "cloud", kind="tasks")), len(full_lists(world, "robot"))] == [2, 1]
        world.robot.set_status("shop-a", {"n": 1})
        world.remove("a", kind=TASKS)
        assert world.cloud.objects(TASKS, "shop")["a"]["status"] == {"n": 1}
        assert set(world.robot.objects()) == {"shop-a"}
        restart(world)
        assert set(world.robot.objects()) == {"shop-a"}
