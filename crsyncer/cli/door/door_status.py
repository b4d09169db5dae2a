"""`crsyncer door status`: is the front door as it should be, and if not, what do I do?"""

import os
from collections.abc import Iterator
from typing import Any

import click

from crsyncer.adapters.config import CONFIG, DOOR_VIEW_OPTIONS, load_door
from crsyncer.cli.output import output_options, show
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count

_COLOURS = {"healthy": "green", "degraded": "yellow", "offline": "cyan", "attention": "red", "stopped": "red"}
_MOST_REASONS = 6


@click.command("status", params=[CONFIG, *DOOR_VIEW_OPTIONS.values()])
@click.option("--robot", metavar="NAME", default="", help="Also where this robot is, and how many streams it has.")
@output_options
def door_status(robot: str, output: str, **flags: Any) -> int:
    """Is the front door as it should be, and if not, what do I do?

    Asks HAProxy by its master socket, the root for its Robots, and `crsyncer door run` at --listen.

    Exit codes: 13 crsyncer door run does not answer, else 12 attention (a Robot's shard that nobody knows, a bad file),
    else 11 HAProxy does not answer, else 10 degraded (a shard or the root is away), 0 healthy; 1 error, 2 usage.
    """
    settings = load_door(flags, os.environ)

    import asyncio  # slow; `--help` and usage errors must stay fast

    from crsyncer.door.domain.door_health import EXIT_CODES, Level
    from crsyncer.door.look import read_status

    content = asyncio.run(read_status(settings, robot))
    show(content, output, names=[each["name"] for each in content["shards"]], text=lambda: "\n".join(_screen(content)))
    return EXIT_CODES[Level(content["health"])]


def _screen(content: Json) -> Iterator[str]:
    from crsyncer.console.screens.screen import table, wrapped

    reasons, shards, haproxy = content["reasons"], content["shards"], content["haproxy"]
    health, *rest = wrapped(_headline(content))
    word, colon, more = health.partition(":")
    yield click.style(word, fg=_COLOURS[content["health"]], bold=True) + colon + more
    yield from rest
    for reason in reasons[:_MOST_REASONS]:
        yield from wrapped(f"- {reason['message']}", "  ")
        if reason["hint"]:
            yield from wrapped(f"  -> {reason['hint']}", "     ")
    if len(reasons) > _MOST_REASONS:
        yield f"- {len(reasons) - _MOST_REASONS} more: --json has all"
    yield ""
    heads = ("SHARD", "STATE", "ROBOTS", "STREAMS", "SERVER")
    yield table(heads, [[_text(each[head.lower().replace("shard", "name")]) for head in heads] for each in shards])
    yield ""
    yield f"HAProxy {_text(haproxy['version'])}, {_number(haproxy['workers'], 'worker')}"
    if content["robot"] is not None:
        robot = content["robot"]
        where = f"at shard {robot['shard']}" if robot["shard"] else "not in the map: it gets 503"
        yield f"robot {robot['name']}: {where}, {_number(robot['streams'], 'stream')}"


def _headline(content: Json) -> str:
    reasons, robots = content["reasons"], sum(each["robots"] for each in content["shards"])
    if reasons:
        return f"{content['health'].upper()}: {count(len(reasons), 'reason')}."
    return f"HEALTHY: {count(robots, 'robot')} at {count(len(content['shards']), 'shard')}."


def _number(value: int | None, what: str) -> str:
    return f"? {what}s" if value is None else count(value, what)


def _text(value: Any) -> str:
    return "?" if value is None else str(value)
