"""What is asked before a copy is deleted, in which order, and what each answer leads to (S5.5)."""

from collections import Counter

import pytest

from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.holds.hold_list import KIND_MISSING, MASS_DELETION
from crsyncer.core.holds.hold_steps import Ask, Conclude, Idle, List, Pause, ProveCluster
from crsyncer.core.model import Key, Side, Tombstone
from crsyncer.core.pair.actions import Until, Wait
from crsyncer.errors import NotAllowed, NotServed, Unsure
from tests.core.holds.hold_bench import (
    CONFIRMED,
    DYING,
    NOT_FOUND,
    RESUMED,
    SERVED,
    STORED,
    UNKNOWN,
    A,
    B,
    Bench,
    C,
    crd,
    view,
)

DONE = Conclude(None)
LIST = List(Side.CLOUD, AgentListReason.VERIFY)
MANY = tuple(Key("default", f"g{number}") for number in range(10))


def test_S5_5_a_few_deletions_of_a_kind_that_is_served_are_verified_together():
    bench = Bench()
    bench.delete(A, B)
    assert bench.holds.keeps(A) == Wait(Until.VERIFIED)
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, DONE]
    assert bench.holds.keeps(A) is bench.holds.keeps(B) is None
    assert all(bench.tombstones[key].verified for key in (A, B))


def test_S5_5_rounds_are_a_moment_apart():
    bench = Bench()
    bench.delete(A)
    assert [bench.next(), bench.next([SERVED, crd("u")]), bench.next()] == [bench.ask, DONE, Idle(0.25)]
    assert bench.next(after=0.25) == bench.ask


@pytest.mark.parametrize("error", [Unsure("no answer"), NotAllowed("denied", status=403)])
def test_S5_5_a_question_without_an_answer_ends_the_round_and_verifies_nothing(error):
    bench = Bench()
    bench.delete(A)
    assert [bench.next(), bench.next(error)] == [bench.ask, Conclude(error)]
    assert bench.holds.keeps(A) == Wait(Until.VERIFIED)


@pytest.mark.parametrize("replies", [[DYING, crd("u")], [SERVED, (404, {"reason": "NotFound"})]])
def test_S5_5_a_kind_that_is_not_served_holds_every_copy(replies):
    bench = Bench((A, B, C))
    bench.copies[C] = view("c-1", stamp=True, terminating=True)
    bench.delete(A)
    assert [bench.next(), bench.next(replies)] == [bench.ask, DONE]
    assert bench.holds.keeps(A) == KIND_MISSING
    assert bench.held() == [("KindMissing", {A, B})]
    bench.machine.wanted.clear()
    assert bench.next() == bench.ask  # whether it is back
    assert isinstance(bench.next([DYING, crd("u")]), Idle)


def test_S5_3_an_orphan_is_verified_by_a_list_and_for_one_try():
    bench = Bench()
    bench.machine.wanted = Counter([A])
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, Pause(0.0)]
    assert [bench.next(), bench.next()] == [LIST, DONE]
    assert bench.holds.keeps(A) is None
    bench.holds.orphans.discard(A)
    assert bench.holds.keeps(A) == Wait(Until.VERIFIED)
    assert [bench.next(), bench.next(after=0.25)] == [Idle(0.25), bench.ask]
    assert [bench.next([SERVED, crd("u")]), bench.next(after=1.75)] == [Pause(1.75), LIST]
    bench.machine.wanted.clear()
    assert bench.next() == DONE
    assert bench.holds.keeps(A) == Wait(Until.VERIFIED)  # nobody waited for it any more


@pytest.mark.parametrize(("freshness", "steps"), [(RESUMED, [DONE]), (STORED, [Pause(0.0), LIST])])
def test_S5_5_what_upstream_shows_as_being_deleted_is_verified_without_a_list(freshness, steps):
    bench = Bench()
    bench.upstream |= {A: view(terminating=True), B: view(terminating=True)}
    bench.freshness(Side.CLOUD, freshness)
    bench.machine.wanted = Counter([A])
    assert [bench.next(), *(bench.next([SERVED, crd("u")]) for _ in steps)] == [bench.ask, *steps]
    assert (bench.holds.keeps(B) is None) is (freshness is RESUMED)


@pytest.mark.parametrize("failure", [Unsure("cut"), NotAllowed("denied", status=403)])
def test_S5_3_an_orphan_that_cannot_be_listed_for_is_asked_for_later(failure):
    bench = Bench()
    bench.machine.wanted = Counter([A])
    assert [bench.next(), bench.next([SERVED, crd("u")]), bench.next()] == [bench.ask, Pause(0.0), LIST]
    assert bench.next(failure) == Conclude(failure)


def test_S5_5a_a_list_that_is_refused_shows_that_the_kind_is_missing():
    bench = Bench()
    bench.machine.wanted = Counter([A])
    assert [bench.next(), bench.next([SERVED, crd("u")]), bench.next()] == [bench.ask, Pause(0.0), LIST]
    assert bench.next(NotServed("not served")) == DONE
    assert bench.held() == [("KindMissing", {A, B})]
    assert bench.holds.keeps(A) == KIND_MISSING


def test_S5_5b_a_mass_deletion_is_verified_by_a_list():
    bench = Bench(MANY)
    bench.delete(*MANY)
    assert [bench.next(), bench.next([SERVED, crd("u")]), bench.next()] == [bench.ask, Pause(0.0), LIST]
    bench.upstream[MANY[0]] = view()
    assert bench.next() == DONE
    assert [bench.tombstones[key].verified for key in MANY] == [False] + [True] * 9


def test_S5_5b_deletions_are_counted_against_the_copies_that_there_were_before_them():
    bench = Bench(tuple(Key("default", f"g{number}") for number in range(40)))
    names = list(bench.copies)
    for number in range(0, 12, 3):
        bench.delete(*names[number : number + 3])
        assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, DONE]
        for key in names[number : number + 3]:
            del bench.copies[key]
        bench.machine.wanted.clear()
        assert bench.next() == Idle(None)
        bench.tick(0.25)
    bench.delete(names[12])
    assert bench.next() == bench.ask
    assert isinstance(bench.next([SERVED, crd("u")]), Pause)


def test_C5_4_too_many_copies_that_nothing_refers_to_any_more_are_held_and_no_list_verifies_them():
    for names, held in ((MANY[:5], []), (MANY[:6], [("MassDeletion", {*MANY[:6]})])):
        bench = Bench(MANY)
        bench.tombstones |= {key: Tombstone("u-1", 1.0, unreferenced=True) for key in names}
        bench.machine.wanted.update(names)
        step = bench.next()
        while step != DONE:
            step = bench.next([SERVED, crd("u")] if step == bench.ask else None)
        assert bench.held() == held
        assert {bench.holds.keeps(key) for key in names} == {MASS_DELETION if held else None}
        assert {bench.tombstones[key].verified for key in names} == {not held}


def test_S5_5b_a_list_that_fails_though_upstream_answers_is_repeated_a_few_times():
    bench = Bench(MANY)
    bench.delete(*MANY)
    assert bench.next() == bench.ask
    assert isinstance(bench.next([SERVED, crd("u")]), Pause)
    for failures in (1, 2, 3):
        assert bench.next(after=15.0) == LIST
        assert bench.next(Unsure("busy")) == ProveCluster()
        assert bench.next() == Pause(0.5 * 2**failures, retry=True)
        assert bench.next() == Pause(2.0)
    assert [bench.next(), bench.next(Unsure("busy")), bench.next()] == [LIST, ProveCluster(), DONE]
    assert bench.held() == [("MassDeletion", set(MANY))]
    assert bench.holds.keeps(MANY[0]) == MASS_DELETION


def test_S5_5b_a_connection_that_is_lost_during_a_list_ends_the_round():
    bench = Bench(MANY)
    bench.delete(*MANY)
    lost = Unsure("offline")
    assert [bench.next(), bench.next([SERVED, crd("u")]), bench.next()] == [bench.ask, Pause(0.0), LIST]
    assert [bench.next(lost), bench.next(lost)] == [ProveCluster(), Conclude(lost)]
    assert bench.held() == []


def test_S5_5_where_discovery_is_forbidden_a_list_is_repeated_while_more_deletions_arrive():
    bench = Bench((A, B, C), known=("", ""))
    bench.delete(A)
    assert [bench.next(), bench.next([UNKNOWN, UNKNOWN])] == [bench.ask, Pause(3.0)]
    assert [bench.next(after=3.0), bench.next()] == [Pause(0.0), LIST]
    bench.delete(B)
    assert [bench.next(), bench.next(after=3.0), bench.next()] == [Pause(3.0), Pause(0.0), LIST]
    assert bench.next() == DONE
    assert bench.tombstones[A].verified
    assert bench.tombstones[B].verified


@pytest.mark.parametrize(("later", "held"), [(NOT_FOUND, []), (SERVED, [("KindMissing", {A, B})])])
def test_S5_5_a_list_taken_while_discovery_did_not_know_the_group_counts_if_that_is_still_so(later, held):
    bench = Bench(known=("", ""))
    bench.delete(A)
    assert [bench.next(), bench.next([NOT_FOUND, UNKNOWN])] == [bench.ask, Pause(3.0)]
    assert [bench.next(after=3.0), bench.next()] == [Pause(0.0), LIST]
    assert bench.next() == Ask((bench.discovery,))  # the CRD could not be read
    assert bench.next([later]) == DONE
    assert bench.held() == held
    assert bench.tombstones[A].verified == (not held)


# The CRD


def test_S8_1_the_crd_is_learned_after_each_list_with_discoverys_word_on_its_scope():
    bench = Bench(known=("", ""))
    bench.freshness(Side.CLOUD, CONFIRMED)
    assert [bench.next(), bench.next([crd("u")])] == [bench.ask_crd, Ask((bench.discovery,))]
    assert bench.next([SERVED]) == Idle(None)
    assert bench.machine.crd == ("cluster", "u")
    bench.machine.recheck_crd()
    assert [bench.next(), bench.next(after=0.25)] == [Idle(0.25), bench.ask_crd]
    assert bench.next([crd("u")]) == Idle(None)


def test_S1_7_a_kind_of_another_scope_is_not_served_and_its_crd_not_remembered():
    bench = Bench(known=("", ""))
    bench.machine.recheck_crd()
    assert [bench.next(), bench.next([crd("u")])] == [bench.ask_crd, Ask((bench.discovery,))]
    assert bench.next([(200, {"resources": []})]) == bench.ask
    assert (bench.machine.crd, bench.machine.holds.kind_missing) == (("", ""), True)


def test_S5_5_discovery_that_somebody_else_asked_for_shows_a_kind_that_is_being_deleted():
    bench = Bench()
    for body in (SERVED[1], NOT_FOUND[1]):
        bench.machine.discovery_shown(body)
        assert bench.next() == Idle(None)
    bench.machine.discovery_shown(DYING[1])
    assert bench.machine.holds.kind_missing


def test_S8_1_the_crd_is_also_learned_from_the_question_before_a_deletion():
    bench = Bench(known=("another", "u0"))
    bench.delete(A)
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, DONE]
    assert bench.machine.crd == ("cluster", "u")


@pytest.mark.parametrize("refusal", [UNKNOWN, NOT_FOUND])
def test_S5_5_a_crd_that_could_be_read_is_asked_for_again_for_two_minutes_when_it_is_refused(refusal):
    bench = Bench()
    bench.delete(A)
    bench.next()
    conclusion = bench.next([SERVED, refusal])
    assert isinstance(conclusion, Conclude)
    assert isinstance(conclusion.error, Unsure)
    bench.next()
    assert bench.next(after=119.0) == bench.ask
    assert bench.next([SERVED, crd("u")]) == DONE
    bench.next()
    bench.delete(B)
    assert bench.next(after=1.0) == bench.ask
    assert isinstance(bench.next([SERVED, refusal]), Conclude)
    bench.next()
    assert bench.next(after=120.0) == bench.ask
    assert bench.next([SERVED, refusal]) == DONE
    assert bench.tombstones[B].verified


def test_S8_1_a_crd_that_is_not_known_yet_is_asked_for_again_and_at_once_when_somebody_wishes_so():
    bench = Bench()
    bench.machine.recheck_crd()
    assert [bench.next(), bench.next(Unsure("busy"))] == [bench.ask_crd, Idle(5.0)]
    assert [bench.next(after=5.0), bench.next(Unsure("busy"))] == [bench.ask_crd, Idle(10.0)]
    bench.machine.hurry()
    assert bench.next() == bench.ask_crd
    assert bench.machine.notes == [
        "goals.lab.example.com: the CRD of the cloud is not known yet: busy",
        "goals.lab.example.com: the CRD of the cloud is not known yet: busy",
    ]


def test_S5_5a_a_crd_that_is_being_deleted_holds_the_kind_before_a_deletion_asks():
    bench = Bench(known=("", ""))
    bench.machine.recheck_crd()
    dying = (200, {"metadata": {"uid": "u", "deletionTimestamp": "now"}})
    assert [bench.next(), bench.next([dying])] == [bench.ask_crd, bench.ask]
    assert bench.held() == [("KindMissing", {A, B})]


def test_S8_3_nothing_is_asked_while_upstream_is_away():
    bench = Bench()
    bench.machine.recheck_crd()
    bench.machine.phase_changed(missing=True)
    bench.up = False
    assert bench.next() == Idle(None)
    bench.up = True
    assert bench.next() == bench.ask_crd


def test_S5_5_another_crd_is_another_kind():
    bench = Bench()
    bench.machine.recheck_crd()
    assert [bench.next(), bench.next([crd("new")])] == [bench.ask_crd, ProveCluster()]
    assert bench.next() == bench.ask  # first whether the kind is back; the CRD is asked for a moment later
    assert (bench.machine.crd, bench.machine.cursors_expired) == (("cluster", ""), True)
    assert bench.holds.kind_missing
    assert bench.held() == []
    assert bench.next([SERVED, crd("new")]) == List(Side.ROBOT, AgentListReason.KIND_BACK)
    assert bench.machine.crd == ("cluster", "new")


@pytest.mark.parametrize("how", ["restored", "unproven"])
def test_S8_3_another_clusters_crd_is_not_another_kind(how):
    bench = Bench()
    bench.machine.recheck_crd()
    assert [bench.next(), bench.next([crd("new")])] == [bench.ask_crd, ProveCluster()]
    if how == "restored":
        bench.machine.forget_crd()
    assert bench.next(None if how == "restored" else Unsure("another cluster?")) == Idle(5.0)
    assert not bench.holds.kind_missing


@pytest.mark.parametrize("items", [None, [{"metadata": {"uid": "new"}}], [{"metadata": {"uid": "u"}}]])
def test_S8_1_the_robots_crd_is_read_by_the_right_to_list(items):
    bench = Bench(upstream_side=Side.ROBOT)
    bench.delete(A)
    assert bench.next() == bench.ask
    step = bench.next([SERVED, (200, {"metadata": {"resourceVersion": "9"}, "items": items})])
    assert step == (ProveCluster() if items and items[0]["metadata"]["uid"] == "new" else DONE)
    assert bench.holds.kind_missing is (items is None)
