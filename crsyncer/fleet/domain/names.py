"""How replicas are called, and the marks by which they are known (F3.1, F3.2)."""

import json
from functools import lru_cache
from sys import intern

from crsyncer.core.accounts.robot_account import is_robot_name as is_robot_name
from crsyncer.core.accounts.robot_account import robot_namespace as robot_namespace
from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import digest
from crsyncer.core.content.replica_mark import REPLICA as REPLICA
from crsyncer.core.content.replica_mark import SOURCE as SOURCE
from crsyncer.core.content.replica_mark import name_for_robot, replica_annotation
from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import Marks, SourceKey, Target


@lru_cache(maxsize=1 << 16)
def source_id(key: SourceKey) -> str:
    """The SOURCEID: equal for a source that was made anew under its name, so that it is a change."""
    place = [key.namespace, key.placement] if key.placement else [key.namespace]
    return digest([key.resource, *place, key.name])


def replica_name(key: SourceKey, robot: str, target: Target, *, namespaced: bool) -> tuple[str, str]:
    """Namespace and name of a replica; of a cluster-scoped kind the namespace is ""."""
    if target is Target.PER_ROBOT and namespaced:
        return robot_namespace(robot), key.name
    return (key.namespace if namespaced else ""), name_for_robot(key.name, robot)


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
    content = replica_annotation(raw)
    if content is None:
        return None
    try:
        return Marks(
            source_id=intern(raw["metadata"]["labels"][SOURCE]),
            stamp=intern(content["stamp"]),
            number=content["n"],
            source=intern(content["source"]),
            placement=intern(content["placement"]),
            labels=tuple(intern(str(key)) for key in content["labels"]),
            annotations=tuple(intern(str(key)) for key in content["annotations"]),
        )
    except (KeyError, TypeError):
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
