"""What expressions of the fleet may use: the source, what the robot returned, the robot, the delivery (F7.1).

A status is never kept parsed. Where an expression needs it again without an event of the replica, its compressed text
is kept: 0.5 KB of 2 KB (m). For all other replicas nothing is kept, and their statuses are read again after an edit.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from crsyncer.core.content.object_content import is_deeper_than, json_size
from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import MOST_LEVELS, PlacedKind, Robot, Source

OBJ, RETURNED, INVENTORY, PROPAGATION = "obj", "returned", "inventory", "propagation"
VARIABLES: Mapping[str, type] = MappingProxyType(dict.fromkeys((OBJ, RETURNED, INVENTORY, PROPAGATION), object))
FIXED = ("inventory.name",)
"""Fields that never change: to show the name of the robot is no reason to keep its status."""
MOST_STATUS_BYTES = 256 << 10
"""Of a status that expressions see. One that is larger is an error: the 10,000 iterations of an expression bound its
time only together with the size of what it looks at.
"""


@dataclass(frozen=True, slots=True)
class Returned:
    """What expressions need of a replica. `problem`: why its status cannot be used; empty: it can."""

    status: Json = field(default_factory=dict)
    generation: int = 0
    """metadata.generation of the replica, which a status's observedGeneration means (F7.1)."""
    updated: str | None = None
    """When its status was written last, in RFC 3339; None: not known."""
    problem: str = ""


def returned_of(raw: Json) -> Returned:
    """What expressions need of a replica."""
    metadata, status = raw["metadata"], raw.get("status")
    generation = metadata.get("generation") or 0
    if not isinstance(status, dict):
        return Returned(generation=generation, updated=_updated(metadata))
    try:
        size = json_size(status)
    except RecursionError:
        return Returned(generation=generation, problem="the status is nested too deeply")
    if size > MOST_STATUS_BYTES:
        return Returned(generation=generation, problem=f"the status has {size} bytes; allowed: {MOST_STATUS_BYTES}")
    return Returned(status, generation, _updated(metadata))


def _updated(metadata: Json) -> str | None:
    """The latest time at which somebody wrote the status, as managedFields say."""
    fields = metadata.get("managedFields")
    entries = [each for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []
    times = [each.get("time") for each in entries if each.get("subresource") == "status"]
    return max((each for each in times if isinstance(each, str)), default=None)


def packed(returned: Returned) -> bytes:
    """The same in few bytes."""
    content = [returned.status, returned.generation, returned.updated, returned.problem]
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)


def unpacked(kept: bytes) -> Returned:
    """What was packed."""
    return Returned(*json.loads(zlib.decompress(kept)))


def source_object(source: Source, kind: PlacedKind) -> Json:
    """`obj`: the source without its resourceVersion. Of a Secret, no value is in it (F2.3).

    Of one that cannot be rendered, since it is nested too deeply, only the name is.
    """
    key, body = source.key, source.body
    named = {"name": key.name, "namespace": key.namespace}
    top = {"apiVersion": kind.api_version, "kind": kind.kind}
    if is_deeper_than(body, MOST_LEVELS) or not isinstance(body["metadata"], dict):
        return top | {"metadata": named}
    metadata = {name: value for name, value in body["metadata"].items() if name != "resourceVersion"}
    if kind.sensitive:
        return top | {"type": body.get("type"), "metadata": {"labels": metadata.get("labels") or {}} | named}
    return top | body | {"metadata": metadata | named}


def inventory(robot: Robot, properties: Mapping[str, str], *, online: bool) -> Json:
    """`inventory`: the robot."""
    return {
        "name": robot.name,
        "labels": dict(robot.labels),
        "annotations": dict(robot.annotations),
        "properties": dict(properties),
        "online": online,
    }


def propagation(returned: Returned, *, acked: bool) -> Json:
    """`propagation`: how far what was written has come, and what came back."""
    return {"acked": acked, "generation": returned.generation, "lastReturnedUpdateTimestamp": returned.updated}
