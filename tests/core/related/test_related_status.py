"""The status of a related object goes to its copy, and nowhere else (C5.5)."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.console.confinement.manifests import Profile, rules
from crsyncer.core.accounts.access import needs, needs_text
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Freshness, Json, Key, Observation, Record, Side, Stamp, View
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.actions import Agreed, Seed, Until, Update, Wait, Why
from crsyncer.core.pair.decide import decide
from crsyncer.core.related.relate import related_entries, related_policy
from crsyncer.core.reports.facts import Action, fact_of_write
from tests.core.builders import crd, goal, spoken
from tests.core.policy_objects import merged_of, policy_object

UP = View("u", "1", 1, False, "content", "new", has_status=True)
COPY = View("c", "7", 1, False, "content", "made", has_status=True, stamp=Stamp("u", robot="robot-1", digest="content"))
KNOWN = Record(upstream_uid="u", applied="content", upstream_status="old", acknowledged="made", had_status=True)
WRITE = Seed("c", "7", follows=True)
EMPTY: Json = {"status": "", "has_status": False}


def related_kind(*statuses: bool, origin: str = "cloud") -> KindPolicy:
    """A kind of related objects, with an entry for each of these."""
    entry: Json = {"origin": origin, "resource": {"group": "", "resource": "maps"}, "object": {"name": "m"}}
    related = [{"id": f"x{number}", **entry, "status": status} for number, status in enumerate(statuses)]
    own = merged_of(crd({}), policy_object(specSource="cloud", related=related))
    return related_policy(crd({}), related_entries(own), "robot-1")


def parts(*, status: bool = True, copies: bool = True, origin: str = "cloud") -> KindPolicy:
    """A kind of related objects; `copies`: their side has `/status`."""
    found = spoken(related_kind(status, origin=origin))
    there = replace(found.endpoint(found.downstream), status=copies)
    return replace(found, on_robot=there) if origin == "cloud" else replace(found, in_cloud=there)


@pytest.mark.parametrize(
    ("what", "up", "copy", "known", "audit", "writes"),
    [
        ("it has changed", {}, {}, {}, False, True),
        ("it is the first one", {}, EMPTY, {"upstream_status": "", "acknowledged": ""}, False, True),
        ("the record is of another object", {"status": "old"}, EMPTY, {"upstream_uid": "x"}, False, True),
        ("it was written", {"status": "old"}, {}, {}, False, False),
        ("the copy is new", {"status": "old"}, EMPTY, {"seed": True}, False, True),
        ("somebody wrote the copy's", {"status": "old"}, {"status": "theirs"}, {}, False, False),
        ("the audit finds that", {"status": "old"}, {"status": "theirs"}, {}, True, True),
        ("the audit finds what the schema made of it", {"status": "old"}, {}, {}, True, False),
        ("it is gone", EMPTY, {}, {}, False, True),
        ("it never was", EMPTY, {"status": "theirs"}, {"upstream_status": "", "acknowledged": ""}, True, False),
        ("it is gone, and was removed", EMPTY, {"status": "theirs"}, {"upstream_status": ""}, True, False),
        ("it returns while another is on its way", {"status": "old"}, {}, {"seeding": "6"}, False, True),
        ("it is gone while the first is on its way", EMPTY, {}, {"upstream_status": "", "seeding": "6"}, False, True),
        ("it is not an object", {"odd_status": True}, {}, {}, True, False),
        ("both have the same", {}, {"status": "new"}, {}, True, False),
    ],
)
@pytest.mark.parametrize("origin", ["cloud", "robot"])
def test_C5_5_the_status_is_written_when_it_has_changed_and_at_the_audit(what, up, copy, known, audit, writes, origin):
    found = Observation(replace(UP, **up)), Observation(replace(COPY, **copy))
    for kind, seeds in (
        (parts(origin=origin), writes),
        (parts(origin=origin, status=False), False),
        (parts(origin=origin, copies=False), False),
    ):
        plan = decide(*found, kind, replace(KNOWN, **known), audit=audit)
        assert plan.content == (WRITE if seeds else None), what


@pytest.mark.parametrize(
    ("what", "copy", "known", "writes"),
    [
        ("the copy has what was written last", {}, {}, True),
        ("the copy is new", EMPTY, {"seed": True, "acknowledged": "", "upstream_status": ""}, True),
        ("the copy has another", {"status": "newer"}, {}, False),
        ("the copy has one, and it was not noted that it got it", {}, {"seed": True, "acknowledged": ""}, False),
        ("the copy's was removed", EMPTY, {}, False),
    ],
)
def test_C5_5_S4_1_on_old_knowledge_no_status_is_written_that_may_be_older_than_the_copys(what, copy, known, writes):
    record, down = replace(KNOWN, **known), Observation(replace(COPY, **copy))
    for freshness, other in ((Freshness.STORED, None), (Freshness.RESUMED, Wait(Until.UPSTREAM_LISTED))):
        assert decide(Observation(UP, freshness), down, parts(), record).content == (WRITE if writes else other), what
    assert decide(Observation(UP), down, parts(), record).content == WRITE


def test_C5_5_content_and_marks_go_first_and_nothing_is_written_to_what_is_not_ours():
    def planned(**copy: Any) -> object:
        return decide(Observation(UP), Observation(replace(COPY, **copy)), parts(), KNOWN).content

    assert planned(content="drift") == Update("c", "7", Why.DRIFT)
    assert planned(unmarked=True) == Update("c", "7", Why.MARKS)
    assert planned(terminating=True) is None
    assert not isinstance(planned(stamp=Stamp("another", digest="content")), Seed)
    assert not isinstance(planned(stamp=None, controlled=True), Seed)
    gone = decide(Observation(replace(UP, terminating=True)), Observation(COPY), parts(), KNOWN)
    assert not isinstance(gone.content, Seed)


def test_C5_5_a_status_that_is_rejected_waits_and_one_without_a_place_is_not_written():
    found = Observation(UP), Observation(COPY)
    assert decide(*found, parts(), KNOWN, rejected="new").content == Wait(Until.RETRY)
    assert decide(*found, parts(), KNOWN, rejected="old").content == WRITE
    assert decide(*found, parts(), KNOWN, lacks_status=True).content is None
    removal = Observation(replace(UP, **EMPTY))
    assert decide(removal, found[1], parts(), KNOWN, rejected="").content == WRITE


def test_C5_5_a_copy_that_has_its_originals_status_is_remembered_and_nothing_goes_up():
    same = Observation(replace(COPY, status="new"))
    assert decide(Observation(UP), same, parts(), KNOWN).status == Agreed("u", "new")
    known = replace(KNOWN, upstream_status="new", acknowledged="new")
    assert decide(Observation(UP), same, parts(), known).status is None
    assert decide(Observation(UP), same, parts(), replace(known, seeding="6")).status == Agreed("u", "new")
    assert decide(Observation(UP), same, parts(), replace(known, seeding="7")).status is None, "it may have another"
    assert decide(Observation(replace(UP, odd_status=True)), same, parts(), KNOWN).status is None
    assert decide(Observation(UP), Observation(COPY), parts(), KNOWN).status is None
    assert decide(Observation(UP), same, parts(status=False), KNOWN).status is None
    assert decide(Observation(UP), same, parts(copies=False), KNOWN).status is None


def test_C5_5_a_status_is_put_with_the_whole_copy_in_its_version_or_taken_away():
    copy: Json = goal(metadata={"uid": "c", "resourceVersion": "7"}, status={"n": 0})
    call = object_calls.seed_status(
        parts(), Key("default", "a"), uid="c", resource_version="7", status={"n": 1}, whole=copy
    )
    assert (call.method, call.path.endswith("/a/status"), call.body["status"]) == ("PUT", True, {"n": 1})
    assert (call.body["metadata"], call.body["spec"]) == (copy["metadata"], copy["spec"])
    none = object_calls.seed_status(
        parts(), Key("default", "a"), uid="c", resource_version="7", status=None, whole=copy
    )
    assert ("status" in none.body, none.body["metadata"]) == (False, copy["metadata"])
    assert copy["status"] == {"n": 0}


def test_C5_5_the_account_on_the_copies_side_needs_to_write_statuses():
    wanted = "update goals/status"
    for origin, side in (("cloud", Side.ROBOT), ("robot", Side.CLOUD)):
        assert wanted in needs_text(needs(parts(origin=origin), side))
        assert wanted not in needs_text(needs(parts(origin=origin), side.other))
        assert wanted not in needs_text(needs(parts(origin=origin, status=False), side))
        assert wanted not in needs_text(needs(parts(origin=origin, copies=False), side))


@pytest.mark.parametrize("profile", Profile)
def test_C5_5_only_who_copies_statuses_into_the_cloud_may_write_them_there(profile):
    for status, wanted in ((True, [["update"]]), (False, [])):
        found = rules(parts(origin="robot", status=status), profile)
        assert [rule["verbs"] for rule in found if rule["resources"] == ["goals/status"]] == wanted
    assert [rule["resources"] for rule in rules(parts(origin="cloud"), profile)] == [["goals"]]


def test_C5_5_statuses_that_are_copied_are_no_events_to_keep():
    fact = fact_of_write(WRITE, side=Side.ROBOT, resource="parts", key=Key("default", "a"))
    assert (fact.action, fact.rule) == (Action.SENT, "C5.5")


def test_C5_5_entries_of_one_kind_agree_on_it():
    assert "differ in status for goals" in related_kind(True, False).problem
