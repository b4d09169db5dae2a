"""Reads CRDs from files, for commands that a platform engineer runs at a desk."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.files import read_documents
from crsyncer.cli.shared import Command
from crsyncer.core.cloud_manifests import Profile, confinable
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError

_LARGEST = 16 << 20
_DEEPEST = 200
"""A schema nests two levels for each field inside a field; API servers take more, people do not write it."""
_SUFFIXES = (".yaml", ".yml", ".json")
_KIND = "CustomResourceDefinition"


def crds_option(help_text: str, *, required: bool = False) -> Callable[[Command], Command]:
    """The option `--crds`; the command is called with `crds`, paths of files and directories."""
    return click.option(
        "--crds", metavar="FILE|DIR", type=click.Path(path_type=Path), multiple=True, required=required, help=help_text
    )


def read_kinds(paths: Sequence[Path], profile: Profile) -> tuple[KindPolicy, ...]:
    """The kinds of the CRDs in files, and in the YAML and JSON files of directories; each kind once.

    Other objects in the files are passed over. Raises ConfigError, one line, also where there is no CRD at all.
    """
    found: dict[str, KindPolicy] = {}
    for path in paths:
        files = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES) if path.is_dir() else [path]
        kinds = [kind for file in files for kind in _kinds(file, profile)]
        if not kinds:
            raise ConfigError(f"--crds: {path} has no {_KIND}", hint="a file or directory with annotated CRDs")
        for kind in kinds:
            if found.setdefault(kind.resource, kind) != kind:
                raise ConfigError(f"--crds: {kind.resource} is given twice, and not alike", hint="each CRD once")
    return tuple(found.values())


def _kinds(file: Path, profile: Profile) -> Iterator[KindPolicy]:
    try:
        for document in _objects(read_documents(file, largest=_LARGEST, deepest=_DEEPEST)):
            if document.get("kind") == _KIND:
                yield confinable(document, profile, place=str(file))
    except ConfigError as error:
        raise ConfigError(f"--crds: {error}", hint=error.hint) from None


def _objects(documents: Sequence[Any]) -> Iterator[Json]:
    """The objects of the documents, and of the lists among them."""
    for document in documents:
        if isinstance(document, dict):
            yield document
            if isinstance(items := document.get("items"), list):
                yield from _objects(items)
