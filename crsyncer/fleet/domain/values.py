"""The values of the fleet controller: robots, sources, placements, replicas (fleet rules, section 1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.content.selector import Selector
from crsyncer.core.content.steps import Remove, Set
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.model import Json
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.transport.keys import ReplicaKey as ReplicaKey
from crsyncer.fleet.domain.transport.keys import SourceKey as SourceKey
from crsyncer.fleet.domain.transport.keys import Target as Target
from crsyncer.fleet.domain.transport.placed_kind import PlacedKind as PlacedKind
from crsyncer.fleet.domain.transport.placed_kind import Verdict as Verdict

GROUP = "fleet.crsyncer.cloudrobotics.com"
API_VERSION = f"{GROUP}/v1alpha1"
F = f"{GROUP}/"
"""The prefix of the controller's own labels, annotations and finalizers."""
PLACEMENT_FINALIZER = F + "placement"
RELEASE = F + "release"
"""The annotation by which somebody releases a hold."""
PROPERTIES_NAMESPACE = "crsyncer-properties"
MOST_RENDERED_BYTES = 512 << 10
MOST_PLACEMENT_BYTES = 1 << 20
MOST_LEVELS = 200
"""More deeply nested content is not rendered: it would overflow the stack."""


class Strategy(StrEnum):
    """What becomes of a replica that exists."""

    UPDATE = "Update"
    CREATE_ONLY = "CreateOnly"


class Reason(StrEnum):
    """What is wrong about one robot or replica: `errors[].reason`."""

    BAD_ROBOT_NAME = "BadRobotName"
    UNKNOWN_ROBOT = "UnknownRobot"
    NAME_TAKEN = "NameTaken"
    TOO_LARGE = "TooLarge"
    RENDER_FAILED = "RenderFailed"
    REFUSED = "Refused"
    CONTESTED = "Contested"
    UNKNOWN_SHARD = "UnknownShard"
    OTHER_SHARD = "OtherShard"


class RobotState(StrEnum):
    """The state of a robot in a placement (F6.4)."""

    READY = "Ready"
    FAILED = "Failed"
    IN_FLIGHT = "InFlight"
    BLOCKED = "Blocked"
    DEFERRED = "Deferred"
    WAITING = "Waiting"
    STAMPED = "Stamped"


@dataclass(frozen=True, slots=True)
class Robot:
    """One object of the inventory."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    """The strings at the top of its spec."""
    terminating: bool = False

    @property
    def shard(self) -> str:
        """The API server that has its replicas (F10.2)."""
        return self.labels.get(SHARD_LABEL) or ROOT


@dataclass(frozen=True, slots=True)
class Source:
    """A source as it is seen. `body` has no managedFields and no status."""

    key: SourceKey
    uid: str
    body: Json
    terminating: bool = False
    has_status: bool = False

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.body["metadata"].get("labels") or {}

    @property
    def seen(self) -> tuple[str, bool, Json]:
        """What of it concerns anybody."""
        return self.uid, self.has_status, self.meaning

    @property
    def meaning(self) -> Json:
        """What of it decides what is written."""
        metadata = self.body["metadata"]
        return {**self.body, "metadata": [metadata.get("labels"), metadata.get("annotations")]}


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of `spec.resources`: sources by names and labels."""

    kind: Resource
    names: frozenset[str] = frozenset()
    selectors: tuple[Selector, ...] = ()
    strategy: Strategy = Strategy.UPDATE


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """One item of `spec.templates`: a manifest that is a source itself."""

    name: str
    kind: Resource
    object: Json
    strategy: Strategy = Strategy.UPDATE


@dataclass(frozen=True, slots=True)
class Property:
    """The verb of an override that sets a robot's property. `kind`: string, integer, number or boolean."""

    name: str
    kind: str = "string"


@dataclass(frozen=True, slots=True)
class OverrideStep:
    """One change of a rendering. `place` is where the placement says so."""

    place: str
    path: str
    verb: Set | Remove | Property


@dataclass(frozen=True, slots=True)
class Override:
    """Steps for the robots that a selector matches."""

    selector: Selector
    steps: tuple[OverrideStep, ...]


@dataclass(frozen=True, slots=True)
class Rollout:
    """How changes reach robots one after another (F8)."""

    groups: tuple[Selector, ...] = ()
    max_concurrency: int | str = "5%"
    max_failures: int = 0
    min_ready_seconds: float = 60.0
    progress_deadline_seconds: float = 1800.0
    stamp_offline: bool = False
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """A RobotPlacement as it is read. `problem`: why it cannot be followed at all; empty: it can."""

    namespace: str
    name: str
    uid: str
    created: str
    """creationTimestamp; the oldest placement governs (F2.4)."""
    generation: int = 0
    terminating: bool = False
    finalized: bool = False
    """It has the controller's finalizer."""
    release: str = ""
    """The id in the annotation `F/release`."""
    robot_selectors: tuple[Selector, ...] = ()
    robot_names: frozenset[str] = frozenset()
    shared: bool = False
    """mode is Shared: the sources themselves go to robots, and `target` means nothing (F10.3)."""
    target: Target = Target.PER_ROBOT
    entries: tuple[Entry, ...] = ()
    templates: tuple[TemplateSource, ...] = ()
    overrides: tuple[Override, ...] = ()
    expand: bool = False
    ready_when: str = ""
    singleton: bool = False
    """statusReturn is Singleton."""
    collectors: tuple[str, ...] = ()
    rollout: Rollout | None = None
    keep_replicas: bool = False
    problem: str = ""
    status: Json = field(default_factory=dict)
    """As it was stored: what a new leader goes on from."""

    @property
    def text(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    @property
    def named(self) -> list[Resource]:
        """The kinds that it names, in its order."""
        return list(dict.fromkeys([*(each.kind for each in self.entries), *(each.kind for each in self.templates)]))

    @property
    def kinds(self) -> list[str]:
        """Their full names."""
        return [each.full_name for each in self.named]

    @property
    def orders(self) -> "Placement":
        """What of it decides what is written: all but its state."""
        return replace(self, generation=0, finalized=False, release="", status={})

    @property
    def age(self) -> tuple[str, str, str]:
        """The order in which placements govern: the oldest first (F2.4)."""
        return self.created, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Marks:
    """What a replica's label and annotation say of it (F3.2)."""

    source_id: str
    stamp: str
    number: int
    """How many writes of ours it has had."""
    source: str
    """NAMESPACE/NAME of the source, PLACEMENT/NAME of a template."""
    placement: str
    """The uid of the placement that governs it."""
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    """The keys that the controller owns."""


@dataclass(frozen=True, slots=True)
class Row:
    """All that memory keeps of a replica (F3.9)."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    robot: str
    target: Target
    marks: Marks
    content: str
    """Digest of content and owned labels and annotations, as seen."""
    keys: tuple[str, ...] = ("spec",)
    """The top-level fields of its content."""
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    """The owned keys that it has."""
    admitted: str = ""
    """The same of our latest write as the server stored it, or of what contained the rendering; "": not known."""
    generation: int = 0
    terminating: bool = False
    annotated: bool = True
    """It has annotations; only an object that is handed over may have none (F3.7)."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a replica must contain. `stamp` is the digest of content, labels and annotations (F3.4)."""

    content: Json
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    stamp: str


@dataclass(frozen=True, slots=True)
class RenderFailed:
    """Why there is no rendering; the replica keeps its last good content."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What shall be there for one source and one robot."""

    source: SourceKey
    source_id: str
    robot: str
    placement: Placement
    """The one that governs."""
    kind: PlacedKind
    namespace: str
    name: str
    strategy: Strategy
    rendering: Rendering | RenderFailed


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Create:
    """POST this."""

    body: Json


@dataclass(frozen=True, slots=True)
class Patch:
    """A JSON Patch whose first operations test uid and resourceVersion."""

    operations: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE with both preconditions."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now: look again when something changes, or at a time (seconds, as given to the decision)."""

    reason: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """It cannot be done: the replica keeps its content, the robot is Blocked."""

    reason: Reason
    message: str


ReplicaPlan = Nothing | Create | Patch | Delete | Wait | Blocked


@dataclass(frozen=True, slots=True)
class Hold:
    """Replicas whose removal waits for a human (F5.2). `id` is the digest of the sorted uids."""

    id: str
    reason: str
    message: str
    uids: tuple[str, ...]
