"""What a change of a kind's annotations does to statuses that wait for upstream (S1.1, S6.3)."""

import pytest

from crsyncer.core.annotations import ROBOT_LABEL
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
