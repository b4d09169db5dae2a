"""`crsyncer door`: commands about the front door that leads robots to their API servers."""

import click

from crsyncer.cli.lazy import LazyGroup

_COMMANDS = {
    "config": "Write HAProxy's configuration, its keys and its map.",
    "run": "Keep HAProxy's configuration, keys, map and streams up to date.",
    "status": "Is the front door as it should be?",
    "doctor": "Is everything set up for the front door?",
    "drain": "End HAProxy's streams one after the other, before it is stopped.",
    "assign": "Choose the shard of robots that have none.",
    "split": "Split a shard: move robots to a clone of it, step by step.",
    "manifests": "Print what the front door needs in the cloud.",
}
"""Each command, which is an object `door_NAME` in a module of that name, and its line in the help."""


@click.group(cls=LazyGroup, table=_COMMANDS, modules=f"{__name__}.door_{{}}")
def door() -> None:
    """The front door: HAProxy leads each robot to its API server, with a configuration that is made and kept here."""
