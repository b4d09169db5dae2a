"""C6.5: the rights that blocking deletion takes in the cloud, and what confines them."""

import pytest

from crsyncer.console.confinement.manifests import Plan, Profile, manifests, rules, unconfined
from crsyncer.core.accounts.access import needs, needs_text
from crsyncer.core.accounts.forbidden_acts import forbidden_acts
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.sync_policy import read_sync_policy
from crsyncer.core.model import Json, Side
from tests.core.builders import policy
from tests.core.sync_policies import MINIMAL, edited


def blocking(upstream: Side = Side.CLOUD, **changes) -> KindPolicy:
    """A kind whose deletion is blocking."""
    found = read_sync_policy(edited(MINIMAL, "spec", "deletion", value={"mode": "blocking"}))
    return policy(upstream, **{"sync_policy": found, **changes})


def printed(kind: KindPolicy) -> Json:
    """The admission policy of a kind."""
    found = [each.content for each in manifests(Plan(("r1",), (kind,)))]
    return next(each["spec"] for each in found if each["metadata"]["name"].startswith("crsyncer-robot-writes."))


@pytest.mark.parametrize("profile", Profile)
def test_C6_5_blocking_takes_the_verb_patch_of_the_objects_in_the_cloud(profile):
    own, status = rules(blocking(), profile)
    assert own["verbs"] == ["list", "watch", "patch"]
    assert status["verbs"] == rules(policy(), profile)[1]["verbs"]
    [bare] = rules(blocking(status=False), profile)
    assert sorted(bare["verbs"]) == ["list", "patch", "update", "watch"]
    assert rules(blocking(Side.ROBOT), profile) == rules(policy(Side.ROBOT), profile)


def test_C6_5_the_agent_needs_it_on_the_side_that_is_upstream():
    assert needs_text(needs(blocking(), Side.CLOUD)) == "list, watch, patch goals; patch or update goals/status"
    assert (
        needs_text(needs(blocking(Side.ROBOT), Side.ROBOT)) == "list, watch, patch goals; patch or update goals/status"
    )
    for kind, side in ((blocking(), Side.ROBOT), (blocking(Side.ROBOT), Side.CLOUD)):
        assert needs(kind, side) == needs(policy(kind.upstream), side)


@pytest.mark.parametrize("status", [True, False])
def test_C6_5_the_patch_is_no_forbidden_act_and_update_and_others_stay_forbidden(status):
    def forbidden(kind: KindPolicy) -> set[tuple[str, str]]:
        found = forbidden_acts([kind], robot="r1", namespaces=["default"])
        return {(each.act.verb, each.act.resource) for each in found}

    assert forbidden(policy(status=status)) - forbidden(blocking(status=status)) == {("patch", "goals")}


def test_C6_5_an_admission_policy_confines_the_patch_to_the_robots_finalizer():
    spec = printed(blocking(filtered=True))
    variables = {each["name"]: each["expression"] for each in spec["variables"]}
    assert variables["mine"] == '"crsyncer.cloudrobotics.com/robot-" + variables.robot'
    assert "filter(f, f != variables.mine)" in variables["isFinalizer"]
    allowed, own = (each["expression"] for each in spec["validations"][1:3])
    assert allowed.endswith("|| variables.isFinalizer")
    assert own.endswith("|| (variables.isFinalizer && !(variables.mine in variables.newFinalizers))")
    assert "isFinalizer" not in str(printed(policy(filtered=True)))
    assert "isFinalizer" in str(printed(blocking()))


def test_C6_5_in_the_shared_profile_the_command_says_what_patches_tell():
    plan = Plan(("r1",), (blocking(filtered=True), blocking(Side.ROBOT)), profile=Profile.SHARED)
    assert len([each for each in unconfined(plan) if "deletion is blocking" in each]) == 1
