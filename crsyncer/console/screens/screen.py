"""The status document as one screen of text."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from crsyncer.console.screens.reason_texts import INFO
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.text import count, duration, plain, unix

WIDTH = 100
_MOST_KINDS = 20
_MOST_REASONS = 6
_MOST_HOLDS = 6
_NOTHING = "nothing waits"
_PER_SIDE_FIELDS = ("cursor", "relists", "resumes")
"""Fields of a kind with a value per side, shown as CLOUD/ROBOT."""


def render(content: Json, now: float, *, wide: bool = False) -> str:
    """One screen, at most 100 columns wide; `now` is Unix time, in seconds. The first word is the health.

    With `wide` a table of every kind follows; it may be wider.
    """
    blocks = [
        [*wrapped(headline(content))],
        [*_sides(content, now)],
        [*_kinds(content)],
        [*_holds(content, now)],
        [*_advice(content)],
        [*_notes(content)],
        [*_details(content)] if wide else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, each as wide as its longest cell."""
    lines = [[plain(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def headline(content: Json) -> str:
    """The verdict in one sentence, its first word in capitals; also what `systemctl status` shows."""
    reasons, kinds = _problems(content), content["kinds"]
    waiting = _waiting(content)
    if content["agent"]["state"] == "stopped":
        stores = {"missing": "it has no store yet", "unreadable": "its store cannot be read"}
        rest = stores.get(content["store"]["state"]) or f"{waiting} in its store"
        return f"STOPPED: the agent is not running, so nothing is synced; {rest}."
    first = reasons[0]["message"] if reasons else ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    match content["health"]:
        case "attention":
            return f"ATTENTION: action needed: {first}{more}."
        case "degraded":
            return f"DEGRADED: {first}{more}."
        case "offline":
            return f"OFFLINE: {first}, {waiting}, nothing is lost."
    if not kinds:
        return "HEALTHY: both sides are connected, but no CRD on the robot is annotated, so nothing is synced."
    objects = sum(kind["objects"][Side.ROBOT] or 0 for kind in kinds)
    state = "is in sync" if waiting == _NOTHING else "is syncing"
    return (
        f"HEALTHY: {content['robot'] or 'this robot'} {state} with the cloud:"
        f" {count(len(kinds), 'kind')}, {count(objects, 'object')}; {waiting}."
    )


def _waiting(content: Json) -> str:
    specs, statuses = sum(kind["pending"]["spec"] for kind in content["kinds"]), content["outbox"]["depth"]
    parts = [count(number, thing) for number, thing in ((specs, "spec"), (statuses, "status")) if number]
    return f"{' and '.join(parts)} {'waits' if specs + statuses == 1 else 'wait'}" if parts else _NOTHING


def _sides(content: Json, now: float) -> Iterator[str]:
    agent, outbox, store = content["agent"], content["outbox"], content["store"]
    since = f" for {_since(agent['since'], now)}" if agent["since"] else ""
    pid = f", pid {agent['pid']}" if agent["pid"] else ""
    robot = f", robot {content['robot']}" if content["robot"] else ""
    yield cut(f"agent   {agent['state']}{since}{pid}, crsyncer {content['version']}{robot}")
    for side in Side:
        row = content["sides"][side]
        if agent["state"] == "stopped":
            parts = [f"unknown, last answer {_since(row['lastOk'], now)} ago" if row["lastOk"] else "unknown"]
        else:
            parts = [f"{row['state']} for {_since(row['since'], now)}"]
            if row["state"] != "connected":
                parts.append(f"last answer {_since(row['lastOk'], now)} ago" if row["lastOk"] else "never answered")
            if row["reconnects"]:
                parts.append(count(row["reconnects"], "reconnect"))
        yield cut(f"{side:<8}{', '.join(parts)}  {row['server']}".rstrip())
        if row["error"] and agent["state"] == "running":
            yield cut(f"        {row['error']}")
    oldest = f", the oldest for {duration(outbox['oldestSeconds'])}" if outbox["oldestSeconds"] is not None else ""
    dead = f", {count(outbox['deadLetters'], 'dead letter')}" if outbox["deadLetters"] else ""
    yield cut(f"outbox  {count(outbox['depth'], 'status')} waiting{oldest}{dead}")
    yield cut(f"store   {store['state']}, {store['bytes'] / 1024:,.0f} KiB, {store['path']}")
    if content["policies"]:
        wrong = [policy["name"] for policy in content["policies"] if policy["state"] != "active"]
        rest = f", {len(wrong)} misconfigured: {', '.join(wrong)}" if wrong else ""
        yield cut(f"policy  {len(content['policies']) - len(wrong)} active{rest}")


def _kinds(content: Json) -> Iterator[str]:
    # Kinds with problems come first, because the list is cut.
    kinds = sorted(content["kinds"], key=lambda kind: (kind["state"] == "syncing", kind["resource"]))
    if not kinds:
        return
    shown = kinds[:_MOST_KINDS]
    width = min(44, max(4, *(len(kind["resource"]) for kind in shown)))
    yield f"{'KIND':<{width}}  {'FROM':<5}  {'STATE':<16} {'CLOUD':>6} {'ROBOT':>6} {'WAITING':>8} {'HELD':>5}"
    for kind in shown:
        sides = [kind["objects"][side] for side in Side]
        cloud, robot = map(_or_dash, sides)
        waiting = kind["pending"]["spec"] + kind["pending"]["status"]
        name = cut(kind["resource"], width)
        source = cut(kind["specSource"], 5)
        yield f"{name:<{width}}  {source:<5}  {kind['state']:<16} {cloud:>6} {robot:>6} {waiting:>8} {kind['held']:>5}"
        if kind["message"] and content["agent"]["state"] == "running":
            yield cut(f"    {kind['message']}")
    if rest := len(kinds) - len(shown):
        yield f"and {rest} more"


def _details(content: Json) -> Iterator[str]:
    """The fields of each kind that the screen omits."""
    heads = ["KIND", "VERSION", "SCOPE", "FILTERED", "SUBTREE", "POLICY", "CURSOR", "RELISTS", "RESUMES"]
    rows = [
        [
            kind["resource"],
            kind["version"] or "-",
            kind["scope"],
            "yes" if kind["filterByRobotName"] else "no",
            kind["statusSubtree"] or "-",
            kind.get("policy") or "-",
            *("/".join(_or_dash(kind[what][side]) for side in Side) for what in _PER_SIDE_FIELDS),
        ]
        for kind in content["kinds"]
    ]
    if rows:
        yield table(heads, rows)


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def _holds(content: Json, now: float) -> Iterator[str]:
    holds = content["holds"]
    if holds:
        yield "HOLDS (your decision is needed)"
    for hold in holds[:_MOST_HOLDS]:
        # A hold on a whole side has no resource.
        what = f": {count(hold['objects'], 'object')} of {hold['resource']}" if hold["resource"] else ""
        yield cut(f"{hold['id']}  {hold['reason']}{what}, for {_since(hold['since'], now)}")
    if len(holds) > _MOST_HOLDS:
        yield f"and {len(holds) - _MOST_HOLDS} more: crsyncer holds list"


def _advice(content: Json) -> Iterator[str]:
    reasons = _problems(content)
    if reasons:
        yield "WHAT TO DO"
    for number, reason in enumerate(reasons[:_MOST_REASONS], 1):
        yield from wrapped(f"{number}. {reason['message']}", "   ")
        yield from wrapped(f"   -> {reason['hint']}", "      ")
    if len(reasons) > _MOST_REASONS:
        yield f"and {len(reasons) - _MOST_REASONS} more: crsyncer status --json"


def _problems(content: Json) -> list[Json]:
    return [reason for reason in content["reasons"] if reason.get("level") != INFO]


def _notes(content: Json) -> Iterator[str]:
    """What is worth knowing and needs nobody."""
    reasons = [reason for reason in content["reasons"] if reason.get("level") == INFO]
    if reasons:
        yield "NOTES"
    for reason in reasons[:_MOST_REASONS]:
        yield from wrapped(f"- {reason['message']}", "  ")
        yield from wrapped(f"  -> {reason['hint']}", "     ")


def _since(time: str, now: float) -> str:
    return duration(now - unix(time))


def wrapped(text: str, indent: str = "") -> list[str]:
    """A text in at most four lines, of which all but the first are indented."""
    # Names with hyphens stay whole, so that they can be copied.
    return wrap(plain(text), WIDTH, subsequent_indent=indent, max_lines=4, placeholder=" …", break_on_hyphens=False)


def cut(text: str, width: int = WIDTH) -> str:
    """A text in one line of at most so many characters."""
    text = plain(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"
