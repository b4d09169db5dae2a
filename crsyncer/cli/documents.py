"""Reads objects that people keep in files, for commands that try things without a cluster."""

from pathlib import Path
from typing import Any

from crsyncer.adapters.files import read_documents
from crsyncer.core.fields import json_problem
from crsyncer.core.text import count
from crsyncer.errors import ConfigError

DEEPEST = 200
"""A schema nests two levels for each field inside a field; API servers take more, people do not write it."""


def read_document(path: Path, *, largest: int) -> Any:
    """The one document of a YAML or JSON file of at most so many bytes, of JSON's types. Raises ConfigError."""
    documents = [each for each in read_documents(path, largest=largest, deepest=DEEPEST) if each is not None]
    if len(documents) != 1:
        raise ConfigError(f"{path} has {count(len(documents), 'object')}; allowed: one")
    try:
        problem = json_problem(documents[0], "the value at ")
    except RecursionError:
        problem = "an alias refers to what it is in"
    if problem:
        raise ConfigError(f"{path}: {problem}", hint="JSON's types; a date or a number can be a text in quotes")
    return documents[0]
