"""Who plays which part: the rules speak of upstream and downstream, the bed of cloud and robot."""

import json
from typing import Any

from tests.link.faults import Request
from tests.system.bed import Bed, SideBed

UID = "crsyncer.cloudrobotics.com/upstream-uid"


def roles(bed: Bed, source: str) -> tuple[SideBed, SideBed]:
    """Upstream and downstream of a kind whose spec comes from `source`."""
    return (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)


def status_writes(side: SideBed, name: str) -> list[Request]:
    """The requests through a side's link that wrote an object's status, or the object where that is one."""
    path = side.resource.path(namespace="default", name=name)
    return [r for r in side.link.requests if r.method in ("PATCH", "PUT") and r.path in (path, f"{path}/status")]


def decoded(request: Request) -> Any:
    """What was sent."""
    return json.loads(request.body)
