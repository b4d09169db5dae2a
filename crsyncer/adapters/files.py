"""Reads what an operator wrote: small text files, YAML, and errors that never quote the content.

Configuration and kubeconfigs are both read with it. The hint of an error says what is allowed.
"""

import json
import logging
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from crsyncer.errors import ConfigError

_LARGEST_FILE = 1 << 20
_DEEPEST = 50
_LONGEST_BOOT_ID = 64
_TRUTHS = ("yes", "no", "true", "false", "on", "off")
_DIGITS = "+-0123456789"
_NO_TEXTS = (
    ("bool", f"({'|'.join(f'{word}|{word.title()}|{word.upper()}' for word in _TRUTHS)})$", "yYnNtTfFoO"),
    ("null", "(~|null|Null|NULL|)$", ("~", "n", "N", "")),
    ("int", "[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$", _DIGITS),
    ("float", r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$", f".{_DIGITS}"),
    ("float", r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$", ".+-"),
    ("merge", "<<$", "<"),
)
"""What kubectl takes for no text where it is without quotes: its tag, and with what it begins."""

_log = logging.getLogger(__name__)


def read(path: Path, *, largest: int = _LARGEST_FILE) -> str:
    """The text of a regular file of at most `largest` bytes; raises ConfigError."""
    try:
        data = read_bytes(path, largest + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise ConfigError(f"{path} cannot be read ({why})", hint="a readable file") from None
    if len(data) > largest:
        raise ConfigError(f"{path} is larger than {largest >> 20} MiB", hint="a smaller file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text", hint="a text file") from None


def read_bytes(path: Path, most: int = -1) -> bytes:
    """The first bytes of a regular file. Never waits for a writer, as reading a FIFO does. Raises OSError, ValueError.

    A FIFO, a device or a socket is an OSError: a reload could not read the same content again.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "not a regular file")
        return file.read(most)


def read_boot_id(path: Path) -> str:
    """What names this boot of the machine (S8.4); "" where it cannot be read.

    Linux makes a random UUID at each boot (proc(5)).
    """
    try:
        return read_bytes(path, _LONGEST_BOOT_ID).decode(errors="replace").strip()
    except OSError as error:
        _log.warning("cannot read the boot id, so a boot goes unnoticed: %s", error)
        return ""


def read_yaml(path: Path) -> Any:
    """A YAML file as a tree of nodes with line numbers; None where it is empty. Raises ConfigError."""
    import yaml  # not at the top: `--help` shall not wait for it

    return _parsed(path, yaml.compose, _loader(), largest=_LARGEST_FILE, deepest=_DEEPEST)


def read_documents(path: Path) -> list[Any]:
    """The documents of a YAML or JSON file of ours, decoded. Raises ConfigError."""
    return _documents(path, _loader(), largest=_LARGEST_FILE, deepest=_DEEPEST)


def read_manifests(path: Path, *, largest: int, deepest: int) -> list[Any]:
    """The documents of a YAML or JSON file of at most so many bytes and levels, as kubectl reads it.

    Raises ConfigError.
    """
    return _documents(path, _loader_of_manifests(), largest=largest, deepest=deepest)


def _documents(path: Path, loader: Any, *, largest: int, deepest: int) -> list[Any]:
    import yaml

    with suppress(ValueError, RecursionError):  # PyYAML reads 1e3 as a text, and refuses tabs and pairs of escapes
        document = json.loads(read(path, largest=largest))
        if _levels(document) <= deepest:
            return [document]
    documents: list[Any] = _parsed(
        path, lambda *given: list(yaml.load_all(*given)), loader, largest=largest, deepest=deepest
    )
    return documents


def _levels(document: Any) -> int:
    """How deep objects and lists are nested. Without recursion."""
    levels, layer = 0, [document]
    while layer := [each for each in layer if isinstance(each, dict | list)]:
        levels += 1
        layer = [item for each in layer for item in (each.values() if isinstance(each, dict) else each)]
    return levels


def _parsed(path: Path, parse: Callable[[str, Any], Any], loader: Any, *, largest: int, deepest: int) -> Any:
    """A file by one of PyYAML's parsers, which are recursive. Reading events, as is done first, is not, nor slow.

    PyYAML's C part ends the process at 200,000 levels, its Python part takes minutes for 5,000.
    """
    import yaml

    text, depth = read(path, largest=largest), 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > deepest:
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(problem=f"nested deeper than {deepest} levels", problem_mark=mark)
        return parse(text, loader)
    except (yaml.YAMLError, ValueError) as error:
        raise _not_yaml(path, error) from None


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _loader_of_manifests() -> Any:
    """PyYAML's loader, which takes the same texts for numbers as kubectl. By itself it reads 12:30 as 750, and 1e3 not.

    Only `y` and `n` stay texts, which most programs write without quotes. Source: resolve.go of go.yaml.in/yaml/v2.
    """
    loader: Any = type("ManifestLoader", (_loader(),), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in _NO_TEXTS:
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), [*first])
    return loader


def _not_yaml(path: Path, error: Exception) -> ConfigError:
    """That a file is no YAML, where and why, in the parser's words without what they quote: it may be a credential."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "unreadable characters"
    line = f":{mark.line + 1}" if mark else ""
    why = " ".join(re.sub(r"(['\"]).*\1", "…", str(problem), flags=re.DOTALL).split())
    return ConfigError(f"{path}{line}: not YAML ({why})", hint="a YAML file")
