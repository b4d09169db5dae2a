"""`crsyncer mutate`: what a SyncPolicy's mutations make of an object, tried on files."""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config import read_config
from crsyncer.adapters.expressions import Expressions
from crsyncer.cli.documents import read_document
from crsyncer.cli.shared import settings_options
from crsyncer.cli.yaml_text import yaml_text
from crsyncer.core.content.fields import Text, fields_at, wrong
from crsyncer.core.content.mutation import Compiled, compile_steps, mutate_content, mutate_status
from crsyncer.core.content.template import Names
from crsyncer.core.kinds.sync_policy import SyncPolicy, read_sync_policy
from crsyncer.core.model import Json
from crsyncer.core.reports.text import plain
from crsyncer.errors import ConfigError

_LARGEST = 4 << 20
_TEXT = Text(317, 1)
_FILE = click.Path(path_type=Path)


@click.command(params=settings_options("state_dir", "robot_name"))
@click.argument("object_file", type=_FILE)
@click.option("--policy", "policy_file", metavar="FILE", type=_FILE, required=True, help="The SyncPolicy to try.")
@click.option(
    "--direction",
    type=click.Choice(["down", "up"]),
    default="down",
    show_default=True,
    help="down: the steps for content, OBJECT_FILE is the upstream object. up: those for a status, it is the copy.",
)
@click.option(
    "--cluster",
    "identity",
    metavar="ID",
    default="",
    help="Identity of the upstream cluster, as `status --json` shows it; for {cluster} and {hash}.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["diff", "text", "yaml", "json"]),
    default="diff",
    show_default=True,
    help="Output format; text is the diff, too.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
def mutate(
    object_file: Path,
    policy_file: Path,
    direction: str,
    identity: str,
    output: str,
    as_json: bool,
    robot_name: str,
    **flags: Any,
) -> None:
    """What the mutations of a SyncPolicy make of the object in OBJECT_FILE, as a unified diff, YAML or JSON.

    Reads two files, asks no cluster and changes nothing. Checks the whole policy first, as strictly as an API server
    does and more. {namespace} and {name} are those of OBJECT_FILE, {robot} is --robot-name. A template's {/path}, and
    `self` in CEL, mean the object as it is in the file.

    Exit codes: 0 done, 1 a step failed, 2 usage, or a file that cannot be used.
    """
    robot = robot_name or read_config(flags["config"], only="robotName").get("robotName", ("", ""))[0]
    policy, steps = _read_policy(policy_file, direction)
    raw = _read_object(object_file, policy)
    metadata = raw["metadata"]
    names = Names(metadata.get("namespace") or "", metadata["name"], robot=robot, identity=identity)
    mutated = (mutate_content if direction == "down" else mutate_status)(raw, steps, names)
    match "json" if as_json else output:
        case "json":
            click.echo(json.dumps(mutated, indent=2))
        case "yaml":
            click.echo(yaml_text(mutated), nl=False)
        case _:
            for line in _diff(raw, mutated, str(object_file)):
                click.echo(plain(line))
    if mutated == raw:
        click.echo(f"crsyncer: note: no step of mutations.{direction} changes this object", err=True)


def _diff(raw: Json, mutated: Json, name: str) -> Iterator[str]:
    old, new = (yaml_text(content).splitlines() for content in (raw, mutated))
    return difflib.unified_diff(old, new, name, f"{name} (mutated)", lineterm="")


def _read_policy(path: Path, direction: str) -> tuple[SyncPolicy, tuple[Compiled, ...]]:
    """The policy, and its steps for a direction. All steps are compiled, to find what is wrong."""
    raw = read_document(path, largest=_LARGEST)
    try:
        policy = read_sync_policy(raw)
        expressions = Expressions()
        down, up = (compile_steps(steps, expressions) for steps in (policy.mutations.down, policy.mutations.up))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", hint=error.hint) from None
    return policy, down if direction == "down" else up


def _read_object(path: Path, policy: SyncPolicy) -> Json:
    """The object to try the policy on. Raises ConfigError, also where it is of a group that the policy is not for."""
    raw = read_document(path, largest=_LARGEST)
    try:
        fields = fields_at("", raw, ())
        api_version = fields.text("apiVersion", _TEXT)
        fields.text("kind", _TEXT)
        metadata = fields.inner("metadata")
        metadata.text("name", _TEXT)
        metadata.text_or("namespace", _TEXT, None)
        projected = policy.projection.group if policy.projection else None
        groups = {policy.resource.group, policy.resource.group if projected is None else projected}
        group = api_version.rpartition("/")[0]
        if group not in groups:
            raise wrong("apiVersion", api_version, f"the policy's group, {' or '.join(sorted(groups))}")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", hint=error.hint) from None
    content: Json = raw
    return content
