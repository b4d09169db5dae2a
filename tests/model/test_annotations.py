"""What a change of a kind's annotations does to statuses that wait for upstream (S1.1, S6.3)."""

import pytest

from crsyncer.core.kind_policy import ROBOT_LABEL
from tests.model.life import ROBOT
from tests.model.plane import GROUP
from tests.model.scene import original, scene
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
