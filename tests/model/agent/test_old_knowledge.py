"""Hazards of a store that is older than the clusters: what it says of upstream may have been overtaken (S5.4)."""

from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import SUBTREE
from crsyncer.core.content.object_content import UPSTREAM_UID
from crsyncer.core.model import Side
from tests.model.scenes.policies import apply_policy, with_policy
from tests.model.scenes.shared import returned, sharing
from tests.model.simulation.answers import UNAVAILABLE
from tests.model.simulation.scene import SOURCES, copy, holds, original, restart, roles, scene, synced
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World

DONE = {"phase": "DONE"}


def uid(world: World) -> str:
    return str(copy(world)["metadata"]["uid"])


def start_with_an_older_store(world: World, cloud: str) -> None:
    """The copy of the second object named a reports DONE while the agent is down; its store knows the first one."""
    world.begin("a")
    with world.down():
        older = replace(world.disk, rows=list(world.disk.rows))
    world.cloud.delete("a")
    world.add("a", spec={"x": 2})
    with world.down():
        world.disk = older
        world.robot.set_status("a", DONE)
        if cloud == "cut":
            world.cut("cloud")
        else:
            world.weather[Side.CLOUD].lag = 0.5
        world.boots += 1


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("cloud", ["cut", "late"])
def test_S5_4_a_copy_of_a_newer_object_than_the_store_knows_is_kept_and_so_is_its_last_status(
    cloud: str, deleted: bool
) -> None:
    for seed in range(6):
        with scene(seed) as world:
            start_with_an_older_store(world, cloud)
            made = uid(world)
            if deleted:
                world.pass_time(0.4)
                world.robot.delete("a")
            world.pass_time(60)
            world.heal("cloud")
            assert (uid(world) == made) is not deleted
            assert (copy(world)["spec"], copy(world)["status"], original(world)["status"]) == ({"x": 2}, DONE, DONE)


def test_S4_1_statuses_that_are_replayed_to_an_older_store_do_not_follow_newer_ones() -> None:
    for seed in range(6):
        with synced(seed) as world:
            older = world.disk.copied()
            for number in (1, 2):
                world.report("a", {"n": number}, seconds=5)
            with world.down(kill=True):
                world.put_back(older)
            world.settle()
            sent = [write.after["status"] for write in world.writes if write.verb == "status" and write.after]
            assert sent[:2] == [{"n": 1}, {"n": 2}]
            assert {"n": 1} not in sent[2:]


@pytest.mark.parametrize("cloud", ["cut", "late"])
@pytest.mark.parametrize("subtree", [None, "robot"])
def test_S4_4_a_copy_that_is_made_anew_after_a_crash_has_the_status_that_was_acknowledged_last(
    cloud: str, subtree: str | None
) -> None:
    for seed in range(6):
        with scene(seed, goals={"status": False, "subtree": subtree}) as world:
            world.begin("a", status={"robot": {"n": 1}})
            world.weather[Side.CLOUD].lag = 3600.0
            world.report("a", {"robot": {"n": 2}}, seconds=5)
            assert original(world)["status"] == {"robot": {"n": 2}}
            with world.down(kill=True):
                world.robot.delete("a")
                world.weather[Side.CLOUD].lag = 2.0
                if cloud == "cut":
                    world.cut("cloud")
            world.pass_time(60)
            assert copy(world)["status"] == {"robot": {"n": 2}}
            world.heal("cloud")
            assert copy(world)["status"] == original(world)["status"] == {"robot": {"n": 2}}


def test_S6_1_content_that_is_newer_than_the_store_knows_is_not_put_back_while_the_watch_is_late() -> None:
    for seed in range(6):
        with scene(seed) as world:
            world.begin("a")
            with world.down():
                older = replace(world.disk, rows=list(world.disk.rows))
            world.edit("a", spec={"x": 2})
            with world.down():
                world.disk = older
                world.weather[Side.CLOUD].lag = 0.5
                version = copy(world)["metadata"]["generation"]
                world.boots += 1
            world.settle()
            assert (copy(world)["spec"], copy(world)["metadata"]["generation"]) == ({"x": 2}, version)


def test_S4_1_a_stored_copy_without_its_row_does_not_go_over_a_newer_status() -> None:
    with synced() as world:
        world.report("a", {"phase": "ONE"})
        before = len(world.disk.rows)
        world.report("a", {"phase": "TWO"}, seconds=1)
        world.report("a", {"phase": "THREE"})
        with world.down(kill=True):
            # The disk has the copy of the second status and nothing later: the agent is killed between the two.
            torn = next(n for n, (part, *_) in enumerate(world.disk.rows) if n >= before and part == "copy")
            del world.disk.rows[torn + 1 :]
            world.disk.durable = len(world.disk.rows)
            world.weather[Side.ROBOT].latency = 2.0
            sent = len(world.writes)
        world.settle()
        assert original(world)["status"] == {"phase": "THREE"}
        assert [str(write) for write in world.writes[sent:]] == []


@pytest.mark.parametrize("first", ["the original", "the uid"])
@pytest.mark.parametrize("forgotten", ["nothing", "the store", "the status"])
def test_S4_1_the_status_of_a_copy_without_its_uid_is_not_that_of_an_object_made_after_its_original(
    first: str, forgotten: str
) -> None:
    with synced() as world:
        if forgotten == "the store":
            restart(world, lost=True)
        if first == "the original":
            world.cloud.delete("a")
        world.robot.annotate("a", {UPSTREAM_UID: None})
        world.robot.set_status("a", {"part": DONE})
        if first == "the uid":
            world.cloud.delete("a")
        if forgotten == "the status":
            world.robot.annotate_kind({SUBTREE: "part"})
        world.add("a", spec={"x": 2})
        assert (copy(world)["spec"], "status" in original(world)) == ({"x": 2}, False)
        world.report("a", {"part": {"phase": "NEW"}})
        assert original(world)["status"] == {"part": {"phase": "NEW"}}


@pytest.mark.parametrize("marked", [False, True], ids=["S4_1", "F10_3"])
@pytest.mark.parametrize("fate", [Fate.REPLY_LOST, Fate.SNAPPED, None], ids=str)
def test_S4_1_what_upstream_has_of_an_unanswered_write_is_no_newer_status(marked: bool, fate: Fate | None) -> None:
    """`fate` None: the agent is killed while it waits for the answer."""
    with sharing(marked=marked) as world:
        world.report("a", {"n": 1})
        world.inject("cloud", fate or Fate.REPLY_LOST, verb="update" if marked else "patch")
        world.report("a", {"n": 2}, seconds=0.3)
        with world.down(fate is None, kill=True):
            world.cut("cloud")
        world.pass_time(40)
        world.report("a", {"n": 3}, seconds=10)
        with world.down(kill=True):
            world.robot.delete("a")
            world.mend("cloud")
        world.settle()
        assert (returned(world) if marked else original(world)["status"]) == {"n": 3}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", ["restored", "made anew"])
def test_C1_7_S8_3_an_edit_also_leaves_copies_behind_that_are_others_than_the_store_knows(
    source: str, how: str
) -> None:
    with with_policy(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        for name in ("on", "off"):
            up.create(name, spec={"x": 1}, labels={"tier": name})
        world.begin()
        backup, before = down.snapshot(), down.objects()
        if how == "restored":
            down.delete("off")
            world.pass_time(30)
        with world.down(kill=True):
            if how == "restored":
                down.restore(backup)
            else:
                down.delete("off")
                down.create("off", **{key: before["off"]["metadata"][key] for key in ("labels", "annotations")})
            apply_policy(world.robot, filter={"selector": {"matchLabels": {"tier": "on"}}})
        world.pass_time(60)
        assert (set(down.objects()), holds(world), world.status()["health"]) == ({"on"}, [], "healthy")


@pytest.mark.parametrize("anew", [False, True])
def test_C1_7_S4_1_a_status_that_waits_is_given_up_where_its_object_was_deleted_behind_the_edit(anew: bool) -> None:
    with with_policy(kinds={"goals": {"source": "cloud"}}) as world:
        world.begin("a")
        world.weather[Side.CLOUD].rules.append(Rule(lambda call: call.verb == "patch", UNAVAILABLE, 5))
        world.report("a", DONE, seconds=1)
        apply_policy(world.robot, filter={"selector": {"matchLabels": {"tier": "on"}}})
        world.pass_time(1)
        world.cloud.delete("a")
        if anew:
            world.cloud.create("a", spec={})
        world.pass_time(60)
        assert [each.get("status") for each in world.cloud.objects().values()] == [None] * anew
        assert (world.robot.objects(), world.status()["outbox"]["depth"]) == ({}, 0)
        assert world.status()["health"] == "healthy"
