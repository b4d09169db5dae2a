"""C1.7 on virtual time: copies that are being made while an edit of the selection arrives."""

from tests.model.content.test_c1_selection import BOTH, EDITS, FILTERS, kind
from tests.model.scenes.policies import apply_policy
from tests.model.simulation.scene import holds, roles


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
