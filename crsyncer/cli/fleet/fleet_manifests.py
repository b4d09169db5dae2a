"""`crsyncer fleet manifests`: what the fleet controller needs in the cloud, with the least rights."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from crsyncer import __version__
from crsyncer.adapters.config import FLEET_OPTIONS
from crsyncer.cli.crd_files import crds_option, read_kinds
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
from crsyncer.console.confinement.manifests import Profile
from crsyncer.console.confinement.workload import Workload, workload_manifests
from crsyncer.core.accounts.robot_account import check_namespace
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Side
from crsyncer.errors import ConfigError
from crsyncer.fleet.domain.values import PROPERTIES_NAMESPACE, PlacedKind
from crsyncer.fleet.rights import Right, kind_rights, own_rights

_ROBOTS = str(FLEET_OPTIONS["robots.resource"].show_default)
_NAME = "crsyncer-fleet"
_PORT = 9465
_MEMORY = ("256Mi", "512Mi")
_OTHERS = ("default", "kube-system", PROPERTIES_NAMESPACE)
"""Namespaces that are there already, or are not the controller's alone."""


@click.command("manifests")
@crds_option("The CRDs of the kinds to place, and SyncPolicies, as files or directories; repeatable.", required=True)
@image_option(f"crsyncer:{__version__}", "The image of crsyncer.")
@click.option(
    "--namespace", metavar="NS", default=_NAME, show_default=True, help="The namespace of the controller's pods."
)
@output_options
def fleet_manifests(crds: Sequence[Path], image: str, namespace: str, output: str) -> None:
    """Print what the fleet controller needs in the cloud, for `kubectl apply -f -`.

    A namespace, an account, roles that allow what the controller does with these kinds and nothing else, and two pods
    of which one leads. Apply the output of `crsyncer fleet crds` first. Nobody is given the right to write
    RobotPlacements, FieldStrips or properties: who has it decides what robots get. Asks no cluster.
    """
    kinds = _placed(read_kinds(crds, Profile.SHARED))
    workload = Workload(
        name=_NAME, namespace=check_namespace(namespace), image=image, arguments=("fleet", "run"), port=_PORT,
        memory=_MEMORY,
    )  # fmt: skip
    if any(kind.sensitive for kind in kinds):
        click.echo("crsyncer: note: the controller reads and writes all Secrets of the cloud", err=True)
    show_manifests([*_places(namespace), *_roles(kinds, namespace), *workload_manifests(workload)], output)


def _placed(policies: Sequence[KindPolicy]) -> list[PlacedKind]:
    """The kinds that may be placed (F2.3); the others are told, and passed over."""
    found = []
    for policy in policies:
        place, synced = policy.in_cloud, not policy.related
        if place.resource == _ROBOTS:
            click.echo(f"crsyncer: note: {_ROBOTS} is not placed: its objects are the Robots", err=True)
        elif synced and policy.upstream is Side.CLOUD:
            found.append(
                PlacedKind(
                    resource=place.resource,
                    group=place.group,
                    plural=place.plural,
                    kind="",
                    version=place.version,
                    namespaced=place.namespaced,
                    has_status=any(version.status for version in policy.versions if version.served),
                    sensitive=policy.sensitive,
                    shared=not policy.filtered,
                )
            )
        elif synced:
            click.echo(f"crsyncer: note: {place.resource} is not placed: robots make its objects", err=True)
    if not found:
        raise ConfigError(
            "--crds has no kind that may be placed",
            hint="needed: spec-source: cloud, and filter-by-robot-name: true but for mode Shared, in annotations or a"
            " SyncPolicy",
        )
    return found


def _places(namespace: str) -> Iterator[Manifest]:
    if namespace not in _OTHERS:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        yield Manifest("the controller", core_object("Namespace", namespace, labels=labels))
    purpose = "the properties of robots, a ConfigMap for each; who may write here decides what robots get"
    yield Manifest(purpose, core_object("Namespace", PROPERTIES_NAMESPACE))
    yield Manifest("the account of the controller", account_object(_NAME, namespace))


def _roles(kinds: Sequence[PlacedKind], namespace: str) -> Iterator[Manifest]:
    rights = own_rights(controller_namespace=namespace, robots=_ROBOTS)
    places: dict[str, list[Right]] = {}
    for right in rights:
        places.setdefault(right.namespace, []).append(right)
    for place, found in places.items():
        what = f"what it needs in namespace {place}" if place else "what the controller needs, whatever it places"
        yield from _role(what, _NAME, place, found, namespace)
    what = "the kinds that are placed: sources and replicas are in many namespaces"
    yield from _role(what, f"{_NAME}-kinds", "", kind_rights(kinds), namespace)


def _role(purpose: str, name: str, place: str, rights: Iterable[Right], namespace: str) -> Iterator[Manifest]:
    kind = "Role" if place else "ClusterRole"
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in rights:
        alike.setdefault((each.group, each.verbs, each.names), []).append(each.resource)
    rules = [rule(group, resources, verbs, names=names) for (group, verbs, names), resources in alike.items()]
    yield Manifest(purpose, rbac_object(kind, name, namespace=place) | {"rules": rules})
    yield Manifest(f"{purpose}: who has it", role_binding(name, place, kind, account_subject(_NAME, namespace)))
