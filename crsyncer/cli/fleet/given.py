"""The objects of a file for the fleet's commands, checked as far as all objects are alike."""

from pathlib import Path

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.documents import read_sent
from crsyncer.core.apis.revise import KIND as CRD
from crsyncer.core.content.fields import Text, fields_at, wrong
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import CRD_COLLECTION
from crsyncer.errors import ConfigError

LARGEST = 16 << 20
"""Bytes of a file with objects."""
_NAME = Text(317, 1)


def read_objects(path: Path, settings: FleetSettings, namespace: str) -> tuple[Json, ...]:
    """The objects of a file, checked as far as all objects are alike. Raises ConfigError, one line.

    `namespace` is that of objects without one; Robots are in theirs.
    """
    robots = settings.robots.partition(".")[2]
    found = []
    for raw in read_sent(path, largest=LARGEST):
        try:
            _check(raw)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}", hint=error.hint) from None
        own = settings.robots_namespace if group_of(raw) == robots else namespace
        found.append({**raw, "metadata": {"namespace": own, **raw["metadata"]}})
    return tuple(found)


def _check(raw: Json) -> None:
    """Raise ConfigError for what no API server takes of any object."""
    fields = fields_at("", raw, ())
    fields.text("apiVersion", _NAME)
    fields.text("kind", _NAME)
    metadata = fields.inner("metadata")
    metadata.text("name", _NAME)
    metadata.text_or("namespace", _NAME, "")
    for name in ("labels", "annotations"):
        texts = metadata.content.get(name) or {}
        if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
            raise wrong(metadata.at(name), texts, "texts by key")
    if raw["kind"] == "ConfigMap" and not isinstance(raw.get("data") or {}, dict):
        raise wrong("data", raw["data"], "texts by key")


def group_of(raw: Json) -> str:
    """The API group of an object; "" is the core group."""
    return str(raw.get("apiVersion", "")).rpartition("/")[0]


def is_of(raw: Json, group: str, kind: str) -> bool:
    """Whether an object is of a group and kind."""
    return (group_of(raw), raw["kind"]) == (group, kind)


def is_crd(raw: Json) -> bool:
    """Whether an object is a CRD."""
    return is_of(raw, CRD_COLLECTION.group, CRD)


def is_plural(plural: str, kind: str) -> bool:
    """Whether a plural is the regular one of a kind."""
    name = kind.lower()
    return plural in (name, f"{name}s", f"{name}es", f"{name[:-1]}ies")
