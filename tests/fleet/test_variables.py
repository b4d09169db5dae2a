"""What expressions see of a source, a replica and a robot (F7.1)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crsyncer.fleet.domain.read_objects import placement_of, source_of, template_source
from crsyncer.fleet.domain.returned.variables import Returned, packed, returned_of, source_object, unpacked
from crsyncer.fleet.domain.values import PlacedKind
from tests.fleet.made import KIND, goal, raw_placement

SECRETS = PlacedKind("secrets", "", "secrets", "Secret", "v1", namespaced=True, sensitive=True)


def replica(**fields: Any) -> Any:
    return {"metadata": {"generation": 3}, **fields}


def test_F7_1_a_status_that_is_not_there_is_an_empty_object():
    for raw in (replica(), replica(status=None), replica(status="on"), replica(status=[1])):
        assert returned_of(raw) == Returned({}, 3)
    assert returned_of({"metadata": {}, "status": {"a": 1}}) == Returned({"a": 1}, 0)


def test_F7_1_the_time_is_that_of_the_latest_write_of_the_status():
    def updated(fields: Any) -> str | None:
        return returned_of({"metadata": {"managedFields": fields}}).updated

    entries: list[Any] = [
        {"subresource": "status", "time": "2026-11-02T00:00:00Z"},
        {"subresource": "status", "time": "2026-11-03T00:00:00Z"},
        {"time": "2026-11-04T00:00:00Z"},
        {"subresource": "status"},
        {"subresource": "status", "time": 9},
        "nonsense",
    ]
    assert updated(entries) == "2026-11-03T00:00:00Z"
    assert updated(entries[2:]) is None
    assert updated("nonsense") is None
    assert returned_of(replica()).updated is None


def test_F7_a_large_or_deep_status_is_an_error_before_it_is_looked_at():
    assert returned_of(replica(status={"a": "x" * (256 << 10)})).problem == (
        "the status has 262152 bytes; allowed: 262144"
    )
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert returned_of(replica(status={"a": deep})).problem == "the status is nested too deeply"


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())), st.integers(0), st.text())
def test_what_is_kept_of_a_status_is_what_it_was(status, generation, text):
    for found in (Returned(status, generation, text), Returned(generation=generation, problem=text)):
        assert unpacked(packed(found)) == found


def test_F7_1_obj_is_the_source_without_its_version():
    raw = goal(status={"x": 1})
    raw["metadata"] |= {"managedFields": [{}], "labels": {"a": "b"}}
    assert source_object(source_of(raw, "goals.lab.example.com"), KIND) == {
        "apiVersion": "lab.example.com/v1",
        "kind": "Goal",
        "metadata": {"name": "dock", "namespace": "site", "uid": "uid-dock", "labels": {"a": "b"}},
        "spec": {"x": 1},
    }


def test_F7_1_obj_of_a_template_has_its_name_and_kind():
    template = {"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"y": 1}}}
    placement = placement_of(raw_placement(templates=[template]))
    assert source_object(template_source(placement, placement.templates[0]), KIND) == {
        "apiVersion": "lab.example.com/v1",
        "kind": "Goal",
        "metadata": {"name": "t", "namespace": "site"},
        "spec": {"y": 1},
    }


def test_F2_3_no_value_of_a_secret_is_in_obj():
    raw = goal(data={"password": "aHVudGVy"}, stringData={"password": "hunter"}, type="Opaque")
    raw["metadata"] |= {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter"}}
    raw["metadata"] |= {"labels": {"team": "x"}}
    assert source_object(source_of(raw, "secrets"), SECRETS) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": "dock", "namespace": "site", "labels": {"team": "x"}},
    }


def test_of_a_source_that_cannot_be_rendered_only_the_name_is_known():
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for source in (source_of(goal(spec=deep), "goals"), template_source(*odd_template())):
        found = source_object(source, KIND)
        assert found.keys() == {"apiVersion", "kind", "metadata"}


def odd_template() -> Any:
    template = {"name": "t", "group": "", "resource": "goals", "object": {"metadata": "odd"}}
    placement = placement_of(raw_placement(templates=[template]))
    return placement, placement.templates[0]
