"""The screen that people read, in full for the states that matter."""

import re

import pytest

from crsyncer.console.screens.report import stopped_document
from crsyncer.console.screens.screen import WIDTH, headline, render
from crsyncer.core.model import Side
from crsyncer.core.reports.text import count, duration, rfc3339
from tests.console.report_kit import NOW, document, facts, hold, kind, outbox, side, stopped, store

HEALTHY_SCREEN = """\
HEALTHY: robot-1 is in sync with the cloud: 1 kind, 12 objects; nothing waits.

agent   running for 1 h, pid 812, crsyncer 0.1.0, robot robot-1
cloud   connected for 1 h  https://cloud.example.com
robot   connected for 1 h, 2 reconnects  https://robot.example.com
outbox  0 statuses waiting
store   ok, 64 KiB, /state/state.db

KIND                   FROM   STATE             CLOUD  ROBOT  WAITING  HELD
goals.lab.example.com  cloud  syncing              12     12        0     0
"""
OFFLINE_SCREEN = """\
OFFLINE: the cloud has not answered for 4 min 12 s; the robot keeps working offline, 20 statuses
wait, nothing is lost.

agent   running for 1 h, pid 812, crsyncer 0.1.0, robot robot-1
cloud   offline for 4 min, last answer 4 min 12 s ago  https://cloud.example.com
        no route to host
robot   connected for 1 h  https://robot.example.com
outbox  20 statuses waiting, the oldest for 4 min
store   ok, 64 KiB, /state/state.db

KIND                   FROM   STATE             CLOUD  ROBOT  WAITING  HELD
goals.lab.example.com  cloud  waiting              12     12       20     0

WHAT TO DO
1. the cloud has not answered for 4 min 12 s; the robot keeps working offline
   -> nothing is lost, the agent retries; check the network if it should be up
"""
ATTENTION_SCREEN = """\
ATTENTION: action needed: 215 deletions of goals.lab.example.com held: too many deletions at once
(and 1 more).

agent   running for 1 h, pid 812, crsyncer 0.1.0, robot robot-1
cloud   connected for 1 h  https://cloud.example.com
robot   connected for 1 h  https://robot.example.com
outbox  2 statuses waiting, the oldest for 15 min, 1 dead letter
store   ok, 64 KiB, /state/state.db

KIND                   FROM   STATE             CLOUD  ROBOT  WAITING  HELD
goals.lab.example.com  cloud  held                  -     12        0   215
    waits for a human

HOLDS (your decision is needed)
h1  MassDeletion: 215 objects of goals.lab.example.com, for 5 min

WHAT TO DO
1. 215 deletions of goals.lab.example.com held: too many deletions at once
   -> if intended: crsyncer holds release h1; if not: undo it, and the hold ends
2. 1 write rejected permanently; retried hourly and at the next change
   -> crsyncer pending list shows each with the reason; correct the object or the schema, then:
      crsyncer pending retry
"""
STOPPED_SCREEN = """\
STOPPED: the agent is not running, so nothing is synced; 3 statuses wait in its store.

agent   stopped for 30 s, crsyncer 0.1.0, robot robot-1
cloud   unknown, last answer 2 s ago  https://cloud.example.com
robot   unknown  https://cloud.example.com
outbox  3 statuses waiting, the oldest for 1 min
store   ok, 4 KiB, /state/state.db

KIND                   FROM   STATE             CLOUD  ROBOT  WAITING  HELD
goals.lab.example.com  cloud  waiting               9      8        3     0

WHAT TO DO
1. the agent is not running: nothing is synced until it is started
   -> systemctl start crsyncer (or crsyncer run); its log shows why it ended
"""


def test_the_screen_of_a_healthy_robot():
    given = facts(robot=side(server="https://robot.example.com", reconnects=2))
    assert render(document(given, NOW), NOW) == HEALTHY_SCREEN


def test_the_screen_without_the_cloud():
    given = facts(
        cloud=side("offline", since=NOW - 240, last_ok=NOW - 252, error="no route\nto\x1bhost"),
        kinds=[kind(state="waiting", pending={"spec": 0, "status": 20})],
        outbox=outbox(20, 240),
    )
    assert render(document(given, NOW), NOW) == OFFLINE_SCREEN


def test_the_screen_for_a_human():
    held = kind(state="held", held=215, message="waits for a human", objects={"cloud": None, "robot": 12})
    given = facts(kinds=[held], holds=[hold()], outbox=outbox(2, 900, 1))
    assert render(document(given, NOW), NOW) == ATTENTION_SCREEN


def test_the_screen_of_a_stopped_agent():
    last = document(facts(robot=side(last_ok=None)), NOW - 90)
    assert render(stopped(last), NOW) == STOPPED_SCREEN


def test_the_screen_of_a_state_directory_that_was_never_used():
    screen = render(stopped_document(None, {}, NOW, store=store("missing")), NOW)
    assert screen.startswith("STOPPED: the agent is not running, so nothing is synced; it has no store yet.\n")
    assert "is this the right --state-dir?" in " ".join(screen.split())


def test_the_screen_of_an_agent_with_nothing_to_sync():
    screen = render(document(facts(kinds=[]), NOW), NOW)
    assert screen.startswith("HEALTHY: both sides are connected, but no CRD on the robot is annotated, so nothing")


def test_the_screen_of_a_stopped_agent_says_nothing_of_a_store_that_cannot_be_read():
    assert headline(stopped_document(None, {}, NOW, store=store("unreadable"))).endswith("; its store cannot be read.")


def test_a_robot_with_work_under_way_is_not_said_to_be_in_sync():
    given = facts(kinds=[kind(pending={"spec": 2, "status": 0})], outbox=outbox(1, 0))
    assert headline(document(given, NOW)) == (
        "HEALTHY: robot-1 is syncing with the cloud: 1 kind, 12 objects; 2 specs and 1 status wait."
    )


def test_a_name_with_hyphens_stays_whole():
    name = f"{'a-' * 15}b.example.com"
    screen = render(document(facts(holds=[hold("Contested", resource=name)]), NOW), NOW)
    assert all(name in line or "a-a" not in line for line in screen.splitlines())


def test_a_degraded_agent_says_so_first():
    given = facts(cloud=side("connecting", last_ok=None), outbox=outbox(1, 0))
    screen = render(document(given, NOW), NOW)
    assert screen.startswith("DEGRADED: the agent is connecting to the cloud.\n")
    assert "never answered" in screen


@pytest.mark.parametrize("given", [facts(tls_unverified=(Side.CLOUD,)), facts(cloud=side(clockOffsetSeconds=300))])
def test_the_screen_promises_no_retry_where_only_the_operator_can_help(given):
    content = document(given, NOW)
    screen = render(content, NOW)
    assert content["health"] == "degraded"
    assert "by itself" not in screen
    assert f"-> {content['reasons'][0]['hint'][:40]}" in screen


def test_a_screen_stays_a_screen_whatever_is_in_it():
    kinds = [kind(f"k{n}.{'x' * 90}.example.com", state="forbidden", message="m" * 300) for n in range(60)]
    holds = [hold(name=f"h{n}") for n in range(30)]
    content = document(facts(kinds=kinds, holds=holds, robot=side("offline", error="e" * 500)), NOW)
    lines = render(content, NOW).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) < 120
    assert "and 40 more" in lines
    assert "and 24 more: crsyncer holds list" in lines
    assert any(re.fullmatch(r"and \d+ more: crsyncer status --json", line) for line in lines)


def test_troubled_kinds_are_shown_before_the_others():
    content = document(facts(kinds=[kind("a.example.com"), kind("z.example.com", state="forbidden")]), NOW)
    screen = render(content, NOW)
    assert screen.index("z.example.com  cloud") < screen.index("a.example.com  cloud")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (252, "4 min 12 s"), (3600, "1 h"), (7260, "2 h 1 min"),
     (86400, "1 d"), (90000, "1 d 1 h")],
)  # fmt: skip
def test_durations_are_said_in_two_units(seconds, text):
    assert duration(seconds) == text


def test_numbers_agree_with_their_things():
    assert [count(1, "status"), count(2, "status"), count(0, "kind")] == ["1 status", "2 statuses", "0 kinds"]


def test_times_are_utc():
    assert rfc3339(NOW) == "2026-11-21T08:00:00Z"
    assert rfc3339(None) is None
