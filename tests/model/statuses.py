"""What tests of statuses share: an object with its copy, what was sent upstream, and what upstream shows of it."""

from typing import Any

from crsyncer.core.model import Json
from tests.model.journal import Request
from tests.model.scene import original, roles
from tests.model.world import World


def sent(world: World, source: str = "cloud", *, since: float = 0.0) -> list[Request]:
    """The writes of statuses upstream."""
    return [r for r in world.journal.asked(source, kind="goals", since=since) if r.call.method in ("PATCH", "PUT")]


def copied(world: World, source: str = "cloud", **fields: Any) -> None:
    """The agent runs, and has made the copy of a."""
    up, _ = roles(world, source)
    world.start()
    up.create("a", spec={"x": 1}, **fields)
    world.settle()


def observed(world: World, value: Any) -> Any:
    """What upstream shows when downstream's controller reports this observedGeneration."""
    note = world.clock.now
    world.robot.set_status("a", {"observedGeneration": value, "note": note})
    world.settle()
    assert original(world)["status"]["note"] == note
    return original(world)["status"]["observedGeneration"]


def generation(obj: Json) -> int:
    """An object's generation."""
    return int(obj["metadata"]["generation"])
