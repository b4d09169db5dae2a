"""`crsyncer demo`: see it work, without a cluster."""

import signal
import sys
from pathlib import Path

import click

from crsyncer.adapters.config import a_directory, a_path
from crsyncer.adapters.config import state_dir as resolve_state_dir
from crsyncer.adapters.store.statedir import DATABASE
from crsyncer.cli.crds import SYNC_POLICY
from crsyncer.cli.fleet.fleet_crds import INVENTORY, KINDS, SCHEMAS
from crsyncer.errors import ConfigError

_FLEET_CRDS = [SCHEMAS / f"{name}.yaml" for name in (*KINDS, INVENTORY)]


@click.command()
@click.option("--keep", is_flag=True, help="Leave everything running; prints how to use it and how to stop it.")
@click.option(
    "--crds",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Use the annotated CRDs in DIR's YAML files. Objects there serve as examples; without any, they are"
    " generated from the schema.",
)
@click.option(
    "--policy",
    is_flag=True,
    help="Show what a SyncPolicy does instead: names, a changed URL, a Secret that travels, a deletion that waits.",
)
@click.option(
    "--fleet",
    is_flag=True,
    help="Show what a RobotPlacement does instead: three robots, canaries first, one robot that is away, a hold.",
)
@click.option(
    "--shards",
    is_flag=True,
    help="Show shards behind a front door instead: four robots, one shard that is killed, one that is split. Needs"
    " haproxy.",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=a_directory,
    help="Where the demo's agent keeps its state; it is kept afterwards. CRSYNCER_STATE_DIR is ignored, to protect a"
    " real agent's state.  [default: a temporary directory]",
)
@click.option(
    "--config", metavar="FILE", type=a_path, help="Configuration file for the demo's agent, beneath its own flags."
)
def demo(
    keep: bool,
    crds: Path | None,
    policy: bool,
    fleet: bool,
    shards: bool,
    state_dir: Path | None,
    config: Path | None,
) -> int:
    """See it work on throw-away control planes on this machine, step by step.

    Real API servers, the real agent, a link that is cut, an agent that is killed. Each step says what is expected
    and what the API servers show. Takes one or two minutes; the first run takes minutes more, to get the programs.

    Exit codes: 0 every step passed, 1 a step failed, 130 interrupted. Nothing is left behind without --keep.
    """
    stories = {"--policy": policy, "--fleet": fleet, "--shards": shards}
    given = {"--keep": keep, "--crds": crds, **stories, "--state-dir": state_dir, "--config": config}
    for alone in ("--fleet", "--shards"):
        others = [flag for flag, value in given.items() if value and flag != alone]
        if given[alone] and others:
            raise ConfigError(f"{alone}: not together with {others[0]}; allowed: {alone} alone")
    if policy and (keep or crds is not None):
        raise ConfigError("--policy: not together with --keep or --crds; allowed: one of them")
    _check(state_dir, config)
    from crsyncer.sandbox.stories.fleet_story import play_fleet
    from crsyncer.sandbox.stories.story import Story
    from crsyncer.sandbox.stories.story_demo import AgentOptions, play

    options = AgentOptions(state_dir, config)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script may have started us with it ignored
    for number in (signal.SIGTERM, signal.SIGHUP):  # clean up as with Ctrl-C
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    story = Story(_write, colour=sys.stdout.isatty())
    if fleet:
        return play_fleet(story, _FLEET_CRDS)
    if shards:
        from crsyncer.sandbox.front_door import find_haproxy
        from crsyncer.sandbox.stories.shards_story import play_shards

        return play_shards(story, find_haproxy(), _FLEET_CRDS, SCHEMAS / "robotsyncstates.yaml")
    return play(story, crds=crds, policy_crd=SYNC_POLICY if policy else None, keep=keep, options=options)


def _check(state_dir: Path | None, config: Path | None) -> None:
    """Raise ConfigError for what the agent would refuse, before anything is built."""
    resolve_state_dir({"config": config, "state_dir": state_dir})
    if state_dir is not None and (state_dir / DATABASE).exists():
        raise ConfigError(f"--state-dir: {state_dir} holds another agent's state; allowed: a directory without any")


def _write(line: str) -> None:
    print(line, flush=True)
