"""The judgement over a set-up: what was found of it, into checks, each with what to do where it is not ok."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from crsyncer.console.reasons import kind_hint, worst
from crsyncer.console.report import EXIT_CODES, STOPPED
from crsyncer.core.access import Need, told
from crsyncer.core.findings import DiskFacts, StoreFindings, Term
from crsyncer.core.model import Json, Side
from crsyncer.core.policy import (
    DRIFT,
    FILTER,
    OBSERVED_GENERATION,
    ORPHANS,
    OURS,
    SPEC_SOURCE,
    SUBTREE,
    SYNCER,
    Policy,
    read_policy,
)
from crsyncer.core.text import duration, rfc3339

SCHEMA = "crsyncer.doctor/v1"
SOON = 14 * 86400.0
"""Seconds before its end at which what has to be renewed by hand becomes a warning."""
LATE = 60.0
"""Seconds that two clocks may differ: API servers allow tokens as much (go-jose's DefaultLeeway, one minute)."""
LITTLE, TOO_LITTLE = 128 << 20, 16 << 20
"""Bytes free: what is little, and what is too little for a store of 10,000 objects and its log."""
NETWORK_DISKS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs"})
"""File systems without the shared memory that SQLite's write-ahead log needs (sqlite.org/wal.html)."""
MEMORY_DISKS = frozenset({"tmpfs", "ramfs"})
_ANNOTATIONS = (SPEC_SOURCE, FILTER, SUBTREE, OBSERVED_GENERATION, DRIFT, ORPHANS)


class Mark(StrEnum):
    """How a check ended. UNKNOWN: it could not be made, which says nothing against the set-up."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


_HEALTHS = {Mark.OK: "healthy", Mark.UNKNOWN: "healthy", Mark.WARN: "degraded", Mark.FAIL: "attention"}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report. `health` is what it means for the whole; empty: what its mark means."""

    name: str
    state: Mark
    message: str
    hint: str = ""
    side: Side | None = None
    resource: str = ""
    health: str = ""


_RENEW = {
    "ca": "put the CA's successor into certificate-authority-data of the kubeconfig",
    "server-certificate": "renew the API server's certificate (k3s renews its own when it is restarted)",
    "client-certificate": "renew the client certificate in the kubeconfig (k3s renews its own when it is restarted)",
    "token": "make a new token and put it where the kubeconfig has the old one; it is read again by itself",
}


def judge_term(term: Term, side: Side, now: float) -> Check:
    """Whether a certificate or token is valid, and for how long; `now` is Unix time."""

    def check(state: Mark, message: str, hint: str = "") -> Check:
        return Check(term.name, state, message, hint, side)

    if term.starts is not None and term.starts > now:
        return check(Mark.FAIL, f"not valid before {rfc3339(term.starts)}", "is this machine's clock right?")
    if term.objection and (term.ends is None or term.ends > now):
        return check(Mark.FAIL, term.objection, term.remedy)
    if term.ends is None:
        return check(Mark.OK, "does not say when it ends")
    until, left = rfc3339(term.ends), term.ends - now
    if left <= 0:
        return check(Mark.FAIL, f"has expired {duration(-left)} ago, at {until}", _RENEW[term.name])
    if term.renewed:
        return check(Mark.OK, f"valid until {until}, and renewed by itself")
    mark, hint = (Mark.WARN, _RENEW[term.name]) if left < SOON else (Mark.OK, "")
    return check(mark, f"valid for {duration(left)}, until {until}", hint)


def judge_clock(ahead: float | None, side: Side) -> Check:
    """By how many seconds this machine's clock is ahead of a server's; None: the server did not say."""
    if ahead is None:
        return Check("clock", Mark.UNKNOWN, "the server does not tell the time", side=side)
    if abs(ahead) <= LATE:
        return Check("clock", Mark.OK, f"as the server's, to within {max(1, round(abs(ahead)))} s", side=side)
    message = f"this machine's clock is {duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the server's"
    hint = "set the clock, or let NTP do it (timedatectl): certificates and tokens are valid by it"
    return Check("clock", Mark.WARN, message, hint, side)


def judge_annotations(crds: Sequence[Json], robot: str) -> list[Check]:
    """Whether each CRD on the robot asks for something that can be followed (S1)."""
    found = [check for crd in crds for check in _judge_crd(crd, robot)]
    if found:
        return found
    hint = f"annotate one: kubectl annotate crd NAME {SPEC_SOURCE}=cloud"
    return [Check("annotations", Mark.WARN, "no CRD is annotated, so nothing is synced", hint, Side.ROBOT)]


def _judge_crd(crd: Json, robot: str) -> Iterator[Check]:
    name, annotations = crd["metadata"]["name"], crd["metadata"].get("annotations") or {}

    def check(state: Mark, message: str, hint: str = "") -> Check:
        return Check("annotations", state, message, hint, Side.ROBOT, name)

    unknown = sorted(key for key in annotations if key.startswith((SYNCER, OURS)) and key not in _ANNOTATIONS)
    policy = read_policy(crd, robot)
    if policy is not None and policy.problem:
        yield check(Mark.FAIL, policy.problem, kind_hint("misconfigured"))
    elif policy is not None:
        yield check(Mark.OK, _asked(policy))
    elif unknown or any(key in annotations for key in _ANNOTATIONS):
        yield check(Mark.WARN, f"not synced: it has annotations of ours, but no {SPEC_SOURCE}", f"add {SPEC_SOURCE}")
    if unknown:
        yield check(Mark.WARN, f"nobody reads {', '.join(unknown)}", f"a slip? There are {', '.join(_ANNOTATIONS)}")


def _asked(policy: Policy) -> str:
    filtered = f", of robot {policy.robot} only" if policy.filtered else ""
    subtree = f", of the status only {policy.subtree}" if policy.subtree is not None else ""
    return f"spec from the {policy.upstream}, status from the {policy.downstream}{filtered}{subtree}"


def judge_kind(policy: Policy, side: Side, *, status: int, said: str) -> Check:
    """Whether a side lists a kind: `status` answered a list of at most one object, with the words `said`."""

    def check(state: Mark, message: str, hint: str = "", health: str = "") -> Check:
        return Check("kind", state, message, hint, side, policy.resource, health)

    if status == 200:
        scope = "namespaced" if policy.namespaced else "cluster-scoped"
        endpoint = "with" if policy.status_endpoint[side] else "without"
        return check(Mark.OK, f"served in {policy.version}, {scope}, {endpoint} the status subresource")
    if status == 404:
        # It heals when it comes back, and nothing is deleted.
        return check(Mark.FAIL, f"{policy.version} is not served", kind_hint("kind-missing"), "degraded")
    if status == 403:
        return check(Mark.FAIL, f"may not be listed ({said})", kind_hint("forbidden"))
    return check(Mark.UNKNOWN, f"the list answered {status} ({said})", "try again")


def disagreement(policy: Policy, state: str, message: str) -> Check:
    """The two sides do not serve a kind alike; `state` is the kind's in `status`."""
    return Check("kind", Mark.FAIL, message, kind_hint(state), Side.CLOUD, policy.resource)


def judge_access(found: Mapping[Need, bool | None], side: Side, *, resource: str = "") -> Check:
    """What access reviews said of each need; None: they were refused, or did not come."""

    def check(state: Mark, message: str, hint: str = "") -> Check:
        return Check("permissions", state, message, hint, side, resource)

    missing = [need for need, allowed in found.items() if allowed is False]
    grave = [need for need in missing if not need.unless]
    if grave:
        return check(Mark.FAIL, f"may not {told(missing)}", "grant it to the account in this kubeconfig's context")
    if missing:
        message = f"may not {told(missing)}: {'; '.join(need.unless for need in missing)}"
        return check(Mark.WARN, message, "grant it, or live with that")
    if None in found.values():
        asked = told([need for need, allowed in found.items() if allowed is None])
        hint = "a gateway may refuse access reviews; then only trying tells: crsyncer status, once the agent runs"
        return check(Mark.UNKNOWN, f"no access review of {asked}", hint)
    return check(Mark.OK, f"may {told([*found])}")


def judge_exposed(file: str, side: Side) -> Check:
    """A file of a login that others may read or write."""
    message = f"{file} may be read or written by others: who has it can do what the agent may"
    return Check("kubeconfig", Mark.WARN, message, "chmod 600, and make the agent's user its owner", side)


def judge_disk(facts: DiskFacts) -> Check:
    """Whether the state can live where it should."""
    where = f"{facts.path} ({facts.kind or 'unknown file system'}, {facts.free >> 20:,} MiB free)"

    def check(state: Mark, message: str, hint: str = "") -> Check:
        return Check("disk", state, f"{where}{message}", hint)

    if facts.objection:
        return check(Mark.FAIL, f": {facts.objection}", facts.remedy)
    if facts.writable is False:
        return check(Mark.FAIL, ": not writable", "check its owner and mode, and whether it is mounted read-only")
    if facts.free < TOO_LITTLE:
        return check(
            Mark.FAIL, ": full, or nearly", "make room: without it, what waits for the cloud is lost at a stop"
        )
    if facts.kind in NETWORK_DISKS:
        return check(Mark.FAIL, ": SQLite needs a local file system", "choose a --state-dir on a disk of this machine")
    if facts.kind in MEMORY_DISKS:
        return check(Mark.WARN, ": lost at a reboot, with the statuses that wait", "choose a --state-dir on a disk")
    if facts.free < LITTLE:
        return check(Mark.WARN, ": little room", "make room before the disk is full")
    if facts.writable is None:
        return check(Mark.UNKNOWN, ": it belongs to another user", "run this as the agent's user")
    return check(Mark.OK, "")


_STORES = {
    "missing": (Mark.OK, "{path}: not there yet, the agent makes it", ""),
    "ok": (Mark.OK, "{path}: sound, schema {schema}, {kib:,} KiB", ""),
    "older": (Mark.OK, "{path}: schema {schema}, the agent migrates it when it starts", ""),
    "broken": (
        Mark.WARN,
        "{path}: unusable ({message})",
        "the agent sets it aside, salvages what waits for the cloud and lists anew; is the disk failing?",
    ),
    "unreadable": (Mark.UNKNOWN, "{path}: {message}", "run this as the agent's user, or as root"),
}


def judge_store(found: StoreFindings) -> Check:
    """Whether the store that the next agent will find is sound."""
    mark, message, hint = _STORES[found.state]
    text = message.format(path=found.path, schema=found.schema, kib=found.bytes >> 10, message=found.message)
    return Check("store", mark, text, hint)


def judge_agent(status: Json) -> list[Check]:
    """What a running agent says of itself and its store, which nobody else may open."""
    store, health = status["store"], status["health"]
    sound = store["state"] in ("ok", "rebuilt")
    text = (
        f"{store['path']}: {store['state']}, {store['bytes'] >> 10:,} KiB, in use by process {status['agent']['pid']}"
    )
    says = "; ".join(reason["message"] for reason in status["reasons"])
    mark = {"healthy": Mark.OK, "attention": Mark.FAIL}.get(health, Mark.WARN)
    running = f"running, process {status['agent']['pid']}, says {health}{f': {says}' if says else ''}"
    return [
        Check("store", Mark.OK if sound else Mark.WARN, text, "" if sound else "is the disk full, or read-only?"),
        Check("agent", mark, running, "" if mark is Mark.OK else "crsyncer status", health=health),
    ]


def document(checks: Sequence[Check], *, pid: int | None) -> Json:
    """The report, schema `crsyncer.doctor/v1`. `pid` is the running agent's, 0 where it cannot be told; None: none.

    `health` is of the set-up: that no agent runs yet says nothing against it.
    """
    return {
        "schema": SCHEMA,
        "health": worst(check.health or _HEALTHS[check.state] for check in checks),
        "agent": {"state": "stopped" if pid is None else "running", "pid": pid or None},
        "checks": [
            {
                "name": check.name,
                "side": check.side,
                "resource": check.resource or None,
                "state": check.state,
                "message": check.message,
                "hint": check.hint or None,
            }
            for check in checks
        ],
    }


def exit_code(content: Json) -> int:
    """What `crsyncer doctor` ends with: first what keeps an agent from working, then that none runs, then the rest."""
    if content["health"] != "attention" and content["agent"]["state"] == "stopped":
        return STOPPED
    return EXIT_CODES[content["health"]]
