"""C8.3 and C8.4: changes of a CRD that are held, paused or refused, and what cannot be read."""

import math

import pytest

from crsyncer.core.content.annotations import OBSERVED_GENERATION
from crsyncer.ports import Reply
from tests.model.scenes.apis import (
    GOALS,
    api_row,
    ask,
    change_crd,
    choose,
    crd_on,
    crd_writes,
    drop_crd,
    drop_short_names,
    entries,
    fields_on,
    goals,
    revisions_on,
    serve_apis,
    travelling,
)
from tests.model.scenes.policies import apply_policy, delete_policy, policy_rows, serve_policies
from tests.model.simulation.answers import FORBIDDEN, invalid
from tests.model.simulation.scene import restart, row, state
from tests.model.simulation.storage import copied
from tests.model.simulation.world import World


def test_C8_3_a_field_that_is_gone_is_held_with_its_path_and_undone_finds_the_old_revision_again() -> None:
    with travelling(fields=("x", "y")) as world:
        world.begin(seconds=5)
        world.cloud.create("a", spec={"x": "1", "y": "2"})
        change_crd(world, "x", seconds=30)
        old, new = revisions_on(world, "robot")
        assert (fields_on(world, "robot"), entries(world, "robot")) == ({"x", "y"}, {"goals": old})
        revision, shown, message = api_row(world)
        assert (revision, shown) == (old, "held")
        assert f"{new} is breaking: v1 /spec/y: is gone" in str(message)
        status = world.status()
        assert [(reason["code"], "/spec/y" in reason["message"]) for reason in status["reasons"]] == [("APIHeld", True)]
        assert (status["health"], state(world)) == ("attention", "syncing")
        world.cloud.create("b", spec={"x": "1"})  # objects sync on
        world.settle()
        assert set(world.robot.objects()) == {"a", "b"}
        change_crd(world, "x", "y", seconds=5)
        assert (api_row(world), world.status()["holds"]) == ((old, "current", None), [])
        assert (len(revisions_on(world, "robot")), crd_writes(world, "robot")) == (2, ["create"])
        assert world.status()["health"] == "healthy"


def test_C8_3_a_release_is_for_the_revision_that_was_held() -> None:
    with travelling(fields=("x", "y", "z")) as world:
        world.begin(seconds=5)
        change_crd(world, "x", "y", seconds=5)
        world.cut("robot")
        world.order("release", id=world.status()["holds"][0]["id"])
        change_crd(world, "x", seconds=5)
        world.heal("robot", seconds=60)
        assert fields_on(world, "robot") == {"x", "y", "z"}
        assert "/spec/y: is gone" in str(api_row(world)[2])


def test_C8_3_a_kind_that_starts_anew_does_not_end_the_hold_of_its_crd() -> None:
    with travelling(fields=("x", "y")) as world:
        world.begin(seconds=5)
        change_crd(world, "x", seconds=5)
        before = world.status()["holds"]
        for text, expected in (("maybe", "misconfigured"), ("map", "syncing")):
            world.robot.annotate_kind({OBSERVED_GENERATION: text})
            world.pass_time(10)
            assert (state(world), world.status()["holds"]) == (expected, before)


@pytest.mark.parametrize("way", ["release", "allow"])
def test_C8_3_a_hold_ends_by_a_release_of_that_revision_or_by_allow_breaking(way) -> None:
    with travelling(fields=("x", "y", "z")) as world:
        world.begin(seconds=5)
        change_crd(world, "x", "y", seconds=5)
        (hold,) = world.status()["holds"]
        assert (hold["reason"], hold["resource"]) == ("APIHeld", GOALS)
        assert f"crsyncer holds release {hold['id']}" in hold["hint"]
        if way == "allow":
            ask(world, allowBreaking=True)
        else:
            planned = world.order("release", id=hold["id"], dryRun=True)
            assert "/spec/z" in planned["message"]
            world.pass_time(5)
            assert fields_on(world, "robot") == {"x", "y", "z"}
            assert world.order("release", id=hold["id"])["revision"] == planned["revision"]
        world.pass_time(5)
        assert (fields_on(world, "robot"), world.status()["holds"]) == ({"x", "y"}, [])
        change_crd(world, "x", seconds=5)
        assert fields_on(world, "robot") == ({"x"} if way == "allow" else {"x", "y"})


def test_C8_3_a_hold_keeps_its_id_over_restarts_and_offline() -> None:
    with travelling(fields=("x", "y")) as world:
        world.begin(seconds=5)
        change_crd(world, "x", seconds=5)
        before = world.status()["holds"]
        for kill in (False, True):
            restart(world, kill=kill)
            world.pass_time(10)
            assert world.status()["holds"] == before
        with world.down():
            world.cut("cloud")
        world.pass_time(10)
        assert (world.status()["holds"], api_row(world)[1]) == (before, "held")
        world.order("release", id=before[0]["id"])
        world.heal("cloud", seconds=60)
        assert (fields_on(world, "robot"), world.status()["holds"]) == ({"x"}, [])


def test_C8_4_paused_makes_nothing_new_and_an_entry_edited_by_hand_is_followed() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        change_crd(world, "x", "y", seconds=5)
        old, new = revisions_on(world, "robot")
        ask(world, paused=True)
        change_crd(world, "x", "y", "z", seconds=10)
        assert (revisions_on(world, "robot"), api_row(world)) == ([old, new], (new, "paused", None))
        choose(world, "robot", old)
        world.pass_time(5)
        assert (fields_on(world, "robot"), api_row(world)) == ({"x"}, (old, "paused", None))
        assert entries(world, "robot") == {"goals": old}
        ask(world)
        world.pass_time(5)
        assert (fields_on(world, "robot"), api_row(world)[1]) == ({"x", "y", "z"}, "current")


@pytest.mark.parametrize("revision", ["nonsense", "v0123456789.goals.lab.example.com", 7])
def test_C8_nonsense_in_an_entry_is_held_until_it_is_put_right(revision) -> None:
    with travelling() as world:
        ask(world, paused=True)
        world.begin(seconds=5)
        ask(world)
        world.pass_time(5)
        (name,) = revisions_on(world, "robot")
        ask(world, paused=isinstance(revision, str) and revision.startswith("v0"))
        choose(world, "robot", revision)
        world.pass_time(10)
        assert api_row(world)[1] == "held"
        assert "APIHeld" in [reason["code"] for reason in world.status()["reasons"]]
        assert fields_on(world, "robot") == {"x"}
        choose(world, "robot", name)
        world.pass_time(10)
        assert (api_row(world)[1] in ("current", "paused"), world.status()["holds"]) == (True, [])


def test_C8_4_without_a_crd_at_the_source_or_the_kinds_of_this_section_it_is_unreadable() -> None:
    with World(kinds={"tasks": {}}) as world:
        serve_policies(world.robot)
        ask(world)
        world.begin(seconds=10)
        assert api_row(world) == (None, "unreadable", "the robot does not serve APIRevisions and APISets")
        serve_apis(world.robot)
        world.pass_time(60)
        assert api_row(world) == (None, "unreadable", f"the cloud has no CRD {GOALS}")
        assert (state(world), row(world)["message"]) == (
            "kind-missing",
            "the robot has no CRD of this kind yet",
        )
        assert policy_rows(world)["p"] == ("active", None)
        change_crd(world, "x", seconds=5)
        assert (api_row(world)[1], fields_on(world, "robot")) == ("current", {"x"})


def test_C8_without_the_rights_it_is_unreadable_and_not_tried_too_often() -> None:
    with travelling() as world:
        world.inject("robot", FORBIDDEN, part="/apisets/crsyncer", times=math.inf, seconds=120)
        world.begin(seconds=60)
        assert api_row(world)[1] == "unreadable"
        assert len(world.journal.asked("robot", verb="get", kind="apisets")) <= 6
        world.pass_time(120)
        assert api_row(world)[1] == "current"


def test_C8_what_a_server_refuses_is_held_and_tried_again_when_the_source_changes() -> None:
    with travelling() as world:
        world.inject("robot", invalid(), verb="create", part="/customresourcedefinitions", times=math.inf, seconds=600)
        world.begin(seconds=600)
        assert len(world.journal.asked("robot", verb="create", part="/customresourcedefinitions")) <= 3
        assert (api_row(world)[1], crd_on(world, "robot")) == ("held", None)
        assert [reason["code"] for reason in world.status()["reasons"]] == ["APIHeld", "KindMissing"]
        change_crd(world, "x", "y", seconds=5)
        assert (api_row(world)[1], fields_on(world, "robot")) == ("current", {"x", "y"})


def test_C8_a_lost_database_costs_no_write() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        with world.down():
            world.lose_database()
            written = len(world.writes)
        world.pass_time(60)
        assert (api_row(world)[1], len(world.writes)) == ("current", written)


def test_C8_2_what_the_server_makes_of_a_crd_is_not_fought() -> None:
    with travelling() as world:
        found = goals("x")
        world.cloud.apply(
            {**found, "spec": {**found["spec"], "names": {**found["spec"]["names"], "shortNames": ["g"]}}}
        )
        drop_short_names(world, "robot")
        world.begin(seconds=3600)
        found = crd_on(world, "robot") or {}
        assert (crd_writes(world, "robot"), found["spec"]["names"].get("shortNames")) == (["create"], None)
        restart(world)
        world.robot.annotate_kind({"mine": "yes"})
        world.pass_time(3600)
        assert world.journal.asked("robot", verb="update", part=GOALS) == []


def test_C8_2_a_robot_without_a_name_has_no_api_set_in_the_cloud() -> None:
    with travelling("robot", spec_source="robot", robot="") as world:
        world.begin(seconds=10)
        assert policy_rows(world)["p"][0] == "misconfigured"
        assert world.journal.asked("cloud", kind="apisets") == []


def test_C8_without_a_policy_that_has_the_field_nothing_is_asked_or_loaded() -> None:
    with travelling() as world:
        delete_policy(world.robot)
        apply_policy(world.robot, "q", kind="tasks", specSource="cloud")
        world.begin(seconds=600)
        assert [each for kind in ("apisets", "apirevisions") for each in world.journal.asked(kind=kind)] == []
        assert world.journal.asked("cloud", kind="customresourcedefinitions", verb="watch") == []
        assert {row["api"] for row in world.status()["kinds"]} == {None}


def test_S3_5_C8_2_a_fight_over_a_crd_slows_down() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        for _ in range(120):
            if fields_on(world, "robot") == {"x"}:
                found = crd_on(world, "robot") or {}
                world.robot.apply({**found, "spec": {**found["spec"], "versions": goals()["spec"]["versions"]}})
            world.pass_time(1)
        assert 6 <= len(crd_writes(world, "robot")) <= 10
        assert "somebody keeps changing" in str(api_row(world)[2])
        world.pass_time(180)
        assert (fields_on(world, "robot"), api_row(world)[2]) == ({"x"}, None)


def test_C8_4_a_source_that_may_not_be_read_is_unreadable_and_the_crd_still_follows_its_entry() -> None:
    with travelling() as world:
        world.begin(seconds=5)
        with world.down():
            world.inject("cloud", FORBIDDEN, part="/customresourcedefinitions", times=math.inf, seconds=120)
            drop_crd(world, "robot")
        world.pass_time(10)
        assert (fields_on(world, "robot"), api_row(world)[1]) == ({"x"}, "unreadable")
        assert "the cloud: it is forbidden" in str(api_row(world)[2])
        world.pass_time(240)
        assert api_row(world)[1] == "current"


def test_C8_a_quiet_crd_costs_no_request_but_its_watches() -> None:
    with travelling("robot", spec_source="robot") as world:
        world.begin(seconds=60)
        begun = world.clock.now
        for _ in range(3):
            world.cut("cloud", seconds=30)
            world.heal("cloud", seconds=60)
        for plural in ("apisets", "apirevisions", "customresourcedefinitions"):
            asked = world.journal.asked("cloud", verb="get", kind=plural, since=begun)
            assert [each for each in asked if "PartialObject" not in each.call.accept] == []


@pytest.mark.parametrize("side", ["cloud", "robot"])
def test_C8_what_is_no_crd_ends_nothing_but_this(side) -> None:
    with travelling("cloud" if side == "cloud" else "robot", spec_source=side) as world:
        world.begin(seconds=5)
        raw = copied(crd_on(world, "cloud") or {})
        raw["metadata"]["resourceVersion"] = str(world.cloud.server.storage.revision + 1)
        world.stop()
        for broken in ({**raw, "spec": {"versions": [7]}}, {key: raw[key] for key in ("metadata",)}):
            page = {
                "kind": "List",
                "metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]},
                "items": [broken],
            }
            world.inject("cloud", Reply(200, page), verb="list", part="/customresourcedefinitions", times=2)
            one = f"/customresourcedefinitions/{GOALS}"  # which only the agent of the other direction asks for
            world.inject("cloud", Reply(200, broken), verb="get", part=one, times=2, standing=True)
            world.begin(seconds=60)
            assert world.troubles == []
            world.stop()
        world.begin(seconds=60)
        assert (api_row(world)[1], world.troubles) == ("current", [])
