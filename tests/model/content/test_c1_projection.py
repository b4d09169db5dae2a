"""C1.7 and C7 on virtual time: an edit of a policy's projection leaves no copy behind in silence."""

from typing import Any

import pytest

from crsyncer.ports import Reply
from tests.model.scenes.blocking import LOCAL, MINE, finalizers
from tests.model.scenes.config_maps import annotate_map, data, put_map
from tests.model.scenes.policies import edit_policy
from tests.model.scenes.projected import FLEET, FROM_CLUSTER, JOB_KIND, JOBS, PROJECTION, TASKS, tasks
from tests.model.scenes.related import entry
from tests.model.simulation.scene import holds, names, release, restart
from tests.system.bed import crd

SITES = {"group": FLEET, "resource": "sites", "kind": "Site", "scope": "Cluster"}


def numbered(count: int) -> list[str]:
    """So many names."""
    return [f"a{number}" for number in range(count)]


def test_C1_7_C7_few_copies_of_what_the_cloud_called_otherwise_go() -> None:
    with tasks("cloud", *numbered(3)) as world:
        world.cloud.create("new", kind=JOB_KIND, spec={"x": 1})
        edit_policy(world, projection=JOBS, seconds=60)
        assert set(world.robot.objects()) == {"new"}
        assert len(world.cloud.objects(TASKS)) == 3
        assert holds(world) == []
        assert world.status()["health"] == "healthy"


def test_C1_7_C7_many_are_held_and_the_kind_is_not_missing() -> None:
    with tasks("cloud", *numbered(12)) as world:
        edit_policy(world, projection=JOBS, seconds=120)
        assert names(world.robot) == {"a 12"}
        assert holds(world) == [("SelectionChanged", 12)]
        edit_policy(world, projection=PROJECTION, seconds=60)
        assert holds(world) == []
        assert names(world.robot) == {"a 12"}
        edit_policy(world, projection=JOBS, seconds=60)
        release(world)
        world.pass_time(60)
        assert names(world.robot) == set()
        assert holds(world) == []


def test_C1_7_C7_a_projection_to_what_the_cloud_does_not_serve_deletes_nothing() -> None:
    with tasks("cloud", *numbered(12)) as world:
        edit_policy(world, projection=JOBS | {"resource": "typos", "scope": "Namespaced"}, seconds=120)
        assert names(world.robot) == {"a 12"}
        assert "KindMissing" not in [reason for reason, _ in holds(world)]
        edit_policy(world, projection=PROJECTION, seconds=120)
        assert holds(world) == []
        assert world.status()["health"] == "healthy"


def test_C1_7_C7_other_objects_of_the_same_names_replace_no_more_copies_than_few() -> None:
    with tasks("cloud", *numbered(12)) as world:
        for number in range(12):
            world.cloud.create(f"a{number}", kind=JOB_KIND, spec={"x": -1})
        edit_policy(world, projection=JOBS, seconds=60)
        assert holds(world) == [("SelectionChanged", 12)]
        assert not [write for write in world.writes if write.verb == "delete"]
        release(world)
        world.pass_time(60)
        assert {found["spec"]["x"] for found in world.robot.objects().values()} == {-1}


@pytest.mark.parametrize("count", [3, 12])
def test_C1_7_C7_copies_do_not_stay_in_silence_where_naming_comes_with_a_cloud_kind_without_namespaces(
    count: int,
) -> None:
    keep = {"orphans": "keep"}
    with tasks("cloud", *numbered(count), **keep) as world:
        world.cloud.apply(crd(FLEET, plural="sites", source=None, cluster=True))
        world.robot.create("mine", spec={})
        edit_policy(world, projection=SITES, naming=FROM_CLUSTER, **keep, seconds=120)
        if count > 5:
            assert holds(world) == [("SelectionChanged", count)]
            edit_policy(world, projection=PROJECTION, **keep, seconds=60)
            assert (holds(world), names(world.robot)) == ([], {f"a {count}", "mine 1"})
            edit_policy(world, projection=SITES, naming=FROM_CLUSTER, **keep, seconds=60)
            restart(world, kill=True, seconds=60)
            release(world)
            world.pass_time(60)
        assert (holds(world), names(world.robot)) == ([], {"mine 1"})


@pytest.mark.parametrize("fields", [{}, {"naming": {"name": "{name}"}}])
def test_C1_7_C2_2_a_local_object_is_no_copy_where_naming_comes_with_another_projection(fields: dict[str, Any]) -> None:
    with tasks("cloud", "a", orphans="keep") as world:
        world.robot.create("mine", spec={"x": -1})
        world.settle()
        world.cloud.create("mine", kind=JOB_KIND, spec={"x": 7})
        edit_policy(world, projection=JOBS, **fields, orphans="keep", seconds=60)
        assert world.robot.objects()["mine"]["spec"] == {"x": -1 if fields else 7}
        assert holds(world) == ([("NameTaken", 1)] if fields else [])
        assert "a" not in world.robot.objects()


@pytest.mark.parametrize("count", [3, 12])
def test_C1_7_C7_copies_in_the_cloud_go_from_where_they_were(count: int) -> None:
    with tasks("robot", *numbered(count)) as world:
        marks = world.cloud.objects(TASKS)["a0"]["metadata"]
        annotations = {**marks["annotations"], "crsyncer.cloudrobotics.com/robot": "robot-2"}
        world.cloud.create("theirs", kind=TASKS, spec={}, labels=marks["labels"], annotations=annotations)
        edit_policy(world, projection=JOBS, seconds=60)
        assert len(world.cloud.objects(JOB_KIND)) == count
        if count > 5:
            assert holds(world) == [("SelectionChanged", count)]
            assert names(world.cloud, TASKS) == {f"a {count}", "theirs 1"}
            restart(world, kill=True, seconds=60)
            assert holds(world) == [("SelectionChanged", count)]
            release(world)
            world.pass_time(60)
        assert names(world.cloud, TASKS) == {"theirs 1"}
        assert holds(world) == []
        assert len(world.cloud.objects(JOB_KIND)) == count


def test_C1_7_C7_undoing_it_keeps_the_copies_where_they_were_and_removes_the_new_ones() -> None:
    with tasks("robot", *numbered(12)) as world:
        edit_policy(world, projection=JOBS, seconds=60)
        edit_policy(world, projection=PROJECTION, seconds=120)
        assert holds(world) == []
        assert names(world.cloud, TASKS) == {"a 12"}
        assert names(world.cloud, JOB_KIND) == set()


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1, 0.3, 0.6, 1.0, 2.0, 4.0])
def test_C1_7_C7_copies_in_the_cloud_go_although_the_agent_is_killed(moment: float) -> None:
    with tasks("robot", *numbered(4)) as world:
        edit_policy(world, projection=JOBS, seconds=moment)
        restart(world, kill=True, seconds=90)
        assert names(world.cloud, TASKS) == set()
        assert names(world.cloud, JOB_KIND) == {"a 4"}


def test_C1_7_C7_copies_in_the_cloud_go_although_it_was_away_at_the_edit() -> None:
    with tasks("robot", *numbered(4)) as world:
        world.cut("cloud", seconds=30)
        edit_policy(world, projection=JOBS | {"scope": "Namespaced"}, seconds=30)
        restart(world, kill=True, seconds=30)
        world.heal("cloud", seconds=120)
        assert names(world.cloud, TASKS) == set()
        assert names(world.cloud, JOB_KIND) == {"a 4"}


def test_C1_7_C7_a_final_status_that_waits_for_the_robot_outlives_the_edit() -> None:
    with tasks("robot", *numbered(2)) as world:
        world.inject("robot", Reply(503, {}), verb="patch", part="/goals/", times=1000, seconds=30)
        world.cloud.set_status("a0", {"done": 1}, kind=TASKS)
        world.pass_time(5)
        edit_policy(world, projection=JOBS, seconds=120)
        assert world.robot.objects()["a0"]["status"] == {"done": 1}
        assert names(world.cloud, TASKS) == set()


@pytest.mark.parametrize("origin", ["cloud", "robot"])
@pytest.mark.parametrize("mode", ["async", "blocking"])
@pytest.mark.parametrize("killed", [False, True])
def test_C1_7_C6_3_related_copies_go_before_a_copy_that_stays_where_it_was_as_its_object_goes(
    origin: str, mode: str, killed: bool
) -> None:
    spec: dict[str, Any] = {"related": [entry(origin)], "deletion": {"mode": mode}}
    with tasks("robot", **spec) as world:
        here, there = (world.cloud, world.robot) if origin == "cloud" else (world.robot, world.cloud)
        put_map(here, "m", x="1")
        world.add("a", source="robot", spec={"maps": ["m"]}, seconds=30)
        assert (set(data(there)), set(world.cloud.objects(TASKS))) == ({"m"}, {"a"})
        made = len(world.writes)
        world.robot.delete("a")
        edit_policy(world, projection=JOBS, **spec, seconds=0.5)
        if killed:
            restart(world, kill=True)
        world.pass_time(60)
        gone = [write.resource for write in world.writes[made:] if write.verb == "delete"]
        assert gone == ["configmaps", TASKS]
        assert (world.robot.objects(), world.cloud.objects(TASKS)) == ({}, {})


@pytest.mark.parametrize("taken", [False, True], ids=["free", "taken"])
def test_C1_7_C6_3_with_blocking_an_object_waits_for_its_copy_where_that_was_and_for_related_ones(taken: bool) -> None:
    spec: dict[str, Any] = {"related": [entry("robot")], "deletion": {"mode": "blocking"}}
    with tasks("robot", **spec) as world:
        put_map(world.robot, "m", x="1")
        world.add("a", source="robot", spec={"maps": ["m"]}, seconds=30)
        world.cloud.finalize("a", LOCAL, kind=TASKS)
        annotate_map(world.cloud, "m", {}, finalizers=[LOCAL])
        if taken:  # by somebody else's object, where the copy would be now
            world.cloud.create("a", kind=JOB_KIND, spec={"maps": []})
        world.robot.delete("a")
        edit_policy(world, projection=JOBS, **spec, seconds=120)
        assert "deletionTimestamp" not in world.cloud.objects(TASKS)["a"]["metadata"]
        annotate_map(world.cloud, "m", {}, finalizers=[])
        world.pass_time(120)
        assert (data(world.cloud), finalizers(world.robot)) == ({}, [MINE])
        assert "deletionTimestamp" in world.cloud.objects(TASKS)["a"]["metadata"]
        world.cloud.finalize("a", kind=TASKS)
        world.pass_time(120)
        assert (world.robot.objects(), world.cloud.objects(TASKS)) == ({}, {})
