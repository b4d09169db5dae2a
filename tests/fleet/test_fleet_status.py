"""The document of `crsyncer fleet status`, of values: health, reasons, robots."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.model import Json
from crsyncer.fleet.domain.lease import REFUSED, UNLISTED
from crsyncer.fleet.domain.read_objects import placement_of, robot_of
from crsyncer.fleet.domain.rollout.decisions import Decision, decision_of
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.shown.fleet_facts import FleetFacts, Leader, Reported, last_edit, leader_of
from crsyncer.fleet.domain.shown.status_document import SCHEMA, fleet_status, silent_status
from tests.fleet.made import raw_placement, raw_robot

NOW = 1_800_000_000.0
LEADER = Leader("pod-a", NOW - 5)


def placed(name: str = "nav", *, generation: int = 1, spec: Json | None = None, **status: Any) -> Json:
    raw = raw_placement(name, **{"robotSelectors": [{}], **(spec or {})})
    raw["metadata"]["generation"] = generation
    return {**raw, "status": {"observedGeneration": 1, **status}}


def decided(placement: str = "nav", *, uid: str = "", number: int = 0, **robots: Any) -> Decision:
    said = [{"name": name, "state": state, "since": "2027-01-01T00:00:00Z"} for name, state in robots.items()]
    return decision_of(
        {
            "metadata": {"name": f"{placement}-{number}", "namespace": "site"},
            "placement": {"name": placement, "uid": uid or f"uid-{placement}"},
            "robots": said,
        }
    )


def shown(
    *raws: Json, robots: tuple[str, ...] = ("r1", "r2"), robot: str = "", decisions: Any = (), **facts: Any
) -> Json:
    known = {name: robot_of(raw_robot(name)) for name in robots}
    values = {"leader": LEADER, "now": NOW, **facts}
    return fleet_status(FleetFacts([*map(placement_of, raws)], known, decisions, **values), robot=robot)


def codes(content: Json) -> list[str]:
    return [each["code"] for each in content["reasons"]]


def test_a_fleet_without_a_fault_is_healthy():
    counts = {"selected": 2, "ready": 2, "blocked": 0, "failed": 0}
    content = shown(placed(counts=counts, errorCount=0), reports={"r1": Reported(Report.OFFLINE, NOW - 900)})
    assert (content["schema"], content["health"], content["reasons"]) == (SCHEMA, "healthy", [])
    assert content["controller"] == {"state": "running", "holder": "pod-a", "renewed": "2027-01-15T07:59:55Z"}
    assert content["robots"] == {"all": 2, "online": 0, "offline": 1, "unreported": 1}
    [row] = content["placements"]
    assert (row["namespace"], row["name"], row["counts"], row["holds"]) == ("site", "nav", counts, [])
    assert content["robot"] is None


def test_what_a_status_does_not_say_is_null():
    [row] = shown({**placed(), "status": {"counts": 1, "holds": "x", "errors": [1]}})["placements"]
    assert [row[name] for name in ("counts", "group", "errorCount")] == [None] * 3
    assert [row[name] for name in ("conditions", "errors", "holds")] == [[]] * 3


@pytest.mark.parametrize("leader", [Leader(), Leader("pod-a"), Leader("pod-a", NOW - 15.5), Leader("", NOW)])
def test_F1_2_a_lease_that_nobody_holds_or_renews_is_a_controller_that_has_stopped(leader):
    content = shown(leader=leader)
    assert (content["controller"]["state"], content["health"]) == ("stopped", "attention")
    assert codes(content) == ["ControllerStopped"]
    assert "--controller-namespace" in content["reasons"][0]["hint"]


def test_F1_2_the_leases_time_is_that_of_the_api_server_whatever_the_controllers_clock_says():
    def entry(time: str | None, *fields: str) -> Json:
        return {"time": time, "fieldsV1": {"f:spec": {name: {} for name in fields}}}

    spec = {"holderIdentity": "pod-a", "renewTime": "2027-01-15T09:00:00.000000Z"}
    entries = [entry("2027-01-15T08:00:00Z", "f:renewTime"), entry("2027-01-15T08:30:00Z", "f:x"), entry(None)]
    assert leader_of({"metadata": {"managedFields": entries}, "spec": spec}) == Leader("pod-a", NOW)
    assert leader_of({"metadata": {}, "spec": spec}) == Leader("pod-a", NOW + 3600)
    assert leader_of({"metadata": {}, "spec": {"renewTime": "soon"}}) == Leader()
    assert leader_of({"metadata": {}}) == leader_of(None) == Leader()


def test_F1_1_a_controller_that_cannot_list_an_input_writes_nothing_and_the_status_says_so():
    lease = {"metadata": {"annotations": {UNLISTED: "FieldStrips"}}, "spec": {"holderIdentity": "pod-a"}}
    assert leader_of(lease).unlisted == "FieldStrips"
    content = shown(leader=replace(LEADER, unlisted="FieldStrips"))
    [reason] = content["reasons"]
    assert (reason["code"], content["health"], content["controller"]["state"]) == ("NotListed", "attention", "running")
    assert "FieldStrips" in reason["message"]
    assert "crsyncer fleet doctor" in reason["hint"]
    absent = shown(
        leader=replace(LEADER, unlisted="FieldStrips"), dead={"fieldstrips.fleet.crsyncer.cloudrobotics.com"}
    )
    assert codes(absent) == ["KindNotServed"]


def test_S10_what_a_controller_may_not_write_of_its_own_needs_a_human():
    write = "create combinedstatuses.fleet.crsyncer.cloudrobotics.com"
    lease = {"metadata": {"annotations": {REFUSED: write}}, "spec": {"holderIdentity": "pod-a"}}
    assert leader_of(lease).refused == write
    content = shown(leader=replace(LEADER, refused=write))
    [reason] = content["reasons"]
    assert (reason["code"], content["health"], content["controller"]["state"]) == ("NotWritten", "attention", "running")
    assert f"refuses the controller's {write}: " in reason["message"]
    assert "crsyncer fleet doctor" in reason["hint"]


def test_S5_5a_an_input_whose_kind_is_not_served_needs_a_human():
    content = shown(dead={"robots.registry.cloudrobotics.com", "fieldstrips.fleet.crsyncer.cloudrobotics.com"})
    assert codes(content) == ["KindNotServed"] * 2
    assert "--inventory" not in content["reasons"][0]["hint"]
    assert "--inventory" in content["reasons"][1]["hint"]


def test_F5_2_a_hold_needs_a_human_and_names_the_command():
    hold = {"id": "ab12", "reason": "RobotsLost", "objects": 7, "message": "7 replicas: many Robots were lost"}
    content = shown(placed(holds=[hold]))
    [reason] = content["reasons"]
    assert (reason["code"], reason["level"], content["health"]) == ("Held", "attention", "attention")
    assert "site/nav: hold ab12: 7 replicas" in reason["message"]
    assert "crsyncer fleet release ab12" in reason["hint"]
    assert content["placements"][0]["holds"] == [hold]


def test_F5_2_a_decision_without_its_placement_tells_of_replicas_that_are_left():
    content = shown(placed(), decisions=[decided(), decided(uid="old", r1="Ready"), decided(uid="old", number=1)])
    assert codes(content) == ["PlacementGone"]
    assert "RobotPlacement site/nav is gone" in content["reasons"][0]["message"]


def test_blocked_and_failed_robots_need_a_human_and_offline_ones_do_not():
    errors = [
        {"robot": "r0", "source": None, "reason": "UnknownRobot", "message": "there is no Robot"},
        {"robot": "r1", "source": "site/dock", "reason": "RenderFailed", "message": "there is no property x"},
    ]
    raw = placed(counts={"blocked": 1, "failed": 4, "offline": 9}, errors=errors)
    failed: Any = {f"f{number}": "Failed" for number in range(4)}
    content = shown(raw, decisions=[decided(r1="Blocked", **failed), decided("other", uid="uid-nav", r9="Ready")])
    assert codes(content) == ["RobotsFailed", "RobotsBlocked"]
    first, second = content["reasons"]
    assert "4 robots are Failed: f0, f1, f2 and 1 more" in first["message"]
    assert second["message"].endswith("1 robot is Blocked: r1")
    assert second["hint"] == "crsyncer fleet explain site/nav --robot r1"
    unknown = shown(placed(counts={"blocked": 1}))["reasons"][0]
    assert "1 robot is Blocked" in unknown["message"]
    assert unknown["hint"].endswith("--robot ROBOT")


def test_why_robots_are_blocked_is_said_once_for_all_of_whom_it_is_true():
    def blocked(**messages: str) -> Decision:
        robots = [{"name": name, "state": "Blocked", "message": text} for name, text in messages.items()]
        metadata, placement = {"name": "nav-0", "namespace": "site"}, {"name": "nav", "uid": "uid-nav"}
        return decision_of({"metadata": metadata, "placement": placement, "robots": robots})

    text = "there is no property x"
    error = {"robot": "r1", "source": "site/dock", "reason": "RenderFailed", "message": text}
    raw = placed(counts={"blocked": 6}, errors=[error], errorCount=6)
    [reason] = shown(raw, decisions=[blocked(r1=text, r2=text, r3=text, r4=text, r5="no", r6="")])["reasons"]
    said = "6 robots are Blocked: r1, r2, r3 and 1 more (RenderFailed: there is no property x); r5 (no); r6"
    assert reason["message"].endswith(said)
    assert reason["hint"].endswith("--robot r1")


def test_F5_2_holds_come_before_robots_that_are_blocked():
    hold = {"id": "ab12", "reason": "RobotsLost", "objects": 7, "message": "7 replicas: many Robots were lost"}
    first, second = placed("a", counts={"blocked": 1}), placed("b", holds=[hold])
    assert codes(shown(first, second, dead={"robots.registry.cloudrobotics.com"})) == [
        "KindNotServed",
        "Held",
        "RobotsBlocked",
    ]


@pytest.mark.parametrize(
    ("kind", "reason", "code"),
    [
        ("Resolved", "NotServed", "NotServed"),
        ("Resolved", "Other", "Other"),
        ("Resolved", "", "NotResolved"),
        ("Collected", "CollectorMissing", "CollectorMissing"),
        ("RolledOut", "TooManyFailures", "TooManyFailures"),
        ("RolledOut", "NoReports", "NoReports"),
    ],
)
def test_a_condition_at_fault_needs_a_human(kind, reason, code):
    content = shown(placed(conditions=[{"type": kind, "status": "False", "reason": reason, "message": "m"}]))
    assert codes(content) == [code]
    assert content["health"] == "attention"
    assert content["reasons"][0]["message"].endswith("m")


def test_conditions_that_are_true_or_only_wait_need_nobody():
    conditions = [
        {"type": "Resolved", "status": "True", "reason": "Resolved"},
        {"type": "RolledOut", "status": "False", "reason": "Waiting"},
    ]
    assert shown(placed(conditions=conditions))["health"] == "healthy"


def test_a_status_behind_its_placement_for_a_minute_is_degraded_and_comes_last():
    late, fresh, other = placed(generation=2), placed("fresh", generation=2), placed("z", holds=[{"id": "x"}])
    content = shown(late, fresh, other, edited={"site/nav": NOW - 61, "site/fresh": NOW - 59})
    assert (codes(content), content["health"]) == (["Held", "StatusBehind"], "attention")
    assert shown(late, edited={"site/nav": NOW - 61})["health"] == "degraded"


def test_the_last_edit_of_a_spec_is_not_that_of_a_status():
    entries: list[Json] = [
        {"time": "2027-01-15T08:00:00Z", "fieldsV1": {"f:spec": {}}},
        {"time": "2027-01-15T08:30:00Z", "fieldsV1": {"f:status": {}}},
        {"time": "2027-01-15T08:40:00Z", "fieldsV1": {"f:spec": {}}, "subresource": "status"},
    ]
    metadata: Json = {"creationTimestamp": "2027-01-15T07:00:00Z", "managedFields": entries}
    assert last_edit({"metadata": metadata}) == NOW
    assert last_edit({"metadata": {**metadata, "managedFields": None}}) == NOW - 3600
    assert last_edit({"metadata": {}}) is None


def test_a_robot_is_shown_with_what_its_placements_decided():
    raws = [placed(), placed("other"), placed("none", spec={"robotSelectors": []})]
    reports = {"r1": Reported(Report.ONLINE, NOW - 10)}
    content = shown(*raws, robot="r1", decisions=[decided(r1="Ready")], reports=reports)
    row = {"namespace": "site", "name": "nav", "state": "Ready", "since": "2027-01-01T00:00:00Z", "message": None}
    unknown = {"namespace": "site", "name": "other", "state": None, "since": None, "message": None}
    assert content["robot"] == {
        "name": "r1",
        "shard": "root",
        "state": "online",
        "lastReport": "2027-01-15T07:59:50Z",
        "placements": [row, unknown],
    }


def test_a_robot_that_is_gone_is_shown_as_far_as_its_decisions_go():
    content = shown(placed(), robots=(), robot="r1", decisions=[decided(r1="Ready")])["robot"]
    assert (content["state"], content["lastReport"], len(content["placements"])) == (None, None, 1)


def test_F9_1_what_robots_of_a_shard_that_was_not_read_report_is_not_known():
    robots = {name: robot_of(raw_robot(name, **{SHARD_LABEL: shard})) for name, shard in (("b1", "b"), ("c1", "c"))}
    robots["r1"] = robot_of(raw_robot("r1"))
    unread = {"b": "connection refused", "c": ""}
    facts = FleetFacts([], robots, [], LEADER, NOW, reports={"b1": Reported(Report.ONLINE, NOW)}, unread=unread)
    content = fleet_status(facts, robot="b1")
    assert content["robots"] == {"all": 3, "online": 0, "offline": 0, "unreported": 1}
    assert (content["robot"]["shard"], content["robot"]["state"], content["robot"]["lastReport"]) == ("b", None, None)
    assert (content["health"], codes(content)) == ("degraded", ["ShardAway", "ShardNotGiven"])
    away, missing = content["reasons"]
    said = "shard b cannot be read: connection refused; what its 1 robot reported is not known"
    assert (away["message"], "--shard right?" in away["hint"]) == (said, True)
    assert missing["message"] == "shard c was not asked: what its 1 robot reported is not known"
    assert "add --shard c=KUBECONFIG" in missing["hint"]


def test_a_cloud_that_does_not_answer_is_offline_and_nothing_is_known():
    content = silent_status("no route", "check the network")
    assert (content["health"], codes(content)) == ("offline", ["CloudOffline"])
    assert content["robots"] == {"all": None, "online": None, "offline": None, "unreported": None}
    assert shown().keys() == content.keys()
