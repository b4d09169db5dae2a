"""The actions that a decision may ask for: a closed union. A hold is an action too, so that operators can see it."""

from dataclasses import dataclass
from enum import StrEnum

from crsyncer.core.model import Key


class Why(StrEnum):
    """The reason of an action, for logs and counters."""

    CHANGED = "changed"
    DRIFT = "drift"
    ADOPT = "adopt"
    MARKS = "marks"
    GONE = "upstream deleted it"
    TERMINATING = "upstream is being deleted"
    REPLACED = "upstream was re-created"


REVERTS = (Why.DRIFT, Why.MARKS)
"""The reasons of writes that revert what somebody has changed on a copy."""


class HoldReason(StrEnum):
    """Why an action is not carried out, for operators."""

    NAME_TAKEN = "NameTaken"
    CONTESTED = "Contested"
    KIND_MISSING = "KindMissing"
    MASS_DELETION = "MassDeletion"
    RESTORED = "Restored"
    SELECTION_CHANGED = "SelectionChanged"
    MANUAL = "Manual"
    ODD_STATUS = "StatusNotAnObject"
    MUTATION_FAILED = "MutationFailed"
    SECRET_UNKNOWN = "SecretUnknown"  # noqa: S105 - not a password
    API_HELD = "APIHeld"
    DUPLICATE = "Duplicate"
    RELATED_FAILED = "RelatedFailed"


@dataclass(frozen=True, slots=True)
class Create:
    """Create the copy. Where `/status` exists, upstream's status follows in a write of its own, `Seed` (S4.4)."""


@dataclass(frozen=True, slots=True)
class Update:
    """Put upstream's content, or (MARKS) only the marks, on the copy with this uid and resourceVersion."""

    uid: str
    resource_version: str
    why: Why


@dataclass(frozen=True, slots=True)
class Seed:
    """Write upstream's status to a new copy, once; from then on downstream owns the status (S4.4).

    `follows`: it is the copy of a related object, whose status goes down whenever it changes (C5.5).
    """

    uid: str
    resource_version: str
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the copy with this uid. The recorded tombstone must be durable first (S6.1).

    An unstamped object is deleted with a resourceVersion precondition, so a late DELETE cannot hit one adopted
    meanwhile (S5.4). So is a copy whose upstream object can still take its last status (S4.1). For any other copy
    `resource_version` is empty. `propagation` is background, foreground or orphan (C6.5).
    """

    uid: str
    why: Why
    resource_version: str = ""
    propagation: str = "background"


class Until(StrEnum):
    """The event that content waits for before it is decided anew."""

    UPSTREAM_LISTED = "a list of upstream shows which of the two is newer"
    COPIES_LISTED = "every copy has been seen"
    COUNTED = "it is known how many copies an edited selection leaves behind"
    STATUS_SENT = "the last status of the former copy has been sent"
    STATUS_SHOWN = "upstream shows the status that it has acknowledged"
    RETRY = "the content that downstream rejects is tried again"
    FINALIZED = "upstream's object has this robot's finalizer"
    VERIFIED = "the deletion upstream is verified"
    RELATED_GONE = "the copies of the objects that go with it have gone"
    REVERTIBLE = "the copy, which somebody keeps changing, may be reverted again"


@dataclass(frozen=True, slots=True)
class Wait:
    """Write nothing yet."""

    until: Until


@dataclass(frozen=True, slots=True)
class Hold:
    """Do nothing, and report why."""

    reason: HoldReason
    message: str
    hint: str = ""
    """Empty: it needs the id that the hold gets."""


NAME_TAKEN = Hold(
    HoldReason.NAME_TAKEN,
    "another object has this name, and it is not a copy that this robot made",
    "rename or delete the object that has the name",
)
ODD_STATUS = Hold(
    HoldReason.ODD_STATUS,
    "the status is not an object",
    "correct the controller that writes it; upstream's status stays as it is",
)
SECRET_UNKNOWN = Hold(
    HoldReason.SECRET_UNKNOWN,
    "the copy of a Secret differs or is gone, and its values are not known: they are in memory only, and the agent was "
    "started since",
    "connect the robot to the cloud: it ends by itself when the Secret has been seen again",
)


def duplicate(name: Key) -> Hold:
    """The hold of an object that bears the marks of an original which has another copy (C2.6)."""
    return Hold(
        HoldReason.DUPLICATE,
        f"its original has two copies: {name} is the one that is not touched",
        "delete the one that is not needed, or take the marks from it; crsyncer explain shows which one is synced",
    )


def mutation_failed(failure: str) -> Hold:
    """The hold of an object on which a step of the kind's policy fails (C4.4)."""
    return Hold(
        HoldReason.MUTATION_FAILED,
        f"a step of the kind's policy fails: {failure}",
        "correct the object or the step; crsyncer mutate tries the steps on an object in a file",
    )


@dataclass(frozen=True, slots=True)
class SendStatus:
    """Put the copy's status into the outbox, for the upstream object with this uid. An empty digest removes it."""

    upstream_uid: str
    digest: str
    hold: Hold | None = None
    """Why it waits there: a step fails on it (C4.4)."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """Upstream already has the copy's status: remember that, and send nothing (S4.9)."""

    upstream_uid: str
    digest: str


@dataclass(frozen=True, slots=True)
class CountAsSent:
    """The status of a copy that is to be adopted is of a former upstream object: this one never gets it (S4.1)."""

    upstream_uid: str
    digest: str
    upstream_status: str
    """Digest of what upstream shows instead."""


ContentAction = Create | Update | Seed | Delete | Hold | Wait
StatusAction = SendStatus | Agreed | CountAsSent | Hold


@dataclass(frozen=True, slots=True)
class Plan:
    """What must be done for one pair. The two halves go to different sides and may run at the same time.

    One order holds between them: the last status of a vanished copy is in the outbox before `content` runs.
    """

    content: ContentAction | None = None
    status: StatusAction | None = None


NOTHING = Plan()
