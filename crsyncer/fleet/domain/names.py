"""How replicas are called, and the marks by which they are known (F3.1, F3.2)."""

import hashlib
import json
import re
from functools import lru_cache
from sys import intern

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import Marks, SourceKey, Target

SOURCE = OURS + "source"
"""The label with the SOURCEID."""
REPLICA = OURS + "replica"
"""The annotation with what the controller remembers of a replica."""
LONGEST_ROBOT = 57
LONGEST_NAME = 253
_ROBOT = re.compile(r"[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?")
_DIGITS = 8
_SOURCE_ID = re.compile("[0-9a-f]{24}")


def is_robot_name(name: str) -> bool:
    """Whether a robot may be called so: a DNS label of at most 57 characters."""
    return _ROBOT.fullmatch(name) is not None


def robot_namespace(robot: str) -> str:
    """The namespace of a robot in the cloud."""
    return f"robot-{robot}"


@lru_cache(maxsize=1 << 16)
def source_id(key: SourceKey) -> str:
    """The SOURCEID: equal for a source that was made anew under its name, so that it is a change."""
    place = [key.namespace, key.placement] if key.placement else [key.namespace]
    return digest([key.resource, *place, key.name])


def replica_name(key: SourceKey, robot: str, target: Target, *, namespaced: bool) -> tuple[str, str]:
    """Namespace and name of a replica; of a cluster-scoped kind the namespace is ""."""
    if target is Target.PER_ROBOT and namespaced:
        return robot_namespace(robot), key.name
    name = f"{key.name}-{robot}"
    if len(name) > LONGEST_NAME:
        cut = key.name[: LONGEST_NAME - 2 - _DIGITS - len(robot)].rstrip("-.")
        name = f"{cut}-{hashlib.sha256(key.name.encode()).hexdigest()[:_DIGITS]}-{robot}"
    return (key.namespace if namespaced else ""), name


def mark_texts(marks: Marks, robot: str) -> tuple[dict[str, str], dict[str, str]]:
    """The labels and annotations by which a replica is known, its robot's among them."""
    content = {
        "stamp": marks.stamp,
        "n": marks.number,
        "source": marks.source,
        "placement": marks.placement,
        "labels": list(marks.labels),
        "annotations": list(marks.annotations),
    }
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return {SOURCE: marks.source_id, ROBOT_LABEL: robot}, {REPLICA: text}


def read_marks(raw: Json) -> Marks | None:
    """What the marks of an object say; None where it has not both of them, or they are not sound."""
    metadata = raw["metadata"]
    found = (metadata.get("labels") or {}).get(SOURCE, "")
    text = (metadata.get("annotations") or {}).get(REPLICA, "")
    if not _SOURCE_ID.fullmatch(found) or not text:
        return None
    try:
        content = json.loads(text)
        return Marks(
            source_id=intern(found),
            stamp=intern(str(content["stamp"])),
            number=int(content["n"]),
            source=intern(str(content["source"])),
            placement=intern(str(content["placement"])),
            labels=tuple(intern(str(key)) for key in content["labels"]),
            annotations=tuple(intern(str(key)) for key in content["annotations"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def named_by_marks(raw: Json, resource: str, marks: Marks, robot: str) -> bool:
    """Whether an object has the name that F3.1 makes of its marks, for one of the targets."""
    metadata = raw["metadata"]
    own = (metadata.get("namespace") or "", metadata["name"])
    return any(
        own == replica_name(key, robot, target, namespaced=bool(own[0]))
        for key, target in _keys(resource, marks, own[0])
    )


def _keys(resource: str, marks: Marks, namespace: str) -> list[tuple[SourceKey, Target]]:
    """The sources, with targets, that marks may mean: NAMESPACE/NAME of an object, or PLACEMENT/NAME of a template."""
    first, _, name = marks.source.rpartition("/")
    keys = [SourceKey(resource, first, name)]
    found = [(key, target) for key in keys for target in Target if source_id(key) == marks.source_id]
    if found or not first:
        return found
    # A template's namespace is its placement's. Only a replica beside it shows which one that is.
    beside = SourceKey(resource, namespace, name, first)
    is_beside = not namespace or source_id(beside) == marks.source_id
    return [(beside, Target.PER_ROBOT), *([(beside, Target.SAME)] if is_beside else [])]
