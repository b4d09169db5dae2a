"""Bad input on virtual time: one line says what and where, nothing is removed, and all others go on (section 7)."""

import pytest

from tests.fleet_model.asking import Asked
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.world_parts import STRIPS
from tests.model.simulation.plane import GROUP


def told(world: FleetWorld, name: str = "p") -> list[tuple[str, str, str]]:
    """The errors of a placement: robot, reason and the one line that says what is wrong."""
    found = [(each["robot"], each["reason"], each["message"]) for each in world.status(name)["errors"]]
    assert not any("\n" in message for _, _, message in found)
    return found


def test_7_of_500_errors_at_once_20_are_shown_and_all_are_counted_and_the_last_robot_goes_on() -> None:
    with fleet(robots=501, start=False) as world:
        world.set_properties("r501", site="north")
        world.cloud.set("dock", spec={"x": "{{ .site }}"})
        world.edit("p", expand=True)
        world.start()
        world.agree()
        status = world.status()
        assert (len(status["errors"]), status["errorCount"], status["counts"]["blocked"]) == (20, 500, 500)
        assert told(world)[0] == ("r1", "RenderFailed", "there is no property site")
        assert world.specs() == {"robot-r501/dock": {"x": "north"}}
        assert Asked(world).exit_code() == 12


def test_7_properties_above_64_KiB_block_their_robot_alone_which_keeps_its_last_good_content() -> None:
    with fleet(robots=3, start=False) as world:
        for name in ("r1", "r2", "r3"):
            world.set_properties(name, site=name)
        world.edit("p", overrides=[{"steps": [{"path": "/spec/site", "property": {"name": "site"}}]}])
        world.start()
        world.agree()
        world.set_properties("r2", site="new", note="x" * 65536)
        world.pass_time(1)
        world.cloud.set("dock", spec={"x": 2})
        world.settle()
        assert world.specs() == {
            "robot-r1/dock": {"x": 2, "site": "r1"},
            "robot-r2/dock": {"x": 1, "site": "r2"},
            "robot-r3/dock": {"x": 2, "site": "r3"},
        }
        assert told(world) == [("r2", "RenderFailed", "ConfigMap r2: properties above 64 KiB")]
        world.set_properties("r2", site="new")
        world.agree()
        assert (world.specs()["robot-r2/dock"], told(world)) == ({"x": 2, "site": "new"}, [])


def test_7_a_strip_of_everything_empties_replicas_and_removes_none() -> None:
    with fleet(robots=2) as world:
        uids = {place: raw["metadata"]["uid"] for place, raw in world.replicas().items()}
        world.strip("s", "/spec")
        world.agree()
        assert world.specs() == {"robot-r1/dock": None, "robot-r2/dock": None}
        world.cloud.delete("s", kind=STRIPS)
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1}, "robot-r2/dock": {"x": 1}}
        assert {place: raw["metadata"]["uid"] for place, raw in world.replicas().items()} == uids


def test_7_a_robot_that_is_renamed_or_made_again_later_is_a_new_one_and_disturbs_no_other() -> None:
    with fleet(robots=3) as world:
        uids = {place: raw["metadata"]["uid"] for place, raw in world.replicas().items()}
        world.lose_robots("r1", "r2")
        world.robots("renamed")
        world.pass_time(60)
        assert sorted(world.replicas()) == ["robot-r3/dock", "robot-renamed/dock"]
        world.robots("r1")
        world.agree()
        found = {place: raw["metadata"]["uid"] for place, raw in world.replicas().items()}
        assert sorted(found) == ["robot-r1/dock", "robot-r3/dock", "robot-renamed/dock"]
        assert found["robot-r3/dock"] == uids["robot-r3/dock"]
        assert found["robot-r1/dock"] != uids["robot-r1/dock"]
        assert world.decided() == dict.fromkeys(("r1", "r3", "renamed"), "Stamped")
        assert (told(world), world.holds()) == ([], {})


def test_7_a_placement_that_matches_nothing_has_nothing_and_says_so() -> None:
    with fleet(robots=1) as world:
        nobody = [{"matchLabels": {"site": "nowhere"}}]
        world.place("robotless", robotSelectors=nobody)
        world.place("sourceless", resources=[{"group": GROUP, "resource": "goals", "names": ["missing"]}])
        world.agree()
        counts = {name: world.status(name)["counts"] for name in ("robotless", "sourceless")}
        assert [counts["robotless"][each] for each in ("selected", "replicas")] == [0, 0]
        assert [counts["sourceless"][each] for each in ("selected", "replicas", "ready")] == [1, 0, 1]
        assert Asked(world).exit_code() == 0
        assert sorted(world.replicas()) == ["robot-r1/dock"]


def test_7_a_template_of_a_kind_that_is_not_annotated_is_told_and_its_placements_sources_go_on() -> None:
    with fleet(robots=1, kinds={"goals": {}, "plans": {"source": None}}) as world:
        template = {"name": "hall", "group": GROUP, "resource": "plans", "object": {"spec": {"x": 1}}}
        world.edit("p", templates=[template])
        world.cloud.set("dock", spec={"x": 2})
        world.agree()
        assert world.condition("Resolved") == ("False", "NotPlaceable")
        [message] = [each["message"] for each in world.status()["conditions"] if each["type"] == "Resolved"]
        assert message == (
            f"the CRD plans.{GROUP} says spec-source nothing, filter-by-robot-name true; needed: cloud, true"
        )
        assert (world.specs(), world.replicas("plans")) == ({"robot-r1/dock": {"x": 2}}, {})
        assert [world.status()["counts"][each] for each in ("selected", "replicas", "stamped")] == [1, 1, 1]
        assert Asked(world).exit_code() == 12


@pytest.mark.parametrize("restart", [False, True])
def test_F2_3_a_rollout_does_not_fail_for_a_template_whose_kind_may_not_be_placed(restart: bool) -> None:
    with fleet(robots=3, kinds={"goals": {}, "plans": {}}) as world:
        template = {"name": "hall", "group": GROUP, "resource": "plans", "object": {"spec": {"x": 1}}}
        rollout = {"maxConcurrency": 1, "minReadySeconds": 0, "progressDeadlineSeconds": 60}
        world.edit("p", templates=[template], readyWhen="true", rollout=rollout)
        world.agree()
        before = world.replicas("plans")
        assert len(before) == 3
        world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": "robot"}, kind="plans")
        world.establish("plans")
        if restart:
            world.kill()
            world.start()
        world.cloud.set("dock", spec={"x": 2})
        world.pass_time(600)
        assert world.condition("Resolved") == ("False", "NotPlaceable")
        assert [each["x"] for each in world.specs().values()] == [2, 2, 2]
        assert (world.replicas("plans"), world.holds()) == (before, {})
        assert [world.status()["counts"][each] for each in ("selected", "replicas", "ready")] == [3, 3, 3]
        world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": "cloud"}, kind="plans")
        world.establish("plans")
        world.agree()
        assert world.replicas("plans") == before
        assert world.status()["counts"]["replicas"] == 6
