"""What histories of policies are judged by, each shown on a short one in which a defect gives itself away."""

from dataclasses import replace

import pytest

from tests.model.__main__ import failure
from tests.model.histories.history import Step
from tests.model.histories.policy_history import PARTS, PolicyHistory, Setup
from tests.model.mutants.mutant import Mutant
from tests.model.mutants.mutants_policies import POLICY_PROMISES
from tests.model.simulation.plane import GROUP

_SETUP = Setup(
    source="cloud", filtered=False, namings=(), keep_local=False, blocking=False, steps=(), entries=(), projected=()
)
_SUBTREE = replace(_SETUP, edits_subtree=True)
_PROJECTED = replace(_SETUP, edits_projection=True)
_PARTS = replace(
    _SETUP,
    entries=(
        {
            "id": "parts-reference",
            "resource": {"group": GROUP, "resource": "parts"},
            "object": {"reference": "/spec/parts/*"},
            "origin": "cloud",
            "cleanup": "delete",
            "status": True,
        },
    ),
)
_OTHERS = (
    {
        "id": "configmaps-reference",
        "resource": {"group": "", "resource": "configmaps"},
        "object": {"reference": "/spec/configmaps/*", "namespace": "others"},
        "origin": "cloud",
        "cleanup": "delete",
        "naming": {"namespace": "copies"},
    },
)
_NAMED = (
    {
        "id": "configmaps-reference",
        "resource": {"group": "", "resource": "configmaps"},
        "object": {"reference": "/spec/configmaps/*"},
        "origin": "robot",
        "cleanup": "delete",
    },
)
_SELECTED = (
    {
        "id": "configmaps-selector",
        "resource": {"group": "", "resource": "configmaps"},
        "object": {"selector": {"matchLabels": {"tier": "edge"}}, "namespace": "{/spec/home}"},
        "origin": "cloud",
        "cleanup": "delete",
    },
)
_BEGIN = (Step("create", ("a", 1, 1, 1, 0)), Step("wait", (20.0,)))
HISTORIES = {
    "neighbours": (_SUBTREE, (Step("resubtree", (1,)), *_BEGIN, Step("neighbour", ("a",)), Step("report", ("a",)))),
    "whole status gone": (
        _SUBTREE,
        (Step("resubtree", (1,)), *_BEGIN, Step("report", ("a",)), Step("wait", (5.0,)), Step("blank", ("a", 1))),
    ),
    "statuses not followed": (
        _PARTS,
        (
            Step("put", (PARTS, "m0", 0, 0, 1)),
            *_BEGIN,
            Step("follow", (0,)),
            Step("wait", (200.0,)),
            Step("drift_shown", (0,)),
            Step("wait", (20.0,)),
        ),
    ),
    "another projection": (
        replace(_PROJECTED, source="robot", blocking=True),
        (*_BEGIN, Step("project", (1,)), Step("wait", (20.0,))),
    ),
    "nothing of that name": (
        _PROJECTED,
        (*_BEGIN, Step("project", (4,)), Step("wait", (20.0,)), Step("project", (1,)), Step("wait", (20.0,))),
    ),
    "generations": (
        replace(_SETUP, maps_generation=True),
        (*_BEGIN, Step("drift", ("a", 5)), Step("wait", (20.0,)), Step("report", ("a",)), Step("wait", (20.0,))),
    ),
    "steps of statuses": (
        replace(_SETUP, up=({"path": "/status/word", "template": "{name} {/status/n}"},)),
        (*_BEGIN, Step("report", ("a",)), Step("wait", (20.0,))),
    ),
    "selector": (replace(_SETUP, selected=True), (*_BEGIN, Step("relabel", ("a", "")), Step("wait", (20.0,)))),
    "cluster-scoped": (
        replace(_SETUP, clusters=("cloud", "robot"), entries=_OTHERS),
        (Step("put", ("configmaps", "m0", 2, 0, 0)), *_BEGIN),
    ),
    "made again": (
        _SETUP,
        (*_BEGIN, Step("report", ("a",)), Step("wait", (200.0,)), Step("lose_copy", ("a",)), Step("wait", (200.0,))),
    ),
    "orphan": (replace(_SETUP, orphans="delete"), (*_BEGIN, Step("by_hand", ("b", 0, 1)), Step("wait", (20.0,)))),
    "primaries in two places": (
        replace(_PROJECTED, source="robot", blocking=True, entries=_NAMED),
        (
            Step("put", ("configmaps", "m0", 0, 0, 0)),
            *_BEGIN,
            Step("project", (1,)),
            Step("wait", (20.0,)),
            Step("remove", ("a",)),
            Step("wait", (200.0,)),
        ),
    ),
    "torn, and forgotten": (
        _PARTS,
        (
            Step("put", (PARTS, "m2", 3, 0, 3)),
            Step("create", ("a", 6, 3, 0, 1)),
            Step("wait", (5.0,)),
            Step("refer", ("a", 2, 1, 0)),
            Step("tear_related", (PARTS, "m2", 4)),
            Step("lose_store", ()),
        ),
    ),
    "one watch behind another": (
        replace(_SETUP, entries=_SELECTED),
        (
            Step("create", ("a", 5, 2, 1, 1)),
            Step("wait", (20.0,)),
            Step("delay", ("cloud", 0.0, 2.0)),
            Step("refer", ("a", 1, 3, 0)),
            Step("change", ("a", 3)),
            Step("put", ("configmaps", "m0", 5, 1, 1)),
        ),
    ),
    "breaking": (replace(_SETUP, source="robot", api="robot"), (Step("define", (3,)), Step("define", (4,)))),
}
"""By the names that mutants give them."""


def history(name: str) -> PolicyHistory:
    """The history of this name."""
    setup, steps = HISTORIES[name]
    return PolicyHistory(3, setup, steps)


@pytest.mark.parametrize("name", HISTORIES)
def test_nothing_is_wrong_with_it_as_the_agent_is(name: str) -> None:
    assert failure(history(name)) is None


@pytest.mark.parametrize("mutant", POLICY_PROMISES, ids=lambda mutant: mutant.name)
def test_a_broken_promise_about_policies_is_noticed(mutant: Mutant) -> None:
    with mutant.alive():
        wrong = failure(history(mutant.noticed_by)) or ""
    assert mutant.says in wrong
