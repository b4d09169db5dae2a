"""What the commands that read the cloud share: their settings, and the way to it."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crsyncer.adapters.config import CONFIG, FLEET_OPTIONS, FLEET_RUN_OPTIONS, FleetSettings, load_fleet
from crsyncer.errors import ConfigError, SyncError

if TYPE_CHECKING:
    from crsyncer.ports import Send

    Shards = Mapping[str, Send | SyncError]

_DEFAULT = "default"


def cloud_options() -> list[click.Parameter]:
    """`--config`, the settings of the fleet and `--shard`, for click's `params`."""
    return [CONFIG, *FLEET_OPTIONS.values(), FLEET_RUN_OPTIONS["shards"]]


file_option = click.option(
    "-f",
    "--filename",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Objects that count as if they were stored: placements, sources, Robots, FieldStrips, properties, CRDs.",
)


def load_cloud(flags: Mapping[str, Any]) -> FleetSettings:
    """The settings of a command that needs the cloud. Raises ConfigError, one line."""
    settings = load_fleet(flags, os.environ)
    if not settings.has_login:
        raise ConfigError("--cloud-kubeconfig is required; allowed: the path of a kubeconfig file, and none in a pod")
    return settings


def placement_name(placement: str, namespace: str) -> str:
    """A placement as NAMESPACE/NAME, by [NAMESPACE/]NAME and `-n`."""
    before, _, name = placement.rpartition("/")
    if not name or "/" in before:
        raise click.UsageError(f"'{placement}' is not [NAMESPACE/]PLACEMENT")
    return f"{before or namespace or _DEFAULT}/{name}"


@asynccontextmanager
async def cloud(settings: FleetSettings, shard: Path | None = None) -> AsyncIterator["Send"]:
    """Send requests to the cloud, or to the shard of a kubeconfig; raises ConfigError where the login is of no use."""
    from contextlib import aclosing

    from crsyncer.adapters.kube.visit import KubeVisit

    login = (settings.cloud_kubeconfig, settings.cloud_context) if shard is None else (shard, "")
    async with aclosing(await KubeVisit.enter(*login, insecure=settings.insecure_skip_tls_verify)) as visit:
        yield visit.request


@asynccontextmanager
async def shards(settings: FleetSettings) -> AsyncIterator["Shards"]:
    """Send requests to each shard of `--shard`, by its name; in place of one whose login is of no use is the error."""
    import asyncio
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:

        async def enter(file: Path) -> "Send | SyncError":
            try:
                return await stack.enter_async_context(cloud(settings, file))
            except SyncError as error:
                return error

        sends = await asyncio.gather(*(enter(file) for _, file in settings.shards))
        yield {name: send for (name, _), send in zip(settings.shards, sends, strict=True)}


def not_given(shard: str) -> SyncError:
    """What is said of a shard that has robots and is not in `--shard`."""
    return SyncError(
        f"shard {shard} is not given: what is there is not known",
        hint=f"add --shard {shard}=KUBECONFIG, as crsyncer fleet run has it",
    )
