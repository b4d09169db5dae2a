"""Output of a command: -o text, json, yaml, wide or name, as in kubectl."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import click

from crsyncer.cli.yaml_text import yaml_text
from crsyncer.console.confinement.manifest_objects import Manifest
from crsyncer.core.model import Json, Key
from crsyncer.core.reports.text import plain
from crsyncer.errors import ConfigError

FORMATS = ("text", "json", "yaml", "wide", "name")
TEXTS = ("text", "wide")
"""The formats for people."""


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-o FORMAT` and `--json`; the command is called with `output`, one of FORMATS."""

    @wraps(command)
    def run(*arguments: Any, output: str, as_json: bool, **options: Any) -> Any:
        return command(*arguments, output="json" if as_json else output, **options)

    formats = click.option(
        "-o", "--output", type=click.Choice(FORMATS), default="text", help="Output format.", show_default=True
    )
    short = click.option("--json", "as_json", is_flag=True, help="The same as -o json: one document, for programs.")
    return formats(short(run))


namespace_option = click.option("-n", "--namespace", "namespace", default="", help="Namespace of the object.")
yes_option = click.option("--yes", is_flag=True, help="Do it without asking.")


def image_option(default: str, help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--image IMAGE` of pods; ConfigError where no image can be called so."""

    def check(_context: click.Context, _option: click.Parameter, name: str) -> str:
        if not name or re.search(r"\s", name):
            raise ConfigError(f'--image is "{plain(name[:80])}"; allowed: the name of an image, such as {default}')
        return name

    return click.option("--image", metavar="IMAGE", default=default, show_default=True, callback=check, help=help_text)


def object_name(row: Json) -> str:
    """An object as NAMESPACE/NAME, or as NAME where it has no namespace."""
    return str(Key(row["namespace"], row["name"]))


def full_name(row: Json) -> str:
    """An object as RESOURCE/NAMESPACE/NAME, or as RESOURCE/NAME where it has no namespace."""
    return f"{row['resource']}/{object_name(row)}"


def show(
    content: Json,
    output: str,
    *,
    names: Iterable[str],
    text: Callable[[], str] = str,
    wide: Callable[[], str] | None = None,
    stream: bool = False,
) -> None:
    """Print a document in the chosen format; of an empty text nothing. Without `wide`, it is the same as `text`.

    With `stream` more documents follow: JSON is one line each, YAML documents are separated.
    """
    match output:
        case "json":
            click.echo(json.dumps(content, indent=None if stream else 2))
        case "yaml":
            click.echo(("---\n" if stream else "") + yaml_text(content), nl=False)
        case "name":
            for name in names:
                click.echo(plain(name))
        case _:
            if shown := wide() if output == "wide" and wide is not None else text():
                click.echo(shown)


def show_manifests(manifests: Sequence[Manifest], output: str) -> None:
    """Print objects to apply, each with what it is for."""
    contents = [manifest.content for manifest in manifests]
    show(
        {"apiVersion": "v1", "kind": "List", "items": contents},
        "text" if output == "yaml" else output,  # for people and for kubectl: one stream of YAML documents
        names=map(_manifest_name, contents),
        text=lambda: "---\n".join(f"# {each.purpose}\n{yaml_text(each.content)}" for each in manifests).rstrip("\n"),
    )


def _manifest_name(content: Json) -> str:
    kind, metadata = content["kind"].lower(), content["metadata"]
    where = f" -n {metadata['namespace']}" if "namespace" in metadata else ""
    return f"{kind}/{metadata['name']}{where}"


def confirmed(question: str, preview: str, *, yes: bool, output: str) -> bool:
    """True with --yes, else the preview is shown: then True after confirmation at a terminal, otherwise False."""
    if yes:
        return True
    click.echo(preview, err=output not in TEXTS)
    if not sys.stdin.isatty():
        click.echo("nothing was changed; repeat the command with --yes", err=True)
        return False
    return click.confirm(question, err=True)
