"""The doctor's judgements."""

from typing import Any

import pytest
import yaml

from crsyncer.cli.yaml_text import yaml_text
from crsyncer.console.compare.lister import Configuration
from crsyncer.console.set_up.doctor_report import (
    SCHEMA,
    Check,
    Mark,
    document,
    exit_code,
    judge_access,
    judge_agent,
    judge_annotations,
    judge_clock,
    judge_disk,
    judge_exposed,
    judge_kind,
    judge_store,
    judge_validity,
)
from crsyncer.core.accounts.access import OWN_NEEDS, needs
from crsyncer.core.content.annotations import DRIFT, FILTER, SPEC_SOURCE, SUBTREE, SYNCER
from crsyncer.core.model import Side
from crsyncer.core.reports.findings import DiskFacts, StoreFindings, Validity
from tests.console.report_kit import NOW, facts, hold
from tests.console.report_kit import document as status_document
from tests.core.builders import ROBOT_NAME, crd, policy

DAY = 86400.0
KIND = policy()


@pytest.mark.parametrize(
    ("starts", "ends", "renewed", "mark", "said"),
    [
        (None, None, False, Mark.OK, "no end date"),
        (NOW - DAY, NOW + 15 * DAY, False, Mark.OK, "valid for 15 d, until 2026-12-06T08:00:00Z"),
        (None, NOW + 13 * DAY, False, Mark.WARN, "valid for 13 d"),
        (None, NOW + 60, True, Mark.OK, "renewed automatically"),
        (None, NOW - 60, True, Mark.FAIL, "expired 1 min ago"),
        (NOW + 60, NOW + DAY, False, Mark.FAIL, "not valid before 2026-11-21T08:01:00Z"),
    ],
)
@pytest.mark.parametrize("name", ["ca", "server-certificate", "client-certificate", "token"])
def test_what_ends_is_told_two_weeks_before(name, starts, ends, renewed, mark, said):
    check = judge_validity(Validity(name, starts, ends, renewed), Side.CLOUD, NOW)
    assert (check.state, check.name, check.side) == (mark, name, Side.CLOUD)
    assert said in check.message
    assert bool(check.hint) is (mark is not Mark.OK)


@pytest.mark.parametrize(
    ("ends", "said"), [(None, "not ours"), (NOW + DAY, "not ours"), (NOW - DAY, "expired 1 d ago")]
)
def test_a_certificate_that_is_not_trusted_says_why_and_its_end_first(ends, said):
    check = judge_validity(
        Validity("server-certificate", None, ends, objection="not ours", remedy="look"), Side.CLOUD, NOW
    )
    assert check.state is Mark.FAIL
    assert said in check.message


@pytest.mark.parametrize(
    ("ahead", "mark", "said"),
    [
        (None, Mark.UNKNOWN, "has no date"),
        (0.2, Mark.OK, "within 1 s"),
        (-59.0, Mark.OK, "within 59 s"),
        (61.0, Mark.WARN, "1 min 1 s ahead of"),
        (-7200.0, Mark.WARN, "2 h behind"),
    ],
)
def test_a_clock_may_be_a_minute_off(ahead, mark, said):
    check = judge_clock(ahead, Side.ROBOT)
    assert check.state is mark
    assert said in check.message


def annotated(**annotations: str) -> list[tuple[Mark, str]]:
    names = {"source": SPEC_SOURCE, "filter": FILTER, "subtree": SUBTREE, "drift": DRIFT, "slip": f"{SYNCER}slip"}
    raw = crd({names[key]: value for key, value in annotations.items()})
    found = judge_annotations(Configuration((raw,)), ROBOT_NAME)
    return [(check.state, check.message) for check in found]


def test_annotations_that_can_be_followed_are_said_in_words():
    assert annotated(source="cloud") == [(Mark.OK, "spec from the cloud, status from the robot")]
    [(mark, said)] = annotated(source="robot", filter="true", subtree="robot")
    assert mark is Mark.OK
    assert said == "spec from the robot, status from the cloud, only objects of robot robot-1, only status.robot"


def test_annotations_that_cannot_be_followed_or_that_nobody_reads_are_found():
    [(mark, said)] = annotated(source="both")
    assert (mark, SPEC_SOURCE in said) == (Mark.FAIL, True)
    [(mark, _), (slip, said)] = annotated(source="cloud", slip="x")
    assert (mark, slip) == (Mark.OK, Mark.WARN)
    assert f"unknown and ignored: {SYNCER}slip" in said
    assert [mark for mark, _ in annotated(slip="x")] == [Mark.WARN, Mark.WARN]
    [(mark, said)] = annotated(drift="keep")
    assert mark is Mark.WARN
    assert f"the annotation {SPEC_SOURCE} is missing" in said


def test_without_any_annotation_nothing_is_synced():
    [check] = judge_annotations(Configuration((crd(None), crd({"else": "x"}))), ROBOT_NAME)
    assert (check.state, check.side) == (Mark.WARN, Side.ROBOT)
    assert SPEC_SOURCE in check.hint


@pytest.mark.parametrize(
    ("status", "mark", "health"),
    [(200, Mark.OK, ""), (404, Mark.FAIL, "degraded"), (403, Mark.FAIL, ""), (500, Mark.UNKNOWN, "")],
)
def test_a_kind_is_judged_by_whether_it_can_be_listed(status, mark, health):
    check = judge_kind(KIND, Side.CLOUD, status=status, message="words")
    assert (check.state, check.health, check.resource) == (mark, health, KIND.resource)


def test_a_kind_is_described_as_it_is_served():
    cluster = policy(namespaced=False, status=False)
    said = [judge_kind(kind, Side.ROBOT, status=200, message="").message for kind in (KIND, cluster)]
    assert said == [
        "served in v1, namespaced, with the status subresource",
        "served in v1, cluster-scoped, without the status subresource",
    ]


def test_permissions_are_judged_by_the_worst_that_is_missing():
    all_of = dict.fromkeys(needs(KIND, Side.ROBOT), True)
    get = next(need for need in all_of if need.verbs == "get")
    delete = next(need for need in all_of if need.verbs == "delete")

    def judged(**changes: Any) -> Check:
        changed = {get: changes.get("get", True), delete: changes.get("delete", True)}
        return judge_access({**all_of, **changed}, Side.ROBOT, resource=KIND.resource)

    assert judged().state is Mark.OK
    warned = judged(get=False)
    assert (warned.state, warned.message) == (Mark.WARN, f"may not get goals: {get.unless}")
    failed = judged(get=False, delete=False)
    assert (failed.state, failed.message) == (Mark.FAIL, "may not get, delete goals")
    unknown = judged(delete=None)
    assert (unknown.state, unknown.message) == (Mark.UNKNOWN, "no access review of delete goals")
    assert judge_access(dict.fromkeys(OWN_NEEDS, True), Side.ROBOT).resource == ""


def test_an_account_of_one_namespace_is_given_a_setting_before_a_right():
    needed = dict.fromkeys(needs(KIND, Side.CLOUD), False)
    assert "grant it" in judge_access(needed, Side.CLOUD).hint
    hint = judge_access(needed, Side.CLOUD, robot="r1").hint
    assert hint.startswith(
        "where the account is that of namespace robot-r1, set namespaces: [robot-r1] or namespaceMap"
    )
    refusal = 'User "system:serviceaccount:robot-r1:crsyncer" cannot list resource "goals" at the cluster scope'
    assert "namespaces: [robot-r1]" in judge_kind(KIND, Side.CLOUD, status=403, message=refusal).hint
    assert "grant" in judge_kind(KIND, Side.CLOUD, status=403, message="no").hint


def test_what_is_mere_comfort_is_advice_and_no_matter_of_health():
    own = {need: not need.is_comfort for need in OWN_NEEDS}
    advice = judge_access(own, Side.ROBOT)
    assert (advice.state, advice.health) == (Mark.WARN, "healthy")
    assert advice.message == "may not create, patch events: kubectl describe shows no events of crsyncer"
    assert judge_access({**own, OWN_NEEDS[2]: False}, Side.ROBOT).health == ""


@pytest.mark.parametrize(
    ("changes", "mark", "said"),
    [
        ({}, Mark.OK, "/state (ext4, 1,024 MiB free)"),
        ({"kind": ""}, Mark.OK, "unknown file system"),
        ({"objection": "it is a symlink", "remedy": "do"}, Mark.FAIL, "it is a symlink"),
        ({"writable": False}, Mark.FAIL, "not writable"),
        ({"free": 1 << 20}, Mark.FAIL, "full"),
        ({"kind": "nfs4"}, Mark.FAIL, "local file system"),
        ({"kind": "tmpfs"}, Mark.WARN, "reboot"),
        ({"free": 100 << 20}, Mark.WARN, "little space"),
        ({"writable": None}, Mark.UNKNOWN, "another user"),
    ],
)
def test_a_disk_is_judged_by_what_the_state_needs(changes, mark, said):
    sound: dict[str, Any] = {"path": "/state", "writable": True, "free": 1 << 30, "kind": "ext4"}
    check = judge_disk(DiskFacts(**{**sound, **changes}))
    assert (check.state, bool(check.hint)) == (mark, mark is not Mark.OK)
    assert said in check.message


@pytest.mark.parametrize(
    ("state", "mark"),
    [
        ("missing", Mark.OK),
        ("ok", Mark.OK),
        ("older", Mark.OK),
        ("broken", Mark.WARN),
        ("unreadable", Mark.UNKNOWN),
    ],
)
def test_a_store_that_the_agent_can_mend_is_no_failure(state, mark):
    check = judge_store(StoreFindings("/state/state.db", state, 4096, 1, "words"))
    assert check.state is mark
    assert check.message.startswith("/state/state.db: ")


def test_a_running_agent_is_believed():
    store, agent = judge_agent(status_document(facts(), NOW))
    assert (store.state, agent.state, agent.health) == (Mark.OK, Mark.OK, "healthy")
    assert "process 812" in store.message
    store, agent = judge_agent(status_document(facts(holds=[hold()]), NOW))
    assert (agent.state, agent.health, agent.hint) == (Mark.FAIL, "attention", "crsyncer status")
    assert "too many deletions at once" in agent.message
    offline = status_document(facts(), NOW) | {"health": "offline"}
    assert judge_agent(offline)[1].state is Mark.WARN
    degraded = status_document(facts(), NOW)
    degraded["store"]["state"] = "degraded"
    assert judge_agent(degraded)[0].state is Mark.WARN


@pytest.mark.parametrize(
    ("states", "pid", "health", "code"),
    [
        ([], 7, "healthy", 0),
        ([Mark.OK, Mark.UNKNOWN], 7, "healthy", 0),
        ([Mark.WARN, Mark.OK], 7, "degraded", 10),
        ([Mark.WARN, Mark.FAIL], 7, "attention", 12),
        ([Mark.OK], None, "healthy", 13),
        ([Mark.WARN], None, "degraded", 13),
        ([Mark.FAIL], None, "attention", 12),
    ],
)
def test_the_exit_code_says_first_what_keeps_an_agent_from_working_then_that_none_runs(states, pid, health, code):
    content = document([Check("x", state, "m") for state in states], pid=pid)
    assert (content["health"], exit_code(content)) == (health, code)


def test_the_report_is_as_documented():
    offline = Check("server", Mark.FAIL, "gone", "wait", Side.CLOUD, "goals.lab.example.com", "offline")
    content = document([offline], pid=0)
    assert exit_code(content) == 11
    assert content == {
        "schema": SCHEMA,
        "health": "offline",
        "agent": {"state": "running", "pid": None},
        "checks": [
            {
                "name": "server",
                "side": "cloud",
                "resource": "goals.lab.example.com",
                "state": "fail",
                "message": "gone",
                "hint": "wait",
            }
        ],
    }
    assert yaml.safe_load(yaml_text(content)) == content


def test_a_kubeconfig_that_others_may_read_is_a_warning_that_names_it():
    check = judge_exposed("/etc/crsyncer/cloud (mode 0644)", Side.CLOUD)
    assert (check.state, check.side) == (Mark.WARN, Side.CLOUD)
    assert "/etc/crsyncer/cloud (mode 0644)" in check.message
    assert "chmod 600" in check.hint
