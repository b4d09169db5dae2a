"""The convergence checker on histories written by hand: it accepts what is right, and names what is not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.faults.chaos import checker
from tests.faults.chaos.history import Asked, Done, Evidence, Relist, Seen
from tests.faults.chaos.kinds import KINDS
from tests.faults.chaos.relists import unexplained_relists
from tests.faults.chaos.report import story
from tests.faults.chaos.schedule import Step, draw
from tests.system.bed import LABEL, OURS

GOALS, ERRANDS, MACHINES = KINDS["goals"], KINDS["errands"], KINDS["machines"]


def cloud(at: float, *, uid: str = "U", serial: int = 1, seq: int = 0, of: str = "", **more: Any) -> Seen:
    """Upstream's object `a`; `of` is the uid in its status."""
    kind = more.pop("kind", "goals")
    metadata = {"name": "a", "uid": uid, "resourceVersion": "1", **more.pop("metadata", {})}
    status = {"seq": seq, "uid": of or uid} if seq else {}
    gone, after = more.pop("gone", False), more.pop("after", at)
    return Seen(at, after, "cloud", kind, gone, {"metadata": metadata, "spec": {"serial": serial}, "status": status})


def robot(at: float, *, uid: str = "c", stamp: str = "U", serial: int = 1, seq: int = 0, **more: Any) -> Seen:
    """Its copy."""
    seen = cloud(at, uid=uid, serial=serial, seq=seq, of=stamp, **more)
    metadata = {**seen.obj["metadata"], "annotations": {f"{OURS}upstream-uid": stamp}}
    return replace(seen, side="robot", obj={**seen.obj, "metadata": metadata})


def delete(at: float, uid: str = "c") -> Asked:
    return Asked(at, "robot", "goals", "DELETE", "a", 200, uid)


def done(action: str, began: float, ended: float, **arguments: Any) -> Done:
    return Done(Step(began, action, arguments), began, ended)


def rules(found: Any) -> list[str]:
    return [violation.rule for violation in found]


def test_both_sides_agree_when_content_and_status_are_the_same():
    assert list(checker.diverged(GOALS, [cloud(1, seq=3)], [robot(1, seq=3)])) == []


@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [
        ([cloud(1)], []),
        ([], [robot(1)]),
        ([cloud(1, uid="V")], [robot(1)]),
        ([cloud(1, serial=2)], [robot(1)]),
        ([cloud(1)], [robot(1, seq=4)]),
        ([cloud(1, metadata={"labels": {"x": "1"}})], [robot(1)]),
        ([cloud(1, metadata={"deletionTimestamp": "now"})], [robot(1)]),
    ],
    ids=["no copy", "no object", "another uid", "older spec", "status missing", "label missing", "terminating"],
)
def test_a_difference_that_stays_is_a_violation(upstream: list[Seen], downstream: list[Seen]):
    assert rules(checker.diverged(GOALS, upstream, downstream)) == ["not converged"]


def test_an_object_of_another_robot_has_no_copy():
    other = cloud(1, kind="errands", metadata={"labels": {LABEL: "robot-2"}})
    assert list(checker.diverged(ERRANDS, [other], [])) == []
    assert rules(checker.diverged(ERRANDS, [other], [robot(1, kind="errands")])) == ["not converged"]


def test_a_copy_may_be_deleted_once_its_object_is_gone():
    seen = (cloud(1), robot(2), cloud(9, gone=True), robot(10, gone=True))
    assert list(checker.wrong_deletes(GOALS, Evidence(seen=seen, asked=(delete(9.5),)))) == []


def test_a_copy_that_was_deleted_while_its_object_was_there_is_a_wrong_delete():
    seen = (cloud(1), robot(2), robot(10, gone=True))
    assert rules(checker.wrong_deletes(GOALS, Evidence(seen=seen, asked=(delete(9.5),)))) == ["wrong delete"]


def test_a_copy_that_was_deleted_long_before_its_object_is_a_wrong_delete():
    seen = (cloud(1), robot(2), robot(10, gone=True), cloud(60, gone=True))
    assert rules(checker.wrong_deletes(GOALS, Evidence(seen=seen, asked=(delete(9.5),)))) == ["wrong delete"]


def test_what_came_about_while_the_recorder_was_blind_excuses_a_deletion():
    seen = (cloud(1), robot(2), robot(10, gone=True), cloud(60, gone=True, after=8))
    assert list(checker.wrong_deletes(GOALS, Evidence(seen=seen, asked=(delete(9.5),)))) == []


def test_a_deletion_that_was_refused_deleted_nothing():
    seen = (cloud(1), robot(2))
    refused = replace(delete(9.5), status=409)
    assert list(checker.wrong_deletes(GOALS, Evidence(seen=seen, asked=(refused,)))) == []


def test_a_copy_may_skip_specs_but_never_goes_back():
    forward = (robot(1, serial=1), robot(2, serial=5), robot(3, stamp="V", serial=2))
    assert list(checker.spec_order(GOALS, Evidence(seen=forward))) == []
    back = (robot(1, serial=5), robot(2, serial=1))
    assert rules(checker.spec_order(GOALS, Evidence(seen=back))) == ["out of order"]


def test_statuses_upstream_only_go_forward_and_are_the_objects_own():
    assert list(checker.status_order(GOALS, Evidence(seen=(cloud(1, seq=1), cloud(2, seq=4))))) == []
    back = (cloud(1, seq=4), cloud(2, seq=1))
    assert rules(checker.status_order(GOALS, Evidence(seen=back))) == ["status out of order"]
    others = (cloud(1, seq=1), cloud(2, seq=1, gone=True), cloud(3, uid="V", seq=1, of="U"))
    assert rules(checker.status_order(GOALS, Evidence(seen=others))) == ["another's status"]


def test_a_neighbour_of_the_subtree_never_goes_back():
    def machine(at: float, seq: int) -> Seen:
        seen = cloud(at, kind="machines")
        return replace(seen, obj={**seen.obj, "status": {"cloud": {"seq": seq}}})

    assert list(checker.status_order(MACHINES, Evidence(seen=(machine(1, 1), machine(2, 2))))) == []
    back = Evidence(seen=(machine(1, 2), machine(2, 1)))
    assert rules(checker.status_order(MACHINES, back)) == ["neighbour's status"]


def test_the_last_status_of_a_copy_that_is_gone_must_have_come_up():
    seen = (cloud(1), robot(2), robot(3, seq=5), robot(4, seq=5, gone=True))
    assert rules(checker.lost_finals(GOALS, Evidence(seen=seen))) == ["lost final status"]
    assert list(checker.lost_finals(GOALS, Evidence(seen=(*seen, cloud(5, seq=5))))) == []


def test_a_last_status_may_be_lost_with_its_object_or_where_nobody_could_see_it():
    seen = (cloud(1), robot(2), robot(3, seq=5), robot(4, seq=5, gone=True))
    assert list(checker.lost_finals(GOALS, Evidence(seen=(*seen, cloud(5, gone=True))))) == []
    listed = Asked(6, "robot", "goals", "LIST", "", 200)
    assert list(checker.lost_finals(GOALS, Evidence(seen=seen, asked=(listed,)))) == []


def test_an_object_that_is_on_its_way_out_still_gets_its_last_status():
    leaving = {"deletionTimestamp": "now", "finalizers": ["x"]}
    seen = (cloud(1), robot(3, seq=5), cloud(4, metadata=leaving), robot(5, seq=5, gone=True))
    assert rules(checker.lost_finals(GOALS, Evidence(seen=seen))) == ["lost final status"]


@pytest.mark.parametrize("reason", ["expired", "unproven"])
def test_a_relist_is_explained_by_what_makes_a_server_forget(reason: str):
    expired = Relist(50, "cloud", "goals", reason)
    assert rules(unexplained_relists(Evidence(relists=(expired,)))) == ["unexplained relist"]
    restart = done("restart", 40, 45, side="cloud")
    assert list(unexplained_relists(Evidence(relists=(expired,), done=(restart,)))) == []
    elsewhere = done("restart", 40, 45, side="robot")
    assert rules(unexplained_relists(Evidence(relists=(expired,), done=(elsewhere,)))) == ["unexplained relist"]


def test_one_restart_explains_one_relist_unless_the_list_was_disturbed():
    twice = (Relist(50, "cloud", "goals", "expired"), Relist(60, "cloud", "goals", "expired"))
    restart = done("restart", 40, 45, side="cloud")
    assert rules(unexplained_relists(Evidence(relists=twice, done=(restart,)))) == ["unexplained relist"]
    cut = done("cut", 50.5, 55, side="cloud")
    assert list(unexplained_relists(Evidence(relists=twice, done=(restart, cut)))) == []


def test_a_list_that_looks_twice_does_not_take_the_cause_of_another_that_was_counted_with_it():
    together = (Relist(50, "cloud", "goals", "verify"), Relist(50, "cloud", "goals", "unproven"))
    restart = done("restart", 40, 45, side="cloud")
    assert list(unexplained_relists(Evidence(relists=together, seen=(cloud(49, gone=True),), done=(restart,)))) == []


def test_a_list_that_looks_twice_before_a_deletion_needs_one():
    verify = Relist(50, "cloud", "goals", "verify")
    assert rules(unexplained_relists(Evidence(relists=(verify,)))) == ["unexplained relist"]
    assert list(unexplained_relists(Evidence(relists=(verify,), seen=(cloud(49, gone=True),)))) == []


@pytest.mark.parametrize("reason", ["outbox", "unanswered"])
def test_what_was_left_open_when_the_agent_ended_explains_a_list(reason):
    waited = Relist(50, "robot", "goals", reason)
    assert rules(unexplained_relists(Evidence(relists=(waited,)))) == ["unexplained relist"]
    assert list(unexplained_relists(Evidence(relists=(waited,), done=(done("agent_kill", 40, 41),)))) == []


def test_a_restore_that_nobody_made_is_a_violation():
    restored = Relist(50, "cloud", "goals", "restored")
    restart = done("restart", 40, 45, side="cloud")
    assert rules(unexplained_relists(Evidence(relists=(restored,), done=(restart,)))) == ["unexplained relist"]


def test_what_the_agent_says_of_itself_and_of_the_machine_counts():
    ill = Evidence(
        status={"health": "attention", "holds": [{"reason": "x", "resource": "y", "objects": 1}]},
        log="Traceback (most recent call last)",
        done=(Done(Step(1, "agent_stop"), 1, 20, "it does not end"),),
    )
    found = rules([*checker.unhealthy(ill), *checker.unsound_process(ill)])
    assert found == ["not healthy", "held", "traceback", "slow end"]


def test_the_same_seed_draws_the_same_schedule_and_another_one_another():
    assert draw(seed=7, seconds=60) == draw(seed=7, seconds=60) != draw(seed=8, seconds=60)
    steps = draw(seed=7, seconds=600)
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert {step.arguments.get("kind") for step in steps} == {*KINDS, None}


def test_a_violation_is_told_with_both_sides_and_what_was_done_around_it():
    seen = (cloud(1), robot(2), robot(10, gone=True))
    evidence = Evidence(seen=seen, asked=(delete(9.5),), done=(done("cut", 9, 12, side="cloud"),))
    [violation] = checker.wrong_deletes(GOALS, evidence)
    told = story(violation, evidence, replay="make chaos SEED=7")
    for text in (
        "wrong delete: goals a",
        "cloud  there uid=U",
        "robot  gone uid=c",
        "DELETE c",
        "cut side=cloud",
        "SEED=7",
    ):
        assert text in told
