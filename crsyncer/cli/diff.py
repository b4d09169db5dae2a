"""`crsyncer diff`: what differs between the two clusters now."""

import difflib
import sys
from collections.abc import Iterator
from typing import Any

import click

from crsyncer.adapters.config import Settings
from crsyncer.adapters.expressions import Expressions
from crsyncer.cli.clusters import CLUSTER_SETTINGS, both_clusters, identities, robot_name
from crsyncer.cli.output import TEXTS, object_name, output_options, show
from crsyncer.cli.shared import load_settings, report_error, settings_options
from crsyncer.cli.yaml_text import sorted_lines
from crsyncer.console.explained.target import synced_resource
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.text import did_you_mean, plain
from crsyncer.errors import ConfigError, SyncError

SCHEMA = "crsyncer.diff/v1"
_TROUBLE = 2


@click.command(params=settings_options(*CLUSTER_SETTINGS))
@click.argument("resource", required=False, default="")
@click.option("-n", "within", metavar="NS", default="", help="Show only objects of this namespace.")
@output_options
def diff(resource: str, within: str, output: str, **flags: Any) -> int:
    """What differs between the two clusters now, as a unified diff: of all kinds, or of RESOURCE.

    Reads both clusters itself, needs no agent and changes nothing. --- is the cloud, +++ the robot; /dev/null means
    that this side lacks the object. Compares only what crsyncer syncs: content, the labels and annotations that
    upstream owns, and the status once the copy has one; of related objects, those that an object refers to. A change
    that is being synced shows as a difference, and so does a field that the downstream server changed at admission.
    The robot's name is that of the settings, else that of the agent of --state-dir.

    Exit codes, as of kubectl diff: 0 no difference, 1 differences, 2 usage, or not everything could be compared.
    """
    settings = load_settings(flags)
    # As `crsyncer run` does, for objects that are nested as deeply as API servers take them.
    sys.setrecursionlimit(50_000)

    import asyncio  # slow; `--help` and usage errors must stay fast

    try:
        found = asyncio.run(_compare(settings, robot_name(settings), resource))
    except SyncError as error:
        # Not 1, which means that both sides were compared.
        report_error(error)
        return _TROUBLE
    if within:
        for kind in found:
            kind["differences"] = [each for each in kind["differences"] if each["namespace"] == within]
    names = [f"{kind['resource']}/{object_name(each)}" for kind in found for each in kind["differences"]]
    lines = (line for kind in found for line in _unified(kind))
    show({"schema": SCHEMA, "kinds": found}, output, names=names, text=lambda: "\n".join(lines))
    if not found and output in TEXTS:
        click.echo("no CRD on the robot is annotated, so nothing is synced", err=True)
    namespaces = {namespace for kind in found for namespace in kind["namespaces"]}
    if within and within not in namespaces:
        click.echo(f"no synced object is in the namespace {plain(within)}{did_you_mean(within, namespaces)}", err=True)
    failed = [kind for kind in found if kind["error"] is not None]
    for kind in failed:
        report_error(SyncError(f"{kind['resource']}: {kind['error']}", hint=kind["hint"]))
    if failed:
        return _TROUBLE
    return 1 if any(kind["differences"] for kind in found) else 0


async def _compare(settings: Settings, robot: str, resource: str) -> list[Json]:
    from crsyncer.console.compare import lister
    from crsyncer.console.compare.cluster_diff import bare_row, compare
    from crsyncer.console.compare.identities import identified
    from crsyncer.console.screens.reasons import kind_hint
    from crsyncer.runtime.event_loop import all_of

    async with both_clusters(settings) as clusters:

        async def reach(side: Side) -> None:
            try:
                await lister.first_answer(clusters[side].request)
            except ConfigError:
                raise  # it names the side's file, and is one line
            except SyncError as error:
                raise SyncError(f"the {side} cannot be compared: {error}", hint=error.hint) from None

        await all_of(map(reach, Side))
        senders = {side: cluster.request for side, cluster in clusters.items()}
        try:
            configuration = await lister.configuration(senders[Side.ROBOT], Expressions, settings.trust)
        except SyncError as error:
            raise SyncError(f"the robot's CRDs or SyncPolicies cannot be listed: {error}", hint=error.hint) from None
        configured = configuration.kinds(robot, settings.synced_namespaces)
        kinds = await identified(configured, clusters, identities(settings))
        names = {**{name: kind.aliases for name, kind in kinds.items()}, **dict.fromkeys(configuration.unserved, ())}
        chosen = [synced_resource(resource, names)] if resource else names
        # One kind after the other, so that memory holds the lists of one only.
        return [
            await compare(kinds[name], senders, kinds=kinds)
            if name in kinds
            else bare_row(name, configuration.unserved[name], kind_hint("kind-missing"))
            for name in chosen
        ]


def _unified(kind: Json) -> Iterator[str]:
    for each in kind["differences"]:
        name = f"{kind['resource']}/{object_name(each)}"
        cloud, robot = ((sorted_lines(each[side]), f"{side}/{name}" if each[side] else "/dev/null") for side in Side)
        for line in difflib.unified_diff(cloud[0], robot[0], cloud[1], robot[1], lineterm=""):
            yield plain(line)
