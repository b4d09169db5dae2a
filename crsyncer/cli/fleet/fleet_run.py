"""`crsyncer fleet run`: the controller, in the foreground."""

import faulthandler
import sys
from functools import partial
from typing import Any

import click

from crsyncer.adapters.config import CONFIG, FLEET_RUN_OPTIONS
from crsyncer.adapters.memory import leave_no_core_file, return_freed_memory
from crsyncer.cli import logs
from crsyncer.cli.fleet.cloud import load_cloud

_DEEPEST = 50_000
"""API servers accept JSON nested 10,000 levels deep: such an object must not crash the controller."""


@click.command("run", params=[CONFIG, *FLEET_RUN_OPTIONS.values()])
def fleet_run(**flags: Any) -> int:
    """Run the fleet controller in the foreground: it makes the objects that RobotPlacements ask for.

    Of several such processes one leads, by the Lease crsyncer-fleet in the controller's namespace; the others stand by.

    SIGTERM and SIGINT stop it within 10 seconds, exit code 0; a leader gives the Lease back. Exit code 1: the Lease was
    lost, and another process leads.
    """
    faulthandler.enable()
    leave_no_core_file()
    return_freed_memory()
    reload = partial(load_cloud, flags)
    settings = reload()
    sys.setrecursionlimit(_DEEPEST)
    logs.set_up(settings.log_format, settings.log_level)

    import asyncio  # heavy; `--help` and usage errors must stay fast

    from crsyncer.fleet.app import FleetApp

    return asyncio.run(FleetApp(settings, reload).run())
