"""C6.5: what becomes of the dependents of a copy, by the policy or its object's annotation; both are words."""

import pytest

from crsyncer.core.content.annotations import PROPAGATION
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.sync_policy import read_sync_policy
from crsyncer.core.model import Gap, Json, Observation, Record, Side
from crsyncer.core.pair.actions import Delete
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import view_of
from tests.core.builders import copy_of, goal, policy
from tests.core.sync_policies import MINIMAL, edited


def kind(propagation: str = "foreground") -> KindPolicy:
    """A kind whose policy says this."""
    return policy(sync_policy=read_sync_policy(edited(MINIMAL, "spec", "deletion", value={"propagation": propagation})))


def original(text: str | None = None, **metadata: str) -> Json:
    """An object upstream, with the annotation."""
    annotations = {} if text is None else {PROPAGATION: text}
    return goal(metadata={"annotations": annotations, **metadata})


@pytest.mark.parametrize(
    ("text", "said"), [(None, ""), ("", ""), ("never", ""), ("orphan", "orphan"), ("Foreground", "foreground")]
)
def test_C6_5_the_annotation_is_read_of_originals_of_kinds_with_a_policy(text, said):
    raw = original(text)
    assert view_of(raw, kind(), Side.CLOUD).propagation == said
    assert view_of(raw, policy(), Side.CLOUD).propagation == ""
    assert view_of(raw, kind(), Side.ROBOT).propagation == ""


@pytest.mark.parametrize(
    ("text", "deleted"), [(None, "foreground"), ("orphan", "orphan"), ("background", "background")]
)
def test_C6_5_a_copy_is_deleted_as_its_object_said_or_else_the_policy(text, deleted):
    wanted = kind()
    raw = original(text, deletionTimestamp="2026-11-23T00:00:00Z")
    own, copy = view_of(raw, wanted, Side.CLOUD), view_of(copy_of(raw, wanted), wanted, Side.ROBOT)
    plans = [
        decide(Observation(own), Observation(copy), wanted, Record()),
        decide(Observation(Gap.ABSENT), Observation(copy), wanted, Record("u-1", propagation=text or "")),
    ]
    assert [isinstance(each.content, Delete) and each.content.propagation for each in plans] == [deleted] * 2
    of_another = Record("u-9", propagation=text or "")
    other = decide(Observation(Gap.ABSENT), Observation(copy), wanted, of_another).content
    assert isinstance(other, Delete)
    assert other.propagation == "foreground"


def test_C6_5_what_is_no_copy_is_deleted_as_the_policy_says():
    stray = view_of(goal(uid="c-1"), kind("orphan"), Side.ROBOT)
    found = decide(Observation(Gap.ABSENT), Observation(stray), kind("orphan"), Record()).content
    assert isinstance(found, Delete)
    assert (found.propagation, found.resource_version) == ("orphan", "1")
