"""The SyncPolicies of a robot: which kind each is for, and what comes of it and of the annotations of its CRD (C1)."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from crsyncer.core.content.annotations import DRIFT, FILTER, OBSERVED_GENERATION, ORPHANS, SPEC_SOURCE, SUBTREE
from crsyncer.core.content.marks import Marks
from crsyncer.core.content.mutation import Expressions, shape_of
from crsyncer.core.content.object_content import is_deeper_than, stamp_of
from crsyncer.core.content.shape import AS_RECEIVED, Shape
from crsyncer.core.content.steps import Cel, Render, Step
from crsyncer.core.content.template import NAMESPACE, ROBOT, read_template
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.kinds.projection import projected
from crsyncer.core.kinds.read_kind import policy_by, read_flag, read_policy
from crsyncer.core.kinds.sync_policy import (
    API_VERSION,
    KIND,
    Api,
    Filter,
    SyncPolicy,
    is_closed,
    label_problems,
    named_kind,
    read_sync_policy,
)
from crsyncer.core.kinds.version_choice import pinned
from crsyncer.core.model import Json
from crsyncer.core.pair.finalizer_calls import finalizer
from crsyncer.errors import ConfigError

_LABEL = re.compile(r"/metadata/labels/[^/*]+")
_FIELDS = {
    SPEC_SOURCE: "spec.specSource",
    FILTER: "spec.filter.byRobotName",
    SUBTREE: "spec.subtree",
    OBSERVED_GENERATION: "spec.observedGeneration",
    DRIFT: "spec.conflict",
    ORPHANS: "spec.orphans",
}
"""The field of a SyncPolicy for the same setting as an annotation."""
_AS_ANNOTATED = {"upstream": "revert"}
"""A field's value that an annotation calls otherwise."""
DEEPEST = 200
"""Levels of a SyncPolicy object: more would overflow the stack of whatever reads it."""
_LONGEST_SELECTOR = 3000
"""Characters: servers and gateways refuse a URL above 8 KiB, in which a character may take three."""
API, EVERYTHING = "api", "*"
"""Entries of `policies.trust` that are no kinds (C1.6)."""
_CONFINED = "this agent is confined to namespaces; allowed: {namespace}"
NOT_SERVED = "the robot does not serve this kind"


@dataclass(frozen=True, slots=True)
class PolicyObject:
    """A SyncPolicy object on the robot."""

    name: str
    named: Resource | None
    """The kind that it names; None: that cannot be read."""
    policy: SyncPolicy | None
    """None: it cannot be read."""
    problem: str = ""
    """Why it cannot be followed, whatever else there is on the robot; empty: it can."""
    shape: Shape = AS_RECEIVED
    """What it makes of objects, but for the robot's name."""
    untrusted: frozenset[str] = frozenset()
    """The kinds that it names and may name only if they have a CRD: it is a copy (C1.6)."""

    @property
    def resource(self) -> str:
        """The kind that it names, such as orders.lab.example.com; empty: that cannot be read."""
        return "" if self.named is None else self.named.full_name

    def is_for(self, resource: str) -> bool:
        """Whether it is for a kind. A wrong policy for a kind that no policy may name does not stop that kind."""
        return self.named is not None and self.resource == resource and not is_closed(self.named)


def read_object(raw: Json, expressions: Callable[[], Expressions], trust: Collection[str] = ()) -> PolicyObject:
    """The SyncPolicy in an object that an API server sent, also a wrong one.

    `expressions` is called where it has steps: whoever has none need not have the languages (C4.5). `trust` is what the
    robot lets copies of SyncPolicies ask for (C1.6).
    """
    name, of_kind = str(raw["metadata"]["name"]), named_kind(raw.get("spec"))
    if is_deeper_than(raw, DEEPEST):  # also what a schema lets through, such as the value of `set`
        return PolicyObject(name, of_kind, None, f"it is nested more than {DEEPEST} levels deep")
    try:
        policy = read_sync_policy({"apiVersion": API_VERSION, "kind": KIND, **raw})
        shape = shape_of(policy.mutations, keep_local=bool(policy.keep_local), expressions=expressions)
    except ConfigError as error:
        problem = "; ".join(filter(None, (str(error), error.hint)))
        return PolicyObject(name, of_kind, None, problem)
    if stamp_of(raw) is None or EVERYTHING in trust:
        return PolicyObject(name, of_kind, policy, shape=shape)
    problem = ""
    if policy.api is not None and API not in trust:
        problem = f"it is a copy and has spec.api; allowed: {API} in policies.trust (--trust)"
    named = {policy.resource.full_name, *(each.resource.full_name for each in policy.related)}
    return PolicyObject(name, of_kind, policy, problem, shape, frozenset(named - set(trust)))


def policy_of_kind(
    crd: Json, robot: str, *, namespaces: Namespaces = EVERYWHERE, objects: Sequence[PolicyObject] = ()
) -> KindPolicy | None:
    """What a robot's CRD and the SyncPolicies for its kind ask for; None when the kind is not ours.

    What is wrong never fails open: the policy then has a `problem`, and nothing may be synced (C1.2, C1.3).
    """
    if not objects:
        return read_policy(crd, robot, namespaces=namespaces)
    annotations = crd.get("metadata", {}).get("annotations") or {}
    source = annotations.get(SPEC_SOURCE) or ""
    own = _agreed(objects)
    if isinstance(own, str):
        # Nothing of such a policy is used: the kind only has a row that says so.
        found = policy_by(annotations | {SPEC_SOURCE: source or "cloud"}, crd, robot, namespaces=namespaces)
        return replace(found, problem=own)
    place = f"of SyncPolicy {own.name}"
    settings = _settings(own)
    places = {key: f"{_FIELDS[key]} {place}" for key in settings}
    problems = [*_clashes(settings, annotations, places)]
    if not source and SPEC_SOURCE not in settings:
        problems.append(f"neither {_FIELDS[SPEC_SOURCE]} {place} nor the annotation {SPEC_SOURCE} is set")
        settings[SPEC_SOURCE] = "cloud"
    found = policy_by(
        _merged(settings, annotations, named=own.naming is not None), crd, robot, namespaces=namespaces, places=places
    )
    given = {"resource": own.resource.version, "projection": own.projection and own.projection.version}
    field, version = next(((name, text) for name, text in given.items() if text), ("", None))
    if version is not None:
        versions = pinned(version, found.versions)
        if not versions and found.versions:
            served = ", ".join(version.name for version in found.versions if version.served)
            problems.append(f'spec.{field}.version {place} is "{version}"; the robot serves {served}')
        found = replace(found, versions=versions or found.versions)
    found = replace(found, sync_policy=own)
    if own.projection is not None:
        found = projected(found, own.projection)
    if found.sensitive:
        problems += _sensitive_problems(own, place)
    if len(found.selector) > _LONGEST_SELECTOR:
        problems.append(
            f"spec.filter.selector {place} is too long; allowed: {_LONGEST_SELECTOR} characters in a request"
        )
    if not found.has_crd and own.api is None:
        problems += _built_in_problems(objects[0], found, place)
    problems += _naming_problems(
        own, annotations, robot=robot, namespaces=namespaces if found.namespaced else EVERYWHERE
    )
    if found.blocking:
        problems += _name_problems(own.name, robot)
    problems += _related_problems(own, robot=robot, namespaced=found.namespaced, namespaces=namespaces)
    problems += label_problems(own, Filter(found.filtered, own.filter.selector))
    shape = replace(objects[0].shape, marks=Marks)
    return replace(
        found,
        problem="; ".join(filter(None, (*problems, found.problem))),
        shape=replace(shape, robot=robot) if shape.steps else shape,
    )


def _sensitive_problems(policy: SyncPolicy, place: str) -> Iterator[str]:
    """What a policy for Secrets must not ask for: it would have values stored, or told (C5.6)."""
    if policy.keep_local:
        yield f"spec.conflict {place} is keepLocal; allowed for secrets: upstream"
    if policy.mutations.up:
        yield f"spec.mutations.up {place} is set; allowed for secrets: mutations.down only, no status of them is synced"
    for step in policy.mutations.down:
        if step.pointer[0] == "metadata" and _reads_values(step):
            yield (
                f"{step.place} {place} puts what it reads of a Secret into {step.path}, which is shown; "
                "allowed for secrets: templates that read /metadata/labels/KEY"
            )
    for number, each in enumerate(policy.related):
        for field, path in each.paths:
            if not _LABEL.fullmatch(path):
                wrong = f"spec.related[{number}].{field} {place} reads {path} of a Secret"
                yield f"{wrong}; allowed: /metadata/labels/KEY"


def _reads_values(step: Step) -> bool:
    """Whether a step may read more of an object than labels, and what is at its own path."""
    match step.verb:
        case Cel():
            return True
        case Render(template):
            return not all(map(_LABEL.fullmatch, template.path_texts))
        case _:
            return False


def _built_in_problems(found: PolicyObject, kind: KindPolicy, place: str) -> Iterator[str]:
    """Why a kind without a CRD is not synced (C1.4, C1.6)."""
    if distrusted := not_trusted(found, kind.resource):
        yield f"SyncPolicy {found.name}: {distrusted}"
    if not kind.selector:
        fields = "spec.filter.byRobotName: true or a selector that is not empty"
        yield f"{kind.resource} has no CRD, and spec.filter {place} selects all of its objects; allowed: {fields}"


def problem_of(found: PolicyObject, objects: Sequence[PolicyObject], kind_problem: str | None) -> str:
    """Why a SyncPolicy is not followed; empty: it is. `kind_problem` is its kind's, None: the kind is not known.

    `objects` are the SyncPolicies for that kind.
    """
    if found.problem:
        return found.problem
    if kind_problem is None:
        agreed = _agreed(objects)
        if isinstance(agreed, str):
            return agreed
        return "" if agreed.api is not None else not_trusted(found, found.resource) or NOT_SERVED
    return kind_problem


def related_problem(found: PolicyObject, problem_of_kind: Callable[[str], str | None]) -> str:
    """Why related objects of a SyncPolicy are not synced, although those of its kind are; empty: they are (C5).

    `problem_of_kind(resource)` is empty where a kind can be synced, and None where it is not known.
    """
    related = found.policy.related if found.policy is not None else ()
    problems = {name: problem_of_kind(name) for name in sorted({each.resource.full_name for each in related})}
    return "; ".join(f"spec.related: {name} is not synced: {why}" for name, why in problems.items() if why)


def travelling_api(objects: Sequence[PolicyObject]) -> Api | None:
    """How the CRD of a kind travels, by the SyncPolicies for it; None: it does not (C8)."""
    agreed = _agreed(objects) if objects else ""
    return None if isinstance(agreed, str) else agreed.api


def not_trusted(found: PolicyObject, resource: str) -> str:
    """Why a SyncPolicy may not name a kind that has no CRD; empty: it may (C1.6)."""
    if resource not in found.untrusted:
        return ""
    return f"it is a copy and names {resource}, which has no CRD; allowed: {resource} in policies.trust (--trust)"


def _agreed(objects: Sequence[PolicyObject]) -> SyncPolicy | str:
    """The policy to follow of those for one kind; or why there is none."""
    if len(objects) > 1:
        names = " and ".join(sorted(each.name for each in objects))
        return f"the SyncPolicies {names} are for the same kind; allowed: one"
    one = objects[0]
    return f"SyncPolicy {one.name}: {one.problem}" if one.policy is None or one.problem else one.policy


def _settings(policy: SyncPolicy) -> dict[str, str]:
    """What a policy sets, by the annotation for the same setting."""

    def word(value: bool | None, no: str, yes: str) -> str | None:
        return None if value is None else yes if value else no

    texts = {
        SPEC_SOURCE: policy.upstream and policy.upstream.value,
        FILTER: word(policy.filter.by_robot_name, "false", "true"),
        SUBTREE: policy.subtree,
        OBSERVED_GENERATION: word(policy.map_generation, "copy", "map"),
        DRIFT: word(policy.keep_local, "upstream", "keepLocal"),
        ORPHANS: word(policy.keep_orphans, "delete", "keep"),
    }
    return {key: text for key, text in texts.items() if text is not None}


def _clashes(settings: Mapping[str, str], annotations: Json, places: Mapping[str, str]) -> Iterator[str]:
    """The fields that differ from their annotation, each with both (C1.2)."""
    for key, wanted in settings.items():
        text = annotations.get(key)
        if text is None or (key == SPEC_SOURCE and not text):
            continue
        same = read_flag(text) is read_flag(wanted) if key == FILTER else text == _AS_ANNOTATED.get(wanted, wanted)
        if not same:
            yield f'{places[key]} is {wanted}, but the annotation {key} is "{text}"; allowed: one, or both alike'


def _naming_problems(policy: SyncPolicy, annotations: Json, *, robot: str, namespaces: Namespaces) -> Iterator[str]:
    """Why copies cannot be called as a policy says, beside what the policy alone shows."""
    naming, place = policy.naming, f"of SyncPolicy {policy.name}"
    if naming is None:
        return
    if not robot and ROBOT in naming.namespace.placeholders | naming.name.placeholders:
        yield f"spec.naming {place} has {{robot}}, but this agent has no robot name; set --robot-name"
    if annotations.get(ORPHANS) == "delete":
        yield f'spec.naming {place} is set, and the annotation {ORPHANS} is "delete"; allowed with naming: keep'
    if namespaces != EVERYWHERE and naming.namespace != read_template(f"{{{NAMESPACE}}}", paths=False):
        yield f"spec.naming.namespace {place} is set, but {_CONFINED}"


def _related_problems(policy: SyncPolicy, *, robot: str, namespaced: bool, namespaces: Namespaces) -> Iterator[str]:
    """Why related objects cannot be found, or their copies be called, as a policy says."""
    place = f"of SyncPolicy {policy.name}"
    for number, each in enumerate(policy.related):
        field, naming = f"spec.related[{number}]", each.naming
        if naming is not None and not robot and ROBOT in naming.namespace.placeholders | naming.name.placeholders:
            yield f"{field}.naming {place} has {{robot}}, but this agent has no robot name; set --robot-name"
        if namespaces == EVERYWHERE:
            continue
        own = read_template(f"{{{NAMESPACE}}}", paths=False)
        if naming is not None and naming.namespace != own:
            yield f"{field}.naming.namespace {place} is set, but {_CONFINED}"
        if namespaced and each.namespace not in (None, own):
            yield f"{field}.object.namespace {place} is set, but {_CONFINED}"


def _merged(settings: Mapping[str, str], annotations: Json, *, named: bool) -> Json:
    """The annotations of a CRD with the settings of its policy; `named`: it makes the names of copies."""
    given = {key: _AS_ANNOTATED.get(text, text) for key, text in settings.items() if text != "keepLocal"}
    # Whoever has not annotated the CRD has not read that annotations delete what upstream does not have.
    orphans = {} if annotations.get(SPEC_SOURCE) and not named else {ORPHANS: "keep"}
    return {**orphans, **annotations, **given}


def _name_problems(policy: str, robot: str) -> Iterator[str]:
    """Why a robot cannot have a finalizer (C6.1)."""
    try:
        finalizer(robot)
    except ConfigError as error:
        yield f"spec.deletion.mode of SyncPolicy {policy} is blocking, but {error}"
