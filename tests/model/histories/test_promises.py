"""What random histories are judged by, each shown on a short one in which a defect of its kind gives itself away."""

import pytest

from tests.model.__main__ import failure
from tests.model.histories.history import KINDS, History, Step
from tests.model.mutants.mutant import Mutant
from tests.model.mutants.mutants_promises import PROMISES

_CROWD = (Step("crowd", ("goals", 24)), Step("wait", (20.0,)))
_CLEAR_SLOWLY = (Step("slow_disk", (10.0,)), Step("clear_out", ("goals", 0, 0)))
HISTORIES = {
    "held": (*_CROWD, *_CLEAR_SLOWLY, Step("hold", ("goals",)), Step("wait", (100.0,))),
    "stopped": (*_CROWD, *_CLEAR_SLOWLY, Step("wait", (0.3,)), Step("annotate", ("goals", 1)), Step("wait", (100.0,))),
    "annotated": (*_CROWD, Step("annotate", ("goals", 1)), Step("wait", (5.0,))),
    "filtered": (
        Step("crowd", ("flips", 6)),
        Step("create", ("flips", "a", 1, 1)),
        Step("wait", (20.0,)),
        Step("cut", ("cloud",)),
        Step("report", ("flips", "a")),
        Step("wait", (5.0,)),
        Step("keep", ("flips", "a", "downstream", 0)),
        Step("lose_copy", ("flips", "a")),
        Step("filter", ("flips", 1)),
        Step("wait", (20.0,)),
    ),
    "refused": (*_CROWD, Step("clear_out", ("goals", 2, 2)), Step("wait", (100.0,))),
    "taken": (
        Step("wait", (20.0,)),
        Step("lag", ("cloud", 20.0)),
        Step("by_hand", ("reports", "a", 0)),
        Step("create", ("reports", "a", 1, 1)),
        Step("wait", (30.0,)),
    ),
    "silent": (
        Step("create", ("views", "a", 1, 42)),
        Step("wait", (5.0,)),
        Step("back_up_store"),
        Step("remove", ("views", "a")),
        Step("wait", (1.0,)),
        Step("close_slowly", ("robot", 5.0)),
        Step("end_watches", ("robot", 2)),
        Step("put_back_store"),
        Step("wait", (20.0,)),
    ),
    "guessed": (
        Step("wait", (0.1,)),
        Step("create", ("plains", "a", 7, 33)),
        Step("wait", (0.05,)),
        Step("version", ("plains", "robot", 1)),
        Step("remove", ("plains", "a")),
        Step("retry", ("plains",)),
    ),
    "restored": (
        Step("wait", (20.0,)),
        Step("snapshot", ("cloud",)),
        Step("create", ("goals", "b", 2, 21)),
        Step("wait", (100.0,)),
        Step("restore", ("cloud",)),
        Step("replace", ("goals", "c", 5)),
        Step("remove", ("goals", "c")),
        Step("resync", ("goals",)),
    ),
    "two uids": (
        Step("create", ("plains", "b", 6, 54)),
        Step("wait", (20.0,)),
        Step("replace", ("plains", "b", 5)),
        Step("refuse_disk", (1,)),
        Step("retry", ("plains",)),
        Step("stop"),
        Step("report", ("plains", "b")),
        Step("lose_copy", ("plains", "b")),
    ),
    "rivalled": (
        Step("replace", ("flips", "b", 6)),
        Step("resync", ("flips",)),
        Step("rival", ("flips", "b")),
        Step("wait", (20.0,)),
        Step("report", ("flips", "b")),
        Step("delete_kind", ("flips", "robot", 1)),
    ),
    "hidden": (
        Step("wait", (5.0,)),
        Step("hide_kinds", ("cloud", 1, 60.0)),
        Step("create", ("goals", "b", 0, 36)),
        Step("wait", (5.0,)),
        Step("delete_kind", ("goals", "cloud", 0)),
        Step("define_kind", ("goals", "cloud")),
        Step("wait", (100.0,)),
    ),
    "killed during a list": (
        Step("snapshot", ("cloud",)),
        Step("lose_database"),
        Step("wait", (0.02,)),
        Step("crash_after", (50,)),
        Step("crowd", ("flips", 24)),
        Step("wait", (20.0,)),
        Step("restore", ("cloud",)),
        Step("wait", (100.0,)),
    ),
    "a status that a restore took at once": (
        Step("create", ("reports", "b", 6, 49)),
        Step("wait", (100.0,)),
        Step("snapshot", ("cloud",)),
        Step("report", ("reports", "b")),
        Step("restore", ("cloud",)),
    ),
    "an object that was lost before the store knew it": (
        Step("snapshot", ("cloud",)),
        Step("create", ("parts", "c", 7, 49)),
        Step("refuse_disk", (1,)),
        Step("wait", (1.0,)),
        Step("refuse_disk", (0,)),
        Step("restore", ("cloud",)),
        Step("crash"),
    ),
    "a CRD that was gone before another cluster came": (
        Step("wait", (0.3,)),
        Step("delete_kind", ("goals", "robot", 1)),
        Step("wait", (0.005,)),
        Step("rebuild", ("robot", 100_000)),
    ),
}
"""By the names that mutants give them."""
_SEEDS = {
    "rivalled": 2,
    "guessed": 67,
    "two uids": 6,
    "killed during a list": 500197,
    "a status that a restore took at once": 508107,
    "an object that was lost before the store knew it": 504331,
    "a CRD that was gone before another cluster came": 502410,
}


def history(name: str) -> History:
    """The history of this name, of the kind of its first step that names one."""
    steps = HISTORIES[name]
    kind = next(argument for step in steps for argument in step.arguments if argument in KINDS)
    return History(_SEEDS.get(name, 3), (str(kind),), steps)


@pytest.mark.parametrize("name", HISTORIES)
def test_nothing_is_wrong_with_it_as_the_agent_is(name: str) -> None:
    assert failure(history(name)) is None


@pytest.mark.parametrize("mutant", PROMISES, ids=lambda mutant: mutant.name)
def test_a_broken_promise_is_noticed(mutant: Mutant) -> None:
    with mutant.alive():
        wrong = failure(history(mutant.noticed_by)) or ""
    assert mutant.says in wrong
