"""`crsyncer sandbox`: two throw-away control planes, the same that the demo and the tests use."""

import json
import shlex
from pathlib import Path

import click

from crsyncer.adapters.config import a_directory, a_path
from crsyncer.adapters.config import state_dir as resolve_state_dir
from crsyncer.adapters.control import ask
from crsyncer.cli.status import STATUS_REQUEST
from crsyncer.errors import SyncError

_FLAGS = {"CRSYNCER_STATE_DIR": "--state-dir", "CRSYNCER_CONFIG": "--config"}
_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--directory"],
        type=click.Path(file_okay=False, path_type=Path),
        help="Where data, logs and kubeconfigs live.  [default: $XDG_CACHE_HOME/crsyncer/sandbox]",
    ),
    click.Option(
        ["--state-dir"],
        metavar="DIR",
        type=a_directory,
        help="State directory of an agent on these planes: `env` prints it, `down` warns while that agent runs.",
    ),
    click.Option(
        ["--config"],
        metavar="FILE",
        type=a_path,
        help="Configuration file of an agent on these planes: `env` prints it.",
    ),
]


@click.group()
def sandbox() -> None:
    """Two throw-away control planes on this machine: a cloud on etcd, a robot on kine with SQLite, as in k3s.

    The first `up` downloads or builds the programs, which takes minutes; later ones take seconds. KUBEBUILDER_ASSETS
    names a directory with kube-apiserver, etcd and optionally kubectl to use instead.
    """


@sandbox.command(params=[*_OPTIONS])
def up(directory: Path | None, state_dir: Path | None, config: Path | None) -> None:
    """Start both planes; they run until `down`."""
    from crsyncer.sandbox.two_planes import Sandbox

    agents = _agents(state_dir, config)
    root = directory or _default()
    existing = Sandbox.attach(root)
    if existing is not None and all(plane.healthy() for plane in existing.planes):
        click.echo(f"already up in {root}")
        return
    if existing is not None:  # one plane is not running
        existing.down(keep=True)
    started = Sandbox.up(root, detached=True)
    for plane in started.planes:
        click.echo(f"{plane.name}  {plane.server}  {started.kubeconfig(plane.name)}  ({plane.datastore.name})")
    command = _with_directory("crsyncer sandbox env", directory)
    for name, path in agents.items():
        command += f" {_FLAGS[name]} {shlex.quote(path)}"
    click.echo(f'next: eval "$({command})"')


@sandbox.command(params=[*_OPTIONS])
def down(directory: Path | None, state_dir: Path | None, config: Path | None) -> None:
    """Stop both planes and delete their data."""
    from crsyncer.sandbox.two_planes import Sandbox

    agents = _agents(state_dir, config)
    root = directory or _default()
    existing = Sandbox.attach(root)
    if existing is None:
        click.echo(f"nothing is up in {root}")
        return
    existing.down()
    click.echo("down")
    home = agents and resolve_state_dir({"config": config, "state_dir": state_dir})
    if home and (status := ask(home, STATUS_REQUEST)) is not None:
        pid = status["agent"]["pid"]
        click.echo(f"the agent on {home} (process {pid}) is still running, but its clusters are gone")


@sandbox.command(params=[*_OPTIONS])
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def env(directory: Path | None, state_dir: Path | None, config: Path | None, as_json: bool) -> None:
    """Print environment variables for a shell, kubectl and `crsyncer run`.

    kubectl is that of the download or of the PATH; where neither has one, the first `env` builds it, in some minutes.
    """
    from crsyncer.sandbox.two_planes import Sandbox

    agents = _agents(state_dir, config)
    root = directory or _default()
    existing = Sandbox.attach(root)
    if existing is None:
        hint = f"start it with: {_with_directory('crsyncer sandbox up', directory)}"
        raise SyncError(f"nothing is up in {root}", hint=hint)
    kubectl = existing.programs.kubectl()
    cloud, robot = (str(existing.kubeconfig(plane.name)) for plane in existing.planes)
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


def _agents(state_dir: Path | None, config: Path | None) -> dict[str, str]:
    """The variables of an agent on these planes that were asked for, paths absolute; raises ConfigError."""
    resolve_state_dir({"config": config, "state_dir": state_dir})
    asked = {"CRSYNCER_STATE_DIR": state_dir, "CRSYNCER_CONFIG": config}
    return {name: str(path) for name, path in asked.items() if path is not None}


def _with_directory(command: str, directory: Path | None) -> str:
    return f"{command} --directory {shlex.quote(str(directory))}" if directory else command
