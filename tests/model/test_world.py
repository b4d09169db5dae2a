"""The world itself: its verbs do what they say, and the agent lives in it as it does outside."""

from collections.abc import Callable, Iterator

import pytest

from tests.model.weather import Fate
from tests.model.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """One unfiltered kind, spec from the cloud; no agent yet."""
    with World() as made:
        yield made


def test_a_spec_goes_down_and_a_status_up(world: World) -> None:
    world.start()
    world.cloud.create("a", spec={"x": 1})
    world.settle()
    world.robot.set_status("a", {"phase": "DONE"})
    world.settle()
    copy, original = world.robot.get("a"), world.cloud.get("a")
    assert copy is not None
    assert original is not None
    assert (copy["spec"], original["status"]) == ({"x": 1}, {"phase": "DONE"})
    assert [str(write) for write in world.writes] == ["robot: create a (201)", "cloud: status a (200)"]
    assert world.troubles == []
    assert world.status()["health"] == "healthy"


def test_a_cut_link_heals_by_itself(world: World) -> None:
    world.start()
    world.cloud.create("a", spec={"x": 1})
    world.settle()
    world.cut("cloud")
    world.robot.set_status("a", {"phase": "DONE"})
    world.cloud.set("a", spec={"x": 2})
    world.pass_time(3600)
    assert world.status()["health"] == "offline"
    world.mend("cloud")
    world.settle()
    assert world.robot.objects()["a"]["spec"] == {"x": 2}
    assert world.cloud.objects()["a"]["status"] == {"phase": "DONE"}


def test_a_crash_at_any_step_loses_nothing() -> None:
    for steps in range(1, 60):
        with World(steps) as world:
            world.start()
            world.crash_after(steps)
            world.cloud.create("a", spec={"x": 1})
            world.pass_time(20)
            if world.robot.get("a"):
                world.robot.set_status("a", {"n": 1})
            world.pass_time(20)
            world.crash()
            world.start()
            world.settle()
            assert world.robot.objects()["a"]["spec"] == {"x": 1}
            assert world.cloud.objects()["a"].get("status") == world.robot.objects()["a"].get("status")
            assert world.troubles == []


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[str]:
        with World(seed) as world:
            world.start()
            world.inject("robot", Fate.REPLY_LOST, verb="create")
            for name in "abc":
                world.cloud.create(name, spec={"x": 1})
            world.settle()
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
    world.start()
    world.cloud.create("a", spec={"x": 1})
    world.settle()
    fault(world)
    world.cloud.delete("a")
    world.cloud.create("b", spec={"x": 1})
    world.pass_time(120)
    world.mend("cloud")
    world.settle()
    assert set(world.robot.objects()) == {"b"}


def test_a_kind_that_is_deleted_keeps_its_copies(world: World) -> None:
    world.start()
    world.cloud.create("a", spec={"x": 1})
    world.settle()
    world.cloud.delete_kind()
    while not world.cloud.sweep():
        world.pass_time(1)
    world.pass_time(60)
    assert set(world.robot.objects()) == {"a"}
    assert world.status()["health"] == "attention"
