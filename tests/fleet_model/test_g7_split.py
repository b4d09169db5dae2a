"""A controller that runs while the shard of 20 robots is split: it writes and removes nothing that the split touches.

People are told to stop it (FLEET.md); what it does where nobody did is shown here, on virtual time.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.sharded import GOALS, Sharded, sharded
from tests.fleet_model.splitting import clone, hide, homes, take_step

STAYING, MOVING = (tuple(f"{name}{number}" for number in range(10)) for name in ("s", "m"))
NEW, OLD = {"x": 2}, {"x": 1}


class Split:
    """The shard b, which has 20 robots, its clone c, and the command."""

    def __init__(self, fleet: Sharded) -> None:
        self.fleet = fleet
        self.uids = self.replica_uids("b")

    def clone(self) -> None:
        """Restore a snapshot of b as c."""
        clone(self.fleet, "b", "c")

    def take(self, number: int) -> str:
        """Take a step; why it is not done."""
        return take_step(self.fleet, "b", "c", MOVING, number)

    def undo(self) -> None:
        """Set the labels back."""
        for name in MOVING:
            self.fleet.move(name, "b")

    def wait(self) -> None:
        """Let the controller, and what robots do, go on for a while."""
        for number in range(4):
            for robot, shard in homes(self.fleet).items():
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


@contextmanager
def split_world() -> Iterator[Split]:
    """The controller knows both shards from the beginning; c is not there yet."""
    with sharded(start=False) as fleet:
        hide(fleet, "c")
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
