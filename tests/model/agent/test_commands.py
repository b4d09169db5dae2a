"""What operators order, on virtual time: what is said of an object, and what cannot be done."""

import json
import re

import pytest

from crsyncer.errors import SyncError
from tests.console.report_kit import CONTRACT, shape
from tests.model.simulation.answers import UNAVAILABLE, invalid
from tests.model.simulation.scene import copy, holds, scene
from tests.model.simulation.world import World
from tests.system.bed import LABEL, ROBOT


def test_S5_3_a_taken_name_is_shown_and_cannot_be_released() -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.robot.create("a", spec={"x": 7})
        world.begin("a", labels={LABEL: ROBOT}, seconds=60)
        (hold,) = world.status()["holds"]
        assert (hold["reason"], hold["names"]) == ("NameTaken", ["default/a"])
        with pytest.raises(SyncError, match="cannot be released"):
            world.order("release", id=hold["id"])
        explained = world.order("explain", resource="goals", name="a")
        assert (explained["state"], explained["holds"][0]["id"]) == ("held", hold["id"])
        assert copy(world)["spec"] == {"x": 7}


def test_S5_an_object_that_neither_side_has_is_not_said_to_wait_after_the_watch_was_resumed() -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.begin("a", labels={LABEL: ROBOT})
        world.cut("cloud", seconds=60)
        assert world.order("explain", resource="goals", name="b")["state"] == "waiting"
        world.heal("cloud")
        explained = world.order("explain", resource="goals", name="b")
        assert (explained["state"], explained["objects"]["cloud"]["state"]) == ("not-synced", "absent")


def test_S5_5_a_release_is_of_the_objects_that_were_shown_and_of_no_others() -> None:
    with scene() as world:
        world.begin(*(f"n{number}" for number in range(40)))
        world.order("hold", resource="goals")
        world.remove("n0", "n1")
        hold = world.status()["holds"][0]["id"]
        shown = world.order("release", id=hold, dryRun=True)
        assert shown["names"] == ["default/n0", "default/n1"]
        world.remove("n2")
        with pytest.raises(SyncError, match="has changed since its objects were shown: there are 3 now"):
            world.order("release", id=hold, shown=shown["shown"])
        world.pass_time(60)
        assert len(world.robot.objects()) == 40
        world.order("release", id=hold, shown=world.order("release", id=hold, dryRun=True)["shown"])
        world.settle()
        assert len(world.robot.objects()) == 37


def test_an_object_in_no_namespace_is_found_whatever_namespace_is_given() -> None:
    with scene(goals={"cluster": True}) as world:
        world.begin("a")
        assert world.order("explain", resource="goals", name="default/a")["state"] == "in-sync"
        world.inject("cloud", invalid(), verb="patch", times=3)
        world.report("a", {"n": 1})
        assert world.order("retry", resource="goals", name="default/a")["revived"]
        world.pass_time(10)
        assert world.order("drop", resource="goals", name="default/a", confirmed=True)["dropped"]


def test_S6_5_whoever_holds_a_kind_is_told_when_a_full_disk_would_lose_the_hold_at_a_restart() -> None:
    with scene() as world:
        world.begin("a", "b")
        world.disk.refuses = True
        assert world.order("hold", resource="goals")["saved"] is False
        world.disk.refuses = False
        world.pass_time(30)
        assert world.order("hold", resource="goals")["saved"] is True
        with world.down(kill=True):
            world.cloud.delete("a")
        world.settle()
        assert (holds(world), set(world.robot.objects())) == ([("Manual", 1)], {"a", "b"})


def test_the_status_of_a_running_agent_has_exactly_the_keys_of_the_contract_and_survives_json() -> None:
    with scene(goals={"filtered": "true"}, reports={}) as world:
        world.robot.create("a", spec={"x": 7})
        world.begin("a", labels={LABEL: ROBOT}, seconds=60)
        content = world.status()
    assert shape(content) == shape(CONTRACT)
    assert json.loads(json.dumps(content)) == content
    assert [kind["resource"] for kind in content["kinds"]] == sorted(kind["resource"] for kind in content["kinds"])
    assert content["sides"]["cloud"]["state"] == "connected"
    assert content["kinds"][0]["objects"] == {"cloud": 1, "robot": 0}  # of robot-1


def test_S3_6_a_refused_copy_can_be_tried_again_but_not_dropped(world: World) -> None:
    world.inject("robot", invalid(), verb="create", part="/goals", times=1_000_000)
    world.add("b")
    (row,) = world.order("pending")["pending"]
    assert (row["what"], row["to"], row["name"]) == ("content", "robot", "b")
    explained = world.order("explain", resource="goals", name="b")
    assert (explained["state"], explained["objects"]["robot"]) == ("refused", {"state": "absent"})
    assert explained["pending"][0]["nextTry"] is not None
    with pytest.raises(SyncError, match="only a status can be dropped"):
        world.order("drop", resource="goals", name="b", confirmed=True)
    world.mend("robot")
    world.order("retry", resource="goals", name="b")
    world.pass_time(2)
    assert (copy(world, "b")["spec"], world.status()["health"]) == ({"x": 1}, "healthy")


def test_S10_explain_shows_why_a_write_fails_until_it_succeeds(world: World) -> None:
    world.inject("robot", UNAVAILABLE, verb="create", part="/goals", times=1_000_000)
    world.add("b", seconds=120)
    explained = world.order("explain", resource="goals", name="b")
    assert (explained["state"], explained["steps"][-1]["rule"]) == ("waiting", "S10")
    assert re.search(r"the next one is at \S+Z: upstream connect error", explained["summary"])
    world.heal("robot", seconds=70)
    explained = world.order("explain", resource="goals", name="b")
    assert (explained["state"], explained["summary"]) == ("in-sync", "there is nothing to do")


def test_S2_2_explain_gives_the_reason_why_an_unlabelled_object_is_not_synced() -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.begin("a")
        explained = world.order("explain", resource="goals", name="a")
        assert explained["state"] == "not-synced"
        assert f"{LABEL}={ROBOT}" in explained["summary"]
        assert "S2.2" in [step["rule"] for step in explained["steps"]]


def test_a_kind_that_is_not_known_is_not_explained_but_an_error(world: World) -> None:
    with pytest.raises(SyncError, match=r"^gaols is not synced: .*; did you mean goals\?$") as caught:
        world.order("explain", resource="gaols", name="a")
    assert caught.value.hint == "synced are: goals.lab.example.com"


def test_a_resync_without_a_side_says_so(world: World) -> None:
    world.cut("cloud", seconds=30)
    begun = world.order("resync")
    world.pass_time(1)
    (kind,) = world.order("progress", resync=begun["resync"])["kinds"]
    assert (kind["state"], "the cloud is offline" in kind["message"]) == ("failed", True)
    with pytest.raises(SyncError, match="is not synced"):
        world.order("resync", resource="maps.lab.example.com")
    assert set(world.robot.objects()) == {"a"}
