"""Tells a violation as a story: what its object went through on both sides, and what was done around it."""

from collections.abc import Iterator

from tests.faults.chaos.history import Evidence, Seen, Violation
from tests.faults.chaos.kinds import KINDS

_BEFORE_SECONDS, _AFTER_SECONDS = 40.0, 10.0
_LINES = 60


def story(violation: Violation, evidence: Evidence, *, replay: str) -> str:
    """Everything about it, in the order of time, in seconds after the beginning."""
    head = f"VIOLATION  {violation.rule}: {violation.kind} {violation.name} {violation.message}"
    if not violation.kind:
        return f"{head}\n  replay: {replay}"
    lines = [line for line in sorted(_lines(violation, evidence)) if violation.at + _AFTER_SECONDS >= line[0]]
    told = [f"  {at - evidence.began:8.2f}  {text}" for at, text in lines[-_LINES:]]
    return "\n".join([f"{head} (at {violation.at - evidence.began:.2f})", *told, f"  replay: {replay}"])


def _lines(violation: Violation, evidence: Evidence) -> Iterator[tuple[float, str]]:
    for seen in evidence.seen:
        if (seen.kind, seen.name) == (violation.kind, violation.name):
            yield seen.at, f"{seen.side:<6} {describe(seen)}"
    for asked in evidence.asked:
        if (asked.kind, asked.name) == (violation.kind, violation.name):
            yield asked.at, f"agent  asks the {asked.side}: {asked.method} {asked.uid[:8]} -> {asked.status}"
    for relist in evidence.relists:
        if relist.kind == violation.kind:
            yield relist.at, f"agent  lists the {relist.side}: {relist.reason}"
    for done in evidence.done:
        arguments = done.step.arguments
        if (arguments.get("kind"), arguments.get("name")) == (violation.kind, violation.name):
            yield done.ended, f"writer {done.step.action} {arguments['number']} {done.answer}"
        elif "kind" not in arguments and done.ended >= violation.at - _BEFORE_SECONDS:
            words = " ".join(f"{key}={value}" for key, value in arguments.items())
            yield done.began, f"fault  {done.step.action} {words} {done.answer}"
            yield done.ended, f"fault  end of {done.step.action} {arguments.get('side', '')}"


def describe(seen: Seen) -> str:
    """One version, in a line."""
    status = KINDS[seen.kind].status(seen.obj)
    words = [
        "gone" if seen.gone else "there",
        f"uid={seen.uid[:8]}",
        f"stamp={seen.stamp[:8]}" if seen.stamp else "",
        f"version={seen.obj['metadata']['resourceVersion']}",
        f"serial={seen.serial}",
        f"status={status.get('seq')}/{str(status.get('uid'))[:8]}" if status else "",
        "terminating" if seen.terminating else "",
        "" if KINDS[seen.kind].ours(seen.obj) or seen.stamp else "another robot's",
    ]
    return " ".join(word for word in words if word)


def summary(evidence: Evidence, violations: list[Violation]) -> dict[str, object]:
    """The run in figures."""
    writes = [done for done in evidence.done if "kind" in done.step.arguments]
    reasons: dict[str, int] = {}
    for relist in evidence.relists:
        if relist.at >= evidence.began:
            reasons[relist.reason] = reasons.get(relist.reason, 0) + 1
    faults: dict[str, int] = {}
    for done in evidence.done:
        if "kind" not in done.step.arguments:
            faults[done.step.action] = faults.get(done.step.action, 0) + 1
    return {
        "violations": [f"{v.rule}: {v.kind} {v.name} {v.message}" for v in violations],
        "writes": len(writes),
        "writesRefused": sum(bool(done.answer) for done in writes),
        "faults": faults,
        "versionsSeen": len(evidence.seen),
        "recorderGaps": len(evidence.gaps),
        "requests": len(evidence.asked),
        "relists": reasons,
        "agents": len({sample.pid for sample in evidence.samples}),
        "mostMegabytes": round(max((s.megabytes for s in evidence.samples), default=0.0), 1),
        "mostDescriptors": max((s.descriptors for s in evidence.samples), default=0),
    }
