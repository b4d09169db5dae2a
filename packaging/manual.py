#!/usr/bin/env python3
"""Writes the manual page and the shells' completion of crsyncer, from its commands: manual.py DIRECTORY SECONDS."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from crsyncer import __version__
from crsyncer.cli.main import crsyncer

_PLACES = {
    BashComplete: "usr/share/bash-completion/completions/crsyncer",
    ZshComplete: "usr/share/zsh/vendor-completions/_crsyncer",
    FishComplete: "usr/share/fish/vendor_completions.d/crsyncer.fish",
}


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """A command and all below it."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                yield from commands(below, click.Context(below, info_name=name, parent=context))


def page(now: datetime) -> str:
    """The manual page, in man(7)'s format."""
    lines = [
        f'.TH CRSYNCER 1 "{now:%Y-%m-%d}" "crsyncer {__version__}" "User Commands"',
        *(".SH NAME", f"crsyncer \\- {_escaped(crsyncer.help or '')}", ".SH SYNOPSIS"),
        *(".B crsyncer", "COMMAND [OPTION]... [ARGUMENT]...", ".SH COMMANDS"),
    ]
    for command, context in commands(crsyncer, click.Context(crsyncer, info_name="crsyncer")):
        if isinstance(command, click.Group):
            continue
        lines += [f".SS {_escaped(' '.join([context.command_path, *command.collect_usage_pieces(context)]))}"]
        for paragraph in (command.help or "").split("\n\n"):
            lines += [".PP", _escaped(" ".join(paragraph.replace("\b", "").split()))]
        for names, about in filter(None, (each.get_help_record(context) for each in command.get_params(context))):
            lines += [".TP", f".B {_escaped(names)}", _escaped(about)]
    see = ["/usr/share/doc/crsyncer has the pages, of which README.md leads to the others."]
    return "\n".join([*lines, ".SH SEE ALSO", *map(_escaped, see), ""])


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main(root: Path, seconds: int) -> None:
    """Write all files under a root directory; `seconds` is the Unix time that the page shows."""
    texts = {"usr/share/man/man1/crsyncer.1": page(datetime.fromtimestamp(seconds, UTC))}
    for complete, place in _PLACES.items():
        texts[place] = complete(crsyncer, {}, "crsyncer", "_CRSYNCER_COMPLETE").source()
    for place, text in texts.items():
        file = root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
