"""C5.2 on virtual time: related copies in another namespace, with names of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS
from tests.model.scenes.config_maps import data, delete_map, maps, put_map, strip_map
from tests.model.scenes.policies import apply_policy, edit_policy
from tests.model.scenes.related import BOTH, EDGE, ends, entry, related
from tests.model.simulation.scene import holds, restart, roles
from tests.model.simulation.world import World

NAMING = {"namespace": "copies", "name": "{namespace}-{name}"}
SHARED = {"reference": "/spec/maps/*", "namespace": "shared"}


@contextmanager
def placed(origin: str = "cloud", *, naming: Any = None, source: str = "cloud", **more: Any) -> Iterator[World]:
    """A world with goals that refer to ConfigMaps, and have copies called so."""
    with related(origin, source=source, start=False, **more) as world:
        for plane in (world.cloud, world.robot):
            for namespace in ("shop", "copies", "shared"):
                plane.make_namespace(namespace)
        place(world, origin, naming, **more)
        world.begin()
        yield world


def place(world: World, origin: str, own_naming: Any, /, **more: Any) -> None:
    own = {} if own_naming is None else {"naming": own_naming}
    apply_policy(world.robot, related=[entry(origin, **more)], **own)


def uids(found: dict[str, Any]) -> dict[str, str]:
    return {name: each["metadata"]["uid"] for name, each in found.items()}


@pytest.mark.parametrize("source", ["cloud", "robot"])
@BOTH
def test_C5_2_a_related_copy_is_in_the_namespace_that_the_kind_makes_of_its_originals(origin: str, source: str) -> None:
    with placed(origin, naming=NAMING, source=source) as world:
        here, there = ends(world, origin)
        up, _ = roles(world, source)
        mine = "shop" if here is up else "copies"
        put_map(here, "m", namespace=mine, x="1")
        world.add("g", source=source, namespace="shop", spec={"maps": ["m"]}, seconds=3)
        assert data(there, "copies") == {"m": {"x": "1"}}
        put_map(here, "m", namespace=mine, x="2")
        world.pass_time(2)
        assert data(there, "copies") == {"m": {"x": "2"}}
        restart(world, kill=True)
        delete_map(there, "m", namespace="copies")
        world.pass_time(2)
        assert data(there, "copies") == {"m": {"x": "2"}}
        world.remove("g", namespace="shop", source=source)
        assert (data(there, "copies"), data(here, mine), holds(world)) == ({}, {"m": {"x": "2"}}, [])


@BOTH
def test_C5_2_templates_mean_the_name_and_the_namespace_of_the_original(origin: str) -> None:
    naming = {"namespace": "copies", "name": "{namespace}-{name}"}
    with placed(origin, object=SHARED) as world:
        here, there = ends(world, origin)
        place(world, origin, None, object=SHARED, naming=naming)
        put_map(here, "m", namespace="shared", x="1")
        world.add("g", spec={"maps": ["m"], "n": 7})
        assert data(there, "copies") == {"shared-m": {"x": "1"}}
        put_map(there, "shared-m", namespace="copies", x="drift")
        world.pass_time(2)
        assert data(there, "copies") == {"shared-m": {"x": "1"}}


def test_C5_2_the_copies_of_what_a_selector_selects_have_names_too() -> None:
    with placed(naming=NAMING, object=EDGE) as world:
        for name in ("a", "b"):
            put_map(world.cloud, name, namespace="shop", labels={"tier": "edge"}, x=name)
        world.add("g", namespace="shop", spec={})
        assert data(world.robot, "copies") == {"a": {"x": "a"}, "b": {"x": "b"}}
        put_map(world.cloud, "a", namespace="shop", labels={"tier": "x"}, x="a")
        world.settle()
        assert set(data(world.robot, "copies")) == {"b"}


@BOTH
@pytest.mark.parametrize("lost", [False, True])
def test_C5_2_C2_3_changed_templates_restarts_and_a_lost_store_move_no_copy(origin: str, lost: bool) -> None:
    with placed(origin, naming={"namespace": "copies", "name": "{name}"}, object=SHARED) as world:
        here, there = ends(world, origin)
        where = "copies"
        put_map(here, "m", namespace="shared", x="1")
        world.add("g", namespace="shop", spec={"maps": ["m"]})
        before, made = uids(maps(there, where)), len(world.writes)
        assert set(before) == {"m"}
        for naming, own in (({"name": "x-{name}"}, None), (None, {"name": "y-{name}"}), (None, None)):
            place(world, origin, naming, object=SHARED, **({} if own is None else {"naming": own}))
            world.settle()
            with world.down():
                if lost:
                    world.lose_database()
            world.settle()
            assert (uids(maps(there, where)), holds(world)) == (before, [])
        assert [str(write) for write in world.writes[made:]] == []
        put_map(here, "m", namespace="shared", x="2")
        world.pass_time(2)
        assert data(there, where) == {"m": {"x": "2"}}
        place(world, origin, {"namespace": "default"}, object=SHARED)
        put_map(here, "n", namespace="shared", x="1")
        world.edit("g", namespace="shop", spec={"maps": ["m", "n"]})
        assert (set(data(there, where)), set(data(there))) == ({"m"}, {"n"})


@BOTH
def test_C5_3_primaries_of_two_namespaces_share_one_copy(origin: str) -> None:
    with placed(origin, object=SHARED) as world:
        here, there = ends(world, origin)
        put_map(here, "m", namespace="shared", x="1")
        for namespace in ("default", "shop"):
            world.cloud.create("g", namespace=namespace, spec={"maps": ["m"]})
        world.settle()
        assert (data(there, "shared"), data(there, "shop"), data(there)) == ({"m": {"x": "1"}}, {}, {})
        assert holds(world) == []
        world.remove("g")
        assert data(there, "shared") == {"m": {"x": "1"}}
        world.remove("g", namespace="shop")
        assert (data(there, "shared"), set(data(here, "shared"))) == ({}, {"m"})


def test_C5_2_C2_5_of_two_originals_with_one_name_the_later_is_held() -> None:
    with placed(naming={"namespace": "copies"}) as world:
        for namespace in ("default", "shop"):
            put_map(world.cloud, "m", namespace=namespace, x=namespace)
        world.add("g", namespace="shop", spec={"maps": ["m"]})
        world.add("h", spec={"maps": ["m"]})
        assert (data(world.robot, "copies"), holds(world)) == ({"m": {"x": "shop"}}, [("NameTaken", 1)])


@pytest.mark.parametrize("selected", [False, True])
def test_C5_2_a_template_that_makes_no_name_is_reported_with_the_primary(selected: bool) -> None:
    more: dict[str, Any] = {"object": EDGE} if selected else {}
    with related(naming={"name": "-{name}"}, **more) as world:
        put_map(world.cloud, "m", labels={"tier": "edge"}, x="1")
        world.add("g", spec={"maps": ["m"]})
        found = {hold["reason"]: hold["message"] for hold in world.status()["holds"]}
        assert 'default/m: the name "-m"' in found["RelatedFailed"]
        assert (set(world.robot.objects()), data(world.robot)) == ({"g"}, {})
        edit_policy(world, related=[entry()])
        assert (data(world.robot), holds(world)) == ({"m": {"x": "1"}}, [])


def test_C5_1_what_is_wrong_about_an_entry_ends_with_it() -> None:
    with related() as world:
        world.add("g", spec={"maps": [1]})
        assert holds(world) == [("RelatedFailed", 1)]
        edit_policy(world, related=[])
        assert holds(world) == []


@pytest.mark.parametrize("naming", [None, NAMING])
def test_C2_4_a_related_copy_that_has_lost_all_its_marks_is_the_same_copy(naming: Any) -> None:
    more = {} if naming is None else {"naming": naming}
    with placed("cloud", **more) as world:
        put_map(world.cloud, "m", x="1")
        world.add("a", spec={"maps": ["m"]})
        namespace = "default" if naming is None else "copies"
        [(name, found)] = maps(world.robot, namespace).items()
        for _ in range(2):
            strip_map(world.robot, name, namespace=namespace)
            world.pass_time(2)
            after = maps(world.robot, namespace)[name]
            assert {key for key in after["metadata"]["labels"] if key.startswith(OURS)} == set(
                found["metadata"]["labels"]
            )
            assert (after["metadata"]["uid"], after["data"]) == (found["metadata"]["uid"], {"x": "1"})
            assert holds(world) == []
        put_map(world.cloud, "m", x="2")
        world.settle()
        assert data(world.robot, namespace) == {name: {"x": "2"}}
        delete_map(world.robot, name, namespace=namespace)
        put_map(world.robot, name, namespace=namespace, x="local")
        world.settle()
        expected = ({name: {"x": "2"}}, []) if naming is None else ({name: {"x": "local"}}, [("NameTaken", 1)])
        assert (data(world.robot, namespace), holds(world)) == expected
