"""What a change of a kind's annotations does to statuses that wait for upstream (S1.1, S6.3)."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from tests.model.life import ROBOT
from tests.model.plane import GROUP
from tests.model.scene import copy, original, scene
from tests.system.bed import crd

DONE = {"phase": "DONE"}


@pytest.mark.parametrize(("before", "after"), [(None, "true"), ("true", None)])
@pytest.mark.parametrize("final", [False, True])
def test_S6_3_a_status_that_waits_survives_another_filter(before: str | None, after: str | None, final: bool) -> None:
    with scene(goals={"filtered": before}) as world:
        world.start()
        world.cloud.create("a", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT})
        world.settle()
        world.cut("cloud")
        world.robot.set_status("a", DONE)
        world.pass_time(5)
        if final:
            world.stop()
            world.robot.delete("a")
        world.robot.apply(crd(GROUP, filtered=after))
        if final:
            world.start()
        world.pass_time(30)
        world.mend("cloud")
        world.pass_time(60)
        assert original(world)["status"] == DONE


@pytest.mark.parametrize("wrong", [{"filtered": "yes"}, {"versions": ("v2",)}], ids=["misconfigured", "no version"])
def test_S6_3_a_status_that_waits_is_shown_also_while_its_kind_is_not_synced(wrong: dict[str, Any]) -> None:
    with scene() as world:
        world.start()
        world.cloud.create("a", spec={"x": 1})
        world.settle()
        world.cut("cloud")
        world.robot.set_status("a", DONE)
        world.pass_time(5)
        world.robot.apply(crd(GROUP, **wrong))
        world.pass_time(10)
        for kill in (False, True):
            if kill:
                world.crash()
                world.start()
                world.pass_time(10)
            status = world.status()
            assert (status["outbox"]["depth"], status["kinds"][0]["pending"]["status"]) == (1, 1)
            assert [row["name"] for row in world.order("pending")["pending"]] == ["a"]
            world.mend("cloud")
            world.pass_time(60)
        assert "status" not in original(world)
        world.robot.apply(crd(GROUP))
        world.settle()
        assert (original(world)["status"], world.order("pending")["pending"]) == (DONE, [])


def test_S1_1_a_selection_that_is_put_back_while_the_cloud_is_away_costs_no_copy() -> None:
    """What was stored under the first selection is forgotten with the second: nothing resumes from its cursors."""
    with scene() as world:
        world.start()
        world.cloud.create("a", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT})
        world.settle()
        before = copy(world)["metadata"]["uid"]
        world.cut("cloud")
        world.cut("robot")
        world.stop()
        world.robot.apply(crd(GROUP, filtered="true"))
        world.mend("robot")
        world.start()
        world.pass_time(10)
        world.robot.apply(crd(GROUP))
        world.pass_time(10)
        world.mend("cloud")
        world.pass_time(60)
        assert (copy(world)["metadata"]["uid"], world.status()["kinds"][0]["resumes"]["cloud"]) == (before, 0)
