"""What a simulated fleet is made of: names, placements, CRDs, and the writes of controllers as they are noted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from crsyncer.cli.fleet.fleet_crds import SCHEMAS
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from crsyncer.errors import NotLeading
from crsyncer.fleet.domain.values import GROUP as FLEET
from tests.model.simulation.plane import GROUP

Result = TypeVar("Result")
HOME = "fleet"
"""The controller's namespace."""
INVENTORY_KIND = "robots.registry.cloudrobotics.com"
PLACEMENTS = f"robotplacements.{FLEET}"
DECISIONS = f"robotplacementdecisions.{FLEET}"
STRIPS = f"fieldstrips.{FLEET}"
PROPERTIES = "crsyncer-properties"
"""The namespace of the robots' properties."""
LEASES = "leases.coordination.k8s.io"


@dataclass(frozen=True, slots=True)
class Write:
    """A request of a controller that could change something, when it was carried out, and what it came to."""

    time: float
    process: str
    verb: str
    resource: str
    namespace: str
    name: str
    call: Call
    status: int
    """HTTP."""
    before: Json | None
    after: Json | None
    late: bool = False
    """Nobody waited for it any more."""

    def __str__(self) -> str:
        return (
            f"{self.time:.2f} {self.process}: {self.verb} {self.resource} {self.namespace}/{self.name} ({self.status})"
        )


def placing(*kinds: str, **entry: Any) -> Json:
    """The spec of a placement of all objects of these kinds for all robots."""
    chosen = {"selectors": [{}], **entry}
    return {"robotSelectors": [{}], "resources": [{"group": GROUP, "resource": kind, **chosen} for kind in kinds]}


def is_lease_lost(error: BaseException) -> bool:
    """Whether a controller has ended because it lost the Lease."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_lease_lost(each) for each in error.exceptions)
    return isinstance(error, NotLeading)


@cache
def fleet_crd(name: str) -> Json:
    """A CRD of the fleet, as `fleet crds` prints it."""
    found: Json = yaml.safe_load((Path(SCHEMAS) / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


async def called(act: Callable[[], Result]) -> Result:
    """The result of a call that is made while the loop runs."""
    return act()
