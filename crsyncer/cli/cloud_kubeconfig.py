"""`crsyncer cloud-kubeconfig`: a kubeconfig for the cloud from the Go cr-syncer's --remote-server and a token file."""

import os
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.files import read
from crsyncer.adapters.kubeconfig import url_parts
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import settings_options
from crsyncer.cli.yaml_text import yaml_text
from crsyncer.console.set_up.moving_report import GATEWAY_PATH
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError

_SCHEMA = "crsyncer.cloud-kubeconfig/v1"
_FILE = click.Path(path_type=Path)


@click.command(name="cloud-kubeconfig", params=settings_options("state_dir"))
@click.argument("file", type=_FILE)
@click.option("--remote-server", metavar="HOST", required=True, help="The gateway, as the Go cr-syncer is given it.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=_FILE,
    required=True,
    help="The file with the token. The agent reads it again whenever it changes.",
)
@click.option(
    "--certificate-authority",
    metavar="FILE",
    type=_FILE,
    help="The CA of the gateway's certificate.  [default: the CAs that this machine trusts]",
)
@output_options
def cloud_kubeconfig(
    file: Path,
    remote_server: str,
    token_file: Path,
    certificate_authority: Path | None,
    output: str,
    **flags: Any,  # noqa: ARG001
) -> None:
    """Write FILE, a kubeconfig for the cloud, from what the Go cr-syncer has: its gateway and a token.

    The kubeconfig names the token's file as you give it; as in every kubeconfig, a relative path counts from the
    directory of FILE. Asks no server, and overwrites nothing. Only you may read FILE.
    """
    server = _gateway(remote_server)
    if not read(file.parent / token_file).strip():
        raise ConfigError(f"--token-file: {file.parent / token_file} is empty", hint="a file with a token")
    cluster = {"server": server}
    if certificate_authority is not None:
        read(file.parent / certificate_authority)
        cluster["certificate-authority"] = str(certificate_authority)
    _write(file, _kubeconfig(cluster, {"tokenFile": str(token_file)}))
    content = {"schema": _SCHEMA, "file": str(file), "server": server, "tokenFile": str(token_file)}
    message = f"{file} is written, for {server}\nnext: crsyncer doctor --from-cr-syncer --cloud-kubeconfig {file}"
    show(content, output, names=[str(file)], text=lambda: message)


def _gateway(remote_server: str) -> str:
    """The URL of the API server behind the gateway; raises ConfigError."""
    parts = url_parts(f"https://{remote_server.removeprefix('https://').rstrip('/')}", "https")
    if parts is None or parts.username is not None or parts.path or parts.query or parts.fragment:
        raise ConfigError(f'--remote-server "{remote_server}" is no gateway; allowed: HOST or HOST:PORT')
    return f"https://{parts.netloc}{GATEWAY_PATH}"


def _kubeconfig(cluster: Json, user: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "cloud",
        "clusters": [{"name": "cloud", "cluster": cluster}],
        "users": [{"name": "robot", "user": user}],
        "contexts": [{"name": "cloud", "context": {"cluster": "cloud", "user": "robot"}}],
    }


def _write(file: Path, content: Json) -> None:
    """Create a file that only its owner may read; raises ConfigError, also where it exists."""
    text = yaml_text(content)
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)
    except FileExistsError:
        raise ConfigError(f"{file} exists already and is not overwritten", hint="another name") from None
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written ({error.strerror})", hint="a file in a directory of yours"
        ) from None
