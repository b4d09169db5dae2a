"""What is known of a pair is kept in memory once, because most texts are the same on both sides (S6.6)."""

from collections.abc import Mapping

from crsyncer.core.content.object_content import Known
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Key, Side, View

Views = Mapping[Side, Mapping[Key, View]]
"""What is known of the objects of a kind, by side."""


def known_of(key: Key, policy: KindPolicy, views: Views) -> Known:
    """The texts and the stamp that the views of a pair have."""
    known: Known = {policy.robot: policy.robot}
    for side in views:
        view = views[side].get(key)
        if view is not None:
            for each in (view.uid, view.content, view.status, view.stamp):
                known[each] = each
    return known
