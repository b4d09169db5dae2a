"""A revision of a CRD: what of it travels to the other side, the CRD that follows it there, and what that breaks (C8).

CRDs come from an API server or have been checked by `read_crd`; their schemas may hold anything.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crsyncer.core.content.fields import Fields, Text, fields_at, wrong
from crsyncer.core.content.object_content import is_deeper_than, whole_numbers
from crsyncer.core.content.pointer import EACH
from crsyncer.core.kinds.kind_name import version_priority
from crsyncer.core.model import Json
from crsyncer.core.reports.text import pointer_segment
from crsyncer.errors import ConfigError

API_VERSION = "apiextensions.k8s.io/v1"
KIND = "CustomResourceDefinition"

_TEXT = Text(253, 1)
_SCOPES = {"Namespaced": "Namespaced", "Cluster": "Cluster"}
_HASH_DIGITS = 10
_DEEPEST = 200
"""Levels of a CRD: more would overflow the stack of whatever reads it."""
_UNKNOWN_FIELDS = "x-kubernetes-preserve-unknown-fields"
_ANY: Json = {_UNKNOWN_FIELDS: True}
"""The schema that `additionalProperties: true` means."""
_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of an object that a schema need not name."""


@dataclass(frozen=True, slots=True)
class Revision:
    """What of a CRD travels: its `spec` with the picked versions only, and without a conversion (C8.1)."""

    name: str
    """vHASH.PLURAL.GROUP: equal specs have equal names."""
    spec: Json


class Change(StrEnum):
    """What is breaking about a new revision (C8.3)."""

    SCOPE = "ScopeChanged"
    VERSION = "VersionGone"
    FIELD = "FieldGone"
    TYPE = "TypeChanged"
    UNKNOWN = "UnknownFieldsDropped"


@dataclass(frozen=True, slots=True)
class Breaking:
    """One thing that a revision breaks."""

    change: Change
    message: str
    version: str = ""
    """The version of the CRD that it is about; empty: all."""
    path: str = ""
    """The field that it is about, as a pointer with `*` for each item or value; empty: the whole object."""

    @property
    def row(self) -> Json:
        """It, as documents have it."""
        return {"change": self.change.value, "version": self.version, "path": self.path, "message": self.message}

    def __str__(self) -> str:
        place = " ".join(filter(None, (self.version, self.path)))
        return f"{place}: {self.message}" if place else self.message


def read_crd(raw: Any) -> Json:
    """A CRD that people wrote, as far as this module needs it to be one.

    Raises ConfigError, one line with the place.
    """
    top = fields_at("", raw, ())
    for name, allowed in (("apiVersion", API_VERSION), ("kind", KIND)):
        if top.required(name) != allowed:
            raise wrong(name, top.required(name), allowed)
    name = top.inner("metadata").text("name", _TEXT)
    spec = top.inner("spec")
    spec.choice("scope", _SCOPES)
    names = spec.inner("names")
    names.text("kind", _TEXT)
    expected = f"{names.text('plural', _TEXT)}.{spec.text('group', _TEXT)}"
    if name != expected:
        raise wrong("metadata.name", name, expected)
    found = [_read_version(fields_at(place, item, ())) for place, item in spec.items("versions")]
    if len(set(found)) != len(found) or not found:
        raise ConfigError(f"spec.versions has {'a version twice' if found else 'no version'}; allowed: each once")
    return top.content


def shown_crd(raw: Json) -> Json:
    """A CRD that an API server showed. Raises ConfigError, as `read_crd` does, where it is none that can be used."""
    if is_deeper_than(raw, _DEEPEST):
        raise ConfigError(f"the CRD is nested more than {_DEEPEST} levels deep")
    return read_crd({"apiVersion": API_VERSION, "kind": KIND, **raw})


def _read_version(fields: Fields) -> str:
    for name in ("served", "storage"):
        if fields.flag_or(name, None) is None:
            raise ConfigError(f"{fields.at(name)} is missing")
    return fields.text("name", _TEXT)


def revise(
    crd: Json, picked: Sequence[str] | None = None, *, project: Callable[[Json], Json] = lambda spec: spec
) -> Revision:
    """The revision of a CRD with the picked versions; None: with all that it serves (C8.1).

    `project` makes of a spec what the other side has of it.
    Raises ConfigError where a version is picked that the CRD does not serve, and where nothing is left.
    """
    spec, names = crd["spec"], crd["spec"]["names"]
    served = {each["name"]: each for each in spec["versions"] if each["served"]}
    chosen = sorted(served if picked is None else picked, key=version_priority)
    missing = [name for name in chosen if name not in served]
    if missing or not chosen:
        problem = f"{', '.join(missing)} cannot be picked" if missing else "no version is picked"
        raise ConfigError(f"{problem}; the CRD serves {', '.join(served) or 'none'}")
    storage = next((name for name in chosen if served[name]["storage"]), chosen[0])
    travelling = {
        "group": spec["group"],
        # What a server sets where people leave it out: a CRD in a file has the revision that it has on a server.
        "names": {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names},
        "scope": spec["scope"],
        "versions": [{**served[name], "storage": name == storage} for name in chosen],
    }
    return _named(project(travelling))


def _named(spec: Json) -> Revision:
    text = json.dumps(whole_numbers(spec), sort_keys=True, separators=(",", ":"))
    digits = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
    return Revision(f"v{digits}.{spec['names']['plural']}.{spec['group']}", spec)


def read_revision(raw: Json) -> Revision:
    """The revision in an APIRevision. Raises ConfigError where its content is not what its name stands for."""
    name, spec = str(raw["metadata"].get("name")), raw.get("spec")
    crd = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name.partition(".")[2]}, "spec": spec}
    revision = _named(shown_crd(crd)["spec"])
    if revision.name != name:
        raise ConfigError(f"the content of APIRevision {name} is not the one that its name stands for")
    return revision


def sound_revision(raw: Json) -> Revision | None:
    """The revision in an APIRevision; None: its content is not what its name stands for."""
    try:
        return read_revision(raw)
    except ConfigError:
        return None


def follow(crd: Json | None, revision: Revision) -> Json:
    """The CRD that follows a revision, where this one is now; None: there is none (C8.2).

    Objects may be stored in a former version, so it stays, unserved, until nobody needs it. The conversion and the
    metadata are those of the place where the CRD is.
    """
    spec = revision.spec
    if crd is None:
        name = f"{spec['names']['plural']}.{spec['group']}"
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}
    new = {each["name"] for each in spec["versions"]}
    stored = (crd.get("status") or {}).get("storedVersions") or ()
    former = [
        {**each, "served": False, "storage": False}
        for each in crd["spec"]["versions"]
        if each["name"] not in new and (each["storage"] or each["name"] in stored)
    ]
    conversion = {key: value for key, value in crd["spec"].items() if key == "conversion"}
    return {**crd, "spec": {**spec, "versions": [*spec["versions"], *former], **conversion}}


def breaking(crd: Json, revision: Revision) -> tuple[Breaking, ...]:
    """What a revision breaks, for objects and programs that use the CRD as it is now (C8.3)."""
    return tuple(_breaking(crd["spec"], revision.spec))


def _breaking(old: Json, new: Json) -> Iterator[Breaking]:
    if old["scope"] != new["scope"]:
        yield Breaking(Change.SCOPE, f"the scope was {old['scope']}, and is {new['scope']}: this is never allowed")
    if old.get("preserveUnknownFields") is True:  # it was made before versions had schemas of their own
        yield Breaking(Change.UNKNOWN, "no longer keeps unknown fields")
    served = {each["name"]: each for each in new["versions"]}
    for each in old["versions"]:
        version = each["name"]
        if each["served"] and version not in served:
            yield Breaking(Change.VERSION, "is no longer served", version)
        elif each["served"]:
            for change, path, message in _changes(_schema(each), _schema(served[version]), ""):
                yield Breaking(change, message, version, path)


def _schema(version: Json) -> Json:
    return _object(_object(version.get("schema")).get("openAPIV3Schema"))


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _changes(old: Json, new: Json, path: str) -> Iterator[tuple[Change, str, str]]:
    """What is breaking between two schemas of one field: the change, the path, and the rest of a sentence."""
    before, after = _type(old), _type(new)
    if before != after:
        yield Change.TYPE, path, f"was {before}, and is {after}"
        return
    if old.get(_UNKNOWN_FIELDS) is True and new.get(_UNKNOWN_FIELDS) is not True:
        yield Change.UNKNOWN, path, "no longer keeps unknown fields"
    found, each = _object(new.get("properties")), _each(new)
    implied = _OF_EVERY_OBJECT if not path or new.get("x-kubernetes-embedded-resource") is True else frozenset()
    for name, schema in _object(old.get("properties")).items():
        if name in implied:
            continue
        place = f"{path}/{pointer_segment(name)}"
        if name in found or each is not None:
            yield from _changes(_object(schema), _object(found.get(name, each)), place)
        else:
            yield Change.FIELD, place, "is gone"
    former = _each(old)
    if former is not None:
        place = f"{path}/{EACH}"
        if each is None:
            yield Change.FIELD, place, "is gone"
        else:
            yield from _changes(former, each, place)


def _type(schema: Json) -> str:
    return "integer or string" if schema.get("x-kubernetes-int-or-string") is True else str(schema.get("type") or "any")


def _each(schema: Json) -> Json | None:
    """The schema of a list's items, or of an object's values where their names are free; None: it has none."""
    for name in ("items", "additionalProperties"):
        match schema.get(name):
            case dict() as each:
                return each
            case True:
                return _ANY
    return None
