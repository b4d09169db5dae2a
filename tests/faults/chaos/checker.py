"""Judges a run: pure functions from what was seen to the promises that were not kept."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.faults.chaos.history import Asked, Evidence, Seen, Violation
from tests.faults.chaos.kinds import KINDS, Kind
from tests.faults.chaos.relists import unexplained_relists
from tests.system.bed import OURS, SYNCER

SLACK_SECONDS = 5.0
"""The agent may hear of an event before the recorder does."""
_LISTED_SECONDS = 60.0
_DESCRIPTORS = 128
_MEGABYTES = 256.0


def check(evidence: Evidence) -> list[Violation]:
    """Every promise that was not kept."""
    found = [*disagreements(evidence.final)]
    for kind in KINDS.values():
        found += wrong_deletes(kind, evidence)
        found += spec_order(kind, evidence)
        found += status_order(kind, evidence)
        found += lost_finals(kind, evidence)
    return [*found, *unexplained_relists(evidence), *unhealthy(evidence), *unsound_process(evidence)]


def disagreements(final: Mapping[tuple[str, str], Sequence[Seen]]) -> Iterator[Violation]:
    """Where both sides do not agree in the end, of all kinds."""
    for kind in KINDS.values():
        primaries = final[kind.upstream, kind.primary] if kind.primary else ()
        sides = (final[side, kind.plural] for side in (kind.upstream, kind.downstream))
        yield from diverged(kind, *sides, primaries=primaries)


def diverged(
    kind: Kind, upstream: Sequence[Seen], downstream: Sequence[Seen], *, primaries: Sequence[Seen] = ()
) -> Iterator[Violation]:
    """Where both sides do not agree: content, labels, annotations, statuses, absence."""
    wanted = {seen.name: seen for seen in upstream if kind.ours(seen.obj) and not seen.terminating}
    if kind.primary:
        named = {seen.name for seen in primaries if not seen.terminating}
        wanted = {name: seen for name, seen in wanted.items() if name in named}
    copies = {kind.original_name(seen.name): seen for seen in downstream}

    def wrong(seen: Seen, message: str) -> Violation:
        return Violation("not converged", message, seen.at, kind.plural, seen.name)

    for name, seen in wanted.items():
        copy = copies.get(name)
        if copy is None:
            yield wrong(seen, "has no copy")
        elif copy.stamp != seen.uid:
            yield wrong(copy, f"the copy is of {copy.stamp or 'nobody'}, not of {seen.uid}")
        elif _content(copy, kind) != _content(seen, kind):
            yield wrong(copy, f"the copy has {_content(copy, kind)}, not {_content(seen, kind)}")
        elif not _metadata(seen).items() <= _metadata(copy).items():
            yield wrong(copy, f"the copy's labels and annotations lack some of {_metadata(seen)}")
        elif kind.status(copy.obj) != kind.status(seen.obj):
            yield wrong(seen, f"upstream's status is {kind.status(seen.obj)}, the copy's {kind.status(copy.obj)}")
    for name, copy in copies.items():
        if name not in wanted:
            yield wrong(copy, "the copy's object is gone")


def wrong_deletes(kind: Kind, evidence: Evidence) -> Iterator[Violation]:
    """Copies that the agent has deleted while their object was there and ours, all their life."""
    absences = _absences(kind, evidence)
    copies: dict[str, list[Seen]] = defaultdict(list)
    for seen in evidence.versions(kind.downstream, kind.plural):
        copies[seen.uid].append(seen)
    for asked in _deletions(kind, evidence):
        if asked.uid not in copies:
            continue  # it lived while the recorder could not look
        first, last = copies[asked.uid][0], copies[asked.uid][-1]
        lived = (first.after, asked.at + SLACK_SECONDS)
        absent = absences[last.stamp] + _unreferenced(kind, asked.name, evidence)
        if not any(begin <= lived[1] and end >= lived[0] for begin, end in absent):
            message = f"the copy of {last.stamp} was deleted, which was there and ours"
            yield Violation("wrong delete", message, asked.at, kind.plural, asked.name)


def spec_order(kind: Kind, evidence: Evidence) -> Iterator[Violation]:
    """Copies that showed an older spec after a newer one."""
    newest: dict[str, int] = defaultdict(int)
    for seen in evidence.versions(kind.downstream, kind.plural):
        if seen.serial < newest[seen.stamp]:
            message = f"the copy went back from spec {newest[seen.stamp]} to {seen.serial}"
            yield Violation("out of order", message, seen.at, kind.plural, seen.name)
        newest[seen.stamp] = seen.serial


def status_order(kind: Kind, evidence: Evidence) -> Iterator[Violation]:
    """Statuses upstream that are another object's, or older than what upstream had; neighbours that went back."""
    newest: dict[str, tuple[int, int]] = {}
    for seen in evidence.versions(kind.upstream, kind.plural):
        status = kind.status(seen.obj)
        if status and status.get("uid") != seen.uid:
            message = f"the status of {status.get('uid')} is on {seen.uid}"
            yield Violation("another's status", message, seen.at, kind.plural, seen.name)
        neighbour = ((seen.obj.get("status") or {}).get("cloud") or {}).get("seq", 0)
        now = (status.get("seq", 0), neighbour)
        before = newest.get(seen.uid, (0, 0))
        if now[0] < before[0]:
            message = f"upstream's status went back from {before[0]} to {now[0]}"
            yield Violation("status out of order", message, seen.at, kind.plural, seen.name)
        if now[1] < before[1]:
            message = f"a neighbour's status went back from {before[1]} to {now[1]}"
            yield Violation("neighbour's status", message, seen.at, kind.plural, seen.name)
        newest[seen.uid] = now


def lost_finals(kind: Kind, evidence: Evidence) -> Iterator[Violation]:
    """Statuses that a copy had last, of an object that stayed there and ours, and that upstream never had.

    Nobody can know what a copy had that came to its end while nobody looked: before a list, without a watch.
    """
    last: dict[str, Seen] = {}
    since: dict[str, float] = {}
    ends: dict[str, float] = {}
    for seen in evidence.versions(kind.downstream, kind.plural):
        sequence = kind.status(seen.obj).get("seq", 0)
        if seen.uid not in last or sequence != kind.status(last[seen.uid].obj).get("seq", 0):
            since[seen.uid] = seen.after
        last[seen.uid] = seen
        if seen.gone:
            ends[seen.uid] = seen.after
    reached: dict[str, int] = defaultdict(int)
    for seen in evidence.versions(kind.upstream, kind.plural):
        reached[seen.uid] = max(reached[seen.uid], kind.status(seen.obj).get("seq", 0))
    absences = _absences(kind, evidence, terminating=False)
    for uid, seen in last.items():
        sequence = kind.status(seen.obj).get("seq", 0)
        if sequence <= reached.get(seen.stamp, 0) or seen.stamp not in reached:
            continue
        if any(end >= since[uid] for _, end in absences[seen.stamp]):
            continue
        if uid in ends and any(ends[uid] <= at <= ends[uid] + _LISTED_SECONDS for at in _lists(kind, evidence)):
            continue
        message = f"the copy's last status, {sequence}, never came up: upstream has {reached[seen.stamp]}"
        yield Violation("lost final status", message, seen.at, kind.plural, seen.name)


def unhealthy(evidence: Evidence) -> Iterator[Violation]:
    """What the agent says of itself when all is over."""
    status = evidence.status
    if status.get("health") != "healthy":
        yield Violation("not healthy", f"the agent says {status.get('health')}: {status.get('reasons')}")
    for hold in status.get("holds", []):
        yield Violation("held", f"{hold['reason']} of {hold['resource']}: {hold['objects']}")
    if status.get("outbox", {}).get("deadLetters"):
        yield Violation("dead letters", str(status["outbox"]))


def unsound_process(evidence: Evidence) -> Iterator[Violation]:
    """Tracebacks, growth without bound, and ends that took too long."""
    if "Traceback" in evidence.log:
        at = evidence.log.index("Traceback")
        yield Violation("traceback", f"in the agent's log:\n{evidence.log[max(0, at - 300) : at + 2_000]}")
    for what, bound in (("megabytes", _MEGABYTES), ("descriptors", _DESCRIPTORS)):
        most = max((getattr(sample, what) for sample in evidence.samples), default=0)
        if most > bound:
            yield Violation("growth", f"the agent took {most} {what}")
    for done in evidence.done:
        if done.step.action == "agent_stop" and done.answer:
            yield Violation("slow end", f"SIGTERM: {done.answer}", done.began)


def _content(seen: Seen, kind: Kind) -> dict[str, object]:
    content = {key: value for key, value in seen.obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    if kind.keeps_local and isinstance(content.get("spec"), dict):
        content["spec"] = {key: value for key, value in seen.obj["spec"].items() if key != "rival"}
    return content


def _metadata(seen: Seen) -> dict[tuple[str, str], str]:
    metadata = seen.obj["metadata"]
    return {
        (field, key): value
        for field in ("labels", "annotations")
        for key, value in (metadata.get(field) or {}).items()
        if not key.startswith((OURS, SYNCER))
    }


def _absences(kind: Kind, evidence: Evidence, *, terminating: bool = True) -> dict[str, list[tuple[float, float]]]:
    """By uid, when upstream objects were gone, not ours, or (`terminating`) on their way out; perhaps to the end."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    begins: dict[str, float] = {}
    for seen in evidence.versions(kind.upstream, kind.plural):
        if seen.gone or not kind.ours(seen.obj) or (terminating and seen.terminating):
            begins.setdefault(seen.uid, seen.after)
        elif seen.uid in begins:
            found[seen.uid].append((begins.pop(seen.uid), seen.at))
    for uid, begin in begins.items():
        found[uid].append((begin, float("inf")))
    return found


def _unreferenced(kind: Kind, name: str, evidence: Evidence) -> list[tuple[float, float]]:
    """When no primary referred to a related object."""
    found, since = [], 0.0
    for seen in evidence.versions(kind.upstream, kind.primary) if kind.primary else ():
        if seen.name != name:
            continue
        if seen.gone or seen.terminating:
            since = since or seen.after
        elif since:
            found.append((since, seen.at))
            since = 0.0
    return [*found, *([(since, float("inf"))] if since else [])]


def _deletions(kind: Kind, evidence: Evidence) -> list[Asked]:
    return [
        asked
        for asked in evidence.asked
        if (asked.method, asked.side, asked.kind) == ("DELETE", kind.downstream, kind.plural) and asked.status < 300
    ]


def _lists(kind: Kind, evidence: Evidence) -> list[float]:
    return [
        asked.at
        for asked in evidence.asked
        if (asked.method, asked.side, asked.kind) == ("LIST", kind.downstream, kind.plural)
    ]
