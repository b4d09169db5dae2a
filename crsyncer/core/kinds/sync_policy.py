"""A SyncPolicy as people write it, read and checked in full: also all that an API server refuses (C1, C7).

What needs a cluster is not checked here: the CRD's annotations, scopes and versions, and other policies. What is in
force for a kind is `kind_policy.KindPolicy`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.fields import Fields, Text, fields_at, seconds, text_at, wrong
from crsyncer.core.content.object_content import PROPAGATIONS
from crsyncer.core.content.pointer import EACH
from crsyncer.core.content.selector import Selector, read_selector
from crsyncer.core.content.steps import PATH_TEXT, Mutations, read_mutations
from crsyncer.core.content.template import HASH, NAME, Template, read_template
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.naming import Naming
from crsyncer.core.model import Side
from crsyncer.errors import ConfigError

GROUP = OURS.rstrip("/")
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "SyncPolicy"

_NAME = Text(253, 1, "[a-z0-9]([-a-z0-9.]*[a-z0-9])?", 'lower-case letters, digits, "-" and "."')
_GROUP = Text(253, 0, "([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?", 'an API group, "" is the core group')
_PLURAL = Text(63, 0, "[a-z][-a-z0-9]*", "the plural of a kind in lower-case letters")
_VERSION = Text(63, 1)
_TEMPLATE = Text(253, 1)
_ID = Text(63, 0, "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "a DNS label")
_SUBTREE = Text(253, 1, "[^.]+", "one top-level key of .status, without a dot")
_ANY = Text(253)

CLOSED_GROUPS = (GROUP, "apiextensions.k8s.io")
"""Groups whose kinds no policy may name."""
_SIDES: Mapping[str, Side] = {side.value: side for side in Side}
_SCOPES = {"Namespaced": True, "Cluster": False}
_PROPAGATIONS = {text: text for text in PROPAGATIONS}
_MOST_RELATED = 16
_MOST_VERSIONS = 16
_GRACE = "1h"
_MINUTE, _MONTH = 60, 720 * 3600


@dataclass(frozen=True, slots=True)
class Filter:
    """Which objects are synced. `by_robot_name` None: as annotated."""

    by_robot_name: bool | None = None
    selector: Selector | None = None


@dataclass(frozen=True, slots=True)
class Projection:
    """What differs in the cloud; None: it does not."""

    group: str | None = None
    version: str | None = None
    resource: str | None = None
    kind: str | None = None
    namespaced: bool | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """Related objects by the texts at a path in the primary."""

    path: str


@dataclass(frozen=True, slots=True)
class Related:
    """Objects that travel with a primary (C5)."""

    id: str
    origin: Side
    resource: Resource
    objects: Reference | Template | Selector
    namespace: Template | None = None
    """None: the primary's."""
    naming: Naming | None = None
    names_namespace: bool = False
    """`naming.namespace` is set; else the kind's counts (C5.2)."""
    projection: Projection | None = None
    filtered: bool | None = None
    """None: as the kind is."""
    status: bool = False
    keep: bool = False

    @property
    def paths(self) -> list[tuple[str, str]]:
        """What it reads from a primary: the field that does, and the path."""
        named = {"object.name": self.objects, "object.namespace": self.namespace}
        found = [("object.reference", self.objects.path)] if isinstance(self.objects, Reference) else []
        templates = [(field, each) for field, each in named.items() if isinstance(each, Template)]
        return found + [(field, text) for field, each in templates for text in each.path_texts]


@dataclass(frozen=True, slots=True)
class Deletion:
    """How a copy is deleted (C6)."""

    blocking: bool
    grace_seconds: float
    propagation: str


@dataclass(frozen=True, slots=True)
class Api:
    """How the CRD itself travels (C8). `versions` None: all that are served."""

    source: Side
    versions: tuple[str, ...] | None = None
    paused: bool = False
    allow_breaking: bool = False
    projection: Projection | None = None
    """What differs in the cloud (C7)."""
    robots_version: str | None = None
    """The version on the robot that the projection's is another name of; None: none is given."""


@dataclass(frozen=True, slots=True)
class SyncPolicy:
    """One SyncPolicy. What is None is as annotated on the CRD, or absent."""

    name: str
    resource: Resource
    upstream: Side | None
    filter: Filter
    subtree: str | None
    map_generation: bool | None
    keep_orphans: bool | None
    keep_local: bool | None
    naming: Naming | None
    projection: Projection | None
    mutations: Mutations
    related: tuple[Related, ...]
    deletion: Deletion | None
    api: Api | None


def read_sync_policy(raw: Any) -> SyncPolicy:
    """The policy in a decoded object. Raises ConfigError, one line with the place of the first problem."""
    top = fields_at("", raw, ("apiVersion", "kind", "metadata", "spec", "status"))
    for name, allowed in (("apiVersion", API_VERSION), ("kind", KIND)):
        if top.required(name) != allowed:
            raise wrong(name, top.required(name), allowed)
    metadata = fields_at("metadata", top.required("metadata"), ())
    spec = top.inner(
        "spec",
        *("resource", "specSource", "filter", "subtree", "observedGeneration", "orphans", "conflict", "naming"),
        *("projection", "mutations", "related", "deletion", "api"),
    )
    policy = SyncPolicy(
        name=metadata.text("name", _NAME),
        resource=_resource(spec),
        upstream=spec.choice_or("specSource", _SIDES, None),
        filter=spec.inner_or("filter", ("byRobotName", "selector"), _filter, Filter()),
        subtree=spec.text_or("subtree", _SUBTREE, None),
        map_generation=spec.choice_or("observedGeneration", {"copy": False, "map": True}, None),
        keep_orphans=spec.choice_or("orphans", {"delete": False, "keep": True}, None),
        keep_local=spec.choice_or("conflict", {"upstream": False, "keepLocal": True}, None),
        naming=_naming(spec),
        projection=_projection(spec),
        mutations=spec.inner_or("mutations", ("down", "up"), read_mutations, Mutations()),
        related=tuple(_related(place, item) for place, item in spec.items("related", _MOST_RELATED)),
        deletion=spec.inner_or("deletion", ("mode", "gracePeriod", "propagation"), _deletion, None),
        api=spec.inner_or("api", ("source", "versions", "paused", "allowBreaking"), _api, None),
    )
    if policy.api is not None and policy.projection is not None:
        own = replace(policy.api, projection=policy.projection, robots_version=policy.resource.version)
        policy = replace(policy, api=own)
    for problem in _problems(policy):
        raise ConfigError(problem)
    return policy


def _problems(policy: SyncPolicy) -> Iterator[str]:
    """What is wrong about fields that are right on their own."""
    kind = policy.resource
    if policy.keep_local and kind == Resource("", "secrets", kind.version):
        yield "spec.conflict is keepLocal; allowed for secrets: upstream"
    depends = policy.naming is not None and policy.naming.namespace.placeholders & {NAME, HASH}
    for number, each in enumerate(policy.related if depends else ()):
        if not each.names_namespace:
            yield (
                f"spec.related[{number}].naming.namespace is absent, but that of spec.naming has {{name}} or {{hash}}; "
                "allowed then: a namespace for the related copies"
            )
    if policy.keep_orphans is False and policy.naming:
        yield "spec.orphans is delete; allowed with naming: keep"
    ids = [related.id for related in policy.related]
    for number, related in enumerate(policy.related):
        place = f"spec.related[{number}]"
        if related.id in ids[:number]:
            yield f'{place}.id is "{related.id}" again; allowed: each id once'
        if (related.resource.group, related.resource.resource) == (kind.group, kind.resource):
            yield f"{place}.resource is the kind of the policy itself; allowed: another kind"
    yield from label_problems(policy, policy.filter)


def label_problems(policy: SyncPolicy, filter_: Filter) -> Iterator[str]:
    """Steps on labels that the filter uses: an object would leave our sight by itself (C4.4)."""
    used = filter_.selector.keys if filter_.selector else frozenset()
    if filter_.by_robot_name:
        used |= {ROBOT_LABEL}
    for step in policy.mutations.down:
        match step.pointer:
            case ("metadata", "labels", key) if key in used or (used and key == EACH):
                yield f'{step.place}.path is "{step.path}"; allowed: labels that the filter does not use'


def _resource(fields: Fields) -> Resource:
    inner = fields.inner("resource", "group", "resource", "version")
    group, resource = inner.text("group", _GROUP), inner.text("resource", _PLURAL)
    if is_closed(Resource(group, resource)):
        allowed = f"neither namespaces nor kinds of {' and '.join(CLOSED_GROUPS)}"
        raise ConfigError(f"{inner.place} is {Resource(group, resource).full_name}; allowed: {allowed}")
    return Resource(group, resource, inner.text_or("version", _VERSION, None))


def is_closed(kind: Resource) -> bool:
    """Whether no policy may name a kind."""
    return kind.group in CLOSED_GROUPS or (kind.group, kind.resource) == ("", "namespaces")


def named_kind(spec: Any) -> Resource | None:
    """The kind that a policy names, whatever else is wrong with it; None: that cannot be read."""
    resource = spec.get("resource") if isinstance(spec, dict) else None
    try:
        fields = fields_at("spec.resource", resource, ())
        return Resource(fields.text("group", _GROUP), fields.text("resource", _PLURAL))
    except ConfigError:
        return None


def _filter(fields: Fields) -> Filter:
    return Filter(by_robot_name=fields.flag_or("byRobotName", None), selector=read_selector(fields))


def _template(fields: Fields, name: str, *, paths: bool, default: str = "") -> Template:
    place = fields.at(name)
    text = text_at(place, fields.content[name] if name in fields else default, _TEMPLATE)
    try:
        return read_template(text, paths=paths)
    except ValueError as error:
        raise ConfigError(f"{place} {error}") from None


def _naming(fields: Fields) -> Naming | None:
    if "naming" not in fields:
        return None
    inner = fields.inner("naming", "namespace", "name")
    if "namespace" not in inner and "name" not in inner:
        raise ConfigError(f"{inner.place} is empty; allowed: namespace, name or both")
    return Naming(
        namespace=_template(inner, "namespace", paths=False, default="{namespace}"),
        name=_template(inner, "name", paths=False, default="{name}"),
    )


def _projection(fields: Fields) -> Projection | None:
    if "projection" not in fields:
        return None
    inner = fields.inner("projection", "group", "version", "resource", "kind", "scope")
    return Projection(
        group=inner.text_or("group", _ANY, None),
        version=inner.text_or("version", _ANY, None),
        resource=inner.text_or("resource", _ANY, None),
        kind=inner.text_or("kind", _ANY, None),
        namespaced=inner.choice_or("scope", _SCOPES, None),
    )


def _related(place: str, item: Any) -> Related:
    fields = fields_at(
        place,
        item,
        ("id", "origin", "resource", "projection", "object", "naming", "filterByRobotName", "status", "cleanup"),
    )
    inner = fields.inner("object", "reference", "name", "selector", "namespace")
    return Related(
        id=fields.text("id", _ID),
        origin=fields.choice("origin", _SIDES),
        resource=_resource(fields),
        projection=_projection(fields),
        objects=_objects(inner),
        namespace=_template(inner, "namespace", paths=True) if "namespace" in inner else None,
        naming=_naming(fields),
        names_namespace="naming" in fields and "namespace" in fields.inner("naming", "namespace", "name"),
        filtered=fields.flag_or("filterByRobotName", None),
        status=fields.flag_or("status", False),
        keep=fields.choice_or("cleanup", {"delete": False, "keep": True}, False),
    )


def _objects(fields: Fields) -> Reference | Template | Selector:
    given = [form for form in ("reference", "name", "selector") if form in fields]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise ConfigError(f"{fields.place} has {found}; allowed: one of reference, name, selector")
    if "reference" in fields:
        return Reference(fields.text("reference", PATH_TEXT))
    return read_selector(fields) or _template(fields, "name", paths=True)


def _deletion(fields: Fields) -> Deletion:
    grace = fields.text_or("gracePeriod", Text(20), _GRACE)
    grace_seconds = seconds(grace)
    if grace_seconds is None or not _MINUTE <= grace_seconds <= _MONTH:
        raise wrong(fields.at("gracePeriod"), grace, "1m to 720h")
    return Deletion(
        blocking=fields.choice_or("mode", {"async": False, "blocking": True}, False),
        grace_seconds=grace_seconds,
        propagation=fields.choice_or("propagation", _PROPAGATIONS, "background"),
    )


def _api(fields: Fields) -> Api:
    versions = [text_at(place, item, _ANY) for place, item in fields.items("versions", _MOST_VERSIONS)]
    if len(set(versions)) != len(versions):
        raise ConfigError(f"{fields.at('versions')} has a version twice; allowed: each once")
    return Api(
        source=fields.choice("source", _SIDES),
        versions=tuple(versions) if "versions" in fields else None,
        paused=fields.flag_or("paused", False),
        allow_breaking=fields.flag_or("allowBreaking", False),
    )
