"""A replica that equals its rendering has the stamp as its digest, and nothing else has (F3.4)."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.model import Json
from crsyncer.fleet.domain.read_objects import row_of
from crsyncer.fleet.domain.rendering import render
from crsyncer.fleet.domain.values import Rendering, Robot
from tests.fleet.made import GOALS, goal, placement, source, stored, wanted

LEAVES = st.sampled_from([0, 1, 1.0, True, False, None, "1", "true", "", -1, 1.5])
SPECS = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner)),
    max_size=3,
)
TEXTS = st.dictionaries(st.sampled_from(["team", "note"]), st.sampled_from(["x", "y"]))


@given(SPECS, SPECS, TEXTS, TEXTS)
def test_F3_4_a_row_is_the_same_whether_its_rendering_is_at_hand_or_not(spec, other, texts, others):
    body: Json = goal(spec=spec)
    body["metadata"] |= {"labels": texts, "annotations": texts}
    made = render(source(body), placement(), [], robot=Robot("r1", "u"), config_map={})
    assert isinstance(made, Rendering)
    raw = stored(wanted(made))
    changed = copy.deepcopy(raw)
    changed["spec"] = other
    relabelled = copy.deepcopy(raw)
    relabelled["metadata"]["labels"] |= others
    noted = copy.deepcopy(raw)
    noted["metadata"]["annotations"] |= others
    for each in (raw, changed, relabelled, noted):
        assert row_of(each, GOALS, stamped=lambda _: made) == row_of(each, GOALS)
    found = row_of(raw, GOALS)
    assert found is not None
    assert found.content == made.stamp
