"""Which deletions of one kind are held, and which are verified (S5.5, S7.1, S8.3)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace

from crsyncer.core.holds.deletion_rate import is_mass
from crsyncer.core.holds.hold_list import DELETION_HOLDS, KIND_MISSING, MANUAL, SELECTION_CHANGED, Holds
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Key, Side, Tombstone, View
from crsyncer.core.pair.actions import Hold, HoldReason, Until, Wait
from crsyncer.core.pair.decide import may_delete


class DeletionHolds:
    """Which deletions of one kind are held, verified, or neither yet. Every `now` is Unix time, in seconds.

    `views` and `tombstones` are only read: tombstones that have changed are in `changed` until they are recorded.
    `kind_wide` is remembered over restarts, as tombstones are.
    """

    def __init__(
        self,
        policy: KindPolicy,
        *,
        holds: Holds,
        views: Mapping[Side, Mapping[Key, View]],
        tombstones: Mapping[Key, Tombstone],
        kind_wide: Mapping[HoldReason, tuple[str, float]],
        is_another: bool = False,
        now: float,
    ) -> None:
        self.kind_wide = dict(kind_wide)
        """What holds every deletion of the kind: the hold's id ("": it has none yet), and since when."""
        self.changed: dict[Key, Tombstone] = {}
        self.orphans: set[Key] = set()
        """Objects without a tombstone, whose deletion is verified for one try: upstream never had them, as far as is
        known, or is deleting them."""
        self.is_counting = HoldReason.SELECTION_CHANGED in self.kind_wide
        """Whether it is still to be counted how many copies an edited selection leaves behind (C1.7)."""
        self.is_another = is_another and self.is_counting
        """Whether an edited projection names another kind upstream and its count is still to come: that this kind is
        missing does not mean that the copies' objects went with theirs (C1.7)."""
        self.elsewhere: Set[Key] = frozenset()
        """The originals of copies that an edited projection leaves behind where they were (C1.7)."""
        self.copies = views[policy.downstream]
        self.upstream = views[policy.upstream]
        self._policy = policy
        self._resource = policy.resource
        self._holds = holds
        self._tombstones = tombstones
        self._released: set[Key] = set()
        if HoldReason.MANUAL in self.kind_wide:
            self._show_manual()
        for key in [each for each in tombstones if each in self.copies]:
            hold = self.held(key) or (None if self.is_verified(key) else self.held_every())
            if hold is not None and (hold is not SELECTION_CHANGED or self._is_selection_held):
                self.hold(key, hold, now)

    def keeps(self, key: Key) -> Hold | Wait | None:
        """The hold, or the verification still to come, that keeps a copy from being deleted; None: nothing does.

        Another object of its name proves the deletion (S5.4): only a hold of the whole kind keeps that copy.
        """
        every, present = self.held_every(), self.is_present(key)
        if every is SELECTION_CHANGED and self.is_counting:
            return Wait(Until.COUNTED)
        if every is not None or present:
            return every
        return self.held(key) or (Wait(Until.VERIFIED) if self.is_open(key) else None)

    def is_open(self, key: Key) -> bool:
        """Whether the deletion is neither verified nor held yet."""
        verified = self.is_verified(key) or key in self.orphans
        return not verified and not self.is_present(key) and self.held(key) is None

    def held_every(self) -> Hold | None:
        """What holds every deletion of the kind. A missing kind does not: it holds those whose objects are gone."""
        return next(
            (DELETION_HOLDS[reason] for reason in self.kind_wide if reason is not HoldReason.KIND_MISSING), None
        )

    @property
    def kind_missing(self) -> bool:
        """Whether the kind was gone when upstream was last asked for it."""
        return HoldReason.KIND_MISSING in self.kind_wide

    @property
    def may_end_missing(self) -> bool:
        """Whether the kind is missing and may be back: what an edit leaves behind is counted before that (C1.7)."""
        return self.kind_missing and (self.is_another or not self.is_counting)

    def held(self, key: Key) -> Hold | None:
        """What the deletion of this one object is held for; that the kind is served again does not end it."""
        tombstone = self.tombstone(key)
        held = tombstone.held if tombstone is not None and key not in self._released else ""
        if not held and self.kind_missing and not self.is_verified(key):
            return KIND_MISSING
        return DELETION_HOLDS[HoldReason(held)] if held else None

    def is_verified(self, key: Key) -> bool:
        """Whether a deletion needs no further verification: its tombstone says so, or a human released it."""
        tombstone = self.tombstone(key)
        return key in self._released or (tombstone is not None and tombstone.verified)

    def unverified(self) -> Iterator[Key]:
        """Objects that upstream has deleted, and whose deletion is neither verified nor held in its tombstone."""
        return (k for k in self._tombstones if not self.is_verified(k) and not (self.tombstone(k) or NO_TOMBSTONE).held)

    def leaving(self) -> Iterator[Key]:
        """Objects that upstream has begun to delete, and whose copies are to be deleted for that."""
        for key, copy in self.copies.items():
            own = self.upstream.get(key)
            if own is not None and own.terminating and not copy.terminating and may_delete(copy, self._policy):
                yield key

    def is_present(self, key: Key) -> bool:
        """Whether upstream has the object."""
        view = self.upstream.get(key)
        return view is not None and not view.terminating

    def tombstone(self, key: Key) -> Tombstone | None:
        """The record of upstream's deletion, if there is one."""
        return self.changed.get(key) or self._tombstones.get(key)

    def hold(self, key: Key, hold: Hold, now: float) -> bool:
        """Hold an object back; True when it was not held for this reason before."""
        tombstone = self.tombstone(key)
        hold_id, since = self.kind_wide.get(hold.reason, ("", 0.0))
        if tombstone is not None and tombstone.held == hold.reason:
            hold_id, since = tombstone.hold_id, tombstone.hold_since
        group, new = self._holds.add(self._resource, key, hold, now=since or now, hold_id=hold_id)
        if hold.reason in self.kind_wide:
            self.kind_wide[hold.reason] = (group.id, group.since)
        elif tombstone is not None and hold.reason in DELETION_HOLDS:
            self.changed[key] = replace(tombstone, held=hold.reason, hold_id=group.id, hold_since=group.since)
        return new

    def unhold(self, key: Key, *, kept: Set[HoldReason]) -> None:
        """End the holds of an object, except for the reasons `kept`, and while the kind is missing.

        That its related objects cannot be told is no matter of the object itself, and stays.
        """
        staying = {HoldReason.RELATED_FAILED, *kept, *({HoldReason.KIND_MISSING} if self.kind_missing else ())}
        if key in self.elsewhere:
            staying.add(HoldReason.SELECTION_CHANGED)
        for reason in self._holds.reasons(self._resource, key):
            if reason not in staying:
                self._holds.clear(self._resource, key, reason=reason)

    def hold_every(self, hold: Hold, now: float) -> None:
        """Hold every deletion of the kind from now on, until a human releases the hold or its cause is over."""
        if hold.reason not in self.kind_wide:
            self.kind_wide[hold.reason] = ("", now)
            if hold is MANUAL:
                self._show_manual()

    def verify(self, batch: Set[Key], *, wanted: Set[Key]) -> None:
        """Record with the tombstones that the deletions are verified; what has none has to be `wanted` or leaving."""
        for key in batch:
            tombstone = self.tombstone(key)
            if self.is_present(key) or self.held(key) is not None:
                continue
            if tombstone is not None:
                self.changed[key] = replace(tombstone, verified=True)
            elif key in wanted or key in self.upstream:
                self.orphans.add(key)

    def release(self, reason: HoldReason, keys: Iterable[Key], *, absent: Set[Key], now: float) -> None:
        """Release a hold and verify the deletions it blocks; after a hold made by hand the checks apply again.

        Objects that upstream is known not to have (`absent`) get a tombstone: a restart must not forget the release.
        What is held although its copy is gone, which may come back (S8.4), is released with the others.
        """
        self.kind_wide.pop(reason, None)
        for key in self._tombstones.keys() - self.copies.keys() - self.elsewhere:
            if (gone := self._tombstones[key]).held == reason:
                self.changed[key] = Tombstone(gone.upstream_uid, gone.since, verified=True)
        keys = set(keys) - self.elsewhere
        if reason is HoldReason.SELECTION_CHANGED:
            self.is_counting, self.is_another, self.elsewhere = False, False, frozenset()
        for key in keys if reason is not HoldReason.MANUAL else ():
            tombstone = self.tombstone(key) or (self._tombstone_of_copy(key, now) if key in absent else None)
            if tombstone is not None:
                if tombstone.held not in ("", reason):
                    continue
                self.changed[key] = replace(tombstone, held="", verified=True, hold_id="", hold_since=0.0)
            self._released.add(key)

    def gone(self, key: Key) -> None:
        """An object is gone from a side: a release of it is carried out, or no longer concerns it."""
        self._released.discard(key)

    def hold_kind(self, now: float, *, by_name: bool) -> None:
        """Upstream does not serve the kind, or serves it by another CRD: hold every deletion.

        `by_name`: hold each copy that would be deleted, too, so that an operator sees what is at stake (S5.5a).
        """
        self.hold_every(KIND_MISSING, now)
        for key in self._at_stake() if by_name else ():
            self.hold(key, KIND_MISSING, now)

    def kind_back(self, now: float) -> int:
        """Upstream serves the kind again; the number of copies that a list lacks, and that stay held, each for itself.

        The list shows that they went with the kind, not that somebody meant to delete them.
        """
        copies = {key for key in self._at_stake() if key not in self.upstream}
        hold_id, since = self.kind_wide[HoldReason.KIND_MISSING]
        for key in copies | self._copies_to_come():
            tombstone = self.tombstone(key) or self._tombstone_of_copy(key, now)
            if tombstone.held != HoldReason.KIND_MISSING:
                tombstone = replace(tombstone, held=HoldReason.KIND_MISSING, hold_id=hold_id, hold_since=since)
            self.changed[key] = replace(tombstone, verified=False)
        del self.kind_wide[HoldReason.KIND_MISSING]
        for key in copies:
            self.hold(key, KIND_MISSING, now)
        group = self._holds.group(self._resource, HoldReason.KIND_MISSING)
        for key in list(group.keys) if group is not None else ():
            if self.held(key) != KIND_MISSING:
                self._holds.clear(self._resource, key, reason=HoldReason.KIND_MISSING)
        return len(copies)

    def left_behind(self, absent: Callable[[Key, str], bool]) -> set[Key]:
        """The copies that are to be deleted because their originals are not selected any more (C1.7).

        `absent(key, uid)`: upstream is known not to have, or not to select, this very object. What a missing kind holds
        is not counted: it may have gone with the kind (S5.5a).
        """
        return {
            key
            for key, copy in self.copies.items()
            if not copy.terminating
            and may_delete(copy, self._policy)
            and (self.is_another or self.held(key) != KIND_MISSING)
            and absent(key, "" if copy.stamp is None else copy.stamp.upstream_uid)
        }

    def count_selection(self, now: float) -> None:
        """Hold every deletion until it is counted which copies have no selected original (C1.7)."""
        self.is_counting = True
        self.hold_every(SELECTION_CHANGED, now)

    def selection_counted(self, left_behind: Set[Key], *, copies: int, now: float) -> bool:
        """So many copies of so many have no selected original any more; whether they are held for a human.

        What is held stays held while there are any, however few: it is counted again after a restart, or a restore.
        """
        self.is_counting = self.is_another = False
        if not left_behind or not (self._is_selection_held or is_mass(len(left_behind), copies)):
            self.kind_wide.pop(HoldReason.SELECTION_CHANGED, None)
            return False
        for key in left_behind:
            self.hold(key, SELECTION_CHANGED, now)
        return True

    @property
    def _is_selection_held(self) -> bool:
        """Whether copies without a selected original were held for a human, and are since (C1.7)."""
        hold_id, _ = self.kind_wide.get(HoldReason.SELECTION_CHANGED, ("", 0.0))
        return bool(hold_id)

    def restored_keys(self) -> Set[Key]:
        """The objects that are held because upstream was restored."""
        group = self._holds.group(self._resource, HoldReason.RESTORED)
        return group.keys if group is not None else frozenset()

    def _at_stake(self) -> Iterator[Key]:
        """The copies that a missing kind holds; an orphan that never was a copy is none of them.

        A kind whose projection was edited is not missing, nor is what an edit has left behind: that is held (C1.7).
        """
        group = self._holds.group(self._resource, HoldReason.SELECTION_CHANGED)
        left_behind = group.keys if group is not None else ()
        for key, view in self.copies.items() if not self.is_another else ():
            deleted = view.stamp is not None and not view.terminating and may_delete(view, self._policy)
            if deleted and key not in left_behind and self.held(key) == KIND_MISSING and not self.is_verified(key):
                yield key

    def _copies_to_come(self) -> set[Key]:
        """The objects that are gone with a missing kind, and whose copies are not known: one may just be made."""
        keys = () if self.is_another else self._tombstones.keys() | self.changed.keys()
        return {
            key
            for key in keys
            if key not in self.copies and key not in self.upstream and self.held(key) == KIND_MISSING
        }

    def _tombstone_of_copy(self, key: Key, now: float) -> Tombstone:
        """A tombstone for what its copy is stamped with, and for no later object of that name."""
        copy = self.copies.get(key)
        return Tombstone("" if copy is None or copy.stamp is None else copy.stamp.upstream_uid, now)

    def _show_manual(self) -> None:
        hold_id, since = self.kind_wide[HoldReason.MANUAL]
        group = self._holds.add_kind(self._resource, MANUAL, now=since, hold_id=hold_id)
        self.kind_wide[HoldReason.MANUAL] = (group.id, since)


NO_TOMBSTONE = Tombstone("", 0.0)
