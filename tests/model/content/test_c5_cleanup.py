"""C5.4 on virtual time: when the copy of a related object goes, and when it stays."""

import math

import pytest

from crsyncer.core.content.object_content import UPSTREAM_UID
from crsyncer.core.model import Json, Side
from tests.model.scenes.config_maps import annotate_map, data, delete_map, maps, put_map
from tests.model.scenes.policies import apply_policy, delete_policy, edit_policy, put_policy
from tests.model.scenes.projected import JOB_KIND, JOBS, TASKS, tasks
from tests.model.scenes.related import BOTH, EDGE, MAPS, ends, entry, part_entry, parts, refer, related
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, holds, refuse_lists, release, restart, roles
from tests.model.simulation.weather import Fate


@BOTH
@pytest.mark.parametrize("how", ["running", "stopped"])
def test_C5_4_a_copy_goes_with_its_original_or_when_nothing_refers_to_it(origin: str, how: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        refer(world, here, "a", "b", "c")
        with world.down(how == "stopped", kill=True):
            delete_map(here, "a")
            world.cloud.set("g", spec={"maps": ["a", "c"]})
        world.settle()
        assert (data(there), set(data(here))) == ({"c": {"x": "1"}}, {"b", "c"})


@BOTH
def test_C5_4_with_cleanup_keep_no_copy_is_ever_deleted(origin: str) -> None:
    with related(origin, cleanup="keep") as world:
        here, there = ends(world, origin)
        refer(world, here, "a", "b")
        delete_map(here, "a")
        world.remove("g")
        restart(world)
        world.pass_time(3600)
        assert set(data(there)) == {"a", "b"}


@BOTH
def test_C5_4_when_the_entry_is_gone_the_copy_stays(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        for name in ("a", "b"):
            put_map(here, name, x="1")
        world.add("g", spec={"maps": ["a"], "other": "b"})
        both = [entry(origin), entry(origin, id="other", object={"reference": "/spec/other"})]
        edit_policy(world, related=both)
        assert set(data(there)) == {"a", "b"}
        edit_policy(world, related=both[:1])
        restart(world)
        world.pass_time(3600)
        assert set(data(there)) == {"a", "b"}
        apply_policy(world.robot, related=[])
        world.edit("g", spec={"maps": []})
        world.pass_time(3600)
        assert set(data(there)) == {"a", "b"}
        edit_policy(world, related=both[:1])
        assert set(data(there)) <= {"b"}


@BOTH
@pytest.mark.parametrize("how", ["deleted", "not selected"])
def test_C5_4_a_copy_that_was_about_to_go_stays_too_and_its_deletion_is_awaited_no_more(origin: str, how: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        edit_policy(world, related=[entry(origin), entry(origin, id="other", object=EDGE)])
        put_map(here, "a", x="1")
        put_map(here, "b", labels={"tier": "edge"}, x="1")
        world.add("g", spec={"maps": ["a"]})
        assert set(data(there)) == {"a", "b"}
        refused = world.inject(origin, INTERNAL_ERROR, verb="discover", times=math.inf)
        delete_map(here, "b") if how == "deleted" else put_map(here, "b", labels={}, x="1")
        world.pass_time(5)
        edit_policy(world, related=[entry(origin)], seconds=60)
        refused.times = 0
        world.pass_time(3600)
        assert (set(data(there)), world.status()["reasons"]) == ({"a", "b"}, [])


@BOTH
def test_C5_4_losing_the_database_deletes_no_copy_that_is_referred_to(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        refer(world, here, "a", "b")
        with world.down(kill=True):
            world.lose_database()
            delete_map(here, "b")
            made = len(world.writes)
        world.settle()
        assert (data(there), [write.verb for write in world.writes[made:]]) == ({"a": {"x": "1"}}, ["delete"])


def test_C5_4_an_object_whose_marks_name_the_other_side_is_no_original() -> None:
    with related("cloud") as world:
        refer(world, world.cloud, "a")
        with world.down():
            world.lose_database()
            apply_policy(world.robot, related=[entry("robot")])
        made = len(world.writes)
        world.settle()
        world.pass_time(60)
        assert [str(write) for write in world.writes[made:] if write.resource == "configmaps"] == []
        assert (data(world.cloud), data(world.robot)) == ({"a": {"x": "1"}}, {"a": {"x": "1"}})


def test_C5_4_an_original_that_becomes_a_copy_of_the_other_side_is_none_any_more() -> None:
    with related("robot") as world:
        refer(world, world.robot, "a")
        assert set(data(world.cloud)) == {"a"}
        cluster = world.status()["sides"]["cloud"]["identity"]
        annotate_map(world.robot, "a", {"crsyncer.cloudrobotics.com/upstream-cluster": cluster})
        world.settle()
        assert (data(world.cloud), set(data(world.robot))) == ({}, {"a"})


def test_C5_4_losing_the_database_no_copy_goes_while_the_primaries_cannot_be_listed() -> None:
    with related() as world:
        refer(world, world.cloud, "a")
        with world.down(kill=True):
            world.lose_database()
            rule = refuse_lists(world)
            made = len(world.writes)
        world.pass_time(600)
        assert (data(world.robot), world.writes[made:]) == ({"a": {"x": "1"}}, [])
        assert world.status()["holds"] == []
        put_map(world.cloud, "a", x="2")
        world.weather[Side.CLOUD].rules.remove(rule)
        world.pass_time(120)
        world.settle()
        assert data(world.robot) == {"a": {"x": "2"}}


@BOTH
@pytest.mark.parametrize("kill", [None, False, True])
def test_C5_4_a_copy_that_is_never_deleted_follows_an_original_that_is_made_anew(
    origin: str, kill: bool | None
) -> None:
    with related(origin, cleanup="keep") as world:
        here, there = ends(world, origin)
        refer(world, here, "m")
        uid = maps(there)["m"]["metadata"]["uid"]
        delete_map(here, "m")
        world.settle()
        if kill is not None:
            restart(world, kill=kill)
        for text in ("1", "2"):
            put_map(here, "m", x=text)
            world.settle()
            assert (data(there), maps(there)["m"]["metadata"]["uid"]) == ({"m": {"x": text}}, uid)
            assert maps(there)["m"]["metadata"]["annotations"][UPSTREAM_UID] == maps(here)["m"]["metadata"]["uid"]
        delete_map(here, "m")
        world.settle()
        assert data(there) == {"m": {"x": "2"}}


def test_C5_4_what_is_not_ours_by_the_name_of_a_primary_that_is_gone_keeps_no_related_copy() -> None:
    with related("robot", source="robot") as world:
        put_map(world.robot, "a", x="1")
        world.cut("cloud")
        world.add("g", source="robot", spec={"maps": ["a"]}, seconds=60)
        world.cloud.create("g", spec={"x": 2})
        world.heal("cloud")
        assert data(world.cloud) == {"a": {"x": "1"}}
        world.robot.delete("g")
        world.settle()
        assert (data(world.cloud), world.cloud.objects()["g"]["spec"]) == ({}, {"x": 2})
        assert world.status()["health"] == "healthy"


@pytest.mark.parametrize("entry_first", [False, True])
def test_C1_3_C5_4_copies_stay_when_their_kind_gets_a_policy_of_its_own_however_few(entry_first: bool) -> None:
    own = {"resource": MAPS, "specSource": "cloud", "filter": EDGE}
    with related() as world:
        refer(world, world.cloud, "a", "b")
        put_map(world.cloud, "b", labels={"tier": "edge"}, x="1")
        if entry_first:
            edit_policy(world, related=[])
        put_policy(world.robot, "own", own)
        world.settle()
        for kill in (False, True):
            restart(world, kill=kill)
            assert (set(data(world.robot)), holds(world)) == ({"a", "b"}, [("SelectionChanged", 1)])
        delete_policy(world.robot, "own")
        edit_policy(world, related=[entry()])
        put_map(world.cloud, "a", x="2")
        world.settle()
        assert (data(world.robot)["a"], holds(world)) == ({"x": "2"}, [])


@pytest.mark.parametrize("entry_first", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_C1_3_C5_4_copies_stay_when_their_kind_is_related_instead_of_having_a_policy(
    source: str, entry_first: bool
) -> None:
    with parts(source, start=False) as world:
        up, down = roles(world, source)
        delete_policy(world.robot)
        put_policy(world.robot, "own", {"resource": {"group": GROUP, "resource": "parts"}, "specSource": source})
        for name in "abc":
            up.create(name, kind="parts", spec={"x": 1})
        world.begin("g", spec={"maps": ["a"]})
        for entry_is_there in (entry_first, not entry_first):
            if entry_is_there:
                apply_policy(world.robot, related=[part_entry(source)])
            else:
                delete_policy(world.robot, "own")
            world.settle()
        for kill in (False, True):
            restart(world, kill=kill)
            assert (set(down.objects("parts")), holds(world)) == ({"a", "b", "c"}, [("SelectionChanged", 2)])
        up.set("a", kind="parts", spec={"x": 2})
        release(world)
        world.settle()
        assert (down.objects("parts")["a"]["spec"], set(down.objects("parts"))) == ({"x": 2}, {"a"})
        assert set(up.objects("parts")) == {"a", "b", "c"}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("before", [[], ["m"]])
@BOTH
def test_C5_4_no_edit_has_a_primary_that_is_about_to_go_refer_to_more(
    origin: str, before: list[str], restarted: bool
) -> None:
    with related(origin, cleanup="keep") as world:
        here, there = ends(world, origin)
        edit_policy(world, related=[entry(origin, cleanup="keep")], deletion={"mode": "blocking"})
        for name in ("m", "n"):
            put_map(here, name, x="1")
        world.add("g", spec={"maps": before})
        world.robot.finalize("g", "example.com/wait")
        world.cloud.delete("g")
        world.settle()
        here.set("g", spec={"maps": ["m", "n"]})
        world.settle()
        if restarted:
            restart(world, kill=True)
        assert set(data(there)) == set(before)
        world.robot.finalize("g")
        world.settle()
        assert (world.cloud.objects(), world.robot.objects(), set(data(there))) == ({}, {}, set(before))


@BOTH
def test_C5_4_without_the_store_a_primary_that_is_about_to_go_still_needs_its_related_copies(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        edit_policy(world, related=[entry(origin)], deletion={"mode": "blocking"})
        put_map(here, "m", x="1")
        world.add("g", spec={"maps": ["m"]})
        annotate_map(there, "m", {}, finalizers=["example.com/wait"])
        world.cloud.delete("g")
        world.settle()
        restart(world, kill=True, lost=True)
        assert (set(world.robot.objects()), set(data(there))) == ({"g"}, {"m"})
        annotate_map(there, "m", {}, finalizers=[])
        world.settle()
        assert (world.cloud.objects(), world.robot.objects(), data(there)) == ({}, {}, {})


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("mode", ["async", "blocking"])
@pytest.mark.parametrize("form", [EDGE, {"reference": "/spec/maps/*"}])
@BOTH
def test_C5_4_a_primary_refers_to_nothing_new_once_the_deletion_of_its_copy_is_verified(
    origin: str, form: Json, mode: str, restarted: bool
) -> None:
    with related(origin, object=form, cleanup="keep") as world:
        here, there = ends(world, origin)
        edit_policy(world, related=[entry(origin, object=form, cleanup="keep")], deletion={"mode": mode})
        put_map(here, "m", labels={"tier": "edge"}, x="1")
        world.add("g", spec={"maps": ["m", "n"]})
        world.robot.finalize("g", "example.com/wait")
        world.remove("g")
        if restarted:
            restart(world, kill=True)
        put_map(here, "n", labels={"tier": "edge"}, x="1")
        world.settle()
        assert (set(world.robot.objects()), set(data(there))) == ({"g"}, {"m"})
        world.robot.finalize("g")
        world.settle()
        assert (world.cloud.objects(), world.robot.objects(), set(data(there))) == ({}, {}, {"m"})
        world.add("g", spec={"maps": ["n"]})
        assert set(data(there)) == {"m", "n"}


def test_C5_4_a_primary_whose_copy_is_gone_and_whose_name_somebody_else_has_taken_refers_to_nothing() -> None:
    with related(source="robot") as world:
        put_map(world.cloud, "m", x="1")
        world.add("g", source="robot", spec={"maps": ["m"]})
        assert data(world.robot) == {"m": {"x": "1"}}
        with world.down():
            world.cloud.delete("g")
            world.cloud.create("g", spec={"maps": ["m"]})
        world.settle()
        assert (data(world.robot), holds(world)) == ({}, [("NameTaken", 1)])
        world.cloud.delete("g")
        world.settle()
        assert (data(world.robot), holds(world)) == ({"m": {"x": "1"}}, [])


@pytest.mark.parametrize("count", [1, 8])
def test_C5_4_C1_7_nor_does_one_whose_copy_was_somewhere_else_once_that_is_gone(count: int) -> None:
    with tasks("robot", related=[entry()]) as world:
        names = [f"g{number}" for number in range(count)]
        for name in names:
            put_map(world.cloud, name, x="1")
            world.cloud.create(name, kind=JOB_KIND, spec={})
            world.robot.create(name, spec={"maps": [name]})
        world.settle()
        before = data(world.robot)
        assert set(before) == set(names)
        edit_policy(world, related=[entry()], projection=JOBS, seconds=60)
        if count > 5:
            assert sorted(holds(world)) == [("NameTaken", count), ("SelectionChanged", count)]
            assert (len(world.cloud.objects(TASKS)), data(world.robot)) == (count, before)
            ids = {hold["reason"]: hold["id"] for hold in world.status()["holds"]}
            world.order("release", id=ids["SelectionChanged"])
            world.pass_time(60)
        held = [("MassDeletion", count)] if count > 5 else []  # the primaries stay: too many to go without a human
        assert sorted(holds(world)) == [*held, ("NameTaken", count)]
        assert (world.cloud.objects(TASKS), data(world.robot)) == ({}, before if held else {})


def test_C5_4_S8_3_a_create_without_an_answer_whose_entry_is_gone_keeps_no_restore_from_its_end() -> None:
    with related() as world:
        other = entry(id="other", object={"name": "b"})
        edit_policy(world, related=[entry(), other])
        for name in "ab":
            put_map(world.cloud, name, x="1")
        world.add("g", spec={"maps": []})
        world.inject("robot", Fate.LOST, verb="create", part="/configmaps")
        world.edit("g", spec={"maps": ["a"]}, seconds=2)
        edit_policy(world, related=[other], seconds=120)
        backup = world.cloud.snapshot()
        world.edit("g", spec={"maps": ["a"], "x": 2})
        world.cloud.restore(backup)
        world.settle()
        world.remove("g")
        assert (maps(world.robot), holds(world)) == ({}, [])


def test_C5_4_when_the_entry_is_gone_a_copy_stays_also_whose_create_had_no_answer() -> None:
    with related() as world:
        selector = entry(id="selector", object=EDGE)
        edit_policy(world, related=[entry(), selector])
        world.add("g", spec={})
        world.inject("robot", Fate.REPLY_LOST, verb="create", part="/configmaps")
        world.weather[Side.ROBOT].lag = 5.0
        put_map(world.cloud, "a", labels={"tier": "edge"}, x="1")
        world.pass_time(1)
        with world.down(kill=True):
            apply_policy(world.robot, related=[entry()])
        world.settle()
        assert set(data(world.robot)) == {"a"}
