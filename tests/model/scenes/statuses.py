"""What tests of statuses share: what was sent upstream, and what upstream shows of it."""

from typing import Any

from crsyncer.core.model import Json
from tests.model.simulation.journal import Request
from tests.model.simulation.scene import original
from tests.model.simulation.world import World


def sent(world: World, source: str = "cloud", *, since: float = 0.0) -> list[Request]:
    """The writes of statuses upstream."""
    return [r for r in world.journal.asked(source, kind="goals", since=since) if r.call.method in ("PATCH", "PUT")]


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
