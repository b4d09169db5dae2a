"""`crsyncer door split`: leads through the split of a shard, and checks each step."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config import CONFIG, DOOR_VIEW_OPTIONS, DoorSettings, load_door
from crsyncer.adapters.config.options import a_listen, a_path
from crsyncer.adapters.files import read
from crsyncer.cli.output import output_options, show, yes_option
from crsyncer.core.accounts.robot_account import is_robot_name
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError, SyncError

_MOST_LINES = 20


@click.command("split", params=[CONFIG, *DOOR_VIEW_OPTIONS.values()])
@click.argument("shard")
@click.argument("new")
@click.option("--names", metavar="FILE", type=a_path, required=True, help="The robots that move, a name per line.")
@click.option("--step", metavar="N", type=click.IntRange(1, 5), help="Take only this step.  [default: all]")
@click.option(
    "--door",
    "doors",
    metavar="HOST:PORT",
    type=a_listen,
    multiple=True,
    help="The --listen of a crsyncer door run, repeatable: every one has to be named.  [default: our own --listen]",
)
@yes_option
@output_options
def door_split(
    shard: str, new: str, names: Path, step: int | None, doors: tuple[Any, ...], yes: bool, output: str, **flags: Any
) -> int:
    """Split SHARD: the robots of a file are served by NEW from now on, which is a clone of it.

    Before it, stop whoever writes to these robots' objects, and restore a snapshot of SHARD's etcd as NEW, with the
    same keys of service accounts. Robots go on. The steps:

    \b
    1  NEW is a clone: kube-system's uid, and these robots' objects (statuses may differ)
    2  the Robots get NEW's label
    3  none of their streams is at SHARD, in any door
    4  their objects are removed at SHARD, each robot's once it was seen at NEW
    5  the other robots' objects are removed at NEW

    Says what it would do; does it with --yes. What is done is skipped, and a step whose predecessor does not hold is
    refused, so it can be stopped at any time and repeated. Until step 4 it is undone by setting the labels back.
    Nothing is removed at SHARD that NEW has not.

    Exit codes: 0 done, or without --yes nothing speaks against it; 1 a check fails or a step is not done, 2 usage.
    """
    settings = load_door(flags, os.environ)
    wanted = _names(names)
    listens = _listens(settings, doors)
    known = [name for name, _ in settings.logins]
    for name in (shard, new):
        if name not in known:
            raise ConfigError(f"shard {name} is not known; allowed: {', '.join(known)} (see --shard)")
    if shard == new:
        raise ConfigError(f"SHARD and NEW are both {new}; allowed: two shards")

    import asyncio  # slow; `--help` and usage errors must stay fast

    content, failed = asyncio.run(_split(settings, shard, new, names=wanted, listens=listens, step=step, yes=yes))
    lines = [each["title"] for each in content["steps"]]
    show(content, output, names=lines, text=lambda: "\n".join(_screen(content)))
    if failed is not None:
        raise SyncError(failed[0], hint=failed[1])
    if not yes and any(each["state"] != "done" for each in content["steps"]):
        click.echo("nothing was changed; repeat the command with --yes", err=True)
    return 0


async def _split(
    settings: DoorSettings,
    shard: str,
    new: str,
    *,
    names: tuple[str, ...],
    listens: list[tuple[str, int]],
    step: int | None,
    yes: bool,
) -> tuple[Json, tuple[str, str] | None]:
    """The document, and the message and hint of the step that fails or is not done."""
    from functools import partial

    from crsyncer.door.gather_door import shard_clusters
    from crsyncer.door.robots import robots_collection
    from crsyncer.door.split.asked_doors import ask_doors
    from crsyncer.door.split.shard_objects import ShardObjects, named
    from crsyncer.door.split.splitting import Splitting

    async with shard_clusters(settings) as clusters:
        send, root = named(ROOT, clusters[ROOT].request), settings.root
        robots = await robots_collection(send, root.robots, root.robots_namespace)
        one, other = (ShardObjects(name, clusters[name].request) for name in (shard, new))
        splitting = Splitting(send, robots, one, other, names, partial(ask_doors, listens))
        content, failed = await splitting.run(step, yes=yes)
    if failed is None:
        return content, None
    if step is None or failed.number == step:
        return content, (f"step {failed.number}: {failed.message}", failed.hint)
    message = f"step {step} is refused, for step {failed.number} does not hold: {failed.message}"
    return content, (message, failed.hint or f"take step {failed.number} first")


def _names(path: Path) -> tuple[str, ...]:
    """The robots in a file. Raises ConfigError."""
    try:
        lines = read(path).splitlines()
    except ConfigError as error:
        raise ConfigError(f"--names: {error}", hint=error.hint) from None
    found = dict.fromkeys(line.strip() for line in lines if line.strip())
    bad = next((name for name in found if not is_robot_name(name)), None)
    if bad is not None:
        raise ConfigError(f"--names: {path}: {bad[:80]!r} is no robot's name; allowed: a name per line")
    if not found:
        raise ConfigError(f"--names: {path} is empty; allowed: a robot's name per line")
    return tuple(found)


def _listens(settings: DoorSettings, given: tuple[Any, ...]) -> list[tuple[str, int]]:
    """Where each `door run` answers. Raises ConfigError."""
    found = [each for each in dict.fromkeys(given) if each != "off"] or [settings.listen]
    listens = [each for each in found if each is not None]
    if not listens:
        raise ConfigError("--door is required where --listen is off; allowed: HOST:PORT of each crsyncer door run")
    return listens


def _screen(content: Json) -> Iterator[str]:
    for each in content["steps"]:
        yield f"{each['number']} {each['title']}: {each['state']}"
        if each["message"]:
            yield f"    {each['message']}"
        yield from (f"    - {line}" for line in each["details"][:_MOST_LINES])
        if len(each["details"]) > _MOST_LINES:
            yield f"    and {len(each['details']) - _MOST_LINES} more: --json has all"
    yield from content["done"]
