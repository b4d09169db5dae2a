"""Selection (F2), against an oracle that knows nothing of our selectors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.read_objects import placement_of
from crsyncer.fleet.domain.selection import entry_for, governing, may_be_source, selects_robot, unknown_robots
from crsyncer.fleet.domain.values import Robot, SourceKey, Strategy
from tests.fleet.made import GOALS, goal, placement

KEY = SourceKey(GOALS, "site", "dock")
WORDS = st.sampled_from(["a", "b", "c"])
LABELS = st.dictionaries(WORDS, WORDS, max_size=3)
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {"key": WORDS, "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(WORDS, min_size=1)}
    ),
    st.fixed_dictionaries({"key": WORDS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSIONS, max_size=3)}
)


def oracle(selector: Any, labels: Any) -> bool:
    """LabelSelector as the documentation of Kubernetes words it."""
    for key, value in selector.get("matchLabels", {}).items():
        if key not in labels or labels[key] != value:
            return False
    for each in selector.get("matchExpressions", []):
        has, value = each["key"] in labels, labels.get(each["key"])
        good = {
            "In": has and value in each.get("values", ()),
            "NotIn": not has or value not in each.get("values", ()),
            "Exists": has,
            "DoesNotExist": not has,
        }[each["operator"]]
        if not good:
            return False
    return True


@given(st.lists(SELECTORS, max_size=3), st.sets(WORDS), WORDS, LABELS)
def test_F2_1_robots_are_the_union_of_selectors_and_names(selectors, names, name, labels):
    found = placement(robotSelectors=selectors, robotNames=sorted(names))
    expected = name in names or any(oracle(each, labels) for each in selectors)
    assert selects_robot(found, Robot(name, "u", labels)) is expected


@given(
    st.lists(
        st.tuples(WORDS, st.sets(WORDS, max_size=2), st.lists(SELECTORS, max_size=2), st.sampled_from(list(Strategy))),
        max_size=3,
    ),
    WORDS,
    LABELS,
)
def test_F2_2_the_first_entry_that_matches_gives_the_strategy(entries, name, labels):
    items = [
        {"group": "g.io", "resource": plural, "names": sorted(names), "selectors": selectors, "strategy": str(strategy)}
        for plural, names, selectors, strategy in entries
    ]
    found = entry_for(placement(resources=items), SourceKey("a.g.io", "site", name), labels, home="default")
    expected = [
        strategy
        for plural, names, selectors, strategy in entries
        if plural == "a"
        and (not names or name in names)
        and (not selectors or any(oracle(each, labels) for each in selectors))
    ]
    assert (None if found is None else found.strategy) == (expected[0] if expected else None)


def test_F2_1_what_terminates_does_not_count():
    robot = Robot("r1", "u")
    assert not selects_robot(placement(robotNames=["r1"]), Robot("r1", "u", terminating=True))
    metadata = {"namespace": "site", "name": "a", "uid": "u", "deletionTimestamp": "2026-11-01T00:00:00Z"}
    gone = placement_of({"metadata": metadata, "spec": {"robotSelectors": [{}], "resources": []}})
    assert not selects_robot(gone, robot)
    assert entry_for(gone, KEY, {}, home="site") is None


def test_F2_1_no_selector_selects_nobody_and_an_empty_one_everybody():
    assert not selects_robot(placement(), Robot("r1", "u"))
    assert selects_robot(placement(robotSelectors=[{}]), Robot("r1", "u"))


def test_unknown_robots_are_listed_by_name():
    assert unknown_robots(placement(robotNames=["z", "r1", "a"]), {"r1": Robot("r1", "u")}) == ["a", "z"]


def test_F2_2_sources_are_in_the_placements_namespace():
    assert entry_for(placement(), KEY, {}, home="site") is not None
    assert entry_for(placement(), KEY._replace(namespace="other"), {}, home="site") is None


@pytest.mark.parametrize(("home", "selected"), [("site", True), ("default", False)])
def test_F2_2_cluster_scoped_kinds_are_for_placements_beside_the_controller(home, selected):
    assert (entry_for(placement(), KEY._replace(namespace=""), {}, home=home) is not None) is selected


@pytest.mark.parametrize("key", [ROBOT_LABEL, SOURCE])
def test_F2_2_what_is_for_a_robot_is_no_source(key):
    raw = goal()
    assert may_be_source(raw)
    raw["metadata"]["labels"] = {key: "x"}
    assert not may_be_source(raw)


def test_F2_4_the_oldest_placement_governs_then_the_first_by_name():
    old, new = placement("z", created="2026-11-01T00:00:00Z"), placement("a", created="2026-11-02T00:00:00Z")
    assert governing([new, old]) is old
    assert governing([placement("b"), placement("a")]) == placement("a")
    assert governing([placement("a", namespace="t"), placement("b", namespace="s")]) == placement("b", namespace="s")
    assert governing([]) is None
