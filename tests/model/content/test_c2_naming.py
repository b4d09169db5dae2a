"""C2.3 on virtual time: copies with names of their own."""

import hashlib

import pytest

from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Side
from tests.model.scenes.named import BOTH, ELSEWHERE, named, rename, written
from tests.model.scenes.policies import delete_policy
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import full_lists, holds, restart, roles, row, state
from tests.model.simulation.weather import Fate


@BOTH
def test_C2_3_a_copy_with_a_name_of_its_own_is_synced_both_ways(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, labels={"app": "1"})
        copy = f"{ROBOT}-a"
        assert {name: each["spec"] for name, each in down.objects().items()} == {copy: {"x": 1}}
        down.set_status(copy, {"n": 1})
        world.edit("a", spec={"x": 2}, source=source)
        assert (down.objects()[copy]["spec"], up.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        down.set(copy, spec={"x": 9})
        world.pass_time(2)
        assert down.objects()[copy]["spec"] == {"x": 2}
        down.delete(copy)
        world.settle()
        assert (down.objects()[copy]["spec"], down.objects()[copy]["status"]) == ({"x": 2}, {"n": 1})
        world.remove("a", source=source)
        assert (up.objects(), down.objects(), holds(world)) == ({}, {}, [])


@BOTH
def test_C2_3_a_copy_lives_in_the_namespace_that_its_template_makes(source: str) -> None:
    with named(ELSEWHERE, source=source) as world:
        up, down = roles(world, source)
        up.make_namespace("shop")
        for place in ("default", "shop"):
            up.create("a", namespace=place, spec={"in": place})
        world.begin()
        assert {name: each["spec"]["in"] for name, each in down.objects(namespace="copies").items()} == {
            "default-a": "default",
            "shop-a": "shop",
        }
        assert down.objects() == {}
        down.set_status("shop-a", {"n": 1}, namespace="copies")
        world.remove("a", source=source)
        assert up.objects(namespace="shop")["a"]["status"] == {"n": 1}
        assert set(down.objects(namespace="copies")) == {"shop-a"}


def test_C2_3_with_restricted_namespaces_a_copy_stays_in_its_namespace() -> None:
    with named(namespaces=Namespaces(("robot-r1",), ("default",))) as world:
        world.begin("a")
        assert set(world.robot.objects()) == {f"{ROBOT}-a"}
        assert world.order("explain", resource="goals", name="a")["copy"] == {
            "namespace": "default",
            "name": f"{ROBOT}-a",
        }
        rename(world, ELSEWHERE)
        world.pass_time(10)
        assert state(world) == "misconfigured"
        assert "is confined to namespaces" in row(world)["message"]


@BOTH
@pytest.mark.parametrize("how", ["edited", "killed", "late"])
def test_C2_3_an_edit_while_a_create_is_under_way_makes_no_second_copy(source: str, how: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        world.begin()
        world.weather[down.side].latency = 2.0
        if how == "late":
            world.inject(str(down.side), Fate.LATE, verb="create", part="/goals")
        world.add("a", source=source, seconds=1)
        assert len(world.journal.asked(str(down.side), verb="create", kind="goals")) == 1
        with world.down(how == "killed", kill=True):
            rename(world, {"name": "new-{name}"})
        world.pass_time(300)
        assert {name: each["spec"] for name, each in down.objects().items()} == {f"{ROBOT}-a": {"x": 1}}
        assert holds(world) == []


@BOTH
def test_C2_3_an_edit_ends_a_name_that_is_taken_or_refused(source: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        down.create(f"{ROBOT}-a", spec={"x": 7})
        world.inject(str(down.side), FORBIDDEN, verb="create", part="/goals")
        world.begin("b", source=source, spec={"x": 2})
        world.add("a", source=source, seconds=10)
        assert (set(down.objects()), holds(world)) == ({f"{ROBOT}-a", f"{ROBOT}-b"}, [("NameTaken", 1)])
        rename(world, {"name": "new-{name}"})
        world.pass_time(10)
        assert (down.objects()["new-a"]["spec"], holds(world)) == ({"x": 1}, [])


@BOTH
@pytest.mark.parametrize("lost", [False, True])
def test_C2_3_changed_templates_restarts_and_a_lost_store_move_no_copy(source: str, lost: bool) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        world.begin(*"abcdefg", source=source)
        copies = {name: each["metadata"]["uid"] for name, each in down.objects().items()}
        made = len(written(world))
        for naming in (ELSEWHERE, {"name": "{name}"}, None, {"name": "new-{name}"}):
            rename(world, naming)
            world.settle()
            restart(world, kill=True)
            if lost:
                restart(world, lost=True)
            else:
                world.order("resync")
                world.settle()
            assert {name: each["metadata"]["uid"] for name, each in down.objects().items()} == copies
            assert written(world)[made:] == []
        up.set("a", spec={"x": 2})
        up.create("h", spec={"x": 1})
        down.set_status(f"{ROBOT}-b", {"n": 1})
        world.remove("c", source=source)
        assert down.objects()[f"{ROBOT}-a"]["spec"] == {"x": 2}
        assert up.objects()["b"]["status"] == {"n": 1}
        assert set(down.objects()) == {*copies, "new-h"} - {f"{ROBOT}-c"}


@BOTH
def test_C2_3_a_restart_lists_nothing_and_writes_nothing(source: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        world.begin(*"abcdefg", source=source)
        since, made = world.clock.now, len(written(world))
        down.set(f"{ROBOT}-a", spec={"x": 7})
        restart(world)
        restart(world, kill=True)
        assert [full_lists(world, str(side), since) for side in Side] == [[], []]
        world.order("resync")
        world.settle()
        assert written(world)[made:] == [f"update {ROBOT}-a"]
        for side in Side:
            digests = [each.call.accept for each in full_lists(world, str(side), since)]
            assert digests == ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"]


def test_C2_3_a_digest_asks_for_what_has_changed_by_the_name_that_it_has_there() -> None:
    with named() as world:
        for number in range(20):
            world.cloud.create(f"n{number}", spec={"x": 1})
        world.robot.create("local", spec={"x": 5})
        world.begin()
        world.cut("robot", seconds=10)
        world.robot.set(f"{ROBOT}-n3", spec={"x": 9})
        world.robot.delete(f"{ROBOT}-n4")
        world.robot.compact()
        since = world.clock.now
        world.heal("robot")
        assert world.robot.objects()[f"{ROBOT}-n3"]["spec"] == {"x": 1}
        assert len(world.robot.objects()) == 21
        asked = [dict(each.call.query).get("fieldSelector") for each in full_lists(world, "robot", since)]
        assert asked == [None, f"metadata.name={ROBOT}-n3"]


@BOTH
def test_C2_3_copies_stay_what_they_are_when_their_policy_is_gone(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        world.begin(*"abcdefg", source=source)
        copies = set(down.objects())
        delete_policy(world.robot)
        world.settle()
        up.set("a", spec={"x": 2})
        down.set_status(f"{ROBOT}-b", {"n": 1})
        world.remove("c", source=source)
        assert set(down.objects()) == copies - {f"{ROBOT}-c"}
        assert (down.objects()[f"{ROBOT}-a"]["spec"], up.objects()["b"]["status"]) == ({"x": 2}, {"n": 1})
        restart(world, lost=True)
        assert set(down.objects()) == copies - {f"{ROBOT}-c"}


def test_C2_3_names_that_are_too_long_are_cut() -> None:
    long = "n" * 250
    with named({"namespace": "{namespace}" + "-" * 40 + "x" * 20, "name": "{robot}-{name}"}) as world:
        world.begin(long)
        whole = f"default{'-' * 40}{'x' * 20}"
        namespace = f"{whole[:52]}-{hashlib.sha256(whole.encode()).hexdigest()[:10]}"
        [name] = world.robot.objects(namespace=namespace)
        assert (len(namespace), len(name)) == (63, 253)
        assert name.endswith("-" + hashlib.sha256(f"{ROBOT}-{long}".encode()).hexdigest()[:10])


def test_C2_3_a_name_that_is_none_is_a_dead_letter_until_the_template_is_right() -> None:
    with named({"name": "{name}_X"}) as world:
        world.begin("a", seconds=600)
        assert (world.status()["outbox"]["deadLetters"], written(world)) == (1, [])
        told = world.order("explain", resource="goals", name="a")
        assert (told["state"], told["copy"]) == ("refused", None)
        assert 'the name "a_X", which spec.naming makes for the copy, is not valid' in told["summary"]
        rename(world, {"name": "{name}-x"})
        world.settle()
        assert set(world.robot.objects()) == {"a-x"}
        assert world.status()["outbox"]["deadLetters"] == 0


@BOTH
@pytest.mark.parametrize("steps", range(1, 40, 4))
def test_C2_3_a_kill_anywhere_is_followed_by_agreement_under_the_names_of_before(source: str, steps: int) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", "b", "c", source=source)
        world.crash_after(steps)
        up.set("a", spec={"x": 2})
        up.delete("b")
        up.create("d", spec={"x": 1})
        world.report(f"{ROBOT}-c", {"n": 1}, source=source, seconds=5)
        restart(world, kill=True)
        found = {name: each["spec"]["x"] for name, each in down.objects().items()}
        assert found == {f"{ROBOT}-a": 2, f"{ROBOT}-c": 1, f"{ROBOT}-d": 1}
        assert (up.objects()["c"]["status"], holds(world)) == ({"n": 1}, [])
