"""`crsyncer fleet`: commands about the objects of many robots, which platform engineers use in the cloud.

Commands about one robot's agent stand a floor above.
"""

import click

from crsyncer.cli.lazy import LazyGroup

_COMMANDS = {
    "run": "Run the controller in the foreground.",
    "status": "Which robots have what, and if something is wrong, what do I do?",
    "explain": "Why is each replica of a placement for a robot as it is?",
    "plan": "Print every write of a replica that would follow, also from an edit.",
    "render": "Print the objects that a placement makes for a robot.",
    "release": "Let the controller remove what it holds back for a human.",
    "doctor": "Is everything set up for the controller, and if not, what do I do?",
    "crds": "Print the CRDs of the fleet.",
    "manifests": "Print what the fleet controller needs in the cloud.",
}
"""Each command, which is an object `fleet_NAME` in a module of that name, and its line in the help."""


@click.group(cls=LazyGroup, table=_COMMANDS, modules=f"{__name__}.fleet_{{}}")
def fleet() -> None:
    """Which robots shall have which objects: RobotPlacements in the cloud."""
