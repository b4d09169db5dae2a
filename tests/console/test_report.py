"""The status document: every key, and every reason with its health."""

from dataclasses import replace

import pytest

from crsyncer import __version__
from crsyncer.console.screens import reason_texts
from crsyncer.console.screens.report import exit_code, hold_row, stopped_document
from crsyncer.console.screens.screen import render
from crsyncer.core.holds.hold_list import DELETION_HOLDS, HeldGroup
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair.actions import NAME_TAKEN, ODD_STATUS, HoldReason
from crsyncer.core.pair.other_agents import DuplicateAgent
from crsyncer.core.reports.text import NOT_TRUSTED, NOT_YET_VALID
from tests.console.report_kit import (
    CONTRACT,
    GOALS,
    NOW,
    STORED,
    document,
    facts,
    hold,
    kind,
    outbox,
    shape,
    side,
    stopped,
    store,
)


def codes(content):
    return [reason["code"] for reason in content["reasons"]]


def test_a_healthy_document_says_what_was_put_in():
    content = document(facts(), NOW)
    assert (content["health"], content["reasons"], exit_code(content)) == ("healthy", [], 0)
    assert content["agent"] == {"state": "running", "pid": 812, "since": "2026-11-21T07:00:00Z"}
    assert content["kinds"] == CONTRACT["kinds"]
    assert content["writes"] == CONTRACT["writes"]
    assert content["sides"]["cloud"]["lastOk"] == "2026-11-21T07:59:58Z"


IDENTITY_HOLD = hold("IdentityChanged", "cloud", resource="", objects=0, hint="release it")
REASONS = {
    "cloud offline": ("offline", "CloudOffline", "not answered for 2 s", facts(cloud=side("offline"))),
    "cloud never reached": ("offline", "CloudOffline", "never answered", facts(cloud=side("offline", last_ok=None))),
    "robot offline": ("degraded", "RobotOffline", "own API server", facts(robot=side("offline"))),
    "cloud refuses us": ("attention", "CloudUnauthorized", ": 401", facts(cloud=side("unauthorized", error="401"))),
    "robot refuses us": ("attention", "RobotUnauthorized", "credential", facts(robot=side("unauthorized"))),
    "another cluster": ("attention", "IdentityChanged", "another cluster", facts(cloud=side("identity-changed"))),
    "misconfigured": ("attention", "Misconfigured", "odd", facts(kinds=[kind(state="misconfigured", message="odd")])),
    "version mismatch": ("attention", "VersionMismatch", GOALS, facts(kinds=[kind(state="version-mismatch")])),
    "forbidden": ("attention", "Forbidden", GOALS, facts(kinds=[kind(state="forbidden")])),
    "kind missing": ("degraded", "KindMissing", GOALS, facts(kinds=[kind(state="kind-missing")])),
    "deletions of a missing kind": (
        "attention", "KindMissing", GOALS,
        facts(kinds=[kind(state="kind-missing", held=3)]),
    ),
    "mass deletion": ("attention", "MassDeletion", "215 deletions", facts(holds=[hold()])),
    "restored": ("attention", "Restored", "1 deletion of", facts(holds=[hold("Restored", objects=1)])),
    "selection changed": (
        "attention", "SelectionChanged", "an edit of its selection", facts(holds=[hold("SelectionChanged")])
    ),
    "held by hand": ("attention", "Manual", "215 deletions so far", facts(holds=[hold("Manual")])),
    "name taken": ("attention", "NameTaken", GOALS, facts(holds=[hold("NameTaken")])),
    "contested": ("attention", "Contested", GOALS, facts(holds=[hold("Contested")])),
    "odd status": (
        "attention", "StatusNotAnObject", f"{GOALS}: a status that is not an object is not sent",
        facts(holds=[hold("StatusNotAnObject")]),
    ),
    "step fails": ("attention", "MutationFailed", "a step of its policy", facts(holds=[hold("MutationFailed")])),
    "a second copy": ("attention", "Duplicate", "an original has two copies", facts(holds=[hold("Duplicate")])),
    "secret unknown": ("degraded", "SecretUnknown", "the copy of a Secret", facts(holds=[hold("SecretUnknown")])),
    "a CRD that breaks something": (
        "attention", "APIHeld", f"the CRD {GOALS} does not follow: v1 is breaking",
        facts(holds=[hold("APIHeld", message="v1 is breaking")]),
    ),
    "a CRD that cannot travel": (
        "degraded", "KindMissing", f"the CRD {GOALS} does not travel: no CRD",
        facts(kinds=[kind(api={"revision": None, "state": "unreadable", "message": "no CRD"})]),
    ),
    "related objects": ("attention", "RelatedFailed", "cannot be told", facts(holds=[hold("RelatedFailed")])),
    "no own objects": (
        "degraded", "StatusNotReturned", "2 statuses of shared objects", facts(unreturned=(2, "it is forbidden")),
    ),
    "dead letters": ("attention", "DeadLetters", "2 writes", facts(outbox=outbox(2, 900, 2))),
    "config rejected": ("attention", "ConfigRejected", "c.yaml:3", facts(config_error="c.yaml:3: nope")),
    "a server that is not verified": (
        "degraded", "TlsNotVerified", "the certificate of the cloud's server is not verified",
        facts(tls_unverified=(Side.CLOUD,)),
    ),
    "a duplicate": (
        "attention", "DuplicateInstance", f"crsyncer-00000002 wrote {GOALS} default/a in the cloud at 2026",
        facts(duplicate=DuplicateAgent("crsyncer-00000002", GOALS, Key("default", "a"), NOW, NOW + 600)),
    ),
    "disk refuses": (
        "degraded", "StateDegraded", "disk full",
        facts(store=store("degraded"), store_message="disk full"),
    ),
    "disk refuses mutely": ("degraded", "StateDegraded", "degraded", facts(store=store("degraded"))),
    "a clock in 1970": (
        "degraded", "ClockSuspect", "20778 d 8 h behind that of the cloud",
        facts(cloud=side(clockOffsetSeconds=NOW), robot=side(clockOffsetSeconds=NOW)),
    ),
    "a clock that is fast": ("degraded", "ClockSuspect", "1 min 1 s ahead", facts(robot=side(clockOffsetSeconds=-61))),
    "starting": ("degraded", "Starting", "CRDs", facts(ready=False)),
    "connecting": ("degraded", "Starting", "to the cloud", facts(cloud=side("connecting"))),
    "not listed": (
        "degraded", "NotListed", GOALS,
        facts(kinds=[kind(state="waiting", objects={"cloud": None, "robot": 1})]),
    ),
    "not watched": (
        "degraded", "NotWatched", f"{GOALS}: the watch on one side is not running: answered 500",
        facts(kinds=[kind(state="waiting", message="answered 500")]),
    ),
    "backlog": (
        "degraded", "Backlog", f"{GOALS}: a status waits to be sent for 15 min, since 2026",
        facts(pending_seconds={GOALS: {"status": 900.0, "spec": 60.0}}),
    ),
    "stuck": (
        "degraded", "Stuck", f"{GOALS}: a deletion has not been verified for 7 min, since 2026-11-21T07:53:00Z",
        facts(pending_seconds={GOALS: {"deletion": 420.0}}),
    ),
    "a copy that cannot be deleted": (
        "degraded", "Stuck", f"{GOALS}: a copy that is being deleted waits for its finalizers for 15 min",
        facts(pending_seconds={GOALS: {"finalizers": 900.0}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REASONS)
def test_each_trouble_has_its_health_its_words_and_a_hint(name):
    health, code, words, given = REASONS[name]
    content = document(given, NOW)
    assert (content["health"], codes(content)) == (health, [code])
    assert words in content["reasons"][0]["message"]
    assert content["reasons"][0]["hint"]
    assert exit_code(content) == {"degraded": 10, "offline": 11, "attention": 12}[health]


@pytest.mark.parametrize("name", Side)
def test_what_to_do_about_a_side_that_is_offline_is_what_came_with_the_error_and_not_always_the_network(name):
    content = document(facts(**{name: side("offline", error="not signed", hint="fetch the CA anew")}), NOW)
    assert "fetch the CA anew" in content["reasons"][0]["hint"]
    assert content["sides"][name]["hint"] == "fetch the CA anew"


def test_whatever_is_held_can_be_said():
    assert {code for _, code, *_ in REASONS.values()} >= set(map(str, HoldReason))


QUIET = {
    "clocks that differ a little": facts(cloud=side(clockOffsetSeconds=60.0), robot=side(clockOffsetSeconds=-1.2)),
    "a relist of a kind that is known": facts(kinds=[kind(state="listing")]),
    "a rebuilt store": facts(store=store("rebuilt")),
    "a full outbox just after the cloud came back": facts(
        cloud=side(since=NOW - 5),
        outbox=outbox(40, 9000),
        pending_seconds={GOALS: {"status": 9000.0}},
    ),
    "a finalizer that has some work to do": facts(pending_seconds={GOALS: {"finalizers": 500.0}}),
    "work that is young": facts(pending_seconds={GOALS: {"spec": 100.0, "status": 100.0, "list": 0.0}}),
}


@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_trouble_is_not_reported(name):
    assert document(QUIET[name], NOW)["health"] == "healthy"


def test_a_changed_identity_and_its_hold_are_one_reason():
    content = document(facts(cloud=side("identity-changed"), holds=[IDENTITY_HOLD]), NOW)
    assert codes(content) == ["IdentityChanged"]
    assert content["reasons"][0]["hint"] == "release it"
    assert "cloud  IdentityChanged, for 5 min" in render(content, NOW).splitlines()


def test_a_certificate_that_is_not_valid_yet_is_a_matter_of_the_clock():
    content = document(facts(cloud=side("unauthorized", error=NOT_YET_VALID)), NOW)
    assert (content["health"], codes(content)) == ("attention", ["ClockSuspect", "CloudUnauthorized"])
    assert "clock" in content["reasons"][0]["hint"]


def test_an_account_that_asks_beyond_its_namespace_is_told_the_setting_and_not_to_be_given_more():
    refusal = 'User "system:serviceaccount:robot-r1:crsyncer" cannot list resource "goals" at the cluster scope'
    for message, named in ((refusal, "namespaces: [robot-r1]"), (None, "namespaces: [robot-NAME]")):
        content = document(facts(kinds=[kind(state="forbidden", message=message)]), NOW)
        [reason] = content["reasons"]
        assert (reason["code"], named in reason["hint"]) == ("Forbidden", True)


@pytest.mark.parametrize("error", [*NOT_TRUSTED[1:], f"the proxy cannot be reached: {NOT_TRUSTED[-1]}"])
@pytest.mark.parametrize("name", ["cloud", "robot"])
def test_a_certificate_that_is_refused_needs_a_human_who_is_told_the_remedy(name, error):
    content = document(facts(**{name: side("unauthorized", error=error, hint="fetch it anew")}), NOW)
    assert (content["health"], codes(content)) == ("attention", [f"{name.title()}Unauthorized"])
    [reason] = content["reasons"]
    assert reason["message"] == f"agent and {name} do not trust each other: {error}"
    assert reason["hint"] == "fetch it anew; the agent reads the kubeconfig again and retries"


def test_a_human_is_called_also_when_the_cloud_is_away():
    content = document(facts(cloud=side("offline"), holds=[hold()]), NOW)
    assert (content["health"], codes(content)) == ("attention", ["MassDeletion", "CloudOffline"])


def test_that_nothing_is_lost_is_promised_only_while_the_disk_takes_it():
    cloud = side("offline")
    promised, refused = (
        document(facts(cloud=cloud, store=store(state)), NOW)["reasons"][-1] for state in ("ok", "degraded")
    )
    assert (promised["code"], refused["code"]) == ("CloudOffline", "CloudOffline")
    assert "nothing is lost" in promised["hint"]
    assert "nothing is lost" not in refused["hint"]


def test_what_follows_from_a_lost_cloud_is_not_said_again():
    waiting = kind(state="waiting", objects={"cloud": None, "robot": None})
    content = document(facts(cloud=side("offline"), kinds=[waiting], outbox=outbox(2, 900)), NOW)
    assert (content["health"], codes(content)) == ("offline", ["CloudOffline"])


def test_a_failure_outranks_a_lost_cloud():
    content = document(facts(cloud=side("offline"), robot=side("offline")), NOW)
    assert (content["health"], codes(content)) == ("degraded", ["RobotOffline", "CloudOffline"])


def test_a_plug_in_that_fails_is_not_called_a_refusal_by_the_server():
    trouble = side("unauthorized", error="exec plug-in 'login': no such file or directory", hint="apt install login")
    (reason,) = document(facts(cloud=trouble), NOW)["reasons"]
    assert reason["message"] == (
        "no usable credential for the cloud's API server: exec plug-in 'login': no such file or directory"
    )
    assert reason["hint"] == "apt install login; the agent reads the kubeconfig again and retries"


def test_the_most_important_reason_comes_first():
    content = document(
        facts(
            cloud=side("unauthorized"),
            kinds=[kind(state="misconfigured")],
            holds=[hold("StatusNotAnObject"), hold()],
            outbox=outbox(1, 0, 1),
        ),
        NOW,
    )
    assert codes(content) == ["CloudUnauthorized", "MassDeletion", "Misconfigured", "StatusNotAnObject", "DeadLetters"]


def test_hints_of_holds_name_the_hold():
    group = HeldGroup("h7", GOALS, HoldReason.MASS_DELETION, NOW, "", "", {Key("default", f"a{n}") for n in range(60)})
    row = hold_row(group)
    assert "crsyncer holds release h7" in row["hint"]
    assert (row["objects"], len(row["names"])) == (60, 50)
    assert hold_row(replace(group, hint="mine"))["hint"] == "mine"


def test_a_stopped_agent_is_described_from_its_last_document_and_its_store():
    last = document(facts(holds=[hold()]), NOW - 90)
    content = stopped(last)
    assert shape(content) == shape(CONTRACT)
    assert exit_code(content) == 13
    assert content["agent"] == {"state": "stopped", "pid": None, "since": "2026-11-21T07:59:30Z"}
    assert codes(content) == ["AgentStopped", "MassDeletion"]
    assert content["robot"] == "robot-1"
    assert content["version"] == "0.1.0"
    assert content["outbox"] == {"depth": 3, "oldestSeconds": 60, "deadLetters": 0}
    [row] = content["kinds"]
    assert (row["state"], row["message"]) == ("waiting", "unknown since the agent stopped")
    assert row["objects"] == {"cloud": 9, "robot": 8}
    assert row["cursor"] == {"cloud": "77", "robot": None}
    assert row["pending"] == {"spec": 0, "status": 3}
    assert content["sides"]["cloud"]["state"] == "offline"
    assert content["sides"]["cloud"]["error"] == "unknown since the agent stopped"
    assert content["sides"]["cloud"]["lastOk"] == last["sides"]["cloud"]["lastOk"]


@pytest.mark.parametrize("saved", [None, {}, {"schema": "crsyncer.status/v0", "robot": "other"}])
def test_a_stopped_agent_without_a_usable_document_still_has_every_key(saved):
    content = stopped(saved)
    without_holds = CONTRACT | {"holds": []}
    assert shape(content) == shape(without_holds)
    assert (content["version"], content["robot"], content["holds"]) == (__version__, "", [])
    assert content["kinds"][0]["resource"] == GOALS


def test_a_stopped_agent_shows_no_kind_that_is_not_synced_any_more_unless_something_of_it_waits():
    gone = {"gone.example.com": replace(STORED[GOALS], pending={}), "owed.example.com": STORED[GOALS]}
    content = stopped(document(facts(), NOW), STORED | gone)
    assert [row["resource"] for row in content["kinds"]] == [GOALS, "owed.example.com"]


def test_a_stopped_agent_shows_the_cursors_of_all_its_namespaces_as_a_running_one_does():
    [cursor] = STORED[GOALS].cursors.values()
    cursors = {(Side.CLOUD, "one"): cursor, (Side.CLOUD, "two"): replace(cursor, resource_version="9")}
    [row] = stopped(None, {GOALS: replace(STORED[GOALS], cursors=cursors)})["kinds"]
    assert row["cursor"] == {"cloud": "77,9", "robot": None}


def test_a_stopped_agent_keeps_what_only_a_human_can_mend():
    last = document(facts(kinds=[kind(state="misconfigured", message="no")]), NOW - 90)
    content = stopped(last, {})
    assert codes(content) == ["AgentStopped", "Misconfigured"]


@pytest.mark.parametrize(
    ("state", "expected"), [("missing", ["AgentStopped"]), ("unreadable", ["AgentStopped", "StateDegraded"])]
)
def test_a_store_that_is_not_there_or_closed_is_said(state, expected):
    content = stopped_document(None, {}, NOW, store=store(state))
    assert codes(content) == expected
    assert exit_code(content) == 13


def policy_row(name: str, message: str | None = None, resource: str = GOALS) -> Json:
    return {
        "name": name,
        "resource": resource,
        "state": "misconfigured" if message else "active",
        "message": message,
    }


def test_C1_5_a_policy_that_stops_its_kind_is_said_once_and_the_hint_names_it():
    stopped_kind = kind(state="misconfigured", message="SyncPolicy a: odd", policy="a")
    content = document(facts(kinds=[stopped_kind], policies=[policy_row("a", "odd")]), NOW)
    [reason] = content["reasons"]
    assert (reason["code"], reason["message"]) == ("Misconfigured", f"{GOALS}: SyncPolicy a: odd")
    assert reason["hint"].startswith("correct the SyncPolicy a or the annotations of the CRD on the robot")
    other = document(facts(kinds=[kind(policy="b")], policies=[policy_row("b"), policy_row("c", "odd", "maps")]), NOW)
    assert [(each["code"], each["message"]) for each in other["reasons"]] == [
        ("PolicyMisconfigured", "SyncPolicy c: odd")
    ]
    maps = kind("maps", state="misconfigured", message="odd", policy="a")
    row = policy_row("a", "spec.related: maps is not synced: odd")
    assert codes(document(facts(kinds=[kind(policy="a"), maps], policies=[row]), NOW)) == ["Misconfigured"]


def test_C1_5_the_screen_has_a_line_about_policies_where_there_are_any():
    def shown(*policies: Json) -> list[str]:
        lines = render(document(facts(policies=[*policies]), NOW), NOW).splitlines()
        return [line for line in lines if line.startswith("policy ")]

    assert shown() == []
    assert shown(policy_row("a"), policy_row("b")) == ["policy  2 active"]
    assert shown(policy_row("a"), policy_row("b", "odd")) == ["policy  1 active, 1 misconfigured: b"]
    wide = render(document(facts(kinds=[kind(policy="edge-goals")]), NOW), NOW, wide=True)
    assert "edge-goals" in wide


def test_C1_5_a_stopped_agent_shows_the_policies_that_it_had():
    last = document(facts(policies=[policy_row("a", "odd", "maps")]), NOW - 90)
    content = stopped(last)
    assert content["policies"] == last["policies"]
    assert codes(content) == ["AgentStopped", "PolicyMisconfigured"]


@pytest.mark.parametrize("reason", [each for each in HoldReason if each not in (*DELETION_HOLDS, HoldReason.API_HELD)])
def test_a_hold_of_an_object_names_it_and_the_command_that_explains_it(reason):
    group = HeldGroup("h7", GOALS, reason, NOW, "", "", {Key("default", f"a{n}") for n in range(5)})
    content = document(facts(holds=[hold_row(group)]), NOW)
    [found] = [each for each in content["reasons"] if each["code"] == reason]
    assert found["message"].endswith(": default/a0, default/a1, default/a2 and 2 more")
    assert f"crsyncer explain {GOALS} default/a0" in found["hint"]


def test_no_text_refers_to_the_list_that_it_stands_in():
    texts = [text for found in reason_texts.REASONS.values() for pair in found.values() for text in pair]
    assert [text for text in [*texts, NAME_TAKEN.hint, ODD_STATUS.hint] if "holds list" in text] == []
