"""`crsyncer fleet`: commands about the objects of many robots, which platform engineers use in the cloud.

Commands about one robot's agent stand a floor above.
"""

import click

from crsyncer.cli.lazy import LazyGroup

_COMMANDS = {
    "status": "Which robots have what, and if something is wrong, what do I do?",
    "explain": "Why is each replica of a placement for a robot as it is?",
    "crds": "Print the CRDs of the fleet.",
    "manifests": "Print what the fleet controller needs in the cloud.",
    "plan": "Print every write of a replica that would follow, also from an edit.",
    "release": "Let the controller remove what it holds back for a human.",
    "render": "Print the objects that a placement makes for a robot.",
    "run": "Run the controller in the foreground.",
}
"""Each command, which is an object `fleet_NAME` in a module of that name, and its line in the help."""


@click.group(cls=LazyGroup, table=_COMMANDS, modules=f"{__name__}.fleet_{{}}")
def fleet() -> None:
    """Which robots shall have which objects: RobotPlacements in the cloud."""
