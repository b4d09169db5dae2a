"""`crsyncer door drain`: empties HAProxy before it is stopped, so that its robots do not come back all at once."""

from typing import Any

import click

from crsyncer.adapters.config import CONFIG, HAPROXY_OPTIONS, load_haproxy

_MOST_SECONDS = 3600


@click.command("drain", params=[CONFIG, *HAPROXY_OPTIONS.values()])
@click.option(
    "--seconds",
    type=click.FloatRange(0, _MOST_SECONDS),
    metavar="SECONDS",
    default=30,
    show_default=True,
    help="How long it takes to end all streams.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, _MOST_SECONDS),
    metavar="SECONDS",
    default=0,
    show_default=True,
    help="For how long robots are let in yet, until a load balancer has noticed.",
)
def door_drain(seconds: float, grace: float, **flags: Any) -> None:
    """Let no more robots in, and end the streams that there are, spread over some seconds.

    Robots come back through another door, or through this one once HAProxy is started again. Used before HAProxy is
    stopped: a systemd unit has it as ExecStop, a pod as preStop. HAProxy itself would end all streams at one moment,
    and its robots would come back at one moment. Needs HAProxy's master socket and nothing else.
    """
    directory, socket = load_haproxy(flags)

    import asyncio  # slow; `--help` and usage errors must stay fast

    from crsyncer.core.reports.text import count
    from crsyncer.door.door_files import MAP
    from crsyncer.door.draining import drain
    from crsyncer.door.master_socket import MasterSocket

    ended = asyncio.run(drain(MasterSocket(socket, directory / MAP), grace=grace, seconds=seconds))
    click.echo(f"ended {count(ended, 'stream')}")
