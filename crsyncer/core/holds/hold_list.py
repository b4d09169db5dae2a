"""The register of all that is held back for a human, as `holds list` shows it.

Which deletions of a kind are held is decided in `deletion_holds.py`, and when they are in `hold_machine.py`.
"""

from collections.abc import Set
from dataclasses import dataclass, field

from crsyncer.core.model import Key
from crsyncer.core.pair.actions import Hold, HoldReason

KIND_MISSING = Hold(
    HoldReason.KIND_MISSING,
    "the kind has vanished upstream, is being deleted there, or was made anew: its copies are kept until their objects "
    "are back",
)
MASS_DELETION = Hold(
    HoldReason.MASS_DELETION,
    "many objects vanished upstream at once, or nothing refers to them any more, and no list confirms that",
)
RESTORED = Hold(
    HoldReason.RESTORED,
    "the upstream cluster was restored from an older state, is another one than before, or is mapped to other "
    "namespaces",
)
SELECTION_CHANGED = Hold(
    HoldReason.SELECTION_CHANGED,
    "the selection of the kind was edited, and many copies have no selected original any more",
)
MANUAL = Hold(HoldReason.MANUAL, "somebody holds back every deletion of this kind")

DELETION_HOLDS = {hold.reason: hold for hold in (KIND_MISSING, MASS_DELETION, RESTORED, SELECTION_CHANGED, MANUAL)}
"""What deletions are held for, by reason. A human can release these, and no others; all but MANUAL also end by
themselves: KIND_MISSING when the kind is back as the same one (for copies that a list then lacks: when their objects
are back), MASS_DELETION when the objects are back, RESTORED and SELECTION_CHANGED when no copy would be
deleted any more.

Their hint needs the hold's id, so `console/screens/reasons.py` has it.
"""

ENDED_BY_WRITES = DELETION_HOLDS.keys() | {HoldReason.NAME_TAKEN, HoldReason.CONTESTED}
"""What is held until a write is answered; all else is held by a plan, and ends with the first other one."""


@dataclass(slots=True)
class HeldGroup:
    """Objects of one kind that are held back for one reason."""

    id: str
    resource: str
    reason: HoldReason
    since: float
    message: str
    hint: str
    keys: set[Key] = field(default_factory=set)
    kind_wide: bool = False
    """The hold does not end when no object is held at the moment: it is on every deletion, or on the CRD."""


class Holds:
    """Everything that is held back for a human, by kind and reason. `issued` numbers were given to holds before."""

    def __init__(self, issued: int = 0) -> None:
        self._groups: dict[tuple[str, HoldReason], HeldGroup] = {}
        self.issued = issued

    def add(self, resource: str, key: Key, hold: Hold, *, now: float, hold_id: str = "") -> tuple[HeldGroup, bool]:
        """Hold an object back; its group, and whether it was not held for this reason before.

        `now` is Unix time in seconds. `hold_id` is the id that the group had before a restart, if it is known.
        """
        group = self._group(resource, hold, now=now, hold_id=hold_id)
        new = key not in group.keys
        group.keys.add(key)
        return group, new

    def add_kind(self, resource: str, hold: Hold, *, now: float, hold_id: str = "") -> HeldGroup:
        """Hold back every deletion of a kind, or its CRD; the group is shown while it is empty, too."""
        group = self._group(resource, hold, now=now, hold_id=hold_id)
        group.kind_wide = True
        return group

    def _group(self, resource: str, hold: Hold, *, now: float, hold_id: str) -> HeldGroup:
        group = self._groups.get((resource, hold.reason))
        if group is None:
            group = HeldGroup(hold_id or self.issue(), resource, hold.reason, now, hold.message, hold.hint)
            self._groups[resource, hold.reason] = group
        group.message, group.hint = hold.message, hold.hint
        return group

    def issue(self) -> str:
        """An id that no hold has had before."""
        self.issued += 1
        return f"h{self.issued}"

    def group(self, resource: str, reason: HoldReason) -> HeldGroup | None:
        """The objects of a kind that are held for a reason."""
        return self._groups.get((resource, reason))

    def clear(self, resource: str, key: Key | None = None, *, reason: HoldReason | None = None) -> None:
        """An object (None: the whole kind) is no longer held, for one reason or for all but that of its CRD."""
        for where, group in list(self._groups.items()):
            # What holds a CRD back has nothing to do with whether its kind is synced at the moment.
            everything = reason is None and where[1] is not HoldReason.API_HELD
            if where[0] != resource or not (everything or where[1] is reason):
                continue
            if key is not None:
                group.keys.discard(key)
            if key is None or not (group.keys or group.kind_wide):
                del self._groups[where]

    def keep_only(self, resource: str, keys: Set[Key]) -> None:
        """No objects of a kind but these are held any more."""
        for group in self.groups(resource):
            for key in group.keys - keys:
                self.clear(resource, key, reason=group.reason)

    def reasons(self, resource: str, key: Key) -> list[HoldReason]:
        """What an object is held for."""
        return [reason for (name, reason), group in self._groups.items() if name == resource and key in group.keys]

    def groups(self, resource: str | None = None) -> list[HeldGroup]:
        """All groups, or one kind's, oldest first."""
        return [g for g in self._groups.values() if resource is None or g.resource == resource]

    def release(self, hold_id: str) -> HeldGroup | None:
        """End a hold because a human released it; its group, None when there is no such hold."""
        for where, group in self._groups.items():
            if group.id == hold_id:
                return self._groups.pop(where)
        return None
