"""Judges the facts about a fleet's set-up for `fleet doctor`: each becomes a check with a hint where it is not ok."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from crsyncer.cli.fleet.whole_fleet import WholeFleet
from crsyncer.console.set_up.doctor_report import Check, Mark
from crsyncer.core.content.annotations import ROOT, SHARED
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.text import count, duration, some
from crsyncer.errors import SyncError
from crsyncer.fleet.domain.names import SOURCE, is_robot_name
from crsyncer.fleet.domain.renderings import uses_properties
from crsyncer.fleet.domain.resolution import unresolved
from crsyncer.fleet.domain.shared.source_marks import marked_by
from crsyncer.fleet.domain.shown.fleet_facts import Leader, Reported
from crsyncer.fleet.domain.shown.fleet_reasons import START_HINT, items
from crsyncer.fleet.domain.transport.transports import TRANSPORTS
from crsyncer.fleet.domain.values import PROPERTIES_NAMESPACE, Placement, Target, Verdict

_SILENT_SECONDS = 86400.0
_WAVE = 50
"""Writes per second that a namespace of many robots should be able to take."""
_MOST_EVENTS = 150_000
"""Watchers times writes per second that an API server keeps up with (G1.2)."""
_check = partial(Check, side=Side.CLOUD)


def judge_leader(leader: Leader, now: float, namespace: str) -> Check:
    """Whether a controller holds the Lease and renews it."""
    age = "" if leader.renewed is None else f", renewed {duration(now - leader.renewed)} ago"
    if leader.is_running(now):
        return _check("controller", Mark.OK, f"{leader.holder} leads{age}")
    held = f"{leader.holder} held it last{age}" if leader.holder else "nobody holds it"
    message = f"no controller leads by the Lease in namespace {namespace}: {held}"
    return _check("controller", Mark.WARN, message, START_HINT, health="healthy")


def judge_crd(shipped: Json, stored: Json | SyncError | None) -> Check:
    """Whether a CRD of ours is installed as this version has it; an error: it cannot be read."""
    name = shipped["metadata"]["name"]
    check = partial(_check, "crd", resource=name)
    hint = "crsyncer fleet crds | kubectl apply --server-side -f -"
    if isinstance(stored, SyncError):
        return check(Mark.UNKNOWN, f"cannot be read: {stored}", stored.hint)
    if stored is None:
        return check(Mark.FAIL, "is not installed", hint)
    conditions = {each.get("type"): each.get("status") for each in (stored.get("status") or {}).get("conditions") or ()}
    if conditions.get("Established") != "True":
        return check(Mark.FAIL, "is not established", f"kubectl describe crd {name}")
    if _versions(shipped) != _versions(stored):
        return check(Mark.WARN, "is that of another version of crsyncer", hint)
    return check(Mark.OK, "installed, of this version")


def _versions(crd: Json) -> Json:
    """What decides what a server takes and keeps."""
    return {each["name"]: [each["schema"], each.get("subresources")] for each in crd["spec"]["versions"]}


def judge_rights(found: Mapping[str, Mapping[str, bool | None]]) -> Iterator[Check]:
    """Whether the account may do all that the controller does: by place and resource, each verb (None: no answer)."""
    hint = "apply what crsyncer fleet manifests prints; is this the controller's account?"
    for resource, verbs in found.items():
        missing = [verb for verb, allowed in verbs.items() if allowed is False]
        unknown = [verb for verb, allowed in verbs.items() if allowed is None]
        check = partial(_check, "permissions", resource=resource)
        if missing:
            yield check(Mark.FAIL, f"may not {', '.join(missing)}", hint)
        elif unknown:
            yield check(Mark.UNKNOWN, f"no access review of {', '.join(unknown)}", "try again")
        else:
            yield check(Mark.OK, f"may {', '.join(verbs)}")


def judge_fleet(
    found: WholeFleet,
    reports: Mapping[str, Reported],
    *,
    has_properties: bool,
    expressions: str,
    problems: Mapping[str, str],
) -> Iterator[Check]:
    """What is to be said of the fleet itself. `expressions`: why there is no CEL here; empty: there is.

    `problems`: by placement, as NAMESPACE/NAME, what is wrong with its `readyWhen`.
    """
    yield _robots(found)
    yield from _silent(found, reports)
    yield _properties(found.fleet.index.placements.values(), exists=has_properties)
    yield from _kinds(found)
    yield from _placements(found, problems)
    yield from _marked(found)
    yield from _left_as_shared(found)
    yield from _strays(found)
    yield from _crowded(found)
    yield from _expressions(found.fleet.index.placements.values(), expressions)


def _robots(found: WholeFleet) -> Check:
    settings, robots = found.settings, found.fleet.index.robots
    check = partial(_check, "robots", resource=settings.robots)
    wrong = sorted(name for name in robots if not is_robot_name(name))
    if wrong:
        return check(Mark.WARN, f"no robot's name: {some(wrong)}", "a DNS label of at most 57 characters")
    if not robots:
        message = f"there are none in namespace {settings.robots_namespace}: nothing is placed, nothing is removed"
        return check(Mark.WARN, message, "make one for each robot, or correct --robots and --robots-namespace")
    return check(Mark.OK, f"{count(len(robots), 'robot')} in namespace {settings.robots_namespace}")


def _silent(found: WholeFleet, reports: Mapping[str, Reported]) -> Iterator[Check]:
    """Robots that are offline for a day: their agents may not report any more (F9.1)."""
    late = {
        name: found.now - last
        for name in found.fleet.index.robots
        if (last := reports.get(name, Reported()).last) is not None and found.now - last > _SILENT_SECONDS
    }
    if late:
        message = f"offline for more than a day: {some(sorted(late, key=lambda name: -late[name]))}"
        hint = "if an agent does not report any more: kubectl delete robotsyncstates NAME, in robot-NAME or default"
        yield _check("reports", Mark.WARN, message, hint)


def _properties(placements: Iterable[Placement], *, exists: bool) -> Check:
    used = sorted(each.text for each in placements if uses_properties(each))
    if exists or not used:
        rest = "" if exists else " does not exist; no placement needs it"
        return _check("properties", Mark.OK, f"namespace {PROPERTIES_NAMESPACE}{rest}")
    message = f"namespace {PROPERTIES_NAMESPACE} does not exist, and {some(used)} may use properties"
    return _check("properties", Mark.WARN, message, f"kubectl create namespace {PROPERTIES_NAMESPACE}")


def _kinds(found: WholeFleet) -> Iterator[Check]:
    index = found.fleet.index
    named, replicas = index.named_kinds(), Counter(key.resource for key in found.fleet.rows)
    where = " on the shards that were read" if found.fleet.unread else ""
    for name, kind in sorted((name, kind) for name, kind in index.kinds.items() if kind.shard == ROOT):
        check = partial(_check, "kind", resource=name)
        if kind.shared and name not in named and not replicas[name]:
            continue  # all robots get it, and no placement has to do with that
        if kind.verdict is not Verdict.PLACEABLE:
            yield check(Mark.FAIL, f"{kind.verdict}: {kind.message}", "a placement names it: correct one of both")
        elif name in found.acted:
            message = "controllers in the cloud act on its objects: they would run there what robots shall run"
            yield check(Mark.WARN, message, "place it only where the API server has no such controllers")
        elif name in found.fleet.listed:
            sources = count(index.count(name), "source")
            yield check(Mark.OK, f"{sources} selected, {count(replicas[name], 'replica')}{where}")
    for error in found.failures:
        yield _check(
            "kind", Mark.FAIL, str(error), error.hint or "its replicas stay as they are until it can be listed"
        )


def _placements(found: WholeFleet, problems: Mapping[str, str]) -> Iterator[Check]:
    """Placements that cannot be followed, or select nothing."""
    index = found.fleet.index
    for text, placement in sorted(index.placements.items()):
        check = partial(_check, "placement", resource=text)
        home, stored = found.settings.controller_namespace, items(placement.status, "conditions")
        collected = next((each for each in stored if each.get("type") == "Collected"), {})
        if trouble := unresolved(found.fleet, placement, home=home, problem=problems.get(text, "")):
            yield check(Mark.FAIL, f"{trouble.reason}: {trouble.message}", "crsyncer fleet status has a hint")
        elif collected.get("status") == "False":
            message = f"{collected.get('reason')}: {collected.get('message')}"
            yield check(Mark.FAIL, message, "crsyncer fleet status has a hint")
        elif placement.terminating:
            yield check(Mark.OK, f"is being deleted, {count(found.fleet.bound[placement.uid], 'replica')} left")
        elif not index.robots_of(text):
            yield check(Mark.WARN, "selects no robot", "correct robotSelectors or robotNames, or label the Robots")
        elif not index.sources_of(text):
            yield check(Mark.WARN, "selects no source", f"its sources must be in namespace {placement.namespace}")
        else:
            robots, sources = len(index.robots_of(text)), len(index.sources_of(text))
            yield check(Mark.OK, f"{count(sources, 'source')} for {count(robots, 'robot')}")


def _marked(found: WholeFleet) -> Iterator[Check]:
    """Objects with our marks that are no replicas: nobody writes or removes them (F3.2)."""
    taken = _handed_over(found)
    names = ["/".join(filter(None, each)) for each in found.marked if each not in taken]
    if names:
        hint = f"remove the label {SOURCE} from them, or delete them"
        yield _check("marks", Mark.WARN, f"no replicas, though they have their label: {some(sorted(names))}", hint)


def _handed_over(found: WholeFleet) -> Collection[tuple[str, str, str]]:
    """The places of replicas that are wanted and not there: an object with the label is handed over (F3.7)."""
    index, places = found.fleet.index, set[tuple[str, str, str]]()
    if found.marked:
        for key in found.fleet.all_keys() - found.fleet.rows.keys():
            governor, kind = index.governor(key), index.kinds[key.resource]
            if governor is not None:
                where = TRANSPORTS[key.target].address(governor[1], key.robot, namespaced=kind.namespaced)
                places.add((key.kind, *where))
    return places


def _left_as_shared(found: WholeFleet) -> Iterator[Check]:
    """Sources with the mark of a Shared placement that is gone: robots go on to withhold statuses (F10.3)."""
    index = found.fleet.index
    names = [
        "/".join(filter(None, key[:3]))
        for key, source in index.sources.items()
        if (uid := marked_by(source)) and index.placement(uid) is None and index.shared_governor(key) is None
    ]
    if names:
        message = f"sources that are marked by placements that are gone, and so get no status: {some(sorted(names))}"
        yield _check("shared", Mark.WARN, message, f"remove the annotation {SHARED} from them")


def _strays(found: WholeFleet) -> Iterator[Check]:
    """Replicas of a placement that is gone without a Decision: nobody removes them (F5.2)."""
    index, remembered = found.fleet.index, {each.placement_uid for each in found.decisions}
    names = [
        "/".join(filter(None, (key.kind, row.namespace, row.name)))
        for key, row in found.fleet.rows.items()
        if index.governor(key) is None
        and index.placement(row.marks.placement) is None
        and row.marks.placement not in remembered
    ]
    if names:
        message = f"replicas of placements that are gone, which no Decision remembers: {some(sorted(names))}"
        yield _check("strays", Mark.WARN, message, "they stay until somebody deletes them: kubectl delete")


def _crowded(found: WholeFleet) -> Iterator[Check]:
    """Namespaces that so many robots watch that they fall behind (G1.2)."""
    index, robots = found.fleet.index, defaultdict[str, set[str]](set)
    for text, placement in index.placements.items():
        if placement.target is Target.SAME:
            robots[placement.namespace] |= index.robots_of(text)
    for namespace, watchers in sorted(robots.items()):
        if len(watchers) * _WAVE > _MOST_EVENTS:
            most = _MOST_EVENTS // len(watchers)
            message = f"{len(watchers)} robots share namespace {namespace}: above {most} writes/s they fall behind"
            yield _check("fan-out", Mark.WARN, message, "use target PerRobot: a namespace for each robot")


def _expressions(placements: Iterable[Placement], problem: str) -> Iterator[Check]:
    using = sorted(each.text for each in placements if each.ready_when or each.collectors)
    if using:
        message = f"{problem}; {some(using)} need it" if problem else f"CEL is there for {some(using)}"
        mark, hint = (
            (Mark.WARN, "install the extra `expressions` where the controller runs") if problem else (Mark.OK, "")
        )
        yield _check("expressions", mark, message, hint)
