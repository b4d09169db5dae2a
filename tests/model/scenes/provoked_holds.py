"""What a hold or a kind that is not there waits for, and how the hint ends it."""

import math
from dataclasses import replace

from crsyncer.core.content.annotations import DRIFT, SPEC_SOURCE, SYNCER
from crsyncer.core.model import Side
from tests.model.scenes.apis import fields_on, goals, serve_apis
from tests.model.scenes.config_maps import data, delete_map, put_map
from tests.model.scenes.policies import apply_policy, edit_policy, put_policy, serve_policies
from tests.model.scenes.provoked import CLOUD, FILTERED, HOLDS, MINE, Steps, case, codes, holds_release
from tests.model.scenes.shapes import reshape
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import define, refuse_lists, restart
from tests.model.simulation.storage import Snapshot
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World
from tests.system.bed import crd


def vanish(world: World) -> Rule:
    """Twelve objects vanish while the cloud answers no list, because of a rule."""
    world.add(*(f"g{number}" for number in range(12)), labels=MINE)
    rule = refuse_lists(world)
    world.inject("cloud", INTERNAL_ERROR, verb="get", part="/customresourcedefinitions/", times=math.inf, seconds=1.0)
    for number in range(12):
        world.cloud.delete(f"g{number}")
    world.pass_time(180)
    return rule


@case("IdentityChanged", 12, "crsyncer holds release cloud", metric=CLOUD)
def the_cloud_was_replaced_on_purpose(world: World) -> Steps:
    world.cloud.rebuild()
    world.cloud.apply(crd(GROUP))
    world.add("a", seconds=120)
    yield
    holds_release(world)
    world.pass_time(60)
    assert codes(world) == ["Restored"]  # the copy is of an object of the former cluster
    holds_release(world)


def restored(world: World) -> Snapshot:
    """The cloud goes back to before an object was created; its state before that."""
    backup = world.cloud.snapshot()
    world.add("later")
    newer = world.cloud.snapshot()
    world.cloud.restore(backup)
    world.pass_time(90)
    return newer


def narrowed(world: World) -> None:
    """A policy selects fewer objects than before."""
    serve_policies(world.robot)
    apply_policy(world.robot)
    world.add(*(f"g{number}" for number in range(12)), labels=MINE)
    edit_policy(world, filter={"selector": {"matchLabels": {"tier": "edge"}}}, seconds=60)


@case("SelectionChanged", 12, "undo the edit, and the hold ends", metric=HOLDS)
def the_selection_was_edited_by_mistake(world: World) -> Steps:
    narrowed(world)
    yield
    edit_policy(world, seconds=60)


@case("SelectionChanged", 12, "crsyncer holds release h1 deletes the copies", metric=HOLDS)
def the_selection_was_edited_on_purpose(world: World) -> Steps:
    narrowed(world)
    yield
    holds_release(world)
    world.pass_time(30)
    assert world.robot.objects() == {}


@case("Restored", 12, "restore a newer backup, and the hold ends", metric=HOLDS)
def the_cloud_was_restored_and_there_is_a_newer_backup(world: World) -> Steps:
    newer = restored(world)
    yield
    world.cloud.restore(newer)
    world.pass_time(120)


@case("Restored", 12, "or create again what is still needed, then: crsyncer holds release h1", metric=HOLDS)
def the_cloud_was_restored_and_lacks_an_object_that_is_created_again(world: World) -> Steps:
    restored(world)
    yield
    world.add("later", spec={"x": 2}, seconds=30)
    holds_release(world)
    world.settle()
    assert world.robot.objects()["later"]["spec"] == {"x": 2}


@case("Restored", 12, "crsyncer holds release h1 deletes the other copies", metric=HOLDS)
def the_cloud_was_restored_and_lacks_an_object_that_may_go(world: World) -> Steps:
    restored(world)
    yield
    holds_release(world)
    world.settle()
    assert set(world.robot.objects()) == {"a"}


@case("Manual", 12, "to allow deletions again: crsyncer holds release h1", metric=HOLDS)
def an_operator_holds_every_deletion(world: World) -> Steps:
    world.order("hold", resource="goals")
    world.remove("a", seconds=30)
    yield
    holds_release(world)
    world.settle()
    assert world.robot.objects() == {}


@case("MassDeletion", 12, "if intended: crsyncer holds release h1", metric=HOLDS)
def many_objects_vanish_and_no_list_confirms_it(world: World) -> Steps:
    rule = vanish(world)
    yield
    world.weather[Side.CLOUD].rules.remove(rule)
    holds_release(world)
    world.settle()
    assert set(world.robot.objects()) == {"a"}


@case("MassDeletion", 12, "if not: undo it, and the hold ends", metric=HOLDS)
def many_objects_vanish_by_mistake_and_are_created_again(world: World) -> Steps:
    rule = vanish(world)
    yield
    world.weather[Side.CLOUD].rules.remove(rule)
    world.add(*(f"g{number}" for number in range(12)), spec={"x": 2}, seconds=120)


@case("KindMissing", 12, "which deletes nothing", metric=HOLDS)
def the_robots_crd_was_deleted_on_purpose(world: World) -> Steps:
    world.robot.drop_kind()
    world.pass_time(60)
    yield
    holds_release(world)


@case("AnnotationUnknown", 12, "kubectl annotate crd goals.lab.example.com cr-syncer.cloudrobotics.com/spec-sorce-")
def an_annotation_is_misspelt(world: World) -> Steps:
    world.robot.annotate_kind({SYNCER + "spec-sorce": "cloud"})
    world.pass_time(5)
    yield
    world.robot.annotate_kind({SYNCER + "spec-sorce": None})


@case("CopyNotDeleted", 12, "let the account delete goals.lab.example.com", kinds={"goals": {"source": "robot"}})
def the_account_may_not_delete_what_an_edit_has_left_in_the_cloud(world: World) -> Steps:
    world.cloud.apply(crd("fleet.example.org", plural="tasks", source=None))
    world.add("b", source="robot")
    world.inject("cloud", FORBIDDEN, verb="delete", part="/goals/b", times=math.inf)
    serve_policies(world.robot)
    apply_policy(world.robot, projection={"group": "fleet.example.org", "resource": "tasks", "kind": "Task"})
    world.pass_time(60)
    yield
    world.mend("cloud")
    world.pass_time(60)


@case("RobotRenamed", 0, "set robotName back to robot-1", kinds=FILTERED)
def the_robot_got_another_name_by_mistake(world: World) -> Steps:
    former = world.settings
    with world.down():
        world.settings = replace(former, robot="robot-2")
    world.pass_time(5)
    yield
    with world.down():
        world.settings = former


@case("KindStopped", 0, "kubectl annotate crd goals.lab.example.com cr-syncer.cloudrobotics.com/spec-source=cloud")
def the_annotation_was_removed(world: World) -> Steps:
    world.robot.annotate_kind({SPEC_SOURCE: None})
    world.pass_time(5)
    yield
    world.robot.annotate_kind({SPEC_SOURCE: "cloud"})


@case("MassDeletionDone", 0, "this line ends an hour after it")
def many_objects_were_deleted_on_purpose(world: World) -> Steps:
    world.add(*(f"g{number}" for number in range(12)))
    world.remove(*(f"g{number}" for number in range(12)))
    assert set(world.robot.objects()) == {"a"}
    [told] = [reason["message"] for reason in world.status()["reasons"]]
    assert told.startswith("12 deletions of goals.lab.example.com carried out on the robot at ")
    restart(world, kill=True)
    yield
    world.pass_time(3600)


@case("KindMissing", 12, "restore the CRD and its objects, and the hold ends", metric=HOLDS)
def the_crd_was_deleted_with_its_objects(world: World) -> Steps:
    world.cloud.drop_kind()
    world.pass_time(120)
    yield
    world.cloud.apply(crd(GROUP))
    world.add("a", seconds=600)


@case("KindMissing", 10, "install the CRD on the side that lacks it", kinds={"goals": {}, "tasks": {}})
def a_kind_without_objects_was_never_installed_in_the_cloud(world: World) -> Steps:
    world.cloud.drop_kind("tasks")
    world.pass_time(120)
    yield
    define(world, "cloud", plural="tasks", seconds=120)


@case(
    "NameTaken",
    12,
    "rename or delete the object that has the name",
    metric=HOLDS,
    kinds=FILTERED,
)
def a_local_object_has_the_name(world: World) -> Steps:
    world.robot.create("b", spec={"x": 2})
    world.add("b", labels=MINE, seconds=10)
    yield
    world.robot.delete("b")
    world.pass_time(120)
    assert world.robot.objects()["b"]["spec"] == {"x": 1}


def fight(world: World) -> None:
    """Another writer changes a copy every second, for half a minute."""
    for _ in range(30):
        world.robot.set("a", spec={"x": 9})
        world.pass_time(1)


@case("Contested", 12, "find who changes spec.x of default/a", metric=HOLDS)
def another_writer_changes_a_copy_again_and_again_and_is_stopped(world: World) -> Steps:
    fight(world)
    yield
    world.pass_time(180)


@case("Contested", 12, "annotate the CRD with crsyncer.cloudrobotics.com/drift: keep", metric=HOLDS)
def another_writer_changes_a_copy_again_and_again_and_may(world: World) -> Steps:
    fight(world)
    yield
    world.robot.annotate_kind({DRIFT: "keep"})
    world.pass_time(5)
    fight(world)
    assert world.robot.objects()["a"]["spec"] == {"x": 9}


@case("MutationFailed", 12, "correct the object or the step", metric=HOLDS)
def a_step_fails_on_an_object(world: World) -> Steps:
    serve_policies(world.robot)
    reshape(world, down=[{"path": "/spec/x", "cel": "value + 1"}])
    world.settle()
    world.edit("a", spec={"x": "text"})
    yield
    world.edit("a", spec={"x": 2})
    assert world.robot.objects()["a"]["spec"] == {"x": 3}


@case("SecretUnknown", 10, "connect the robot to the cloud", metric=HOLDS)
def the_copy_of_a_secret_is_gone_after_a_restart_without_the_cloud(world: World) -> Steps:
    serve_policies(world.robot)
    edge = {"tier": "edge"}
    spec = {"resource": {"group": "", "resource": "secrets"}, "filter": {"selector": {"matchLabels": edge}}}
    put_policy(world.robot, "secrets", {**spec, "specSource": "cloud"})
    put_map(world.cloud, "a", labels=edge, kind="secrets", password="eA==")
    world.settle()
    world.cut("cloud")
    with world.down(kill=True):
        delete_map(world.robot, "a", kind="secrets")
    world.pass_time(60)
    yield
    world.heal("cloud", seconds=90)
    assert data(world.robot, kind="secrets") == {"a": {"password": "eA=="}}


def break_crd(world: World) -> None:
    """The cloud's CRD, which the robot's follows, keeps no unknown fields any more."""
    serve_policies(world.robot)
    serve_apis(world.robot)
    edit_policy(world, api={"source": "cloud"}, seconds=10)
    world.cloud.apply(goals("x"))
    world.pass_time(10)


@case("APIHeld", 12, "undo the change of the CRD", metric=HOLDS)
def a_crd_that_travels_breaks_something_and_that_is_undone(world: World) -> Steps:
    break_crd(world)
    yield
    define(world, "cloud", seconds=10)


@case("APIHeld", 12, "to let it pass: crsyncer holds release", metric=HOLDS)
def a_crd_that_travels_breaks_something_on_purpose(world: World) -> Steps:
    break_crd(world)
    yield
    holds_release(world)
    world.pass_time(10)
    assert fields_on(world, "robot") == {"x"}


@case("Duplicate", 12, "delete the one that is not needed", metric=HOLDS)
def somebody_makes_a_second_copy(world: World) -> Steps:
    serve_policies(world.robot)
    edit_policy(world)
    metadata = world.robot.objects()["a"]["metadata"]
    world.robot.create("b", spec={"x": 2}, labels=metadata["labels"], annotations=metadata["annotations"])
    world.settle()
    yield
    world.robot.delete("b")
    world.settle()


@case("RelatedFailed", 12, "correct the object, or spec.related", metric=HOLDS)
def an_object_names_no_related_object(world: World) -> Steps:
    serve_policies(world.robot)
    maps = {"group": "", "resource": "configmaps"}
    named = {"id": "maps", "origin": "cloud", "resource": maps, "object": {"reference": "/spec/map"}}
    apply_policy(world.robot, related=[named])
    world.edit("a", spec={"map": 1})
    yield
    world.edit("a", spec={"map": "m"})


@case(
    "StatusNotAnObject", 12, "correct the controller that writes it", metric=HOLDS, kinds={"goals": {"status": False}}
)
def a_controller_writes_a_text_as_status(world: World) -> Steps:
    world.report("a", "just text", seconds=5)
    yield
    world.robot.set_status("a", {"phase": "DONE"})
