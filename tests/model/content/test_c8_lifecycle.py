"""C8: the CRD of a kind travels to the other side, by its revision and its entry in the APISet."""

import pytest

from crsyncer.core.apis.revise import revise
from crsyncer.core.content.object_content import ROBOT as MADE_BY
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import API_SETS
from crsyncer.errors import SyncError
from tests.model.scenes.apis import (
    api_row,
    api_set,
    ask,
    change_crd,
    choose,
    crd_on,
    crd_writes,
    delete,
    drop_crd,
    entries,
    fields_on,
    goals,
    put,
    revisions_on,
    serve_apis,
    stores,
    travelling,
)
from tests.model.scenes.policies import apply_policy, delete_policy, edit_policy, policy_rows, ready, serve_policies
from tests.model.scenes.projected import FLEET, JOB_KIND, JOBS, PROJECTION, TASKS
from tests.model.simulation.answers import CONFLICT
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import restart, row, state
from tests.model.simulation.world import World
from tests.system.bed import crd


def test_C8_1_C8_2_the_clouds_crd_comes_to_the_robot_and_its_objects_are_synced() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        name = revise(goals("x")).name
        assert (revisions_on(world, "robot"), entries(world, "robot")) == ([name], {"goals": name})
        assert api_row(world) == (name, "current", None)
        assert fields_on(world, "robot") == {"x"}
        world.add("a", spec={"x": "1"}, seconds=30)
        assert (set(world.robot.objects()), state(world)) == ({"a"}, "syncing")
        world.pass_time(3600)
        assert crd_writes(world, "robot") == ["create"]
        assert row(world)["message"] is None
        assert world.status()["health"] == "healthy"
        assert world.troubles == []


def test_C8_1_C8_2_the_robots_crd_comes_to_the_cloud() -> None:
    with travelling("robot", spec_source="robot") as world:
        world.begin(seconds=5)
        name = revise(goals("x")).name
        assert (revisions_on(world, "cloud"), entries(world, "cloud", f"crsyncer-{ROBOT}")) == ([name], {"goals": name})
        made = crd_on(world, "cloud")
        assert made is not None
        assert made["metadata"]["annotations"] == {MADE_BY: ROBOT}
        world.add("a", source="robot", spec={"x": "1"}, seconds=60)
        assert (set(world.cloud.objects()), state(world)) == ({"a"}, "syncing")
        world.robot.apply(goals("x", "y"))
        world.pass_time(5)
        assert (fields_on(world, "cloud"), crd_writes(world, "cloud")) == ({"x", "y"}, ["create", "update"])
        assert api_row(world)[:2] == (revise(goals("x", "y")).name, "current")
        assert world.troubles == []


def test_C8_1_fifty_edits_in_a_row_make_fifty_revisions_at_most_and_one_crd_write_each() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        for number in range(50):
            world.cloud.apply(goals("x", *(f"f{n}" for n in range(number + 1))))
            world.pass_time(1 if number % 2 else 0.01)
        world.pass_time(10)
        assert fields_on(world, "robot") == fields_on(world, "cloud")
        writes = len(crd_writes(world, "robot"))
        assert 10 < writes <= 51
        assert len(revisions_on(world, "robot")) == writes
        assert world.troubles == []


def test_C8_1_a_version_that_is_picked_but_not_served_is_misconfigured_until_it_is_served() -> None:
    with travelling() as world:
        ask(world, versions=["v1", "v2"])
        world.begin(seconds=10)
        assert (crd_on(world, "robot"), revisions_on(world, "robot")) == (None, [])
        found = row(world)
        said = "v2 cannot be picked; the CRD serves v1"
        assert (found["state"], found["message"]) == ("misconfigured", said)
        assert policy_rows(world)["p"] == ("misconfigured", said)
        assert ready(world.robot)[:2] == ("False", "Misconfigured")
        change_crd(world, "x", versions=("v1", "v2"), seconds=10)
        assert (policy_rows(world)["p"], ready(world.robot)[1]) == (("active", None), "Active")
        assert fields_on(world, "robot", "v2") == {"x"}
        change_crd(world, "x", seconds=10)
        assert (state(world), policy_rows(world)["p"]) == ("misconfigured", ("misconfigured", said))
        assert fields_on(world, "robot", "v2") == {"x"}


def test_C8_1_only_what_is_picked_travels_and_the_storage_version_is_the_best_of_it() -> None:
    with travelling() as world:
        world.cloud.apply(goals("x", versions=("v1", "v2beta1", "v3")))
        ask(world, versions=["v1", "v2beta1"])
        world.begin(seconds=5)
        found = crd_on(world, "robot")
        assert found is not None
        versions = [(each["name"], each["storage"]) for each in found["spec"]["versions"]]
        assert versions == [("v1", True), ("v2beta1", False)]


def test_C8_2_stored_versions_stay_unserved_and_conversion_and_metadata_stay() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        stores(world, "robot", "v1")
        world.robot.annotate_kind({"mine": "yes"})
        found = crd_on(world, "robot")
        assert found is not None
        conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
        world.robot.apply({**found, "spec": {**found["spec"], "conversion": conversion}})
        ask(world, allowBreaking=True)
        change_crd(world, "x", versions=("v2",), seconds=5)
        found = crd_on(world, "robot")
        assert found is not None
        versions = [(each["name"], each["served"], each["storage"]) for each in found["spec"]["versions"]]
        assert versions == [("v2", True, True), ("v1", False, False)]
        assert found["spec"]["conversion"] == conversion
        assert found["metadata"]["annotations"]["mine"] == "yes"
        writes = crd_writes(world, "robot")
        world.pass_time(3600)
        assert crd_writes(world, "robot") == writes


def test_C8_2_entries_of_others_stay_and_a_writer_that_is_faster_costs_nothing() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        found = api_set(world, "robot")
        assert found is not None
        other = {"group": "other", "resource": "others", "revision": "by-hand"}
        put(world, "robot", {**found, "spec": {"apis": [other, *found["spec"]["apis"]]}})
        world.inject("robot", CONFLICT, verb="update", part="/apisets/", times=2)
        change_crd(world, "x", "y", seconds=5)
        assert entries(world, "robot") == {"others": "by-hand", "goals": revise(goals("x", "y")).name}
        assert fields_on(world, "robot") == {"x", "y"}
        assert world.troubles == []


def test_C8_2_the_crd_follows_its_entry_with_the_cloud_absent_since_boot() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        with world.down():
            world.cut("cloud")
            drop_crd(world, "robot")
        world.pass_time(5)
        assert (fields_on(world, "robot"), api_row(world)[1]) == ({"x"}, "current")
        drop_crd(world, "robot")
        world.pass_time(5)
        assert fields_on(world, "robot") == {"x"}
        found = crd_on(world, "robot")
        assert found is not None
        world.robot.apply({**found, "spec": {**goals()["spec"]}})
        world.pass_time(5)
        assert fields_on(world, "robot") == {"x"}
        delete(world, "robot", f"{API_SETS.path}/crsyncer")
        world.pass_time(5)
        assert entries(world, "robot") == {"goals": revise(goals("x")).name}
        assert world.status()["health"] == "offline"


def test_C8_2_an_entry_edited_offline_is_followed_and_merged_again_when_the_cloud_is_back() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        change_crd(world, "x", "y", seconds=5)
        old, new = revisions_on(world, "robot")
        with world.down():
            world.cut("cloud")
        choose(world, "robot", old)
        world.pass_time(5)
        assert (fields_on(world, "robot"), api_row(world)[:2]) == ({"x"}, (old, "current"))
        world.heal("cloud", seconds=60)
        assert (fields_on(world, "robot"), entries(world, "robot")) == ({"x", "y"}, {"goals": new})


def test_C8_2_in_the_cloud_a_crd_of_somebody_else_is_not_changed() -> None:
    with travelling("robot", spec_source="robot") as world:
        world.cloud.apply(goals("z"))
        world.begin(seconds=10)
        assert (fields_on(world, "cloud"), crd_writes(world, "cloud")) == ({"z"}, [])
        assert api_row(world)[:2] == (None, "held")
        reasons = {reason["code"]: reason["message"] for reason in world.status()["reasons"]}
        assert f"was not made by {ROBOT}" in reasons["APIHeld"]
        hold = world.status()["holds"][0]
        with pytest.raises(SyncError, match="cannot be released"):
            world.order("release", id=hold["id"])
        world.robot.apply(goals("z"))
        world.pass_time(10)
        assert (api_row(world)[1], world.status()["holds"]) == ("current", [])
        assert crd_writes(world, "cloud") == []


def test_C8_2_crds_and_revisions_are_never_deleted() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        world.cloud.drop_kind()
        world.pass_time(10)
        assert (fields_on(world, "robot"), api_row(world)[1]) == ({"x"}, "unreadable")
        delete_policy(world.robot)
        world.pass_time(10)
        assert (fields_on(world, "robot"), len(revisions_on(world, "robot"))) == ({"x"}, 1)
        assert world.journal.asked(verb="delete") == []
        assert (row(world), world.troubles) == ({}, [])


def projected_api(source: str, *, own: str) -> World:
    """A world where only the source has the CRD, by its own name `own`; the agent does not run yet."""
    world = World(kinds={"errands": {}})
    serve_policies(world.robot)
    serve_apis(world.planes[Side(source).other])
    plural, _, group = own.partition(".")
    world.planes[Side(source)].apply(crd(group, plural=plural, source=None))
    apply_policy(world.robot, specSource=source, projection=PROJECTION, api={"source": source})
    return world


@pytest.mark.parametrize("source", ["robot", "cloud"])
def test_C8_1_a_crd_travels_to_the_names_of_the_other_side(source: str) -> None:
    own, there = (f"goals.{GROUP}", TASKS) if source == "robot" else (TASKS, f"goals.{GROUP}")
    target, plural = ("cloud", "tasks") if source == "robot" else ("robot", "goals")
    with projected_api(source, own=own) as world:
        world.begin(seconds=10)
        made = crd_on(world, target, there)
        assert made is not None
        assert (made["spec"]["group"], made["spec"]["names"]["plural"]) == (there.partition(".")[2], plural)
        [revision] = revisions_on(world, target)
        assert revision.partition(".")[2] == there
        name = "crsyncer-robot-1" if target == "cloud" else "crsyncer"
        apis = (api_set(world, target, name) or {"spec": {}})["spec"]["apis"]
        assert apis == [{"group": there.partition(".")[2], "resource": plural, "revision": revision}]
        assert api_row(world) == (revision, "current", None)
        world.pass_time(60)
        assert state(world) == "syncing"
        up, down = (world.robot, world.cloud) if source == "robot" else (world.cloud, world.robot)
        up.create("a", kind=own, spec={"x": 1})
        world.settle()
        assert down.objects(there)["a"]["spec"] == {"x": 1}
        before = len(world.writes)
        restart(world)
        assert [write.verb for write in world.writes[before:] if write.verb != "patch"] == []
        assert api_row(world) == (revision, "current", None)


def test_C8_2_a_crd_by_another_projection_is_another_crd() -> None:
    with projected_api("robot", own=f"goals.{GROUP}") as world:
        world.begin(seconds=10)
        edit_policy(world, specSource="robot", projection=JOBS, api={"source": "robot"}, seconds=10)
        made = crd_on(world, "cloud", JOB_KIND)
        assert made is not None
        assert made["spec"]["names"]["kind"] == "Job"
        assert crd_on(world, "cloud", TASKS) is not None
        assert str(api_row(world)[0]).endswith(f".jobs.{FLEET}")
