"""`crsyncer door run`: the upkeep of HAProxy's files, map, keys and streams, in the foreground."""

import faulthandler
import os
from functools import partial
from typing import Any

import click

from crsyncer.adapters.config import CONFIG, DOOR_OPTIONS, load_door
from crsyncer.adapters.memory import leave_no_core_file, return_freed_memory
from crsyncer.cli import logs


@click.command("run", params=[CONFIG, *DOOR_OPTIONS.values()])
def door_run(**flags: Any) -> int:
    """Keep the front door up to date, in the foreground, beside a HAProxy that runs with the same directory.

    Watches the Robots at the root and keeps the map, in the file and in every worker of HAProxy. Ends the streams of
    robots that moved or are gone. Reads the shards' keys hourly and after a token was refused, and has HAProxy load its
    configuration again where a key, a kubeconfig or the certificate changed. Starts no HAProxy; waits for one that is
    away.

    SIGTERM and SIGINT stop it within 10 seconds, exit code 0; HAProxy goes on.
    """
    faulthandler.enable()
    leave_no_core_file()
    return_freed_memory()
    reload = partial(load_door, flags, os.environ, making=True)
    settings = reload()
    logs.set_up(settings.log_format, settings.log_level)

    import asyncio  # heavy; `--help` and usage errors must stay fast

    from crsyncer.door.door_app import DoorApp

    async def keep() -> int:
        return await DoorApp(settings, reload).run()

    return asyncio.run(keep())
