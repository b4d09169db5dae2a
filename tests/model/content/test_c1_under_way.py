"""C1.7 on virtual time: an edit of the selection arrives while something else is under way, such as an earlier one."""

from typing import Any

import pytest

from crsyncer.core.model import Side
from tests.model.scenes.policies import apply_policy, edit_policy
from tests.model.scenes.projected import PROJECTION, TASKS, tasks
from tests.model.scenes.selection import BOTH, EDITS, FILTERS, kind
from tests.model.simulation.scene import full_lists, holds, names, redefine, release, restart, roles
from tests.model.simulation.weather import Fate


@BOTH
@FILTERS
def test_C1_7_S10_a_copy_that_is_being_made_as_the_selection_is_edited_is_not_left_behind(
    source: str, edit: str
) -> None:
    with kind(source, few=0, selected=0) as world:
        up, down = roles(world, source)
        up.create("off", spec={"x": 1})
        while not world.journal.asked(verb="create", kind="goals"):
            world.pass_time(0.001)
        assert down.objects() == {}
        apply_policy(world.robot, **EDITS[edit])
        world.pass_time(0.1)
        assert set(down.objects()) == {"off"}
        world.pass_time(60)
        assert (down.objects(), holds(world), world.status()["health"]) == ({}, [], "healthy")


@FILTERS
def test_C1_7_S5_5a_what_went_with_its_kind_is_held_also_where_only_the_count_shows_its_copies(
    edit: str,
) -> None:
    with kind("cloud", few=3, selected=5) as world:
        copies = set(world.robot.objects())
        world.cut("cloud")
        redefine(world)
        world.weather[Side.ROBOT].latency = 2.0
        for more in ({}, EDITS[edit]):  # of which the first has the copies forgotten that the other one leaves behind
            edit_policy(world, naming={"name": "{name}-{hash}"}, **more, seconds=0.005)
        world.pass_time(20)
        world.heal("cloud", seconds=300)
        assert (set(world.robot.objects()), holds(world)) == (copies, [("KindMissing", 8)])
        release(world)
        world.pass_time(90)
        assert (world.robot.objects(), holds(world)) == ({}, [])


@BOTH
@FILTERS
def test_C1_7_S10_a_copy_whose_create_comes_late_after_an_edit_of_the_selection_is_not_left_behind(
    source: str, edit: str
) -> None:
    with kind(source, few=0) as world:
        up, down = roles(world, source)
        world.inject(str(down.side), Fate.LATE, verb="create", part="/goals")
        up.create("off", spec={"x": 1})
        world.pass_time(1)
        edit_policy(world, **EDITS[edit], seconds=30)
        assert names(down) == {"on 2"}
        for _ in range(60):
            world.pass_time(0.0 if "off" in down.objects() else 1.0)
        assert "off" in down.objects()
        world.pass_time(60)
        assert (names(down), holds(world), world.status()["health"]) == ({"on 2"}, [], "healthy")


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("wider", [{"filter": {"selector": {"matchLabels": {"t": "1"}}}}, {}])
def test_C1_7_S8_3_a_local_object_that_an_edited_selector_shows_again_is_no_restore(
    wider: dict[str, Any], killed: bool
) -> None:
    spec: dict[str, Any] = {"projection": PROJECTION, "orphans": "keep"}
    with tasks("cloud", orphans="keep", **wider) as world:
        for number in range(12):
            world.cloud.create(f"a{number}", kind=TASKS, labels={"t": "1"}, spec={"x": number})
        world.robot.create("mine", labels={"t": "1"}, spec={"x": -1})
        world.settle()
        edit_policy(world, **spec, filter={"selector": {"matchLabels": {"t": "2"}}}, seconds=60)
        assert holds(world) == [("SelectionChanged", 12)]
        begun = world.clock.now
        edit_policy(world, **spec, **wider, seconds=0.3 if killed else 60)
        if killed:
            restart(world, kill=True, seconds=60)
        assert len(full_lists(world, "robot", begun)) <= 3  # a restore has everything listed once or twice more
        world.cloud.set("a3", kind=TASKS, spec={"x": 33})
        world.pass_time(10)
        assert (world.robot.objects()["a3"]["spec"], holds(world)) == ({"x": 33}, [])
