"""S5.5 on virtual time: what is held, who is told, what ends a hold by itself, and what a human releases."""

import math

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Side
from crsyncer.core.requests import calls
from crsyncer.errors import SyncError
from crsyncer.ports import Reply
from tests.model.scenes.policies import apply_policy, serve_policies
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import (
    copy,
    crowd,
    define,
    full_lists,
    holds,
    identity,
    original,
    out_of_sight,
    redefine,
    refuse_lists,
    release,
    restart,
    scene,
    state,
)
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World
from tests.system.bed import crd

FINALIZER = "example.com/wait"


# A kind that is gone (S5.5a)


@pytest.mark.fault_16
@pytest.mark.parametrize("how", ["seen", "cut", "down"])
@pytest.mark.parametrize(
    ("count", "rights"), [(2, "everything"), (2, "list and watch"), (2, "no discovery"), (60, "list and watch")]
)
def test_S5_5a_a_kind_that_is_deleted_is_held_whole_and_goes_on_by_itself_when_it_is_back(
    count: int, how: str, rights: str
) -> None:
    with scene() as world:
        names = crowd(world, count, rights)
        world.report(names[0], {"phase": "OLD"})
        match how:
            case "seen":
                world.cloud.drop_kind()
            case "cut":
                world.cut("cloud", seconds=60)
                world.cloud.drop_kind()
                world.connect("cloud")
            case "down":
                with world.down(kill=True):
                    world.cloud.drop_kind()
        world.pass_time(120)
        assert (state(world), holds(world)) == ("kind-missing", [("KindMissing", count)])
        explained = world.order("explain", resource="goals", name=names[0])
        assert (explained["state"], explained["holds"][0]["id"]) == ("held", world.status()["holds"][0]["id"])
        before = identity(world)
        restart(world, kill=True, seconds=120)
        assert identity(world) == before
        # The CRD comes back before its objects do: what it lacks is no wish of anybody.
        world.cloud.apply(crd(GROUP))
        world.add(names[0], spec={"x": 2}, seconds=600)
        assert [each[:2] for each in identity(world)] == [each[:2] for each in before]
        assert holds(world) == [("KindMissing", count - 1)]
        assert set(world.robot.objects()) == set(names)
        assert "status" not in original(world, names[0]), "the old object's status is not the new one's"
        world.add(*names[1:], spec={"x": 2})
        assert (world.status()["health"], holds(world)) == ("healthy", [])
        assert [copy(world, name)["spec"] for name in names] == [{"x": 2}] * count
        world.remove(names[0])
        assert set(world.robot.objects()) == set(names[1:])


@pytest.mark.fault_16
@pytest.mark.parametrize("rights", ["everything", "list and watch"])
def test_S5_5a_a_kind_that_is_only_being_deleted_is_missing_already(rights: str) -> None:
    with scene() as world:
        crowd(world, 2, rights)
        world.cloud.create("kept", spec={"x": 1}, finalizers=[FINALIZER])  # keeps the CRD terminating
        world.settle()
        world.cloud.delete_kind()
        assert not world.cloud.sweep()
        world.pass_time(600)
        assert (set(world.robot.objects()), state(world)) == ({"g000", "g001", "kept"}, "kind-missing")


def test_S5_5a_what_is_held_for_a_missing_kind_is_released_for_good() -> None:
    with World() as world:
        crowd(world, 8)
        with out_of_sight(world, "down"):
            world.cloud.drop_kind()
        world.pass_time(120)
        (hold,) = world.status()["holds"]
        assert world.order("release", id=hold["id"])["objects"] == 8
        world.pass_time(60)
        assert world.robot.objects() == {}
        assert (holds(world), state(world), world.status()["kinds"][0]["held"]) == ([], "kind-missing", 0)
        with pytest.raises(SyncError, match="there is no hold"):
            world.order("release", id=hold["id"])
        world.crash()
        world.start()
        world.cloud.apply(crd(GROUP))
        world.add("g000", spec={"x": 2})
        assert (copy(world, "g000")["spec"], holds(world)) == ({"x": 2}, [])


@pytest.mark.parametrize("restarted", [False, True])
def test_S5_5a_a_missing_kind_is_released_once_the_cloud_has_shown_that_it_serves_no_other_version_of_it(
    restarted: bool,
) -> None:
    with World() as world:
        world.begin("a", "b")
        uids = {name: each["metadata"]["uid"] for name, each in world.robot.objects().items()}
        unanswered = world.inject("cloud", Reply(503, {}), verb="discover", part=f"/apis/{GROUP}", times=math.inf)
        define(world, "cloud", versions=("v2",), seconds=20)
        if restarted:
            restart(world, kill=True, seconds=20)
        assert holds(world) == [("KindMissing", 2)]
        for dry_run in (True, False):
            with pytest.raises(SyncError, match="cannot be released before"):
                world.order("release", id=world.status()["holds"][0]["id"], dryRun=dry_run)
        world.weather[Side.CLOUD].rules.remove(unanswered)
        world.pass_time(60)
        assert state(world) == "version-mismatch"
        define(world, "cloud", versions=("v1", "v2"), storage="v2", seconds=60)
        assert (holds(world), state(world)) == ([], "syncing")
        assert {name: each["metadata"]["uid"] for name, each in world.robot.objects().items()} == uids
        world.cloud.drop_kind()
        world.pass_time(20)
        release(world)
        world.settle()
        assert world.robot.objects() == {}


def test_S5_5a_a_kind_deleted_on_the_robot_costs_no_copy_in_the_cloud() -> None:
    with scene(goals={"source": "robot"}) as world:
        world.begin("a", "b", "c", source="robot")
        world.robot.drop_kind()
        world.pass_time(60)
        assert (state(world), holds(world)) == ("kind-missing", [("KindMissing", 3)])
        define(world, "robot", source="robot", seconds=120)
        assert (set(world.cloud.objects()), holds(world)) == (set("abc"), [("KindMissing", 3)])
        world.add("a", "b", "c", source="robot", spec={"x": 2})
        assert ([copy_["spec"] for copy_ in world.cloud.objects().values()], holds(world)) == ([{"x": 2}] * 3, [])


def test_S5_5a_what_a_kind_made_anew_lacks_is_held_and_once_released_deletions_are_ordinary() -> None:
    with World() as world:
        names = crowd(world, 4)
        with out_of_sight(world, "down"):
            redefine(world, *names[:2])
        world.pass_time(120)
        (hold,) = world.status()["holds"]
        assert (hold["reason"], hold["objects"]) == ("KindMissing", 2)
        world.order("release", id=hold["id"])
        world.settle()
        assert set(world.robot.objects()) == set(names[:2])
        world.remove(*names[:2])
        assert (world.robot.objects(), world.status()["health"]) == ({}, "healthy")


def made_anew_empty(world: World) -> list[str]:
    """Four copies whose kind was made anew out of sight without their objects, which no list has shown yet."""
    names = crowd(world, 4)
    with out_of_sight(world, "down"):
        redefine(world)
        for plane in world.planes.values():
            plane.compact()
        refused = refuse_lists(world)
    world.pass_time(20)
    world.weather[Side.CLOUD].rules.remove(refused)
    return names


@pytest.mark.parametrize("seconds", range(0, 36, 3))
def test_S5_5a_a_copy_that_is_being_made_when_its_kind_is_back_without_its_object_is_held_like_the_others(
    seconds: int,
) -> None:
    """Somebody deleted copies, and what is known is enforced until the new CRD's list shows what came back."""
    with World() as world:
        names = made_anew_empty(world)
        world.weather[Side.ROBOT].latency = 2.0
        world.pass_time(seconds)
        for name in names[2:]:
            world.robot.delete(name)
        world.pass_time(120)
        assert holds(world) == [("KindMissing", len(world.robot.objects()))]
        assert world.journal.asked(verb="delete", kind="goals") == []


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(("fate", "lag"), [(Fate.SNAPPED, 4.0), (Fate.SNAPPED, 15.0), (Fate.LATE, 0.0)])
@pytest.mark.parametrize("seconds", [9, 15, 21, 27])
def test_S5_5a_a_copy_whose_create_was_not_answered_is_held_like_the_others(
    seconds: int, fate: Fate, lag: float, marked: bool
) -> None:
    """As above; but the answer of the create is lost, and the copy is shown, or made, only when its kind is back."""
    with World() as world:
        if marked:
            serve_policies(world.robot)
            apply_policy(world.robot, specSource="cloud")
        names = made_anew_empty(world)
        world.weather[Side.ROBOT].latency, world.weather[Side.ROBOT].lag = 2.0, lag
        world.inject("robot", fate, verb="create", part="/goals", times=2, standing=True)
        world.pass_time(seconds)
        for name in names[2:]:
            world.robot.delete(name)
        world.pass_time(240)
        assert holds(world) == [("KindMissing", len(world.robot.objects()))]
        assert world.journal.asked(verb="delete", kind="goals") == []


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize(("seconds", "unread"), [(0.1, 0.0), (1.0, 0.0), (10.0, 0.0), (0.1, 10.0)])
def test_S5_5a_a_copy_whose_create_was_not_answered_before_a_restart_is_held_like_the_others(
    seconds: float, unread: float, kill: bool
) -> None:
    with World() as world:
        serve_policies(world.robot)
        apply_policy(world.robot, specSource="cloud")
        crowd(world, 2)
        world.inject("robot", Fate.LATE, verb="create", part="/goals", standing=True)
        world.cloud.create("late", spec={"x": 1})
        world.pass_time(0.5)
        redefine(world)
        no = Reply(503, {})  # a pair is not forgotten before its CRD is read
        world.inject("cloud", no, verb="get", part=f"{calls.CRDS}/", times=math.inf, seconds=unread, standing=True)
        world.pass_time(seconds)
        restart(world, kill=kill, seconds=240)
        assert "late" in world.robot.objects(), "its create was carried out"
        assert holds(world) == [("KindMissing", 3)]
        assert world.journal.asked(verb="delete", kind="goals") == []


@pytest.mark.parametrize("count", [2, 20])
def test_S5_5b_where_crds_may_not_be_read_a_kind_made_anew_out_of_sight_is_one_that_was_emptied(count: int) -> None:
    """What remains without the right: many deletions are verified, by a list that shows the objects gone, and done."""
    with World() as world:
        crowd(world, count, "list and watch")
        since = world.clock.now
        with out_of_sight(world, "down"):
            redefine(world)
            world.cloud.compact()
        world.pass_time(120)
        assert (world.robot.objects(), holds(world)) == ({}, [])
        assert len(full_lists(world, "cloud", since)) == (1 if count <= 5 else 2)
        crds = world.journal.asked("cloud", part=f"{calls.CRDS}/", since=since)
        assert len(crds) == len(full_lists(world, "cloud", since)), "who may not read it does not ask for every batch"


@pytest.mark.parametrize("how", ["cut", "crash"])
def test_S8_1_a_kind_whose_crd_was_not_known_yet_is_asked_for_it_when_its_watch_resumes(how: str) -> None:
    with scene() as world:
        unanswered = world.inject("cloud", Fate.LOST, verb="get", part="/customresourcedefinitions/", times=math.inf)
        world.begin("a", seconds=5)
        world.weather[Side.CLOUD].rules.remove(unanswered)
        restart(world, kill=True, seconds=10)
        with out_of_sight(world, how):
            redefine(world)
        world.pass_time(60)
        assert (holds(world), set(world.robot.objects())) == ([("KindMissing", 1)], {"a"})


def test_S5_5a_whether_a_kind_is_alive_is_two_small_requests_a_batch() -> None:
    with scene() as world:
        names = crowd(world, 5)
        since = world.clock.now
        world.remove(*names[:4])
        assert set(world.robot.objects()) == set(names[4:])
        crds = world.journal.asked("cloud", part=f"{calls.CRDS}/", since=since)
        discovery = world.journal.asked("cloud", verb="discover", since=since)
        assert {request.call.accept for request in crds} == {calls.PARTIAL}
        assert 1 <= len(crds) <= 2
        assert 1 <= len(discovery) <= 2


def test_S5_5a_where_discovery_is_forbidden_one_deletion_of_many_costs_a_list() -> None:
    with scene() as world:
        names = crowd(world, 10, "no discovery")
        since = world.clock.now
        world.remove(names[0])
        assert set(world.robot.objects()) == set(names[1:])
        assert len(full_lists(world, "cloud", since)) == 1, "it may be the first of a kind that is being deleted"


def test_S5_5a_where_discovery_is_forbidden_the_last_copies_are_looked_at_after_three_seconds() -> None:
    with scene() as world:
        names = crowd(world, 2, "no discovery")
        since = world.clock.now
        for name in names:
            world.cloud.delete(name)
        world.pass_time(60)
        assert (world.robot.objects(), holds(world)) == ({}, [])
        assert full_lists(world, "cloud", since)[0].sent - since > 2.9


def test_S5_5a_what_is_held_stays_held_when_the_annotations_are_edited() -> None:
    with scene() as world:
        world.begin("a", labels={ROBOT_LABEL: ROBOT})
        redefine(world)
        world.pass_time(60)
        define(world, "robot", filtered="true", seconds=600)
        assert (set(world.robot.objects()), holds(world)) == ({"a"}, [("KindMissing", 1)])


def test_S5_3_what_is_not_synced_any_more_is_not_held_either() -> None:
    with scene(goals={"source": "robot"}) as world:
        world.cloud.create("a", spec={"x": 7})
        world.begin("a", source="robot", seconds=60)
        assert holds(world) == [("NameTaken", 1)]
        define(world, "robot", source="robot", filtered="true", seconds=60)
        assert holds(world) == []


def test_S5_5_a_hold_is_answered_also_where_its_kind_stops_while_deletions_are_under_way() -> None:
    with scene(goals={"source": "robot"}) as world:
        world.begin("a", "b", source="robot")
        world.inject("cloud", Fate.HUNG, verb="delete")
        world.robot.delete("a")
        world.pass_time(1)
        assert world.life is not None
        answer = world.life.order({"command": "hold", "resource": "goals"})
        world.pass_time(0.1)
        assert holds(world) == [("Manual", 0)]
        world.robot.drop_kind()
        world.pass_time(60)
        assert (answer.result()["reason"], answer.result()["saved"]) == ("Manual", True)
        define(world, "robot", source="robot", seconds=60)
        assert answer.result()["id"] in {hold["id"] for hold in world.status()["holds"] if hold["reason"] == "Manual"}


def test_S6_5_a_hold_of_a_newer_version_holds_until_a_human_releases_it() -> None:
    with scene() as world:
        names = crowd(world, 3, "everything")
        world.order("hold", resource="goals")
        world.settle()
        with world.down():
            world.disk.rows = [
                (*row[:3], row[3].replace('"Manual"', '"OfANewerVersion"')) if "kind-holds" in str(row[2]) else row
                for row in world.disk.rows
            ]
            for name in names:
                world.cloud.delete(name)
        world.pass_time(120)
        assert (holds(world), len(world.robot.objects())) == ([("Manual", 3)], 3)
        [hold] = world.status()["holds"]
        world.order("release", id=hold["id"])
        world.settle()
        assert (holds(world), world.robot.objects()) == ([], {})
