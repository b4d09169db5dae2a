"""`crsyncer api`: how the CRD of a kind can travel to the other side."""

from pathlib import Path
from typing import Any

import click

from crsyncer.cli.crd_files import LARGEST
from crsyncer.cli.documents import read_document
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import settings_options
from crsyncer.core.model import Json
from crsyncer.core.revise import breaking, follow, read_crd, revise
from crsyncer.core.text import plain
from crsyncer.errors import ConfigError

SCHEMA = "crsyncer.api-diff/v1"
_FILE = click.Path(path_type=Path)


@click.group()
def api() -> None:
    """How the CRD of a kind can travel to the other side.

    The agent does not do that yet: a kind whose SyncPolicy has the field `api` is misconfigured. These commands try it
    on files.
    """


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
