"""Reads the fields of an object that people write, with the checks that an API server makes by a schema.

Each problem is a ConfigError in one line: the field's place, what is there, and what is allowed.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from crsyncer.core.model import Json
from crsyncer.errors import ConfigError

T = TypeVar("T")
_SHOWN = 60
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True)
class Text:
    """What a text may be. `words` say so, where it is more than a length."""

    most: int
    least: int = 0
    pattern: str = "(?s).*"
    words: str = ""

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        size = f"at most {self.most} characters" if not self.least else f"{self.least} to {self.most} characters"
        return f"{self.words}, {size}" if self.words else size


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object and its place, such as `spec.resource`. Null means absent."""

    content: Json
    place: str

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self.place}.{name}" if self.place else name

    def __contains__(self, name: str) -> bool:
        return self.content.get(name) is not None

    def required(self, name: str) -> Any:
        """What a field holds, whatever it is."""
        if name not in self:
            raise ConfigError(f"{self.at(name)} is missing")
        return self.content[name]

    def text(self, name: str, rule: Text) -> str:
        """A text that must be there."""
        return text_at(self.at(name), self.required(name), rule)

    def text_or(self, name: str, rule: Text, default: T) -> str | T:
        """A text that may be there."""
        return self.text(name, rule) if name in self else default

    def choice(self, name: str, allowed: Mapping[str, T]) -> T:
        """What the text of a field stands for."""
        value = self.required(name)
        if not isinstance(value, str) or value not in allowed:
            raise wrong(self.at(name), value, ", ".join(allowed))
        return allowed[value]

    def choice_or(self, name: str, allowed: Mapping[str, T], default: T) -> T:
        """What the text of a field stands for, where it is there."""
        return self.choice(name, allowed) if name in self else default

    def flag_or(self, name: str, default: T) -> bool | T:
        """A boolean that may be there."""
        if name not in self:
            return default
        value = self.content[name]
        if not isinstance(value, bool):
            raise wrong(self.at(name), value, "true, false")
        return value

    def inner(self, name: str, *known: str) -> "Fields":
        """The fields of an object that must be there; no others than the known ones."""
        return fields_at(self.at(name), self.required(name), known)

    def inner_or(self, name: str, known: tuple[str, ...], read: Callable[["Fields"], T], default: T) -> T:
        """What is read from an object that may be there."""
        return read(self.inner(name, *known)) if name in self else default

    def items(self, name: str, most: float = math.inf) -> Iterator[tuple[str, Any]]:
        """The items of a list that may be there, each with its place."""
        value = self.content.get(name)
        if value is not None and (not isinstance(value, list) or len(value) > most):
            raise wrong(self.at(name), value, "a list" if most == math.inf else f"a list of at most {most}")
        return ((f"{self.at(name)}[{number}]", item) for number, item in enumerate(value or ()))


def fields_at(place: str, value: Any, known: tuple[str, ...]) -> Fields:
    """An object's fields; ConfigError where it is no object, or has a field that is not known."""
    if not isinstance(value, dict):
        raise wrong(place or "the whole", value, f"an object with {', '.join(known)}" if known else "an object")
    fields = Fields(value, place)
    for name in value:
        if known and name not in known:
            raise ConfigError(f"{fields.at(str(name))} is not a field; allowed: {', '.join(known)}")
    return fields


def text_at(place: str, value: Any, rule: Text) -> str:
    """A text that the rule allows; else ConfigError."""
    if not isinstance(value, str) or not rule.least <= len(value) <= rule.most or not re.fullmatch(rule.pattern, value):
        raise wrong(place, value, rule.allowed)
    return value


def wrong(place: str, value: Any, allowed: str) -> ConfigError:
    """The error for a value that is not allowed. Shows texts and numbers, shortened, and of anything else the type."""
    match value:
        case bool():
            shown = str(value).lower()
        case str():
            shown = f'"{value[:_SHOWN]}{"..." * (len(value) > _SHOWN)}"'
        case int() | float():
            shown = str(value)
        case dict() | list():
            shown = "an object" if isinstance(value, dict) else f"a list of {len(value)}"
        case _:
            shown = "nothing" if value is None else f"a {type(value).__name__}"
    return ConfigError(f"{place} is {shown}; allowed: {allowed}")


def seconds(text: str) -> float | None:
    """A duration as Go writes it, such as `1h30m`; None where it is none."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    parts = _DURATION.findall(rest)
    if rest != "0" and (not parts or "".join(number + unit for number, unit in parts) != rest):
        return None
    return sign * sum(float(number) * _SECONDS[unit] for number, unit in parts)


def json_problem(value: Any, place: str) -> str:
    """Where a value is not JSON as an API server keeps it, and why; empty: it is."""
    match value:
        case None | bool() | str():
            return ""
        case int():
            return "" if -(2**63) <= value < 2**63 else f"{place} is a number over 64 bits"
        case float():
            return "" if math.isfinite(value) else f"{place} is no finite number"
        case dict() if all(isinstance(key, str) for key in value):
            return next(filter(None, (json_problem(item, f"{place}/{key}") for key, item in value.items())), "")
        case dict():
            return f"{place} has a key that is no text"
        case list():
            return next(filter(None, (json_problem(item, f"{place}/{n}") for n, item in enumerate(value))), "")
        case _:
            return f"{place} is a {type(value).__name__}, which JSON does not have"
