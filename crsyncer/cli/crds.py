"""`crsyncer crds`: the CRDs of crsyncer's own kinds."""

from pathlib import Path
from typing import Any

import click

from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import settings_options

SYNC_POLICY = Path(__file__).parent / "syncpolicy.yaml"
APIS = Path(__file__).parent / "apis.yaml"


@click.command(params=settings_options("state_dir"))
@click.option(
    "--api", is_flag=True, help="Those of APIRevisions and APISets instead, for the side that CRDs travel to."
)
@output_options
def crds(api: bool, output: str, **flags: Any) -> None:  # noqa: ARG001  (every command takes --state-dir and --config)
    """Print the CRD of SyncPolicies, for `kubectl apply -f -` on the robot.

    Asks no cluster. Without this CRD kinds are configured by the annotations of their own CRDs alone.
    """
    import yaml  # not at the top: `--help` shall not wait for it

    text = (APIS if api else SYNC_POLICY).read_text(encoding="utf-8")
    found = [*yaml.safe_load_all(text)]
    show(
        {"apiVersion": "v1", "kind": "List", "items": found},
        "text" if output == "yaml" else output,  # for people and for kubectl: the file with its comments
        names=[f"customresourcedefinition/{crd['metadata']['name']}" for crd in found],
        text=text.rstrip,
    )
