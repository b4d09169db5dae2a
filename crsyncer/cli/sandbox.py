"""`crsyncer sandbox`: two throw-away control planes to play with, the same that the demo and the tests use."""

import json
import shlex
from pathlib import Path

import click

from crsyncer.adapters.config import state_dir as chosen
from crsyncer.adapters.control import ask
from crsyncer.cli.status import STATUS_REQUEST

_FLAGS = {"CRSYNCER_STATE_DIR": "--state-dir", "CRSYNCER_CONFIG": "--config"}
_directory = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where data, logs and kubeconfigs live.  [default: $XDG_CACHE_HOME/crsyncer/sandbox]",
)
_state_dir = click.option(
    "--state-dir",
    metavar="DIR",
    help="Where an agent on these planes keeps its state: `env` hands it on, `down` says when that agent still runs.",
)
_config = click.option(
    "--config", metavar="FILE", help="The configuration file of an agent on these planes: `env` hands it on."
)


@click.group()
def sandbox() -> None:
    """Two throw-away control planes on this machine: a cloud on etcd, a robot on kine with SQLite, as in k3s.

    The first `up` fetches or builds the programs, which takes minutes; later ones take seconds. KUBEBUILDER_ASSETS
    names a directory with kube-apiserver, etcd and, if it is there, kubectl that are used instead.
    """


@sandbox.command()
@_directory
@_state_dir
@_config
def up(directory: Path | None, state_dir: str | None, config: str | None) -> None:
    """Start both planes; they run on until `down`."""
    from crsyncer.sandbox.errors import SandboxError
    from crsyncer.sandbox.sandbox import Sandbox

    agents = _agents(state_dir, config)
    place = directory or _default()
    if (running := Sandbox.attach(place)) is not None and all(plane.healthy() for plane in running.planes):
        click.echo(f"already up in {place}")
        return
    try:
        if running is not None:  # half of it died
            running.down(keep=True)
        made = Sandbox.up(place, detached=True)
    except SandboxError as error:
        raise _failure(error) from error
    for plane in made.planes:
        click.echo(f"{plane.name}  {plane.server}  {made.kubeconfig(plane.name)}  ({plane.datastore.name})")
    command = _with_directory("crsyncer sandbox env", directory)
    for name, path in agents.items():
        command += f" {_FLAGS[name]} {shlex.quote(path)}"
    click.echo(f'next: eval "$({command})"')


@sandbox.command()
@_directory
@_state_dir
@_config
def down(directory: Path | None, state_dir: str | None, config: str | None) -> None:
    """Stop both planes and throw their data away."""
    from crsyncer.sandbox.errors import SandboxError
    from crsyncer.sandbox.sandbox import Sandbox

    agents = _agents(state_dir, config)
    place = directory or _default()
    running = Sandbox.attach(place)
    if running is None:
        click.echo(f"nothing is up in {place}")
        return
    try:
        running.down()
    except SandboxError as error:
        raise _failure(error) from error
    click.echo("down")
    home = agents and chosen({"config": config, "state_dir": state_dir}, {})
    if home and (status := ask(home, STATUS_REQUEST)) is not None:
        click.echo(f"the agent on {home} (process {status['agent']['pid']}) still runs, without its clusters now")


@sandbox.command()
@_directory
@_state_dir
@_config
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def env(directory: Path | None, state_dir: str | None, config: str | None, as_json: bool) -> None:
    """Print the variables that lead a shell, kubectl and `crsyncer run` to the planes.

    kubectl is built by the first `env` where it did not come with the API server; that takes up to a minute.
    """
    from crsyncer.sandbox.errors import SandboxError
    from crsyncer.sandbox.sandbox import Sandbox

    agents = _agents(state_dir, config)
    place = directory or _default()
    running = Sandbox.attach(place)
    if running is None:
        raise click.ClickException(
            f"nothing is up in {place}; start it with: {_with_directory('crsyncer sandbox up', directory)}"
        )
    try:
        kubectl = running.programs.kubectl()
    except SandboxError as error:
        raise _failure(error) from error
    cloud, robot = (str(running.kubeconfig(plane.name)) for plane in running.planes)
    variables = {
        "CLOUD_KUBECONFIG": cloud,
        "ROBOT_KUBECONFIG": robot,
        "CRSYNCER_CLOUD_KUBECONFIG": cloud,
        "CRSYNCER_ROBOT_KUBECONFIG": robot,
        "KUBECTL": str(kubectl),
        **agents,
    }
    if as_json:
        click.echo(json.dumps(variables, indent=2))
    else:
        click.echo("\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))


def _default() -> Path:
    from crsyncer.sandbox.binaries import cache_directory

    return cache_directory() / "sandbox"


def _agents(state_dir: str | None, config: str | None) -> dict[str, str]:
    """The variables of an agent on these planes that were asked for, paths absolute; raises ConfigError."""
    chosen({"config": config, "state_dir": state_dir}, {})
    asked = {"CRSYNCER_STATE_DIR": state_dir, "CRSYNCER_CONFIG": config}
    return {name: str(Path(path).absolute()) for name, path in asked.items() if path is not None}


def _with_directory(command: str, directory: Path | None) -> str:
    return f"{command} --directory {shlex.quote(str(directory))}" if directory else command


def _failure(error: Exception) -> click.ClickException:
    hint = getattr(error, "hint", "")
    return click.ClickException(f"{error}\nhint: {hint}" if hint else str(error))
