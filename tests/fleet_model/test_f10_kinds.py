"""A kind that a shard does not serve, or not as the root does: only its robots wait for that (F2.3, F10.2)."""

from typing import Any

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.sharded import GOALS, Sharded, sharded
from tests.model.simulation.plane import GROUP
from tests.system.bed import crd

NEW, OLD = {"x": 2}, {"x": 1}
SOURCE = "cr-syncer.cloudrobotics.com/spec-source"
TEMPLATE: Any = {"name": "made", "group": GROUP, "resource": "goals", "object": {"spec": OLD}}
ROLLOUT: Any = {
    "readyWhen": "true",
    "rollout": {"maxConcurrency": 1, "minReadySeconds": 0, "progressDeadlineSeconds": 60},
}


def resolved(fleet: Sharded) -> Json:
    """The condition Resolved of the placement."""
    conditions = fleet.world.status()["conditions"]
    return next(dict(each) for each in conditions if each["type"] == "Resolved")


@pytest.mark.parametrize("restarts", [False, True])
def test_F2_3_a_kind_that_a_shard_marks_otherwise_is_told_and_its_replicas_stay_as_they_are(restarts: bool) -> None:
    with sharded() as fleet:
        began = fleet.world.clock.now
        fleet["b"].cloud.annotate_kind({SOURCE: "robot"})
        fleet.world.settle()
        if restarts:
            fleet.world.kill()
            fleet.world.start()
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.pass_time(200)
        assert (fleet["b"].specs(), fleet["b"].verbs(began)) == ({"robot-rb/dock": OLD}, [])
        assert (fleet["c"].specs(), fleet.world.specs()) == ({"robot-rc/dock": NEW}, {"robot-r0/dock": NEW})
        condition = resolved(fleet)
        assert (condition["status"], condition["reason"]) == ("False", "NotPlaceable")
        assert condition["message"].startswith(f"shard b: the CRD {GOALS} says spec-source robot")
        assert (fleet.world.decided()["rb"], fleet.world.holds()) == ("Waiting", {})
        fleet["b"].cloud.annotate_kind({SOURCE: "cloud"})
        fleet.agree()
        assert (resolved(fleet)["status"], fleet["b"].verbs(began)) == ("True", ["patch"])


def test_F2_3_a_kind_that_a_shard_does_not_serve_is_told_and_the_others_go_on() -> None:
    with sharded() as fleet:
        fleet["b"].cloud.delete_kind()
        while not fleet["b"].cloud.sweep():
            fleet.world.pass_time(1)
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.pass_time(200)
        assert fleet["c"].specs() == {"robot-rc/dock": NEW}
        condition = resolved(fleet)
        message = f"shard b: the cloud does not serve {GOALS}"
        assert (condition["reason"], condition["message"]) == ("NotServed", message)
        fleet["b"].serve(crd(GROUP, plural="goals", filtered="true"))
        fleet.agree()
        assert (resolved(fleet)["status"], fleet["b"].specs()) == ("True", {"robot-rb/dock": NEW})


def test_F8_2_a_rollout_begins_no_robot_whose_shard_does_not_serve_a_kind() -> None:
    with sharded(start=False) as fleet:
        fleet.world.unplace()
        fleet.world.place("p", **ROLLOUT)
        fleet["b"].cloud.annotate_kind({SOURCE: "robot"})
        fleet.world.start("a")
        fleet.world.pass_time(300)
        assert fleet["c"].specs() == {"robot-rc/dock": OLD}
        assert fleet.world.specs() == {"robot-r0/dock": OLD}
        assert fleet.world.decided()["rb"] == "Waiting"
        fleet["b"].cloud.annotate_kind({SOURCE: "cloud"})
        fleet.agree()
        assert fleet["b"].specs() == {"robot-rb/dock": OLD}


def test_F2_3_a_kind_of_no_robot_there_is_no_fault_of_a_shard() -> None:
    with sharded() as fleet:
        fleet.world.place("q", robotSelectors=[], robotNames=["rc"])
        fleet["b"].cloud.annotate_kind({SOURCE: "robot"})
        fleet.world.settle()
        assert fleet.world.condition("Resolved") == ("False", "NotPlaceable")
        assert fleet.world.condition("Resolved", "q") == ("True", "Resolved")


@pytest.mark.parametrize("spec", [{"templates": [TEMPLATE]}, {"mode": "Shared"}], ids=["Replica", "Shared"])
@pytest.mark.parametrize("restarts", [False, True])
def test_F2_3_F1_1_sources_that_are_unseen_while_the_root_marks_their_kind_otherwise_remove_nothing(
    spec: Any, restarts: bool
) -> None:
    with sharded(filtered=None if "mode" in spec else "true", **spec) as fleet:
        there, began = fleet["b"].specs(), fleet.world.clock.now
        assert there
        fleet.world.cloud.annotate_kind({SOURCE: "robot"})
        fleet.world.settle()
        if restarts:
            fleet.world.kill()
            fleet.world.start()
        fleet.world.pass_time(200)
        assert fleet.world.condition("Resolved") == ("False", "NotPlaceable")
        assert (fleet["b"].specs(), fleet.world.holds()) == (there, {})
        fleet.world.cloud.annotate_kind({SOURCE: "cloud"})
        fleet.agree()
        assert (fleet["b"].specs(), fleet["b"].verbs(began)) == (there, [])
