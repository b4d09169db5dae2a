"""The world itself: its verbs and knobs do what they say, and the agent lives in it as it does outside."""

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator

import pytest

from crsyncer.core.kinds.namespaces import same_names
from crsyncer.core.model import Side
from tests.model.simulation.answers import FORBIDDEN, GARBAGE, too_many
from tests.model.simulation.clock import Clock
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.scene import copy, original, settle
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """One unfiltered kind, spec from the cloud; no agent yet."""
    with World() as made:
        yield made


def test_a_spec_goes_down_and_a_status_up(world: World) -> None:
    world.begin("a")
    world.report("a", {"phase": "DONE"})
    copy, original = world.robot.get("a"), world.cloud.get("a")
    assert copy is not None
    assert original is not None
    assert (copy["spec"], original["status"]) == ({"x": 1}, {"phase": "DONE"})
    assert [str(write) for write in world.writes] == ["robot: create a (201)", "cloud: status a (200)"]
    assert world.troubles == []
    assert world.status()["health"] == "healthy"


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[str]:
        with World(seed) as world:
            world.start()
            world.inject("robot", Fate.REPLY_LOST, verb="create")
            world.add("a", "b", "c")
            return [f"{write.time} {write}" for write in world.writes]

    assert history(1) == history(1)
    assert history(1) != history(2)


@pytest.mark.parametrize(
    "fault",
    [
        lambda world: world.cut("cloud"),
        lambda world: world.silence("cloud"),
        lambda world: world.cloud.restart(),
        lambda world: world.cloud.compact(),
    ],
    ids=["cut", "silence", "restart", "compaction"],
)
def test_a_watch_that_breaks_misses_nothing(world: World, fault: Callable[[World], None]) -> None:
    world.begin("a")
    fault(world)
    world.cloud.delete("a")
    world.add("b", seconds=120)
    world.heal("cloud")
    assert set(world.robot.objects()) == {"b"}


def test_the_journal_has_every_request_in_order_and_when_it_was_sent(world: World) -> None:
    world.begin("a")
    since = world.clock.now
    world.report("a", {"phase": "DONE"})
    writes = world.journal.asked(verb="write", kind="goals")
    assert [str(request).partition(" ")[0] + request.verb for request in writes] == ["robot:create", "cloud:status"]
    assert [request for request in writes if request.sent >= since] == writes[1:]
    assert writes[1].answered is not None
    assert 0 < writes[1].answered - writes[1].sent < 0.1
    assert {r.verb for r in world.journal.asked("cloud", kind="goals", part="/goals")} >= {"list", "watch", "status"}
    sent = [request.sent for request in world.journal.requests]
    assert sent == sorted(sent)


def test_an_answer_by_script_holds_for_a_time_and_on_a_path(world: World) -> None:
    world.begin("a")
    world.inject("robot", FORBIDDEN, verb="create", part="/goals", times=math.inf, seconds=30)
    begun = world.clock.now
    world.add("b", seconds=120)
    tries = world.journal.asked("robot", verb="create", kind="goals", since=begun)
    assert [request.status for request in tries] == [403] * (len(tries) - 1) + [201]
    assert tries[-2].sent < begun + 30 <= tries[-1].sent


def test_an_answer_that_puts_off_is_waited_for(world: World) -> None:
    world.begin("a")
    world.inject("cloud", too_many(20.0), verb="patch")
    begun = world.clock.now
    world.report("a", {"phase": "DONE"}, seconds=60)
    first, second = world.journal.asked("cloud", verb="status", since=begun)
    assert second.sent - first.sent >= 20


def test_garbage_in_a_watch_and_in_a_list_costs_nothing_but_time(world: World) -> None:
    world.begin("a")
    world.weather[Side.CLOUD].garbage = 1
    world.inject("cloud", GARBAGE, verb="list", part="/goals")
    world.edit("a", spec={"x": 2})
    assert copy(world)["spec"] == {"x": 2}


def test_an_event_comes_so_long_after_its_change_however_many_there_are(world: World) -> None:
    world.begin("a")
    world.weather[Side.CLOUD].lag = 5.0
    world.add(*"bcdef", seconds=4.9)
    assert set(world.robot.objects()) == {"a"}
    world.pass_time(0.6)
    assert set(world.robot.objects()) == set("abcdef")


def test_a_distant_server_answers_late_and_tells_its_clock(world: World) -> None:
    world.weather[Side.CLOUD].latency = 0.5
    world.weather[Side.CLOUD].clock_offset = 3600.0
    world.begin("a")
    world.report("a", {"phase": "DONE"})
    (write,) = world.journal.asked("cloud", verb="status")
    assert write.answered is not None
    assert 1.0 < write.answered - write.sent < 1.1
    assert world.status()["sides"]["cloud"]["clockOffsetSeconds"] == 3600


def test_an_agent_is_told_its_robot_its_namespaces_and_its_times() -> None:
    settings = AgentSettings("robot-7", namespaces=same_names(("default",)), watch_timeout=40, audit_interval=100.0)
    with World(settings=settings, kinds={"tasks": {"filtered": "true"}}) as world:
        world.begin(seconds=1.0)
        watch = world.journal.asked("cloud", verb="watch", kind="tasks")[-1]
        assert watch.call.path == "/apis/lab.example.com/v1/namespaces/default/tasks"
        assert watch.query["labelSelector"] == "cloudrobotics.com/robot-name=robot-7"
        assert 32 <= int(watch.query["timeoutSeconds"]) <= 64
        lists = len(world.journal.asked("cloud", verb="list", kind="tasks"))
        world.pass_time(300.0)
        assert len(world.journal.asked("cloud", verb="list", kind="tasks")) > lists


def test_a_disk_that_refuses_keeps_nothing_until_it_takes_everything(world: World) -> None:
    world.begin("a")
    world.disk.refuses = True
    world.edit("a", spec={"x": 2})
    assert copy(world)["spec"] == {"x": 2}
    assert world.status()["store"]["state"] == "degraded"
    kept = world.disk.copied()
    world.disk.refuses = False
    world.pass_time(15)
    assert world.status()["store"]["state"] == "ok"
    assert len(world.disk.copied().rows) > len(kept.rows)
    world.disk.refuses = True
    world.report("a", {"phase": "DONE"})
    durable = world.disk.durable
    world.crash()
    assert len(world.disk.rows) == durable


def test_an_older_store_is_put_back(world: World) -> None:
    world.begin("a")
    backup = world.disk.copied()
    world.remove("a")
    with world.down():
        world.put_back(backup)
        world.cut("cloud")
    world.pass_time(1)
    assert world.status()["kinds"][0]["objects"]["cloud"] == 1


def test_two_robots_share_a_cloud_and_nothing_else() -> None:
    kinds = {"goals": {}, "tasks": {"filtered": "true"}}
    with World(kinds=kinds) as one, World(1, beside=one, settings=AgentSettings("robot-2")) as two:
        one.start()
        two.start()
        one.cloud.create("both", spec={"x": 1})
        one.cloud.create("hers", kind="tasks", spec={"x": 1}, labels={"cloudrobotics.com/robot-name": "robot-2"})
        settle(one, two)
        assert (set(one.robot.objects()), set(two.robot.objects())) == ({"both"}, {"both"})
        assert (set(one.robot.objects("tasks")), set(two.robot.objects("tasks"))) == (set(), {"hers"})
        one.crash()
        two.robot.set_status("both", {"by": 2})
        settle(one, two)
        assert original(one, "both")["status"] == {"by": 2}
        assert two.status()["health"] == "healthy"
        assert one.troubles == []


def test_tasks_of_a_group_are_cancelled_in_order_wherever_they_are_in_memory() -> None:
    clock = Clock()
    ended: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    async def begin() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1), asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(wait(number))

    clock.run(begin())
    clock.close()
    assert ended == [*range(20)]
