"""Chaos runs on two real planes: a short one without a violation, and agents with planted defects that are caught."""

import sys
from pathlib import Path

import pytest

from crsyncer.sandbox.two_planes import Sandbox
from tests.faults.chaos.checker import check
from tests.faults.chaos.history import Evidence
from tests.faults.chaos.planted import DEFECTS
from tests.faults.chaos.play import play
from tests.faults.chaos.report import story
from tests.faults.chaos.schedule import Step, draw


def goal(at: float, action: str, *, number: int, name: str = "a") -> Step:
    return Step(at, action, {"kind": "goals", "name": name, "number": number})


PROVOKING = {
    # A status waits for the cut to end, and its object has a successor by then.
    "status_for_anybody": [
        goal(0, "create", number=1),
        goal(4, "report", number=2),
        Step(6, "cut", {"side": "cloud", "seconds": 6}),
        goal(7, "report", number=3),
        goal(9, "recreate", number=4),
    ],
    # A newer status comes while an older one is on its way over a slow link.
    "acknowledged_by_key": [
        goal(0, "create", number=1),
        Step(4, "delay", {"side": "cloud", "seconds": 8, "late": 1.0}),
        *[goal(5 + number / 3, "report", number=number) for number in range(2, 9)],
    ],
    # The agent dies between position and data.
    "cursor_ahead": [
        goal(0, "create", number=1),
        goal(10, "change", number=2),
        Step(12, "agent_kill", {"seconds": 0}),
    ],
    # The database is lost, and the cloud's list comes long after the robot's.
    "unseen_is_gone": [
        goal(0, "create", number=1),
        Step(4, "delay", {"side": "cloud", "seconds": 15, "late": 1.5}),
        Step(5, "agent_forget", {"seconds": 0}),
    ],
}
CAUGHT = {
    "status_for_anybody": "another's status",
    "acknowledged_by_key": "not converged",
    "cursor_ahead": "not converged",
    "unseen_is_gone": "wrong delete",
}


async def run(sandbox: Sandbox, directory: Path, steps: list[Step], *, planted: str = "", patience: float) -> Evidence:
    return await play(
        steps,
        planes={"cloud": sandbox.cloud, "robot": sandbox.robot},
        directory=directory,
        wrapper=(sys.executable, "-m", "tests.faults.chaos.planted"),
        environment={"PLANTED": planted},
        patience=patience,
    )


@pytest.mark.nightly("random")
async def test_a_short_chaos_run_keeps_every_promise(sandbox: Sandbox, tmp_path: Path):
    evidence = await run(sandbox, tmp_path, draw(seed=7, seconds=25), patience=120)
    violations = check(evidence)
    assert not violations, "\n".join(story(v, evidence, replay="SECONDS=25 SEED=7") for v in violations)
    assert len(evidence.done) > 40
    assert sum(not done.answer for done in evidence.done) > 30


@pytest.mark.nightly
@pytest.mark.parametrize("defect", sorted(PROVOKING))
async def test_the_checker_catches_an_agent_with_a_planted_defect(defect: str, sandbox: Sandbox, tmp_path: Path):
    evidence = await run(sandbox, tmp_path, PROVOKING[defect], planted=defect, patience=15)
    assert CAUGHT[defect] in {violation.rule for violation in check(evidence)}


@pytest.mark.nightly
@pytest.mark.parametrize("defect", sorted(PROVOKING))
async def test_the_agent_without_the_defect_passes_the_same_schedule(defect: str, sandbox: Sandbox, tmp_path: Path):
    evidence = await run(sandbox, tmp_path, PROVOKING[defect], patience=120)
    violations = check(evidence)
    assert not violations, "\n".join(story(v, evidence, replay=defect) for v in violations)


def test_every_defect_has_a_schedule_that_provokes_it():
    assert {*PROVOKING, ""} == {*DEFECTS}
    assert {*PROVOKING} == {*CAUGHT}
