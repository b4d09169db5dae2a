"""`crsyncer events` where no agent runs: what it shows of a store, in every format and spelling."""

import asyncio
import json
import logging
import re
from asyncio.subprocess import PIPE
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters import control
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.cli import logs
from crsyncer.console.screens.report import SAVED_STATUS_KEY
from crsyncer.core.model import Key, Side
from crsyncer.core.reports.facts import UNLISTED, Action, Fact
from crsyncer.engine.reporting.recorder import Recorder
from tests.console.report_kit import GOALS, document, facts
from tests.delivery.command_line import CLI, environment
from tests.delivery.command_line import in_process as run

TASKS = "tasks.lab.example.com"
NOON = 1795608000.0
FACTS = (
    Fact(Side.ROBOT, GOALS, Key("default", "dock"), Action.CREATED, "S3.2"),
    Fact(Side.ROBOT, TASKS, Key("hall", "clean"), Action.HELD, "S5.3", "NameTaken: another object has this name"),
    Fact(Side.CLOUD, GOALS, Key("hall", "dock"), Action.DEAD_LETTER, "S10", "status.n: Invalid value: 7: too large"),
    Fact(Side.ROBOT, GOALS, None, Action.RELEASED, "S5.5", "an operator released 3 objects"),
    Fact(Side.ROBOT, GOALS, Key("default", "dock"), Action.CREATED, "S3.2"),
)


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    """The state directory of an agent that reported FACTS, one a minute, and was killed."""
    store = await SqliteStore.open(tmp_path)
    times = iter(range(len(FACTS)))
    recorder = Recorder(store, clock=lambda: NOON + 100 * next(times))
    for fact in FACTS:
        recorder.record(fact)
    saved = document(facts(), NOON)
    saved["kinds"][0]["aliases"] = ["goals", "goal", "Goal", "go"]
    store.put_meta(SAVED_STATUS_KEY, saved)
    await store.close()
    return tmp_path


def rows(state: Path, *arguments: str) -> list[dict[str, Any]]:
    done = run("events", *arguments, "-o", "json", "--state-dir", state)
    assert (done.returncode, done.stderr) == (0, "")
    content = json.loads(done.stdout)
    assert content["schema"] == "crsyncer.events/v1"
    found: list[dict[str, Any]] = content["events"]
    return found


def test_the_text_is_a_table_with_the_latest_last(state):
    done = run("events", "--state-dir", state)
    assert (done.returncode, done.stderr) == (0, "")
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        "TIME SIDE RESOURCE OBJECT ACTION RULE MESSAGE",
        f"2026-11-25T12:01:40Z robot {TASKS} hall/clean held S5.3 NameTaken: another object has this name",
        f"2026-11-25T12:03:20Z cloud {GOALS} hall/dock dead letter S10 status.n: Invalid value",
        f"2026-11-25T12:05:00Z robot {GOALS} - released S5.5 an operator released 3 objects",
        f"2026-11-25T12:06:40Z robot {GOALS} default/dock created S3.2 (2 times)",
    ]


def test_wide_also_shows_when_it_began_and_how_often(state):
    lines = run("events", "-o", "wide", "--state-dir", state).stdout.splitlines()
    assert lines[0].split()[:4] == ["TIME", "FIRST", "TIME", "COUNT"]
    assert lines[-1].split()[:3] == ["2026-11-25T12:06:40Z", "2026-11-25T12:00:00Z", "2"]


def test_json_has_every_field(state):
    assert rows(state, "tasks") == [
        {
            "time": "2026-11-25T12:01:40Z",
            "firstTime": "2026-11-25T12:01:40Z",
            "count": 1,
            "side": "robot",
            "resource": TASKS,
            "namespace": "hall",
            "name": "clean",
            "several": False,
            "action": "held",
            "rule": "S5.3",
            "message": "NameTaken: another object has this name",
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["goals"], ["dock", "", "dock"]),
        (["go/dock"], ["dock", "dock"]),
        (["Goal/hall/dock"], ["dock"]),
        (["goals/hall/dock", "tasks"], ["clean", "dock"]),
        (["-n", "hall"], ["clean", "dock"]),
        (["goal/dock", "-n", "hall"], ["dock"]),
        (["goals/elsewhere"], []),
    ],
    ids=" ".join,
)
def test_kinds_and_objects_are_chosen_in_the_spellings_of_kubectl(state, arguments, names):
    assert [row["name"] for row in rows(state, *arguments)] == names


def test_names_are_those_of_objects_each_once(state):
    shown = run("events", "-o", "name", "--state-dir", state).stdout.splitlines()
    assert shown == [f"{TASKS}/hall/clean", f"{GOALS}/hall/dock", GOALS, f"{GOALS}/default/dock"]


def test_a_kind_that_is_not_there_is_refused_with_those_there_are(state):
    done = run("events", "nothing", "--state-dir", state)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[1] == f"hint: synced are: {GOALS}, {TASKS}"


def test_without_a_store_there_are_no_events(tmp_path):
    done = run("events", "--state-dir", tmp_path / "never")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no events\n", "")
    assert rows(tmp_path / "never") == []


async def test_a_watch_shows_only_what_is_new(state):
    (row,) = rows(state, "tasks")
    shown = [row]

    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"events": shown, "kinds": {TASKS: ["task"]}}

    async with control.serve(state, answer):
        arguments = ("events", "task", "-w", "-o", "json", "--state-dir", str(state))
        watching = await asyncio.create_subprocess_exec(*CLI, *arguments, stdout=PIPE, env=environment())
        try:
            assert watching.stdout is not None
            assert json.loads(await watching.stdout.readline())["events"] == [row]
            shown = [row, row | {"action": "released"}]
            assert json.loads(await watching.stdout.readline())["events"] == [shown[1]]
            shown = [shown[1], row | {"count": 2}]
            assert json.loads(await watching.stdout.readline())["events"] == [shown[1]]
        finally:
            watching.kill()
            await watching.wait()


def test_a_line_of_the_log_has_the_fields_of_its_fact_also_as_json(tmp_path):
    lines: dict[str, str] = {}
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    for form in ("text", "json"):
        stream = StringIO()
        logs.set_up(form, "info", stream)
        recorder = Recorder(_Nothing(), clock=lambda: NOON)
        recorder.record(FACTS[1])
        recorder.record(FACTS[1])
        recorder.record(replace(FACTS[1], action=Action.SENT))
        (lines[form],) = stream.getvalue().splitlines()
    root.handlers[:] = before
    fields = {"side": "robot", "resource": TASKS, "key": "hall/clean", "action": "held", "rule": "S5.3"}
    said = json.loads(lines["json"])
    assert said.items() >= fields.items()
    assert (said["level"], said["message"]) == ("warning", "held: NameTaken: another object has this name")
    assert all(f" {name}={value}" in lines["text"] for name, value in fields.items())


class _Nothing:
    """A store that has never kept anything."""

    def get_meta(self, name: str) -> None:
        """Nothing."""

    def put_meta(self, name: str, value: Any) -> None:
        """Kept by nobody."""


def test_every_action_is_explained_and_no_other():
    page = (Path(__file__).parents[2] / "OPERATING.md").read_text()
    table = page.split("\n| action |")[1].split("\n\n")[0]
    told = [name for line in table.splitlines()[2:] for name in re.findall("`(.*?)`", line.split("|")[1])]
    assert sorted(told) == sorted(action.value for action in Action if action not in UNLISTED)
