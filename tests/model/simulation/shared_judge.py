"""What the judge says of objects in Shared mode, and of the statuses that a robot returns of them (F10.3)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crsyncer.core.content.annotations import ROBOT_LABEL, SHARED
from crsyncer.core.model import Json
from tests.model.simulation.storage import Storage

if TYPE_CHECKING:
    from tests.model.simulation.world import Write

OWN_STATUSES = "robotobjectstatuses.fleet.crsyncer.cloudrobotics.com"


def shown_status(original: Json, storage: Storage, robot: str) -> Any:
    """The status that an original shows, or the robot's own object in its stead."""
    if SHARED not in (original["metadata"].get("annotations") or {}):
        return original.get("status")
    uid, objects = original["metadata"]["uid"], storage.of(OWN_STATUSES).values()
    own = (each for each in objects if each["metadata"]["labels"][ROBOT_LABEL] == robot)
    return next((each["spec"].get("returned") for each in own if each["spec"]["source"]["uid"] == uid), None)


def about(write: "Write") -> str:
    """The uid of the original whose status the agent has written to its own object; empty: it has written none."""
    return "" if write.after is None else str(write.after["spec"]["source"]["uid"])


def objection(write: "Write", robot: str, reports: Iterable[Any]) -> str:
    """What is wrong with a write of the robot's own objects; `reports` are the statuses that its copies had."""
    raw = write.after or write.before or {}
    if raw["metadata"]["labels"].get(ROBOT_LABEL) != robot:
        return "it is another robot's"
    if write.verb == "create" and write.before is not None:
        return "there was one"
    status = None if write.after is None else write.after["spec"].get("returned")
    had = not status or any(all(each.get(key) == value for key, value in status.items()) for each in reports)
    return "" if had else f"no copy of that object has ever had {status}"
