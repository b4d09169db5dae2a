"""`crsyncer release`: remove a lost robot's finalizers from objects in the cloud."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config import read_config, with_unit
from crsyncer.adapters.kubeconfig import read_account
from crsyncer.cli.output import namespace_option, object_name, output_options, show
from crsyncer.cli.shared import find_state_dir, settings_options
from crsyncer.cli.status import read_status
from crsyncer.console.explained.target import split_target
from crsyncer.console.operators.finalizer_release import Wish, release_objects
from crsyncer.console.screens.screen import table
from crsyncer.core.accounts.robot_account import check_robot
from crsyncer.core.content.fields import seconds
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, duration, plain, unix
from crsyncer.errors import ConfigError, SyncError

_MAX_ROWS = 50


@click.command(params=settings_options("cloud_kubeconfig", "cloud_context", "insecure_skip_tls_verify", "state_dir"))
@click.argument("resource")
@click.argument("name", metavar="[[NAMESPACE/]NAME]", default="")
@namespace_option
@click.option("--robot", metavar="NAME", required=True, help="The robot whose finalizer is removed.")
@click.option(
    "--older-than",
    metavar="DURATION",
    default="24h",
    show_default=True,
    help="Leave out objects that were deleted more recently.",
)
@click.option("--all", "living", is_flag=True, help="Release objects that nobody has deleted, too.")
@click.option("--yes", is_flag=True, help="Release them. Without it they are only listed.")
@output_options
def release(
    resource: str,
    name: str,
    namespace: str,
    robot: str,
    older_than: str,
    living: bool,
    yes: bool,
    output: str,
    **flags: Any,
) -> None:
    """Let objects in the cloud go that the finalizer of a lost robot keeps.

    Removes crsyncer.cloudrobotics.com/robot-NAME from objects of RESOURCE that were deleted and are still there, and
    no other finalizer. Without --yes it only lists them. Asks the cloud alone: by --cloud-kubeconfig or, in a pod
    there, by the pod's account.

    A SyncPolicy with deletion.mode: blocking has the agent set this finalizer, so that a deleted object stays until the
    robot's copy has gone.

    RESOURCE is the robot's name of the kind. Where the cloud calls it otherwise (projection), the state directory of
    the agent or a SyncPolicy in the cloud has to say so; without these, give the cloud's name.
    """
    resource, name = split_target(resource, name, namespace)
    wish = Wish(check_robot(robot), resource, name, namespace, older_than=_age(older_than), living=living)
    login = _login(with_unit(flags))

    import asyncio  # slow; `--help` and usage errors must stay fast

    content = asyncio.run(_run(login, wish, dry_run=not yes, in_cloud=_in_cloud(find_state_dir(flags))))
    names = [f"{content['resource']}/{object_name(row)}" for row in content["objects"]]
    show(content, output, names=names, text=lambda: _text(content))
    failed = [row for row in content["objects"] if row["state"] == "failed"]
    if failed:
        raise SyncError(f"{count(len(failed), 'object')} not released: {failed[0]['error']}", hint="run it again")
    if content["dryRun"] and content["objects"]:
        click.echo("nothing was changed; repeat the command with --yes", err=True)


def _age(text: str) -> float:
    found = seconds(text)
    if found is None or found < 0:
        raise ConfigError(f'--older-than is "{plain(text[:80])}"; allowed: a duration such as 24h, 90m or 0s')
    return found


def _login(flags: Mapping[str, Any]) -> tuple[Path | None, str, bool]:
    """The kubeconfig (None: the account of the pod), its context, and whether it may skip verification."""
    in_file = read_config(flags["config"])
    path, context, insecure = (
        flags[name] if flags[name] is not None else in_file.get(key, (None, ""))[0]
        for name, key in (
            ("cloud_kubeconfig", "cloud.kubeconfig"),
            ("cloud_context", "cloud.context"),
            ("insecure_skip_tls_verify", "insecureSkipTlsVerify"),
        )
    )
    if path is None and read_account(os.environ) is None:
        raise ConfigError("--cloud-kubeconfig is required; allowed: the path of a kubeconfig file, and none in a pod")
    return path, context or "", bool(insecure)


def _in_cloud(directory: Path) -> dict[str, str]:
    """What the agent of a state directory knows: by the robot's name of each kind, the cloud's."""
    with suppress(SyncError):
        kinds = read_status(directory)["kinds"]
        return {kind["resource"]: kind["cloudResource"] for kind in kinds if kind.get("cloudResource")}
    return {}


async def _run(login: tuple[Path | None, str, bool], wish: Wish, *, dry_run: bool, in_cloud: Mapping[str, str]) -> Json:
    from contextlib import aclosing

    from crsyncer.adapters.kube.visit import KubeVisit

    path, context, insecure = login
    async with aclosing(await KubeVisit.enter(path, context, insecure=insecure)) as visit:
        return await release_objects(visit.request, wish, clock=time.time, dry_run=dry_run, in_cloud=in_cloud)


def _text(content: Json) -> str:
    """The objects, the sum, and what was left out."""
    rows, now = content["objects"], unix(content["time"])
    lines = []
    if rows:
        shown = [(object_name(row), _deleted(row, now), row["error"] or row["state"]) for row in rows[:_MAX_ROWS]]
        lines += [table(("OBJECT", "DELETED", "STATE"), shown)]
    if len(rows) > _MAX_ROWS:
        lines.append(f"and {len(rows) - _MAX_ROWS} more: -o json shows all")
    done = rows if content["dryRun"] else [row for row in rows if row["state"] in ("released", "gone")]
    what = f"{count(len(done), 'object')} of {content['resource']}"
    lines.append(f"robot {content['robot']} keeps {what}" if content["dryRun"] else f"released {what}")
    if content["recent"]:
        lines.append(f"left out: {content['recent']} that were deleted more recently; --older-than 0s is all of them")
    if content["living"]:
        lines.append(f"left out: {content['living']} that nobody has deleted; --all is these, too")
    return "\n".join(lines)


def _deleted(row: Json, now: float) -> str:
    deleted = row["deletionTimestamp"]
    return f"{duration(now - unix(deleted))} ago" if deleted else "no"
