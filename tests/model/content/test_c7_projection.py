"""C7 on virtual time: a kind that has other names in the cloud."""

from typing import Any

import pytest

from crsyncer.core.requests.calls import kind_of
from tests.model.scenes.config_maps import put_map
from tests.model.scenes.named import BOTH
from tests.model.scenes.policies import apply_policy, delete_policy, edit_policy, policy_rows
from tests.model.scenes.projected import FLEET, JOB_KIND, JOBS, PROJECTION, TASKS, Pair, projected, serve_jobs
from tests.model.scenes.shapes import setting
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.scene import holds, restart, row, state
from tests.model.simulation.world import World
from tests.system.bed import crd


def versions(world: World, side: str) -> set[str]:
    """The versions in which the agent has asked a side for objects."""
    group, plural = (FLEET, "tasks") if side == "cloud" else ("lab.example.com", "goals")
    kinds = [kind_of(request.call).split("/") for request in world.journal.asked(side)]
    return {kind[1] for kind in kinds if (kind[0], kind[2:]) == (group, [plural])}


@BOTH
def test_C7_a_kind_with_other_names_in_the_cloud_is_synced_both_ways(source: str) -> None:
    with projected(source) as world:
        pair = Pair(world, source)
        pair.up.create("a", spec={"x": 1}, labels={"app": "1"})
        world.begin()
        assert pair.down.objects()["a"]["spec"] == {"x": 1}
        [made] = [write.call.body for write in world.writes if write.verb == "create" and write.name == "a"]
        names = {"cloud": ("lab.example.com/v1", "Goal"), "robot": (f"{FLEET}/v1", "Task")}
        assert (made["apiVersion"], made["kind"]) == names[source]
        pair.down.set_status("a", {"n": 1})
        pair.up.set("a", spec={"x": 2})
        world.settle()
        assert (pair.down.objects()["a"]["spec"], pair.up.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        pair.down.set("a", spec={"x": 9})
        world.pass_time(2)
        assert pair.down.objects()["a"]["spec"] == {"x": 2}
        pair.down.delete("a")
        world.settle()
        assert (pair.down.objects()["a"]["spec"], pair.down.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        pair.up.delete("a")
        world.settle()
        assert (pair.up.objects(), pair.down.objects(), holds(world)) == ({}, {}, [])


def test_C7_status_and_commands_name_the_kind_as_the_robot_does() -> None:
    with projected() as world:
        world.begin("a", kind=TASKS)
        found = row(world)
        assert (found["resource"], found["cloudResource"], found["state"]) == (
            "goals.lab.example.com",
            TASKS,
            "syncing",
        )
        assert found["objects"] == {"cloud": 1, "robot": 1}
        explained = world.order("explain", resource="goals", name="a")
        assert (explained["resource"], explained["state"]) == ("goals.lab.example.com", "in-sync")
        assert [step["text"] for step in explained["steps"] if step["rule"] == "C7"] == [
            f"in the cloud it is {TASKS}, scope Namespaced"
        ]


@BOTH
def test_C7_each_side_is_asked_in_its_own_version_where_both_are_given(source: str) -> None:
    resource = {"group": "lab.example.com", "resource": "goals", "version": "v1"}
    spec = {"resource": resource}
    cloud = {"versions": ("v1", "v2")}
    with projected(
        source, projection=PROJECTION | {"version": "v2"}, cloud=cloud, spec=spec, versions=("v1", "v3")
    ) as world:
        pair = Pair(world, source)
        pair.up.create("a", spec={"x": 1})
        world.begin()
        pair.down.set_status("a", {"n": 1})
        world.settle()
        assert (pair.down.objects()["a"]["spec"], pair.up.objects()["a"]["status"]) == ({"x": 1}, {"n": 1})
        assert (versions(world, "cloud"), versions(world, "robot")) == ({"v2"}, {"v1"})
        restart(world)
        assert (versions(world, "cloud"), versions(world, "robot"), state(world)) == ({"v2"}, {"v1"}, "syncing")


@pytest.mark.parametrize(
    ("given", "cloud", "asked"),
    [
        ({}, ("v1", "v2"), {"v2"}),
        ({}, ("v1", "v9"), {"v1"}),
        ({"version": "v1"}, ("v1", "v2"), {"v1"}),
    ],
)
def test_C7_else_the_version_is_agreed_on_as_ever(given: Any, cloud: tuple[str, ...], asked: set[str]) -> None:
    with projected(projection=PROJECTION | given, cloud={"versions": cloud}, versions=("v1", "v2")) as world:
        world.begin()
        assert (versions(world, "cloud"), versions(world, "robot")) == (asked, asked)


@pytest.mark.parametrize(
    ("given", "found", "words"),
    [
        ({"version": "v2"}, "misconfigured", 'spec.projection.version of SyncPolicy p is "v2"; the robot serves v1'),
        ({"kind": "Job"}, "misconfigured", f"is Job, but the kind of {TASKS} in the cloud is Task"),
        ({"scope": "Cluster"}, "misconfigured", "spec.naming.namespace of SyncPolicy p is not fixed"),
        ({"group": "crsyncer.cloudrobotics.com"}, "misconfigured", "allowed: neither namespaces nor kinds of"),
        ({"group": "", "resource": "namespaces"}, "misconfigured", "allowed: neither namespaces nor kinds of"),
    ],
)
def test_C7_what_cannot_be_followed_is_misconfigured(given: Any, found: str, words: str) -> None:
    with projected(projection=PROJECTION | given) as world:
        world.begin("a", kind=TASKS, seconds=20)
        shown = row(world)
        assert (shown["state"], words in shown["message"]) == (found, True), shown["message"]
        assert world.robot.objects() == {}


def test_C7_two_versions_that_are_not_both_served_do_not_match() -> None:
    spec = {"resource": {"group": "lab.example.com", "resource": "goals", "version": "v1"}}
    with projected(projection=PROJECTION | {"version": "v2"}, cloud={"versions": ("v1",)}, spec=spec) as world:
        world.begin(seconds=20)
        shown = row(world)
        assert shown["state"] == "version-mismatch"
        assert "the robot serves v1, projected to v2; the cloud serves v1" in shown["message"]
        world.cloud.apply(crd(FLEET, plural="tasks", source=None, versions=("v1", "v2")))
        world.pass_time(120)
        assert (state(world), versions(world, "cloud")) == ("syncing", {"v2"})


def test_C7_the_kind_is_the_one_that_discovery_shows() -> None:
    with projected("robot", projection={"group": FLEET, "resource": "tasks"}) as world:
        world.begin("a", source="robot")
        assert [write.call.body["kind"] for write in world.writes if write.verb == "create"] == ["Task"]
        assert set(world.cloud.objects(TASKS)) == {"a"}


@BOTH
def test_C7_where_the_cloud_forbids_discovery_what_is_given_counts(source: str) -> None:
    with projected(source) as world:
        world.inject("cloud", FORBIDDEN, verb="discover", part="/apis/", times=10_000)
        pair = Pair(world, source)
        pair.up.create("a", spec={"x": 1})
        world.begin()
        pair.down.set_status("a", {"n": 1})
        pair.up.set("a", spec={"x": 2})
        world.settle()
        assert (pair.down.objects()["a"]["spec"], pair.up.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})


@BOTH
def test_C7_without_the_cloud_the_agent_knows_the_names_again(source: str) -> None:
    with projected(source, projection={"group": FLEET, "resource": "tasks"}) as world:
        pair = Pair(world, source)
        pair.up.create("a", spec={"x": 1})
        world.begin()
        with world.down():
            world.cut("cloud")
        if source == "cloud":
            world.robot.delete("a")
        else:
            world.robot.set("a", spec={"x": 2})
        world.pass_time(30)
        if source == "cloud":
            assert world.robot.objects()["a"]["spec"] == {"x": 1}
        world.heal("cloud", seconds=60)
        assert pair.down.objects()["a"]["spec"] == ({"x": 1} if source == "cloud" else {"x": 2})
        assert row(world)["cloudResource"] == TASKS


def test_C7_a_crd_that_is_deleted_under_its_name_in_the_cloud_deletes_nothing() -> None:
    with projected() as world:
        world.begin("a", "b", "c", kind=TASKS)
        world.cloud.delete_kind(TASKS)
        world.pass_time(1)
        assert world.cloud.sweep("tasks", group=FLEET)
        world.pass_time(60)
        assert (state(world), set(world.robot.objects())) == ("kind-missing", {"a", "b", "c"})
        world.cloud.apply(crd(FLEET, plural="tasks", source=None))
        world.pass_time(120)
        assert set(world.robot.objects()) == {"a", "b", "c"}
        assert sum(objects for _, objects in holds(world)) == 3


def test_C7_two_kinds_are_not_one_in_the_cloud() -> None:
    with projected() as world:
        world.cloud.create("a", kind=TASKS, spec={"x": 1})
        world.robot.apply(crd("lab.example.com", plural="errands", source=None))
        world.begin()
        edit_policy(world, "q", kind="errands", specSource="cloud", projection=PROJECTION, seconds=5)
        words = f"errands.lab.example.com and goals.lab.example.com are both {TASKS} in the cloud"
        assert {name: found[0] for name, found in policy_rows(world).items()} == {
            "p": "misconfigured",
            "q": "misconfigured",
        }
        assert all(
            sorted(words.split()) == sorted((text or "").split(";")[0].split())
            for _, text in policy_rows(world).values()
        )
        assert set(world.robot.objects("errands")) == set()
        delete_policy(world.robot, "q")
        world.pass_time(5)
        assert (state(world), set(world.robot.objects())) == ("syncing", {"a"})


def test_C7_nothing_is_projected_to_a_kind_that_is_synced_by_itself() -> None:
    with projected(projection={"resource": "errands", "kind": "Errand"}) as world:
        for plane in world.planes.values():
            plane.apply(crd("lab.example.com", plural="errands", source="cloud"))
        world.begin("a", kind="errands", seconds=10)
        assert (state(world), state(world, "errands")) == ("misconfigured", "syncing")
        assert (world.robot.objects(), set(world.robot.objects("errands"))) == ({}, {"a"})
        world.robot.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": None}, kind="errands")
        world.pass_time(10)
        assert (state(world), set(world.robot.objects())) == ("syncing", {"a"})


def test_C7_another_projection_means_other_objects() -> None:
    with projected() as world:
        serve_jobs(world)
        world.cloud.create("a", kind=TASKS, spec={"x": 1})
        world.begin("a", kind=JOB_KIND, spec={"x": 2})
        assert world.robot.objects()["a"]["spec"] == {"x": 1}
        edit_policy(world, projection=JOBS, seconds=20)
        assert world.robot.objects()["a"]["spec"] == {"x": 2}
        world.report("a", {"n": 1})
        assert world.cloud.objects(JOB_KIND)["a"]["status"] == {"n": 1}
        assert "status" not in world.cloud.objects(TASKS)["a"]


def test_C7_a_status_that_waits_does_not_reach_another_object() -> None:
    with projected() as world:
        world.begin("a", kind=TASKS)
        world.cut("cloud")
        world.report("a", {"n": 1}, seconds=5)
        serve_jobs(world)
        edit_policy(world, projection=JOBS, seconds=5)
        world.heal("cloud", seconds=60)
        assert "status" not in world.cloud.objects(TASKS)["a"]
        assert world.status()["outbox"]["deadLetters"] == 0


def test_C7_finalizers_are_on_the_objects_of_the_cloud_and_go_when_the_projection_changes() -> None:
    blocking: dict[str, Any] = {"deletion": {"mode": "blocking"}}
    with projected(spec=blocking) as world:
        serve_jobs(world)
        world.cloud.create("a", kind=TASKS, spec={"x": 1})
        world.begin("a", kind=JOB_KIND)
        kept = ["crsyncer.cloudrobotics.com/robot-robot-1"]
        assert world.cloud.objects(TASKS)["a"]["metadata"]["finalizers"] == kept
        edit_policy(world, projection=JOBS, **blocking, seconds=60)
        assert world.cloud.objects(JOB_KIND)["a"]["metadata"]["finalizers"] == kept
        assert not world.cloud.objects(TASKS)["a"]["metadata"].get("finalizers")
        delete_policy(world.robot)
        world.robot.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": None})
        world.pass_time(60)
        assert not world.cloud.objects(JOB_KIND)["a"]["metadata"].get("finalizers")


def test_C7_what_is_a_secret_in_the_cloud_is_sensitive() -> None:
    secrets = {"group": "", "resource": "secrets", "kind": "Secret"}
    with projected(projection=secrets, spec={"conflict": "keepLocal"}) as world:
        world.begin(seconds=10)
        shown = row(world)
        assert (shown["state"], "keepLocal; allowed for secrets" in shown["message"]) == ("misconfigured", True)


def test_C7_a_kind_that_was_a_secret_in_the_cloud_may_be_another_one_with_other_steps() -> None:
    secrets = {"group": "", "resource": "secrets", "kind": "Secret"}
    with projected(projection=secrets, spec={"filter": {"selector": {"matchLabels": {"tier": "edge"}}}}) as world:
        put_map(world.cloud, "a", labels={"tier": "edge"}, kind="secrets", password="c2VjcmV0")
        world.begin()
        assert list(world.robot.objects()) == ["a"]
        apply_policy(world.robot, projection=PROJECTION, mutations={"down": [setting("new")]})
        world.add("b", kind=TASKS)
        assert world.robot.objects()["b"]["spec"] == {"x": 1, "mode": "new"}
