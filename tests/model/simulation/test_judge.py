"""The judge of all worlds: an edit counts from when the agent hears of it, and excuses no other deletion (S5, C1.7)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import pytest

from crsyncer.core.kinds import read_kind
from crsyncer.core.pair import decide
from crsyncer.engine.kinds.left_behind import LeftBehind
from crsyncer.engine.pairs.outbox import Outbox
from tests.model.histories.history import Step
from tests.model.histories.policy_history import policy_history_of
from tests.model.histories.policy_machine import PolicyMachine
from tests.model.mutants.mutant import Mutant
from tests.model.scenes.policies import EDGE, apply_policy, edit_policy, on_robot, with_policy
from tests.model.scenes.projected import JOB_KIND, JOBS, TASKS, projected, serve_jobs, tasks
from tests.model.simulation.check import Violation
from tests.model.simulation.world import World

# fmt: off
DEFECTS = (
    Mutant("a copy's original is never there", decide.decide,
           "else upstream.of(copy.stamp.upstream_uid)", "else Gap.ABSENT", noticed_by=""),
    Mutant("the agent follows what nobody has said", read_kind.policy_by,
           "filtered=bool(filtered)", "filtered=True", noticed_by=""),
)
# fmt: on


def edit(defect: AbstractContextManager[None]) -> None:
    """An agent that hears late of an edit makes a copy meanwhile; and another one later, before it is started anew."""
    with with_policy(kinds={"goals": {"source": None}}, specSource="cloud") as world:
        world.begin()
        world.weather[world.robot.side].lag = 20.0
        apply_policy(world.robot, specSource="cloud", filter=EDGE)
        world.add("other", seconds=5)
        assert on_robot(world) == {"other"}
        world.pass_time(60)
        assert on_robot(world) == set()
        world.add("edge", labels={"tier": "edge"}, seconds=60)
        world.stop()
        with defect:
            world.begin(seconds=60)


def test_C1_7_a_copy_goes_that_was_made_before_the_agent_heard_of_an_edit() -> None:
    edit(nullcontext())


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_S5_a_copy_that_was_made_after_the_agent_heard_of_an_edit_does_not_go(defect: Mutant) -> None:
    with pytest.raises(AssertionError, match=r"robot: delete edge .*: its original cloud-\d+ is there, and always was"):
        edit(defect.alive())


def leave_place(defect: AbstractContextManager[None]) -> None:
    """A copy reports something just before it is left in a former place, and again when it has a successor."""
    with tasks("robot", "a") as world, defect:
        world.cloud.finalize("a", "lab.example.com/wait", kind=TASKS)
        world.cloud.set_status("a", {"n": 1}, kind=TASKS)
        edit_policy(world, projection=JOBS, seconds=60)
        if not isinstance(defect, nullcontext):
            world.cloud.finalize("a", kind=TASKS)
        else:
            world.cloud.set_status("a", {"n": 2}, kind=TASKS)
        world.pass_time(60)


def test_C1_7_what_a_copy_reports_once_it_has_a_successor_in_another_place_counts_for_nothing() -> None:
    leave_place(nullcontext())


def test_C1_7_what_a_copy_reports_before_it_has_a_successor_has_to_reach_its_original() -> None:
    unread = Mutant("former places are not read", LeftBehind._read, "in there.items()", "in ()", noticed_by="")
    with pytest.raises(AssertionError, match=r"the status .* has never reached its original"):
        leave_place(unread.alive())


def test_C1_7_where_copies_were_before_the_store_was_lost_nobody_knows() -> None:
    with tasks("robot", "a") as world:
        world.cloud.set_status("a", {"n": 1}, kind=TASKS)
        with world.down(kill=True):
            world.lose_database()
            apply_policy(world.robot, projection=JOBS)
        world.pass_time(120)
        assert "status" not in world.robot.objects()["a"]


@contextmanager
def goal() -> Iterator[World]:
    """A goal of a cloud that also serves jobs; the agent runs."""
    with with_policy(kinds={"goals": {"source": "cloud"}}) as world:
        serve_jobs(world)
        world.begin("a")
        yield world


def lose_sight(*, edited: bool) -> None:
    """A copy that its own finalizer keeps has reported something when another kind of the cloud comes to be meant."""
    with goal() as world:
        world.weather[world.robot.side].lag = 3.0
        world.robot.finalize("a", "lab.example.com/wait")
        world.robot.set_status("a", {"n": 1})
        if edited:
            apply_policy(world.robot, projection=JOBS)
        world.pass_time(60)
        world.robot.finalize("a")
        edit_policy(world, seconds=60)


def test_C1_7_a_status_is_not_owed_to_an_original_of_a_kind_that_is_not_meant() -> None:
    lose_sight(edited=True)


def test_S4_1_a_status_is_owed_to_an_original_of_the_kind_that_is_meant() -> None:
    unsent = Mutant("nothing is sent", decide._status, "send if fresh or lost or late", "None if True", noticed_by="")
    with unsent.alive(), pytest.raises(AssertionError, match=r"the status .* has never reached its original"):
        lose_sight(edited=False)


def regain_sight(defect: AbstractContextManager[None]) -> None:
    """A copy is held and reports something while another kind of the cloud is meant; then its own is meant again."""
    with goal() as world, defect:
        world.order("hold", resource="goals")
        apply_policy(world.robot, projection=JOBS)
        world.add("b", kind=JOB_KIND, spec={"x": 2}, seconds=60)
        world.report("a", {"n": 1}, seconds=60)
        assert set(world.robot.objects()) == {"a", "b"}
        assert "status" not in world.cloud.objects()["a"]
        edit_policy(world, seconds=5)
        world.order("release", id=world.status()["holds"][0]["id"])
        world.pass_time(60)
        assert set(world.robot.objects()) == {"a"}
        assert world.status()["health"] == "healthy"


def test_C1_7_a_status_is_owed_to_an_original_of_a_kind_that_is_meant_again() -> None:
    regain_sight(nullcontext())
    unsent = Mutant("nothing is sent", decide._status, "send if fresh or lost or late", "None if True", noticed_by="")
    with pytest.raises(AssertionError, match=r"the status .* has never reached its original"):
        regain_sight(unsent.alive())


def deselect(world: World) -> None:
    """A copy is held and reports something while its original is not selected; then it goes."""
    world.order("hold", resource="goals")
    edit_policy(world, filter=EDGE, seconds=60)
    world.report("a", {"n": 1}, seconds=60)
    world.order("release", id=world.status()["holds"][0]["id"])
    world.pass_time(60)
    assert world.robot.objects() == {}
    assert "status" not in world.cloud.objects()["a"]


def test_C1_7_a_status_is_not_owed_to_an_original_that_is_not_selected() -> None:
    with goal() as world:
        deselect(world)


def test_S4_5_the_part_of_a_status_that_its_copy_has_lost_goes_in_a_projected_kind_too() -> None:
    with projected(subtree="part") as world:
        world.begin("b", kind=TASKS)
        world.add("a", kind=TASKS)
        world.report("a", {"part": {"n": 1}, "own": 1})
        world.report("a", {"own": 1})
        assert world.cloud.objects(TASKS)["a"]["status"] == {}


def test_S4_1_a_status_is_owed_to_an_original_that_has_another_name_in_the_cloud() -> None:
    unsent = Mutant("nothing is sent", decide._status, "send if fresh or lost or late", "None if True", noticed_by="")
    with (
        pytest.raises(AssertionError, match=r"the status .* has never reached its original"),
        tasks("cloud", "a") as world,
        unsent.alive(),
    ):
        world.report("a", {"n": 1}, seconds=60)


def reselect() -> None:
    """What is not selected for a while is selected again, and an agent that sends nothing makes its copy."""
    unsent = Mutant("nothing is sent", decide._status, "send if fresh or lost or late", "None if True", noticed_by="")
    with goal() as world:
        deselect(world)
        with unsent.alive():
            edit_policy(world, seconds=60)
            world.report("a", {"n": 2}, seconds=60)


def test_C1_7_a_status_is_owed_to_an_original_that_is_selected_again() -> None:
    with pytest.raises(AssertionError, match=r"the status .* has never reached its original"):
        reselect()


def come_and_go(defect: AbstractContextManager[None], *, forgets: bool) -> None:
    """A copy reports something and is deleted while the link to its side is cut; the server may not replay that."""
    with goal() as world, defect:
        world.cut("robot", seconds=1)
        world.robot.set_status("a", {"n": 1})
        world.pass_time(60)
        world.robot.delete("a")
        if forgets:
            world.robot.compact()
        world.pass_time(1)
        world.heal("robot", seconds=120)


def test_S4_1_a_status_that_no_watch_replays_and_no_list_shows_is_owed_to_nobody() -> None:
    come_and_go(nullcontext(), forgets=True)


def test_S4_1_a_status_that_a_watch_replays_is_owed_though_its_copy_is_gone() -> None:
    come_and_go(nullcontext(), forgets=False)
    unsent = Mutant("nothing is sent", decide._status, "send if fresh or lost or late", "None if True", noticed_by="")
    with unsent.alive(), pytest.raises(AssertionError, match=r"the status .* has never reached its original"):
        come_and_go(nullcontext(), forgets=False)


def test_C6_3_blocking_ends_when_the_agent_can_hear_that_the_policy_was_deleted() -> None:
    steps = (
        Step("wait", (1.0,)),
        Step("cut", ("robot",)),
        Step("drop_policy"),
        Step("wait", (100.0,)),
        Step("wait", (20.0,)),
        Step("create", ("a", 8, 2, 1, 1)),
    )
    PolicyMachine(replace(policy_history_of(7043), steps=steps)).run()


def test_C1_7_without_its_store_an_agent_still_has_to_delete_what_it_left_behind_since() -> None:
    steps = (
        Step("project", (2,)),
        Step("lose_store"),
        Step("delay", ("robot", 2.0, 0.5)),
        Step("delay", ("cloud", 0.5, 2.0)),
        Step("create", ("c", 5, 4, 3, 1)),
        Step("create", ("a", 3, 5, 3, 1)),
        Step("create", ("b", 5, 1, 1, 0)),
    )
    history = replace(policy_history_of(733784), steps=steps)
    PolicyMachine(history).run()
    left = Mutant("nothing goes", LeftBehind._delete, "each in left.items()", "each in {}.items()", noticed_by="")
    with left.alive(), pytest.raises(Violation, match="is left behind"):
        PolicyMachine(history).run()


def test_C6_3_an_object_waits_for_a_copy_that_somebody_keeps_where_an_edit_left_it_and_both_let_go() -> None:
    steps = (
        Step("create", ("a", 2, 3, 2, 1)),
        Step("wait", (100.0,)),
        Step("keep_copy", ("a", 1)),
        Step("remove", ("a",)),
        Step("project", (3,)),
    )
    PolicyMachine(replace(policy_history_of(771043), steps=steps)).run()


def forget(seconds: float) -> None:
    """A status comes late whose agent was killed so long after it was sent, and has sent another one since."""
    steps = (
        Step("befall", ("cloud", "patch", 24, 3)),
        Step("wait", (0.3,)),
        Step("create", ("b", 2, 4, 0, 0)),
        Step("wait", (20.0,)),
        Step("report", ("b",)),
        Step("befall", ("cloud", "patch", 12, 1)),
        Step("wait", (seconds,)),
        Step("crash"),
        Step("report", ("b",)),
    )
    PolicyMachine(replace(policy_history_of(1606165), steps=steps)).run()


def test_S4_8_of_a_status_that_was_sent_and_not_recorded_yet_an_agent_knows_nothing_after_a_crash() -> None:
    forget(0.05)


def test_S4_1_a_status_that_was_sent_and_recorded_is_answered_after_a_crash_when_it_comes_late() -> None:
    forget(0.5)
    known = "row.unanswered or row.digest"
    unknown = Mutant("nobody knows of it", Outbox.__init__, known, "row.unanswered", noticed_by="")
    with unknown.alive(), pytest.raises(Violation, match="agreement was lost"):
        forget(0.5)
