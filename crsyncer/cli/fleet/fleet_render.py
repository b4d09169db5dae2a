"""`crsyncer fleet render`: the replicas of a placement for one robot, as they would be written."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crsyncer.adapters.config import FleetSettings, load_fleet
from crsyncer.cli.fleet.cloud import cloud, cloud_options, file_option, placement_name, shards
from crsyncer.cli.output import full_name, namespace_option, output_options, show
from crsyncer.cli.shared import report_error
from crsyncer.cli.yaml_text import yaml_text
from crsyncer.errors import ConfigError, SyncError

if TYPE_CHECKING:
    from crsyncer.cli.fleet.replicas import Replicas


@click.command("render", params=cloud_options())
@click.argument("placement", metavar="[NAMESPACE/]PLACEMENT")
@click.option("--robot", metavar="NAME", required=True, help="The robot to render for.")
@file_option
@namespace_option
@output_options
def fleet_render(placement: str, robot: str, file: Path | None, namespace: str, output: str, **flags: Any) -> int:
    """Print the objects that a RobotPlacement makes for a robot, as they would be written for the first time.

    Reads the cloud with your kubeconfig and changes nothing. Without a kubeconfig no server is asked: FILE then has
    everything, and what is not in it counts as absent. Of a Secret digests are shown in place of its values. With
    --shard, as `fleet run` has it, a shard's robot gets objects in the version that the shard serves.

    Exit codes: 0 done, 1 an object cannot be made (the others are printed), 2 usage, or a file that cannot be used.
    """
    settings = load_fleet(flags, os.environ)
    if not settings.has_login and file is None:
        raise ConfigError(
            "--cloud-kubeconfig is required; allowed: the path of a kubeconfig file, none in a pod, and none with -f"
            " and a FILE that has everything"
        )
    within, _, name = placement_name(placement, namespace).partition("/")

    import asyncio  # slow; `--help` and usage errors must stay fast

    found = asyncio.run(_render(settings, file, (within, name), robot))
    resources = [(body, f"{body['kind'].lower()}") for body in found.bodies]
    show(
        {"apiVersion": "v1", "kind": "List", "items": found.bodies},
        "text" if output == "yaml" else output,  # for people and for kubectl: one stream of YAML documents
        names=[full_name({"resource": kind, "namespace": "", **body["metadata"]}) for body, kind in resources],
        text=lambda: "---\n".join(map(yaml_text, found.bodies)).rstrip("\n"),
    )
    for note in found.notes:
        click.echo(f"crsyncer: note: {note}", err=True)
    for failure in found.failures:
        report_error(SyncError(failure))
    return int(bool(found.failures))


async def _render(settings: FleetSettings, file: Path | None, placement: tuple[str, str], robot: str) -> "Replicas":
    from contextlib import AsyncExitStack

    from crsyncer.cli.fleet.given import read_objects
    from crsyncer.cli.fleet.replicas import replicas_of
    from crsyncer.cli.fleet.stored import Objects

    given = read_objects(file, settings, placement[0]) if file is not None else ()
    async with AsyncExitStack() as stack:
        send = await stack.enter_async_context(cloud(settings)) if settings.has_login else None
        others = await stack.enter_async_context(shards(settings)) if send is not None else {}
        found = await replicas_of(Objects(settings, send, given, others), *placement, robot)
    if send is None:
        found.notes.append("no server was asked: what is not in the file counts as absent")
    return found
