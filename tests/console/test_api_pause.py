"""`crsyncer api pause`: the SyncPolicy that has a CRD travel says that it pauses."""

import asyncio

import pytest

from crsyncer.console.operators.api_pause import pause
from crsyncer.core.content.object_content import UPSTREAM_UID
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import SYNC_POLICIES, Call
from crsyncer.errors import Conflict, SyncError
from crsyncer.ports import Reply


def policy(name: str, plural: str, *, group: str = "lab.example.com", api: bool = True, copy: bool = False) -> Json:
    spec = {"resource": {"group": group, "resource": plural}, **({"api": {"source": "cloud"}} if api else {})}
    annotations = {UPSTREAM_UID: "u"} if copy else {}
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "7", "annotations": annotations}, "spec": spec}


POLICIES = [
    policy("a", "goals"),
    policy("b", "tasks", api=False),
    policy("c", "maps"),
    policy("d", "maps", group="other.example.com"),
    policy("e", "jobs", copy=True),
    {"metadata": {"name": "f"}, "spec": {"resource": 7}},
]


class Robot:
    """Lists the policies, and answers a patch."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.patches: list[Call] = []

    async def send(self, call: Call) -> Reply:
        if call.verb == "list":
            return Reply(200, {"kind": "SyncPolicyList", "metadata": {"resourceVersion": "1"}, "items": POLICIES})
        self.patches.append(call)
        return Reply(self.status, {"kind": "Status", "message": "no"} if self.status >= 300 else {"metadata": {}})

    def pause(self, resource: str, *, paused: bool = True) -> Json:
        return asyncio.run(pause(self.send, resource, paused=paused))


@pytest.mark.parametrize("resource", ["goals", "goals.lab.example.com"])
@pytest.mark.parametrize("paused", [True, False])
def test_C8_4_the_policy_that_was_seen_is_changed_and_no_other(resource, paused):
    robot = Robot()
    assert robot.pause(resource, paused=paused) == {
        "resource": "goals.lab.example.com",
        "policy": "a",
        "paused": paused,
    }
    (patch,) = robot.patches
    assert patch.path == f"{SYNC_POLICIES.path}/a"
    guard = {"uid": "a", "resourceVersion": "7"}
    assert patch.body == {"metadata": guard, "spec": {"api": {"paused": paused}}}


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ("tasks", "no SyncPolicy has api for tasks"),
        ("maps", "several SyncPolicies have api for maps"),
        ("jobs", "SyncPolicy e is a copy"),
    ],
)
def test_C8_4_what_is_not_meant_clearly_is_refused(resource, said):
    robot = Robot()
    with pytest.raises(SyncError, match=said):
        robot.pause(resource)
    assert robot.patches == []
    assert robot.pause("maps.other.example.com")["policy"] == "d"


def test_a_policy_that_has_changed_meanwhile_is_not_changed():
    with pytest.raises(Conflict):
        Robot(409).pause("goals")
