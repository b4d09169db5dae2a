"""What is done about one replica, row by row of the table of `decide_replica`."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.fleet.domain.names import REPLICA, SOURCE, read_marks
from crsyncer.fleet.domain.replica_plan import Removal, contains, decide_replica, is_due, met_row, new_body
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Delete,
    Nothing,
    Patch,
    Reason,
    RenderFailed,
    Rendering,
    Row,
    Strategy,
    Wait,
    Wanted,
)
from tests.fleet.made import KIND, patched, placement, row, stored, wanted

OLD = Rendering({"spec": {"x": 1}, "data": {"a": "b"}}, {"team": "x", "old": "y"}, {"note": "n"}, "s" * 24)
NEW = Rendering({"spec": {"x": 2}}, {"team": "z"}, {}, "t" * 24)
FAILED = RenderFailed(Reason.RENDER_FAILED, "there is no property p")


def decided(
    what: Wanted | None,
    found: Row | None,
    *,
    listed: bool = True,
    removal: Removal = Removal.NOW,
    may_write: bool = True,
) -> Any:
    return decide_replica(wanted=what, row=found, listed=listed, removal=removal, may_write=may_write)


def agreed(raw: Any) -> Row:
    """A replica whose content is what the server stored of our write."""
    found = row(raw)
    return replace(found, admitted=found.content)


def test_F1_1_nothing_is_done_before_a_kind_is_listed():
    assert decided(wanted(OLD), None, listed=False) == Wait("its kind is not listed")


def test_F3_3_a_missing_replica_is_created_with_its_marks():
    plan = decided(wanted(OLD), None)
    assert isinstance(plan, Create)
    marks = read_marks(plan.body)
    assert marks is not None
    assert (marks.number, marks.stamp, marks.source, marks.placement) == (1, OLD.stamp, "site/dock", "uid-all")
    assert plan.body["metadata"]["namespace"] == "robot-r1"
    assert plan.body["spec"] == {"x": 1}
    assert "ownerReferences" not in plan.body["metadata"]


def test_F3_1_a_cluster_scoped_replica_has_no_namespace():
    what = replace(wanted(OLD), kind=replace(KIND, namespaced=False), namespace="", name="dock-r1")
    assert new_body(what, OLD)["metadata"].keys() == {"name", "labels", "annotations"}


def test_F8_what_is_due_waits_until_its_robot_is_begun():
    assert isinstance(decided(wanted(OLD), None, may_write=False), Wait)
    assert isinstance(decided(wanted(NEW), agreed(stored(wanted(OLD))), may_write=False), Wait)


def test_F3_4_the_same_stamp_placement_and_content_are_no_request():
    assert decided(wanted(OLD), agreed(stored(wanted(OLD)))) == Nothing()


def test_F3_3_an_update_sets_and_removes_what_is_ours_and_leaves_the_rest():
    raw = stored(wanted(OLD))
    raw["metadata"]["labels"]["theirs"] = "kept"
    plan = decided(wanted(NEW), agreed(raw))
    assert isinstance(plan, Patch)
    assert [each["op"] for each in plan.operations[:2]] == ["test", "test"]
    after = patched(raw, plan.operations)
    assert {key for key in after if key not in ("apiVersion", "kind", "metadata")} == {"spec"}
    assert after["spec"] == {"x": 2}
    labels, annotations = after["metadata"]["labels"], after["metadata"]["annotations"]
    assert {key: text for key, text in labels.items() if "/" not in key} == {"team": "z", "theirs": "kept"}
    assert set(annotations) == {REPLICA}
    marks = read_marks(after)
    assert marks is not None
    assert (marks.number, marks.stamp) == (2, NEW.stamp)
    assert decided(wanted(NEW), agreed(after)) == Nothing()


def test_F3_5_drift_is_put_right_also_while_the_robot_is_not_begun():
    raw = stored(wanted(OLD))
    found = agreed(raw)
    assert isinstance(decided(wanted(OLD), replace(found, content="changed"), may_write=False), Patch)


def test_F3_6_a_create_only_replica_keeps_its_content_and_is_made_again():
    kept = wanted(NEW, strategy=Strategy.CREATE_ONLY)
    found = replace(agreed(stored(wanted(OLD))), content="changed")
    assert decided(kept, found) == Nothing()
    assert isinstance(decided(kept, None), Create)
    assert not is_due(kept, found)
    assert is_due(kept, None)


@pytest.mark.parametrize("rendering", [OLD, NEW, FAILED])
@pytest.mark.parametrize("strategy", list(Strategy))
def test_F2_4_the_marks_change_to_the_placement_that_governs_at_once(rendering, strategy):
    raw = stored(wanted(OLD))
    plan = decided(wanted(rendering, by=placement("next"), strategy=strategy), agreed(raw), may_write=False)
    assert isinstance(plan, Patch)
    after = patched(raw, plan.operations)
    marks = read_marks(after)
    assert marks is not None
    assert (marks.placement, marks.number, marks.stamp) == ("uid-next", 2, OLD.stamp)
    assert after["spec"] == raw["spec"]


def test_F4_4_a_failed_rendering_blocks_and_changes_nothing():
    assert decided(wanted(FAILED), agreed(stored(wanted(OLD)))) == Blocked(Reason.RENDER_FAILED, FAILED.message)
    assert decided(wanted(FAILED), None) == Blocked(Reason.RENDER_FAILED, FAILED.message)
    assert not is_due(wanted(FAILED), agreed(stored(wanted(OLD))))


def test_what_terminates_is_waited_for():
    found = row(stored(wanted(OLD), deletionTimestamp="2026-11-01T00:00:00Z"))
    assert decided(wanted(OLD), found) == Wait("it is terminating")
    assert decided(None, found) == Nothing()


@pytest.mark.parametrize("removal", [Removal.LATER, Removal.HELD, Removal.UNKNOWN])
def test_F5_what_is_not_wanted_any_more_waits(removal):
    assert isinstance(decided(None, row(stored(wanted(OLD))), removal=removal), Wait)


def test_F5_1_a_removal_names_the_object_and_its_version():
    assert decided(None, row(stored(wanted(OLD)))) == Delete("u1", "11")
    assert decided(None, None) == Nothing()


def test_F5_4_keep_replicas_removes_our_marks_only():
    raw = stored(wanted(OLD))
    plan = decided(None, row(raw), removal=Removal.UNMARK)
    assert isinstance(plan, Patch)
    after = patched(raw, plan.operations)
    assert SOURCE not in after["metadata"]["labels"]
    assert REPLICA not in after["metadata"]["annotations"]
    assert after["spec"] == {"x": 1}


@pytest.mark.parametrize(
    ("change", "has"),
    [
        ({"spec": {"x": 1, "defaulted": True}}, True),
        ({"spec": {}}, False),
        ({"data": {"a": "c"}}, False),
        ({"more": 1}, True),
    ],
)
def test_F3_5_after_a_start_a_replica_has_to_contain_its_rendering(change, has):
    assert contains({**stored(wanted(OLD)), **change}, OLD) is has


def test_F3_5_lists_are_one_value_and_labels_count():
    one = Rendering({"spec": {"list": [1, {"a": 1}]}}, {"team": "x"}, {"note": "n"}, "s" * 24)
    raw = stored(wanted(one))
    assert contains(raw, one)
    assert contains({**raw, "spec": {"list": [1.0, {"a": 1, "b": 2}]}}, one)
    assert not contains({**raw, "spec": {"list": [1, {"a": 1}, 2]}}, one)
    del raw["metadata"]["labels"]["team"]
    assert not contains(raw, one)


def test_F3_5_what_was_not_compared_yet_agrees_where_its_digest_is_the_stamp():
    found = replace(agreed(stored(wanted(OLD))), admitted="", content=OLD.stamp)
    assert decided(wanted(OLD), found) == Nothing()


def bare(source_label: str) -> Any:
    """An object that somebody made by hand under a replica's name."""
    metadata = {"name": "dock", "namespace": "robot-r1", "uid": "u9", "resourceVersion": "5"}
    return {"metadata": metadata | {"labels": {SOURCE: source_label}}, "spec": {"x": 9}, "data": {"b": "c"}}


def test_F3_7_an_object_of_that_name_is_refused():
    found = met_row(bare("x" * 24), wanted(OLD))
    assert isinstance(found, Blocked)
    assert found.reason is Reason.NAME_TAKEN
    assert f"label it {SOURCE}={wanted(OLD).source_id}" in found.message
    refused = met_row(bare(""), replace(wanted(OLD), namespace=""))
    assert isinstance(refused, Blocked)
    assert "goals.lab.example.com dock is not" in refused.message


@pytest.mark.parametrize("strategy", list(Strategy))
def test_F3_7_the_label_with_the_source_id_hands_an_object_over(strategy):
    what = wanted(NEW, strategy=strategy)
    raw = bare(what.source_id)
    found = met_row(raw, what)
    assert isinstance(found, Row)
    plan = decided(what, found)
    assert isinstance(plan, Patch)
    after = patched(raw, plan.operations)
    marks = read_marks(after)
    assert marks is not None
    assert marks.placement == "uid-all"
    assert after["metadata"]["labels"][ROBOT_LABEL] == "r1"
    assert after["spec"] == ({"x": 2} if strategy is Strategy.UPDATE else {"x": 9})
    assert decided(what, agreed(after)) == Nothing()


def test_F3_5_a_value_is_not_contained_where_an_object_is():
    one = Rendering({"spec": {"x": 1}}, {}, {}, "s" * 24)
    assert not contains({**stored(wanted(one)), "spec": {"x": {}}}, one)
