"""`crsyncer fleet crds`: the CRDs of the fleet's kinds."""

from pathlib import Path

import click

from crsyncer.cli.output import output_options, show

SCHEMAS = Path(__file__).parent / "schemas"
KINDS = (
    *("robotplacements", "robotplacementdecisions", "fieldstrips", "statuscollectors", "combinedstatuses"),
    *("robotsyncstates", "robotobjectstatuses"),
)
"""The files of the fleet's own kinds, in the order in which they are printed."""
INVENTORY = "inventory"


@click.command("crds")
@click.option(
    "--inventory", is_flag=True, help="Also the kind Robot, for a cloud that has no inventory of its robots yet."
)
@output_options
def fleet_crds(inventory: bool, output: str) -> None:
    """Print the CRDs of RobotPlacement and the other kinds of the fleet, for `kubectl apply -f -` in the cloud.

    Asks no cluster. Robots need none of them.
    """
    import yaml  # not at the top: `--help` shall not wait for it

    names = (*KINDS, INVENTORY) if inventory else KINDS
    texts = [(SCHEMAS / f"{name}.yaml").read_text(encoding="utf-8") for name in names]
    found = [yaml.safe_load(text) for text in texts]
    show(
        {"apiVersion": "v1", "kind": "List", "items": found},
        "text" if output == "yaml" else output,  # for people and for kubectl: the files with their comments
        names=[f"customresourcedefinition/{crd['metadata']['name']}" for crd in found],
        text="---\n".join(texts).rstrip,
    )
