"""Reads what an operator wrote: small text files, YAML, and errors that never quote the content.

Configuration and kubeconfigs are both read with it.
"""

from pathlib import Path
from typing import Any

from crsyncer.errors import ConfigError

_LARGEST_FILE = 1 << 20
_DEEPEST = 50


def read(path: Path, place: str) -> str:
    """The text of a file of at most 1 MiB; ConfigError, which says that `place` named it, where there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise ConfigError(f"{place}: {path} cannot be read ({why}); allowed: a readable file") from None
    if len(data) > _LARGEST_FILE:
        raise ConfigError(f"{place}: {path} is larger than 1 MiB; allowed: a YAML file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{place}: {path} is not UTF-8 text; allowed: a YAML file") from None


def check_depth(text: str, loader: Any) -> None:
    """Raise yaml.YAMLError where a text is nested deeper than 50 levels, or not YAML up to there.

    Whoever composes YAML does so recursively: PyYAML's C part ends the process at 200,000 levels, its Python part takes
    minutes for 5,000. Reading events, as here, is neither recursive nor slow.
    """
    import yaml  # not at the top: `--help` shall not wait for it

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {_DEEPEST} levels", problem_mark=mark)


def line_of(error: Any) -> str:
    """Where a YAML error is, as `:LINE`; empty where it does not say."""
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark else ""


def problem_of(error: Any) -> str:
    """What is wrong, in the parser's words. Not str(error), which quotes the file, and that may hold credentials."""
    return " ".join(str(getattr(error, "problem", None) or "unreadable characters").split())
