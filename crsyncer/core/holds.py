"""What is held back for a human, and when deletions are too many to be carried out unverified (S5.5)."""

from collections.abc import Set
from dataclasses import dataclass, field

from crsyncer.core.actions import HoldReason
from crsyncer.core.model import Key

WINDOW_SECONDS = 60.0
_FEW = 5
_SHARE = 0.3


def is_mass(deletions: int, copies: int) -> bool:
    """Whether so many deletions, of so many copies, within a minute need a second look (S5.5)."""
    return deletions > max(_FEW, _SHARE * copies)


class DeletionWindow:
    """Counts the deletions of one kind over the last minute."""

    def __init__(self) -> None:
        self._times: dict[Key, float] = {}

    def count(self, batch: Set[Key], now: float) -> int:
        """Deletions within the window, those of this batch included; asking twice for a key counts once."""
        for key in batch:
            self._times.pop(key, None)
            self._times[key] = now
        while self._times[oldest := next(iter(self._times))] <= now - WINDOW_SECONDS:
            del self._times[oldest]
        return len(self._times)


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
    standing: bool = False
    """Whatever comes is held too, so it does not end when nothing is held at the moment."""


class Holds:
    """Everything that is held back for a human, by kind and reason. `issued` numbers were given to holds before."""

    def __init__(self, issued: int = 0) -> None:
        self._groups: dict[tuple[str, HoldReason], HeldGroup] = {}
        self.issued = issued

    def add(
        self, resource: str, key: Key, *, reason: HoldReason, now: float, message: str, hint: str, hold_id: str = ""
    ) -> bool:
        """Hold an object back; True when it was not held for this reason before. `now` is Unix time in seconds.

        `hold_id` is the id that the group had before a restart, if it is known.
        """
        group = self._group(resource, reason, now=now, hold_id=hold_id)
        known = key in group.keys
        group.keys.add(key)
        group.message, group.hint = message, hint
        return not known

    def stand(
        self, resource: str, *, reason: HoldReason, now: float, message: str, hint: str, hold_id: str = ""
    ) -> HeldGroup:
        """Hold back whatever comes, until a human releases it; the group is there though nothing has come yet."""
        group = self._group(resource, reason, now=now, hold_id=hold_id)
        group.message, group.hint, group.standing = message, hint, True
        return group

    def _group(self, resource: str, reason: HoldReason, *, now: float, hold_id: str) -> HeldGroup:
        group = self._groups.get((resource, reason))
        if group is None:
            if not hold_id:
                self.issued += 1
                hold_id = f"h{self.issued}"
            group = self._groups[resource, reason] = HeldGroup(hold_id, resource, reason, now, "", "")
        return group

    def group(self, resource: str, reason: HoldReason) -> HeldGroup | None:
        """What of a kind is held for a reason."""
        return self._groups.get((resource, reason))

    def clear(self, resource: str, key: Key | None = None, *, reason: HoldReason | None = None) -> None:
        """What held an object (None: the kind) is over, for one reason or for all."""
        for where, group in list(self._groups.items()):
            if where[0] != resource or (reason is not None and where[1] is not reason):
                continue
            if key is not None:
                group.keys.discard(key)
            if key is None or not (group.keys or group.standing):
                del self._groups[where]

    def held(self, resource: str, key: Key, *reasons: HoldReason) -> bool:
        """Whether an object is held back for one of the reasons."""
        return any(key in group.keys for r in reasons if (group := self._groups.get((resource, r))))

    def groups(self, resource: str | None = None) -> list[HeldGroup]:
        """All groups, or one kind's, oldest first."""
        return [g for g in self._groups.values() if resource is None or g.resource == resource]

    def release(self, hold_id: str) -> HeldGroup | None:
        """A human says go on: the group, which is held no more; None when there is no such hold."""
        for where, group in self._groups.items():
            if group.id == hold_id:
                return self._groups.pop(where)
        return None
