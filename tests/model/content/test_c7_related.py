"""C7 on virtual time: related objects that have other names in the cloud."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crsyncer.core.model import Json
from tests.model.scenes.config_maps import data, delete_map, put_map
from tests.model.scenes.policies import apply_policy, delete_policy, edit_policy, policy_rows, serve_policies
from tests.model.scenes.projected import FLEET, TASKS
from tests.model.scenes.related import BOTH, ends, entry, related
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.scene import holds, restart, scene
from tests.model.simulation.world import World
from tests.system.bed import crd

CLOUD: Json = {"group": FLEET, "resource": "tasks"}


@contextmanager
def projected_maps(origin: str, *, cluster: bool = False, **more: Any) -> Iterator[World]:
    """A world where the ConfigMaps of goals are tasks in the cloud."""
    with related(origin, start=False, projection=CLOUD, **more) as world:
        world.cloud.apply(crd(FLEET, plural="tasks", source=None, status=False, cluster=cluster))
        yield world


def put(world: World, origin: str, name: str, **values: str) -> None:
    """Create an original, or change it."""
    if origin == "robot":
        put_map(world.robot, name, **values)
    elif world.cloud.get(name, kind=TASKS) is None:
        world.cloud.create(name, kind=TASKS, data=values)
    else:
        world.cloud.set(name, kind=TASKS, data=values)


def copied(plane: Plane, origin: str) -> dict[str, Any]:
    """The data of each copy."""
    if origin == "cloud":
        return data(plane)
    return {name: each["data"] for name, each in plane.objects(TASKS).items()}


@BOTH
def test_C7_related_objects_may_be_called_otherwise_in_the_cloud(origin: str) -> None:
    with projected_maps(origin) as world:
        down = world.robot if origin == "cloud" else world.cloud
        put(world, origin, "m", a="1")
        put(world, origin, "other", a="1")
        world.begin("a", spec={"maps": ["m"]})
        assert copied(down, origin) == {"m": {"a": "1"}}
        put(world, origin, "m", a="2")
        world.pass_time(2)
        assert copied(down, origin) == {"m": {"a": "2"}}
        restart(world)
        world.edit("a", spec={"maps": ["other"]})
        assert copied(down, origin) == {"other": {"a": "1"}}
        if origin == "robot":
            delete_map(world.robot, "other")
        else:
            world.cloud.delete("other", kind=TASKS)
        world.settle()
        assert copied(down, origin) == {}


def test_C7_related_objects_may_have_another_scope_in_the_cloud() -> None:
    with projected_maps("cloud", cluster=True, naming={"namespace": "home"}) as world:
        world.robot.make_namespace("home")
        put(world, "cloud", "m", a="1")
        world.begin("a", spec={"maps": ["m"]})
        assert (data(world.robot, "home"), data(world.robot)) == ({"m": {"a": "1"}}, {})
        put(world, "cloud", "m", a="2")
        world.pass_time(2)
        assert data(world.robot, "home") == {"m": {"a": "2"}}
        world.remove("a")
        assert data(world.robot, "home") == {}


def test_C7_related_objects_of_the_robot_may_be_cluster_scoped_in_the_cloud() -> None:
    with projected_maps("robot", cluster=True, naming={"name": "{namespace}-{name}"}) as world:
        put(world, "robot", "m", a="1")
        world.begin("a", spec={"maps": ["m"]})
        assert copied(world.cloud, "robot") == {"default-m": {"a": "1"}}
        world.remove("a")
        assert copied(world.cloud, "robot") == {}


def test_C7_names_of_related_objects_in_the_other_scope_do_not_clash() -> None:
    with projected_maps("robot", cluster=True) as world:
        put(world, "robot", "m", a="1")
        world.begin("a", spec={"maps": ["m"]}, seconds=10)
        shown = next(row for row in world.status()["kinds"] if row["resource"] == "configmaps")
        assert (shown["state"], "has neither" in shown["message"]) == ("misconfigured", True)
        assert set(world.robot.objects()) == {"a"}
        assert policy_rows(world)["p"] == (
            "misconfigured",
            f"spec.related: configmaps is not synced: {shown['message']}",
        )


def test_C7_a_kind_of_related_objects_and_another_kind_are_not_one_in_the_cloud() -> None:
    with projected_maps("cloud") as world:
        world.robot.apply(crd("lab.example.com", plural="errands", source=None))
        put(world, "cloud", "m", a="1")
        world.begin("a", spec={"maps": ["m"]})
        edit_policy(world, "q", kind="errands", specSource="cloud", projection=CLOUD, seconds=5)
        rows = policy_rows(world)
        assert {name: found[0] for name, found in rows.items()} == {"p": "misconfigured", "q": "misconfigured"}
        assert f"configmaps and errands.lab.example.com are both {TASKS} in the cloud" in str(rows["p"][1])
        put(world, "cloud", "m", a="2")
        world.pass_time(5)
        assert data(world.robot) == {"m": {"a": "1"}}
        delete_policy(world.robot, "q")
        world.pass_time(5)
        assert (policy_rows(world)["p"][0], data(world.robot)) == ("active", {"m": {"a": "2"}})


@BOTH
def test_C1_7_an_edit_of_their_projection_holds_the_copies_until_it_is_undone(origin: str) -> None:
    parts = {"group": GROUP, "resource": "parts"}
    other = {"resource": "others", "kind": "Other"}
    with scene(goals={"source": "cloud"}) as world:
        serve_policies(world.robot)
        for plane in world.planes.values():
            for plural in ("parts", "others"):
                plane.apply(crd(GROUP, plural=plural, source=None))
        apply_policy(world.robot, related=[entry(origin, resource=parts)])
        here, there = ends(world, origin)
        names = {f"p{number}" for number in range(10)}
        for name in names:
            here.create(name, kind="parts", spec={"x": 1})
        world.begin("g", spec={"maps": sorted(names)})
        edit_policy(world, related=[entry(origin, resource=parts, projection=other)])
        restart(world, kill=True)
        assert (set(there.objects("parts")), holds(world)) == (names, [("SelectionChanged", 10)])
        edit_policy(world, related=[entry(origin, resource=parts)])
        here.set("p0", kind="parts", spec={"x": 2})
        world.settle()
        assert (there.objects("parts")["p0"]["spec"], set(there.objects("parts"))) == ({"x": 2}, names)
        assert (holds(world), there.objects("others")) == ([], {})
