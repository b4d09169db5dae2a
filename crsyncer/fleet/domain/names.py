"""The marks by which replicas are known (F3.2)."""

import json
from collections.abc import Hashable
from functools import lru_cache
from sys import intern
from typing import TypeVar, cast

from crsyncer.core.accounts.robot_account import is_robot_name as is_robot_name
from crsyncer.core.accounts.robot_account import robot_namespace as robot_namespace
from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import digest
from crsyncer.core.content.replica_mark import REPLICA as REPLICA
from crsyncer.core.content.replica_mark import SOURCE as SOURCE
from crsyncer.core.content.replica_mark import annotation_content, raw_marks
from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import Marks, SourceKey

_SOURCES = 1 << 10
"""Of so many sources what is the same in the marks of all robots' replicas is made and read once."""


T = TypeVar("T", bound=Hashable)


def shared(value: T) -> T:
    """The same value: thousands of replicas have an equal one, and it is in memory once."""
    return cast("T", _first(value))


@lru_cache(maxsize=1 << 11, typed=True)
def _first(value: Hashable) -> Hashable:
    return value


@lru_cache(maxsize=1 << 16)
def source_id(key: SourceKey) -> str:
    """The SOURCEID: equal for a source that was made anew under its name, so that it is a change."""
    place = [key.namespace, key.placement] if key.placement else [key.namespace]
    return digest([key.resource, *place, key.name])


def mark_texts(marks: Marks, robot: str) -> tuple[dict[str, str], dict[str, str]]:
    """The labels and annotations by which a replica is known, its robot's among them; "": it is for all robots."""
    return {SOURCE: marks.source_id, **({ROBOT_LABEL: robot} if robot else {})}, {REPLICA: _annotation(marks)}


@lru_cache(maxsize=_SOURCES)
def _annotation(marks: Marks) -> str:
    content = {
        "stamp": marks.stamp,
        "n": marks.number,
        "source": marks.source,
        "placement": marks.placement,
        "labels": list(marks.labels),
        "annotations": list(marks.annotations),
    }
    return json.dumps(content, separators=(",", ":"), sort_keys=True)


def read_marks(raw: Json) -> Marks | None:
    """What the marks of an object say; None where it has not both of them, or they are not sound."""
    found = raw_marks(raw)
    return None if found is None else _marks(*found)


@lru_cache(maxsize=_SOURCES)
def _marks(identity: str, text: str) -> Marks | None:
    """Marks are read once, and in memory once, for all robots' replicas of a source that were written as often."""
    content = annotation_content(text)
    if content is None:
        return None
    try:
        return Marks(
            source_id=intern(identity),
            stamp=intern(content["stamp"]),
            number=content["n"],
            source=intern(content["source"]),
            placement=intern(content["placement"]),
            labels=tuple(intern(str(key)) for key in content["labels"]),
            annotations=tuple(intern(str(key)) for key in content["annotations"]),
        )
    except (KeyError, TypeError):
        return None
