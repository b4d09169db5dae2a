"""Templates: texts with placeholders, of which names and values of copies are made."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from crsyncer.core.content.pointer import EACH, LONGEST, PATH, Pointer, get, parse

NAMESPACE, NAME, ROBOT, CLUSTER, HASH = "namespace", "name", "robot", "cluster", "hash"
_WORDS = (NAMESPACE, NAME, ROBOT, CLUSTER, HASH)
_UPSTREAM = "the identity of the upstream cluster"
_NEEDS = {ROBOT: "the robot's name", CLUSTER: _UPSTREAM, HASH: _UPSTREAM}
"""Placeholders that may have no value, and what they lack then. Only a namespace may be empty."""
_PARTS = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]|[^{}]+")
_LARGEST_WHOLE = 2**63
LARGEST = 3 << 20
"""Characters of one result: API servers take no request of more bytes, and each of 32 steps could double a text."""
TOO_LARGE = "the result is larger than 3 MiB"


@dataclass(frozen=True, slots=True)
class Names:
    """What the placeholders mean for one object."""

    namespace: str
    name: str
    robot: str = ""
    """Empty: not known, as is `identity`."""
    identity: str = ""
    """Of the upstream cluster (S8.1)."""
    upstream: tuple[str, str] | None = None
    """Namespace and name upstream, of which `{hash}` is; None: as above."""

    @property
    def cluster(self) -> str:
        """A short name of the upstream cluster; empty where it is not known."""
        return _sha256(self.identity)[:16] if self.identity else ""

    @property
    def hash(self) -> str:
        """A short name of the object, of all that upstream clusters have; empty where the cluster is not known."""
        namespace, name = self.upstream or (self.namespace, self.name)
        return _sha256(f"{self.identity}/{namespace}/{name}")[:10] if self.identity else ""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One of the words, or a path into the object."""

    text: str

    @property
    def pointer(self) -> Pointer:
        """The path's segments."""
        return parse(self.text)


@dataclass(frozen=True, slots=True)
class Template:
    """A text in parts: plain ones and placeholders."""

    parts: tuple[str | Placeholder, ...]

    @property
    def placeholders(self) -> frozenset[str]:
        """Everything that stands in braces."""
        return frozenset(part.text for part in self.parts if isinstance(part, Placeholder))

    @property
    def path_texts(self) -> list[str]:
        """The placeholders that are paths into the object."""
        return sorted(self.placeholders - set(_WORDS))

    @property
    def paths(self) -> list[Pointer]:
        """The same, as segments."""
        return [*map(parse, self.path_texts)]

    def render(self, names: Names, content: Any = None) -> str:
        """The text for one object. Raises ValueError for what is not known, or is no text, number or boolean."""
        texts = [part if isinstance(part, str) else _value(part, names, content) for part in self.parts]
        if sum(map(len, texts)) > LARGEST:  # before they are put together: one text may stand in it a hundred times
            raise ValueError(TOO_LARGE)
        return "".join(texts)


def read_template(text: str, *, paths: bool) -> Template:
    """The parts of a template; `paths`: it knows `{/path}`. Raises ValueError, which says what is allowed."""
    return Template(tuple(_read_part(part, paths=paths) for part in _PARTS.findall(text)))


def text_of(value: Any) -> str:
    """A text, number or boolean as a text. Equal numbers give equal texts. Raises ValueError for anything else."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            whole = value.is_integer() and abs(value) < _LARGEST_WHOLE
            return str(int(value)) if whole else repr(value)
        case None:
            raise ValueError("is absent")
        case _:
            raise ValueError("is neither a text nor a number nor a boolean")


def _read_part(part: str, *, paths: bool) -> str | Placeholder:
    if part in ("{{", "}}"):
        return part[0]
    if part in ("{", "}"):
        raise ValueError(f'has a single "{part}"; allowed: {{{{ and }}}} for braces')
    if not part.startswith("{"):
        return part
    text = part[1:-1]
    if text in _WORDS or (paths and _is_path(text)):
        return Placeholder(text)
    allowed = [f"{{{word}}}" for word in _WORDS] + ["{/path} to one value"] * paths
    raise ValueError(f"has {part}; allowed: {', '.join(allowed)}")


def _is_path(text: str) -> bool:
    return len(text) <= LONGEST and re.fullmatch(PATH, text) is not None and EACH not in parse(text)


def _value(part: Placeholder, names: Names, content: Any) -> str:
    if part.text not in _WORDS:
        try:
            return text_of(get(content, part.pointer))
        except ValueError as error:
            raise ValueError(f"{part.text} {error}") from None
    value: str = getattr(names, part.text)
    if not value and part.text in _NEEDS:
        raise ValueError(f"{{{part.text}}} is not known without {_NEEDS[part.text]}")
    return value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
