"""A transcript of an API server's answers, in which only what matters is left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crsyncer.core.model import Json
from crsyncer.ports import Reply


@dataclass(frozen=True, slots=True)
class _Version:
    """A resourceVersion, of which only the order means something."""

    number: int


@dataclass(slots=True)
class Transcript:
    """What was answered, in order."""

    lines: list[tuple[str, Any]] = field(default_factory=list)
    _uids: dict[str, str] = field(default_factory=dict)

    def note(self, what: str, reply: Reply) -> Reply:
        """Write an answer down."""
        body = reply.body
        told: dict[str, Any] = {"status": reply.status}
        if not body:
            told["body"] = "text"
        elif body.get("kind") == "Status":
            told |= {"reason": body.get("reason"), "causes": bool((body.get("details") or {}).get("causes"))}
        elif "items" in body:
            told["items"] = [self._object(item) for item in body["items"] or []]
            told["more"] = bool(body["metadata"].get("continue"))
        elif "metadata" in body:
            told["object"] = self._object(body)
        self.lines.append((what, told))
        return reply

    def event(self, kind: str, obj: Json) -> None:
        """Write a watch event down."""
        self.lines.append((f"watch: {kind}", self._object(obj)))

    def fact(self, what: str, value: Any) -> None:
        """Write anything else down."""
        self.lines.append((what, value))

    def told(self) -> list[tuple[str, Any]]:
        """The transcript, resourceVersions replaced by their rank."""
        numbers = sorted({number for _, value in self.lines for number in _numbers(value)})
        ranks = {number: f"r{rank}" for rank, number in enumerate(numbers, 1)}
        return [(what, _ranked(value, ranks)) for what, value in self.lines]

    def _object(self, obj: Json) -> Json:
        metadata = obj["metadata"]
        shown = {k: metadata.get(k) for k in ("name", "namespace", "labels", "annotations", "finalizers", "generation")}
        shown["uid"] = self._uids.setdefault(metadata["uid"], f"u{len(self._uids) + 1}")
        shown["version"] = _Version(int(metadata["resourceVersion"]))
        shown["dying"] = "deletionTimestamp" in metadata
        return shown | {k: obj[k] for k in ("kind", "spec", "status") if k in obj}


def _numbers(value: Any) -> list[int]:
    if isinstance(value, _Version):
        return [value.number]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for item in inner for number in _numbers(item)]


def _ranked(value: Any, ranks: Mapping[int, str]) -> Any:
    match value:
        case _Version(number=number):
            return ranks[number]
        case dict():
            return {k: _ranked(v, ranks) for k, v in value.items()}
        case list():
            return [_ranked(v, ranks) for v in value]
    return value
