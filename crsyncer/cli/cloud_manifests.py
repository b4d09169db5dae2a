"""`crsyncer cloud-manifests`: what to apply to the cloud so that a robot reaches its own objects and no others."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crsyncer.cli.crd_files import crds_option, read_kinds
from crsyncer.cli.output import output_options, show_manifests
from crsyncer.cli.shared import settings_options
from crsyncer.console.confinement.manifests import DEFAULT_QUOTA, Plan, Profile, manifests, unconfined
from crsyncer.core.accounts.robot_account import check_namespace, check_robot
from crsyncer.errors import ConfigError


@click.command(name="cloud-manifests", params=settings_options("state_dir"))
@click.option("--robot", "robots", metavar="NAME", multiple=True, required=True, help="A robot's name; repeatable.")
@crds_option("The CRDs of the kinds to sync, and SyncPolicies, as files or directories; repeatable.", required=True)
@click.option(
    "--profile",
    type=click.Choice([profile.value for profile in Profile]),
    default=Profile.NAMESPACE.value,
    show_default=True,
    help="namespace: a namespace of the cloud for each robot. shared: all robots read the same namespaces, and only"
    " their writes are confined.",
)
@click.option(
    "--namespace",
    "namespaces",
    metavar="NS",
    multiple=True,
    help="With --profile shared: a namespace with the objects of all robots; repeatable.  [default: default]",
)
@click.option(
    "--quota",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --profile namespace: how many objects of each kind there may be in a robot's namespace."
    f"  [default: {DEFAULT_QUOTA}]",
)
@click.option("--two-accounts", is_flag=True, help="Let a second account, which can do nothing else, make the tokens.")
@click.option("--audit", is_flag=True, help="Have the policies refuse nothing yet, but warn and write the audit log.")
@output_options
def cloud_manifests(
    robots: Sequence[str],
    crds: Sequence[Path],
    profile: str,
    namespaces: Sequence[str],
    quota: int | None,
    two_accounts: bool,
    audit: bool,
    output: str,
    **flags: Any,  # noqa: ARG001
) -> None:
    """Print what confines robots to their own objects in the cloud, for `kubectl apply -f -`.

    Namespaces, quotas, accounts, roles, bindings and admission policies, in the order in which to apply them. Asks no
    cluster.

    With --profile namespace the objects of a robot are in the cloud's namespace robot-NAME, and its agent runs with
    --namespace-map robot-NAME=NAMESPACE, such as robot-r1=default, for where they are on the robot.
    """
    chosen = Profile(profile)
    if namespaces and chosen is not Profile.SHARED:
        raise ConfigError("--namespace goes with --profile shared; allowed here: none, it is robot-NAME")
    if quota is not None and chosen is Profile.SHARED:
        raise ConfigError("--quota goes with --profile namespace; allowed here: none, robots have no namespace each")
    plan = Plan(
        robots=tuple(dict.fromkeys(check_robot(robot) for robot in robots)),
        kinds=read_kinds(crds, chosen),
        profile=chosen,
        namespaces=tuple(dict.fromkeys(check_namespace(name) for name in namespaces)) or ("default",),
        two_accounts=two_accounts,
        audit=audit,
        quota=quota or DEFAULT_QUOTA,
    )
    for sentence in unconfined(plan):
        click.echo(f"crsyncer: note: {sentence}", err=True)
    show_manifests(manifests(plan), output)
