"""Reads CRDs and SyncPolicies from files, for commands that a platform engineer runs at a desk."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.expressions import Expressions
from crsyncer.adapters.files import read_documents
from crsyncer.cli.documents import DEEPEST
from crsyncer.cli.shared import Command
from crsyncer.core.catalog import PolicyObject, policy_of_kind, read_object
from crsyncer.core.cloud_manifests import Profile, confinable
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.core.model import Json
from crsyncer.core.revise import KIND as CRD
from crsyncer.core.sync_policy import KIND as SYNC_POLICY
from crsyncer.errors import ConfigError

LARGEST = 16 << 20
"""Bytes of a file with CRDs."""
_SUFFIXES = (".yaml", ".yml", ".json")


def crds_option(help_text: str, *, required: bool = False) -> Callable[[Command], Command]:
    """The option `--crds`; the command is called with `crds`, paths of files and directories."""
    return click.option(
        "--crds", metavar="FILE|DIR", type=click.Path(path_type=Path), multiple=True, required=required, help=help_text
    )


def read_kinds(paths: Sequence[Path], profile: Profile) -> tuple[KindPolicy, ...]:
    """The kinds of the CRDs in files, and in the YAML and JSON files of directories; each kind once.

    SyncPolicies in the files configure them, too; other objects are passed over. Raises ConfigError, one line, also
    where there is no CRD at all.
    """
    documents = {path: list(_documents(path)) for path in paths}
    policies = [_policy(each, file) for found in documents.values() for file, each in found if _is(each, SYNC_POLICY)]
    found: dict[str, KindPolicy] = {}
    for path in paths:
        if not any(_is(each, CRD, SYNC_POLICY) for _, each in documents[path]):
            raise ConfigError(f"--crds: {path} has no {CRD}", hint="a file or directory with annotated CRDs")
        for kind in _kinds(documents[path], policies, profile):
            if found.setdefault(kind.resource, kind) != kind:
                raise ConfigError(f"--crds: {kind.resource} is given twice, and not alike", hint="each CRD once")
    if not found:
        raise ConfigError(f"--crds has no {CRD}", hint="a file or directory with annotated CRDs")
    return tuple(found.values())


def _documents(path: Path) -> Iterator[tuple[Path, Json]]:
    """Every object in a file, or in the files of a directory, with its file."""
    files = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES) if path.is_dir() else [path]
    for file in files:
        try:
            documents = read_documents(file, largest=LARGEST, deepest=DEEPEST)
        except ConfigError as error:
            raise ConfigError(f"--crds: {error}", hint=error.hint) from None
        yield from ((file, each) for each in _objects(documents))


def _is(document: Json, *kinds: str) -> bool:
    return document.get("kind") in kinds


def _policy(document: Json, file: Path) -> PolicyObject:
    try:
        return read_object(document, Expressions)
    except (KeyError, TypeError):
        raise ConfigError(f"--crds: {file}: a {SYNC_POLICY} has no metadata.name") from None


def _kinds(
    documents: Sequence[tuple[Path, Json]], policies: Sequence[PolicyObject], profile: Profile
) -> Iterator[KindPolicy]:
    def read(crd: Json, robot: str) -> KindPolicy | None:
        name = crd["metadata"]["name"]
        return policy_of_kind(crd, robot, objects=[each for each in policies if each.is_for(name)])

    for file, document in documents:
        if _is(document, CRD):
            try:
                yield confinable(document, profile, place=str(file), read=read)
            except ConfigError as error:
                raise ConfigError(f"--crds: {error}", hint=error.hint) from None


def _objects(documents: Sequence[Any]) -> Iterator[Json]:
    """The objects of the documents, and of the lists among them."""
    for document in documents:
        if isinstance(document, dict):
            yield document
            if isinstance(items := document.get("items"), list):
                yield from _objects(items)
