"""A controller that runs while the shard of 20 robots is split: it writes and removes nothing that the split touches.

People are told to stop it (FLEET.md); what it does where nobody did is shown here, on virtual time.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.door.domain.split_plan import AskedDoor
from crsyncer.door.split.shard_objects import ShardObjects
from crsyncer.door.split.splitting import Splitting
from crsyncer.ports import Reply, Send
from tests.door.simulated import answered
from tests.fleet_model import oracle
from tests.fleet_model.oracle import ROBOTS
from tests.fleet_model.sharded import GOALS, Shard, Sharded, sharded
from tests.model.simulation.weather import Weather

STAYING, MOVING = (tuple(f"{name}{number}" for number in range(10)) for name in ("s", "m"))
NEW, OLD = {"x": 2}, {"x": 1}


class Split:
    """The shard b, which has 20 robots, its clone c, and the command."""

    def __init__(self, fleet: Sharded) -> None:
        self.fleet = fleet
        self.uids = self.replica_uids("b")

    def clone(self) -> None:
        """Restore a snapshot of b as c."""
        self.fleet["c"].cloud.restore(self.fleet["b"].cloud.snapshot())
        self.fleet.world.mend(self.fleet["c"].link)
        self.fleet.world.pass_time(60)

    def take(self, number: int) -> str:
        """Take a step; why it is not done."""
        fleet = self.fleet
        b, c = (ShardObjects(name, sending(fleet[name])) for name in "bc")

        async def root(call: Call) -> Reply:
            if call.method == "PATCH":  # a merge patch, of the label alone
                fleet.move(call.path.rpartition("/")[2], "c")
                return Reply(200, {"metadata": {}})
            return answered(fleet.world.server, call)

        robots = Collection("registry.cloudrobotics.com", "v1alpha1", "robots", "default")
        splitting = Splitting(root, robots, b, c, MOVING, self._ask)
        _, failed = fleet.world.clock.run(splitting.run(number, yes=True))
        return "" if failed is None else f"{failed.number}: {failed.message}"

    def undo(self) -> None:
        """Set the labels back."""
        for name in MOVING:
            self.fleet.move(name, "b")

    def wait(self) -> None:
        """Let the controller, and what robots do, go on for a while."""
        for number in range(4):
            for robot, shard in self._homes().items():
                if shard in self.fleet.shards and robot in (*STAYING, *MOVING):
                    self.fleet[shard].cloud.set_status("dock", {"seen": number}, namespace=f"robot-{robot}")
            self.fleet.world.pass_time(30)

    def replica_uids(self, shard: str) -> dict[str, str]:
        """The uids of the robots' objects at a shard."""
        found: dict[tuple[str, str], Json] = self.fleet[shard].server.storage.of(GOALS)
        return {namespace.removeprefix("robot-"): raw["metadata"]["uid"] for (namespace, _), raw in found.items()}

    def is_done(self) -> bool:
        """Whether each robot has its object at its own shard, the one that it had, and neither shard another's."""
        at_b, at_c = self.replica_uids("b"), self.replica_uids("c")
        return (set(at_b), set(at_c), at_b | at_c) == ({*STAYING, "rb"}, set(MOVING), self.uids)

    def verbs(self, since: float) -> list[str]:
        """What the controller changed of replicas at both shards."""
        return [verb for name in "bc" for verb in self.fleet[name].verbs(since)]

    def _homes(self) -> dict[str, str]:
        found = self.fleet.world.server.storage.of(ROBOTS).values()
        return {each["metadata"]["name"]: oracle.shard_of(each) for each in found}

    async def _ask(self, shards: Sequence[str]) -> tuple[AskedDoor, ...]:
        """The door, which follows the labels."""
        homes = self._homes()
        found = {shard: frozenset(name for name, own in homes.items() if own == shard) for shard in shards}
        return (AskedDoor("door", streams=found, routed=found),)


def sending(shard: Shard) -> Send:
    """The requests of an administrator to a shard."""

    async def send(call: Call) -> Reply:
        reply = answered(shard.server, call)
        shard.world.signal.ring()
        return reply

    return send


@contextmanager
def split_world() -> Iterator[Split]:
    """The controller knows both shards from the beginning; c is not there yet."""
    with sharded(start=False) as fleet:
        fleet.world.lose_robots("rc")
        fleet.world.weather[fleet["c"].link] = Weather(fleet.world.chance)
        fleet.world.cut(fleet["c"].link)
        for name in (*STAYING, *MOVING):
            fleet.enrol(name, "b")
        fleet.world.start()
        fleet.agree("b")
        yield Split(fleet)


@pytest.mark.parametrize("restarted", [False, True], ids=["it runs on", "it is started again after each step"])
def test_F10_2_G7_2_a_controller_that_runs_during_a_split_writes_and_removes_nothing(restarted: bool) -> None:
    with split_world() as split:
        world = split.fleet.world
        began = world.clock.now

        def go_on() -> None:
            if restarted:
                world.kill()
                world.start()
            split.wait()
            assert split.verbs(began) == []
            assert world.holds() == {}

        split.clone()
        go_on()
        for number in (1, 2, 3):
            assert split.take(number) == ""
            go_on()
        split.undo()
        go_on()
        for number in (1, 2, 3, 4, 5):
            assert split.take(number) == ""
            go_on()
        assert split.is_done()
        statuses = [raw.get("status") for name in "bc" for raw in split.fleet[name].server.storage.of(GOALS).values()]
        assert statuses.count({"seen": 3}) == 20
        world.cloud.set("dock", spec=NEW)
        split.fleet.agree()
        assert split.is_done()
        assert split.verbs(began) == ["patch"] * 21


def test_F10_2_G7_2_an_edit_after_the_switch_goes_to_each_robots_own_shard_and_stops_the_split() -> None:
    with split_world() as split:
        world = split.fleet.world
        split.clone()
        for number in (1, 2, 3):
            assert split.take(number) == ""
        split.wait()
        world.cloud.set("dock", spec=NEW)
        world.settle()
        at_b, at_c = (split.fleet[name].specs() for name in "bc")
        assert [at_b[f"robot-{name}/dock"] for name in (*STAYING, *MOVING)] == [NEW] * 10 + [OLD] * 10
        assert [at_c[f"robot-{name}/dock"] for name in (*STAYING, *MOVING)] == [OLD] * 10 + [NEW] * 10
        why = split.take(4)
        assert "goals.lab.example.com/robot-m0/dock differs in its content" in why
        assert len(split.replica_uids("b")) == 21
        for name in MOVING:
            split.fleet["b"].cloud.delete("dock", namespace=f"robot-{name}")
        assert [split.take(4), split.take(5)] == ["", ""]
        split.fleet.agree()
        assert split.is_done()


def test_F10_2_G7_2_an_edit_before_the_switch_makes_the_clone_stale_and_another_one_is_taken() -> None:
    with split_world() as split:
        world = split.fleet.world
        split.clone()
        world.cloud.set("dock", spec=NEW)
        world.settle()
        assert set(map(str, split.fleet["b"].specs().values())) == {str(NEW)}
        assert "differs in its content" in split.take(1)
        assert "differs in its content" in split.take(2)
        split.clone()
        for number in (1, 2, 3, 4, 5):
            assert split.take(number) == ""
            split.wait()
        assert split.is_done()
        assert world.holds() == {}
        world.source("lift")
        split.fleet.agree()
        assert set(split.fleet["c"].specs()) == {f"robot-{name}/{goal}" for name in MOVING for goal in ("dock", "lift")}
