"""The ways of replicas to robots (F10.1). A transport says where replicas are, and what has to be there before them.

All else is the same for each of them, since every replica is an object at its robot's API server: `watch`, `apply` and
`remove`. Nothing here is sent. A kind is as one API server serves it, so each request says where it goes (F10.2).
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, assert_never

from crsyncer.core.content.replica_mark import SOURCE, name_for_robot
from crsyncer.core.model import Json, Key
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.fleet.domain.fleet_calls import NAMESPACES, ROBOT_NAMESPACE_LABEL, create, delete, item, objects_of, patch
from crsyncer.fleet.domain.names import robot_namespace, source_id
from crsyncer.fleet.domain.values import Create, Marks, Patch, PlacedKind, Row, SourceKey, Target, Verdict


class Request(NamedTuple):
    """A call, and the shard that it goes to."""

    shard: str
    call: Call


class Transport(Protocol):
    """One way of replicas to robots."""

    def address(self, source: SourceKey, robot: str, *, namespaced: bool) -> Key:
        """Namespace and name of a source's replica for a robot (F3.1); of a cluster-scoped kind the namespace is ""."""
        ...

    def prepare(self, robot: str, shard: str) -> Request | None:
        """Make what a robot's replicas need on its shard; None: that is for others to make (F5.5)."""
        ...


class PerRobot:
    """Replicas are in the robot's namespace, by the source's name; cluster-scoped ones as those of Same."""

    def address(self, source: SourceKey, robot: str, *, namespaced: bool) -> Key:
        """The namespace is the robot's own."""
        if not namespaced:
            return TRANSPORTS[Target.SAME].address(source, robot, namespaced=False)
        return Key(robot_namespace(robot), source.name)

    def prepare(self, robot: str, shard: str) -> Request | None:
        """Make the namespace of the robot."""
        metadata = {"name": robot_namespace(robot), "labels": {ROBOT_NAMESPACE_LABEL: robot}}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        return Request(shard, create(NAMESPACES.path, body))


class Same:
    """Replicas are beside the source, by its name and the robot's."""

    def address(self, source: SourceKey, robot: str, *, namespaced: bool) -> Key:
        """The name ends with the robot's."""
        return Key(source.namespace if namespaced else "", name_for_robot(source.name, robot))

    def prepare(self, robot: str, shard: str) -> Request | None:  # noqa: ARG002
        """Leave the namespace of the source to its users."""
        return None


class Shared:
    """Copies are on each shard beside the root, by the source's namespace and name, and for no single robot (F10.3)."""

    def address(self, source: SourceKey, robot: str, *, namespaced: bool) -> Key:  # noqa: ARG002
        """The name is the source's."""
        return Key(source.namespace if namespaced else "", source.name)

    def prepare(self, robot: str, shard: str) -> Request | None:  # noqa: ARG002
        """Leave the namespace of the source to its users."""
        return None


TRANSPORTS: dict[Target, Transport] = {Target.PER_ROBOT: PerRobot(), Target.SAME: Same(), Target.SHARED: Shared()}


def watch(kind: PlacedKind) -> Collection:
    """The objects of a kind that show its replicas, those of all transports, and what else has their names.

    Of a kind that may not be placed only replicas are looked at: they go with their placement (F5.3).
    """
    return objects_of(kind, selector="" if kind.verdict is Verdict.PLACEABLE else SOURCE)


def apply(kind: PlacedKind, replica: Create | Patch, address: Key) -> Request:
    """Make a replica, or change it: the first operations of a patch test the uid and version that were seen (F3.3)."""
    match replica:
        case Create(body):
            call = create(objects_of(kind, address.namespace).path, body, sensitive=kind.sensitive)
        case Patch(operations):
            call = patch(item(objects_of(kind), address), list(operations), sensitive=kind.sensitive)
        case _:
            assert_never(replica)
    return Request(kind.shard, call)


def remove(kind: PlacedKind, row: Row) -> Request:
    """Delete a replica as it was seen, and what depends on it in the background."""
    path = item(objects_of(kind), Key(row.namespace, row.name))
    return Request(kind.shard, delete(path, row.uid, row.resource_version, sensitive=kind.sensitive))


def target_of(raw: Json, resource: str, marks: Marks, robot: str) -> Target | None:
    """The target by which an object has the name that follows from its marks; None: it is no replica (F3.2).

    `robot` is "" for what has no robot's label: only a copy that robots share is that.
    """
    metadata = raw["metadata"]
    own = Key(metadata.get("namespace") or "", metadata["name"])
    for source, target in _meant(resource, marks, own.namespace):
        is_meant = (target is Target.SHARED) is not bool(robot) and (own.namespace or target is not Target.PER_ROBOT)
        if is_meant and own == TRANSPORTS[target].address(source, robot, namespaced=bool(own.namespace)):
            return target
    return None


def _meant(resource: str, marks: Marks, namespace: str) -> Iterator[tuple[SourceKey, Target]]:
    """The sources, with targets, that marks may mean: NAMESPACE/NAME of an object, or PLACEMENT/NAME of a template."""
    first, _, name = marks.source.rpartition("/")
    key = SourceKey(resource, first, name)
    if source_id(key) == marks.source_id:
        yield from ((key, target) for target in TRANSPORTS)
    elif first:
        # A template's namespace is its placement's. Only a replica beside it shows which one that is.
        beside = SourceKey(resource, namespace, name, first)
        yield beside, Target.PER_ROBOT
        if not namespace or source_id(beside) == marks.source_id:
            yield beside, Target.SAME
