"""C5.4 on virtual time: what holds the copies of primaries also holds the related copies that they need."""

import math
from typing import Any

import pytest

from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.scenes.config_maps import data, maps, put_map
from tests.model.scenes.policies import apply_policy, edit_policy
from tests.model.scenes.related import BOTH, EDGE, ends, entry, refer, related
from tests.model.simulation.answers import INTERNAL_ERROR, NO_LISTS
from tests.model.simulation.scene import holds, out_of_sight, redefine, refuse_lists, release, restart
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World

GOALS = [f"g{number}" for number in range(8)]
MODES = pytest.mark.parametrize("mode", ["async", "blocking"])


def make_goals(world: World, origin: str, mode: str = "async") -> None:
    """Eight goals, each with a ConfigMap of its own."""
    here, _ = ends(world, origin)
    edit_policy(world, related=[entry(origin)], deletion={"mode": mode})
    for name in GOALS:
        put_map(here, name, x=name)
        world.cloud.create(name, spec={"maps": [name]})
    world.settle()


def delete_goals(world: World) -> None:
    """All goals are deleted upstream."""
    for name in GOALS:
        world.cloud.delete(name)


def uids(world: World, origin: str) -> dict[str, str]:
    """The uids of the related copies."""
    return {name: each["metadata"]["uid"] for name, each in maps(ends(world, origin)[1]).items()}


def assert_held(world: World, origin: str, reason: str, before: dict[str, str]) -> None:
    """The copies of the goals are held, and the related ones stay; also after a restart, and after a long time."""
    for again in (False, True):
        world.pass_time(300)
        assert (reason, len(GOALS)) in holds(world)
        assert set(world.robot.objects()) == set(GOALS)
        assert uids(world, origin) == before
        if not again:
            restart(world, kill=True)


@MODES
@BOTH
@pytest.mark.parametrize("late", [False, True], ids=["in time", "while it is about to go"])
def test_C5_4_a_hold_by_hand_on_primaries_keeps_what_they_refer_to(origin: str, mode: str, late: bool) -> None:
    with related(origin) as world:
        make_goals(world, origin, mode)
        before = uids(world, origin)
        if late:
            side = str(ends(world, origin)[1].side)
            refused = world.inject(side, INTERNAL_ERROR, verb="delete", part="/configmaps", times=math.inf)
            delete_goals(world)
            world.pass_time(5)
            world.order("hold", resource="goals")
            refused.times = 0
        else:
            world.order("hold", resource="goals")
            delete_goals(world)
        assert_held(world, origin, "Manual", before)
        release(world)
        world.pass_time(90)
        assert (world.robot.objects(), world.cloud.objects(), uids(world, origin), holds(world)) == ({}, {}, {}, [])


@BOTH
@pytest.mark.parametrize("what", ["a kind is deleted", "a kind is made anew", "a mass deletion cannot be verified"])
def test_C5_4_what_holds_the_copies_of_primaries_keeps_what_they_refer_to(origin: str, what: str) -> None:
    with related(origin) as world:
        make_goals(world, origin)
        before = uids(world, origin)
        if what == "a kind is deleted":
            world.cloud.drop_kind()
        elif what == "a kind is made anew":
            with out_of_sight(world, "cut"):
                redefine(world)
        else:
            refuse_lists(world)
            delete_goals(world)
        assert_held(world, origin, "MassDeletion" if "mass" in what else "KindMissing", before)


@BOTH
def test_C5_4_a_restore_to_before_the_primaries_keeps_what_their_copies_refer_to(origin: str) -> None:
    with related(origin) as world:
        for name in GOALS:
            put_map(ends(world, origin)[0], name, x=name)
        world.settle()
        backup = world.cloud.snapshot()
        make_goals(world, origin)
        world.cloud.restore(backup)
        world.settle()  # copies that the cloud has lost are made again
        assert_held(world, origin, "Restored", uids(world, origin))
        assert set(uids(world, origin)) == set(GOALS)


@BOTH
@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.9])
def test_C5_4_a_primary_that_is_replaced_within_a_second_keeps_its_related_copies(origin: str, seconds: float) -> None:
    with related(origin) as world:
        make_goals(world, origin)
        before = uids(world, origin)
        world.remove("g0", seconds=seconds)
        world.add("g0", spec={"maps": ["g0"], "x": 2})
        assert world.robot.objects()["g0"]["spec"]["x"] == 2
        assert uids(world, origin) == before


@BOTH
def test_C5_4_a_hold_that_ends_as_the_primaries_are_back_leaves_nothing_behind(origin: str) -> None:
    with related(origin) as world:
        make_goals(world, origin)
        before = uids(world, origin)
        world.order("hold", resource="goals")
        delete_goals(world)
        world.pass_time(60)
        for name in GOALS:
            world.cloud.create(name, spec={"maps": [name]})
        release(world)
        world.settle()
        assert (uids(world, origin), holds(world)) == (before, [])
        delete_goals(world)
        world.pass_time(90)
        assert (world.robot.objects(), uids(world, origin)) == ({}, {})


@BOTH
def test_C5_4_a_primary_that_is_made_anew_takes_nothing_from_the_copy_of_the_former_one(origin: str) -> None:
    with related(origin) as world:
        make_goals(world, origin)
        before = uids(world, origin)
        put_map(ends(world, origin)[0], "other", x="1")
        world.order("hold", resource="goals")
        former = world.robot.objects()["g0"]["metadata"]["uid"]
        world.cloud.delete("g0")
        world.add("g0", spec={"maps": ["other"]})
        for again in (False, True):
            world.pass_time(300)
            assert world.robot.objects()["g0"]["metadata"]["uid"] == former
            assert before.items() <= uids(world, origin).items()
            if not again:
                restart(world, kill=True)
        release(world)
        world.pass_time(90)
        assert world.robot.objects()["g0"]["spec"] == {"maps": ["other"]}
        assert uids(world, origin).keys() == {*before, "other"} - {"g0"}


MANY = [f"m{number}" for number in range(40)]


def make_many(world: World, origin: str) -> None:
    """Forty goals, each with a ConfigMap."""
    for number, name in enumerate(MANY):
        put_map(ends(world, origin)[0], name, labels={"tier": "edge"}, x="1")
        world.cloud.create(f"g{number}", spec={"maps": [name]})
    world.settle()


@BOTH
@pytest.mark.parametrize("typo", ["reference", "selector", "primary"])
def test_C5_4_an_edit_that_wants_most_originals_no_more_is_held_until_it_is_undone(origin: str, typo: str) -> None:
    own: dict[str, Any] = {"object": EDGE} if typo == "selector" else {}
    with related(origin, **own) as world:
        if typo == "primary":
            for name in MANY:
                put_map(ends(world, origin)[0], name, x="1")
            world.add("g", spec={"maps": MANY})
        else:
            make_many(world, origin)
        before = uids(world, origin)
        assert len(before) == 40
        wrong = {
            "selector": {"selector": {"matchLabels": {"tier": "egde"}}},
            "reference": {"reference": "/spec/mpas/*"},
        }
        if typo == "primary":
            world.cloud.set("g", spec={"mpas": MANY})
        else:
            apply_policy(world.robot, related=[entry(origin, object=wrong[typo])])
        world.pass_time(120)
        assert (holds(world), uids(world, origin)) == ([("MassDeletion", 40)], before)
        [reason] = world.status()["reasons"]  # and none that says it was done
        assert (reason["code"], "undo it" in reason["hint"]) == ("MassDeletion", True)
        restart(world, kill=True)
        world.pass_time(120)
        assert (holds(world), uids(world, origin)) == ([("MassDeletion", 40)], before)
        assert world.status()["health"] == "attention"
        if typo == "primary":
            world.cloud.set("g", spec={"maps": MANY})
        else:
            apply_policy(world.robot, related=[entry(origin, **own)])
        world.pass_time(120)
        assert (holds(world), uids(world, origin)) == ([], before)


@BOTH
def test_C5_4_a_release_deletes_what_an_edit_wants_no_more(origin: str) -> None:
    with related(origin) as world:
        make_many(world, origin)
        edit_policy(world, related=[entry(origin, object={"reference": "/spec/mpas/*"})], seconds=120)
        release(world)
        world.pass_time(30)
        assert (holds(world), data(ends(world, origin)[1])) == ([], {})
        assert set(data(ends(world, origin)[0])) == set(MANY)


@BOTH
def test_C5_4_few_that_are_wanted_no_more_go_at_once_and_related_copies_go_with_many_primaries(origin: str) -> None:
    with related(origin) as world:
        make_many(world, origin)
        for number in range(5):
            world.cloud.set(f"g{number}", spec={"maps": []})
        world.pass_time(10)
        assert (holds(world), len(uids(world, origin))) == ([], 35)
        for number in range(5, 40):
            world.cloud.delete(f"g{number}")
        world.pass_time(60)
        assert (holds(world), uids(world, origin)) == ([], {})


@BOTH
def test_C6_3_an_object_that_cannot_be_read_does_not_hold_up_the_end_of_another_one(origin: str) -> None:
    with related(origin) as world:
        make_goals(world, origin, "blocking")
        with world.down(kill=True):
            world.lose_database()
            for name in ("g0", "g1"):
                (world.cloud if origin == "cloud" else world.robot).set(name, spec={"maps": [1]})
                world.cloud.set(name, spec={"maps": [1]})
        world.settle()
        for name in ("g1", "g2"):
            world.cloud.delete(name)
        world.pass_time(60)
        assert set(world.cloud.objects()) == set(world.robot.objects()) == set(GOALS) - {"g1", "g2"}
        assert {"g0", "g1"} <= set(uids(world, origin))


@BOTH
def test_C5_1_S9_5_an_original_that_cannot_be_read_delays_no_other_one_and_is_reported(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        names = [f"m{number}" for number in range(6)]
        for name in names:
            put_map(here, name, x="1")

        def is_asked(call: Call) -> bool:
            return "metadata.name=m0" in dict(call.query).get("fieldSelector", "")

        rule = Rule(is_asked, INTERNAL_ERROR, math.inf)
        world.weather[Side(origin)].rules.append(rule)
        world.add("g", spec={"maps": names}, seconds=10)
        assert set(data(there)) == set(names[1:])
        assert (holds(world), world.status()["health"]) == ([("RelatedFailed", 1)], "attention")
        assert "default/m0 cannot be read" in world.status()["holds"][0]["message"]
        put_map(here, "m6", x="1")
        world.add("h", spec={"maps": ["m6"]}, seconds=3)
        assert "m6" in data(there)
        world.weather[Side(origin)].rules.remove(rule)
        world.pass_time(120)
        assert (set(data(there)), holds(world)) == ({*names, "m6"}, [])


@BOTH
@pytest.mark.parametrize("answer", NO_LISTS)
def test_C5_1_S5_an_answer_that_is_no_list_does_not_show_that_an_original_is_gone(origin: str, answer: Reply) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        put_map(here, "m", x="1")
        world.inject(origin, answer, verb="list", part="/configmaps")
        world.add("g", spec={"maps": ["m"]}, seconds=60)
        assert set(data(there)) == {"m"}


@pytest.mark.parametrize("answer", NO_LISTS)
def test_C5_4_S5_an_answer_that_is_no_list_deletes_no_related_copy(answer: Reply) -> None:
    with related() as world:
        refer(world, world.cloud, "m")
        world.cut("robot")
        world.edit("g", spec={"maps": []}, seconds=5)
        world.inject("cloud", answer, verb="list", part="/configmaps")
        world.edit("g", spec={"maps": ["m"]}, seconds=5)
        world.heal("robot", seconds=120)
        assert [write for write in world.writes if write.verb == "delete"] == []


@BOTH
def test_C5_4_an_edit_by_which_objects_exchange_what_they_refer_to_deletes_nothing(origin: str) -> None:
    with related(origin) as world:
        for number, name in enumerate(GOALS):
            put_map(ends(world, origin)[0], name, x=name)
            world.cloud.create(name, spec={"maps": [name], "others": [GOALS[number - 1]]})
        world.settle()
        before, made = uids(world, origin), len(world.writes)
        edit_policy(world, related=[entry(origin, object={"reference": "/spec/others/*"})], seconds=60)
        deleted = [write.name for write in world.writes[made:] if write.verb == "delete"]
        assert (uids(world, origin), deleted, holds(world)) == (before, [], [])


@BOTH
def test_C5_4_C1_7_related_copies_stay_until_it_is_known_what_edits_that_follow_each_other_leave_behind(
    origin: str,
) -> None:
    with related(origin) as world:
        put_map(ends(world, origin)[0], "m", x="m")
        world.add(*GOALS, spec={"maps": ["m"]})
        before = uids(world, origin)
        assert set(before) == {"m"}
        world.weather[Side.ROBOT].latency = 0.5
        edited: dict[str, Any] = {"related": [entry(origin)], "naming": {"name": "{name}-{hash}"}}
        apply_policy(world.robot, **edited)
        apply_policy(world.robot, **edited, filter={"selector": {"matchLabels": {"tier": "edge"}}})
        assert_held(world, origin, "SelectionChanged", before)


def test_C5_4_S7_1_an_edited_entry_takes_no_reference_from_a_primary_that_is_not_shown_any_more() -> None:
    with related() as world:
        for name in GOALS[:2]:
            put_map(world.cloud, name, x=name)
            world.cloud.create(name, spec={"maps": [name]})
        world.settle()
        before = uids(world, "cloud")
        world.cut("cloud")
        world.cloud.drop_kind()
        edit_policy(world, related=[entry(object={"reference": "/spec/mpas/*"})], seconds=60)
        world.heal("cloud", seconds=120)
        edit_policy(world, related=[entry()], seconds=300)
        assert ("KindMissing", 2) in holds(world)
        assert (set(world.robot.objects()), uids(world, "cloud")) == (set(before), before)


@pytest.mark.parametrize("first", [False, True], ids=["deleted", "changed and deleted"])
def test_C5_4_S7_1_an_edited_entry_takes_no_reference_from_a_primary_that_was_deleted_before(first: bool) -> None:
    with related() as world:
        for name in GOALS[:3]:
            put_map(world.cloud, name, x=name)
            world.cloud.create(name, spec={"maps": [name]})
        world.settle()
        world.order("hold", resource="goals")
        world.cut("cloud")
        if first:
            world.cloud.label("g0", tier="edge")
        world.cloud.delete("g0")
        edit_policy(world, related=[entry(object={"reference": "/spec/mpas/*"})], seconds=60)
        world.heal("cloud", seconds=120)
        assert (set(world.robot.objects()), set(uids(world, "cloud"))) == ({*GOALS[:3]}, {"g0"})
        release(world)
        world.pass_time(60)
        assert (set(world.robot.objects()), uids(world, "cloud")) == ({*GOALS[1:3]}, {})


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("whose", ["entry", "kind"])
def test_C1_7_copies_whose_originals_an_edit_selects_no_more_are_held_and_followed_again(
    whose: str, kill: bool
) -> None:
    before: Json = {"filterByRobotName": False} if whose == "entry" else {}
    edited: Json = {"filterByRobotName": True} if whose == "entry" else {}
    more: Json = {} if whose == "entry" else {"filter": {"byRobotName": True}}
    with related(**before) as world:
        put_map(world.cloud, "a", x="1")
        put_map(world.cloud, "b", x="1")
        for number in range(10):
            world.cloud.create(f"g{number}", spec={"maps": ["a", "b"]})
        world.settle()
        with world.down(kill, kill=True):
            apply_policy(world.robot, related=[entry(**edited)], **more)
        world.pass_time(100)
        held = {(hold["resource"], hold["reason"], hold["objects"]) for hold in world.status()["holds"]}
        assert ("configmaps", "SelectionChanged", 2) in held
        assert (len(world.robot.objects()), set(data(world.robot))) == (10, {"a", "b"})
        put_map(world.cloud, "a", labels={"cloudrobotics.com/robot-name": "robot-1"}, x="2")
        world.settle()
        assert [hold["objects"] for hold in world.status()["holds"] if hold["resource"] == "configmaps"] == [1]
        apply_policy(world.robot, related=[entry(**before)])
        put_map(world.cloud, "b", x="3")
        world.settle()
        assert (data(world.robot), world.status()["holds"]) == ({"a": {"x": "2"}, "b": {"x": "3"}}, [])


def test_C5_3_copies_in_the_cloud_get_the_robots_label_when_their_entry_is_edited() -> None:
    with related("robot", filterByRobotName=False) as world:
        refer(world, world.robot, "a")
        edit_policy(world, related=[entry("robot", filterByRobotName=True)])
        assert maps(world.cloud)["a"]["metadata"]["labels"]["cloudrobotics.com/robot-name"] == "robot-1"
        put_map(world.robot, "a", x="2")
        world.settle()
        assert (data(world.cloud), world.status()["holds"]) == ({"a": {"x": "2"}}, [])
