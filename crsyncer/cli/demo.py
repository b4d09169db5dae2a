"""`crsyncer demo`: watch it work, without a cluster."""

import signal
import sys
from pathlib import Path

import click

from crsyncer.errors import SyncError


@click.command()
@click.option("--keep", is_flag=True, help="Leave everything running; prints how to look around and how to stop it.")
@click.option(
    "--crds",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Tell the story with the annotated CRDs in DIR's YAML files. Objects there serve as examples; without any,"
    " they are made up from the schema.",
)
def demo(keep: bool, crds: Path | None) -> int:
    """Watch it work on two throw-away control planes on this machine, told as a story.

    Real API servers, the real agent, a link that is cut, an agent that is killed. Each step says what is expected
    and what the API servers show. Takes about half a minute; the first time minutes more, for the programs.

    Exit codes: 0 every step holds, 1 one does not, 130 interrupted. Nothing is left behind without --keep.
    """
    from crsyncer.sandbox.errors import SandboxError
    from crsyncer.sandbox.story import Story
    from crsyncer.sandbox.story_demo import play

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script may have started us with it ignored
    for number in (signal.SIGTERM, signal.SIGHUP):  # whoever ends it wants it cleaned up, as with Ctrl-C
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return play(Story(_write, colour=sys.stdout.isatty()), crds=crds, keep=keep)
    except SandboxError as error:
        raise SyncError(str(error), hint=error.hint) from error


def _write(line: str) -> None:
    print(line, flush=True)
