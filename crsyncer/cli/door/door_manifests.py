"""`crsyncer door manifests`: what the front door needs in the cloud, with the least rights."""

from collections.abc import Iterator

import click

from crsyncer import __version__
from crsyncer.adapters.config import DOOR_OPTIONS
from crsyncer.cli.door.door_pods import CERTIFICATE_SECRET, NAME, pod_manifests
from crsyncer.cli.output import image_option, output_options, show_manifests
from crsyncer.console.confinement.manifest_objects import (
    Manifest,
    account_object,
    account_subject,
    core_object,
    rbac_object,
    role_binding,
    rule,
)
from crsyncer.core.accounts.robot_account import check_namespace

_OTHERS = ("default", "kube-system")
"""Namespaces that are there already."""


@click.command("manifests")
@image_option(f"crsyncer-door:{__version__}", "The image of the pods: crsyncer, and HAProxy in PATH.")
@click.option("--namespace", metavar="NS", default=NAME, show_default=True, help="The namespace of the door's pods.")
@output_options
def door_manifests(image: str, namespace: str, output: str) -> None:
    """Print what the front door needs in the cloud, for `kubectl apply -f -`.

    A namespace, an account that may read Robots and nothing else, and two pods, each HAProxy with `crsyncer door run`
    beside it. The certificate is in the Secret crsyncer-door, under tls-combined.pem: certificate and key. Asks no
    cluster.
    """
    check_namespace(namespace)
    show_manifests([*_account(namespace), *pod_manifests(image, namespace)], output)
    click.echo(f"crsyncer: note: the pods wait for the Secret {namespace}/{CERTIFICATE_SECRET}", err=True)


def _account(namespace: str) -> Iterator[Manifest]:
    """The namespace, the account and its one right."""
    resource = str(DOOR_OPTIONS["robots.resource"].show_default)
    robots = str(DOOR_OPTIONS["robots.namespace"].show_default)
    plural, _, group = resource.partition(".")
    if namespace not in _OTHERS:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        yield Manifest("the front door", core_object("Namespace", namespace, labels=labels))
    yield Manifest("the account of crsyncer door run", account_object(NAME, namespace))
    role = rbac_object("Role", NAME, namespace=robots)
    what = "it reads Robots, and nothing else"
    yield Manifest(what, role | {"rules": [rule(group, [plural], ["get", "list", "watch"])]})
    yield Manifest(f"{what}: who may", role_binding(NAME, robots, "Role", account_subject(NAME, namespace)))
