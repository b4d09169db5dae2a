"""Lists that take long, or are large: they come to an end, and nothing that happens meanwhile is lost (S9.4)."""

from dataclasses import dataclass, field

from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import JSON, Call
from crsyncer.ports import Reply
from tests.model.simulation.scene import scene
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World

KBIT_16 = 2_000.0
"""Bytes a second."""


@dataclass
class Journal:
    """The pages of goals that the cloud was asked for."""

    pages: list[tuple[Call, Reply]] = field(default_factory=list)

    def __call__(self, side: Side, call: Call, reply: Reply) -> None:
        if side is Side.CLOUD and call.verb == "list" and call.path.endswith("/goals") and call.gap is not None:
            self.pages.append((call, reply))

    def begun(self, accept: str = JSON) -> int:
        """How many lists of whole objects were begun at their first page."""
        return sum(call.accept == accept and "continue" not in dict(call.query) for call, _ in self.pages)

    def whole(self) -> int:
        """How many pages of whole objects were asked for."""
        return sum(call.accept == JSON for call, _ in self.pages)

    def expired(self) -> int:
        """How many pages were refused because the continue token was too old."""
        return sum(reply.status == 410 for _, reply in self.pages)


def crowd(world: World, number: int, *, weight: int = 600) -> set[str]:
    """Objects in the cloud, each of so many bytes and some metadata; their names."""
    names = {f"goal-{n:04}" for n in range(number)}
    for name in sorted(names):
        world.cloud.create(name, spec={"x": 1, "filling": "x" * weight})
    return names


def thin(world: World, *, pages_last: float = 300.0) -> Journal:
    """The cloud is behind 16 kbit/s, and forgets its former states after five minutes."""
    journal = Journal()
    world.listeners.append(journal)
    world.weather[Side.CLOUD].bytes_per_second = KBIT_16
    world.servers[Side.CLOUD].pages_last = pages_last
    return journal


def outage(world: World, *, seconds: float) -> None:
    """The cloud is out of reach for a while; then the line is as thin as before."""
    world.cut("cloud", seconds=seconds)
    world.connect("cloud")


def test_S9_4_a_first_list_that_outlives_its_continue_token_comes_to_an_end() -> None:
    with scene() as world:
        names = crowd(world, 300, weight=2_000)
        journal = thin(world, pages_last=200.0)
        world.begin(seconds=1200)
        assert set(world.robot.objects()) == names
        assert journal.expired() > 0
        assert journal.begun() == 1


def test_S9_4_what_happens_while_a_list_goes_on_is_not_lost() -> None:
    with scene() as world:
        names = crowd(world, 200, weight=1_500)
        journal = thin(world, pages_last=60.0)
        world.start()
        for number in range(10):
            world.pass_time(20)
            world.cloud.set(f"goal-{number:04}", spec={"x": 2})
            world.cloud.set(f"goal-{199 - number:04}", spec={"x": 2})
            world.cloud.create(f"late-{number:04}", spec={"x": 1})
            world.cloud.create(f"early-{number:04}", spec={"x": 1})
            world.cloud.delete(f"goal-{number + 40:04}")
            world.cloud.delete(f"goal-{number + 120:04}")
        assert journal.expired() > 0
        world.servers[Side.CLOUD].pages_last = 600.0
        world.pass_time(600)
        world.settle(seconds=3600)
        gone = {f"goal-{number:04}" for n in range(10) for number in (n + 40, n + 120)}
        expected = names - gone | {f"{when}-{n:04}" for n in range(10) for when in ("late", "early")}
        assert set(world.robot.objects()) == set(world.cloud.objects()) == expected
        assert spec_numbers(world.robot.objects()) == spec_numbers(world.cloud.objects())


def spec_numbers(objects: dict[str, Json]) -> dict[str, int]:
    """What each object's spec says."""
    return {name: o["spec"]["x"] for name, o in objects.items()}


def test_S9_4_S5_a_list_of_two_moments_deletes_nothing_until_a_consistent_one_agrees() -> None:
    with scene() as world:
        names = crowd(world, 510, weight=10)
        world.begin()
        with world.down():
            world.cloud.delete("goal-0007")
            world.cloud.compact()
            journal = thin(world, pages_last=0.0)
        world.pass_time(300)
        assert journal.expired() > 0
        assert set(world.robot.objects()) == names
        world.servers[Side.CLOUD].pages_last = 600.0
        world.pass_time(1800)
        assert set(world.robot.objects()) == names - {"goal-0007"}


def test_S9_4_a_page_that_is_lost_in_the_middle_of_a_list_is_asked_for_again() -> None:
    for fate in (Fate.LOST, Fate.SNAPPED, Reply(500, {"message": "etcd"}), Reply(429, {"message": "slow"})):
        with scene() as world:
            names = crowd(world, 250, weight=100)
            journal = thin(world)
            world.start()
            while len(journal.pages) < 2:
                world.pass_time(1)
            world.inject("cloud", fate, verb="list", part="/goals", times=2)
            world.pass_time(400)
            assert set(world.robot.objects()) == names
            assert journal.begun() == 1


def test_S9_4_a_page_is_never_read_beyond_its_limit_however_large_the_objects_are() -> None:
    with scene() as world:
        names = crowd(world, 24, weight=300_000)
        journal = Journal()
        world.listeners.append(journal)
        world.begin()
        assert set(world.robot.objects()) == names
        sizes = [len(reply.body["items"]) for _, reply in journal.pages]
        assert sizes[:4] == [24, 24, 24, 12]  # the limit is halved from 100 until a page is below 4 MiB
        assert max(sizes[4:]) <= 3


def test_S9_4_the_side_is_not_taken_for_silent_while_a_page_arrives() -> None:
    with scene() as world:
        names = crowd(world, 100, weight=1_500)
        thin(world)
        world.start()
        for _ in range(30):
            world.pass_time(5)
            assert world.status()["sides"]["cloud"]["state"] in ("connecting", "connected")
        assert set(world.robot.objects()) == names


def test_S9_4_a_first_list_that_loses_its_connection_goes_on_at_the_page_where_it_was() -> None:
    with scene() as world:
        names = crowd(world, 300, weight=1_000)
        journal = thin(world)
        world.start()
        for asked in (2, 3, 4):
            while len(journal.pages) < asked:
                world.pass_time(1)
            outage(world, seconds=60)
        world.settle(seconds=3600)
        assert set(world.robot.objects()) == names
        assert journal.begun() == 1


def test_S9_4_S8_3_a_list_that_goes_on_after_an_outage_proves_no_absence() -> None:
    with scene() as world:
        names = crowd(world, 250, weight=10)
        world.begin()
        with world.down():
            backup = world.cloud.snapshot()
            world.cloud.delete("goal-0007")
            for name in sorted(names)[100:200]:
                world.cloud.set(name, spec={"x": 2})
            world.cloud.compact()
            journal = thin(world)
        while journal.whole() < 2:
            world.pass_time(1)
        world.cloud.restore(backup, overtaken_by=40)
        outage(world, seconds=30)
        world.pass_time(1800)
        assert set(world.robot.objects()) == set(world.cloud.objects()) == names


def test_S9_4_a_list_that_was_asked_for_meanwhile_begins_at_its_first_page() -> None:
    with scene() as world:
        names = crowd(world, 300, weight=1_000)
        journal = thin(world)
        world.start()
        while len(journal.pages) < 2:
            world.pass_time(1)
        world.order("resync")
        world.settle(seconds=3600)
        assert set(world.robot.objects()) == names
        assert journal.begun() >= 2  # more where the thin line loses the connection on a first page
