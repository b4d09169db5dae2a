"""The choice of a robot's shard is written where nobody else has made one, whatever else happens to the Robot."""

from collections.abc import Callable
from typing import Any

import pytest

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.door.assignment import Assignment, assign, unassigned
from crsyncer.errors import SyncError
from crsyncer.ports import Reply

ROBOTS = Collection("registry.cloudrobotics.com", "v1", "robots", "default")
CHOSEN = Assignment("r1", "b", "1")


class Root:
    """An API server that has Robots; `before` is done to it before each write."""

    def __init__(self, *names: str, before: Callable[["Root"], None] = lambda _: None) -> None:
        self.robots: dict[str, Json] = {}
        self.before = before
        for name in names:
            self.change(name)

    def change(self, name: str, **labels: str) -> None:
        """Another version of a Robot, with more labels."""
        old = self.robots.get(name, {"metadata": {"resourceVersion": "0"}})["metadata"]
        version = str(int(old["resourceVersion"]) + 1)
        labels = {**old.get("labels", {}), **labels}
        self.robots[name] = {"metadata": {"name": name, "uid": name, "resourceVersion": version, "labels": labels}}

    def shard(self, name: str) -> str | None:
        """What its label says."""
        found: str | None = self.robots[name]["metadata"]["labels"].get(SHARD_LABEL)
        return found

    async def send(self, call: Call) -> Reply:
        """Answer as an API server does."""
        if call.path == ROBOTS.path:
            metadata = {"resourceVersion": "9"}
            return Reply(200, {"kind": "RobotList", "metadata": metadata, "items": list(self.robots.values())})
        name = call.path.rpartition("/")[2]
        if call.method == "PATCH":
            self.before(self)
            wanted: Any = call.body["metadata"]
            if name in self.robots and self.robots[name]["metadata"]["resourceVersion"] != wanted["resourceVersion"]:
                return Reply(409, {"kind": "Status", "reason": "Conflict", "message": "it has changed"})
            if name in self.robots:
                self.change(name, **wanted["labels"])
        if name not in self.robots:
            details = {"name": name, "kind": "robots"}
            return Reply(404, {"kind": "Status", "reason": "NotFound", "details": details, "message": "not found"})
        return Reply(200, self.robots[name])


def changed(times: int) -> Callable[[Root], None]:
    """The status of r1 changes before so many writes."""
    left = [times]

    def change(root: Root) -> None:
        left[0] -= 1
        if left[0] >= 0:
            root.change("r1")

    return change


async def test_G7_4_robots_without_a_shard_get_one_each_and_unknown_ones_are_named():
    root = Root("r1", "r2", "a.b")
    root.change("r2", **{SHARD_LABEL: "b"})
    chosen = await unassigned(root.send, ROBOTS, (), ["b"])
    assert chosen == [Assignment("r1", "b", "1")]
    assert await assign(root.send, ROBOTS, chosen[0])
    assert root.shard("r1") == "b"
    with pytest.raises(SyncError, match="there is no robot r9"):
        await unassigned(root.send, ROBOTS, ("r1", "r9"), ["b"])


async def test_G7_4_a_robot_whose_status_changes_meanwhile_gets_its_shard():
    root = Root("r1", before=changed(3))
    assert await assign(root.send, ROBOTS, CHOSEN)
    assert root.shard("r1") == "b"


async def test_G7_4_a_shard_that_somebody_else_has_set_meanwhile_stays():
    root = Root("r1", before=lambda root: root.change("r1", **{SHARD_LABEL: "c"}))
    assert not await assign(root.send, ROBOTS, CHOSEN)
    assert root.shard("r1") == "c"


async def test_G7_4_a_robot_that_is_gone_meanwhile_gets_nothing():
    assert not await assign(Root().send, ROBOTS, CHOSEN)


async def test_a_robot_that_changes_all_the_time_is_told():
    root = Root("r1", before=lambda root: root.change("r1"))
    with pytest.raises(SyncError, match="robot r1: it changes all the time"):
        await assign(root.send, ROBOTS, CHOSEN)
    assert root.shard("r1") is None


@pytest.mark.parametrize(("status", "hint"), [(403, "the right to patch Robots"), (500, "repeat the command")])
async def test_a_refusal_names_the_robot_and_what_to_do(status: int, hint: str):
    async def refuse(_call: Call) -> Reply:
        return Reply(status, {"kind": "Status", "message": "no"})

    with pytest.raises(SyncError, match="robot r1: no") as caught:
        await assign(refuse, ROBOTS, CHOSEN)
    assert hint in caught.value.hint
