"""Reads objects that people keep in files, for commands that try things without a cluster."""

from pathlib import Path
from typing import Any

from crsyncer.adapters.files import read_manifests
from crsyncer.core.content.fields import json_problem
from crsyncer.core.reports.text import count
from crsyncer.errors import ConfigError

DEEPEST = 200
"""A schema nests two levels for each field inside a field; API servers take more, people do not write it."""


def read_document(path: Path, *, largest: int) -> Any:
    """The one document of a YAML or JSON file of at most so many bytes, as kubectl sends it. Raises ConfigError."""
    documents = [each for each in read_manifests(path, largest=largest, deepest=DEEPEST) if each is not None]
    if len(documents) != 1:
        raise ConfigError(f"{path} has {count(len(documents), 'object')}; allowed: one")
    return _sent(path, documents[0])


def read_sent(path: Path, *, largest: int) -> list[Any]:
    """All documents of such a file, and the items of lists among them, as kubectl sends them. Raises ConfigError."""
    documents = [
        _sent(path, each) for each in read_manifests(path, largest=largest, deepest=DEEPEST) if each is not None
    ]
    return [item for each in documents for item in _items(each)]


def _items(document: Any) -> list[Any]:
    items = document.get("items") if isinstance(document, dict) else None
    return items if isinstance(items, list) and str(document.get("kind")).endswith("List") else [document]


def _sent(path: Path, raw: Any) -> Any:
    try:
        document = _as_sent(raw)
        problem = json_problem(document, "the value at ")
    except RecursionError:
        problem = "an alias refers to what it is in"
    if problem:
        raise ConfigError(f"{path}: {problem}", hint="JSON's types; a date or a number can be a text in quotes")
    return document


def _as_sent(value: Any) -> Any:
    """A value that was read from YAML as JSON has it: keys are texts, and a whole number has no fraction."""
    match value:
        case dict():
            return {_key(key): _as_sent(item) for key, item in value.items()}
        case list():
            return [_as_sent(item) for item in value]
        case float() if value.is_integer() and abs(value) < 2**63:
            return int(value)
        case _:
            return value


def _key(key: Any) -> Any:
    """The key as a text, where kubectl makes it one."""
    match key:
        case bool():
            return str(key).lower()
        case int() | float():
            return f"{key:g}" if isinstance(key, float) else str(key)
        case _:
            return key
