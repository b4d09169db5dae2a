"""The properties of a robot, and the texts that use them: `{{ .ident | default "text" }}` (F4.4)."""

import re
from collections.abc import Mapping
from typing import Any

from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import Robot

ROBOT_NAME = "robotName"
"""Fixed: nothing else can have this name."""
MOST_BYTES = 64 << 10
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(
    r"""\{\{ \s* (?: (?P<braces>"\{\{") | \.(?P<name>[A-Za-z_][A-Za-z0-9_]*)
        (?: \s* \| \s* default \s+ "(?P<default>(?:[^"\\]|\\.)*)" )? ) \s* \}\}""",
    re.VERBOSE,
)
_OPEN = "{{"
_SHOWN = 40

Properties = Mapping[str, str]


class Undefined(ValueError):
    """A text cannot be expanded. The message says why."""


def config_map_properties(raw: Json) -> dict[str, str]:
    """The properties in a ConfigMap. Raises Undefined where they are too large."""
    data = raw.get("data") or {}
    if sum(len(name.encode()) + len(str(text).encode()) for name, text in data.items()) > MOST_BYTES:
        raise Undefined(f"ConfigMap {raw['metadata']['name']}: properties above {MOST_BYTES >> 10} KiB")
    return _identifiers(data)


def properties(robot: Robot, config_map: Properties) -> dict[str, str]:
    """All properties of a robot: of its ConfigMap, then its annotations, its labels, the strings of its spec."""
    found = {
        name: text for source in reversed(_sources(robot, config_map)) for name, text in _identifiers(source).items()
    }
    return found | {ROBOT_NAME: robot.name}


def property_of(robot: Robot, config_map: Properties, name: str) -> str | None:
    """The property of this name, which is an identifier; None: the robot has none."""
    if name == ROBOT_NAME:
        return robot.name
    return next((text for source in _sources(robot, config_map) if isinstance(text := source.get(name), str)), None)


def _sources(robot: Robot, config_map: Properties) -> tuple[Properties, ...]:
    """Where properties come from; the first wins."""
    return config_map, robot.annotations, robot.labels, robot.fields


def _identifiers(texts: Mapping[str, Any]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if _IDENTIFIER.fullmatch(name) and isinstance(text, str)}


class Verbatim(str):
    """A text that came from a property, and is not expanded: else an annotation could read the ConfigMap."""

    __slots__ = ()


def expanded(value: Any, known: Properties) -> Any:
    """A value with each string in it expanded; keys never are. Raises Undefined."""
    match value:
        case Verbatim():
            return value
        case str():
            return expand(value, known) if _OPEN in value else value
        case dict():
            return {key: expanded(item, known) for key, item in value.items()}
        case list():
            return [expanded(item, known) for item in value]
    return value


def expand(text: str, known: Properties) -> str:
    """A text with its placeholders replaced. What a property says is not expanded again. Raises Undefined."""
    parts, end = [], 0
    while (start := text.find(_OPEN, end)) >= 0:
        match = _PLACE.match(text, start)
        if match is None:
            raise Undefined(f'"{text[start : start + _SHOWN]}" is no placeholder; write {{{{"{{{{"}}}} for braces')
        parts += [text[end:start], _value(match, known)]
        end = match.end()
    return "".join([*parts, text[end:]])


def _value(match: re.Match[str], known: Properties) -> str:
    if match["braces"] is not None:
        return _OPEN
    name, default = match["name"], match["default"]
    if name in known:
        return known[name]
    if default is None:
        raise Undefined(f"there is no property {name}")
    return re.sub(r"\\(.)", r"\1", default)
