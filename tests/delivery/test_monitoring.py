"""The dashboards and the alerts ask only for what `/metrics` has, of an agent, the fleet controller or the door."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from crsyncer.adapters.metrics import FleetMetrics
from crsyncer.adapters.metrics.door_metrics import DoorMetrics
from crsyncer.core.model import Json
from crsyncer.core.reports.text import NOT_TRUSTED, NOT_YET_VALID
from crsyncer.sandbox.free_ports import free_ports
from tests.console.report_kit import NOW, facts, side
from tests.console.report_kit import document as status_document
from tests.delivery.operating import REASONS
from tests.fleet.status_documents import fleet_document, reason, shown_placement
from tests.system.conftest import MakeBed

ROOT = Path(__file__).parents[2]
AGENT, FLEET, DOOR = ROOT / "robot/metrics", ROOT / "cloud/fleet", ROOT / "cloud/door"
CASES = {AGENT: "alerts_test.yaml", FLEET: "fleet_alerts_test.yaml", DOOR: "door_alerts_test.yaml"}
PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus adds to whatever it scrapes."""
SELECTED = re.compile(r"\b(crsyncer_\w+)(?:\{(.*?)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"(.*?)"')
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([\w\s,]*)\)")

Series = dict[str, dict[str, set[str]]]
"""The values of each label of each metric."""


def rules(folder: Path) -> list[Json]:
    """The alerts of a folder."""
    groups = yaml.safe_load((folder / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard(folder: Path) -> Json:
    content: Json = json.loads((folder / "dashboard.json").read_text())
    return content


def expressions(folder: Path) -> dict[str, str]:
    """Every query of the dashboard and of the alerts, by where it is."""
    found = {f"alert {rule['alert']}": str(rule["expr"]) for rule in rules(folder)}
    for panel in dashboard(folder)["panels"]:
        for target in panel["targets"]:
            found[f"panel {panel['title']} {target['refId']}"] = target["expr"]
    for variable in dashboard(folder)["templating"]["list"]:
        if variable["type"] == "query":
            found[f"variable {variable['name']}"] = variable["query"]["query"]
    return found


def wrong(expression: str, known: Series) -> Iterator[str]:
    """What an expression asks for that is not there."""
    grouped = {label.strip() for labels in GROUPED.findall(expression) for label in labels.split(",")}
    for name, matchers in SELECTED.findall(expression):
        if name not in known:
            yield name
            continue
        for label, operator, value in MATCHER.findall(matchers):
            if label not in known[name].keys() | PROMETHEUS:
                yield f"{name}{{{label}}}"
            elif operator == "=" and label not in PROMETHEUS and value not in known[name][label]:
                yield f"{name}{{{label}={value}}}"
        # What one side of `and on (...)` is joined by is a label of both.
        yield from (f"{name} by {label}" for label in grouped - known[name].keys() - PROMETHEUS)


def series(text: str) -> Series:
    """The series of a `/metrics`."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            for label, value in sample.labels.items():
                found.setdefault(sample.name, {}).setdefault(label, set()).add(value)
            found.setdefault(sample.name, {})
    return found


def promtool(*arguments: str | Path, given: str = "") -> str:
    """What Prometheus' own checker says; it is in Debian's package prometheus."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run([program, *arguments], input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def test_every_query_asks_for_what_an_agent_has(make_bed: MakeBed):
    (port,) = free_ports(1)
    bed = await make_bed(flags=("--listen", f"127.0.0.1:{port}"))
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.settled()
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as reply:
        text = await reply.text()
    known = series(text)
    assert {where: trouble for where, each in expressions(AGENT).items() if (trouble := list(wrong(each, known)))} == {}
    assert set(wrong('crsyncer_holds{side="x"} + crsyncer_hold', known)) == {"crsyncer_holds{side}", "crsyncer_hold"}
    if shutil.which("promtool"):
        await asyncio.to_thread(promtool, "check", "metrics", given=text)


def test_every_query_asks_for_what_a_fleet_controller_has():
    metrics = FleetMetrics("root")
    metrics.exchange("root", "list", 200, 10, 2000)
    metrics.relist("root", "configmaps", "first")
    metrics.event("root", "configmaps", "ADDED")
    metrics.write("configmaps", "create", "done")
    document = fleet_document(shown_placement(), reasons=[reason("RobotsFailed")])
    text = metrics.render(document, replicas={"configmaps": 1}, due=1).decode()
    known = series(text)
    assert {where: trouble for where, each in expressions(FLEET).items() if (trouble := list(wrong(each, known)))} == {}
    if shutil.which("promtool"):
        promtool("check", "metrics", given=text)


def test_every_query_asks_for_what_a_front_door_has():
    metrics = DoorMetrics("root")
    metrics.connections.exchange("root", "list", 200, 10, 2000)
    metrics.ended(1)
    known = series(metrics.render({"root": 1}, {"root": True}).decode())
    assert {where: trouble for where, each in expressions(DOOR).items() if (trouble := list(wrong(each, known)))} == {}


def test_the_picture_shows_the_graphs_of_the_dashboard():
    titles = re.findall('class="t">(.*?)<', (AGENT / "dashboard.svg").read_text())
    panels = dashboard(AGENT)["panels"]
    assert titles == [panel["title"] for panel in panels if panel["type"] == "timeseries"], "draw it anew"


@pytest.mark.parametrize("folder", CASES, ids=["agent", "fleet", "door"])
def test_every_panel_and_alert_says_what_it_shows_and_what_to_do(folder: Path):
    panels = dashboard(folder)["panels"]
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)
    numbers = [panel["id"] for panel in panels]
    assert len(numbers) == len(set(numbers))
    for rule in rules(folder):
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]


def alerts_for(document: Json) -> set[str]:
    """The alerts that fire for a status: the agent counts its holds, dead letters and reasons in its metrics."""
    if document["agent"]["state"] == "stopped":
        return {"CrsyncerDown"}
    found = {"CrsyncerNeedsDecision"} if document["holds"] else set()
    found |= {"CrsyncerDeadLetters"} if document["outbox"]["deadLetters"] else set()
    [expression] = [str(rule["expr"]) for rule in rules(AGENT) if rule["alert"] == "CrsyncerNeedsAction"]
    [(_, _, codes)] = MATCHER.findall(expression)
    if {reason["code"] for reason in document["reasons"]} & set(codes.split("|")):
        found.add("CrsyncerNeedsAction")
    return found


def test_whatever_needs_a_human_has_an_alert():
    early = status_document(facts(cloud=side("unauthorized", error=NOT_YET_VALID)), NOW)
    refused = status_document(facts(cloud=side("unauthorized", error=NOT_TRUSTED[-1])), NOW)
    needed = [each for given in REASONS.values() for each in given if each["health"] == "attention"]
    assert {"PolicyMisconfigured", "KindMissing", "ConfigRejected"} <= {r["code"] for d in needed for r in d["reasons"]}
    without = [each["reasons"] for each in (*needed, early, refused) if not alerts_for(each)]
    assert without == [], "a human is needed, and Prometheus calls none"
    names = {rule["alert"] for rule in rules(AGENT)}
    assert {name for each in needed for name in alerts_for(each)} <= names
    missing = [each for given in REASONS.values() for each in given if each["reasons"][0]["code"] == "KindMissing"]
    assert all("CrsyncerNeedsAction" in alerts_for(each) for each in missing)


@pytest.mark.parametrize("folder", CASES, ids=["agent", "fleet", "door"])
def test_prometheus_itself_takes_the_alerts_and_the_queries_and_each_alert_fires_for_its_trouble(
    tmp_path: Path, folder: Path
):
    assert f"{len(rules(folder))} rules found" in promtool("check", "rules", folder / "alerts.yaml")
    cases = Path(__file__).with_name(CASES[folder])
    promtool("test", "rules", cases)
    tried: list[dict[str, Any]] = yaml.safe_load(cases.read_text())["tests"]
    fired = {each["alertname"] for test in tried for each in test["alert_rule_test"] if each.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in rules(folder)}
    queries = [each for where, each in expressions(folder).items() if where.startswith("panel")]
    recorded = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    promtool("check", "rules", file)
