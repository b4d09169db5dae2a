"""`crsyncer resync`: list both sides anew and compare everything, now."""

import time
from typing import Any

import click

from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import chosen_state_dir, order, settings_options
from crsyncer.core.model import Json
from crsyncer.core.text import plain

_POLL_SECONDS = 0.2


@click.command()
@click.argument("resource", required=False, default="")
@settings_options("state_dir")
@output_options
def resync(resource: str, output: str, **flags: Any) -> int:
    """List both sides anew and compare every object, statuses too: of all kinds, or of RESOURCE.

    Ends when everything was compared, and what differed was written. Exit code 1 when a kind could not be.
    """
    directory = chosen_state_dir(flags)
    content = order(directory, command="resync", resource=resource)
    said: dict[str, str] = {}
    while True:
        for kind in content["kinds"]:
            line = _line(kind)
            if output in ("text", "wide") and said.get(kind["resource"]) != line:
                said[kind["resource"]] = line
                click.echo(line)
        if all(kind["state"] in ("done", "failed") for kind in content["kinds"]):
            break
        time.sleep(_POLL_SECONDS)
        content = order(directory, command="progress", resync=content["resync"])
    if output not in ("text", "wide"):
        names = [kind["resource"] for kind in content["kinds"]]
        show({"schema": "crsyncer.resync/v1", "kinds": content["kinds"]}, output, names=names, text=str)
    elif not content["kinds"]:
        click.echo("no kind is synced at the moment; crsyncer status says why")
    return 1 if any(kind["state"] == "failed" for kind in content["kinds"]) else 0


def _line(kind: Json) -> str:
    objects = kind["objects"]
    match kind["state"]:
        case "done":
            text = f"compared {objects['cloud']} objects in the cloud with {objects['robot']} on the robot"
        case "failed":
            text = f"not compared: {kind['message']}"
        case "comparing":
            text = f"comparing, {kind['left']} to go"
        case _:
            text = "listing both sides"
    return plain(f"{kind['resource']}: {text}")
