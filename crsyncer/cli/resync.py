"""`crsyncer resync`: list both sides again and compare everything now."""

import time
from typing import Any

import click

from crsyncer.cli.output import TEXTS, output_options, show
from crsyncer.cli.shared import find_state_dir, send_command, settings_options
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, plain

_POLL_SECONDS = 0.2


@click.command(params=settings_options("state_dir"))
@click.argument("resource", required=False, default="")
@output_options
def resync(resource: str, output: str, **flags: Any) -> int:
    """List both sides again and compare every object with its status: of all kinds, or of RESOURCE.

    Returns when all objects are compared and the differences are written. Exit code 1: a kind was not compared.
    """
    directory = find_state_dir(flags)
    content = send_command(directory, command="resync", resource=resource)
    last_lines: dict[str, str] = {}
    while True:
        for kind in content["kinds"]:
            line = _line(kind)
            if output in TEXTS and last_lines.get(kind["resource"]) != line:
                last_lines[kind["resource"]] = line
                click.echo(line)
        if all(kind["state"] in ("done", "failed") for kind in content["kinds"]):
            break
        time.sleep(_POLL_SECONDS)
        content = send_command(directory, command="progress", resync=content["resync"])
    names = [kind["resource"] for kind in content["kinds"]]
    none = "" if names else "no kind is synced at the moment; see crsyncer status"
    show({"schema": "crsyncer.resync/v1", "kinds": content["kinds"]}, output, names=names, text=lambda: none)
    return 1 if any(kind["state"] == "failed" for kind in content["kinds"]) else 0


def _line(kind: Json) -> str:
    objects = kind["objects"]
    match kind["state"]:
        case "done":
            text = f"compared {count(objects['cloud'], 'object')} in the cloud with {objects['robot']} on the robot"
        case "failed":
            text = f"not compared: {kind['message']}"
        case "comparing":
            text = f"comparing, {count(kind['left'], 'object')} left" if kind["left"] else "writing differences"
        case _:
            text = "listing both sides"
    return plain(f"{kind['resource']}: {text}")
