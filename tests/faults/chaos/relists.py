"""Why the agent listed a kind in full: each time for a cause that the schedule has, or it is a violation (S9.2)."""

from collections.abc import Iterator

from tests.faults.chaos.history import Evidence, Relist, Violation
from tests.faults.chaos.kinds import KINDS

_FORGETTING = {"restart", "compact", "crd"}
"""After these an API server does not know its past any more, and answers 410."""
_FORGOTTEN = ("expired", "unproven")
"""Reasons of an agent that was told so."""
_LEFT_OPEN = ("outbox", "unanswered")
"""Reasons of an agent that ended before: statuses that waited, and creates without an answer, are compared with the
copies as they are."""
_ENDS = {"agent_kill", "agent_stop", "agent_forget"}
_RECENT_SECONDS = 90.0
"""How long a deletion may take to lead to a list, and a fault to lead to a list that is asked for again."""


def unexplained_relists(evidence: Evidence) -> Iterator[Violation]:
    """Full lists without a cause."""
    last: dict[tuple[str, str], tuple[float, bool]] = {}
    # They are counted once a second: which of a second's lists came first is not known.
    for relist in sorted(evidence.relists, key=lambda each: (each.at, each.reason not in _FORGOTTEN)):
        before, fine = last.get((relist.side, relist.kind), (evidence.began, True))
        explained = relist.at < evidence.began or _explained(relist, evidence, since=before, again=fine)
        last[relist.side, relist.kind] = (relist.at, explained)
        if not explained:
            message = f"{relist.side} {relist.kind} was listed in full: {relist.reason}"
            yield Violation("unexplained relist", message, relist.at, relist.kind)


def _explained(relist: Relist, evidence: Evidence, *, since: float, again: bool) -> bool:
    if relist.reason == "related":  # many were newly referred to
        return bool(KINDS[relist.kind].primary)
    if relist.reason in ("verify", "orphan"):
        return _vanished(relist, evidence) or _happened(
            evidence, _ENDS, since=relist.at - _RECENT_SECONDS, until=relist.at
        )
    if relist.reason in _LEFT_OPEN:
        return _happened(evidence, _ENDS, since=relist.at - _RECENT_SECONDS, until=relist.at)
    if relist.reason not in ("first", *_FORGOTTEN):
        return False
    if _happened(evidence, {"agent_forget"}, since=since, until=relist.at):
        return True
    if _happened(evidence, _FORGETTING, since=since, until=relist.at, side=relist.side):
        # A process that ended before it had listed leaves it to the next one, as the first thing that it does.
        return relist.reason in _FORGOTTEN or _happened(evidence, _ENDS, since=since, until=relist.at)
    # The list before may not have arrived, or not have reached the disk.
    return again and relist.at - since < _RECENT_SECONDS and _disturbed(relist, evidence, since=since)


def _happened(evidence: Evidence, actions: set[str], *, since: float, until: float, side: str | None = None) -> bool:
    return any(
        done.step.action in actions
        and done.began <= until
        and done.ended >= since
        and side in (None, done.step.arguments.get("side"))
        for done in evidence.done
    )


def _disturbed(relist: Relist, evidence: Evidence, *, since: float) -> bool:
    """Whether any fault was there that may have kept a list from arriving."""
    return any(
        done.began <= relist.at
        and done.ended >= since
        and (done.step.action.startswith("agent") or done.step.arguments.get("side") == relist.side)
        for done in evidence.done
    )


def _vanished(relist: Relist, evidence: Evidence) -> bool:
    """Whether upstream objects have gone or become another's, lately, or copies have gone.

    A copy that is made again gets upstream's status, which a watch that was resumed may not have shown yet (S4.4).
    """
    kind = KINDS[relist.kind]
    left = [
        seen
        for plural in (kind.plural, kind.primary)
        for seen in evidence.versions(kind.upstream, plural)
        if seen.gone or seen.terminating or not kind.ours(seen.obj)
    ]
    left += [seen for seen in evidence.versions(kind.downstream, kind.plural) if seen.gone]
    return any(relist.at - _RECENT_SECONDS <= seen.at and seen.after <= relist.at for seen in left)
