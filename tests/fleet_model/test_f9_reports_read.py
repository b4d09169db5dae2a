"""What the real controller makes of the reports of robots, on virtual time (F9.1, F9.4 to F9.6)."""

from typing import Any

import pytest

from crsyncer.core.reports.text import rfc3339
from tests.fleet_model.asking import Asked
from tests.fleet_model.fleet_agents import SYNC_STATES
from tests.fleet_model.judged_objects import marks
from tests.fleet_model.rolling import Rolling, rolling
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.plane import GROUP

PLAIN: dict[str, Any] = {"begin": False, "ready_when": "true"}


def counted(fleet: Rolling, what: str) -> int:
    """A count of the placement's status."""
    fleet.world.pass_time(15.0)
    return int(fleet.world.status()["counts"][what])


def test_F9_4_a_robot_is_online_for_660_seconds_after_its_beat():
    with rolling(2, **PLAIN) as fleet:
        assert (counted(fleet, "offline"), counted(fleet, "unreported")) == (0, 0)
        fleet.agents.report("o1")
        fleet.agents.cut("o1")
        fleet.world.pass_time(625.0)
        assert counted(fleet, "offline") == 0
        fleet.world.pass_time(25.0)
        assert counted(fleet, "offline") == 1
        fleet.agents.connect("o1")
        assert counted(fleet, "offline") == 0


def test_F9_4_a_report_whose_beat_is_not_raised_keeps_nobody_online():
    with rolling(1, **PLAIN) as fleet:
        fleet.agents.cut("o1")
        spec = fleet.world.stored(SYNC_STATES)["default", "o1"]["spec"]
        for number in range(8):
            fleet.world.pass_time(100.0)
            fleet.agents.put_report("o1", spec={**spec, "agentVersion": str(number)})
        assert counted(fleet, "offline") == 1


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_F9_4_the_clock_of_the_controllers_machine_does_not_count(skew):
    with rolling(1, silent=1, **PLAIN) as fleet:
        fleet.world.kill()
        fleet.world.start("b").skew = skew
        fleet.world.weather["b"].clock_offset = -skew
        fleet.world.settle()
        assert (counted(fleet, "offline"), counted(fleet, "unreported")) == (0, 1)
        fleet.agents.cut("o1")
        fleet.world.pass_time(670.0)
        assert counted(fleet, "offline") == 1


def test_F9_4_a_time_in_the_future_keeps_nobody_online_for_ever():
    with rolling(0, silent=1, **PLAIN) as fleet:
        ahead = rfc3339(fleet.world.clock.unix() + 1e6)
        managed: Any = [{"time": ahead, "fieldsV1": {"f:spec": {"f:beat": {}}}}]
        fleet.agents.put_report("s1", spec={"robot": "s1", "beat": 1}, managedFields=managed)
        assert (counted(fleet, "offline"), counted(fleet, "unreported")) == (0, 0)
        fleet.world.pass_time(670.0)
        assert counted(fleet, "offline") == 1


def test_F9_6_a_robot_is_ready_once_it_has_applied_the_very_write():
    with rolling(1, delay=60.0, **PLAIN) as fleet:
        fleet.world.pass_time(70.0)
        assert fleet.states() == {"o1": "Ready"}
        fleet.change(2, seconds=10.0)
        fleet.change(1, seconds=10.0)
        assert fleet.with_content(1) == {"o1"}
        assert fleet.states() == {"o1": "InFlight"}
        fleet.world.pass_time(70.0)
        assert fleet.states() == {"o1": "Ready"}


def test_F9_6_a_rewrite_by_drift_is_acked_anew():
    with rolling(2, delay=30.0, **PLAIN) as fleet:
        fleet.world.pass_time(40.0)
        assert set(fleet.states().values()) == {"Ready"}
        number = marks(fleet.world.replicas()["robot-o1/dock"])["n"]
        fleet.world.cloud.set("dock", namespace="robot-o1", spec={"x": "theirs"})
        fleet.world.pass_time(10.0)
        assert marks(fleet.world.replicas()["robot-o1/dock"])["n"] == number + 1
        assert fleet.states() == {"o1": "InFlight", "o2": "Ready"}
        fleet.world.pass_time(40.0)
        assert set(fleet.states().values()) == {"Ready"}


def test_F9_6_acked_does_not_cover_deletions():
    with rolling(1, **PLAIN) as fleet:
        fleet.world.source("lift")
        fleet.settle()
        fleet.agents.cut("o1")
        fleet.world.cloud.delete("lift")
        fleet.world.pass_time(30.0)
        assert fleet.states() == {"o1": "InFlight"}
        fleet.agents.connect("o1")
        fleet.world.pass_time(30.0)
        assert fleet.states() == {"o1": "Ready"}


def test_F9_6_a_full_report_that_lacks_a_placement_is_none_for_it():
    with rolling(0, silent=1, **PLAIN) as fleet:
        applied = {f"uid-{number}": "0" * 24 for number in range(500)}
        fleet.agents.put_report("s1", spec={"robot": "s1", "beat": 1, "applied": applied})
        assert counted(fleet, "unreported") == 1
        applied.popitem()
        fleet.agents.put_report("s1", spec={"robot": "s1", "beat": 2, "applied": applied})
        assert counted(fleet, "unreported") == 0


def test_F9_a_report_that_is_deleted_leaves_its_robot_unreported():
    with rolling(3, **PLAIN) as fleet:
        fleet.agents.cut("o1")
        fleet.world.cloud.delete("o1", kind=SYNC_STATES)
        assert counted(fleet, "unreported") == 1
        fleet.world.settle()
        assert set(fleet.states().values()) == {"Ready"}
        assert len(fleet.world.replicas()) == 3


def test_F9_a_new_leader_writes_nothing_where_all_have_reported():
    with rolling(5, offline=2, silent=2) as fleet:
        fleet.settle()
        fleet.world.kill()
        began = fleet.world.clock.now
        fleet.world.start("b")
        fleet.settle()
        assert [str(each) for each in fleet.world.written(began)] == []


def test_F1_1_reports_that_a_new_leader_may_not_list_stop_rollouts_alone_and_need_a_human():
    with rolling(3, silent=1) as fleet:
        world = fleet.world
        world.source("lift", labels={"use": "yes"})
        world.edit("p", resources=[{"group": GROUP, "resource": "goals", "names": ["dock"]}])
        world.place("q", resources=[{"group": GROUP, "resource": "goals", "names": ["lift"]}])
        fleet.settle()
        world.kill()
        failing = world.inject(FORBIDDEN, verb="list", part="/robotsyncstates", times=1e6)
        world.start()
        world.cloud.set("lift", spec={"x": 2})
        fleet.change(3)
        world.pass_time(120)
        assert {place: spec["x"] for place, spec in world.specs().items() if place.endswith("lift")} == {
            f"robot-{robot}/lift": 2 for robot in ("o1", "o2", "o3", "s1")
        }
        assert fleet.with_content(3) == set()
        assert world.condition("RolledOut") == ("False", "NoReports")
        found = Asked(world).status()["reasons"]
        assert [each["code"] for each in found] == ["NotWritten", "NoReports"]
        assert "list of RobotSyncStates" in found[0]["message"]
        failing.times = 0
        world.pass_time(120)
        fleet.settle()
        assert fleet.with_content(3) == {"o1", "o2", "o3", "s1"}
        assert Asked(world).status()["reasons"] == []
