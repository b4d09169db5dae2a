"""`crsyncer demo`: watch it work, without a cluster."""

import signal
import sys
from pathlib import Path

import click

from crsyncer.adapters.config import state_dir as chosen
from crsyncer.adapters.store.statedir import DATABASE
from crsyncer.errors import ConfigError, SyncError


@click.command()
@click.option("--keep", is_flag=True, help="Leave everything running; prints how to look around and how to stop it.")
@click.option(
    "--crds",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Tell the story with the annotated CRDs in DIR's YAML files. Objects there serve as examples; without any,"
    " they are made up from the schema.",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    help="Where the demo's agent keeps its state; it stays there afterwards. Not taken from a variable: what is set"
    " for a robot's agent is not the demo's to use.  [default: thrown away at the end]",
)
@click.option("--config", metavar="FILE", help="Configuration file for the demo's agent, beneath its own flags.")
def demo(keep: bool, crds: Path | None, state_dir: str | None, config: str | None) -> int:
    """Watch it work on two throw-away control planes on this machine, told as a story.

    Real API servers, the real agent, a link that is cut, an agent that is killed. Each step says what is expected
    and what the API servers show. Takes about half a minute; the first time minutes more, for the programs.

    Exit codes: 0 every step holds, 1 one does not, 130 interrupted. Nothing is left behind without --keep.
    """
    from crsyncer.sandbox.errors import SandboxError
    from crsyncer.sandbox.story import Story
    from crsyncer.sandbox.story_demo import AgentOptions, play

    options = AgentOptions(*_checked(state_dir, config))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script may have started us with it ignored
    for number in (signal.SIGTERM, signal.SIGHUP):  # whoever ends it wants it cleaned up, as with Ctrl-C
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return play(Story(_write, colour=sys.stdout.isatty()), crds=crds, keep=keep, options=options)
    except SandboxError as error:
        raise SyncError(str(error), hint=error.hint) from error


def _checked(state_dir: str | None, config: str | None) -> tuple[Path | None, Path | None]:
    """The two as absolute paths; raises ConfigError now for what the agent would refuse after all has been built."""
    place = chosen({"config": config, "state_dir": state_dir}, {})
    if state_dir is not None and (place / DATABASE).exists():
        raise ConfigError(f"--state-dir: {place} holds another agent's state; allowed: a directory without any")
    return place if state_dir is not None else None, Path(config).absolute() if config is not None else None


def _write(line: str) -> None:
    print(line, flush=True)
