"""The page for people in a real browser, as the controller serves it: with 10,000 robots, and under its own policy."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from crsyncer.adapters.web import Page, serve
from crsyncer.core.model import Json
from crsyncer.fleet.domain.rollout.decisions import Decided, Decision
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.shown.fleet_facts import FleetFacts, Leader, Reported
from crsyncer.fleet.domain.shown.status_document import fleet_status
from crsyncer.fleet.domain.values import Placement, Robot, RobotState
from crsyncer.fleet.page import POLICY, page
from tests.fleet.status_documents import NOW, counts, hold

EVIL = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
ROBOTS = [f"r{number}" for number in range(10_000)]


def placement(number: int) -> Placement:
    """One of 30 placements of all robots, each of which blocks some; the first has a hold and a wild message."""
    error = {"robot": "r0", "source": "default/nav", "reason": "RenderFailed", "message": EVIL}
    status: Json = {
        "observedGeneration": 1,
        "counts": counts(len(ROBOTS), blocked=10, waiting=4_000),
        "errors": [error] * 20,
        "errorCount": 500,
        "holds": [hold()] if number == 0 else [],
    }
    return Placement("default", f"p{number}", f"uid-{number}", "2026-01-01T00:00:00Z", generation=1, status=status)


def facts() -> FleetFacts:
    """A fleet of 10,000 robots."""
    placements = [placement(number) for number in range(30)]
    blocked = {robot: Decided(RobotState.BLOCKED, "2026-11-24T05:00:00Z", message=EVIL) for robot in ROBOTS[:500]}
    decisions = [Decision("default", f"{each.name}-0", each.name, each.uid, 0, blocked) for each in placements]
    return FleetFacts(
        placements,
        {robot: Robot(robot, f"uid-{robot}") for robot in ROBOTS},
        decisions,
        Leader("crsyncer-fleet-0", NOW - 3),
        NOW,
        reports={robot: Reported(Report.ONLINE, NOW - 60) for robot in ROBOTS},
    )


async def seen(url: str, folder: Path) -> str:
    """The document that a browser makes of a page, after whatever it does by itself. A complaint of it is a failure."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (Debian: chromium)")
    process = await asyncio.create_subprocess_exec(
        *(program, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"),
        *("--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom", url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(120):
        written, told = await process.communicate()
    assert [line for line in told.decode().splitlines() if "CONSOLE" in line] == []
    return written.decode()


async def test_a_browser_shows_a_fleet_of_10_000_robots_and_runs_nothing_of_it(tmp_path: Path):
    fleet = facts()

    def show(parameters: Mapping[str, str]) -> Page:
        robot = parameters.get("robot", "")
        return Page(page(fleet_status(fleet, robot=robot), robot_query=robot, now=NOW), POLICY)

    async with serve(
        ("127.0.0.1", 0), live=lambda: None, ready=lambda: None, metrics=lambda: b"", pages={"/": show}
    ) as (host, port):
        shown = await seen(f"http://{host}:{port}/", tmp_path)
        found = await seen(f"http://{host}:{port}/?robot=r17", tmp_path)
    assert "<title>31 things to look at - fleet</title>" in shown
    assert shown.index("crsyncer fleet release") < shown.index("RobotsBlocked") < shown.index("10,000</b>robots")
    assert shown.index("10,000</b>robots") < shown.index("<h2>Placements</h2>")
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "<img" not in shown
    assert "Robot r17" in found
