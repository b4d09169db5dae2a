"""The held and the released deletions of one kind: neither is forgotten by a restart (S5.5)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from crsyncer.core.actions import Hold, HoldReason
from crsyncer.core.holds import HeldGroup, Holds
from crsyncer.core.model import Gap, Key, Tombstone
from crsyncer.engine.cache import Cache
from crsyncer.ports import Store

KIND_MISSING = Hold(
    HoldReason.KIND_MISSING,
    "the kind has vanished upstream, is being deleted there, or was made anew: its copies are kept until their objects "
    "are back",
    "",
)
MASS_DELETION = Hold(
    HoldReason.MASS_DELETION, "many objects vanished upstream at once, and that could not be confirmed", ""
)
RESTORED = Hold(
    HoldReason.RESTORED, "the upstream cluster was restored from an older state, or is another one than before", ""
)
MANUAL = Hold(HoldReason.MANUAL, "somebody holds back every deletion of this kind", "")

DELETION_HOLDS = {hold.reason: hold for hold in (KIND_MISSING, MASS_DELETION, RESTORED, MANUAL)}
"""What deletions are held for, by reason. Only these can be released: the others end when their cause does.

Their hint needs the hold's id, so `console/reasons.py` has it.
"""

ISSUED = "holds-issued"
"""Under which name the store keeps how many numbers were given to holds."""


class DeletionHolds:
    """The held objects of one kind. `clock` is Unix time in seconds.

    What holds every deletion of the kind is kept by kind, and so is that the kind has vanished; what holds single ones
    is kept in their tombstones.
    """

    def __init__(self, cache: Cache, *, store: Store, holds: Holds, clock: Callable[[], float]) -> None:
        self._cache = cache
        self._store = store
        self._holds = holds
        self._clock = clock
        self._resource = cache.policy.resource
        self._name = f"standing:{self._resource}"
        known = store.get_meta(self._name) or {}
        self._standing = {HoldReason(reason): (str(i), float(since)) for reason, (i, since) in known.items()}
        self._released: set[Key] = set()
        if HoldReason.MANUAL in self._standing:
            self._stand()
        for key in [each for each in cache.tombstones if each in cache.views[cache.policy.downstream]]:
            hold = self.held(key) or (None if self.passed(key) else self.standing())
            if hold is not None:
                self.hold(key, hold)

    def stands(self, reason: HoldReason) -> bool:
        """Whether every deletion of the kind is held for a reason."""
        return reason in self._standing

    def standing(self) -> Hold | None:
        """What every deletion of the kind is held for at present, if anything."""
        return next((DELETION_HOLDS[reason] for reason in self._standing if reason is not KIND_MISSING.reason), None)

    @property
    def vanished(self) -> bool:
        """Whether the kind was gone when upstream was last asked for it."""
        return KIND_MISSING.reason in self._standing

    def held(self, key: Key) -> Hold | None:
        """What the deletion of this one object is held for, if anything.

        That the kind is served again does not end it: only a list of it tells what came back (`reappear`).
        """
        tombstone = self._cache.tombstones.get(key)
        held = tombstone.held if tombstone is not None and key not in self._released else ""
        if not held and self.vanished and not self.passed(key):
            return KIND_MISSING
        return DELETION_HOLDS[HoldReason(held)] if held else None

    def told(self, key: Key) -> bool:
        """Whether upstream has reported the deletion of the object; else it never had the object, as far as we know."""
        return key in self._cache.tombstones

    def passed(self, key: Key) -> bool:
        """Whether the deletion of an object needs no further look."""
        tombstone = self._cache.tombstones.get(key)
        return key in self._released or (tombstone is not None and tombstone.checked)

    def waiting(self) -> Iterator[Key]:
        """Objects that upstream has deleted, and whose deletion is neither verified nor held in its tombstone."""
        for key, tombstone in self._cache.tombstones.items():
            if not tombstone.held and not self.passed(key):
                yield key

    def let_pass(self, key: Key) -> None:
        """The deletion is verified: record that with its tombstone (S7.1)."""
        tombstone = self._cache.tombstones.get(key)
        if tombstone is not None:
            self._cache.add_tombstone(key, replace(tombstone, checked=True))

    def hold(self, key: Key, hold: Hold) -> bool:
        """Hold an object back; True when it was not held for this reason before."""
        tombstone = self._cache.tombstones.get(key)
        hold_id, since = self._standing.get(hold.reason, ("", 0.0))
        if tombstone is not None and tombstone.held == hold.reason:
            hold_id, since = tombstone.hold_id, tombstone.hold_since
        new = self._holds.add(
            self._resource,
            key,
            reason=hold.reason,
            now=since or self._clock(),
            message=hold.message,
            hint=hold.hint,
            hold_id=hold_id,
        )
        group = self._holds.group(self._resource, hold.reason)
        if group is not None:
            self._remember(key, group)
        return new

    def engage(self, hold: Hold) -> None:
        """From now on every deletion of the kind is held, until a human releases it."""
        if hold.reason not in self._standing:
            self._standing[hold.reason] = ("", self._clock())
            if hold is MANUAL:
                self._stand()
            self._save()

    def vanish(self, copies: Iterable[Key]) -> None:
        """Upstream does not serve the kind: hold every copy, so that an operator sees what is at stake (S5.5a)."""
        self.engage(KIND_MISSING)
        for key in copies:
            if self.held(key) in (None, KIND_MISSING) and not self.passed(key):
                self.hold(key, KIND_MISSING)

    def reappear(self, lacking: set[Key]) -> None:
        """Upstream serves the kind again: copies that it came back without stay held, each for itself.

        A list that lacks them shows that they went with the kind, not that somebody meant to delete them.
        """
        hold_id, since = self._standing.pop(KIND_MISSING.reason)
        for key in lacking:
            tombstone = self._cache.tombstones.get(key) or Tombstone("", self._clock())
            if tombstone.held != KIND_MISSING.reason:
                tombstone = replace(tombstone, held=KIND_MISSING.reason, hold_id=hold_id, hold_since=since)
            self._cache.add_tombstone(key, replace(tombstone, checked=False))
            self.hold(key, KIND_MISSING)
        group = self._holds.group(self._resource, KIND_MISSING.reason)
        for key in list(group.keys) if group is not None else ():
            if self.held(key) != KIND_MISSING:
                self._holds.clear(self._resource, key, reason=KIND_MISSING.reason)
        self._save()

    def unhold(self, key: Key, *, kept: HoldReason | None) -> None:
        """What held the content is over; what is `kept`, or at stake because the kind has vanished, stays held."""
        for reason in HoldReason:
            if reason is not kept and not (reason is KIND_MISSING.reason and self.vanished):
                self._holds.clear(self._resource, key, reason=reason)

    def release(self, reason: HoldReason, keys: set[Key]) -> None:
        """Release a hold and let the deletions it blocks pass; after a hold made by hand the checks apply again."""
        vanished = self.vanished and reason is KIND_MISSING.reason
        if self._standing.pop(reason, None) is not None:
            self._save()
        if reason is HoldReason.MANUAL:
            return
        for key in keys:
            if vanished:
                self._cache.lost(self._cache.policy.upstream, key)  # what nobody serves is not there
            tombstone = self._cache.tombstones.get(key)
            if vanished and tombstone is None:
                tombstone = Tombstone("", self._clock())
            if tombstone is None and self._cache.observe(self._cache.policy.upstream, key).found is Gap.ABSENT:
                tombstone = Tombstone("", self._clock())  # an orphan; the release must not be forgotten by a restart
            if tombstone is not None:
                if tombstone.held not in ("", reason):
                    continue
                released = replace(tombstone, held="", checked=True, hold_id="", hold_since=0.0)
                self._cache.add_tombstone(key, released)
            self._released.add(key)

    def forget(self, key: Key) -> None:
        """The object is gone from a side: what was released of it is done, or is no more about it."""
        self._released.discard(key)

    def _stand(self) -> None:
        hold_id, since = self._standing[HoldReason.MANUAL]
        group = self._holds.stand(
            self._resource, reason=HoldReason.MANUAL, now=since, message=MANUAL.message, hint="", hold_id=hold_id
        )
        self._standing[HoldReason.MANUAL] = (group.id, since)
        self._store.put_meta(ISSUED, self._holds.issued)

    def _remember(self, key: Key, group: HeldGroup) -> None:
        """Write down what the hold is called, and that a deletion is held where nothing holds all of them."""
        if self._store.get_meta(ISSUED) != self._holds.issued:
            self._store.put_meta(ISSUED, self._holds.issued)
        if group.reason in self._standing:
            if self._standing[group.reason] != (group.id, group.since):
                self._standing[group.reason] = (group.id, group.since)
                self._save()
            return
        tombstone = self._cache.tombstones.get(key)
        if tombstone is not None and group.reason in DELETION_HOLDS:
            held = replace(tombstone, held=group.reason, hold_id=group.id, hold_since=group.since)
            self._cache.add_tombstone(key, held)

    def _save(self) -> None:
        self._store.put_meta(self._name, self._standing)
