"""What a replica must contain: a pure function of source, placement, strips, robot and properties (F4)."""

import math
import re
from collections.abc import Sequence
from typing import Any, assert_never

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL, SHARED
from crsyncer.core.content.object_content import (
    content_of,
    digest,
    has_sound_texts,
    is_deeper_than,
    json_size,
    synced_annotations,
    synced_labels,
)
from crsyncer.core.content.pointer import Pointer, changed, parse
from crsyncer.core.content.steps import Remove, Set
from crsyncer.core.model import Json
from crsyncer.fleet.domain.properties import Properties, Undefined, Verbatim, expanded, properties
from crsyncer.fleet.domain.values import (
    MOST_LEVELS,
    MOST_RENDERED_BYTES,
    F,
    OverrideStep,
    Placement,
    Property,
    Reason,
    RenderFailed,
    Rendering,
    Robot,
    Source,
)

UNSHOWN = "the message is not shown, for it may quote a Secret"
"""For a rendering of a Secret that fails (F2.3)."""
Strips = Sequence[Pointer]
"""The paths that FieldStrips of a kind remove."""
_RESERVED = (F, OURS)
_INTEGER = re.compile("-?[0-9]{1,19}")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def render(
    source: Source, placement: Placement, strips: Strips, *, robot: Robot, config_map: Properties
) -> Rendering | RenderFailed:
    """The replica of a source for a robot, in the order of F4. A failure leaves the replica as it is."""
    if is_deeper_than(source.body, MOST_LEVELS):
        return RenderFailed(Reason.RENDER_FAILED, f"it is nested more than {MOST_LEVELS} levels deep")
    if not isinstance(source.body["metadata"], dict) or not has_sound_texts(source.body):
        return RenderFailed(Reason.RENDER_FAILED, "its labels or annotations are not texts")
    known = properties(robot, config_map)
    made = _travelling(source.body)
    try:
        for pointer in strips:
            made = changed(made, pointer, lambda _: None, create=False)
        for override in placement.overrides:
            if override.selector.matches(robot.labels):
                for step in override.steps:
                    made = _applied(step, made, known)
        if placement.expand:
            made = expanded(made, known)
        if placement.shared:
            made = changed(made, ("metadata", "annotations", SHARED), lambda _: placement.uid, create=True)
    except ValueError as error:
        return RenderFailed(Reason.RENDER_FAILED, str(error))
    return _rendering(made)


def _rendering(made: Json) -> Rendering | RenderFailed:
    metadata = made.get("metadata") or {}
    content = content_of(made)
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    wrong = [name for texts in (labels, annotations) for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        return RenderFailed(Reason.RENDER_FAILED, f"the value of the label or annotation {wrong[0]} is no text")
    whole = [content, labels, annotations]
    if json_size(whole) > MOST_RENDERED_BYTES:
        return RenderFailed(Reason.TOO_LARGE, f"the rendering is above {MOST_RENDERED_BYTES >> 10} KiB")
    return Rendering(content, labels, annotations, digest(whole))


def _travelling(body: Json) -> Json:
    """What travels of a source (S3.1, S3.3, C2.1), without the controller's own keys (F4.1)."""
    metadata = {
        name: {key: text for key, text in texts.items() if not key.startswith(F) and key != ROBOT_LABEL}
        for name, texts in (("labels", synced_labels(body)), ("annotations", synced_annotations(body)))
    }
    return content_of(body) | {"metadata": metadata}


def reserved(pointer: Pointer) -> str:
    """Why no override may change what is at a path (F4.3); empty: it may."""
    if pointer[:1] == ("metadata",):
        key = pointer[2] if len(pointer) > 2 else ""
        if key == ROBOT_LABEL or key.startswith(_RESERVED) or not key:
            return "the robot's label, and keys of the controller and of the agents, are not to be changed"
    return ""


def _applied(step: OverrideStep, made: Json, known: Properties) -> Json:
    pointer = parse(step.path)
    try:
        if problem := reserved(pointer):
            raise ValueError(problem)
        value = _value(step, known)
        new: Json = changed(made, pointer, lambda _: value, create=not isinstance(step.verb, Remove))
    except ValueError as error:
        raise ValueError(f"{step.place}, {step.path}: {error}") from None
    return new


def _value(step: OverrideStep, known: Properties) -> Any:
    """What a step puts there; None removes. Raises ValueError."""
    match step.verb:
        case Set(value):
            return value
        case Remove():
            return None
        case Property(name, kind):
            if name not in known:
                raise Undefined(f"there is no property {name}")
            return _typed(known[name], name, kind)
        case _:
            assert_never(step.verb)


def _typed(text: str, name: str, kind: str) -> Any:
    try:
        match kind:
            case "integer":
                if not _INTEGER.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
                    raise ValueError
                return int(text)
            case "number":
                value = float(text)
                if not _NUMBER.fullmatch(text) or math.isinf(value):
                    raise ValueError
                return int(value) if value.is_integer() and abs(value) < 2**53 else value
            case "boolean":
                return {"true": True, "false": False}[text]
        return Verbatim(text)
    except (ValueError, KeyError):
        raise ValueError(f"the property {name} is no {kind}") from None
