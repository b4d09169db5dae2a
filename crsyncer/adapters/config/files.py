"""Reading what an operator wrote: small text files, YAML, and errors that never quote the content."""

from pathlib import Path
from typing import Any

from crsyncer.errors import ConfigError

_LARGEST_FILE = 1 << 20


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


def line_of(error: Any) -> str:
    """Where a YAML error is, as `:LINE`; empty where it does not say."""
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark else ""


def problem_of(error: Any) -> str:
    """What is wrong, in the parser's words. Not str(error), which quotes the file, and that may hold credentials."""
    return " ".join(str(getattr(error, "problem", None) or "unreadable characters").split())
