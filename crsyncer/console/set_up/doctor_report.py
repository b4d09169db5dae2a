"""Judges the facts about a set-up: each becomes a check with a hint where it is not ok."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from crsyncer.console.compare.lister import Configuration
from crsyncer.console.screens.reasons import MAX_CLOCK_SKEW_SECONDS, kind_hint, worst
from crsyncer.console.screens.report import EXIT_CODES, STOPPED
from crsyncer.core.accounts.access import Need, needs_text
from crsyncer.core.accounts.confined_account import confined_hint
from crsyncer.core.content.annotations import OURS, SETTINGS, SPEC_SOURCE, SYNCER
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import problem_of, related_problem
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.findings import DiskFacts, StoreFindings, Validity
from crsyncer.core.reports.text import duration, rfc3339

SCHEMA = "crsyncer.doctor/v1"
SOON = 14 * 86400.0
"""Seconds before the end of a credential that is renewed by hand: from then on it is a warning."""
LITTLE, TOO_LITTLE = 128 << 20, 16 << 20
"""Free bytes: a warning, and a failure. A store of 10,000 objects and its log need more."""
NETWORK_DISKS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs"})
"""File systems without the shared memory that SQLite's write-ahead log needs (sqlite.org/wal.html)."""
MEMORY_DISKS = frozenset({"tmpfs", "ramfs"})


class Mark(StrEnum):
    """The result of a check. UNKNOWN: it could not be made; this does not count against the set-up."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


_HEALTHS = {Mark.OK: "healthy", Mark.UNKNOWN: "healthy", Mark.WARN: "degraded", Mark.FAIL: "attention"}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report. `health` is its effect on the whole; empty: the effect of its mark."""

    name: str
    state: Mark
    message: str
    hint: str = ""
    side: Side | None = None
    resource: str = ""
    health: str = ""


_RENEW = {
    "ca": "add the next CA to certificate-authority-data of the kubeconfig",
    "server-certificate": "renew the API server's certificate (k3s renews it at a restart)",
    "client-certificate": "renew the client certificate in the kubeconfig (k3s renews it at a restart)",
    "token": "create a new token and replace the old one in the kubeconfig; the agent reads it again",
}


def judge_validity(validity: Validity, side: Side, now: float) -> Check:
    """Whether a certificate or token is valid, and for how long; `now` is Unix time."""
    check = partial(Check, validity.name, side=side)
    if validity.starts is not None and validity.starts > now:
        return check(Mark.FAIL, f"not valid before {rfc3339(validity.starts)}", "is this machine's clock right?")
    if validity.objection and (validity.ends is None or validity.ends > now):
        return check(Mark.FAIL, validity.objection, validity.remedy)
    if validity.ends is None:
        return check(Mark.OK, "has no end date")
    until, left = rfc3339(validity.ends), validity.ends - now
    if left <= 0:
        return check(Mark.FAIL, f"expired {duration(-left)} ago, at {until}", _RENEW[validity.name])
    if validity.renewed:
        return check(Mark.OK, f"valid until {until}, renewed automatically")
    mark, hint = (Mark.WARN, _RENEW[validity.name]) if left < SOON else (Mark.OK, "")
    return check(mark, f"valid for {duration(left)}, until {until}", hint)


def judge_clock(ahead: float | None, side: Side) -> Check:
    """Whether this machine's clock is right; `ahead` of the server's by so many seconds; None: not known."""
    check = partial(Check, "clock", side=side)
    if ahead is None:
        return check(Mark.UNKNOWN, "the server's answer has no date")
    if abs(ahead) <= MAX_CLOCK_SKEW_SECONDS:
        return check(Mark.OK, f"within {max(1, round(abs(ahead)))} s of the server's clock")
    message = f"this machine's clock is {duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the server's"
    return check(
        Mark.WARN, message, "set the clock or enable NTP (timedatectl): a wrong clock rejects valid credentials"
    )


def judge_annotations(configuration: Configuration, robot: str) -> list[Check]:
    """Whether the annotations of each CRD on the robot are valid (S1), together with its SyncPolicy (C1)."""
    kinds = configuration.kinds(robot)
    found = [check for crd in configuration.crds for check in _judge_crd(crd, kinds, configuration)]
    if found or kinds:
        return found
    hint = f"annotate one: kubectl annotate crd NAME {SPEC_SOURCE}=cloud"
    return [Check("annotations", Mark.WARN, "no CRD is annotated, so nothing is synced", hint, Side.ROBOT)]


def judge_policies(configuration: Configuration, robot: str) -> Iterator[Check]:
    """Whether each SyncPolicy on the robot can be followed, and each kind that has no CRD and is named by one (C1)."""
    kinds = configuration.kinds(robot)
    problems = {name: kind.problem for name, kind in kinds.items()}
    stopped = set()
    for each in configuration.policies:
        check = partial(Check, "policy", side=Side.ROBOT, resource=each.resource)
        problem = problem_of(each, configuration.policies_for(each.resource), problems.get(each.resource))
        if problem:
            stopped.add(each.resource)
        problem = problem or related_problem(each, problems.get)
        if problem:
            yield check(Mark.FAIL, f"SyncPolicy {each.name}: {problem}", "correct or delete the SyncPolicy")
        else:
            yield check(Mark.OK, f"SyncPolicy {each.name} is valid")
    for name in sorted(configuration.unserved.keys() - stopped):
        # The agent begins by itself when the kind is served.
        sentence, hint = configuration.unserved[name], kind_hint("kind-missing")
        yield Check("kind", Mark.FAIL, sentence, hint, Side.ROBOT, name, health="degraded")


def _judge_crd(crd: Json, kinds: Mapping[str, KindPolicy], configuration: Configuration) -> Iterator[Check]:
    annotations, name = crd["metadata"].get("annotations") or {}, crd["metadata"]["name"]
    check = partial(Check, "annotations", side=Side.ROBOT, resource=name)
    unknown = sorted(key for key in annotations if key.startswith((SYNCER, OURS)) and key not in SETTINGS)
    policy = kinds.get(name)
    if policy is not None and policy.problem:
        names = [each.name for each in configuration.policies_for(name)] or [each.policy for each in policy.related]
        yield check(Mark.FAIL, policy.problem, kind_hint("misconfigured", next(iter(names), None)))
    elif policy is not None:
        yield check(Mark.OK, _asked(policy))
    elif unknown or any(key in annotations for key in SETTINGS):
        yield check(Mark.WARN, f"not synced: the annotation {SPEC_SOURCE} is missing", f"add {SPEC_SOURCE}")
    if unknown:
        message = f"unknown and ignored: {', '.join(unknown)}"
        yield check(Mark.WARN, message, f"correct the name; known are {', '.join(SETTINGS)}")


def _asked(policy: KindPolicy) -> str:
    filtered = f", only objects of robot {policy.robot}" if policy.filtered else ""
    if policy.related:
        primaries = " and ".join(sorted({each.primary for each in policy.related}))
        return f"from the {policy.upstream} to the {policy.downstream}, only what {primaries} refer to{filtered}"
    if policy.sync_policy is not None and policy.sync_policy.filter.selector is not None:
        filtered = f", only objects selected by {policy.selector}"
    subtree = f", only status.{policy.subtree}" if policy.subtree is not None else ""
    return f"spec from the {policy.upstream}, status from the {policy.downstream}{filtered}{subtree}"


def judge_kind(policy: KindPolicy, side: Side, *, status: int, message: str) -> Check:
    """Whether a side lists a kind: the HTTP status and the message of a list of at most one object."""
    check = partial(Check, "kind", side=side, resource=policy.resource)
    endpoint = policy.endpoint(side)
    if status == 200:
        scope = "namespaced" if endpoint.namespaced else "cluster-scoped"
        has = "with" if endpoint.status else "without"
        return check(Mark.OK, f"served in {endpoint.version}, {scope}, {has} the status subresource")
    if status == 404:
        # The agent recovers by itself when the kind is served again, and deletes nothing.
        return check(Mark.FAIL, f"{endpoint.version} is not served", kind_hint("kind-missing"), health="degraded")
    if status == 403:
        return check(Mark.FAIL, f"may not be listed ({message})", confined_hint(message) or kind_hint("forbidden"))
    return check(Mark.UNKNOWN, f"the list answered {status} ({message})", "try again")


def judge_access(found: Mapping[Need, bool | None], side: Side, *, resource: str = "", robot: str = "") -> Check:
    """Whether the account has every permission; None: the access review had no answer.

    `robot`: the name of a robot that asks about all namespaces of the cloud, where its account may have one alone.
    """
    check = partial(Check, "permissions", side=side, resource=resource)
    missing = [need for need, allowed in found.items() if allowed is False]
    grave = [need for need in missing if not need.unless]
    if grave:
        hint = "grant it to the account in this kubeconfig's context"
        if robot:
            own = f"robot-{robot}"
            hint = f"where the account is that of namespace {own}, set namespaces: [{own}] or namespaceMap; else {hint}"
        return check(Mark.FAIL, f"may not {needs_text(missing)}", hint)
    if missing:
        message = f"may not {needs_text(missing)}: {'; '.join(dict.fromkeys(need.unless for need in missing))}"
        health = "healthy" if all(need.is_comfort for need in missing) else ""
        return check(Mark.WARN, message, "grant it, or accept that", health=health)
    if None in found.values():
        asked = needs_text([need for need, allowed in found.items() if allowed is None])
        hint = "a gateway may reject access reviews; crsyncer status shows missing permissions once the agent runs"
        return check(Mark.UNKNOWN, f"no access review of {asked}", hint)
    return check(Mark.OK, f"may {needs_text([*found])}")


def judge_exposed(file: str, side: Side) -> Check:
    """A warning about a credential file that other users may read or write."""
    message = f"other users may read or write {file}, and with it act as the agent"
    return Check("kubeconfig", Mark.WARN, message, "chmod 600, and make the agent's user its owner", side)


def judge_disk(facts: DiskFacts) -> Check:
    """Whether the state directory's disk is usable: the first row that applies says so."""
    lost = "free some space: else the statuses that wait are lost when the agent stops"
    refused = "check its owner and mode, and whether it is mounted read-only"
    local = "choose a --state-dir on a disk of this machine"
    memory = ": in memory, so waiting statuses are lost at a reboot"
    rows = (
        (bool(facts.objection), Mark.FAIL, f": {facts.objection}", facts.remedy),
        (facts.writable is False, Mark.FAIL, ": not writable", refused),
        (facts.free < TOO_LITTLE, Mark.FAIL, ": full, or nearly", lost),
        (facts.kind in NETWORK_DISKS, Mark.FAIL, ": SQLite needs a local file system", local),
        (facts.kind in MEMORY_DISKS, Mark.WARN, memory, "choose a --state-dir on a disk"),
        (facts.free < LITTLE, Mark.WARN, ": little space", "free some space before the disk is full"),
        (facts.writable is None, Mark.UNKNOWN, ": its owner is another user", "run this as the agent's user"),
        (True, Mark.OK, "", ""),
    )
    mark, message, hint = next(row[1:] for row in rows if row[0])
    where = f"{facts.path} ({facts.kind or 'unknown file system'}, {facts.free >> 20:,} MiB free)"
    return Check("disk", mark, f"{where}{message}", hint)


_STORES = {
    "missing": (Mark.OK, "{path}: does not exist yet; the agent creates it", ""),
    "ok": (Mark.OK, "{path}: ok, schema {schema}, {kib:,} KiB", ""),
    "older": (Mark.OK, "{path}: schema {schema}; the agent migrates it when it starts", ""),
    "broken": (
        Mark.WARN,
        "{path}: unusable ({message})",
        "at its start the agent moves it aside, recovers waiting statuses and lists everything; check the disk",
    ),
    "unreadable": (Mark.UNKNOWN, "{path}: {message}", "run this as the agent's user, or as root"),
}


def judge_store(found: StoreFindings) -> Check:
    """Whether the store of an agent that does not run is usable."""
    mark, message, hint = _STORES[found.state]
    text = message.format(path=found.path, schema=found.schema, kib=found.bytes >> 10, message=found.message)
    return Check("store", mark, text, hint)


def judge_agent(status: Json) -> list[Check]:
    """The health of a running agent and its store, from its status document."""
    store, health = status["store"], status["health"]
    sound = store["state"] in ("ok", "rebuilt")
    text = (
        f"{store['path']}: {store['state']}, {store['bytes'] >> 10:,} KiB, in use by process {status['agent']['pid']}"
    )
    reasons = "; ".join(reason["message"] for reason in status["reasons"])
    mark = {"healthy": Mark.OK, "attention": Mark.FAIL}.get(health, Mark.WARN)
    running = f"running, process {status['agent']['pid']}, {health}{f': {reasons}' if reasons else ''}"
    return [
        Check("store", Mark.OK if sound else Mark.WARN, text, "" if sound else "is the disk full, or read-only?"),
        Check("agent", mark, running, "" if mark is Mark.OK else "crsyncer status", health=health),
    ]


def document(checks: Sequence[Check], *, pid: int | None) -> Json:
    """The report, schema `crsyncer.doctor/v1`. `pid` is that of the running agent, 0: not known; None: none runs.

    `health` is that of the set-up: an agent that does not run yet does not count against it.
    """
    return {
        "schema": SCHEMA,
        "health": worst(check.health or _HEALTHS[check.state] for check in checks),
        "agent": {"state": "stopped" if pid is None else "running", "pid": pid or None},
        "checks": [
            {name: getattr(check, name) or None for name in ("name", "side", "resource", "state", "message", "hint")}
            for check in checks
        ],
    }


def with_offline(content: Json, checks: Sequence[Check]) -> Json:
    """The report where an absence outweighs what is degraded: while the cloud, or HAProxy, is away."""
    is_away = content["health"] == "degraded" and any(check.health == "offline" for check in checks)
    return content | ({"health": "offline"} if is_away else {})


def exit_code(content: Json) -> int:
    """The exit code of `crsyncer doctor`: first that an agent cannot work, then that none runs, then the rest."""
    if content["health"] != "attention" and content["agent"]["state"] == "stopped":
        return STOPPED
    return EXIT_CODES[content["health"]]
