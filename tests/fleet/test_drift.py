"""Drift, and which versions of a replica tell something new: events, and answers to our writes, in any order (F3.5)."""

import pytest

from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.change import Change
from crsyncer.fleet.domain.names import REPLICA
from crsyncer.fleet.domain.values import Nothing, Patch
from tests.fleet.events import strip
from tests.fleet.made import GOALS, decided, goal, key, placed, ready_fleet


def later(raw: Json, version: str, **fields: object) -> Json:
    """The replica after somebody else's change."""
    return {**raw, **fields, "metadata": raw["metadata"] | {"resourceVersion": version}}


def test_F3_5_drift_is_seen_against_our_own_write():
    fleet = ready_fleet()
    raw = placed(fleet)
    raw["spec"]["defaulted"] = True
    fleet.written(raw, GOALS)
    assert fleet.object_shown(raw, GOALS).keys == {key("r1")}
    assert decided(fleet) == Nothing()
    raw["spec"]["x"] = 9
    fleet.object_shown(raw, GOALS)
    assert isinstance(decided(fleet), Patch)
    assert fleet.written(goal(), GOALS) == Change()


@pytest.mark.parametrize(("spec", "plan"), [({"x": 1, "defaulted": True}, Nothing), ({"x": 9}, Patch)])
def test_F3_5_after_a_start_a_replica_must_contain_its_rendering(spec, plan):
    fleet = ready_fleet()
    raw = placed(fleet)
    fleet.object_shown({**raw, "spec": spec}, GOALS)
    assert isinstance(decided(fleet), plan)


def test_F3_5_what_cannot_be_compared_after_a_start_has_not_drifted():
    fleet = ready_fleet()
    raw = placed(fleet)
    fleet.strip_shown(strip(path="x"))
    fleet.object_shown({**raw, "spec": {"x": 9}}, GOALS)
    fleet.strip_gone("s")
    assert decided(fleet) == Nothing()


@pytest.mark.parametrize("order", ["answer first", "event first", "a later event first"])
@pytest.mark.parametrize(("spec", "plan"), [({"x": 1, "defaulted": True}, Nothing), ({"x": 9}, Patch)])
def test_F3_5_what_the_server_made_of_a_write_is_no_drift_in_whichever_order_it_is_shown(order, spec, plan):
    fleet = ready_fleet()
    answer = later(placed(fleet), "9", spec={"x": 1, "defaulted": True})
    event = later(answer, "10", spec=spec)
    if order != "answer first":
        fleet.object_shown(answer, GOALS)
    if order == "a later event first":
        fleet.object_shown(event, GOALS)
    assert fleet.written(answer, GOALS).keys == ({key("r1")} if order == "answer first" else set())
    assert fleet.is_seen(GOALS, key_of(answer), answer["metadata"])
    assert fleet.is_seen(GOALS, key_of(event), event["metadata"]) is (order == "a later event first")
    fleet.object_shown(event, GOALS)
    assert isinstance(decided(fleet), plan)
    assert fleet.rows[key("r1")].resource_version == "10"


def test_F3_5_what_the_server_puts_in_place_of_our_content_is_known_by_the_answer_to_our_write():
    fleet = ready_fleet()
    changed = later(placed(fleet), "9", spec={"x": 5})
    fleet.object_shown(changed, GOALS)
    assert isinstance(decided(fleet), Patch)
    assert fleet.written(changed, GOALS).keys == {key("r1")}
    assert decided(fleet) == Nothing()


@pytest.mark.parametrize("mark", ['"n":1', "{}"])
def test_F3_5_a_late_answer_to_an_earlier_write_changes_nothing(mark):
    fleet = ready_fleet()
    raw = later(placed(fleet), "9")
    said = raw["metadata"]["annotations"][REPLICA]
    newer, older = later(raw, "10"), later(raw, "9")
    newer["metadata"]["annotations"] = {REPLICA: said.replace('"n":1', '"n":2')}
    older["metadata"]["annotations"] = {REPLICA: said if mark in said else mark}
    fleet.object_shown(newer, GOALS)
    known = fleet.rows[key("r1")]
    fleet.written(older, GOALS)
    assert fleet.rows[key("r1")] == known


def test_S8_3_versions_tell_nothing_from_a_restore_until_the_kind_is_listed_again():
    fleet = ready_fleet()
    raw = placed(fleet)
    fleet.object_shown(raw, GOALS)
    place, metadata = key_of(raw), raw["metadata"]
    assert fleet.is_seen(GOALS, place, metadata)
    assert not fleet.is_seen(GOALS, place, metadata | {"uid": "other"})
    assert not fleet.is_seen(GOALS, Key("robot-r1", "other"), metadata)
    fleet.rewound.add(GOALS)
    assert not fleet.is_seen(GOALS, place, metadata)
    fleet.inputs_listed(GOALS)
    assert fleet.is_seen(GOALS, place, metadata)
    fleet.listed.discard(GOALS)
    assert not fleet.is_seen(GOALS, place, metadata)
