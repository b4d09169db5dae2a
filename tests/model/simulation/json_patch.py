"""JSON Patch (RFC 6902), the operations that the agent and its users ask for."""

from typing import Any

from crsyncer.core.model import Json
from tests.model.simulation.storage import copied


class Conflict(Exception):
    """A test failed, or a path leads nowhere."""


def patched(document: Json, operations: list[Json]) -> Json:
    """The document after all operations; raises Conflict when one cannot be done."""
    result: Json = copied(document)
    for operation in operations:
        *path, last = [_part(part) for part in operation["path"].split("/")[1:]]
        parent: Any = result
        for part in path:
            parent = _child(parent, part)
        if operation["op"] == "add" and isinstance(parent, list) and last == "-":
            parent.append(copied(operation["value"]))
            continue
        if not isinstance(parent, dict) and _child(parent, last) is None:
            raise Conflict(operation["path"])
        place = last if isinstance(parent, dict) else int(last)
        match operation["op"]:
            case "test" if _child(parent, last) != operation["value"]:
                raise Conflict(operation["path"])
            case "test":
                continue
            case "remove" if _child(parent, last) is None:
                raise Conflict(operation["path"])
            case "remove":
                del parent[place]
            case _:
                parent[place] = copied(operation["value"])
    return result


def _child(parent: Any, part: str) -> Any:
    """What is at a field, or at the place of a list; None where nothing is."""
    if isinstance(parent, list):
        return parent[int(part)] if part.isdigit() and int(part) < len(parent) else None
    return parent.get(part) if isinstance(parent, dict) else None


def _part(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")
