"""Data types that all packages share: sides, keys, observations, and the record of a pair of objects."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

Json = dict[str, Any]
"""A decoded JSON object, such as a Kubernetes object."""


class Side(StrEnum):
    """One of the two clusters."""

    CLOUD = "cloud"
    ROBOT = "robot"

    @property
    def other(self) -> "Side":
        """The opposite cluster."""
        return Side.ROBOT if self is Side.CLOUD else Side.CLOUD


class Gap(StrEnum):
    """Why there is no view of an object. Nothing is deleted, blanked or overwritten because of UNSEEN."""

    UNSEEN = "unseen"
    """We do not know."""
    ABSENT = "absent"
    """A complete, consistent list lacks the object, or a later watch has delivered its deletion."""


class Key(NamedTuple):
    """An object of one kind; the same on both sides. `namespace` is empty for cluster-scoped kinds.

    A tuple, because keys are looked up more often than anything else is done, and tuples are the quickest to hash.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


EntryId = tuple[str, str]
"""What names an entry of `related`, also after it has changed: its SyncPolicy, and its id there."""
Source = tuple[EntryId, Key]
"""An entry, and a primary."""


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of one object, as a digest of a collection lists it."""

    key: Key
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """What our annotations on a copy say: whose copy it is, and what was last applied to it (S3.4, S5.4)."""

    upstream_uid: str
    robot: str = ""
    digest: str = ""
    """Digest of the upstream content that was applied; empty when the annotation is missing or unreadable."""
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    """The keys that upstream owned at that time."""
    bare: bool = False
    """Nothing says what was applied: whoever made the object has put marks on it alone (C2.2)."""


class ReplicaMark(NamedTuple):
    """What the fleet's marks on an object say: the uid of its placement, and the number of the write (F3.2)."""

    placement: str
    number: int


@dataclass(frozen=True, slots=True)
class View:
    """An object seen on one side, reduced to what decisions need. The body itself lives on disk (S6.6)."""

    uid: str
    resource_version: str
    generation: int
    terminating: bool
    content: str
    """Digest of the content that upstream owns (S3.1). Downstream: of labels and annotations only the stamped."""
    status: str
    """Digest of the status that moves: all of it, or the subtree. Empty: there is none (or an empty one)."""
    has_status: bool
    """Whether `.status` is there at all, which `status` does not show in subtree mode."""
    odd_status: bool = False
    """`.status` is there, but is not an object, so nothing may be concluded from it (S4.5)."""
    stamp: Stamp | None = None
    failure: str = ""
    """Why a step of the kind's policy fails on the object; empty: none does (C4.4)."""
    unmarked: bool = False
    """It is a copy whose marks are missing or wrong (C2.4)."""
    propagation: str = ""
    """What the annotation of an original with a SyncPolicy says of its copy's dependents (C6.5); empty: nothing."""
    controlled: bool = False
    """It is no copy of ours, and a controller of its own cluster owns it: it is not adopted (C2.5)."""
    called: Key | None = None
    """The copy's own namespace and name, where the namespace map alone does not make them of the key (C2.3)."""
    finalized: bool = False
    """Upstream's object has this robot's finalizer (C6)."""
    deleted_at: float = 0.0
    """When the deletion of a terminating object began, by its server's clock (Unix time, seconds); 0: it did not."""
    unselected: bool = False
    """It is a copy that the kind's selector does not match: no list and no watch shows it (C1.7)."""
    replica: ReplicaMark | None = None
    """Upstream's object is a replica of the fleet for this robot; None: it is not, or not in the cloud (F9.5)."""
    shared: bool = False
    """Upstream's object takes no status: that of each robot's copy goes to an object of that robot's own (F10.3)."""


Found = View | Gap
"""An object as it was found, or why there is none."""


class Freshness(StrEnum):
    """How fresh an observation is: of an object, and of the absence of one.

    Only a confirmed one shows which of two upstream objects is newer (S5.4).
    """

    STORED = "stored"
    """Known from disk, or from before the connection was lost. Whatever is not known may be there."""
    RESUMED = "resumed"
    """The watch went on from a cursor: newer events may still be on their way. Upstream this proves no absence."""
    CONFIRMED = "confirmed"
    """A consistent list of this connection shows it (or its absence), or the watch after that list."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of one name on one side: an object, its absence, or nothing; and how fresh that is."""

    found: Found
    freshness: Freshness = Freshness.CONFIRMED
    deleted_uid: str | None = None
    """The uid in the recorded tombstone, "" where it is not known; None: there is no tombstone."""

    def of(self, uid: str) -> Found:
        """What is known of the very object with this uid, whatever has its name (S5.4).

        That something else has the name proves its absence only when it is confirmed: else that may be the older one.
        """
        if isinstance(self.found, View) and self.found.uid == uid:
            return self.found
        if self.found is Gap.UNSEEN:
            return Gap.UNSEEN
        proven = self.freshness is Freshness.CONFIRMED or self.deleted_uid in ("", uid)
        return Gap.ABSENT if proven else Gap.UNSEEN


class OwnStatus(NamedTuple):
    """The RobotObjectStatus that this robot has, or may have, of an upstream object, as it was seen last (F10.3)."""

    namespace: str
    upstream_uid: str
    """The uid of the upstream object that it is about."""
    uid: str = ""
    """Empty: it is not known whether it is there."""
    resource_version: str = ""
    """Empty: its other metadata have to be read before it is written."""
    status: str = ""
    """Digest of the status that it has; empty: none."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered about a pair beyond what both objects show. Losing it costs a write, never data."""

    upstream_uid: str = ""
    """The upstream object all of this is about; a record of another uid counts as empty."""
    applied: str = ""
    """Digest of the upstream content that we last wrote downstream."""
    admitted: str = ""
    """Digest of what admission or defaulting downstream made of that content (S3.5)."""
    acknowledged: str = ""
    """Digest of the downstream status that upstream last acknowledged; empty: none, or it was removed."""
    acknowledged_version: str = ""
    """Upstream's resourceVersion in that acknowledgement."""
    upstream_status: str = ""
    """Digest of what upstream made of that status (S4.9)."""
    had_status: bool = False
    """Downstream had a status for this upstream uid, so its absence means removal (S4.3)."""
    seed: bool = False
    """The copy that we create still needs upstream's status (S4.4)."""
    generations: tuple[tuple[int, int], ...] = ()
    """(downstream, upstream) generations with the same content, oldest first; 0: one that is not known (S4.7)."""
    propagation: str = ""
    """What the annotation of an upstream object that is gone said of the dependents of its copy (C6.5)."""
    unanswered: tuple[str, ...] = ()
    """Digests of statuses whose writes were not answered: each may still land upstream, after a newer one (S10).
    `ANY_STATUS`: of another part of the status than goes up now."""
    called: Key | None = None
    """The name that was chosen for the copy, until a write of it is answered: it may be there, unseen (C2.3)."""
    own: OwnStatus | None = None
    """The robot's own object with the status, of whichever upstream object had the name; None: there is none."""
    returned: bool = False
    """It is that object, not upstream's, of which `acknowledged` and what follows from that is said (F10.3)."""
    seeding: str = ""
    """The resourceVersion of a related copy that was sent a status, until an answer or another version shows what
    became of that: it has it or not, whatever its original has since (C5.5)."""


ANY_STATUS = "*"
"""No digest: it stands for each of them."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One row of the outbox: the newest status of an object that upstream has not acknowledged (S6.3)."""

    seq: int
    upstream_uid: str
    digest: str
    """Digest of the value; empty: upstream's status (or subtree) is to be removed."""
    value: Any
    """What to write: the status, or the subtree's value; None for a removal."""
    since: float
    """Unix time, in seconds, at which the object first became dirty."""
    merged: int = 0
    """How many newer values have replaced an unsent one."""
    attempts: int = 0
    error: str = ""
    dead: bool = False
    """Rejected for good: tried hourly, revived by any change (S10)."""
    unanswered: str = ""
    """Digest of the latest value whose write was not answered, or was under way when this value replaced it: upstream
    may have received it."""
    follows: str = ""
    """Digest of upstream's status when the first value was queued, whoever had written it; `ANY_STATUS`: upstream was
    restored since, so that whatever it shows is older."""
    raw: bool = False
    """`value` is the whole copy: the steps of the kind's policy make the status of it when it is sent (C4.1)."""
    reselected: bool = False
    """The selection was edited while it waited: its object may be out of sight, and not gone (C1.7)."""

    @property
    def status(self) -> Any:
        """The status as downstream has it, or in subtree mode the subtree's value."""
        return self.value["status"] if self.raw else self.value


@dataclass(frozen=True, slots=True)
class FinalizerRow:
    """A row of the outbox: the finalizer of ours that an upstream object has, or may have (C6.3)."""

    upstream_uid: str
    name: str
    """The finalizer."""
    side: str
    """The side that is upstream."""
    since: float = 0.0
    """Since when its removal waits (Unix time, seconds); 0: it stays."""
    attempts: int = 0
    error: str = ""
    overdue: bool = False
    """Its grace period was over while there still was a copy (C6.4)."""
    removed: bool = False
    """It was removed; the row waits until the overdue copy has gone."""
    place: tuple[str, ...] = ()
    """The objects among which it is there: group, version and plural; empty: an earlier version has not noted that."""


class Proof(StrEnum):
    """What shows that a row of the outbox is the newest status of its object: the store may be an older one (S4.1)."""

    SHOWN = "shown"
    """Its copy has shown this status since the agent started."""
    UNCHECKED = "unchecked"
    """The row is from the store, and the copies have not all been seen since."""
    MISSING = "missing"
    """The row is from the store, and its copy does not show this status: upstream may have had a newer one."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Why a copy goes, recorded before it does: upstream's deletion, a release, or nothing refers to it (S7.1)."""

    upstream_uid: str
    since: float
    held: str = ""
    """Why the deletion is held back for a human, so that a restart does not forget it; empty: it is not."""
    verified: bool = False
    """The deletion was verified, or released by a human: it is carried out without the cloud, too (S7.1)."""
    hold_id: str = ""
    hold_since: float = 0.0
    """The hold that it belongs to, as `holds list` names it, and since when (Unix time, seconds)."""
    unreferenced: bool = False
    """The original may be there: nothing refers to it any more although primaries stay, which no list proves (C5.4)."""


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """What a primary refers to by an entry of `related`, recorded until the pair of the primary is gone (C5.4)."""

    originals: tuple[tuple[str, str], ...] = ()
    """Namespaces and names of the originals that it names."""
    selected: str | None = None
    """The namespace of the originals that it selects; None: it selects none."""
    released: bool = False
    """The deletion of the primary's copy is verified: the related copies that only it needs go, before that copy."""
    unknown: bool = False
    """Which originals these are was never read, may not be stored (C5.6), or is damaged: each may be one of them."""
    text: str = ""
    """What the entry said when the primary was read (`RelatedEntry.text`)."""


_UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Up to where a side's events of one kind and scope are in the store (S6.2).

    It belongs to `identity` (the cluster and its history), `path` (group, version, resource, namespace) and
    `fingerprint` (what is seen of which objects); where any of them differs from what is wanted now, it is not used.
    """

    identity: str
    path: str
    fingerprint: str
    resource_version: str
    boot: str = ""
    """The boot of the robot's machine in which it was stored; empty: it is the cloud's, or no boot was known (S8.4)."""
    seen_uid: str = ""
    seen_version: str = ""
    """The last event's object, which may be gone: a server with the same history shows it again. Empty: none yet."""

    def unfinished(self) -> "Cursor":
        """A cursor that nothing resumes from, as the list before it has not ended or another one is needed.

        It says of which history the objects in the store are, and how new: by that a restore is noticed (S8.2).
        """
        return replace(self, fingerprint=_UNFINISHED)

    @property
    def is_finished(self) -> bool:
        """Whether everything up to here is in the store."""
        return self.fingerprint != _UNFINISHED


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything that the store has of one kind, as read at start."""

    views: dict[Side, dict[Key, View]] = field(default_factory=lambda: {Side.CLOUD: {}, Side.ROBOT: {}})
    records: dict[Key, Record] = field(default_factory=dict)
    pending: dict[Key, Pending] = field(default_factory=dict)
    tombstones: dict[Key, Tombstone] = field(default_factory=dict)
    finalizers: dict[Key, FinalizerRow] = field(default_factory=dict)
    cursors: dict[tuple[Side, str], Cursor] = field(default_factory=dict)
    """By side and namespace ("" = all namespaces)."""
    seen: set[tuple[Side, Key]] = field(default_factory=set)
    """The sensitive objects that were seen since the agent's start: of others there are digests only (C5.6)."""
