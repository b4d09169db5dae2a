"""Why the agent has a collection listed that its list-watch would only watch."""

from enum import StrEnum


class AgentListReason(StrEnum):
    """The reasons besides those of `ListReason`; the values are labels of `crsyncer_relists_total` as well."""

    VERIFY = "verify"
    """Deletions have to be verified (S5.5)."""
    KIND_BACK = "kind-back"
    """The kind is back, and a list has to show with which objects (S5.5a)."""
    RELEASED = "released"
    """A human has released the copies of a kind that was missing (S5.5a)."""
    ORPHAN = "orphan"
    """Objects of copies are not known, and a resumed watch does not prove that they are absent (S5)."""
    OUTBOX = "outbox"
    """Statuses from the store have to be compared with the copies (S4.1)."""
    UNANSWERED = "unanswered"
    """A create was not answered, and a resumed watch does not prove that it made no copy (C6.3)."""
    AUDIT = "audit"
    """An audit has found a difference (S4.8)."""
    SELECTION = "selection"
    """The selection of a kind was edited, and lists have to show which copies have no selected original (C1.7)."""
    RELATED = "related"
    """Many related objects are wanted that are not known yet, or stored primaries refer to fewer than before (C5)."""
    RESYNC = "resync"
    """An operator asks for it."""
