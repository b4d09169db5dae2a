"""`crsyncer door config`: HAProxy's configuration, keys and map, written where HAProxy accepts them."""

import os
from typing import Any

import click

from crsyncer.adapters.config import CONFIG, DOOR_OPTIONS, DoorSettings, load_door


@click.command("config", params=[CONFIG, *DOOR_OPTIONS.values()])
def door_config(**flags: Any) -> None:
    """Write HAProxy's configuration, the keys of the shards, the door's own answers, and the map of robots.

    Asks every shard for its keys and the root for its Robots. Unless all of them answer and `haproxy -c` accepts the
    result, nothing is changed and the exit code is 1. Then start HAProxy:

        haproxy -W -S /run/haproxy-master.sock -f /etc/crsyncer-door/haproxy.cfg

    `crsyncer door run` keeps everything up to date.
    """
    settings = load_door(flags, os.environ, making=True)

    import asyncio  # slow; `--help` and usage errors must stay fast

    for line in asyncio.run(_write(settings)):
        click.echo(line)


async def _write(settings: DoorSettings) -> list[str]:
    from crsyncer.door.domain.robots_map import map_text, routes, unroutable
    from crsyncer.door.door_files import put_files, put_map, try_configuration
    from crsyncer.door.gather_door import gather_door, shard_clusters
    from crsyncer.door.haproxy_program import check_program
    from crsyncer.door.robots import robot_labels

    await check_program()
    async with shard_clusters(settings) as clusters:
        door = await gather_door(settings, clusters)
        root = next(iter(clusters.values()))
        labels = await robot_labels(root.request, settings.root.robots, settings.root.robots_namespace)
    wanted = routes(labels, clusters)
    await try_configuration(door, map_text(wanted))
    put_map(settings.directory, map_text(wanted))
    put_files(door)
    lines = [f"note: {line}, so it is not in the map" for line, _ in unroutable(labels, clusters)]
    shards = ", ".join(f"{name} {sum(each == name for each in wanted.values())}" for name in clusters)
    return [*lines, f"{settings.directory}: {len(wanted)} robots ({shards}), {len(door.keys)} keys"]
