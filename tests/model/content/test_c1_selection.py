"""C1.7 on virtual time: an edit of a policy's selection leaves no copy behind in silence."""

import math

import pytest

from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.scenes.config_maps import maps, put_map
from tests.model.scenes.policies import apply_policy, edit_policy, with_policy
from tests.model.scenes.selection import BOTH, EDITS, FILTERS, MINE, kind
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, UNAVAILABLE
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.scene import holds, names, redefine, release, restart, roles
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World


@BOTH
@FILTERS
def test_C1_7_few_copies_that_are_not_selected_any_more_go_at_once(source: str, edit: str) -> None:
    with kind(source, few=3) as world:
        up, down = roles(world, source)
        edit_policy(world, **EDITS[edit], seconds=30)
        assert names(down) == {"on 2"}
        assert names(up) == {"on 2", "off 3"}
        assert holds(world) == []
        assert world.status()["health"] == "healthy"
        deletes = [write for write in world.writes if write.verb == "delete"]
        assert len(deletes) == 3
        assert all(write.call.body["preconditions"]["uid"] for write in deletes)


@BOTH
@FILTERS
def test_C1_7_many_are_held_until_somebody_releases_them(source: str, edit: str) -> None:
    with kind(source, few=12) as world:
        _, down = roles(world, source)
        edit_policy(world, **EDITS[edit], seconds=120)
        assert names(down) == {"on 2", "off 12"}
        assert holds(world) == [("SelectionChanged", 12)]
        assert world.status()["health"] == "attention"
        assert [each["code"] for each in world.status()["reasons"]] == ["SelectionChanged"]
        world.add("on9", source=source, spec={"x": 9}, labels={"tier": "edge", **MINE}, seconds=10)
        assert names(down) == {"on 3", "off 12"}
        release(world)
        world.pass_time(30)
        assert names(down) == {"on 3"}
        assert holds(world) == []
        assert world.status()["health"] == "healthy"


@BOTH
@FILTERS
def test_C1_7_undoing_the_edit_ends_the_hold_and_what_was_held_is_followed_again(source: str, edit: str) -> None:
    with kind(source, few=12) as world:
        up, down = roles(world, source)
        edit_policy(world, **EDITS[edit], seconds=60)
        up.set("off3", spec={"x": 77})
        edit_policy(world, seconds=60)
        assert holds(world) == []
        assert names(down) == {"on 2", "off 12"}
        assert down.objects()["off3"]["spec"] == {"x": 77}
        assert not [write for write in world.writes if write.verb == "delete"]
        world.remove("off4", source=source, seconds=30)
        assert "off4" not in down.objects()


@BOTH
def test_C1_7_the_annotation_of_a_kind_without_a_policy_counts_too(source: str) -> None:
    with World(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        up.create("on", spec={"x": 1}, labels=MINE)
        up.create("off", spec={"x": 1})
        down.create("local", spec={"x": 1}, labels={"cloudrobotics.com/robot-name": "another"})
        world.pass_time(1)
        world.robot.annotate_kind({"crsyncer.cloudrobotics.com/orphans": "keep"})
        world.begin()
        world.robot.annotate_kind({"cr-syncer.cloudrobotics.com/filter-by-robot-name": "true"})
        world.pass_time(30)
        assert set(down.objects()) == {"on", "local"}
        assert world.troubles == []


@BOTH
@pytest.mark.parametrize("away", ["upstream", "downstream"])
def test_C1_7_nothing_is_deleted_before_both_sides_have_been_listed(source: str, away: str) -> None:
    with kind(source, few=3) as world:
        up, down = roles(world, source)
        side = (up if away == "upstream" else down).side
        world.cut(side, seconds=5)
        edit_policy(world, **EDITS["selector"], seconds=300)
        assert names(down) == {"on 2", "off 3"}
        world.heal(side, seconds=120)
        assert names(down) == {"on 2"}


@BOTH
def test_C1_7_nothing_is_deleted_before_the_copies_have_been_counted(source: str) -> None:
    with kind(source, few=12) as world:
        _, down = roles(world, source)
        world.weather[down.side].latency = 5.0  # upstream is listed long before downstream
        edit_policy(world, **EDITS["selector"], seconds=120)
        assert names(down) == {"on 2", "off 12"}
        assert holds(world) == [("SelectionChanged", 12)]


@BOTH
def test_C1_7_nothing_is_counted_after_a_watch_has_ended_meanwhile(source: str) -> None:
    with kind(source, few=12) as world:
        up, down = roles(world, source)
        world.weather[down.side].latency = 0.3  # upstream's watch ends while downstream is listed
        world.weather[up.side].latency = 0.6
        world.inject(str(up.side), INTERNAL_ERROR, verb="watch", part="/goals")
        edit_policy(world, **EDITS["selector"], seconds=120)
        assert names(down) == {"on 2", "off 12"}
        assert holds(world) == [("SelectionChanged", 12)]


@BOTH
@FILTERS
def test_C1_7_S8_2_a_copy_that_is_not_selected_any_more_is_no_sign_of_a_restore(source: str, edit: str) -> None:
    with kind(source, few=2) as world:
        up, down = roles(world, source)
        down.set_status("off1", {"n": 1})  # the last event before the edit: no watch with the selector shows it again
        world.pass_time(5)
        edit_policy(world, **EDITS[edit], seconds=8)
        assert (names(down), up.objects()["off1"]["status"]) == ({"on 2"}, {"n": 1})


@pytest.mark.parametrize("first", ["the kind", "the edit"])
def test_C1_7_S5_5_what_went_with_its_kind_is_held_also_where_the_filter_is_edited_meanwhile(first: str) -> None:
    with kind("cloud", few=0, selected=5) as world:
        world.cut("cloud", seconds=20)
        if first == "the edit":
            edit_policy(world, **EDITS["selector"], seconds=20)
        redefine(world)
        world.heal("cloud", seconds=0.05)
        edit_policy(world, **EDITS["selector"], seconds=120)
        assert (names(world.robot), holds(world)) == ({"on 5"}, [("KindMissing", 5)])
        restart(world, kill=True, seconds=120)
        assert (names(world.robot), holds(world)) == ({"on 5"}, [("KindMissing", 5)])
        release(world)
        world.pass_time(60)
        assert (names(world.robot), holds(world)) == (set(), [])


@BOTH
@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.3, 2.0, 4.0])
def test_C1_7_it_survives_a_crash_at_any_moment(source: str, moment: float) -> None:
    with kind(source, few=4) as world:
        _, down = roles(world, source)
        edit_policy(world, **EDITS["byRobotName"], seconds=moment)
        restart(world, kill=True, seconds=90)
        assert names(down) == {"on 2"}
        assert holds(world) == []


@BOTH
def test_C1_7_a_hold_and_its_release_survive_a_crash(source: str) -> None:
    with kind(source, few=12) as world:
        _, down = roles(world, source)
        edit_policy(world, **EDITS["byRobotName"], seconds=30)
        (before,) = world.status()["holds"]
        restart(world, kill=True, seconds=60)
        (after,) = world.status()["holds"]
        assert (after["id"], after["reason"], after["objects"]) == (before["id"], "SelectionChanged", 12)
        assert names(down) == {"on 2", "off 12"}
        world.inject(down.side, Reply(503, {}), verb="delete", times=1000, seconds=20)
        release(world)
        world.pass_time(10)
        restart(world, kill=True, seconds=90)
        assert names(down) == {"on 2"}
        assert holds(world) == []


@BOTH
def test_C1_7_a_copy_that_its_own_finalizer_keeps_goes_later_and_is_not_asked_for_without_end(source: str) -> None:
    with kind(source, few=2) as world:
        _, down = roles(world, source)
        down.finalize("off0", "example.com/mine")
        edit_policy(world, **EDITS["selector"], seconds=620)
        assert set(down.objects()) == {"on0", "on1", "off0"}
        assert len([write for write in world.writes if write.verb == "delete" and write.name == "off0"]) == 1
        [row], [reason] = (world.status()[what] for what in ("kinds", "reasons"))
        assert row["objects"][down.side] == 3
        assert f", goals.{GROUP} default/off0, is not deleted: it waits for its finalizers" in reason["message"]
        down.finalize("off0")
        world.pass_time(120)
        assert (world.status()["kinds"][0]["objects"][down.side], world.status()["reasons"]) == (2, [])


@BOTH
@FILTERS
def test_C1_7_C2_3_few_copies_go_also_where_their_deletion_is_under_way_as_naming_is_edited(
    source: str, edit: str
) -> None:
    with kind(source, few=3) as world:
        _, down = roles(world, source)
        world.inject(str(down.side), UNAVAILABLE, verb="delete", times=math.inf, seconds=20)
        edit_policy(world, **EDITS[edit], seconds=10)
        assert names(down) == {"on 2", "off 3"}
        edit_policy(world, **EDITS[edit], naming={"name": "{name}-{hash}"}, seconds=120)
        assert (names(down), holds(world)) == ({"on 2"}, [])


@BOTH
@FILTERS
@pytest.mark.parametrize("few", [3, 12])
def test_C1_7_S8_3_what_a_restored_cluster_has_again_is_not_left_behind(source: str, edit: str, few: int) -> None:
    with kind(source, few=few) as world:
        _, down = roles(world, source)
        world.pass_time(60)
        backup = down.snapshot()
        edit_policy(world, **EDITS[edit], seconds=60)
        release(world)
        world.pass_time(60)
        assert names(down) == {"on 2"}
        with world.down(kill=True):
            down.restore(backup)
            apply_policy(world.robot, **EDITS[edit])
        world.pass_time(120)
        held = few > 5
        assert holds(world) == ([("SelectionChanged", few)] if held else [])
        assert names(down) == ({"on 2", f"off {few}"} if held else {"on 2"})


@FILTERS
def test_C1_7_S8_4_nor_what_a_robot_has_again_that_boots_and_has_lost_its_last_writes(edit: str) -> None:
    with kind("cloud", few=3) as world:
        backup = world.robot.snapshot()
        edit_policy(world, **EDITS[edit], seconds=60)
        assert names(world.robot) == {"on 2"}
        with world.down(kill=True):
            world.boots += 1
            world.robot.restore(backup)
            apply_policy(world.robot, **EDITS[edit])
            world.robot.others_write(100)  # no revision tells of it any more
        world.pass_time(120)
        assert (holds(world), names(world.robot)) == ([], {"on 2"})


@BOTH
def test_C1_7_an_original_that_is_selected_again_keeps_its_copy(source: str) -> None:
    with kind(source, few=12) as world:
        up, down = roles(world, source)
        uid = down.objects()["off0"]["metadata"]["uid"]
        edit_policy(world, **EDITS["selector"], seconds=30)
        up.label("off0", tier="edge")
        world.pass_time(30)
        assert holds(world) == [("SelectionChanged", 11)]
        assert down.objects()["off0"]["metadata"]["uid"] == uid
        assert down.objects()["off0"]["metadata"]["labels"]["tier"] == "edge"
        release(world)
        world.pass_time(30)
        assert names(down) == {"on 2", "off 1"}


@BOTH
@pytest.mark.parametrize("how", ["killed", "restored"])
def test_C1_7_a_hold_stays_while_anything_is_left_behind_however_few(source: str, how: str) -> None:
    with kind(source, few=6) as world:
        up, down = roles(world, source)
        apply_policy(world.robot, **EDITS["selector"])
        world.pass_time(30)
        (before,) = world.status()["holds"]
        backup = down.snapshot()
        for number in range(3):
            up.label(f"off{number}", tier="edge")
        world.pass_time(30)
        if how == "killed":
            world.crash()
            world.start()
        else:
            down.restore(backup)
        world.pass_time(120)
        assert (holds(world), world.status()["holds"][0]["id"]) == ([("SelectionChanged", 3)], before["id"])
        assert len(down.objects()) == 8
        release(world)
        world.pass_time(60)
        assert (len(down.objects()), holds(world)) == (5, [])


@BOTH
def test_C1_7_the_hold_ends_once_nothing_is_left_behind(source: str) -> None:
    with kind(source, few=6, selected=1) as world:
        up, _ = roles(world, source)
        edit_policy(world, **EDITS["selector"], seconds=30)
        assert holds(world) == [("SelectionChanged", 6)]
        for number in range(6):
            up.label(f"off{number}", tier="edge")
        world.pass_time(60)
        assert holds(world) == []


def test_C1_7_what_belongs_to_another_robot_or_to_nobody_stays() -> None:
    with kind("robot", few=3) as world:
        stranger = world.cloud.objects()["off0"]
        marks = stranger["metadata"]
        robot = "crsyncer.cloudrobotics.com/robot"
        world.cloud.create(
            "theirs", spec={}, labels=marks["labels"], annotations={**marks["annotations"], robot: "robot-2"}
        )
        world.add("nobodys", spec={})
        edit_policy(world, **EDITS["selector"], seconds=60)
        assert set(world.cloud.objects()) == {"on0", "on1", "theirs", "nobodys"}


def test_C1_7_where_the_cloud_lists_nothing_else_the_store_tells_the_copies() -> None:
    with kind("robot", few=3) as world:

        def asks_for_marks(call: Call) -> bool:
            return call.verb == "list" and "upstream-cluster" in dict(call.query).get("labelSelector", "")

        world.weather[world.cloud.side].rules.append(Rule(asks_for_marks, FORBIDDEN, 10_000))
        edit_policy(world, **EDITS["byRobotName"], seconds=120)
        assert names(world.cloud) == {"on 2"}


# Finalizers


@FILTERS
def test_C1_7_C6_3_originals_that_are_not_selected_any_more_lose_the_finalizer(edit: str) -> None:
    with kind("cloud", few=3, deletion={"mode": "blocking"}) as world:
        assert all(found["metadata"]["finalizers"] for found in world.cloud.objects().values())
        edit_policy(world, **EDITS[edit], deletion={"mode": "blocking"}, seconds=60)
        assert names(world.robot) == {"on 2"}
        kept = {name for name, found in world.cloud.objects().items() if found["metadata"].get("finalizers")}
        assert kept == {"on0", "on1"}


# Related objects


@BOTH
def test_C1_7_C5_4_related_copies_go_with_the_copies_and_not_before(source: str) -> None:
    entry = {
        "id": "maps",
        "origin": source,
        "resource": {"group": "", "resource": "configmaps"},
        "object": {"reference": "/spec/map"},
    }
    with with_policy(kinds={"goals": {"source": source}}, related=[entry]) as world:
        up, down = roles(world, source)
        for number in range(8):
            put_map(up, f"m{number}", a="b")
            up.create(f"off{number}", spec={"map": f"m{number}"})
        world.begin()
        assert copies(down) == 8
        edit_policy(world, related=[entry], **EDITS["selector"], seconds=120)
        assert holds(world) == [("SelectionChanged", 8)]
        assert copies(down) == 8
        release(world)
        world.pass_time(90)
        assert names(down) == set()
        assert copies(down) == 0


def copies(plane: Plane) -> int:
    """How many copies of ConfigMaps there are."""
    return sum(
        "crsyncer.cloudrobotics.com/upstream-uid" in o["metadata"].get("annotations", {}) for o in maps(plane).values()
    )


@BOTH
@FILTERS
def test_C1_7_S4_1_the_last_status_of_a_copy_that_is_gone_survives_an_edit_made_out_of_sight(
    source: str, edit: str
) -> None:
    with kind(source, few=0) as world:
        up, down = roles(world, source)
        world.stop()
        down.set_status("on1", {"n": 1})
        down.delete("on1")
        edit_policy(world, **EDITS[edit], seconds=1)
        world.start()
        world.pass_time(60)
        assert up.objects()["on1"]["status"] == {"n": 1}
        assert set(down.objects()) == {"on0", "on1"}


@BOTH
def test_C1_7_S4_1_a_status_that_waits_outlives_an_edit_that_selects_its_object_no_more(source: str) -> None:
    with kind(source, few=1) as world:
        up, down = roles(world, source)
        world.weather[up.side].rules.append(Rule(lambda call: call.verb == "patch", UNAVAILABLE, 5))
        down.set_status("off0", {"n": 1})
        world.pass_time(1)
        edit_policy(world, **EDITS["selector"], seconds=120)
        assert (names(down), up.objects()["off0"].get("status")) == ({"on 2"}, {"n": 1})
