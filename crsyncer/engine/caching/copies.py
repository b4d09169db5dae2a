"""Whose copies the objects of downstream are, where marks say so (C2.2, C2.6).

Made only for kinds with a SyncPolicy, and where copies of such a kind are left.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from crsyncer.core.content.object_content import APPLIED, OF_SECRET, UPSTREAM_UID, has_sound_texts, key_of, stamp_of
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.naming import NoOriginal, original_of
from crsyncer.core.model import Cursor, Json, Key, Side, View
from crsyncer.ports import MetaStore

_UNREADABLE_SECRET = json.dumps({"digest": OF_SECRET, "labels": [], "annotations": []})
"""What stands in `APPLIED` for what somebody removed there: that the copy is of a Secret is known still (C5.6)."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An object of downstream that may be the copy of something, and is none now."""

    why: NoOriginal
    name: Key
    """What it is called."""
    original: Key | None
    """The original that has another copy; None: it is not known whose copy it is."""
    raw: Json | None
    """None: it was seen before a restart, or counted as the copy until an older one was seen."""
    is_listed: bool = True
    """Whether it was seen since the last list of downstream began."""


class Copies:
    """The uids of both sides' objects, and the objects of downstream that wait. `views` and `cursors` are only read."""

    def __init__(
        self,
        policy: KindPolicy,
        *,
        views: Mapping[Side, Mapping[Key, View]],
        cursors: Mapping[tuple[Side, str], Cursor],
        store: MetaStore,
    ) -> None:
        self._policy = policy
        self._views = views
        self._cursors = cursors
        self._store = store
        self._keys = {side: {view.uid: key for key, view in views[side].items()} for side in Side}
        """By uid, the keys of known objects."""
        self._created: dict[str, str] = {}
        """By uid, when copies were made that the store did not know: of two such copies the older one counts (C2.6)."""
        self.left: dict[Key, str] = {}
        """The uids of copies that were there last, and are not shown any more: without its marks none of some is."""
        self._undecided = 0
        """How many of the objects that wait are not decided on."""
        self._meta_name = f"duplicates:{policy.resource}"
        self.waiting: dict[str, Waiting] = {
            uid: Waiting(NoOriginal.DUPLICATE, Key(*name), Key(*original), None, is_listed=False)
            for uid, name, original in store.get_meta(self._meta_name) or ()
        }
        """By uid, the objects that wait."""

    def are_decided(self) -> bool:
        """Whether an absent copy is really absent: no object waits that may be it."""
        return not self._undecided

    def duplicates(self) -> dict[Key, Key]:
        """Originals that have another copy, and what that is called."""
        return {each.original: each.name for each in self.waiting.values() if each.original is not None}

    def saw(self, side: Side, uid: str, key: Key, *, former: View | None) -> None:
        """An object is known; `former` is what was known before."""
        if former is not None and former.uid != uid:
            self.lost(side, former.uid)
        self._keys[side][uid] = key
        if side is self._policy.downstream:
            self.left.pop(key, None)

    def lost(self, side: Side, uid: str) -> None:
        """An object is gone, or another one has taken its place."""
        key = self._keys[side].pop(uid, None)
        if key is None:
            return
        if side is self._policy.upstream:
            self.left.pop(key, None)
        elif key in self._views[self._policy.upstream]:
            self.left[key] = uid

    def list_begins(self) -> None:
        """Downstream has to be listed, or was not reached."""
        self.waiting = {uid: replace(each, is_listed=False) for uid, each in self.waiting.items()}

    def list_ends(self, namespace: str) -> None:
        """A list of a namespace of downstream, or ("") of all, shows what waits. What the store knows counts."""
        self._created.clear()
        for uid, each in list(self.waiting.items()):
            if not each.is_listed and namespace in ("", each.name.namespace):
                self._wait(uid, None)

    def identify(self, raw: Json, *, leaving: bool) -> Key | None:
        """The key of the pair that an object is the copy of; None: of none, or it waits. `leaving`: it is gone."""
        uid = str(raw["metadata"]["uid"])
        found, original = self._original_of(raw)
        if not isinstance(found, Key) and original is not None and self._is_older(raw, original):
            former = self._views[self._policy.downstream][original]
            name = self._policy.copy_name(original, former)
            self._wait(former.uid, Waiting(NoOriginal.DUPLICATE, name, original, None))
            found = original
        if found in (NoOriginal.UNDECIDED, NoOriginal.DUPLICATE) and not leaving:
            self._wait(uid, Waiting(NoOriginal(found), key_of(raw), original, raw))
        else:
            self._wait(uid, None)
        if not isinstance(found, Key):
            return None
        if uid not in self._keys[self._policy.downstream]:
            self._created[uid] = str(raw["metadata"].get("creationTimestamp") or "")
        return found

    def with_known_stamp(self, side: Side, key: Key, raw: Json) -> Json | None:
        """A copy with the uid of its original, which somebody has changed or removed; None: nobody has.

        The store knows whose copy it is, also once that original is gone or has a successor (C2.2): only the agent
        could make it that of another one, which is there. That the agent has written it is known, too, but not any
        more what. In the cloud a copy without any uid is nobody's (S5.3).
        """
        upstream, known = (self._views[each].get(key) for each in (self._policy.upstream, self._policy.downstream))
        if side is self._policy.upstream or known is None or known.stamp is None or known.uid != raw["metadata"]["uid"]:
            return None
        annotations = raw["metadata"].get("annotations") or {}
        uid, found = known.stamp.upstream_uid, annotations.get(UPSTREAM_UID)
        is_another = found != uid and (upstream is None or found != upstream.uid)
        is_bare = not known.stamp.bare and APPLIED not in annotations
        if is_of_secret := known.stamp.digest.startswith(OF_SECRET) and not self._policy.sensitive:
            stamp = stamp_of(raw)
            is_bare = stamp is None or not stamp.digest
        if not (is_another or is_bare) or (not found and side is Side.CLOUD):
            return None
        whose = {UPSTREAM_UID: uid} if is_another else {}
        written = {APPLIED: _UNREADABLE_SECRET if is_of_secret else ""} if is_bare else {}
        return raw | {"metadata": raw["metadata"] | {"annotations": annotations | whose | written}}

    def key_of(self, raw: Json) -> Key | None:
        """The key of the pair that an object, of which only the metadata may be shown, is the copy of."""
        found = self._original_of(raw)[0] if has_sound_texts(raw) else None
        return found if isinstance(found, Key) else None

    def is_stranger(self, raw: Json) -> bool:
        """Whether an object, of which a list shows the metadata, is no copy of ours, or waits in this version."""
        if not has_sound_texts(raw):
            return False
        uid, version = str(raw["metadata"]["uid"]), raw["metadata"]["resourceVersion"]
        waits = self.waiting.get(uid)
        if waits is not None and (waits.raw is None or waits.raw["metadata"]["resourceVersion"] == version):
            self.waiting[uid] = replace(waits, is_listed=True)
            return True
        return self._original_of(raw)[0] in (NoOriginal.LOCAL, NoOriginal.FOREIGN)

    def _is_listed(self, place: str) -> bool:
        """Whether every original of a namespace is known."""
        cursor = self._cursors.get((self._policy.upstream, place))
        return cursor is not None and cursor.is_finished

    def _original_of(self, raw: Json) -> tuple[Key | NoOriginal, Key | None]:
        """Whose copy an object is; and of a duplicate, the original."""
        policy, downstream, uid = self._policy, self._policy.downstream, str(raw["metadata"]["uid"])
        own = key_of(raw)
        unnamed = policy.key_of(downstream, own)
        stored = self._keys[downstream].get(uid)
        found = original_of(
            raw,
            stored=stored,
            seen=self._keys[policy.upstream],
            unnamed=unnamed,
            identity=policy.shape.identity,
            listed=not policy.names_copies or all(map(self._is_listed, policy.places)),
            namespaced=policy.namespaced,
        )
        if found is NoOriginal.LOCAL and unnamed is not None and not policy.names_copies:
            other = self._views[downstream].get(unnamed)
            return (found if other is not None and other.called else unnamed), None
        if not isinstance(found, Key) or stored is not None:
            return found, None
        other = self._views[downstream].get(found)
        if other is not None and policy.copy_name(found, other) != own:
            return NoOriginal.DUPLICATE, found
        waits = self.waiting.get(uid)
        if waits is not None and found not in self._views[policy.upstream]:
            return waits.why, waits.original  # marks alone do not show that we made it: it is never deleted for them
        return found, None

    def _is_older(self, raw: Json, original: Key) -> bool:
        """Whether an object counts as the copy, and not the one that was seen before it (C2.6)."""
        other = self._views[self._policy.downstream].get(original)
        made = str(raw["metadata"].get("creationTimestamp") or "")
        return other is not None and bool(made) and made < self._created.get(other.uid, "")

    def _wait(self, uid: str, waiting: Waiting | None) -> None:
        """Have an object wait; None: it does not any more. Duplicates are remembered over restarts."""
        before = self.waiting.pop(uid, None)
        if waiting is not None:
            self.waiting[uid] = waiting
        self._undecided += _is_undecided(waiting) - _is_undecided(before)
        if _duplicate(before) != _duplicate(waiting):
            found = [
                [uid, [each.name.namespace, each.name.name], [each.original.namespace, each.original.name]]
                for uid, each in self.waiting.items()
                if each.original is not None
            ]
            self._store.put_meta(self._meta_name, found)


def _is_undecided(waiting: Waiting | None) -> bool:
    return waiting is not None and waiting.why is NoOriginal.UNDECIDED


def _duplicate(waiting: Waiting | None) -> tuple[Key, Key] | None:
    """What is remembered over restarts; None: the object is no duplicate."""
    return None if waiting is None or waiting.original is None else (waiting.name, waiting.original)
