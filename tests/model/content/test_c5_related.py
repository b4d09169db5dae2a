"""C5 on virtual time: objects that go with a primary."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Side
from tests.model.scenes.config_maps import annotate_map, data, delete_map, maps, put_map, strip_map
from tests.model.scenes.policies import apply_policy, edit_policy, put_policy, serve_policies
from tests.model.scenes.related import BOTH, EDGE, MAPS, ends, entry, refer, related
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import holds, restart, scene
from tests.system.bed import crd


@BOTH
@pytest.mark.parametrize("source", ["cloud", "robot"])
def test_C5_1_what_a_primary_refers_to_arrives_with_it(origin: str, source: str) -> None:
    with related(origin, source=source) as world:
        here, there = ends(world, origin)
        up = world.cloud if source == "cloud" else world.robot
        for name in ("a", "b", "c"):
            put_map(here, name, x=name)
        up.create("g", spec={"maps": ["a", "b"]})
        world.pass_time(3)
        assert data(there) == {"a": {"x": "a"}, "b": {"x": "b"}}
        up.set("g", spec={"maps": ["c", "b", "none"]})
        world.settle()
        assert data(there) == {"b": {"x": "b"}, "c": {"x": "c"}}
        put_map(here, "none", x="late")
        world.pass_time(2)
        assert data(there)["none"] == {"x": "late"}
        assert set(data(here)) == {"a", "b", "c", "none"}


@BOTH
def test_C5_3_a_change_arrives_within_2_s_without_a_change_of_the_primary(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        refer(world, here, "a")
        put_map(here, "a", x="2")
        world.pass_time(2)
        assert data(there) == {"a": {"x": "2"}}
        put_map(there, "a", x="drift")
        world.pass_time(2)
        assert data(there) == {"a": {"x": "2"}}
        delete_map(there, "a")
        world.pass_time(2)
        assert data(there) == {"a": {"x": "2"}}
        restart(world, kill=True)
        put_map(here, "a", x="3")
        world.pass_time(2)
        assert data(there) == {"a": {"x": "3"}}


@pytest.mark.parametrize("plural", ["errands", "tasks"])  # before and after goals by name
def test_C5_3_S7_1_offline_after_a_restart_copies_are_what_their_originals_were(plural: str) -> None:
    own = entry(resource={"group": GROUP, "resource": plural}, object={"reference": "/spec/one"})
    with scene(goals={"source": "cloud"}) as world:
        serve_policies(world.robot)
        for plane in world.planes.values():
            plane.apply(crd(GROUP, plural=plural, source=None))
        apply_policy(world.robot, related=[own])
        world.start()
        for number in range(10):
            world.cloud.create(f"t{number}", kind=plural, spec={"x": number})
            world.cloud.create(f"g{number}", spec={"one": f"t{number}"})
        world.settle()
        world.cut("cloud")
        restart(world, kill=True, seconds=10)
        for number in range(10):
            world.robot.delete(f"t{number}", kind=plural)
        world.pass_time(10)
        assert len(world.robot.objects(plural)) == 10


@BOTH
def test_C5_3_primaries_share_copies(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        put_map(here, "a", x="1")
        world.cloud.create("g", spec={"maps": ["a"]})
        world.add("h", spec={"maps": ["a", "a"]})
        world.remove("g")
        world.pass_time(60)
        assert data(there) == {"a": {"x": "1"}}
        world.remove("h")
        assert (data(there), data(here)) == ({}, {"a": {"x": "1"}})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1], "/spec/maps/* is not a text"),
        (["A b"], '"A b" is not the name'),
        ([f"m{n}" for n in range(101)], "101 of them"),
    ],
)
def test_C5_1_what_cannot_be_told_is_reported_and_the_primary_is_synced(value: Any, said: str) -> None:
    with related() as world:
        refer(world, world.cloud, "a")
        world.edit("g", spec={"maps": value})
        [hold] = world.status()["holds"]
        assert (hold["reason"], said in hold["message"]) == ("RelatedFailed", True)
        assert world.status()["health"] == "attention"
        assert "RelatedFailed" in [reason["code"] for reason in world.status()["reasons"]]
        assert world.robot.objects()["g"]["spec"] == {"maps": value}
        assert data(world.robot) == {"a": {"x": "1"}}
        restart(world)
        assert data(world.robot) == {"a": {"x": "1"}}
        world.edit("g", spec={"maps": []})
        assert (world.status()["holds"], data(world.robot)) == ([], {})


def test_C5_1_a_primary_that_can_be_read_again_still_refers_to_what_it_did() -> None:
    with related() as world:
        refer(world, world.cloud, "a")
        world.edit("g", spec={"maps": [1]})
        restart(world)
        began = world.clock.now
        world.edit("g", spec={"maps": ["a"]})
        assert world.journal.asked("cloud", verb="list", kind="configmaps", since=began) == []


def test_C5_1_C5_2_a_name_may_be_made_of_the_primary() -> None:
    with related(object={"name": "{name}-{/spec/n}"}) as world:
        put_map(world.cloud, "g-1", x="1")
        world.cloud.create("g", spec={"n": 1})
        world.add("h", spec={})
        assert data(world.robot) == {"g-1": {"x": "1"}}
        assert world.status()["holds"] == []


def test_C5_2_the_copy_has_the_name_and_the_namespace_of_the_original() -> None:
    with related() as world:
        for plane in (world.cloud, world.robot):
            plane.make_namespace("other")
        put_map(world.cloud, "a", namespace="other", x="other")
        put_map(world.cloud, "a", x="default")
        world.add("g", namespace="other", spec={"maps": ["a"]})
        assert (data(world.robot), data(world.robot, "other")) == ({}, {"a": {"x": "other"}})


def test_C5_3_with_the_filter_originals_in_the_cloud_need_the_label_of_the_robot() -> None:
    with related(filterByRobotName=True) as world:
        put_map(world.cloud, "a", labels={"cloudrobotics.com/robot-name": "robot-1"}, x="1")
        put_map(world.cloud, "b", x="1")
        world.add("g", spec={"maps": ["a", "b"]})
        assert set(data(world.robot)) == {"a"}


def test_C5_3_with_the_filter_copies_in_the_cloud_get_the_label_of_the_robot() -> None:
    with related("robot", filterByRobotName=True) as world:
        put_map(world.robot, "a", labels={"own": "1"}, x="1")
        world.add("g", spec={"maps": ["a"]})
        labels = maps(world.cloud)["a"]["metadata"]["labels"]
        assert (labels["cloudrobotics.com/robot-name"], labels["own"]) == ("robot-1", "1")


def test_C5_3_a_kind_that_is_synced_by_itself_cannot_be_related() -> None:
    with related() as world:
        put_map(world.cloud, "a", x="1", labels={"tier": "edge"})
        world.add("g", spec={"maps": ["a"]})
        filter_ = {"selector": {"matchLabels": {"tier": "edge"}}}
        put_policy(world.robot, "maps", {"resource": MAPS, "specSource": "cloud", "filter": filter_})
        world.settle()
        [goals] = [row for row in world.status()["kinds"] if row["resource"].startswith("goals")]
        assert goals["state"] == "misconfigured"
        assert "configmaps is synced by itself" in goals["message"]
        assert data(world.robot) == {"a": {"x": "1"}}


def test_C5_3_a_taken_name_on_the_robot_is_adopted_unless_it_is_somebody_elses() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    with related() as world:
        for name in ("free", "owned", "foreign"):
            put_map(world.cloud, name, x="cloud")
            put_map(world.robot, name, x="robot")
        annotate_map(world.robot, "foreign", {"crsyncer.cloudrobotics.com/upstream-cluster": "another"})
        annotate_map(world.robot, "owned", {}, ownerReferences=[owner])
        world.add("g", spec={"maps": ["free", "owned", "foreign"]})
        found = {name: each["x"] for name, each in data(world.robot).items()}
        assert found == {"free": "cloud", "owned": "robot", "foreign": "robot"}
        assert [(hold["reason"], hold["objects"]) for hold in world.status()["holds"]] == [("NameTaken", 2)]


def test_C5_3_C2_5_of_a_filtered_kind_only_what_is_labelled_for_the_robot_is_adopted() -> None:
    mine = {ROBOT_LABEL: ROBOT}
    with related(filterByRobotName=True) as world:
        for name, labels in (("mine", mine), ("local", {}), ("theirs", {ROBOT_LABEL: "robot-2"})):
            put_map(world.cloud, name, labels=mine, x="cloud")
            put_map(world.robot, name, labels=labels, x="robot")
        world.add("g", spec={"maps": ["mine", "local", "theirs"]})
        assert data(world.robot) == {"mine": {"x": "cloud"}, "local": {"x": "robot"}, "theirs": {"x": "robot"}}
        assert holds(world) == [("NameTaken", 2)]
        strip_map(world.robot, "mine")
        world.settle()
        assert maps(world.robot)["mine"]["metadata"]["labels"].items() >= mine.items()


def test_C5_3_a_list_that_shows_other_objects_is_no_sign_of_a_restore() -> None:
    with related() as world:
        for number in range(30):
            put_map(world.cloud, f"m{number}", x="1")
        world.add("g", spec={"maps": ["m1"]})
        world.edit("g", spec={"maps": [f"m{number}" for number in range(20)]})
        world.order("resync", resource="configmaps")
        world.settle()
        assert len(data(world.robot)) == 20
        reports = world.order("events")["events"]
        assert [each for each in reports if "Restored" in str(each)] == []


@BOTH
def test_C5_6_secrets_that_are_related_are_synced_and_never_on_the_disk(origin: str) -> None:
    with related(origin, resource={"group": "", "resource": "secrets"}) as world:
        here, there = ends(world, origin)
        first, second = "aHVudGVyMg==", "c3dvcmRmaXNo"
        put_map(here, "a", kind="secrets", password=first)
        world.add("g", spec={"maps": ["a"]})
        assert data(there, kind="secrets") == {"a": {"password": first}}
        restart(world)
        put_map(here, "a", kind="secrets", password=second)
        world.pass_time(2)
        assert data(there, kind="secrets") == {"a": {"password": second}}
        said = str(world.disk.rows) + str(world.status())
        assert [value in said for value in (first, second)] == [False, False]
        world.remove("g")
        assert (data(there, kind="secrets"), set(data(here, kind="secrets"))) == ({}, {"a"})


def test_C5_1_related_objects_of_a_cluster_scoped_kind_come_also_where_their_kind_came_last() -> None:
    with scene() as world:
        serve_policies(world.robot)
        sites = {"group": GROUP, "resource": "sites"}
        more = {"id": "sites", "origin": "cloud", "resource": sites, "object": {"reference": "/spec/site"}}
        apply_policy(world.robot, related=[more])
        world.begin("a", spec={"site": "s1"})
        for plane in (world.cloud, world.robot):
            plane.apply(crd(GROUP, plural="sites", cluster=True, source=None))
        world.add("s1", "s2", kind="sites", seconds=60)
        assert list(world.robot.objects("sites")) == ["s1"]


def test_C5_1_what_a_kind_shows_after_it_has_stopped_is_read_when_it_runs_again() -> None:
    with related() as world:
        for name in ("m", "n"):
            put_map(world.cloud, name, x="1")
        world.add("a", spec={"maps": ["m"]})
        assert world.life is not None
        kinds = world.life.engine.kinds
        kind = kinds.entries[f"goals.{GROUP}"].kind
        assert kind is not None
        kinds.catalog.related_objects.detach(kind)
        world.add("b", spec={"maps": ["n"]}, seconds=5)
        assert (set(world.robot.objects()), set(data(world.robot))) == ({"a", "b"}, {"m"})
        restart(world)
        world.settle()
        assert set(data(world.robot)) == {"m", "n"}


def test_C5_4_copies_go_also_where_the_policy_was_edited_while_its_primaries_were_read() -> None:
    with related() as world:
        put_map(world.cloud, "m", a="1")
        world.add("a", "b", "c", spec={"maps": ["m"]})
        for hours in range(1, 7):
            edit_policy(world, related=[entry()], deletion={"gracePeriod": f"{hours}h"}, seconds=0.001)
        world.settle()
        for name in "abc":
            world.cloud.set(name, spec={})
        world.pass_time(60)
        assert data(world.robot) == {}


@BOTH
def test_C5_1_a_selector_selects_all_that_it_matches_in_the_namespace(origin: str) -> None:
    with related(origin, object=EDGE) as world:
        here, there = ends(world, origin)
        for plane in (here, there):
            plane.make_namespace("other")
        for name in ("a", "b"):
            put_map(here, name, labels={"tier": "edge"}, x=name)
        put_map(here, "c", labels={"tier": "cloud"}, x="c")
        put_map(here, "a", namespace="other", labels={"tier": "edge"}, x="a")
        world.add("g", spec={})
        assert (data(there), data(there, "other")) == ({"a": {"x": "a"}, "b": {"x": "b"}}, {})
        put_map(here, "a", labels={"tier": "cloud"}, x="a")
        put_map(here, "c", labels={"tier": "edge"}, x="c")
        put_map(here, "d", labels={"tier": "edge"}, x="d")
        world.pass_time(3)
        assert data(there) == {"b": {"x": "b"}, "c": {"x": "c"}, "d": {"x": "d"}}
        made = len(world.writes)
        restart(world)
        world.pass_time(60)
        assert len(world.writes) == made
        with world.down(kill=True):
            delete_map(here, "b")
        world.settle()
        assert set(data(there)) == {"c", "d"}
        world.add("h", spec={})
        world.remove("g")
        assert set(data(there)) == {"c", "d"}
        world.remove("h")
        assert (data(there), set(data(here))) == ({}, {"a", "c", "d"})


def test_C5_1_more_than_100_selected_objects_are_reported() -> None:
    with related(object=EDGE) as world:
        for number in range(100):
            put_map(world.cloud, f"m{number}", labels={"tier": "edge"}, x="1")
        world.add("g", spec={})
        assert (len(data(world.robot)), world.status()["holds"]) == (100, [])
        put_map(world.cloud, "more", labels={"tier": "edge"}, x="1")
        world.settle()
        [hold] = world.status()["holds"]
        assert (hold["reason"], "there are 101 of them; allowed: 100" in hold["message"]) == ("RelatedFailed", True)
        assert len(data(world.robot)) == 100
        world.add("h", spec={})
        assert world.status()["holds"][0]["objects"] == 2
        delete_map(world.cloud, "m1")
        world.settle()
        assert (world.status()["holds"], set(data(world.robot))) == ([], set(data(world.cloud)))


@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_C5_1_C5_6_what_is_selected_stays_after_a_restart(kind: str) -> None:
    with related(object=EDGE, resource={"group": "", "resource": kind}) as world:
        for name in "abcdefg":
            put_map(world.cloud, name, kind=kind, labels={"tier": "edge"}, x="eA==")
        world.add("g", spec={})
        made = len(world.writes)
        restart(world)
        world.pass_time(60)
        assert (set(data(world.robot, kind=kind)), len(world.writes)) == (set("abcdefg"), made)
        put_map(world.cloud, "a", kind=kind, labels={"tier": "x"}, x="eA==")
        world.settle()
        assert set(data(world.robot, kind=kind)) == set("bcdefg")


def test_C5_1_what_is_made_by_hand_under_the_name_of_a_copy_refers_to_nothing() -> None:
    with related("cloud", source="robot", object=EDGE) as world:
        put_map(world.cloud, "a", labels={"tier": "edge"}, x="a")
        world.cloud.create("g", spec={})
        world.add("g", source="robot")
        assert [hold["reason"] for hold in world.status()["holds"]] == ["NameTaken"]
        world.robot.set("g", spec={"x": 2})
        world.edit("g", spec={"y": 1})
        assert (data(world.robot), [row for row in world.disk.rows if row[0] == "reference"]) == ({}, [])
        world.remove("g")
        assert data(world.robot) == {"a": {"x": "a"}}


def test_C5_1_what_is_selected_anew_while_its_list_is_under_way_is_listed_again() -> None:
    with related(object=EDGE) as world:
        put_map(world.cloud, "a", labels={"tier": "edge"}, x="a")
        for number in range(150):
            put_map(world.cloud, f"z{number:03}", x="1")
        world.settle()
        world.weather[Side.CLOUD].latency = 5.0
        world.add("g", spec={}, seconds=26)  # the first of two pages is about to arrive
        world.remove("g", seconds=2)
        world.add("g", spec={}, seconds=600)
        assert data(world.robot) == {"a": {"x": "a"}}
