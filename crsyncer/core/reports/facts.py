"""What the agent did or refused, as values. The log, `crsyncer events` and Kubernetes Events all derive from them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from crsyncer.core.model import Key, Side
from crsyncer.core.pair.actions import Create, Delete, HoldReason, Seed, Update, Why


class Action(StrEnum):
    """What was done, or was not done and why."""

    CREATED = "created"
    UPDATED = "updated"
    REVERTED = "reverted"
    ADOPTED = "adopted"
    DELETED = "deleted"
    SEEDED = "status restored"
    SENT = "status sent"
    GIVEN_UP = "status given up"
    CONFLICT = "conflict"
    """The object has changed since: it is decided anew at once."""
    FAILED = "failed"
    """It may have happened, and is tried again."""
    REFUSED = "refused"
    """By the credential, or by us: an object or a kind that cannot be synced."""
    DEAD_LETTER = "dead letter"
    RETRIED = "retried"
    DROPPED = "dropped"
    HELD = "held"
    RELEASED = "released"
    STOPPED = "stopped"
    FINALIZED = "finalizer added"
    UNFINALIZED = "finalizer removed"


UNLISTED = frozenset((Action.SENT, Action.CONFLICT, Action.FAILED))
"""Actions that are logged, but not kept for `crsyncer events`: statuses are many, and each costs a page on disk
(2.4 KB more for the 6.3 KB of a status change, measured); a failed try is repeated by itself.
"""

HOLD_RULES = {
    HoldReason.NAME_TAKEN: "S5.3",
    HoldReason.CONTESTED: "S3.5",
    HoldReason.KIND_MISSING: "S5.5",
    HoldReason.MASS_DELETION: "S5.5",
    HoldReason.RESTORED: "S8.3",
    HoldReason.SELECTION_CHANGED: "C1.7",
    HoldReason.MANUAL: "S5.5",
    HoldReason.ODD_STATUS: "S4.5",
    HoldReason.MUTATION_FAILED: "C4.4",
    HoldReason.SECRET_UNKNOWN: "C5.6",
    HoldReason.API_HELD: "C8.3",
    HoldReason.DUPLICATE: "C2.6",
    HoldReason.RELATED_FAILED: "C5.1",
}
"""The rule that each hold follows."""


def hold_rule(reason: HoldReason, *, by_policy: bool) -> str:
    """The rule that a hold follows; `by_policy`: its kind has a SyncPolicy."""
    return "C2.5" if by_policy and reason is HoldReason.NAME_TAKEN else HOLD_RULES[reason]


POLICY_RULE = "C1.3"
"""The rule by which a kind is not synced whose SyncPolicy cannot be followed."""
KIND_RULES = {"version-mismatch": "S1.5", "kind-missing": "S1.6", "forbidden": "S1.6"}
"""The rule by which a kind in each state is not synced; for a misconfigured one, its first problem has the rule."""


CAUSES = {
    Why.CHANGED: (Action.UPDATED, "S3.2", "the object changed upstream"),
    Why.DRIFT: (Action.REVERTED, "S3.5", "it was changed downstream"),
    Why.ADOPT: (Action.ADOPTED, "S5.4", "this agent did not create it"),
    Why.MARKS: (Action.REVERTED, "C2.4", "its marks were missing or wrong"),
    Why.GONE: (Action.DELETED, "S5", "upstream does not have the object"),
    Why.TERMINATING: (Action.DELETED, "S5", "the upstream object is being deleted"),
    Why.REPLACED: (Action.DELETED, "S5.4", "the upstream object was re-created"),
}
"""What is done to a copy for each reason, by which rule, and the reason in words."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the agent did or refused: on which side, to which object, by which rule."""

    side: Side
    resource: str
    key: Key | None
    """None: the whole kind."""
    action: Action
    rule: str
    message: str = ""
    """The reason, where there is more to say. It may quote a server's answer, and so an object's content."""


def fact_of_write(write: Create | Update | Seed | Delete, *, side: Side, resource: str, key: Key) -> Fact:
    """The fact that a write was made on a side."""
    match write:
        case Create():
            found = (Action.CREATED, "S3.2", "")
        case Seed(follows=follows):
            found = (Action.SENT, "C5.5", "") if follows else (Action.SEEDED, "S4.4", "")
        case Update(why=why) | Delete(why=why):
            found = CAUSES[why]
        case _:
            assert_never(write)
    return Fact(side, resource, key, *found)
