"""JSON Patch (RFC 6902), the operations that the agent and its users ask for."""

from typing import Any

from crsyncer.core.model import Json
from tests.model.storage import copied


class Conflict(Exception):
    """A test failed, or a path leads nowhere."""


def patched(document: Json, operations: list[Json]) -> Json:
    """The document after all operations; raises Conflict when one cannot be done."""
    result: Json = copied(document)
    for operation in operations:
        *path, last = [_part(part) for part in operation["path"].split("/")[1:]]
        parent: Any = result
        for part in path:
            parent = parent.get(part) if isinstance(parent, dict) else None
        if not isinstance(parent, dict):
            raise Conflict(operation["path"])
        match operation["op"]:
            case "test" if parent.get(last) != operation["value"]:
                raise Conflict(operation["path"])
            case "test":
                continue
            case "remove" if last not in parent:
                raise Conflict(operation["path"])
            case "remove":
                del parent[last]
            case _:
                parent[last] = copied(operation["value"])
    return result


def _part(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")
