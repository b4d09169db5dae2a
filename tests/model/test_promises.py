"""What random histories are judged by, each shown on a short one in which a defect of its kind gives itself away."""

import pytest

from tests.model.__main__ import failure
from tests.model.history import History, Step
from tests.model.mutant import Mutant
from tests.model.mutants_promises import PROMISES

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
    "hidden": (
        Step("wait", (5.0,)),
        Step("hide_kinds", ("cloud", 1, 60.0)),
        Step("create", ("goals", "b", 0, 36)),
        Step("wait", (5.0,)),
        Step("delete_kind", ("goals", "cloud", 0)),
        Step("define_kind", ("goals", "cloud")),
        Step("wait", (100.0,)),
    ),
}
"""By the names that mutants give them."""


def history(name: str) -> History:
    """The history of this name."""
    kind = {"filtered": "flips", "taken": "reports", "silent": "views", "guessed": "plains"}.get(name, "goals")
    return History(1, (kind,), HISTORIES[name])


@pytest.mark.parametrize("name", HISTORIES)
def test_nothing_is_wrong_with_it_as_the_agent_is(name: str) -> None:
    assert failure(history(name)) is None


@pytest.mark.parametrize("mutant", PROMISES, ids=lambda mutant: mutant.name)
def test_a_broken_promise_is_noticed(mutant: Mutant) -> None:
    with mutant.alive():
        wrong = failure(history(mutant.noticed_by)) or ""
    assert mutant.says in wrong
