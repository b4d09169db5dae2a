"""The command line. The module of a command is imported when it is used, so that `--help` is fast on a slow robot."""

import io
import sys
from collections.abc import Sequence

import click

from crsyncer import __version__
from crsyncer.cli.lazy import LazyGroup
from crsyncer.cli.shared import report_error
from crsyncer.errors import SyncError, first_error

_COMMANDS = {
    "run": "Run the agent in the foreground.",
    "status": "Is my robot in sync, and if not, what do I do?",
    "explain": "Why is, or isn't, this object on the other side?",
    "diff": "What differs between the two clusters now.",
    "events": "The latest things that the agent did or refused.",
    "pending": "Statuses that wait to be sent, and dead letters.",
    "holds": "Deletions and conflicts that wait for your decision.",
    "resync": "List both sides again and compare everything now.",
    "doctor": "Is everything set up, and if not, what do I do?",
    "api": "CRDs that travel to the other side, by the field `api` of a SyncPolicy.",
    "crds": "Print the CRD of SyncPolicies.",
    "mutate": "What the mutations of a SyncPolicy make of an object, tried on files.",
    "cloud-manifests": "Print manifests that confine a robot to its own objects in the cloud.",
    "cloud-kubeconfig": "Write a kubeconfig from the Go cr-syncer's --remote-server and a token file.",
    "check-access": "May the robot's account in the cloud do more than it should?",
    "release": "Let objects in the cloud go that a lost robot's finalizer keeps.",
    "fleet": "Which robots shall have which objects: RobotPlacements in the cloud.",
    "door": "The front door: HAProxy leads each robot to its API server.",
    "demo": "See it work on two throw-away control planes on this machine.",
    "version": "Print the version.",
    "sandbox": "Two throw-away control planes to try things on.",
}
"""Each command, which is an object of this name in a module of this name, and its line in `crsyncer --help`."""


@click.group(
    cls=LazyGroup,
    table=_COMMANDS,
    modules="crsyncer.cli.{}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="crsyncer", message="%(prog)s %(version)s")
def crsyncer() -> None:
    """Syncs Kubernetes custom resources between a cloud and its robots, offline first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 error, 2 usage or configuration, 130 interrupted, or its own."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # objects hold characters that not every terminal has
    try:
        result = crsyncer.main(arguments, prog_name="crsyncer", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (click.ClickException, SyncError, OSError, BaseExceptionGroup) as error:
        return report_error(first_error(error))
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
