"""The marks by which a replica of the fleet is known, as the robot's agent reads them, too (F3.1, F3.2)."""

import hashlib
import json
import re
from sys import intern

from crsyncer.core.content.annotations import OURS
from crsyncer.core.content.object_content import labels
from crsyncer.core.model import Json, ReplicaMark

SOURCE = OURS + "source"
"""The label with the SOURCEID."""
REPLICA = OURS + "replica"
"""The annotation with what the controller remembers of a replica."""
_LONGEST_NAME = 253
_LONGEST_UID = 63
_DIGITS = 8
_SOURCE_ID = re.compile("[0-9a-f]{24}")


def name_for_robot(name: str, robot: str) -> str:
    """What an object of this name is called for a robot, where it is beside those of others."""
    whole = f"{name}-{robot}"
    if len(whole) <= _LONGEST_NAME:
        return whole
    cut = name[: _LONGEST_NAME - 2 - _DIGITS - len(robot)].rstrip("-.")
    return f"{cut}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}-{robot}"


def raw_marks(raw: Json) -> tuple[str, str] | None:
    """The SOURCEID and the annotation of a replica, as they are; None where the object has not both marks."""
    text, source_id = (raw["metadata"].get("annotations") or {}).get(REPLICA), labels(raw).get(SOURCE, "")
    return (source_id, text) if text and _SOURCE_ID.fullmatch(source_id) else None


def replica_annotation(raw: Json) -> Json | None:
    """What the annotation of a replica says; None where the object has not both marks, or they are not sound."""
    marks = raw_marks(raw)
    return None if marks is None else annotation_content(marks[1])


def annotation_content(text: str) -> Json | None:
    """What the text of the annotation says; None where it is not sound."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    sound = isinstance(content, dict) and type(content.get("n")) is int
    return content if sound and all(isinstance(content.get(key), str) for key in _TEXTS) else None


_TEXTS = ("stamp", "source", "placement")


def read_replica_mark(raw: Json, robot: str) -> ReplicaMark | None:
    """What the marks say that an agent reports; None where the object is no replica for its robot.

    A copy of a replica's manifest under another name has the marks as well, and is nobody's replica.
    """
    content = replica_annotation(raw)
    if content is None or len(content["placement"]) > _LONGEST_UID:
        return None
    metadata, name = raw["metadata"], content["source"].rpartition("/")[2]
    own = metadata.get("namespace") == f"robot-{robot}" and metadata["name"] == name
    if not own and metadata["name"] != name_for_robot(name, robot):
        return None
    return ReplicaMark(intern(content["placement"]), content["n"])
