"""Hazards of writes that a server refuses: each is tried again, and never without a pause (S10)."""

import math
from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.life import ROBOT
from tests.model.scene import copy, original, scene, synced
from tests.model.weather import Rule
from tests.model.world import World

FORBIDDEN = Reply(403, {"message": "denied", "reason": "Forbidden"})


def made_again(world: World, side: str) -> Json:
    """Somebody deletes the copy and soon creates the same again, of which the watch tells late."""
    plane = world.planes[Side(side)]
    before = plane.objects()["a"]
    world.weather[Side(side)].lag = 19.0
    plane.delete("a")
    world.pass_time(0.2)  # the watch tells of the one before the other
    labels = {ROBOT_LABEL: ROBOT} if ROBOT_LABEL in (before["metadata"].get("labels") or {}) else {}
    return plane.create("a", spec={"x": 1}, annotations=before["metadata"]["annotations"], labels=labels)


@pytest.mark.parametrize(
    ("side", "kind", "most"),
    [("cloud", {"source": "robot"}, 20), ("robot", {}, 1), ("robot", {"filtered": "true"}, 1)],
)
def test_S10_a_create_of_what_the_watch_has_not_shown_yet_is_refused_and_backs_off(
    side: str, kind: dict[str, Any], most: int
) -> None:
    with scene(goals=kind) as world:
        world.start()
        upstream = world.planes[Side(side).other]
        upstream.create("a", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT} if kind.get("filtered") else {})
        world.settle()
        made = made_again(world, side)
        known = len(world.writes)
        world.pass_time(39)
        posts = [write for write in world.writes[known:] if write.call.method == "POST"]
        assert {write.status for write in posts} == {409}
        assert len(posts) <= most
        world.mend(side)
        world.settle()
        assert world.planes[Side(side)].objects()["a"]["metadata"]["uid"] == made["metadata"]["uid"]


def denied(world: World, methods: str, *, standing: bool = False) -> list[tuple[float, str]]:
    """When the cloud refused which status writes, from now on."""
    sent: list[tuple[float, str]] = []

    def matches(call: Call) -> bool:
        hit = call.method in methods.split() and call.path.endswith("/status")
        if hit:
            sent.append((world.clock.now, call.method))
        return hit

    world.weather[Side.CLOUD].add(Rule(matches, FORBIDDEN, math.inf, standing=standing))
    return sent


def test_S10_a_status_that_may_not_be_written_is_tried_at_most_six_times_in_the_first_minute() -> None:
    for seed in range(10):
        with synced(seed) as world:
            sent = denied(world, "PATCH PUT")
            world.robot.set_status("a", {"phase": "DONE"})
            world.pass_time(1)
            begun = sent[0][0]
            world.pass_time(begun + 60 - world.clock.now)
            assert len({round(at, 1) for at, _ in sent}) <= 6
            assert len(sent) <= 7  # a try is a PATCH and, once for the kind, the PUT instead
            world.mend("cloud")
            world.pass_time(75)  # the longest wait
            assert original(world)["status"] == {"phase": "DONE"}


@pytest.mark.parametrize("granted", ["PATCH", "PUT"])
def test_S4_2_whichever_right_is_granted_after_both_were_refused_is_used(granted: str) -> None:
    with synced() as world:
        denied(world, "PATCH PUT")
        world.robot.set_status("a", {"phase": "DONE"})
        world.pass_time(20)
        world.weather[Side.CLOUD].rules.clear()
        denied(world, "PUT" if granted == "PATCH" else "PATCH", standing=True)
        world.pass_time(180)
        assert original(world)["status"] == {"phase": "DONE"}
        assert copy(world)["status"] == {"phase": "DONE"}
