"""C1.5 and C1.6: what is shown of SyncPolicies, and policies that come from the cloud."""

import math

import pytest

from crsyncer.core.content.annotations import FILTER, ORPHANS
from crsyncer.core.kinds.sync_policy import API_VERSION
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import SYNC_POLICIES, Call
from crsyncer.ports import Reply
from tests.model.scenes.policies import (
    EDGE,
    PLURAL,
    apply_policy,
    delete_policy,
    edit_policy,
    on_robot,
    policies,
    policy_rows,
    put_policy,
    ready,
    serve_policies,
    two_tiers,
    with_policy,
)
from tests.model.scenes.related import entry, part_entry, parts
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, NO_LISTS
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import restart
from tests.model.simulation.world import World

PARTS = f"parts.{GROUP}"
V9 = {"group": GROUP, "resource": "parts", "version": "v9"}


def test_C1_5_the_condition_shows_what_became_of_the_policy_and_is_written_when_it_changes() -> None:
    with with_policy() as world:
        others = {"type": "Reviewed", "status": "True", "reason": "ByHand", "message": "", "lastTransitionTime": "x"}
        body = [{"op": "add", "path": "/status", "value": {"conditions": [others], "more": 1}}]
        world.robot.server.answer(Call("patch", "PATCH", f"{SYNC_POLICIES.path}/p/status", body=body))
        world.begin()
        assert ready(world.robot) == ("True", "Active", "")
        status = policies(world.robot)["p"]["status"]
        assert (status["more"], status["conditions"][0]) == (1, others)
        restart(world, kill=True)
        world.pass_time(3600)
        assert len(world.journal.asked("robot", verb="status", kind=PLURAL)) == 1
        edit_policy(world, conflict="x")
        said = 'spec.conflict is "x"; allowed: upstream, keepLocal'
        assert ready(world.robot) == ("False", "Misconfigured", said)
        edit_policy(world, conflict="x", subtree="y")
        world.robot.annotate_kind({ORPHANS: "maybe"})
        world.settle()
        assert len(world.journal.asked("robot", verb="status", kind=PLURAL)) == 2
        edit_policy(world)
        assert ready(world.robot)[2].startswith(ORPHANS)
        world.robot.annotate_kind({ORPHANS: None})
        world.settle()
        assert ready(world.robot) == ("True", "Active", "")
        assert [each["type"] for each in policies(world.robot)["p"]["status"]["conditions"]] == ["Reviewed", "Ready"]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([entry(), entry(id="more", cleanup="keep")], "configmaps is not synced: spec.related of p differ in cleanup"),
        (
            [part_entry(resource=V9)],
            f'{PARTS} is not synced: spec.related of p has version "v9"; the robot does not serve',
        ),
    ],
)
def test_C1_5_a_policy_whose_related_objects_are_not_synced_says_so_while_its_own_are(
    entries: list[Json], said: str
) -> None:
    with parts(start=False) as world:
        world.cloud.create("g", spec={"maps": []})
        apply_policy(world.robot, related=entries)
        world.begin()
        state, message = policy_rows(world)["p"]
        assert (on_robot(world), state) == ({"g"}, "misconfigured")
        assert str(message).startswith(f"spec.related: {said}")
        assert ready(world.robot) == ("False", "Misconfigured", message)
        assert [each["code"] for each in world.status()["reasons"]] == ["Misconfigured"]
        edit_policy(world, related=[entry()])
        assert (policy_rows(world), ready(world.robot)) == ({"p": ("active", None)}, ("True", "Active", ""))


def test_C1_5_without_the_right_to_write_conditions_everything_else_works_and_it_is_not_tried_again() -> None:
    with with_policy() as world:
        world.inject("robot", FORBIDDEN, part=f"/{PLURAL}/p/status", times=math.inf)
        world.begin("a")
        for text in ("true", "false"):  # the kind is another one, and its policy has the same state
            world.robot.annotate_kind({FILTER: text})
            world.pass_time(1800)
        assert (on_robot(world), policy_rows(world)) == ({"a"}, {"p": ("active", None)})
        assert len(world.journal.asked("robot", verb="status", kind=PLURAL)) == 1
        assert world.status()["health"] == "healthy"


@pytest.mark.parametrize("answer", [INTERNAL_ERROR, *NO_LISTS])
def test_C1_5_a_condition_that_fails_for_a_while_is_written_in_the_end(answer: Reply) -> None:
    with with_policy() as world:
        world.inject("robot", answer, part=f"/{PLURAL}/p/status", times=5)
        world.begin(seconds=120)
        assert ready(world.robot) == ("True", "Active", "")


def test_C1_5_a_stopped_agent_shows_the_policies_as_they_were() -> None:
    with with_policy(filter=EDGE) as world:
        two_tiers(world)
        world.begin()
        explained = world.order("explain", resource="goals", name="other")
        steps = {step["rule"]: step["text"] for step in explained["steps"]}
        assert steps["C1.3"] == "SyncPolicy p is for the kind"
        assert "is selected by tier=edge" in steps["S2.1" if "S2.1" in steps else "S2.2"]
        delete_policy(world.robot)
        put_policy(world.robot, "q", {"resource": {"group": GROUP, "resource": "goals"}, "naming": {}})
        world.settle()
        explained = world.order("explain", resource="goals", name="other")
        assert explained["steps"][0]["rule"] == "C1.3"
        assert "spec.naming is empty" in explained["summary"]


def test_C1_6_policies_come_from_the_cloud_by_the_annotations_of_their_own_crd() -> None:
    with World(kinds={"goals": {"source": None}}) as world:
        serve_policies(world.cloud)
        serve_policies(world.robot, source="cloud", orphans="keep")
        apply_policy(world.cloud, specSource="cloud")
        put_policy(world.cloud, "own", {"resource": {"group": API_VERSION.partition("/")[0], "resource": PLURAL}})
        world.begin("a")
        assert set(policies(world.robot)) == {"p", "own"}
        assert (on_robot(world), ready(world.cloud)) == ({"a"}, ("True", "Active", ""))
        assert ready(world.cloud, "own")[:2] == ("False", "Misconfigured")
        delete_policy(world.cloud, "own")  # a policy about policies did not stop them
        world.settle()
        assert set(policies(world.robot)) == {"p"}
        assert world.troubles == []
