"""`crsyncer doctor`: is everything set up, and if not, what has to be done?"""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
from click.core import ParameterSource

from crsyncer.adapters.config import OPTIONS, Settings, load, read_config
from crsyncer.cli.clusters import CLUSTER_SETTINGS, logins, robot_name
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import ask_agent_or_store, settings_options
from crsyncer.cli.status import STATUS_REQUEST
from crsyncer.console.doctor_report import Check, Mark, document, exit_code, judge_agent, judge_disk, judge_store
from crsyncer.console.screen import WIDTH
from crsyncer.core.findings import StoreFindings
from crsyncer.core.model import Json
from crsyncer.core.text import count, plain
from crsyncer.errors import SyncError, Unsure

_ALL_SECONDS = 14.0
_NOBODY_KNOWS = 0
"""The process of an agent that does not say it."""
_COLOURS = {Mark.OK: "green", Mark.WARN: "yellow", Mark.FAIL: "red", Mark.UNKNOWN: "cyan"}


@click.command(params=settings_options(*CLUSTER_SETTINGS))
@output_options
def doctor(output: str, **flags: Any) -> int:
    """Is everything set up, and if not, what has to be done?

    Checks configuration, logins, both API servers, certificates and tokens (14 days before they end), clocks,
    permissions by access reviews, the CRDs on both sides and their annotations, disk and store. With a running agent
    or without; changes nothing; takes at most some 15 seconds. Use the settings, and the user, that the agent has.
    `unknown` is what could not be checked, and says nothing against the set-up.

    Exit codes: 12 attention (something fails), else 13 the agent is not running, else 10 degraded (a warning, or what
    is retried by itself), 11 offline (the cloud does not answer, all else is well), 0 healthy; 1 error, 2 usage.
    """
    settings = load(flags, os.environ)
    own = [_config(settings, click.get_current_context())]
    began = time.monotonic()
    local, pid = _local(settings.state_dir)
    # An agent that hangs is not waited for a second time.
    robot = settings.robot_name if pid == _NOBODY_KNOWS else robot_name(settings)

    import asyncio  # the clusters cost half a second, and `--help` and wrong flags shall not wait for them

    sides = asyncio.run(_sides(settings, robot, seconds=_ALL_SECONDS - (time.monotonic() - began)))
    content = document([*own, *sides, *local], pid=pid)
    names = ["/".join(filter(None, (check["side"], check["name"], check["resource"]))) for check in content["checks"]]
    show(content, output, names=names, text=lambda: "\n".join(render(content)))
    return exit_code(content)


async def _sides(settings: Settings, robot: str, *, seconds: float) -> list[Check]:
    from crsyncer.adapters.kube.visit import KubeVisit
    from crsyncer.console.doctor import Subject, examine

    insecure = settings.insecure_skip_tls_verify
    doors = {side: partial(KubeVisit.enter, *login, insecure=insecure) for side, login in logins(settings).items()}
    return await examine(doors, Subject(robot, settings.namespaces, time.time), seconds=seconds)


def _config(settings: Settings, context: click.Context) -> Check:
    """That the configuration is right, and where each setting that somebody gave comes from."""
    in_file = read_config(settings.config_file)
    given = []
    for key, option in OPTIONS.items():
        match context.get_parameter_source(str(option.name)):
            case ParameterSource.COMMANDLINE:
                given.append(f"{key} by {option.opts[0]}")
            case ParameterSource.ENVIRONMENT:
                given.append(f"{key} by {next(filter(os.environ.get, option.envvar or ()))}")
            case _ if key in in_file:
                given.append(f"{key} by {in_file[key][1].removesuffix(f': {key}')}")
    file = f"{settings.config_file} is right; " if settings.config_file else ""
    return Check("config", Mark.OK, f"{file}{', '.join(given)}; all else by default")


def _local(directory: Path) -> tuple[list[Check], int | None]:
    """The checks of disk, store and agent; the agent's process, None where none runs."""
    from crsyncer.adapters.store.offline import look_at_disk, look_at_store

    disk = judge_disk(look_at_disk(directory))
    try:
        found = ask_agent_or_store(directory, STATUS_REQUEST, lambda: look_at_store(directory))
    except SyncError as error:
        mark = Mark.FAIL if isinstance(error, Unsure) else Mark.UNKNOWN
        return [disk, Check("agent", mark, str(error), error.hint)], _NOBODY_KNOWS
    if isinstance(found, StoreFindings):
        hint = "systemctl start crsyncer (or crsyncer run)"
        stopped = Check("agent", Mark.WARN, "not running, so nothing is synced", hint, health="healthy")
        return [disk, judge_store(found), stopped], None
    return [disk, *judge_agent(found)], found["agent"]["pid"]


def render(content: Json) -> Iterator[str]:
    """The report as lines; the first says what to think of it."""
    yield click.style(_verdict(content), bold=True)
    yield ""
    for check in content["checks"]:
        mark = Mark(check["state"])
        head = f"{mark:<8}{check['side'] or '':<6} {check['name']:<19}"
        about = f"{check['resource']}: " if check["resource"] else ""
        indent = " " * len(head)
        text = wrap(plain(f"{about}{check['message']}"), WIDTH, initial_indent=head, subsequent_indent=indent)
        yield click.style(text[0][: len(mark)], fg=_COLOURS[mark]) + text[0][len(mark) :]
        yield from text[1:]
        if check["hint"] and mark is not Mark.OK:
            yield from wrap(
                plain(f"-> {check['hint']}"), WIDTH, initial_indent=indent, subsequent_indent=f"{indent}   "
            )


def _verdict(content: Json) -> str:
    states = [check["state"] for check in content["checks"]]
    kinds = [(states.count(mark), word) for mark, word in ((Mark.FAIL, "failure"), (Mark.WARN, "warning"))]
    parts = [count(number, word) for number, word in kinds if number]
    if unknown := states.count(Mark.UNKNOWN):
        parts.append(f"{unknown} unknown")
    rest = ", ".join(parts) or "all ok"
    ready = content["health"] == "healthy" and content["agent"]["state"] == "stopped"
    verdict = "READY: the agent can be started" if ready else content["health"].upper()
    return f"{verdict}: {count(len(states), 'check')}, {rest}."
