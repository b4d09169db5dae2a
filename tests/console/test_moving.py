"""What `crsyncer doctor --from-cr-syncer` says of a robot that still runs the Go cr-syncer."""

import pytest

from crsyncer.console.set_up.doctor_report import Check, Mark
from crsyncer.console.set_up.moving_report import (
    FINALIZER,
    NOTE,
    Forecast,
    Pairs,
    Predecessor,
    flags,
    forecast,
    judge_cost,
    judge_flags,
    judge_pairs,
    judge_predecessor,
    judge_reading,
)
from crsyncer.core.content.annotations import FILTER, ROBOT_LABEL, SPEC_SOURCE, SUBTREE
from crsyncer.core.model import Key, Side
from tests.console.moving_kit import deployment, named, pairs, workload
from tests.core.builders import ROBOT_NAME, copy_of, crd, policy

MINE = {ROBOT_LABEL: ROBOT_NAME}
SERVER = "https://www.example.com/apis/core.kubernetes"


def judged(found: Pairs, *namespaces: str) -> dict[str, Check]:
    """The checks that are not ok, by name."""
    checks = list(judge_pairs(found, forecast(found), namespaces=namespaces))
    assert all(check.hint for check in checks if check.state is not Mark.OK)
    return {check.name: check for check in checks if check.state is not Mark.OK}


@pytest.mark.parametrize(
    ("deployments", "pods", "agent_runs", "mark", "said"),
    [
        ([deployment()], [], False, Mark.WARN, "Deployment default/cr-syncer still runs"),
        ([deployment()], [], True, Mark.FAIL, "each undoes the other's annotations"),
        ([deployment(replicas=0)], [], True, Mark.OK, "no Deployment or pod"),
        ([], [workload()], False, Mark.WARN, "pod default/cr-syncer still runs"),
        ([], [workload() | {"status": {"phase": "Succeeded"}}], False, Mark.OK, "no Deployment or pod"),
        (None, [], False, Mark.UNKNOWN, "may not list"),
        ([deployment()], None, False, Mark.WARN, "still runs"),
    ],
)
def test_two_writers_are_a_failure_and_one_is_to_be_stopped_first(deployments, pods, agent_runs, mark, said):
    check = judge_predecessor(Predecessor(deployments, pods), agent_runs=agent_runs)
    assert (check.state, bool(check.hint)) == (mark, mark is not Mark.OK)
    assert said in check.message
    if deployments and mark is not Mark.OK:
        assert "kubectl -n default scale deployment cr-syncer --replicas=0" in check.hint


def test_flags_are_read_as_go_reads_them():
    given = ["-remote-server", "www.example.com", "--robot-name=r1", "-alsologtostderr", "--verbose=false", "rest"]
    assert flags(given) == {
        "remote-server": "www.example.com",
        "robot-name": "r1",
        "alsologtostderr": "true",
        "verbose": "false",
    }


@pytest.mark.parametrize("remote", ["www.example.com", "https://www.example.com/"])
def test_the_same_name_and_address_need_no_word(remote):
    found = Predecessor([deployment("--remote-server", remote, "--robot-name", ROBOT_NAME)], [])
    assert list(judge_flags(found, robot=ROBOT_NAME, server=SERVER)) == []
    assert list(judge_flags(Predecessor(None, None), robot=ROBOT_NAME, server=SERVER)) == []


def test_another_name_is_a_failure_another_address_a_question():
    arguments = ("--remote-server=old.example.com", "--robot-name=r9", "--use-robot-jwt")
    name, address, jwt = judge_flags(Predecessor([], [workload(*arguments)]), robot=ROBOT_NAME, server=SERVER)
    assert (name.state, name.hint) == (Mark.FAIL, "robotName: r9")
    assert (address.state, address.side) == (Mark.WARN, Side.CLOUD)
    assert "https://old.example.com/apis/core.kubernetes" in address.message
    assert "crsyncer cloud-kubeconfig --remote-server old.example.com" in address.hint
    assert (jwt.state, "JWT" in jwt.hint) == (Mark.WARN, True)
    [nameless] = judge_flags(Predecessor([deployment()], []), robot=ROBOT_NAME, server=SERVER)
    assert nameless.hint == "is this the right robot?"


@pytest.mark.parametrize(
    ("annotations", "robot", "mark", "said"),
    [
        ({SPEC_SOURCE: "cloud"}, ROBOT_NAME, Mark.OK, "read as the Go cr-syncer reads them"),
        ({SPEC_SOURCE: "cloud", SUBTREE: "robot"}, ROBOT_NAME, Mark.OK, "only status.robot is synced, as before"),
        ({SPEC_SOURCE: "cloud", SUBTREE: "a.b"}, ROBOT_NAME, Mark.WARN, 'for one key named "a.b"'),
        ({SPEC_SOURCE: "cloud", SUBTREE: ""}, ROBOT_NAME, Mark.WARN, "for the whole status"),
        ({SPEC_SOURCE: "cloud", FILTER: "yes"}, ROBOT_NAME, Mark.WARN, "syncs all objects"),
        ({SPEC_SOURCE: "cloud", FILTER: "true"}, "", Mark.WARN, "has no robot name"),
        ({SPEC_SOURCE: "robot"}, ROBOT_NAME, Mark.WARN, "newer versions of the Go cr-syncer do not sync"),
    ],
)
def test_annotations_that_the_go_cr_syncer_reads_otherwise_are_named(annotations, robot, mark, said):
    [check] = judge_reading(crd(annotations), robot)
    assert (check.state, bool(check.hint)) == (mark, mark is not Mark.OK)
    assert said in check.message


def test_a_kind_that_nobody_syncs_is_passed_over():
    assert list(judge_reading(crd({FILTER: "true"}), ROBOT_NAME)) == []
    assert list(judge_reading(crd(None), ROBOT_NAME)) == []


def test_copies_are_adopted_and_what_is_missing_is_created():
    adopted = named("own")
    found = pairs(
        cloud=[named("a"), named("new"), adopted],
        robot=[named("a", uid="other"), copy_of(adopted, policy())],
    )
    what = forecast(found)
    assert [what.adopted, what.created, what.own] == [[Key("default", name)] for name in ("a", "new", "own")]
    assert judged(found) == {}
    [copies] = judge_pairs(found, what, namespaces=())
    assert copies.message == (
        "crsyncer adopts 1 in place, one write each, no status changes; has adopted 1 already; creates 1: default/new"
    )
    assert (
        "lists 3 objects of the cloud and 2 of the robot, and writes 2 times on the robot"
        in judge_cost({"goals": (found, what)}).message
    )


def test_what_upstream_does_not_have_is_told_before_it_is_deleted():
    leaving = named("leaving", deletionTimestamp="2026-01-01T00:00:00Z")
    found = pairs(cloud=[leaving], robot=[named(n) for n in ("a", "b", "c", "d", "leaving")])
    assert forecast(found).ended == [Key("default", "leaving")]
    check = judged(found)["orphans"]
    assert (check.state, check.side) == (Mark.WARN, Side.ROBOT)
    assert (
        "crsyncer deletes 4 objects that the cloud does not have: default/a, default/b, default/c and 1 more"
        in check.message
    )
    assert "orphans=keep" in check.hint
    kept = pairs(cloud=[], robot=[named("a")], keep_orphans=True)
    assert (judged(kept), forecast(kept).kept) == ({}, [Key("default", "a")])
    ending = pairs(cloud=[], robot=[named("a", deletionTimestamp="2026-01-01T00:00:00Z")])
    assert forecast(ending) == Forecast()


def test_deletions_outside_of_default_are_a_failure_because_the_go_cr_syncer_never_made_them():
    found = pairs(cloud=[named("x", "elsewhere")], robot=[named("a", "kitchen"), named("b", "kitchen")])
    checks = judged(found)
    assert checks["orphans"].state is Mark.FAIL
    assert "deletes 2 objects outside of default that the cloud does not have" in checks["orphans"].message
    assert "(1 in the cloud, 2 on the robot)" in checks["namespaces"].message
    for name in ("orphans", "namespaces"):
        assert "--namespace default" in checks[name].hint


def test_a_robot_without_the_namespace_default_leaves_its_copies_there():
    check = judged(pairs(cloud=[], robot=[]), "robot-r1")["namespaces"]
    assert "syncs default, crsyncer only robot-r1" in check.message
    assert judged(pairs(cloud=[], robot=[]), "default", "other") == {}
    assert judged(pairs(cloud=[], robot=[], namespaced=False), "robot-r1") == {}


def test_taken_names_are_told_on_both_sides():
    local = pairs(cloud=[named("a", labels=MINE)], robot=[named("a"), named("b")], filtered=True)
    assert forecast(local).taken == [Key("default", "a")]
    assert "rename or delete" in judged(local)["copies"].hint
    old = pairs(cloud=[named("a"), named("others")], robot=[named("a")], upstream=Side.ROBOT)
    assert "delete them in the cloud" in judged(old)["copies"].hint
    assert forecast(old).orphans == forecast(old).kept == []


def test_generations_that_were_mapped_are_told_with_the_annotation_that_maps_them():
    robot = [named("a") | {"status": {"observedGeneration": 3}}]
    check = judged(pairs(cloud=[named("a")], robot=robot))["status"]
    assert "crsyncer.cloudrobotics.com/observed-generation=map" in check.hint
    for changes in ({"map_generation": True}, {"subtree": "robot"}):
        assert judged(pairs(cloud=[named("a")], robot=robot, **changes)) == {}


def test_a_kind_without_a_status_subresource_is_told_with_the_notes_of_the_go_cr_syncer():
    found = pairs(cloud=[named("a", annotations={NOTE: "5"})], robot=[named("a")], status=False)
    check = judged(found)["status"]
    assert "no status subresource on the cloud and the robot" in check.message
    assert "1 object with the Go cr-syncer's note" in check.message
    assert "update on goals" in check.hint


def test_a_finalizer_that_nobody_removes_any_more_is_told_with_the_side():
    found = pairs(cloud=[named("a", finalizers=["robot-r1" + FINALIZER])], robot=[named("a")])
    check = judged(found)["finalizers"]
    assert check.side is Side.CLOUD
    assert "kubectl -n default edit goals.lab.example.com a" in check.hint
