"""The page for people: one HTML page of the fleet's status document, without script (fleet rules, section 6).

First comes what needs a human, then the counts. Long lists are cut, and say so. Every text of an object is escaped.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, duration, plain, rfc3339
from crsyncer.fleet.domain.shown.fleet_facts import read_time
from crsyncer.fleet.page_style import STYLE

REFRESH_SECONDS = 15
MOST_ROWS = 100
"""Placements in the table, and of one robot."""
MOST_HOLDS = 6
MOST_OF_A_REASON = 3
MOST_REASONS = 8
"""Different reasons."""
_LONGEST = 300
"""Characters of a text of an object."""
_BAR = 1000
_LEAST_OF_BAR = 12
"""Of the bar's 1000 parts; even one robot of 10,000 is seen."""

POLICY = (
    "default-src 'none';"
    f" style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page: its own style sheet and form, and nothing else."""

_STATES = {
    "ready": ("Ready", "It has everything, and readyWhen holds."),
    "inFlight": ("In flight", "It was written and is not Ready yet."),
    "waiting": ("Waiting", "Something is to be written, and its turn has not come."),
    "stamped": ("Stamped", "Everything is written; the robot is offline or does not report."),
    "deferred": ("Deferred", "The robot is offline and is written when it is back."),
    "failed": ("Failed", "It was not Ready in time."),
    "blocked": ("Blocked", "An object cannot be written; its last good content stays."),
}
"""The state of a robot in a placement, by its name in `counts`: a heading, and what it means."""
_HURT = ("failed", "blocked")
_VERDICTS = {  # else something needs a human
    "healthy": "All is well",
    "degraded": "Catching up",
    "offline": "The cloud does not answer",
}
_FAILURES = "TooManyFailures"
_WAITS = (_FAILURES, "WaitingForGroup", "Paused")
"""Reasons of `RolledOut` that say more than the numbers."""
_HELD = "Held"
"""The code of reasons that repeat the holds of the placements."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What needs a human: holds with the names of their placements, and the other reasons by their codes."""

    held: Sequence[tuple[str, Json]]
    reasons: Mapping[str, Sequence[Json]]

    @property
    def number(self) -> int:
        """How many things that are."""
        return len(self.held) + sum(map(len, self.reasons.values()))


def _read_needs(document: Json) -> Needs:
    held = [(_name(each), hold) for each in document["placements"] for hold in each["holds"]]
    reasons: dict[str, list[Json]] = {}
    for each in document["reasons"]:
        if each["code"] != _HELD or not held:
            reasons.setdefault(each["code"], []).append(each)
    return Needs(held, reasons)


def page(document: Json, *, robot_query: str, now: float) -> str:
    """The page of a `crsyncer.fleet-status/v1` document at `now`, a Unix time in seconds.

    `robot_query` is what was asked for by `/?robot=NAME`, or empty; the document's `robot` is the answer to it.
    """
    health, needs = document["health"], _read_needs(document)
    things = "1 thing" if needs.number == 1 else f"{needs.number:,} things"
    verdict = _VERDICTS.get(health, "{things} to look at").format(things=things)
    parts = [_header(document, verdict, robot_query, now)]
    if robot_query:
        parts += _robot(document["robot"], robot_query, now)
    parts += [*_needs(needs, health), _totals(document["robots"]), *_table(document["placements"]), _legend()]
    return _html(_text(verdict), parts)


def standby_page(leader: str, *, now: float) -> str:
    """What a controller shows that does not lead: the name of the one that does, or empty where nobody does."""
    sentence = f"<code>{_text(leader)}</code> leads, and shows the fleet." if leader else "Nobody leads yet."
    return _html("Standby", [f"<header><div><h1>Standby</h1><p>{sentence}</p>{_clock(now)}</div></header>"])


def _html(title: str, parts: Iterable[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}"><title>{title} - fleet</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _text(value: object) -> str:
    """A text of an object: one line, not too long, without markup."""
    found = plain(str(value if value is not None else ""))
    return escape(found if len(found) <= _LONGEST else f"{found[: _LONGEST - 1]}…")


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "?"


def _clock(now: float) -> str:
    moment = (rfc3339(now) or "").replace("T", " ").replace("Z", " UTC")
    return f'<p class="soft">{moment}, refreshes every {REFRESH_SECONDS} s</p>'


def _age(time: object, now: float) -> str:
    """How long ago an RFC 3339 time was; empty where it is none."""
    then = read_time(time)
    return "" if then is None else duration(now - then)


def _name(row: Json) -> str:
    return f"{row['namespace']}/{row['name']}"


def _more(number: int, command: str) -> str:
    """That a list is cut, and what shows the rest; of a list that is not cut, nothing."""
    return f'<p class="more">and {number:,} more: {_do(command)}</p>' if number > 0 else ""


def _do(command: str) -> str:
    return f'<code class="do">{_text(command)}</code>'


def _header(document: Json, verdict: str, query: str, now: float) -> str:
    health, controller = document["health"], document["controller"]
    renewed = _age(controller["renewed"], now)
    leads = f"<code>{_text(controller['holder'])}</code> leads" if controller["holder"] else "nobody leads"
    lease = f", its Lease was renewed {renewed} ago" if renewed else ""
    return (
        f'<header><div><h1><span class="mark {_text(health)}"></span>{_text(verdict)}</h1>'
        f'<p class="soft">crsyncer {_text(document["version"])}: {leads}{lease}</p>{_clock(now)}</div>'
        f'<form action="/" method="get"><input name="robot" value="{_text(query)}" placeholder="Find a robot"'
        ' maxlength="63" aria-label="Name of a robot" autocapitalize="off" autocomplete="off" spellcheck="false">'
        "<button>Find</button></form></header>"
    )


def _robot(robot: Json | None, query: str, now: float) -> Iterator[str]:
    """What one robot has, placement by placement; what is not Ready comes first."""
    yield f'<h2>Robot {_text(query)} <a href="/">close</a></h2><div class="card">'
    rows = robot["placements"] if robot is not None else []
    state = robot["state"] if robot is not None else None
    if robot is None or (state is None and not rows):
        yield '<p class="more">There is no robot of this name.</p></div>'
        return
    age = _age(robot["lastReport"], now)
    report = f"last report {age} ago" if age else "never reported" if state else "not in the inventory"
    yield f'<p class="totals"><span><b>{_text(state or "gone")}</b>{report}</span></p>'
    if rows:
        yield '<table class="of-robot"><thead><tr><th>Placement</th><th class="left">State</th><th>Since</th>'
        yield '<th class="left">Message</th></tr></thead><tbody>'
        yield from (_robot_row(each, now) for each in sorted(rows, key=_robot_urgency)[:MOST_ROWS])
        yield "</tbody></table>"
        yield _more(len(rows) - MOST_ROWS, f"crsyncer fleet status --robot {robot['name']}")
    why = _do(f"crsyncer fleet explain PLACEMENT --robot {robot['name']}")
    yield f'<p class="more">{f"Why: {why}" if rows else "No placement selects it."}</p></div>'


def _robot_urgency(row: Json) -> tuple[bool, bool, str]:
    return row["state"] not in ("Failed", "Blocked"), row["state"] == "Ready", _name(row)


def _robot_row(row: Json, now: float) -> str:
    state = str(row["state"] or "unknown")
    key = f"{state[0].lower()}{state[1:]}"
    dot = f'<i class="{key}"></i>' if key in _STATES else ""
    return (
        f'<tr{_hurt(key in _HURT)}><td>{_text(_name(row))}</td><td class="left">{dot}'
        f"{_STATES[key][0] if key in _STATES else _text(state)}</td>"
        f'<td>{_age(row["since"], now)}</td><td class="left why">{_text(row["message"])}</td></tr>'
    )


def _hurt(is_hurt: bool) -> str:
    return ' class="hurt"' if is_hurt else ""


def _needs(needs: Needs, health: str) -> Iterator[str]:
    """What needs a human: the holds, then the reasons, of each kind some."""
    if not needs.number:
        return
    yield f'<div class="card needs {_text(health)}"><ul>'
    if needs.held:
        yield f"<li><h3>Held <small>{len(needs.held):,}</small></h3><div>"
        yield from (_hold(name, hold) for name, hold in needs.held[:MOST_HOLDS])
        yield f"{_more(len(needs.held) - MOST_HOLDS, 'crsyncer fleet release --all')}</div></li>"
    for code, found in [*needs.reasons.items()][:MOST_REASONS]:
        number = f" <small>{len(found):,}</small>" if len(found) > 1 else ""
        yield f"<li><h3>{_text(code)}{number}</h3><div>"
        yield from (_reason(each) for each in found[:MOST_OF_A_REASON])
        yield f"{_more(len(found) - MOST_OF_A_REASON, 'crsyncer fleet status')}</div></li>"
    yield f"</ul>{_more(len(needs.reasons) - MOST_REASONS, 'crsyncer fleet status')}</div>"


def _hold(name: str, hold: Json) -> str:
    release = _do(f"crsyncer fleet release {hold.get('id')}")
    summary = f"{_text(hold.get('reason'))}, {_number(hold.get('objects'))} objects"
    return (
        f"<p><b>{_text(name)}</b>: {_text(hold.get('message'))}</p>"
        f'<p class="soft">{summary}. It ends when all is back; remove them: {release}</p>'
    )


def _reason(reason: Json) -> str:
    return f'<p>{_text(reason["message"])}</p><p class="soft">{_text(reason["hint"])}</p>'


def _totals(robots: Json) -> str:
    shown = (("all", "robots"), ("online", "online"), ("offline", "offline"), ("unreported", "do not report"))
    cells = (f"<span><b>{_number(robots[key])}</b>{word}</span>" for key, word in shown)
    return f'<h2>Robots</h2><p class="card totals">{"".join(cells)}</p>'


def _hurts(placement: Json) -> bool:
    counts = placement["counts"] or {}
    return any(counts.get(each) for each in _HURT) or any(is_bad for _, is_bad in _tags(placement))


def _urgency(placement: Json) -> tuple[bool, bool, str]:
    """The order of placements: what needs a human, what is under way, the others; each by name."""
    counts = placement["counts"] or {}
    return not _hurts(placement), not (counts.get("inFlight") or counts.get("waiting")), _name(placement)


def _table(placements: Sequence[Json]) -> Iterator[str]:
    yield "<h2>Placements</h2>"
    if not placements:
        yield '<div class="card"><p class="more">There is no RobotPlacement.</p></div>'
        return
    heads = "".join(f"<th>{head}</th>" for head, _ in _STATES.values())
    yield f'<div class="card"><table><thead><tr><th>{len(placements):,} in all</th><th class="wide"></th>'
    yield f"<th>Robots</th>{heads}<th>Offline</th></tr></thead><tbody>"
    yield from map(_placement_row, sorted(placements, key=_urgency)[:MOST_ROWS])
    yield f"</tbody></table>{_more(len(placements) - MOST_ROWS, 'crsyncer fleet status')}</div>"


def _placement_row(placement: Json) -> str:
    counts = placement["counts"] or {}
    cells = [_cell(counts.get("selected", "?"), "robots")]
    cells += [
        _cell(counts.get(key, "?"), head.lower(), key if key in _HURT else "") for key, (head, _) in _STATES.items()
    ]
    tags = "".join(f'<span class="tag{" bad" * is_bad}">{_text(tag)}</span>' for tag, is_bad in _tags(placement))
    return (
        f"<tr{_hurt(_hurts(placement))}><td>{_text(_name(placement))}{tags}</td>"
        f'<td class="wide">{_bar(counts)}</td>{"".join(cells)}{_cell(counts.get("offline", "?"), "offline")}</tr>'
    )


def _cell(number: object, what: str, style: str = "") -> str:
    """A number of robots; a zero is faint, and left out on a phone, where `what` is said beside the number."""
    return f'<td class="{style if number else "zero"}" data-of="{what}">{_number(number)}</td>'


def _bar(counts: Json) -> str:
    """The robots of a placement by state, as a bar; each state that there is has a part that can be seen."""
    numbers = {key: counts[key] for key in _STATES if counts.get(key)}
    total = sum(numbers.values())
    shares = {key: max(_LEAST_OF_BAR, round(_BAR * number / total)) for key, number in numbers.items()}
    whole, left, parts = sum(shares.values()), 0, []
    for key, share in shares.items():
        parts.append(f'<rect class="{key}" x="{left}" width="{share}" height="1"/>')
        left += share
    label = ", ".join(f"{number:,} {_STATES[key][0].lower()}" for key, number in numbers.items()) or "no robots"
    return (
        f'<svg viewBox="0 0 {whole or 1} 1" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"<title>{label}</title>{''.join(parts)}</svg>"
    )


def _tags(placement: Json) -> Iterator[tuple[str, bool]]:
    """What is to be said of a placement beside its numbers, and whether that needs a human."""
    found = {each.get("type"): each for each in placement["conditions"]}
    for kind in ("Resolved", "Collected"):
        if (found.get(kind) or {}).get("status") == "False":
            yield str(found[kind].get("reason") or f"not {kind}"), True
    if placement["holds"]:
        yield "held", True
    if isinstance(errors := placement["errorCount"], int) and errors:
        yield count(errors, "error"), False
    rollout = found.get("RolledOut") or {}
    if rollout.get("status") == "False" and rollout.get("reason") in _WAITS:
        yield str(rollout["reason"]), rollout["reason"] == _FAILURES
    counts = placement["counts"] or {}
    if isinstance(group := placement["group"], int) and (counts.get("inFlight") or counts.get("waiting")):
        yield f"group {group}", False


def _legend() -> str:
    states = "".join(f'<dt><i class="{key}"></i>{head}</dt><dd>{what}</dd>' for key, (head, what) in _STATES.items())
    return f"<details><summary>What the states mean</summary><dl>{states}</dl></details>"
