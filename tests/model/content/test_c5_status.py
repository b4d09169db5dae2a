"""C5.5 on virtual time: the status of a related object goes to its copy, and nowhere else."""

from typing import Any

import pytest

from crsyncer.core.model import Json, Side
from crsyncer.ports import Reply
from tests.model.scenes.policies import edit_policy
from tests.model.scenes.related import BOTH, diff, ends, explained, part_entry, parts, parts_crd, said
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import restart
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World, Write


def part(plane: Plane, name: str = "a") -> Json | None:
    """The status of a part; None: it has none, or is not there."""
    found = plane.objects("parts").get(name)
    return None if found is None else found.get("status")


def statuses(world: World, since: int = 0) -> list[Write]:
    """The requests by which the agent wrote statuses of parts, also those that were refused."""
    found = [write for write in world.writes[since:] if write.resource.startswith("parts")]
    return [write for write in found if write.call.path.endswith("/status")]


def with_part(world: World, origin: str, status: Any = None) -> tuple[Plane, Plane]:
    """A part, the goal that refers to it, and its copy; the side of the part, and that of the copy."""
    here, there = ends(world, origin)
    here.create("a", kind="parts", spec={"x": 1})
    if status is not None:
        here.set_status("a", status, kind="parts")
    world.add("g", spec={"maps": ["a"]})
    assert there.objects("parts")["a"]["spec"] == {"x": 1}
    return here, there


def start_narrow(world: World) -> None:
    """Start where the robot's schema lets a status have a number only."""
    status = {"type": "object", "properties": {"n": {"type": "integer"}}}
    whole = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"status": status}}
    world.robot.apply(parts_crd(schema=whole))
    world.begin()


@BOTH
def test_C5_5_the_status_goes_to_the_copy_and_one_way_only(origin: str) -> None:
    with parts(origin) as world:
        here, there = with_part(world, origin, {"n": 1})
        assert part(there) == {"n": 1}
        made = len(world.writes)
        for n in (2, 3):
            here.set_status("a", {"n": n}, kind="parts")
            world.pass_time(2)
            assert part(there) == {"n": n}
        assert [write.side for write in statuses(world, made)] == [there.side] * 2
        there.set_status("a", {"n": "theirs"}, kind="parts")
        world.settle()
        assert (part(here), part(there)) == ({"n": 3}, {"n": "theirs"})
        here.set_status("a", {"n": 4}, kind="parts")
        world.pass_time(2)
        assert (part(here), part(there)) == ({"n": 4}, {"n": 4})
        made = len(world.writes)
        restart(world, kill=True)
        assert (len(world.writes), part(there)) == (made, {"n": 4})


@BOTH
def test_C5_5_a_status_that_is_gone_goes_and_one_that_never_was_replaces_none(origin: str) -> None:
    with parts(origin) as world:
        here, there = with_part(world, origin)
        there.set_status("a", {"n": "theirs"}, kind="parts")
        world.settle()
        world.order("resync", resource="parts")
        world.settle()
        assert (part(there), statuses(world)) == ({"n": "theirs"}, [])
        here.set_status("a", {"n": 1}, kind="parts")
        world.pass_time(2)
        assert part(there) == {"n": 1}
        here.set_status("a", None, kind="parts")
        world.pass_time(2)
        assert (part(there), there.objects("parts")["a"]["spec"]) == (None, {"x": 1})


@BOTH
@pytest.mark.parametrize("before", [None, {"n": 1}], ids=["none", "another"])
@pytest.mark.parametrize("edited", [False, True], ids=["timeout", "edit"])
def test_C5_5_S4_3_a_status_whose_write_is_not_answered_does_not_outlive_that_of_its_original(
    origin: str, before: Json | None, edited: bool
) -> None:
    """The copy may have it or not: whichever status the original has then goes to the copy, and none takes it away."""
    with parts(origin) as world:
        here, there = with_part(world, origin, before)
        world.inject(str(there.side), Fate.REPLY_LOST, verb="update", part="/parts/a/status")
        world.weather[there.side].lag = 3.0
        here.set_status("a", {"n": 2}, kind="parts")
        world.pass_time(2)
        assert part(there) == {"n": 2}
        if edited:  # nobody waits for the answer any more
            edit_policy(world, seconds=0.5, related=[part_entry(origin, cleanup="keep")])
        here.set_status("a", before, kind="parts")
        world.settle()
        assert part(there) == before


@BOTH
def test_C5_5_a_copy_that_is_made_again_gets_the_status_once(origin: str) -> None:
    with parts(origin) as world:
        here, there = with_part(world, origin, {"n": 1})
        made = len(world.writes)
        there.delete("a", kind="parts")
        world.settle()
        assert (part(there), len(statuses(world, made))) == ({"n": 1}, 1)
        here.delete("a", kind="parts")
        world.settle()
        assert there.objects("parts") == {}
        here.create("a", kind="parts", spec={"x": 2})
        world.settle()
        assert (there.objects("parts")["a"]["spec"], part(there)) == ({"x": 2}, None)


def test_C5_5_what_somebody_makes_of_a_copys_status_is_put_right_at_the_audit() -> None:
    with parts() as world:
        _, there = with_part(world, "cloud", {"n": 1})
        there.set_status("a", {"n": "theirs"}, kind="parts")
        world.settle()
        assert part(there) == {"n": "theirs"}
        made = len(world.writes)
        world.order("resync", resource="parts")
        world.settle()
        assert (part(there), len(statuses(world, made))) == ({"n": 1}, 1)


def test_C5_5_what_the_schema_of_the_copies_side_makes_of_a_status_is_not_fought() -> None:
    with parts(start=False) as world:
        start_narrow(world)
        here, there = with_part(world, "cloud", {"n": 1, "more": "pruned"})
        assert part(there) == {"n": 1}
        made = len(world.writes)
        world.order("resync", resource="parts")
        world.settle()
        restart(world)
        assert statuses(world, made) == []
        here.set_status("a", {"n": 1, "more": "other"}, kind="parts")
        world.settle()
        assert (part(there), len(statuses(world, made))) == ({"n": 1}, 1)


@BOTH
def test_C5_5_where_the_copies_side_has_no_status_nothing_is_written_and_explain_says_so(origin: str) -> None:
    with parts(origin, there=False) as world:
        here, there = with_part(world, origin, {"n": 1})
        here.set_status("a", {"n": 2}, kind="parts")
        world.settle()
        world.order("resync", resource="parts")
        world.pass_time(300)
        made = [write.verb for write in world.writes if write.resource.startswith("parts")]
        assert (part(there), statuses(world), made) == (None, [], ["create"])
        text = f"the {there.side} has no /status of the kind, so the original's status is not copied"
        found = explained(world, "parts", "a")
        assert (found["state"], said(found, "C5.5")) == ("in-sync", [(True, text)])
        assert said(explained(world, "goals", "g"), "C5.5") == [(True, f"related maps: {text}")]


@pytest.mark.parametrize(("origin", "answer"), [("cloud", 404), ("robot", 405)])
def test_C5_5_a_server_that_has_no_status_whatever_its_discovery_says_is_not_asked_again(
    origin: str, answer: int
) -> None:
    with parts(origin) as world:
        here, there = ends(world, origin)
        refused = Reply(answer, {"kind": "Status", "message": "the server could not find the requested resource"})
        world.inject(str(there.side), refused, verb="update", part="/parts/a/status", times=10_000)
        with_part(world, origin, {"n": 1})
        world.pass_time(120)
        asked = len(world.journal.asked(there.side, verb="status", part="/parts/a/status"))
        assert asked <= 5
        here.set_status("a", {"n": 2}, kind="parts")
        here.set("a", kind="parts", spec={"x": 2})
        world.pass_time(300)
        assert len(world.journal.asked(there.side, verb="status", part="/parts/a/status")) == asked
        assert there.objects("parts")["a"]["spec"] == {"x": 2}
        text = f"the {there.side} has no /status of the kind, so the original's status is not copied"
        assert said(explained(world, "parts", "a"), "C5.5") == [(True, text)]


def test_C5_5_a_copy_that_is_gone_does_not_mean_that_its_side_has_no_status() -> None:
    with parts() as world:
        here, there = with_part(world, "cloud", {"n": 1})
        world.pass_time(60)
        assert part(there) == {"n": 1}
        world.weather[Side.ROBOT].lag = 30.0
        there.delete("a", kind="parts")
        here.set_status("a", {"n": 2}, kind="parts")
        world.pass_time(120)
        assert part(there) == {"n": 2}


def test_C5_5_a_status_that_is_rejected_is_tried_hourly_and_the_content_goes_on() -> None:
    with parts(start=False) as world:
        start_narrow(world)
        here, there = with_part(world, "cloud", {"n": "text"})
        world.pass_time(60)
        asked = len(statuses(world))
        assert (part(there), asked) == (None, 1)
        there.set("a", kind="parts", spec={"x": "drift"})
        world.pass_time(2)
        assert there.objects("parts")["a"]["spec"] == {"x": 1}
        here.set_status("a", {"n": 2}, kind="parts")
        world.pass_time(2)
        assert part(there) == {"n": 2}
        assert world.status()["outbox"]["deadLetters"] == 0


@BOTH
def test_C5_5_a_status_goes_only_to_a_copy_that_is_ours(origin: str) -> None:
    with parts(origin) as world:
        here, there = ends(world, origin)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
        there.create("a", kind="parts", spec={"x": "own"}, ownerReferences=[owner])
        here.create("a", kind="parts", spec={"x": 1})
        here.set_status("a", {"n": 1}, kind="parts")
        world.add("g", spec={"maps": ["a"]})
        assert (part(there), statuses(world)) == (None, [])
        assert [hold["reason"] for hold in world.status()["holds"]] == ["NameTaken"]


def test_C5_5_without_the_field_the_status_stays_where_it_is_and_it_may_be_switched() -> None:
    with parts(status=False) as world:
        here, there = with_part(world, "cloud", {"n": 1})
        assert (part(there), said(explained(world, "parts", "a"), "C5.5")) == (None, [])
        for status in (True, False):
            edit_policy(world, related=[part_entry(status=status)])
            assert part(there) == {"n": 1}
        here.set_status("a", {"n": 2}, kind="parts")
        world.settle()
        assert part(there) == {"n": 1}


@BOTH
def test_C5_5_losing_the_database_costs_no_write_of_a_status(origin: str) -> None:
    with parts(origin) as world:
        here, there = with_part(world, origin, {"n": 1})
        made = len(world.writes)
        restart(world, kill=True, lost=True)
        assert statuses(world, made) == []
        here.set_status("a", None, kind="parts")
        world.settle()
        assert part(there) is None


def test_C5_5_without_the_cloud_a_copy_that_is_made_again_gets_the_last_known_status() -> None:
    with parts() as world:
        _, there = with_part(world, "cloud", {"n": 1})
        world.cut("cloud", seconds=60)
        there.delete("a", kind="parts")
        world.pass_time(10)
        assert part(there) == {"n": 1}


def test_C5_5_S4_1_after_a_power_cut_that_took_what_was_written_no_older_status_follows() -> None:
    with parts() as world:
        here, there = with_part(world, "cloud", {"n": 1})
        world.cut("robot")
        here.set_status("a", {"n": 2}, kind="parts")
        world.pass_time(10)
        durable = world.disk.copied()
        world.heal("robot")
        here.set_status("a", {"n": 3}, kind="parts")
        world.settle()
        made = len(world.writes)
        world.crash()
        world.disk = durable
        world.robot.compact()
        world.cut("cloud")
        world.start()
        world.pass_time(60)
        world.heal("cloud")
        assert [write.status for write in statuses(world, made)] in ([], [409])
        here.set_status("a", {"n": 4}, kind="parts")
        world.settle()
        assert part(there) == {"n": 4}


def test_C5_5_S7_1_without_the_cloud_a_copy_gets_the_status_that_came_before_it_went() -> None:
    with parts() as world:
        here, there = with_part(world, "cloud", {"n": 1})
        world.cut("robot")
        here.set_status("a", {"n": 2}, kind="parts")
        world.pass_time(10)
        world.cut("cloud")
        world.heal("robot", seconds=120)
        assert part(there) == {"n": 2}


def test_C5_5_explain_and_diff_show_whether_the_status_was_copied() -> None:
    with parts() as world:
        here, _ = with_part(world, "cloud")
        assert said(explained(world, "parts", "a"), "C5.5") == [(True, "the original has no status to copy")]
        here.set_status("a", {"n": 1}, kind="parts")
        world.settle()
        assert said(explained(world, "parts", "a"), "C5.5") == [(True, "the original's status was copied")]
        assert diff(world, "parts.lab.example.com")["differences"] == []
        world.inject("robot", FORBIDDEN, verb="update", part="/parts/a/status", times=10_000)
        here.set_status("a", {"n": 2}, kind="parts")
        world.pass_time(10)
        found = explained(world, "parts", "a")
        assert (None, "the copy must be given the original's status") in said(found, "C5.5")
        [pair] = diff(world, "parts.lab.example.com")["differences"]
        assert (pair["cloud"]["status"], pair["robot"]["status"]) == ({"n": 2}, {"n": 1})


def test_C5_5_entries_of_one_kind_that_differ_in_it_are_misconfigured() -> None:
    with parts() as world:
        both = [part_entry(), part_entry(id="more", status=False)]
        edit_policy(world, related=both)
        [row] = [row for row in world.status()["kinds"] if row["resource"].startswith("parts")]
        assert (row["state"], "differ in status" in row["message"]) == ("misconfigured", True)
