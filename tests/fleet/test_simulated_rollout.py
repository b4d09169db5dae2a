"""Rollouts over simulated robots: random histories, judged at each write and step (F8)."""

from random import Random

import pytest

from crsyncer.fleet.domain.values import RobotState
from tests.fleet.simulated_robots import Quality
from tests.fleet.simulated_rollout import SimulatedRollout


def history(seed: int, *, steps: int = 12) -> None:
    """Some hours of edits, good and bad, of robots that come and go, and of leaders; then all is well again."""
    random = Random(seed)
    fleet = SimulatedRollout(
        seed,
        robots=random.randint(1, 9),
        silent=random.choice([0, 0, 1, 3]),
        maxConcurrency=random.choice([1, 2, 3, "5%", "50%"]),
        maxFailures=random.choice([0, 0, 1, 2]),
        minReadySeconds=random.choice([0, 60]),
        progressDeadlineSeconds=random.choice([120, 900]),
        offline=random.choice(["Defer", "Stamp"]),
    )
    if random.random() < 0.5:  # the last content is Ready everywhere
        fleet.lead()
        fleet.edit()
        fleet.run(2400)
    else:
        fleet.edit()
        fleet.lead()
    for _ in range(steps):
        fleet.run(random.choice([1, 10, 60, 300, 800]))
        name = random.choice(sorted(fleet.robots))
        match random.randrange(18):
            case 0 | 1:
                fleet.edit(random.choice(list(Quality)))
            case 2:
                fleet.edit()
            case 3:
                fleet.revert(
                    random.choice([each for each, kind in fleet.qualities.items() if kind is Quality.GOOD and each])
                )
            case 4 | 5 | 6:
                fleet.robots[name].connect(is_connected=False)
            case 7 | 8:
                fleet.robots[name].connect(is_connected=True)
            case 9 | 10:
                fleet.kill_leader()
            case 11:
                fleet.relabel(name, random.choice(["canary", "early", "late"]))
            case 12:
                fleet.delete_replica(name)
            case 13:
                fleet.change(paused=not fleet.rollout.paused)
            case 14:
                fleet.change(max_failures=random.randint(0, 2), max_concurrency=random.choice([1, 3, "40%"]))
            case 15:
                fleet.kill_leader(gap=2000)
            case 16:
                fleet.stop_reports(name)
            case _:
                fleet.unselect(name)
    for content, robots in fleet.had.items():
        if fleet.qualities[content] is not Quality.GOOD:
            assert len(robots - fleet.silent[content]) <= fleet.most[content] + fleet.excused[content], (
                content,
                robots,
            )
    fleet.edit()
    fleet.change(paused=False)
    for robot in fleet.robots.values():
        robot.connect(is_connected=True)
    fleet.run(7200)
    assert set(fleet.states().values()) == {RobotState.READY}, fleet.states()


@pytest.mark.parametrize("seed", range(0, 300, 30))
def test_F8_no_history_breaks_the_limits_and_each_one_ends_well(seed):
    for each in range(seed, seed + 30):
        history(each)


@pytest.mark.parametrize("quality", [Quality.UNREADY, Quality.KILLS])
def test_F8_bad_content_stops_at_the_limits_of_a_large_fleet_and_good_content_mends_it(quality):
    fleet = SimulatedRollout(7, robots=110, silent=10, maxConcurrency="5%", maxFailures=2, progressDeadlineSeconds=900)
    fleet.lead()
    fleet.edit()
    fleet.run(4000)
    assert set(fleet.states().values()) == {RobotState.READY}
    away = sorted(fleet.robots)[100:110]
    for name in away:
        fleet.robots[name].connect(is_connected=False)
    fleet.run(1200)
    fleet.edit(quality)
    for _ in range(3):
        fleet.run(1100)
        fleet.kill_leader()
    fleet.run(60)
    had = fleet.had[2]
    assert 3 <= len(had) <= 5 + 2 + 1
    assert not had & {*away, *(name for name, robot in fleet.robots.items() if not robot.reports)}
    said = {name: each for robots in fleet.decisions.values() for name, each in robots.items()}
    assert {name for name, each in said.items() if each.state is RobotState.FAILED} == had
    assert {name for name, each in said.items() if each.state is RobotState.DEFERRED} == set(away)
    fleet.edit()
    for name in away:
        fleet.robots[name].connect(is_connected=True)
    fleet.run(5000)
    assert set(fleet.states().values()) == {RobotState.READY}


@pytest.mark.parametrize("is_waiting", [False, True])
def test_F8_5_the_loss_of_all_reports_does_not_have_all_robots_written(is_waiting):
    fleet = SimulatedRollout(1, robots=20, maxConcurrency=1)
    fleet.lead()
    fleet.edit()
    fleet.run(4000)
    if is_waiting:  # for canaries that are away
        for robot in fleet.robots.values():
            robot.connect(is_connected=robot.labels["ring"] != "canary")
        fleet.run(1200)
        fleet.edit(Quality.KILLS)
        fleet.run(60)
    fleet.stop_reports(*fleet.robots)
    if not is_waiting:
        fleet.edit(Quality.KILLS)
    fleet.run(3600)
    assert fleet.had[2] == set()
