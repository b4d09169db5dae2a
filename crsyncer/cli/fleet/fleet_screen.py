"""The document of `fleet status` as one screen of text: first what needs a human, then who has what."""

from collections.abc import Iterator

from crsyncer.console.screens.report import EXIT_CODES, STOPPED
from crsyncer.console.screens.screen import WIDTH, cut, table, wrapped
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, duration, unix

_MOST_REASONS = 6
_MOST_PLACEMENTS = 40
_MOST_ERRORS = 6
_COLUMNS = {
    "SELECTED": "selected",
    "READY": "ready",
    "INFLIGHT": "inFlight",
    "FAILED": "failed",
    "BLOCKED": "blocked",
    "OFFLINE": "offline",
}
_WIDE_COLUMNS = {
    "UNREPORTED": "unreported",
    "WAITING": "waiting",
    "DEFERRED": "deferred",
    "STAMPED": "stamped",
    "REPLICAS": "replicas",
}


def exit_code(content: Json) -> int:
    """The exit code of `crsyncer fleet status` for a document: first that no controller runs."""
    return STOPPED if content["controller"]["state"] == "stopped" else EXIT_CODES[content["health"]]


def render(content: Json, *, wide: bool = False) -> str:
    """One screen. The first word is the health. With `wide` nothing is cut."""
    now = 0.0 if content["time"] is None else unix(content["time"])
    blocks = [
        wrapped(_headline(content)),
        [*_controller(content, now)],
        [*_advice(content, wide=wide)],
        [*_placements(content["placements"], now, wide=wide)],
        [*_errors(content["placements"], wide=wide)],
        [*_robot(content["robot"], now)] if content["robot"] is not None else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _headline(content: Json) -> str:
    reasons, placements, robots = content["reasons"], len(content["placements"]), content["robots"]["all"]
    if content["controller"]["state"] == "stopped":
        rest = f"; {count(len(reasons) - 1, 'other reason')}" if len(reasons) > 1 else ""
        return f"STOPPED: no controller runs, so nothing is placed, changed or removed{rest}."
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        needed = "action needed: " if content["health"] == "attention" else ""
        return f"{content['health'].upper()}: {needed}{reasons[0]['message']}{more}."
    return f"HEALTHY: {count(placements, 'placement')} for {count(robots, 'robot')}."


def _controller(content: Json, now: float) -> Iterator[str]:
    controller, robots = content["controller"], content["robots"]
    if controller["state"] is None:
        return
    renewed = f", its Lease renewed {_ago(controller['renewed'], now)}" if controller["renewed"] else ""
    holder = f" {controller['holder']}" if controller["holder"] else ""
    yield cut(f"controller  {controller['state']}{holder}{renewed}")
    known = ", ".join(f"{robots[name]} {name}" for name in ("online", "offline", "unreported"))
    unknown = robots["all"] - sum(robots[name] for name in ("online", "offline", "unreported"))
    yield f"robots      {robots['all']}: {known}" + (f", {unknown} not known" if unknown else "")


def _advice(content: Json, *, wide: bool) -> Iterator[str]:
    reasons = content["reasons"]
    shown = reasons if wide else reasons[:_MOST_REASONS]
    if shown:
        yield "WHAT TO DO"
    for number, reason in enumerate(shown, 1):
        yield from wrapped(f"{number}. {reason['message']}", "   ")
        yield from wrapped(f"   -> {reason['hint']}", "      ")
    if len(reasons) > len(shown):
        yield f"and {len(reasons) - len(shown)} more: crsyncer fleet status -o wide"


def _placements(rows: list[Json], now: float, *, wide: bool) -> Iterator[str]:
    columns = _COLUMNS | (_WIDE_COLUMNS if wide else {})
    shown = rows if wide else rows[:_MOST_PLACEMENTS]
    cells = [
        [
            row["namespace"],
            row["name"],
            *(_number((row["counts"] or {}).get(field)) for field in columns.values()),
            "yes" if row["holds"] else "no",
            duration(now - unix(row["created"])) if row["created"] else "-",
        ]
        for row in shown
    ]
    if cells:
        yield table(["NAMESPACE", "NAME", *columns, "HELD", "AGE"], cells)
    if len(rows) > len(shown):
        yield f"and {len(rows) - len(shown)} more: crsyncer fleet status -o wide"


def _errors(rows: list[Json], *, wide: bool) -> Iterator[str]:
    errors = [(f"{row['namespace']}/{row['name']}", each) for row in rows for each in row["errors"]]
    shown = errors if wide else errors[:_MOST_ERRORS]
    if shown:
        yield "ERRORS"
    for name, each in shown:
        about = " ".join(str(each[key]) for key in ("robot", "source") if each.get(key))
        text = f"{name}: {about}: {each.get('reason')}: {each.get('message') or ''}"
        yield from wrapped(text, "  ") if wide else [cut(text)]
    whole = sum(row["errorCount"] or 0 for row in rows)
    if (rest := max(whole, len(errors)) - len(shown)) > 0:
        yield f"and {rest} more"


def _robot(robot: Json, now: float) -> Iterator[str]:
    at_shard = f" (shard {robot['shard']})" if robot["shard"] not in (None, ROOT) else ""
    state = (robot["state"] or "not known") + at_shard if robot["shard"] else "there is no Robot of this name"
    last = f", last report {_ago(robot['lastReport'], now)}" if robot["lastReport"] else ""
    yield cut(f"ROBOT {robot['name']}: {state}{last}")
    cells = [
        [
            f"{row['namespace']}/{row['name']}",
            row["state"] or "-",
            duration(now - unix(row["since"])) if row["since"] else "-",
            row["message"] or ("" if row["state"] else "the controller has not decided about it yet"),
        ]
        for row in robot["placements"]
    ]
    if not cells:
        yield "no placement selects it"
        return
    yield table(["PLACEMENT", "STATE", "SINCE", "WHY"], cells)
    yield cut(f"crsyncer fleet explain {cells[0][0]} --robot {robot['name']} shows each replica", WIDTH)


def _number(value: object) -> str:
    return "-" if value is None else str(value)


def _ago(time: str, now: float) -> str:
    return f"{duration(now - unix(time))} ago"
