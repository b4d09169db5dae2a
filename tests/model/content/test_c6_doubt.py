"""C6.3 on virtual time: whether a copy has gone whose create was never answered."""

import pytest

from tests.model.scenes.blocking import block, blocking
from tests.model.simulation.scene import roles
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World, Write


def interrupt(world: World, source: str, end: str) -> None:
    """A copy of a is made, but the agent dies, or its kind is restarted by an edit, before it hears of that.

    The object is deleted meanwhile. What the watch of copies has to tell comes late.
    """
    _, down = roles(world, source)
    world.weather[down.side].lag = 5.0
    world.inject(down.side.value, Fate.REPLY_LOST, verb="create", part="/goals")
    world.add("a", source=source, seconds=1)
    assert "a" in down.objects()
    if end == "edit":
        block(world, grace="2h")
        world.pass_time(1)
    with world.down(end == "kill", kill=True):
        world.remove("a", source=source, seconds=0)


@pytest.mark.parametrize(("end", "source"), [("kill", "cloud"), ("kill", "robot"), ("edit", "robot")])
def test_C6_3_a_resumed_watch_proves_not_that_a_create_without_an_answer_made_no_copy(end: str, source: str) -> None:
    with blocking(source=source) as world:
        up, down = roles(world, source)
        world.begin("b", source=source)
        with_copy: list[bool] = []

        def witness(write: Write) -> None:
            if (write.side, write.verb, write.name) == (up.side, "patch", "a") and write.after is None:
                with_copy.append("a" in down.objects())

        world.witnesses.append(witness)
        interrupt(world, source, end)
        world.pass_time(30)
        assert (with_copy, set(up.objects()), set(down.objects())) == ([False], {"b"}, {"b"})
        assert world.life is not None
        listed = {reason for side, _, reason in world.life.tally.relists if side == down.side}
        assert listed == {"unanswered", *({"first"} if end == "edit" else ())}, "no status waits"
