"""`crsyncer version`: which version this is."""

import platform
from typing import Any

import click

from crsyncer import __version__
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import settings_options


@click.command(params=settings_options("state_dir"))
@output_options
def version(output: str, **flags: Any) -> None:  # noqa: ARG001  (every command takes --state-dir and --config)
    """Print the version."""
    content = {"schema": "crsyncer.version/v1", "version": __version__, "python": platform.python_version()}
    show(content, output, names=[__version__], text=lambda: f"crsyncer {__version__}")
