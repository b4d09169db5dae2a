"""`crsyncer doctor`: is everything set up, and if not, what do I do?"""

import os
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
from click.core import ParameterSource

from crsyncer.adapters.config import OPTIONS, UNIT, Settings, read_config, with_unit
from crsyncer.adapters.expressions import Expressions
from crsyncer.cli.clusters import CLUSTER_SETTINGS, both_clusters, logins, robot_name
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import ask_agent_or_store, load_settings, settings_options
from crsyncer.cli.status import STATUS_REQUEST
from crsyncer.console.screens.reason_texts import START_HINT
from crsyncer.console.screens.screen import WIDTH
from crsyncer.console.set_up.doctor_report import Check, Mark, document, exit_code, judge_agent, judge_disk, judge_store
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.findings import StoreFindings
from crsyncer.core.reports.text import count, plain
from crsyncer.errors import ConfigError, SyncError, Unsure

_ALL_SECONDS = 14.0
_MOVE_SECONDS = 60.0
"""For `--from-cr-syncer`, which lists every object of both sides."""
_UNKNOWN_PID = 0
"""An agent runs, but does not answer."""
_COLOURS = {Mark.OK: "green", Mark.WARN: "yellow", Mark.FAIL: "red", Mark.UNKNOWN: "cyan"}


@click.command(params=settings_options(*CLUSTER_SETTINGS))
@click.option(
    "--from-cr-syncer",
    "from_cr_syncer",
    is_flag=True,
    help="Also check what changes on a robot that still runs the Go cr-syncer: whether that runs, annotations, copies"
    " that are adopted, deleted or whose name is taken, namespaces, finalizers, cost. Takes up to a minute more.",
)
@output_options
def doctor(from_cr_syncer: bool, output: str, **flags: Any) -> int:
    """Is everything set up, and if not, what do I do?

    Checks configuration, logins, both API servers, certificates and tokens (14 days before they end), clocks,
    permissions by access reviews, the CRDs on both sides and their annotations, disk and store. Works with a running
    agent or without, changes nothing, and takes at most 15 seconds or so. Run it as the agent's user, with the agent's
    settings. A check that could not be made is `unknown`; it does not count against the set-up.

    Exit codes: 12 attention (a check fails), else 13 the agent is not running, else 10 degraded (a warning, or a
    failure that the agent retries), 11 offline (only the cloud does not answer), 0 healthy; 1 error, 2 usage.
    """
    settings = load_settings(flags)
    own = [_config(settings, flags, click.get_current_context())]
    began = time.monotonic()
    local, pid = _local(settings.state_dir)
    # An agent that hangs is not asked a second time.
    robot = settings.robot_name if pid == _UNKNOWN_PID else robot_name(settings)

    import asyncio  # slow; `--help` and usage errors must stay fast

    sides = asyncio.run(_sides(settings, robot, seconds=_ALL_SECONDS - (time.monotonic() - began)))
    move = asyncio.run(_move(settings, robot, agent_runs=pid is not None)) if from_cr_syncer else []
    content = document([*own, *sides, *local, *move], pid=pid)
    names = ["/".join(filter(None, (check["side"], check["name"], check["resource"]))) for check in content["checks"]]
    show(content, output, names=names, text=lambda: "\n".join(render(content)))
    return exit_code(content)


async def _sides(settings: Settings, robot: str, *, seconds: float) -> list[Check]:
    from crsyncer.adapters.kube.visit import KubeVisit
    from crsyncer.console.set_up.questions import SetUp, examine

    insecure = settings.insecure_skip_tls_verify
    loaders = {side: partial(KubeVisit.enter, *login, insecure=insecure) for side, login in logins(settings).items()}
    set_up = SetUp(robot, settings.synced_namespaces, time.time, Expressions, settings.trust)
    return await examine(loaders, set_up, seconds=seconds)


async def _move(settings: Settings, robot: str, *, agent_runs: bool) -> list[Check]:
    from crsyncer.console.set_up.moving import Robot, examine_move

    try:
        async with both_clusters(settings) as clusters:
            senders = {side: cluster.request for side, cluster in clusters.items()}
            about = Robot(robot, settings.synced_namespaces, clusters[Side.CLOUD].server, agent_runs)
            return await examine_move(senders, about, seconds=_MOVE_SECONDS)
    except ConfigError:
        return []  # the login of that side is a failed check already


def _config(settings: Settings, flags: Mapping[str, Any], context: click.Context) -> Check:
    """The check that names the origin of every setting that is not a default; the configuration is valid."""
    in_file, in_unit = read_config(settings.config_file), with_unit(flags)
    given = []
    for key, option in OPTIONS.items():
        match context.get_parameter_source(str(option.name)):
            case ParameterSource.COMMANDLINE:
                given.append(f"{key} from {option.opts[0]}")
            case ParameterSource.ENVIRONMENT:
                given.append(f"{key} from {next(filter(os.environ.get, option.envvar or ()))}")
            case _ if in_unit.get(str(option.name)) != flags.get(str(option.name)):
                given.append(f"{key} from {UNIT}")
            case _ if key in in_file:
                given.append(f"{key} from {in_file[key][1].removesuffix(f': {key}')}")
    file = f"{settings.config_file} is valid; " if settings.config_file else ""
    return Check("config", Mark.OK, f"{file}{', '.join(given)}; defaults for the rest")


def _local(directory: Path) -> tuple[list[Check], int | None]:
    """The checks of disk, store and agent; the agent's process, None where none runs."""
    from crsyncer.adapters.store.offline import look_at_disk, look_at_store

    disk = judge_disk(look_at_disk(directory))
    try:
        found = ask_agent_or_store(directory, STATUS_REQUEST, lambda: look_at_store(directory))
    except SyncError as error:
        mark = Mark.FAIL if isinstance(error, Unsure) else Mark.UNKNOWN
        return [disk, Check("agent", mark, str(error), error.hint)], _UNKNOWN_PID
    if isinstance(found, StoreFindings):
        stopped = Check("agent", Mark.WARN, "not running, so nothing is synced", START_HINT, health="healthy")
        return [disk, judge_store(found), stopped], None
    return [disk, *judge_agent(found)], found["agent"]["pid"]


def render(content: Json, *, what: str = "agent") -> Iterator[str]:
    """The report as lines, the verdict first. `what` is ready to be started."""
    yield click.style(_verdict(content, what), bold=True)
    yield ""
    for check in content["checks"]:
        mark = Mark(check["state"])
        head = f"{mark:<8}{check['side'] or '':<6} {check['name']:<19}"
        about = f"{check['resource']}: " if check["resource"] else ""
        indent = " " * len(head)
        text = _wrapped(f"{about}{check['message']}", head, indent)
        yield click.style(text[0][: len(mark)], fg=_COLOURS[mark]) + text[0][len(mark) :]
        yield from text[1:]
        if check["hint"] and mark is not Mark.OK:
            yield from _wrapped(f"-> {check['hint']}", indent, f"{indent}   ")


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return wrap(plain(text), WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _verdict(content: Json, what: str) -> str:
    states = [check["state"] for check in content["checks"]]
    kinds = [(states.count(mark), word) for mark, word in ((Mark.FAIL, "failure"), (Mark.WARN, "warning"))]
    parts = [count(number, word) for number, word in kinds if number]
    if unknown := states.count(Mark.UNKNOWN):
        parts.append(f"{unknown} unknown")
    rest = ", ".join(parts) or "all ok"
    ready = content["health"] == "healthy" and content["agent"]["state"] == "stopped"
    verdict = f"READY: the {what} can be started" if ready else content["health"].upper()
    doubt = ", as far as could be checked" if ready and unknown else ""
    return f"{verdict}{doubt}: {count(len(states), 'check')}, {rest}."
