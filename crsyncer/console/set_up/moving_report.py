"""Judges what changes for a robot that still runs the Go cr-syncer: each difference becomes a check with a hint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from crsyncer.console.set_up.doctor_report import Check, Mark
from crsyncer.core.content.annotations import (
    FILTER,
    OBSERVED_GENERATION,
    ORPHANS,
    ROBOT_LABEL,
    SPEC_SOURCE,
    SUBTREE,
    SYNCER,
)
from crsyncer.core.content.object_content import labels
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Gap, Json, Key, Observation, Record, Side, View
from crsyncer.core.pair.actions import Create, Delete, Hold, Update, Why
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import view_of
from crsyncer.core.reports.text import count, some

HOME = "default"
"""The only namespace that the Go cr-syncer syncs."""
GATEWAY_PATH = "/apis/core.kubernetes"
"""The path that the Go cr-syncer puts behind the host of --remote-server."""
LABEL = "app=cr-syncer"
"""The label that the Go cr-syncer's chart gives to its Deployment and pods."""
NOTE = SYNCER + "remote-resource-version"
FINALIZER = ".synced.cr-syncer.cloudrobotics.com"
_SHOWN = 3
_ENDED = ("Succeeded", "Failed")
_TRUE = ("1", "t", "true")
_BOOLEANS = (*_TRUE, "0", "f", "false")
_RESTRICT = "sync that namespace only: --namespace default, or the key namespaces: [default]"


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The Go cr-syncer on the robot. None: not known, because the account may not list that."""

    deployments: Sequence[Json] | None
    pods: Sequence[Json] | None


class Pairs:
    """The objects of one kind on both sides, and what the Go cr-syncer left on them."""

    def __init__(self, policy: KindPolicy) -> None:
        self.policy = policy
        self.views: dict[Side, dict[Key, View]] = {side: {} for side in Side}
        self.local: set[Key] = set()
        """Objects on the robot without its label: they are not synced, but have their names."""
        self.finalizers: list[tuple[Side, Key]] = []
        self.noted = 0
        """Upstream objects with the resourceVersion that the Go cr-syncer noted on them."""
        self.observed = 0
        """Copies on the robot whose status has an observedGeneration."""

    def take(self, side: Side, key: Key, raw: Json) -> None:
        """Take one object of a list; of the cloud, its metadata is enough."""
        policy, metadata = self.policy, raw["metadata"]
        if policy.filtered and labels(raw).get(ROBOT_LABEL) != policy.robot:
            self.local.add(key)
            return
        self.views[side][key] = view_of(raw, policy, side)
        if any(str(each).endswith(FINALIZER) for each in metadata.get("finalizers") or ()):
            self.finalizers.append((side, key))
        self.noted += side is policy.upstream and NOTE in (metadata.get("annotations") or {})
        status = raw.get("status")
        self.observed += side is policy.downstream and isinstance(status, dict) and "observedGeneration" in status


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the agent will do with each object of a kind."""

    adopted: list[Key] = field(default_factory=list)
    own: list[Key] = field(default_factory=list)
    """Copies that crsyncer has adopted or made before."""
    created: list[Key] = field(default_factory=list)
    orphans: list[Key] = field(default_factory=list)
    """Deleted, because upstream does not have them."""
    ended: list[Key] = field(default_factory=list)
    """Deleted, because upstream is deleting the original, or has made it anew."""
    kept: list[Key] = field(default_factory=list)
    taken: list[Key] = field(default_factory=list)

    @property
    def writes(self) -> int:
        """The number of writes downstream."""
        return len(self.adopted) + len(self.created) + len(self.orphans) + len(self.ended)


def forecast(pairs: Pairs) -> Forecast:
    """What `decide` wants for each pair, when both sides have just been listed and nothing is remembered."""
    found, policy = Forecast(), pairs.policy
    upstream, downstream = pairs.views[policy.upstream], pairs.views[policy.downstream]
    for key in sorted(upstream.keys() | downstream.keys()):
        up, copy = upstream.get(key, Gap.ABSENT), downstream.get(key, Gap.ABSENT)
        if isinstance(up, View) and isinstance(copy, View) and copy.stamp and copy.stamp.upstream_uid == up.uid:
            found.own.append(key)
            continue
        match decide(Observation(up), Observation(copy), policy, Record()).content:
            case Create() if key in pairs.local:
                found.taken.append(key)
            case Create():
                found.created.append(key)
            case Update():
                found.adopted.append(key)
            case Delete(why=Why.GONE):
                found.orphans.append(key)
            case Delete():
                found.ended.append(key)
            case Hold():
                found.taken.append(key)
            case _ if isinstance(copy, View) and not copy.terminating and policy.downstream is Side.ROBOT:
                found.kept.append(key)
    return found


def judge_predecessor(found: Predecessor, *, agent_runs: bool) -> Check:
    """Whether the Go cr-syncer still runs on the robot, perhaps beside the agent."""
    check = partial(Check, "cr-syncer", side=Side.ROBOT)
    deployments = [raw["metadata"] for raw in found.deployments or () if raw["spec"].get("replicas", 1)]
    pods = [raw["metadata"] for raw in found.pods or () if (raw.get("status") or {}).get("phase") not in _ENDED]
    running = [*(("Deployment", each) for each in deployments), *(("pod", each) for each in pods)]
    if running:
        sort, metadata = running[0]
        what = f"{sort} {metadata['namespace']}/{metadata['name']}"
        stop = "stop what starts this pod"
        if sort == "Deployment":
            stop = f"kubectl -n {metadata['namespace']} scale deployment {metadata['name']} --replicas=0"
        if agent_runs:
            return check(Mark.FAIL, f"{what} runs beside crsyncer: each undoes the other's annotations", stop)
        return check(Mark.WARN, f"{what} still runs", f"just before you start crsyncer: {stop}")
    if found.deployments is None or found.pods is None:
        hint = f"look yourself: kubectl get deployments,pods -A -l {LABEL}"
        return check(Mark.UNKNOWN, "this account may not list Deployments and pods", hint)
    return check(Mark.OK, f"no Deployment or pod with the label {LABEL} runs")


def judge_flags(found: Predecessor, *, robot: str, server: str) -> Iterator[Check]:
    """Whether crsyncer has the robot's name and the cloud's address that the Go cr-syncer has."""
    for raw in [*(found.deployments or ()), *(found.pods or ())][:1]:
        containers = raw["spec"].get("template", raw)["spec"]["containers"]
        given = flags([str(argument) for each in containers for argument in each.get("args") or ()])
        name, remote = given.get("robot-name", ""), given.get("remote-server", "")
        if name != robot:
            message = f'the Go cr-syncer has --robot-name "{name}", crsyncer has "{robot}"'
            hint = f"robotName: {name}" if name else "is this the right robot?"
            yield Check("flags", Mark.FAIL, message, hint, Side.ROBOT)
        wanted = f"https://{remote.removeprefix('https://').rstrip('/')}{GATEWAY_PATH}"
        if remote and wanted != server:
            message = f"the Go cr-syncer asks {wanted}, crsyncer {server}"
            hint = f"is it the same cluster? If not: crsyncer cloud-kubeconfig --remote-server {remote}"
            yield Check("flags", Mark.WARN, message, hint, Side.CLOUD)
        if given.get("use-robot-jwt", "false") != "false":
            message = "the Go cr-syncer signs its own tokens (--use-robot-jwt), crsyncer reads one"
            yield Check("flags", Mark.WARN, message, "have a program write the JWT into the token file", Side.CLOUD)


def flags(arguments: Sequence[str]) -> Mapping[str, str]:
    """The values of Go's flags: -name, -name=value or -name value, with one or two dashes."""
    found = {}
    for argument, following in pairwise([*arguments, "-"]):
        if argument.startswith("-"):
            name, equals, value = argument.lstrip("-").partition("=")
            found[name] = value if equals else "true" if following.startswith("-") else following
    return found


def judge_reading(crd: Json, robot: str) -> Iterator[Check]:
    """Whether the annotations of a CRD mean to crsyncer what they mean to the Go cr-syncer."""
    resource, annotations = crd["metadata"]["name"], crd["metadata"].get("annotations") or {}
    source, text, subtree = annotations.get(SPEC_SOURCE), annotations.get(FILTER, "false"), annotations.get(SUBTREE)
    if not source:
        return
    found = []
    if source == Side.ROBOT:
        message = "newer versions of the Go cr-syncer do not sync kinds with spec-source robot; crsyncer does"
        found.append((message, f"if that is not wanted: kubectl annotate crd {resource} {SPEC_SOURCE}-"))
    nameless = text.lower() in _TRUE and not robot
    if nameless or text.lower() not in _BOOLEANS:
        why = "has no robot name to filter by" if nameless else f'takes {FILTER} "{text}" for false'
        message = f"the Go cr-syncer {why} and syncs all objects of the kind; crsyncer syncs none"
        found.append((message, "set robotName" if nameless else "set the annotation to true or false"))
    if subtree is not None and (not subtree.strip() or "." in subtree):
        meaning = f'one key named "{subtree}"' if subtree.strip() else "the whole status"
        message = f'the Go cr-syncer takes {SUBTREE} "{subtree}" for {meaning}; crsyncer does not sync the kind'
        found.append((message, "name one top-level key of status, or remove the annotation"))
    for message, hint in found:
        yield Check("annotations", Mark.WARN, message, hint, Side.ROBOT, resource)
    if not found:
        only = f"; only status.{subtree} is synced, as before" if subtree is not None else ""
        yield Check("annotations", Mark.OK, f"read as the Go cr-syncer reads them{only}", "", Side.ROBOT, resource)


def judge_pairs(pairs: Pairs, found: Forecast, *, namespaces: Sequence[str]) -> Iterator[Check]:
    """What becomes of the objects of one kind, and what differs for them. `namespaces`: empty for all."""
    policy = pairs.policy
    upstream, downstream, resource = policy.upstream, policy.downstream, policy.resource
    parts = [f"adopts {len(found.adopted)} in place, one write each, no status changes"] if found.adopted else []
    parts += [f"has adopted {len(found.own)} already"] if found.own else []
    parts += [f"creates {len(found.created)}: {_some(found.created)}"] if found.created else []
    what = f"crsyncer {'; '.join(parts)}" if parts else "there are no copies, and none to create"
    yield Check("copies", Mark.OK, what, "", downstream, resource)
    if found.taken:
        message = (
            f"NameTaken: {_some(found.taken)}: {count(len(found.taken), 'object')} that are not this robot's copies"
        )
        hint = "rename or delete one of the two objects"
        if downstream is Side.CLOUD:
            hint = "delete them in the cloud: crsyncer creates them again at once, with the robot's status"
        yield Check("copies", Mark.WARN, message, hint, downstream, resource)
    yield from _judge_orphans(found, policy)
    yield from _judge_namespaces(pairs, namespaces)
    if pairs.observed and policy.subtree is None and not policy.map_generation:
        message = f"observedGeneration in {count(pairs.observed, 'status')}: the Go cr-syncer writes the cloud's"
        message += " generation, or 0; crsyncer sends it unchanged"
        hint = f"to have it as before: kubectl annotate crd {resource} {OBSERVED_GENERATION}=map"
        yield Check("status", Mark.WARN, message, hint, downstream, resource)
    without = " and the ".join(side for side in Side if not policy.endpoint(side).status)
    if without:
        message = (
            f"no status subresource on the {without}: the status is written with the object, guarded by its version"
        )
        note = f"; {count(pairs.noted, 'object')} with the Go cr-syncer's note" if pairs.noted else ""
        hint = f"the account needs update on {policy.endpoint(upstream).plural}; {NOTE} does nothing any more"
        yield Check("status", Mark.WARN, f"{message}{note}", hint, upstream, resource)
    for side, key in pairs.finalizers[:1]:
        message = f"{count(len(pairs.finalizers), 'object')} with a finalizer *{FINALIZER}, such as {key}: crsyncer"
        message += " does not remove it, so a deletion waits for ever"
        where = f" -n {key.namespace}" if key.namespace else ""
        hint = f"remove it on that side: kubectl{where} edit {resource} {key.name}"
        yield Check("finalizers", Mark.WARN, message, hint, side, resource)


def _judge_orphans(found: Forecast, policy: KindPolicy) -> Iterator[Check]:
    """The objects that crsyncer deletes, or keeps, because upstream does not have them."""
    check = partial(Check, "orphans", side=policy.downstream, resource=policy.resource)
    keep = f"to keep what crsyncer did not make: kubectl annotate crd {policy.resource} {ORPHANS}=keep"
    abroad = [key for key in found.orphans if key.namespace not in ("", HOME)]
    at_home = [key for key in found.orphans if key.namespace in ("", HOME)]
    if abroad:
        where = f"outside of {HOME} that the {policy.upstream} does not have"
        message = f"crsyncer deletes {count(len(abroad), 'object')} {where}: {_some(abroad)}"
        yield check(Mark.FAIL, message, f"{_RESTRICT}; or {keep}")
    if at_home:
        where = f"that the {policy.upstream} does not have"
        message = f"crsyncer deletes {count(len(at_home), 'object')} {where}: {_some(at_home)}"
        yield check(Mark.WARN, message, f"the Go cr-syncer does so, too; {keep}")
    if found.kept:
        yield check(Mark.OK, f"crsyncer keeps {_some(found.kept)}, although the {policy.upstream} does not have them")


def _judge_namespaces(pairs: Pairs, namespaces: Sequence[str]) -> Iterator[Check]:
    """Whether namespaces are synced that the Go cr-syncer does not sync, or the other way round."""
    check = partial(Check, "namespaces", resource=pairs.policy.resource)
    if namespaces and pairs.policy.namespaced and HOME not in namespaces:
        only = ", ".join(namespaces)
        message = f"the Go cr-syncer syncs {HOME}, crsyncer only {only}: copies in {HOME} stay as they are"
        yield check(Mark.WARN, message, f"if that is not wanted, add {HOME} to namespaces")
    abroad = {side: sum(key.namespace not in ("", HOME) for key in pairs.views[side]) for side in Side}
    if any(abroad.values()):
        numbers = f"{abroad[Side.CLOUD]} in the cloud, {abroad[Side.ROBOT]} on the robot"
        message = f"crsyncer also syncs the objects outside of {HOME} ({numbers}), the Go cr-syncer does not"
        yield check(Mark.WARN, message, f"if that is not wanted, {_RESTRICT}")


def judge_cost(compared: Mapping[str, tuple[Pairs, Forecast]]) -> Check:
    """What the first start costs."""
    listed, writes = dict.fromkeys(Side, 0), dict.fromkeys(Side, 0)
    for pairs, found in compared.values():
        writes[pairs.policy.downstream] += found.writes
        for side in Side:
            listed[side] += len(pairs.views[side])
    message = (
        f"the first start lists {count(listed[Side.CLOUD], 'object')} of the cloud and {listed[Side.ROBOT]} of the"
        f" robot, and writes {writes[Side.ROBOT]} times on the robot and {writes[Side.CLOUD]} times in the cloud;"
        " statuses are sent where they differ"
    )
    return Check("cost", Mark.OK, message)


def _some(keys: Sequence[Key]) -> str:
    return some([*map(str, keys)], _SHOWN)
