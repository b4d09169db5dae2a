"""In which order the work of an outage is done, where time can be told exactly."""

import pytest

from tests.model.scene import scene, synced


@pytest.mark.parametrize("seed", range(3))
def test_S7_2_what_happened_in_an_outage_is_heard_out_and_its_deletions_go_first(seed: int) -> None:
    """They come last, for events come oldest first; without patience as many updates as go at a time went before."""
    with scene(seed) as world:
        world.start()
        names = [f"g{number:02}" for number in range(60)]
        for name in names:
            world.cloud.create(name, spec={"x": 1})
        world.settle()
        world.cut("cloud")
        world.pass_time(5)
        before = len(world.writes)
        for name in names[20:40]:
            world.cloud.set(name, spec={"x": 2})
        for name in names[:20]:
            world.cloud.delete(name)
        world.mend("cloud")
        world.settle()
        verbs = [write.verb for write in world.writes[before:]]
        assert verbs[:5] == ["delete"] * 5
        assert sorted(verbs) == ["delete"] * 20 + ["update"] * 20


def test_S5_5a_a_few_deletions_are_not_listed_for_though_one_is_done_while_the_kind_is_asked_for() -> None:
    for wait in range(1, 40):
        with synced(wait) as world:
            world.cloud.create("b", spec={"x": 1})
            world.settle()
            listed = world.status()["kinds"][0]["relists"]
            world.cloud.delete("a")
            world.pass_time(wait / 50)
            world.cloud.delete("b")
            world.settle()
            assert world.robot.objects() == {}
            assert world.status()["kinds"][0]["relists"] == listed, wait
