"""`crsyncer door assign`: chooses the shard of robots that have none yet."""

import os
from collections.abc import Sequence
from typing import Any

import click

from crsyncer.adapters.config import CONFIG, DOOR_VIEW_OPTIONS, DoorSettings, load_door
from crsyncer.cli.output import yes_option
from crsyncer.errors import ConfigError


@click.command("assign", params=[CONFIG, *DOOR_VIEW_OPTIONS.values()])
@click.argument("names", metavar="[ROBOT...]", nargs=-1)
@yes_option
def door_assign(names: tuple[str, ...], yes: bool, **flags: Any) -> None:
    """Choose the shard of each of these Robots that has none, or of all Robots that have none, and say it.

    The label fleet.crsyncer.cloudrobotics.com/shard is set with --yes, and only shown without. The choice is spread
    evenly over the shards of --shard, and stays when shards are added: a robot that has a shard keeps it. A Robot
    without the label is served by the root: name the new ones where others are in service there already, for their
    objects do not move with the label. To move a robot takes `crsyncer door split`.
    """
    settings = load_door(flags, os.environ)
    if not settings.shards:
        raise ConfigError("--shard is required; allowed: NAME=FILE, once for each shard to choose from")

    import asyncio  # slow; `--help` and usage errors must stay fast

    asyncio.run(_assign(settings, names, yes=yes))


async def _assign(settings: DoorSettings, names: Sequence[str], *, yes: bool) -> None:
    from crsyncer.core.content.annotations import ROOT, SHARD_LABEL
    from crsyncer.door.assignment import assign, unassigned
    from crsyncer.door.gather_door import shard_clusters
    from crsyncer.door.robots import robots_collection

    shards = [name for name, _ in settings.shards]
    async with shard_clusters(settings) as clusters:
        send, root = clusters[ROOT].request, settings.root
        collection = await robots_collection(send, root.robots, root.robots_namespace)
        chosen = await unassigned(send, collection, names, shards)
        for robot in chosen:
            if yes and not await assign(send, collection, robot):
                click.echo(f"robot {robot.name}: nothing was changed: it has a shard by now, or is gone")
            else:
                click.echo(f"robot {robot.name}: {SHARD_LABEL}={robot.shard}")
    if not chosen:
        click.echo("every one of these robots has a shard")
    elif not yes:
        click.echo("nothing was changed; repeat the command with --yes", err=True)
