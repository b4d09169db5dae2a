"""`crsyncer api`: CRDs that travel to the other side."""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config import Settings
from crsyncer.adapters.expressions import Expressions
from crsyncer.cli.clusters import CLUSTER_SETTINGS, both_clusters, logins, robot_name
from crsyncer.cli.crd_files import LARGEST
from crsyncer.cli.documents import read_document
from crsyncer.cli.output import TEXTS, output_options, show
from crsyncer.cli.shared import find_state_dir, load_settings, report_error, settings_options
from crsyncer.cli.status import read_status
from crsyncer.cli.yaml_text import sorted_lines
from crsyncer.console.screens.screen import table
from crsyncer.core.apis.revise import breaking, follow, read_crd, revise
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.text import plain
from crsyncer.errors import ConfigError, SyncError

SCHEMA = "crsyncer.api-diff/v1"
_NONE = "no CRD travels: no SyncPolicy has the field api"
_TROUBLE = 2


@click.group()
def api() -> None:
    """CRDs that travel to the other side, by the field `api` of a SyncPolicy."""


@api.command("list", params=settings_options("state_dir"))
@output_options
def list_(output: str, **flags: Any) -> int:
    """Show each CRD that travels, the revision that it follows, and its state. Works without an agent.

    The state is current, paused, held (crsyncer holds list says why) or unreadable: the source has no such CRD, or the
    other side lacks the kinds of this section.
    """
    kinds = [kind for kind in read_status(find_state_dir(flags))["kinds"] if kind.get("api")]
    rows = [{"resource": kind["resource"], "policy": kind["policy"], **kind["api"]} for kind in kinds]
    names = [row["resource"] for row in rows]
    show({"schema": "crsyncer.apis/v1", "apis": rows}, output, names=names, text=lambda: _list(rows))
    return 0


def _list(rows: list[Json]) -> str:
    if not rows:
        return _NONE
    cells = [(row["resource"], row["policy"] or "-", row["revision"] or "-", row["state"]) for row in rows]
    lines = [table(("RESOURCE", "POLICY", "REVISION", "STATE"), cells)]
    lines += [plain(f"{row['resource']}: {row['message']}") for row in rows if row["message"]]
    return "\n".join(lines)


@api.command(params=settings_options(*CLUSTER_SETTINGS))
@click.argument("resource")
@click.option("--resume", is_flag=True, help="Let it go on.")
@output_options
def pause(resource: str, resume: bool, output: str, **flags: Any) -> None:
    """Stop new revisions and entries of a CRD, or with --resume let them go on.

    Sets spec.api.paused in the SyncPolicy on the robot, with the credential of --robot-kubeconfig. Meanwhile an entry
    of the APISet that you edit is followed, so an older revision is a way back.
    """
    settings = load_settings(flags)

    import asyncio  # slow; `--help` and usage errors must stay fast

    done = asyncio.run(_pause(settings, resource, paused=not resume))
    text = f"SyncPolicy {done['policy']}: the CRD {done['resource']} {'is paused' if done['paused'] else 'goes on'}"
    show({"schema": "crsyncer.api-pause/v1", **done}, output, names=[done["resource"]], text=lambda: plain(text))


async def _pause(settings: Settings, resource: str, *, paused: bool) -> Json:
    from contextlib import aclosing

    from crsyncer.adapters.kube.visit import KubeVisit
    from crsyncer.console.operators.api_pause import pause as pause_api

    login = logins(settings)[Side.ROBOT]
    async with aclosing(await KubeVisit.enter(*login, insecure=settings.insecure_skip_tls_verify)) as visit:
        return await pause_api(visit.request, resource, paused=paused)


@api.command(params=settings_options(*CLUSTER_SETTINGS))
@click.argument("what", metavar="[RESOURCE | CURRENT NEW]", nargs=-1)
@click.option(
    "--pick",
    "picked",
    metavar="VERSION",
    multiple=True,
    help="Take this version of NEW, and of the others only those picked as well; repeatable. Default: all it serves.",
)
@output_options
def diff(what: tuple[str, ...], picked: tuple[str, ...], output: str, **flags: Any) -> int:
    """What would change on the other side if the CRDs that travel followed their source now, and what that breaks.

    Of all of them, or of RESOURCE: reads both clusters itself, needs no agent and changes nothing. --- is the CRD as it
    is, +++ as it would be. Or of two files, without any cluster: what breaks for the users of the CRD in the file
    CURRENT, if it follows that in the file NEW.

    Breaking are: a version that is no longer served, a field that is gone or of another type, unknown fields that are
    no longer kept, and another scope. In a path, * is each item of a list or each value of an object. The server
    removes a field that is gone at the next write of each object. What is held does not come, until it is undone, let
    pass by `crsyncer holds release`, or allowed by the policy (allowBreaking).

    -o json has the revision, as `revision`, and the CRD as it would be: its versions that objects may be stored in
    stay, unserved; its metadata and conversion stay.

    Exit codes: 0 no difference, 1 differences, 2 usage, or not everything could be compared. Of files: 0 nothing
    breaks, 1 something does, 2 usage, or a file that cannot be used.
    """
    if len(what) == 2:
        return _diff_files(Path(what[0]), Path(what[1]), picked, output)
    if len(what) > 2 or picked:
        raise click.UsageError("--pick takes two files" if picked else "one RESOURCE, or two files")
    settings = load_settings(flags)

    import asyncio  # slow; `--help` and usage errors must stay fast

    try:
        rows = asyncio.run(_compare(settings, what[0] if what else ""))
    except SyncError as error:
        report_error(error)  # not 1, which means that everything was compared
        return _TROUBLE
    differs = [row for row in rows if row["current"] != row["new"]]
    names = [row["resource"] for row in differs]
    lines = (line for row in differs for line in _told(row))
    show({"schema": "crsyncer.apis-diff/v1", "apis": rows}, output, names=names, text=lambda: "\n".join(lines))
    if not rows and output in TEXTS:
        click.echo(_NONE, err=True)
    failed = [row for row in rows if row["error"] is not None]
    for row in failed:
        report_error(SyncError(f"{row['resource']}: {row['error']}", hint=row["hint"] or ""))
    return _TROUBLE if failed else int(bool(differs))


async def _compare(settings: Settings, resource: str) -> list[Json]:
    from crsyncer.console.compare import lister
    from crsyncer.console.compare.api_diff import compare_api
    from crsyncer.console.explained.target import find_resource

    async with both_clusters(settings) as clusters:
        senders = {side: cluster.request for side, cluster in clusters.items()}
        configuration = await lister.configuration(senders[Side.ROBOT], Expressions, settings.trust)
        apis = configuration.apis()
        if resource:
            kinds = configuration.kinds(settings.robot_name, settings.synced_namespaces)
            names = {name: kinds[name].aliases if name in kinds else () for name in apis}
            chosen = find_resource(resource, names)
            if chosen not in apis:
                raise SyncError(
                    f"no SyncPolicy has api for {resource}", hint=f"{', '.join(sorted(apis)) or 'none'} has"
                )
            apis = {chosen: apis[chosen]}
        robot = robot_name(settings)
        return [await compare_api(name, apis[name], robot, senders) for name in sorted(apis)]


def _told(row: Json) -> Iterator[str]:
    name, target = f"customresourcedefinitions/{row['resource']}", Side(row["source"]).other
    state = "paused" if row["paused"] else f"held, {row['held']}" if row["held"] else ""
    yield plain(f"# {row['resource']}: {row['revision']}{f' ({state})' if state else ''}")
    for each in row["breaking"]:
        place = " ".join(filter(None, (each["version"], each["path"])))
        yield plain(f"# breaking: {': '.join(filter(None, (place, each['message'])))}")
    before = f"{target}/{name}" if row["current"] else "/dev/null"
    for line in difflib.unified_diff(
        sorted_lines(row["current"]), sorted_lines(row["new"]), before, f"{target}/{name}", lineterm=""
    ):
        yield plain(line)


def _diff_files(current: Path, new: Path, picked: tuple[str, ...], output: str) -> int:
    """What breaks for the users of a CRD in a file, if it follows that in another file."""
    before, source = _read(current), _read(new)
    name = before["metadata"]["name"]
    if source["metadata"]["name"] != name:
        raise ConfigError(f"{new} is the CRD {source['metadata']['name']}; allowed: {name}, as {current}")
    try:
        revision = revise(source, picked or None)
    except ConfigError as error:
        raise ConfigError(f"{new}: {error}") from None
    found = breaking(before, revision)
    content = {
        "schema": SCHEMA,
        "resource": name,
        "revision": revision.name,
        "breaking": [each.row for each in found],
        "crd": follow(before, revision),
    }
    lines = [plain(str(each)) for each in found] or ["nothing breaks"]
    show(content, output, names=[revision.name], text=lambda: "\n".join(lines))
    return 1 if found else 0


def _read(path: Path) -> Json:
    raw = read_document(path, largest=LARGEST)
    try:
        return read_crd(raw)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
