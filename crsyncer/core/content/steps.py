"""The steps of a SyncPolicy's mutations, as they are read from it (C4)."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crsyncer.core.content.fields import Fields, Text, fields_at, json_problem, text_at
from crsyncer.core.content.pointer import LONGEST, PATH, Pointer, parse
from crsyncer.core.content.template import Template, read_template
from crsyncer.errors import ConfigError

PATH_TEXT = Text(LONGEST, pattern=PATH, words="a JSON Pointer such as /spec/url")
_MOST = 32
_NOT_CONTENT = re.compile(r"/(apiVersion|kind|metadata|status|\*)(/|$)")
"""`*` among them: it would be each of the others, too."""
_METADATA = re.compile(r"/metadata/(labels|annotations)/[^/]+")
_CEL_TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*)
    |(?i:br|rb|r)(?:'{3}.*?'{3}|"{3}.*?"{3}|'[^'\n]*'|"[^"\n]*")
    |(?:'{3}(?:\\.|.)*?'{3}|"{3}(?:\\.|.)*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
    |(?P<word>\w+)
    |.""",
    re.DOTALL | re.VERBOSE,
)
_UNSTABLE = re.compile(r"[.]\s*(map|filter)\s*[(]")


@dataclass(frozen=True, slots=True)
class Set:
    """Put a value there."""

    value: Any

    def __eq__(self, other: object) -> bool:
        """As JSON, where 1 is not true."""
        return isinstance(other, Set) and self._text() == other._text()

    def __hash__(self) -> int:
        """Of values that Python cannot hash, too."""
        return hash(self._text())

    def _text(self) -> str:
        return json.dumps(self.value, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Remove:
    """Take away what is there."""


@dataclass(frozen=True, slots=True)
class Regex:
    """Replace all matches of an RE2 pattern by texts and, where a number stands, by the group of that number."""

    pattern: str
    replacement: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Render:
    """Put a template's text there."""

    template: Template


@dataclass(frozen=True, slots=True)
class Cel:
    """Put the result of a CEL expression there."""

    expression: str


Verb = Set | Remove | Regex | Render | Cel


@dataclass(frozen=True, slots=True)
class Step:
    """One change of an object. `place` is where the policy says so."""

    place: str
    path: str
    verb: Verb

    @property
    def pointer(self) -> Pointer:
        """The path's segments."""
        return parse(self.path)


@dataclass(frozen=True, slots=True)
class Mutations:
    """The steps for content on its way down, and for a status on its way up."""

    down: tuple[Step, ...] = ()
    up: tuple[Step, ...] = ()


def read_mutations(fields: Fields) -> Mutations:
    """Both lists of steps. Raises ConfigError."""
    down, up = (
        tuple(_read_step(fields_at(*item, ("path", *_VERBS))) for item in fields.items(name, _MOST))
        for name in ("down", "up")
    )
    for step in down:
        if _NOT_CONTENT.match(step.path) and not _METADATA.fullmatch(step.path):
            allowed = "a path to content, /metadata/labels/KEY or /metadata/annotations/KEY"
            raise ConfigError(f'{step.place}.path is "{step.path}"; allowed: {allowed}')
    for step in up:
        if not step.path.startswith("/status/"):
            raise ConfigError(f'{step.place}.path is "{step.path}"; allowed: a path below /status')
    return Mutations(down, up)


def _read_step(fields: Fields) -> Step:
    path = fields.text("path", PATH_TEXT)
    given = [verb for verb in _VERBS if verb in fields]
    if len(given) != 1:
        raise ConfigError(f"{fields.place} has {' and '.join(given) or 'no verb'}; allowed: one of {', '.join(_VERBS)}")
    return Step(fields.place, path, _VERBS[given[0]](fields))


def _read_set(fields: Fields) -> Set:
    inner = fields.inner("set", "value")
    value = inner.required("value")
    if problem := json_problem(value, inner.at("value")):
        raise ConfigError(problem)
    return Set(value)


def _read_remove(fields: Fields) -> Remove:
    if fields.flag_or("remove", None) is not True:
        raise ConfigError(f"{fields.at('remove')} is false; allowed: true")
    return Remove()


def _read_regex(fields: Fields) -> Regex:
    inner = fields.inner("regex", "pattern", "replacement")
    pattern = inner.text("pattern", Text(256, 1))
    replacement = text_at(inner.at("replacement"), inner.required("replacement"), Text(256))
    parts = re.findall(r"\$\$|\$[0-9]|\$|[^$]+", replacement)
    if "$" in parts:
        raise ConfigError(f'{inner.at("replacement")} has a single "$"; allowed: $0 to $9 for groups, $$ for a dollar')
    return Regex(pattern, tuple(_replacement(part) for part in parts))


def _replacement(part: str) -> str | int:
    if part == "$$":
        return "$"
    return int(part[1]) if part.startswith("$") else part


def _read_template(fields: Fields) -> Render:
    text = fields.text("template", Text(1024))
    try:
        return Render(read_template(text, paths=True))
    except ValueError as error:
        raise ConfigError(f"{fields.at('template')} {error}") from None


def _read_cel(fields: Fields) -> Cel:
    expression = fields.text("cel", Text(1024, 1))
    # The first as an API server checks it; the second also where a comment stands between, and not in texts.
    bare = _CEL_TOKENS.sub(lambda token: " " if token["comment"] else token[0], expression)
    found = _UNSTABLE.search(expression) or _UNSTABLE.search(bare)
    if found:
        raise ConfigError(f"{fields.at('cel')} calls {found[1]}, whose order is not stable; allowed: other macros")
    return Cel(expression)


_VERBS: Mapping[str, Callable[[Fields], Verb]] = {
    "set": _read_set,
    "remove": _read_remove,
    "regex": _read_regex,
    "template": _read_template,
    "cel": _read_cel,
}
"""By name of its field, how each verb is read."""
