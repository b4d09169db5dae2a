"""S9 on virtual time: what a relist costs, how long a server is left alone, who waits for whom; to the last request."""

import itertools
import math
from typing import Any

import pytest

from crsyncer.core.model import Side
from crsyncer.core.requests.calls import PARTIAL_LIST, Call
from crsyncer.ports import Reply
from tests.model.simulation.answers import too_many
from tests.model.simulation.journal import Request
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import changes, copy, full_lists, holds, original, row, scene, state, travels
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World
from tests.system.bed import LABEL, ROBOT, crd

COUNT = 12
OURS = {LABEL: ROBOT}
SIDES = pytest.mark.parametrize("side", ["cloud", "robot"])
STATUS = {"kind": "Status", "status": "Failure", "reason": "Failure", "message": "trouble"}


def digests(lists: list[Request]) -> int:
    """How many lists are of metadata only."""
    return sum(request.call.accept == PARTIAL_LIST for request in lists)


def singles(lists: list[Request]) -> set[str]:
    """The names of objects that were listed one by one."""
    asked = (request.query.get("fieldSelector", "") for request in lists)
    return {query.removeprefix("metadata.name=") for query in asked if query}


def wholes(lists: list[Request]) -> int:
    """How many lists are of whole objects."""
    return sum(r.call.accept != PARTIAL_LIST and "fieldSelector" not in r.query for r in lists)


def crowd(world: World, count: int = COUNT, **fields: Any) -> None:
    """The agent runs, and so many objects are on both sides."""
    world.start()
    for number in range(count):
        world.cloud.create(f"g{number:03}", spec={"x": 1}, **fields)
    world.settle()


def expire(world: World, side: str = "cloud") -> float:
    """A cut begins, after which the server has forgotten where we were; since when."""
    since = world.clock.now
    world.cut(side, seconds=10)
    return since


def forgotten(world: World, side: str = "cloud") -> None:
    """The cut is over; the server remembers nothing of it."""
    plane = world.planes[Side(side)]
    plane.others_write(3)
    plane.compact()
    world.heal(side)


def test_S9_4_a_relist_asks_for_versions_and_then_for_what_has_changed() -> None:
    with scene() as world:
        crowd(world)
        since = expire(world)
        forgotten(world)
        lists = full_lists(world, "cloud", since)
        assert (digests(lists), singles(lists), wholes(lists)) == (1, set(), 0)
        since = expire(world)
        world.cloud.set("g003", spec={"x": 2})
        world.cloud.create("new", spec={"x": 1})
        world.cloud.delete("g005")
        forgotten(world)
        lists = full_lists(world, "cloud", since)
        assert (digests(lists), singles(lists), wholes(lists)) == (1, {"g003", "new"}, 0)
        assert (copy(world, "g003")["spec"], "g005" in world.robot.objects()) == ({"x": 2}, False)
        since = expire(world, "robot")
        world.robot.set_status("g007", {"phase": "DONE"})
        forgotten(world, "robot")
        lists = full_lists(world, "robot", since)
        assert (digests(lists), singles(lists), wholes(lists)) == (1, {"g007"}, 0)
        assert original(world, "g007")["status"] == {"phase": "DONE"}


def test_S9_4_where_much_has_changed_everything_is_fetched() -> None:
    with scene() as world:
        crowd(world)
        since = expire(world)
        for number in range(COUNT // 2):
            world.cloud.set(f"g{number:03}", spec={"x": 2})
        forgotten(world)
        lists = full_lists(world, "cloud", since)
        assert (singles(lists), wholes(lists)) == (set(), 1)
        assert [copy(world, f"g{number:03}")["spec"]["x"] for number in range(COUNT)] == [2] * 6 + [1] * 6


def test_S9_4_S2_1_a_filtered_kind_in_the_cloud_is_listed_by_its_one_selector() -> None:
    with scene(goals={"filtered": "true"}) as world:
        crowd(world, labels=OURS)
        since = expire(world)
        world.cloud.create("theirs", spec={"x": 1}, labels={LABEL: "robot-2"})
        forgotten(world)
        lists = full_lists(world, "cloud", since)
        assert (digests(lists), wholes(lists)) == (1, 0)
        since = expire(world)
        world.cloud.set("g003", spec={"x": 2})
        forgotten(world)
        lists = full_lists(world, "cloud", since)
        assert (singles(lists), wholes(lists), copy(world, "g003")["spec"]) == (set(), 1, {"x": 2})
        assert all(set(r.query) <= {"labelSelector", "limit", "continue"} for r in full_lists(world, "cloud"))


def test_S9_4_a_gateway_that_answers_with_whole_objects_is_taken_at_its_word() -> None:
    with scene() as world:
        crowd(world)
        since = expire(world)
        world.cloud.set("g003", spec={"x": 2})
        world.cloud.others_write(3)
        world.cloud.compact()
        whole = world.servers[Side.CLOUD].answer(Call("list", "GET", f"/apis/{GROUP}/v1/namespaces/default/goals"))

        def matches(call: Call) -> bool:
            return call.accept == PARTIAL_LIST and dict(call.query).get("limit") not in (None, "1")

        world.weather[Side.CLOUD].add(Rule(matches, whole, math.inf))
        world.connect("cloud")
        world.settle()
        lists = full_lists(world, "cloud", since)
        assert (digests(lists), singles(lists), wholes(lists)) == (1, set(), 0)
        assert copy(world, "g003")["spec"] == {"x": 2}


@pytest.mark.fault_12
def test_S9_4_an_api_server_that_restarts_alone_costs_a_digest_at_most_and_no_write() -> None:
    with scene() as world:
        crowd(world)
        since, before = world.clock.now, changes(world)
        world.cloud.restart()
        world.cloud.others_write(1)  # it writes as it starts, if only its own lease (measured)
        world.settle()
        lists = full_lists(world, "cloud", since)
        assert (digests(lists) <= 1, singles(lists), wholes(lists)) == (True, set(), 0)
        assert (changes(world), full_lists(world, "robot", since)) == (before, [])


@pytest.mark.fault_15
def test_S9_4_a_schema_that_is_edited_in_the_cloud_costs_a_digest_each_time_and_no_copy() -> None:
    with scene() as world:
        crowd(world)
        since = world.clock.now
        for edit in range(2):
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "description": str(edit)}
            world.cloud.apply(crd(GROUP, schema=schema))
            world.edit("g003", spec={"x": 2 + edit}, seconds=120)
            assert (copy(world, "g003")["spec"], state(world)) == ({"x": 2 + edit}, "syncing")
        lists = full_lists(world, "cloud", since)
        assert (digests(lists) <= 2, wholes(lists), full_lists(world, "robot", since)) == (True, 0, [])
        assert world.journal.asked(verb="delete", kind="goals") == []


# How long a server is left alone (S9.1, S9.2)


def test_S9_1_a_probe_obeys_retry_after(world: World) -> None:
    world.inject("cloud", Reply(503, STATUS, retry_after=90.0), times=math.inf)
    world.cloud.restart()
    world.pass_time(300)
    since = world.clock.now
    world.pass_time(3600)
    asked = [request.sent for request in world.journal.asked("cloud", since=since)]
    assert all(later - first >= 90.0 for first, later in itertools.pairwise(asked))
    assert len(asked) >= 5
    world.mend("cloud")
    world.settle(seconds=1200)
    travels(world, 1)


@SIDES
@pytest.mark.parametrize("outage", [20, 600, 4 * 3600])
def test_S9_1_a_server_that_first_answers_503_after_an_outage_is_asked_again_soon(
    world: World, side: str, outage: int
) -> None:
    world.cut(side, seconds=outage)
    world.connect(side)
    since = world.clock.now
    world.inject(side, Reply(503, STATUS), times=2)
    world.settle(seconds=120)
    _kind, general, again, *_ = [request.sent for request in world.journal.asked(side, since=since)]
    assert again - general <= 2.5
    travels(world, 1, seconds=10)


@SIDES
def test_S9_1_a_server_that_answers_errors_is_asked_again_within_8_s_for_15_min(world: World, side: str) -> None:
    world.inject(side, Reply(503, STATUS), times=math.inf, seconds=800)
    world.planes[Side(side)].restart()
    world.pass_time(100)
    since = world.clock.now
    world.pass_time(690)
    asked = [request.sent for request in world.journal.asked(side, since=since)]
    assert len(asked) >= 690 / 10
    assert all(later - first <= 9.0 for first, later in itertools.pairwise(asked))
    world.settle()


@SIDES
@pytest.mark.parametrize("status", [400, 403, 404, 408, 500, 502, 504])
def test_S9_2_a_watch_that_is_refused_goes_on_from_its_cursor(world: World, side: str, status: int) -> None:
    travels(world, 0)
    since = world.clock.now
    world.inject(side, Reply(status, STATUS), verb="watch", part="/goals", times=3)
    world.cut(side, seconds=5)
    world.connect(side)
    travels(world, 1, seconds=120)
    assert (full_lists(world, side, since), holds(world)) == ([], [])


@pytest.mark.parametrize("latency", [0.0, 0.5])
def test_S9_2_a_server_that_ends_every_watch_at_once_is_asked_a_few_times_a_second_and_not_restored(
    world: World, latency: float
) -> None:
    since = world.clock.now
    world.weather[Side.CLOUD].latency = latency
    world.weather[Side.CLOUD].closes = True
    world.cut("cloud", seconds=5)
    world.cloud.others_write(3)
    world.connect("cloud")
    world.pass_time(60)
    times = [request.sent for request in world.journal.asked("cloud", verb="watch", kind="goals", since=since)]
    assert len(times) >= 3
    assert max(sum(first <= time < first + 1 for time in times) for first in times) <= 5
    world.weather[Side.CLOUD].closes = False
    travels(world, 1, seconds=60)
    assert (full_lists(world, "cloud", since), holds(world)) == ([], [])


# Nobody waits for another (S9.5)


@pytest.mark.fault_14
@SIDES
def test_S9_1_S9_5_a_kind_whose_storage_is_initialized_keeps_no_other_from_its_side(side: str) -> None:
    with scene(goals={}, tasks={}) as world:
        world.begin()
        before = world.status()["sides"][side]
        world.inject(side, too_many(1.0), part="/goals", times=math.inf)
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "description": "edited"}
        source = "cloud" if side == "robot" else None
        world.planes[Side(side)].apply(crd(GROUP, schema=schema, source=source))
        for number in range(1, 6):
            travels(world, number, kind="tasks")
            world.pass_time(30)
        assert state(world) != "kind-missing"
        assert [world.status()["sides"][side][key] for key in ("state", "since", "reconnects")] == [
            "connected",
            before["since"],
            0,
        ]
        world.mend(side)
        travels(world, 1, seconds=60)


@SIDES
def test_S9_5_a_kind_that_its_server_cannot_read_keeps_no_other_from_its_side(side: str) -> None:
    with scene(goals={}, tasks={}) as world:
        world.begin()
        travels(world, 0)
        since = world.clock.now
        broken = Reply(500, {**STATUS, "message": "conversion webhook for example.com failed: no endpoints"})
        world.inject(side, broken, part="/goals", times=math.inf)
        world.cut(side, seconds=30)
        world.connect(side)
        world.pass_time(30)
        for number in range(1, 4):
            travels(world, number, kind="tasks")
            world.pass_time(60)
        found = row(world)
        assert (found["state"], "webhook" in str(found["message"])) == ("waiting", True)
        assert (world.status()["health"], "webhook" in str(world.status()["reasons"])) == ("degraded", True)
        world.mend(side)
        travels(world, 1, seconds=120)
        assert world.status()["sides"][side]["reconnects"] == 1
        assert full_lists(world, side, since) == []


@SIDES
@pytest.mark.parametrize("last", ["goals", "tasks"])
def test_S9_5_a_kind_that_its_server_never_answers_for_keeps_no_other_from_its_side(side: str, last: str) -> None:
    """Also where the newest object of all, which proves the history of all, is one of that kind."""
    with scene(goals={}, tasks={}) as world:
        world.start()
        for kind in dict.fromkeys(("tasks", "goals", last)):
            travels(world, 0, kind=kind)
            world.settle()
        if last == "tasks":
            travels(world, 1, kind="tasks")
        since = world.clock.now
        world.inject(side, Fate.HUNG, verb="watch", part="/goals", times=math.inf)
        world.cut(side, seconds=5)
        world.planes[Side(side)].others_write(3)
        world.connect(side)
        travels(world, 2, kind="tasks", seconds=15)
        assert full_lists(world, side, since, kind="tasks") == []


def test_S9_1_a_side_that_asks_everybody_for_patience_stays_connected_and_is_given_it(world: World) -> None:
    before = world.status()["sides"]["cloud"]
    world.inject("cloud", too_many(2.0), times=math.inf)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "description": "edited"}
    world.cloud.apply(crd(GROUP, source=None, schema=schema))
    since = world.clock.now
    world.pass_time(300)
    asked = [r.sent for r in world.journal.asked("cloud", part="/version", since=since)]
    assert len(asked) > 2
    assert all(later - first >= 2 for first, later in itertools.pairwise(asked))
    found = world.status()["sides"]["cloud"]
    assert [found[key] for key in ("state", "since", "reconnects")] == ["connected", before["since"], 0]
    world.mend("cloud")
    travels(world, 1, seconds=60)


@pytest.mark.parametrize("whose", ["tasks", "goals"])
def test_S9_5_a_change_does_not_wait_for_a_crowd_that_came_before_it(whose: str) -> None:
    with scene(goals={}, tasks={}) as world:
        crowd(world, 160)
        world.add("live", kind=whose)
        world.weather[Side.CLOUD].latency = 0.4
        since = world.clock.now
        for name in list(world.robot.objects()):
            if name != "live":
                world.robot.set_status(name, {"phase": "RUNNING"})
        world.robot.set_status("live", {"phase": "DONE"}, kind=whose)
        world.settle()
        sent = [r.call.path.split("/")[-2] for r in world.journal.asked("cloud", verb="status", since=since)]
        assert (len(sent), sent.index("live") < 80) == (161, True)
