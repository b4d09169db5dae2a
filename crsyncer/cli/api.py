"""`crsyncer api`: CRDs that travel to the other side."""

import os
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config import Settings, load, state_dir
from crsyncer.cli.clusters import CLUSTER_SETTINGS, logins
from crsyncer.cli.crd_files import LARGEST
from crsyncer.cli.documents import read_document
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import settings_options
from crsyncer.cli.status import read_status
from crsyncer.console.screen import table
from crsyncer.core.model import Json, Side
from crsyncer.core.revise import breaking, follow, read_crd, revise
from crsyncer.core.text import plain
from crsyncer.errors import ConfigError

SCHEMA = "crsyncer.api-diff/v1"
_FILE = click.Path(path_type=Path)


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
    kinds = [kind for kind in read_status(state_dir(flags))["kinds"] if kind.get("api")]
    rows = [{"resource": kind["resource"], "policy": kind["policy"], **kind["api"]} for kind in kinds]
    names = [row["resource"] for row in rows]
    show({"schema": "crsyncer.apis/v1", "apis": rows}, output, names=names, text=lambda: _list(rows))
    return 0


def _list(rows: list[Json]) -> str:
    if not rows:
        return "no CRD travels: no SyncPolicy has the field api"
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
    settings = load(flags, os.environ)

    import asyncio  # slow; `--help` and usage errors must stay fast

    done = asyncio.run(_pause(settings, resource, paused=not resume))
    text = f"SyncPolicy {done['policy']}: the CRD {done['resource']} {'is paused' if done['paused'] else 'goes on'}"
    show({"schema": "crsyncer.api-pause/v1", **done}, output, names=[done["resource"]], text=lambda: plain(text))


async def _pause(settings: Settings, resource: str, *, paused: bool) -> Json:
    from contextlib import aclosing

    from crsyncer.adapters.kube.visit import KubeVisit
    from crsyncer.console.api_pause import pause as pause_api

    login = logins(settings)[Side.ROBOT]
    async with aclosing(await KubeVisit.enter(*login, insecure=settings.insecure_skip_tls_verify)) as visit:
        return await pause_api(visit.request, resource, paused=paused)


@api.command(params=settings_options("state_dir"))
@click.argument("current", type=_FILE)
@click.argument("new", type=_FILE)
@click.option(
    "--pick",
    "picked",
    metavar="VERSION",
    multiple=True,
    help="Take this version of NEW, and of the others only those picked as well; repeatable. Default: all it serves.",
)
@output_options
def diff(current: Path, new: Path, picked: tuple[str, ...], output: str, **flags: Any) -> int:  # noqa: ARG001  (as all)
    """What breaks for the users of the CRD in the file CURRENT, if it follows that in the file NEW.

    Breaking are: a version that is no longer served, a field that is gone or of another type, unknown fields that are
    no longer kept, and another scope. In a path, * is each item of a list or each value of an object. The server
    removes a field that is gone at the next write of each object. Asks no cluster and changes nothing.

    -o json also has the revision of NEW, as `revision`, and the CRD that CURRENT becomes, as `crd`: its versions that
    objects may be stored in stay, unserved; its metadata and conversion stay.

    Exit codes: 0 nothing breaks, 1 something does, 2 usage, or a file that cannot be used.
    """
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
        "breaking": [
            {"change": each.change, "version": each.version, "path": each.path, "message": each.message}
            for each in found
        ],
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
