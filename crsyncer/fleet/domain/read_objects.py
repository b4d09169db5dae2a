"""Reads what API servers store into the values of the fleet. What is wrong in an object is a problem of that object.

API servers check placements by their schema; here it is read again, because a schema may be an older one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from sys import intern

from crsyncer.core.content.annotations import FILTER, ROBOT_LABEL, SPEC_SOURCE
from crsyncer.core.content.fields import Fields, Text, fields_at, json_problem, text_at, wrong
from crsyncer.core.content.object_content import is_deeper_than, json_size
from crsyncer.core.content.pointer import LONGEST, PATH, Pointer, parse
from crsyncer.core.content.selector import Selector, selector_at
from crsyncer.core.content.steps import Remove, Set
from crsyncer.core.kinds.kind_name import Resource, version_priority
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError
from crsyncer.fleet.domain.names import read_marks, shared
from crsyncer.fleet.domain.replica_plan import equals, owned_content
from crsyncer.fleet.domain.transport.keys import on_shard, split
from crsyncer.fleet.domain.transport.transports import target_of
from crsyncer.fleet.domain.values import (
    MOST_LEVELS,
    MOST_PLACEMENT_BYTES,
    PLACEMENT_FINALIZER,
    RELEASE,
    Entry,
    Override,
    OverrideStep,
    PlacedKind,
    Placement,
    Property,
    Reason,
    Rendering,
    ReplicaKey,
    Robot,
    Rollout,
    Row,
    Source,
    SourceKey,
    Strategy,
    Target,
    TemplateSource,
    Verdict,
)

_GROUP = Text(253, 0, "([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?", "an API group")
_PLURAL = Text(63, 1, "[a-z]([-a-z0-9]*[a-z0-9])?", "the plural of a kind in lower-case letters")
_TEMPLATE = Text(63, 1, "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "lower-case letters, digits and -")
_IDENTIFIER = Text(63, 1, "[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _")
_PATH_TEXT = Text(LONGEST, pattern=PATH, words="a JSON Pointer such as /spec/url")
_ANY = Text(253)
_CEL = Text(2048, 1)
_STRATEGIES = {each.value: each for each in Strategy}
_TARGETS = {each.value: each for each in Target if each is not Target.SHARED}
_TYPES = {name: name for name in ("string", "integer", "number", "boolean")}
_NOT_CONTENT = re.compile(r"/(apiVersion|kind|metadata|status|\*)(/|$)")
_METADATA = re.compile(r"/metadata/(labels|annotations)/[^/]+")
_AT_MOST = f"bytes; allowed: {MOST_PLACEMENT_BYTES}"
_PERCENT = re.compile(r"([1-9][0-9]?|100)%")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")


def robot_of(raw: Json) -> Robot:
    """A Robot of the inventory."""
    metadata = raw["metadata"]
    spec = raw.get("spec")
    fields = {key: text for key, text in spec.items() if isinstance(text, str)} if isinstance(spec, dict) else {}
    return Robot(
        name=metadata["name"],
        uid=metadata["uid"],
        labels=_texts(metadata, "labels"),
        annotations=_texts(metadata, "annotations"),
        fields=fields,
        terminating=metadata.get("deletionTimestamp") is not None,
    )


def source_of(raw: Json, resource: str) -> Source:
    """An object that placements may select."""
    metadata = raw["metadata"]
    body = {key: value for key, value in raw.items() if key != "status"}
    body["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    key = SourceKey(resource, metadata.get("namespace") or "", metadata["name"])
    is_terminating = metadata.get("deletionTimestamp") is not None
    return Source(key, metadata["uid"], body, terminating=is_terminating, has_status=bool(raw.get("status")))


def template_source(placement: Placement, template: TemplateSource) -> Source:
    """A template as a source: its uid is its placement's."""
    key = SourceKey(template.kind.full_name, placement.namespace, template.name, placement.name)
    body = {**template.object, "metadata": template.object.get("metadata") or {}}
    return Source(key, placement.uid, body, terminating=placement.terminating)


def row_of(
    raw: Json, resource: str, *, admitted: bool = False, stamped: Callable[[str], Rendering | None] = lambda _: None
) -> Row | None:
    """A replica, or the copy of a Shared source: both marks, and the name that follows from them; None: anything else.

    `admitted`: the server made this of our latest write (F3.5). `stamped` returns the rendering of a stamp, if it has
    it: a replica that equals it has that digest.
    """
    metadata = raw["metadata"]
    marks = read_marks(raw)
    robot = _texts(metadata, "labels").get(ROBOT_LABEL, "")
    target = None if marks is None else target_of(raw, resource, marks, robot)
    if marks is None or target is None:
        return None
    labels, annotations = _texts(metadata, "labels"), _texts(metadata, "annotations")
    own_labels = shared(tuple(key for key in marks.labels if key in labels))
    own_annotations = shared(tuple(key for key in marks.annotations if key in annotations))
    keys = shared(tuple(key for key in raw if key not in ("apiVersion", "kind", "metadata", "status")))
    made = stamped(marks.stamp)
    if made is not None and equals(raw, made, marks):
        content = made.stamp
    else:
        content = owned_content(raw, marks.labels, marks.annotations)
    return Row(
        namespace=intern(metadata.get("namespace") or ""),
        name=intern(metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        robot=intern(robot),
        target=target,
        marks=marks,
        content=content,
        keys=keys,
        labels=own_labels,
        annotations=own_annotations,
        admitted=content if admitted else "",
        generation=metadata.get("generation") or 0,
        terminating=metadata.get("deletionTimestamp") is not None,
    )


def not_served(name: str) -> str:
    """What is said of a kind that the cloud does not serve, or not for long: its CRD is being deleted."""
    return f"the cloud does not serve {on_shard(name)}"


def replica_key(row: Row, kind: str) -> ReplicaKey:
    """The source, robot, target and shard whose replica a row is; `kind` is that of its API server."""
    shard, resource = split(kind)
    return ReplicaKey(intern(resource), intern(row.marks.source_id), row.robot, row.target, intern(shard))


def kind_of(crd: Json, policies: Mapping[str, Json], *, inventory: str = "") -> PlacedKind:
    """A kind as its CRD in the cloud and the SyncPolicies there say (F2.3).

    `policies`: specs by resource; `inventory`: the kind of the Robots.
    """
    spec, metadata = crd["spec"], crd["metadata"]
    annotations = _texts(metadata, "annotations")
    served = [each for each in spec["versions"] if each.get("served")]
    storage = [each for each in served if each.get("storage")]
    chosen = next(iter(storage or sorted(served, key=lambda each: version_priority(each["name"]))), None)
    alive = chosen is not None and metadata.get("deletionTimestamp") is None and _is_established(crd)
    kind = PlacedKind(
        resource=metadata["name"],
        group=spec["group"],
        plural=spec["names"]["plural"],
        kind=spec["names"]["kind"],
        version=chosen["name"] if chosen is not None else "",
        namespaced=spec["scope"] == "Namespaced",
        has_status=chosen is not None and "status" in (chosen.get("subresources") or {}),
    )
    if not alive:
        return replace(kind, verdict=Verdict.NOT_SERVED, message=not_served(kind.resource))
    return _placeable(kind, annotations, policies, f"the CRD {kind.resource}", inventory)


def kind_in_discovery(
    resource: str, described: Json | None, policies: Mapping[str, Json], *, inventory: str = ""
) -> PlacedKind:
    """A kind without a CRD, as discovery describes it (None: it is not served), and the SyncPolicies of the cloud."""
    plural, _, group = resource.partition(".")
    kind = PlacedKind(
        resource,
        group,
        plural,
        kind="",
        version="",
        namespaced=True,
        has_status=False,
        sensitive=resource == "secrets",
    )
    if described is None:
        return replace(kind, verdict=Verdict.NOT_SERVED, message=not_served(resource))
    spec = described["spec"]
    [storage] = [each for each in spec["versions"] if each["storage"]]
    kind = replace(
        kind,
        kind=spec["names"]["kind"],
        version=storage["name"],
        namespaced=spec["scope"] == "Namespaced",
        has_status=bool(storage["subresources"]),
    )
    return _placeable(kind, {}, policies, f"no SyncPolicy in the cloud for {resource}", inventory)


def _placeable(
    kind: PlacedKind, annotations: Mapping[str, str], policies: Mapping[str, Json], what: str, inventory: str
) -> PlacedKind:
    """The kind with what its annotations, or else the SyncPolicy for it, say of the way of its objects.

    A Robot is never placed: beside the Robots its replicas would be Robots, which would get replicas of their own.
    """
    if kind.resource == inventory:
        message = f"{inventory} are the Robots: they say where replicas go, and are not placed"
        return replace(kind, verdict=Verdict.NOT_PLACEABLE, message=message)
    policy = policies.get(kind.resource)
    if policy is not None:
        chosen = policy.get("filter") or {}
        source, filtered = policy.get("specSource", annotations.get(SPEC_SOURCE)), chosen.get("byRobotName")
        filtered = annotations.get(FILTER) in _TRUE if filtered is None else filtered is True
    else:
        source, filtered = annotations.get(SPEC_SOURCE), annotations.get(FILTER) in _TRUE
    if source == "cloud" and filtered:
        return kind
    says = f"spec-source {source or 'nothing'}, filter-by-robot-name {str(filtered).lower()}"
    verdict = Verdict.PLACEABLE if source == "cloud" else Verdict.NOT_PLACEABLE
    message = f"{what} says {says}; needed: cloud, true"
    return replace(kind, verdict=verdict, message=message, shared=source == "cloud")


def _is_established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)


def unreadable(placement: Placement) -> str:
    """The reason of a placement's problem: it is TooLarge (F3.8), or Unreadable."""
    return str(Reason.TOO_LARGE) if placement.problem.endswith(_AT_MOST) else "Unreadable"


def placement_of(raw: Json) -> Placement:
    """A RobotPlacement. One that cannot be read has its `problem`, and selects nothing."""
    metadata = raw["metadata"]
    stored = raw.get("status")
    bare = Placement(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        uid=metadata["uid"],
        created=metadata.get("creationTimestamp") or "",
        generation=metadata.get("generation") or 0,
        terminating=metadata.get("deletionTimestamp") is not None,
        finalized=PLACEMENT_FINALIZER in (metadata.get("finalizers") or ()),
        release=_texts(metadata, "annotations").get(RELEASE, ""),
        status=stored if isinstance(stored, dict) else {},
    )
    kept = {key: value for key, value in raw.items() if key != "status"}
    if is_deeper_than(kept, MOST_LEVELS):
        return replace(bare, problem=f"the placement is nested more than {MOST_LEVELS} levels deep")
    if (size := json_size(kept)) > MOST_PLACEMENT_BYTES:
        return replace(bare, problem=f"the placement has {size} {_AT_MOST}")
    try:
        return _with_spec(bare, fields_at("spec", raw.get("spec"), ()))
    except ConfigError as error:
        return replace(bare, problem=str(error))


def _with_spec(bare: Placement, spec: Fields) -> Placement:
    rollout = spec.inner_or("rollout", _ROLLOUT, _rollout, None)
    placement = replace(
        bare,
        robot_selectors=_selectors(spec, "robotSelectors"),
        robot_names=frozenset(text_at(*item, _ANY) for item in spec.items("robotNames")),
        shared=spec.choice_or("mode", {"Replica": False, "Shared": True}, False),
        target=spec.choice_or("target", _TARGETS, Target.PER_ROBOT),
        entries=tuple(_entry(fields_at(*item, _ENTRY)) for item in spec.items("resources")),
        templates=tuple(_template(fields_at(*item, _TEMPLATES)) for item in spec.items("templates")),
        overrides=tuple(_override(fields_at(*item, ("robotSelector", "steps"))) for item in spec.items("overrides")),
        expand=spec.flag_or("expand", False),
        ready_when=spec.text_or("readyWhen", _CEL, ""),
        singleton=spec.choice_or("statusReturn", {"PerRobot": False, "Singleton": True}, False),
        collectors=tuple(text_at(*item, _ANY) for item in spec.items("statusCollectors")),
        rollout=rollout,
        keep_replicas=spec.choice_or("deletionPolicy", {"Delete": False, "KeepReplicas": True}, False),
    )
    if rollout is not None and not placement.ready_when:
        raise ConfigError(f"{spec.at('rollout')} needs {spec.at('readyWhen')}")
    own = {"templates": placement.templates, "overrides": placement.overrides, "expand": placement.expand}
    used = [name for name, value in (own | {"rollout": rollout is not None}).items() if value]
    if placement.shared and used:
        raise ConfigError(f"{spec.at('mode')} is Shared, which does not allow {spec.at(used[0])}")
    return placement


_ROLLOUT = (
    "groups", "maxConcurrency", "maxFailures", "minReadySeconds", "progressDeadlineSeconds", "offline", "paused",
)  # fmt: skip
_ENTRY = ("group", "resource", "names", "selectors", "strategy")
_TEMPLATES = ("name", "group", "resource", "strategy", "object")


def _selectors(fields: Fields, name: str) -> tuple[Selector, ...]:
    return tuple(selector_at(*item) for item in fields.items(name))


def _kind(fields: Fields) -> Resource:
    return Resource(fields.text_or("group", _GROUP, ""), fields.text("resource", _PLURAL))


def _entry(fields: Fields) -> Entry:
    return Entry(
        kind=_kind(fields),
        names=frozenset(text_at(*item, _ANY) for item in fields.items("names")),
        selectors=_selectors(fields, "selectors"),
        strategy=fields.choice_or("strategy", _STRATEGIES, Strategy.UPDATE),
    )


def _template(fields: Fields) -> TemplateSource:
    return TemplateSource(
        name=fields.text("name", _TEMPLATE),
        kind=_kind(fields),
        object=fields_at(fields.at("object"), fields.required("object"), ()).content,
        strategy=fields.choice_or("strategy", _STRATEGIES, Strategy.UPDATE),
    )


def _override(fields: Fields) -> Override:
    selector = selector_at(fields.at("robotSelector"), fields.content.get("robotSelector", {}))
    return Override(selector, tuple(_step(fields_at(*item, _VERBS)) for item in fields.items("steps")))


_VERBS = ("path", "set", "remove", "property")


def _step(fields: Fields) -> OverrideStep:
    path = fields.text("path", _PATH_TEXT)
    if _NOT_CONTENT.match(path) and not _METADATA.fullmatch(path):
        allowed = "a path to content, /metadata/labels/KEY or /metadata/annotations/KEY"
        raise ConfigError(f'{fields.place}.path is "{path}"; allowed: {allowed}')
    given = [verb for verb in _VERBS[1:] if verb in fields]
    if len(given) != 1:
        raise ConfigError(
            f"{fields.place} has {' and '.join(given) or 'no verb'}; allowed: one of set, remove, property"
        )
    return OverrideStep(fields.place, path, _verb(fields, given[0]))


def _verb(fields: Fields, name: str) -> Set | Remove | Property:
    match name:
        case "set":
            value = fields.inner("set", "value").required("value")
            if problem := json_problem(value, fields.at("set.value")):
                raise ConfigError(problem)
            return Set(value)
        case "remove":
            if fields.flag_or("remove", False) is not True:
                raise ConfigError(f"{fields.at('remove')} is false; allowed: true")
            return Remove()
        case _:
            inner = fields.inner("property", "name", "type")
            return Property(inner.text("name", _IDENTIFIER), inner.choice_or("type", _TYPES, "string"))


def _rollout(fields: Fields) -> Rollout:
    most = fields.content.get("maxConcurrency", "5%")
    is_share = isinstance(most, str) and _PERCENT.fullmatch(most)
    if not is_share and (not isinstance(most, int) or isinstance(most, bool) or most <= 0):
        raise wrong(fields.at("maxConcurrency"), most, "a number above 0, or 1% to 100%")
    return Rollout(
        groups=_selectors(fields, "groups"),
        max_concurrency=most,
        max_failures=_number(fields, "maxFailures", 0),
        min_ready_seconds=_number(fields, "minReadySeconds", 60),
        progress_deadline_seconds=_number(fields, "progressDeadlineSeconds", 1800),
        stamp_offline=fields.choice_or("offline", {"Defer": False, "Stamp": True}, False),
        paused=fields.flag_or("paused", False),
    )


def _number(fields: Fields, name: str, default: int) -> int:
    value = fields.content.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise wrong(fields.at(name), value, "a number from 0 on")
    return value


def strip_of(raw: Json) -> tuple[str, tuple[Pointer, ...]]:
    """The kind of a FieldStrip, and the paths that it removes. Raises ConfigError."""
    spec = fields_at("spec", raw.get("spec"), ())
    return _kind(spec).full_name, tuple(parse(text_at(*item, _PATH_TEXT)) for item in spec.items("remove"))


def _texts(metadata: Json, name: str) -> Mapping[str, str]:
    found = metadata.get(name)
    return found if isinstance(found, dict) else {}
