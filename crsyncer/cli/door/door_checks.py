"""Judges the facts about a front door's set-up: each becomes a check with a hint where it is not ok."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from crsyncer.adapters.kube.certificates import spans
from crsyncer.console.set_up.doctor_report import SOON, Check, Mark
from crsyncer.core.model import Json
from crsyncer.core.reports.text import duration, rfc3339
from crsyncer.door.domain.door_health import Level, Reason, needs_human
from crsyncer.door.domain.haproxy_template import CERTIFICATE, CONFIGURATION
from crsyncer.door.domain.robots_map import unroutable
from crsyncer.door.domain.signing_keys import keys_of
from crsyncer.door.look import HAProxySeen
from crsyncer.door.robots import RIGHTS
from crsyncer.errors import SyncError

_FEW_FILES = 8192
"""Open files: enough for 4,000 streams, which take two each."""
_MARKS = {
    Level.STOPPED: Mark.FAIL,
    Level.ATTENTION: Mark.FAIL,
    Level.OFFLINE: Mark.WARN,
    Level.DEGRADED: Mark.WARN,
    Level.HEALTHY: Mark.OK,
}


def judge_program(found: str | SyncError) -> Check:
    """Whether the HAProxy of this machine will do, by its version or the error that it gave."""
    if isinstance(found, SyncError):
        return Check("program", Mark.FAIL, str(found), found.hint)
    return Check("program", Mark.OK, f"HAProxy {found} in PATH")


def judge_haproxy(seen: HAProxySeen, limits: Mapping[int, int | None]) -> Iterator[Check]:
    """Whether HAProxy runs, is ours, and may open enough files; `limits` are of its workers."""
    if seen.trouble is not None:
        yield Check("haproxy", Mark.FAIL, str(seen.trouble), seen.trouble.hint, health="offline")
        return
    versions = ", ".join(sorted({worker.version for worker in seen.workers}))
    old = sum(worker.is_old for worker in seen.workers)
    yield Check("haproxy", Mark.OK, f"HAProxy {versions} runs, {len(seen.workers) - old} workers and {old} old ones")
    known = [limit for limit in limits.values() if limit is not None]
    if not known:
        yield Check(
            "open-files", Mark.UNKNOWN, "its limit of open files cannot be read", "run this as its user, or root"
        )
    elif min(known) < _FEW_FILES:
        message = f"HAProxy may open {min(known)} files, and a stream takes two"
        yield Check("open-files", Mark.WARN, message, "raise the limit: LimitNOFILE= of its unit, ulimit -n")
    else:
        yield Check("open-files", Mark.OK, f"HAProxy may open {min(known)} files")
    for name, is_up in sorted(seen.up.items()):
        if not is_up:
            message = "HAProxy finds it down: GET /readyz gives no 200"
            hint = "is it up, and may everybody read /readyz (ClusterRole system:public-info-viewer)?"
            yield Check("shard", Mark.FAIL, message, hint, resource=name, health="degraded")


def judge_files(directory: Path, texts: Mapping[str, str | None], now: float) -> Iterator[Check]:
    """Whether the files are there, and how long the certificate is valid; `now` is Unix time."""
    if texts[CONFIGURATION] is None:
        hint = "crsyncer door config writes it; run this as its owner, or as root"
        yield Check("files", Mark.FAIL, f"{directory / CONFIGURATION} is missing or unreadable", hint)
    else:
        yield Check("files", Mark.OK, f"{directory / CONFIGURATION} is there")
    text = texts[CERTIFICATE]
    if text is None:
        return
    _, ends = next(iter(spans(text)), (None, None))
    if ends is None:
        yield Check("certificate", Mark.FAIL, "the door's certificate cannot be read", "crsyncer door config")
    elif ends <= now:
        yield Check("certificate", Mark.FAIL, f"expired {duration(now - ends)} ago, at {rfc3339(ends)}", "renew it")
    else:
        mark, hint = (Mark.WARN, "renew it") if ends - now < SOON else (Mark.OK, "")
        yield Check("certificate", mark, f"valid for {duration(ends - now)}, until {rfc3339(ends)}", hint)


def judge_shard(name: str, server: str, answer: Json | BaseException) -> Check:
    """Whether a shard answers and has keys that the door can use; `answer` is its JWKS, or the error."""
    if isinstance(answer, SyncError):
        health = "" if needs_human(answer) else "degraded"
        return Check("keys", Mark.FAIL, str(answer), answer.hint, resource=name, health=health)
    if isinstance(answer, BaseException):
        raise answer
    return Check("keys", Mark.OK, f"{server} has {', '.join(key.kid for key in keys_of(answer))}", resource=name)


def judge_robots(labels: Mapping[str, str], shards: Sequence[str]) -> Iterator[Check]:
    """Whether the Robots can be read, and each can be routed."""
    yield Check("robots", Mark.OK, f"{len(labels)} Robots are read")
    for line, hint in unroutable(labels, shards)[:20]:
        yield Check("robots", Mark.FAIL, line, hint)


def unread_robots(error: SyncError) -> Check:
    """The Robots cannot be read."""
    health = "" if needs_human(error) else "degraded"
    return Check("robots", Mark.FAIL, f"they cannot be read: {error}", error.hint or RIGHTS, health=health)


def judge_run(reasons: Sequence[Reason]) -> list[Check]:
    """What `door run` says of itself."""
    if not reasons:
        return [Check("run", Mark.OK, "crsyncer door run is healthy")]
    return [Check("run", _MARKS[each.level], each.message, each.hint) for each in reasons]


def not_kept(error: SyncError) -> Check:
    """`door run` does not answer."""
    return Check("run", Mark.WARN, str(error), error.hint, health="healthy")
