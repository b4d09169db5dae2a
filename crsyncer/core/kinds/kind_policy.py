"""Everything that decides how one kind is synced."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.selector import Selector
from crsyncer.core.content.shape import AS_RECEIVED, Shape
from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.kinds.fingerprint import RELATED, CloudKind, Fingerprint
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.kinds.naming import Naming
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.kinds.sync_policy import Projection, SyncPolicy
from crsyncer.core.model import Found, Key, Side, View
from crsyncer.errors import Conflict

SECRETS = "secrets"
"""The full name of what is sensitive."""
_NO_KEY = Key("", "")


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the robot's CRD. `status`: it has the status subresource."""

    name: str
    served: bool
    storage: bool
    status: bool


@dataclass(frozen=True, slots=True)
class KindPolicy:
    """Everything that decides how one kind is synced. Equal policies need no restart (S1.1)."""

    on_robot: Endpoint
    in_cloud: Endpoint
    versions: tuple[Version, ...]
    """Those of the robot's CRD."""
    upstream: Side
    filtered: bool = False
    robot: str = ""
    subtree: str | None = None
    map_generation: bool = False
    keep_drift: bool = False
    keep_orphans: bool = False
    version_is_guess: bool = field(default=False, compare=False)
    """Whether the cloud has not shown which versions it serves: it may serve others only."""
    problem: str = ""
    """Why the kind cannot be synced as annotated; empty when it can."""
    rule: str = ""
    """The rule that the first problem breaks; of a kind with a SyncPolicy always C1.3."""
    has_crd: bool = True
    """On the robot (C1.4)."""
    namespaces: Namespaces = EVERYWHERE
    """Where its objects are, on a side on which it is namespaced."""
    shape: Shape = AS_RECEIVED
    """What becomes of objects on their way."""
    aliases: tuple[str, ...] = field(default=(), compare=False)
    """What else operators may call the kind: singular, kind and short names. Other names need no restart."""
    digest_key: bytes = field(default=b"", repr=False)
    """The key of the digests of what is sensitive (C5.6)."""
    sync_policy: SyncPolicy | None = field(default=None, hash=False)
    """The SyncPolicy of the kind; None: it has none. Where another field has the same setting, that field counts."""

    projected: Projection | None = None
    """What differs in the cloud by a SyncPolicy (C7); None: nothing may, but for `/status`."""
    related: tuple[RelatedEntry, ...] = ()
    """The entries of SyncPolicies whose related objects the kind's objects are; none: it is synced by itself (C5)."""
    downstream: Side = field(init=False, repr=False, compare=False)
    """The side that owns status."""

    def __post_init__(self) -> None:
        """Follow from the other fields what is asked for with every object."""
        object.__setattr__(self, "downstream", self.upstream.other)

    @property
    def keep_copies(self) -> bool:
        """Whether no copy is ever deleted: they are related objects, and are kept (C5.4)."""
        return any(each.related.keep for each in self.related)

    @property
    def copies_status(self) -> bool:
        """Whether an original's status goes to its copy: they are related objects, and it shall (C5.5).

        Where the copy's side has no `/status` it stays where it is.
        """
        asked = any(each.related.status for each in self.related)
        return asked and self.endpoint(self.downstream).status

    @property
    def takes_replicas(self) -> bool:
        """Whether the kind's objects may be replicas of a fleet: they come from the cloud, by robot name (F2.3)."""
        return self.upstream is Side.CLOUD and self.filtered

    @property
    def resource(self) -> str:
        """What the robot calls the kind: such as goals.lab.example.com, or without a CRD configmaps."""
        return self.on_robot.resource

    @property
    def version(self) -> str:
        """The version spoken with the robot; empty: none is agreed on yet."""
        return self.on_robot.version

    @property
    def namespaced(self) -> bool:
        """Whether upstream's objects are in namespaces, and so are the keys of pairs."""
        return self.endpoint(self.upstream).namespaced

    def endpoint(self, side: Side) -> Endpoint:
        """How a side serves the kind."""
        return self.in_cloud if side is Side.CLOUD else self.on_robot

    def cloud_version(self, version: str) -> str:
        """The version spoken with the cloud where this one is spoken with the robot: another one if both are given."""
        given = None if self.projected is None else self.projected.version
        return given or version

    @property
    def changes_scope(self) -> bool:
        """Whether objects of one side are in namespaces, and those of the other are not (C7)."""
        return self.on_robot.namespaced is not self.in_cloud.namespaced

    @property
    def sensitive(self) -> bool:
        """Whether its objects are Secrets on a side: they are kept in memory only, and nobody sees a value (C5.6)."""
        return SECRETS in (self.on_robot.resource, self.in_cloud.resource)

    @property
    def selector(self) -> str:
        """The label selector sent on every list and watch, on both sides; empty: none (S2.1)."""
        own = f"{ROBOT_LABEL}={self.robot}" if self.filtered else ""
        more = self._policy_selector
        return ",".join(filter(None, (own, more.text))) if more is not None else own

    def selector_on(self, side: Side) -> str:
        """The label selector on a side: copies of related objects are found by their marks (C5.3)."""
        marks = self.shape.marks_of(_NO_KEY) if self.related and side is self.downstream else None
        return self.selector if marks is None else marks.selector

    @property
    def naming(self) -> Naming | None:
        """The templates that make the names of copies; None: they are those of upstream's objects."""
        if self.related:
            return self.related[0].naming
        return None if self.sync_policy is None else self.sync_policy.naming

    @property
    def names_copies(self) -> bool:
        """Whether a template makes the names of copies. Then local objects are never touched (C2.2)."""
        return self.naming is not None or any(each.named for each in self.related)

    @property
    def selector_keys(self) -> frozenset[str]:
        """The labels that decide whether an object is selected."""
        own, more = frozenset({ROBOT_LABEL} if self.filtered else ()), self._policy_selector
        return own if more is None else own | more.keys

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is synced."""
        more = self._policy_selector
        own = not self.filtered or labels.get(ROBOT_LABEL) == self.robot
        return own and (more is None or more.matches(labels))

    @property
    def blocking(self) -> bool:
        """Whether an upstream object stays, once it is deleted, until its copy has gone (C6.1)."""
        deletion = None if self.sync_policy is None else self.sync_policy.deletion
        return deletion is not None and deletion.blocking

    @property
    def grace_seconds(self) -> float:
        """For how long a deleted upstream object waits for its copy at most (C6.4)."""
        deletion = None if self.sync_policy is None else self.sync_policy.deletion
        return 0.0 if deletion is None else deletion.grace_seconds

    @property
    def finalizer(self) -> str:
        """The finalizer by which this robot keeps an upstream object (C6.1)."""
        return f"{OURS}robot-{self.robot}"

    @property
    def propagation(self) -> str:
        """What becomes of the dependents of a copy that is deleted: background, foreground or orphan (C6.5)."""
        deletion = None if self.sync_policy is None else self.sync_policy.deletion
        return "background" if deletion is None else deletion.propagation

    @property
    def _policy_selector(self) -> Selector | None:
        return None if self.sync_policy is None else self.sync_policy.filter.selector

    @property
    def fingerprint(self) -> Fingerprint:
        """All that decides what is seen of which objects: under another one, what is stored may mean nothing."""
        cloud, robots = self.in_cloud, self.on_robot
        same = (cloud.resource, cloud.kind, cloud.namespaced) == (robots.resource, robots.kind, robots.namespaced)
        status = "*" if self.subtree is None else self.subtree
        return Fingerprint(
            self.robot if self.filtered else "",
            "" if self._policy_selector is None else self._policy_selector.text,
            self.upstream,
            None if same else CloudKind(cloud.resource, cloud.kind, cloud.scope),
            RELATED + self.selector_on(self.downstream) if self.related else status,
            names_copies=self.names_copies,
        )

    # The key of a pair is upstream's. Only a request needs to know what the object is called on its side.

    @property
    def places(self) -> tuple[str, ...]:
        """Upstream's namespaces that are synced. "" stands for all, or for none where the kind is cluster-scoped."""
        return (self.namespaces.on(self.upstream) if self.namespaced else ()) or ("",)

    def places_on(self, side: Side) -> tuple[str, ...]:
        """Those of upstream's namespaces that a side is asked about one by one; "": it is asked about all at once."""
        return self.places if self.endpoint(side).namespaced else ("",)

    def key_on(self, side: Side, key: Key) -> Key:
        """What a side calls the object of a pair, by the namespace map. Raises Conflict where it has no place there.

        Of an object in the other scope only a template can tell the whole name (C7).
        """
        if not self.endpoint(side).namespaced:
            return Key("", key.name)
        namespace = self.namespaces.translate(key.namespace, self.upstream, side)
        if namespace is None:
            raise Conflict(f"the namespace {key.namespace} is not in the namespace map")
        return Key(namespace, key.name)

    def new_name(self, key: Key) -> Key:
        """What a copy is called that is made now; it keeps that name for good (C2.3).

        Raises Conflict as `key_on`, and Never where the templates make no valid name.
        """
        copy = self.key_on(self.downstream, key)
        if self.naming is None:
            return copy
        namespaced = self.endpoint(self.downstream).namespaced
        made = self.naming.new_name(key, robot=self.robot, identity=self.shape.identity, namespaced=namespaced)
        return Key(copy.namespace, made.name) if self.namespaces.cloud else made

    def copy_name(self, key: Key, copy: Found) -> Key:
        """What a copy is called, or where there is none, will be. Raises as `new_name`."""
        if not isinstance(copy, View):
            return self.new_name(key)
        return copy.called or self.key_on(self.downstream, key)

    def key_of(self, side: Side, found: Key) -> Key | None:
        """The key of the pair whose object a side calls so, by the namespace map; None: it is outside of the map.

        A name in the other scope tells no key (C7).
        """
        if self.changes_scope and side is self.downstream:
            return None
        namespace = self.namespaces.translate(found.namespace, side, self.upstream)
        if namespace is None:
            return None
        return found if namespace == found.namespace else Key(namespace, found.name)
