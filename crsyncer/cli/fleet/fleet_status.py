"""`crsyncer fleet status`: who has what, and what needs a human."""

import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from crsyncer.cli.fleet.cloud import cloud, cloud_options, load_cloud, placement_name, shards
from crsyncer.cli.output import TEXTS, namespace_option, output_options, show
from crsyncer.cli.shared import report_error
from crsyncer.core.model import Json
from crsyncer.errors import SyncError, Unsure, first_error

if TYPE_CHECKING:
    from crsyncer.adapters.config import FleetSettings

_COLOURS = {"healthy": "green", "degraded": "yellow", "offline": "cyan", "attention": "red"}
_PERIOD_SECONDS = 2.0


@click.command("status", params=cloud_options())
@click.argument("placement", metavar="[[NAMESPACE/]PLACEMENT]", default="")
@click.option("--robot", metavar="NAME", default="", help="Also what this robot has, and why.")
@click.option("-w", "--watch", is_flag=True, help="Repeat until Ctrl-C; with --json one line each time.")
@namespace_option
@output_options
def fleet_status(placement: str, robot: str, watch: bool, namespace: str, output: str, **flags: Any) -> int:
    """Which robots have what, and if something is wrong, what do I do?

    Reads the cloud with your kubeconfig, and asks no controller. With PLACEMENT only that one is shown and judged;
    with -n those of a namespace. What the robots of a shard report is read there, with --shard as `fleet run` has it.

    Exit codes: 0 healthy, 10 degraded (a status is behind its placement, a shard cannot be read), 11 offline (the cloud
    does not answer), 12 attention (your action is needed), 13 no controller runs, 1 error, 2 usage. Offline robots are
    no fault.
    """
    settings = load_cloud(flags)
    wanted = placement_name(placement, namespace) if placement else f"{namespace}/" if namespace else ""

    from crsyncer.cli.fleet.fleet_screen import exit_code

    if not watch:
        content = _read(settings, wanted, robot)
        _show(content, output)
        return exit_code(content)
    try:
        while True:
            try:
                content = _read(settings, wanted, robot)
            except SyncError as error:  # such as a kind that is being installed: the watch continues
                report_error(error)
            else:
                if sys.stdout.isatty() and output in TEXTS:
                    click.clear()
                _show(content, output, stream=True)
            time.sleep(_PERIOD_SECONDS)
    except KeyboardInterrupt:
        return 0


def _read(settings: "FleetSettings", wanted: str, robot: str) -> Json:
    """The document. `wanted` is NAMESPACE/NAME, NAMESPACE/ or empty. Raises SyncError."""
    import asyncio  # slow; `--help` and usage errors must stay fast

    from crsyncer.fleet.domain.shown.status_document import fleet_status as document
    from crsyncer.fleet.domain.shown.status_document import silent_status

    try:
        facts = asyncio.run(_facts(settings))
    except (Unsure, BaseExceptionGroup) as error:
        cause = first_error(error)
        if not isinstance(cause, Unsure):
            raise
        return silent_status(str(cause), cause.hint)
    if wanted:
        chosen = [each for each in facts.placements if wanted in (each.text, f"{each.namespace}/")]
        if not chosen and not wanted.endswith("/"):
            known = ", ".join(sorted(each.text for each in facts.placements)) or "none"
            raise SyncError(f"there is no RobotPlacement {wanted}", hint=f"there are: {known}")
        names = {(each.namespace, each.name) for each in chosen}
        decisions = [each for each in facts.decisions if (each.namespace, each.placement) in names]
        facts = replace(facts, placements=chosen, decisions=decisions)
    if robot and robot not in facts.robots and not any(robot in each.robots for each in facts.decisions):
        raise SyncError(f"there is no robot {robot}", hint=f"robots are the {settings.robots}")
    return document(facts, robot=robot)


async def _facts(settings: "FleetSettings") -> Any:
    from crsyncer.cli.fleet.read_facts import read_facts

    async with cloud(settings) as send, shards(settings) as others:
        return await read_facts(send, settings, others)


def _show(content: Json, output: str, *, stream: bool = False) -> None:
    from crsyncer.cli.fleet.fleet_screen import render

    def screen(*, wide: bool = False) -> str:
        health, colon, rest = render(content, wide=wide).partition(":")
        # click removes the colour when the output is not a terminal.
        return click.style(health, fg=_COLOURS[content["health"]], bold=True) + colon + rest

    names = [f"robotplacement/{each['namespace']}/{each['name']}" for each in content["placements"]]
    show(content, output, names=names, text=screen, wide=partial(screen, wide=True), stream=stream)
