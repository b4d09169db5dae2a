"""Reads CRDs and SyncPolicies from files, for commands that a platform engineer runs at a desk."""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.expressions import Expressions
from crsyncer.adapters.files import read_manifests
from crsyncer.cli.documents import DEEPEST
from crsyncer.cli.shared import Command
from crsyncer.console.confinement.manifests import BUILT_IN, Profile, confinable
from crsyncer.core.apis.revise import KIND as CRD
from crsyncer.core.kinds.built_in_kind import unknown
from crsyncer.core.kinds.configured import configured_kind, without_crd
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import PolicyObject, read_object
from crsyncer.core.kinds.namespaces import EVERYWHERE
from crsyncer.core.kinds.read_kind import is_annotated
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.kinds.sync_policy import KIND as SYNC_POLICY
from crsyncer.core.model import Json
from crsyncer.core.related.relate import related_entries
from crsyncer.core.reports.robot_report import ROBOT_SYNC_STATES
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

    SyncPolicies in the files configure them, too, and name kinds that have no CRD; other objects are passed over, and
    so are the kinds of a fleet that no robot writes.
    Raises ConfigError, one line, also where there is no kind at all.
    """
    found: list[tuple[Path, Json]] = []
    for path in paths:
        documents = list(_documents(path))
        if not any(_is(each, CRD, SYNC_POLICY) for _, each in documents):
            raise ConfigError(f"--crds: {path} has no {CRD}", hint="a file or directory with annotated CRDs")
        found += documents
    policies = [_policy(each, file) for file, each in found if _is(each, SYNC_POLICY)]
    crds = [(file, each) for file, each in found if _is(each, CRD) and not _is_the_fleets_own(each)]
    crds += [(Path(SYNC_POLICY), each) for each in _built_in(policies, {_name(each) for _, each in crds})]
    return _confinable(crds, policies, profile)


def _confinable(
    crds: Sequence[tuple[Path, Json]], policies: Sequence[PolicyObject], profile: Profile
) -> tuple[KindPolicy, ...]:
    """The kinds of the CRDs, as the SyncPolicies configure them; each with the file that it is from."""
    annotated: dict[str, bool] = {}
    entries: list[RelatedEntry] = []

    def read(crd: Json, robot: str) -> KindPolicy | None:
        return configured_kind(
            crd,
            robot,
            namespaces=EVERYWHERE,
            objects=lambda name: [each for each in policies if each.is_for(name)],
            annotated=annotated.get,
            policies=policies,
            entries=entries,
        )

    incomplete = suppress(KeyError, TypeError, AttributeError)  # as is said below
    for _, crd in crds:
        with incomplete:
            annotated[crd["metadata"]["name"]] = is_annotated(crd)
    for _, crd in crds:
        with incomplete:
            primary = read(crd, "robot")
            entries += [] if primary is None else related_entries(primary)
    found: dict[str, KindPolicy] = {}
    for file, crd in crds:
        try:
            kind = confinable(crd, profile, place=str(file), read=read)
        except ConfigError as error:
            raise ConfigError(f"--crds: {error}", hint=error.hint) from None
        if found.setdefault(kind.resource, kind) != kind:
            raise ConfigError(f"--crds: {kind.resource} is given twice, and not alike", hint="each CRD once")
    if not found:
        raise ConfigError(f"--crds has no {CRD}", hint="a file or directory with annotated CRDs")
    return tuple(found.values())


def _built_in(policies: Sequence[PolicyObject], crds: Container[str]) -> Iterator[Json]:
    """The kinds that SyncPolicies name and that have no CRD there, as a CRD would describe them."""
    missing = without_crd(policies, crds)
    for name in sorted({*missing.built_in, *missing.to_come} - BUILT_IN.keys()):
        raise ConfigError(f"--crds: a {SYNC_POLICY} names {name}, whose CRD is not there", hint="give it, too")
    for name, resource in sorted(missing.built_in.items()):
        described = unknown(resource)
        described["spec"]["names"]["kind"] = BUILT_IN[name]
        described["spec"]["versions"] = [{"name": "v1", "served": True, "storage": True, "subresources": {}}]
        yield described


def _name(crd: Json) -> str:
    metadata = crd.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _documents(path: Path) -> Iterator[tuple[Path, Json]]:
    """Every object in a file, or in the files of a directory, with its file."""
    files = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES) if path.is_dir() else [path]
    for file in files:
        try:
            documents = read_manifests(file, largest=LARGEST, deepest=DEEPEST)
        except ConfigError as error:
            raise ConfigError(f"--crds: {error}", hint=error.hint) from None
        yield from ((file, each) for each in _objects(documents))


def _is(document: Json, *kinds: str) -> bool:
    return document.get("kind") in kinds


def _is_the_fleets_own(crd: Json) -> bool:
    """Whether a CRD is one of `crsyncer fleet crds` that says nothing of robots."""
    try:
        return bool(crd["spec"]["group"] == ROBOT_SYNC_STATES.group and not is_annotated(crd))
    except (KeyError, TypeError, AttributeError):
        return False


def _policy(document: Json, file: Path) -> PolicyObject:
    try:
        return read_object(document, Expressions)
    except (KeyError, TypeError):
        raise ConfigError(f"--crds: {file}: a {SYNC_POLICY} has no metadata.name") from None


def _objects(documents: Sequence[Any]) -> Iterator[Json]:
    """The objects of the documents, and of the lists among them."""
    for document in documents:
        if isinstance(document, dict):
            yield document
            if isinstance(items := document.get("items"), list):
                yield from _objects(items)
