"""Whose copies the objects of downstream are, where marks say so (C2.2, C2.6).

Made only for kinds with a SyncPolicy, and where copies of such a kind are left.
"""

from collections.abc import Mapping

from crsyncer.core.kind_policy import KindPolicy
from crsyncer.core.model import Cursor, Json, Key, Side, View
from crsyncer.core.naming import NoOriginal, original_of
from crsyncer.core.project import has_sound_texts, key_of


class Copies:
    """The uids of both sides' objects, and the objects of downstream that wait. `views` and `cursors` are only read."""

    def __init__(
        self,
        policy: KindPolicy,
        *,
        views: Mapping[Side, Mapping[Key, View]],
        cursors: Mapping[tuple[Side, str], Cursor],
    ) -> None:
        self.waiting: dict[str, tuple[NoOriginal, Json]] = {}
        """By uid, the objects that may be the copy of something, and why they are none now."""
        self._policy = policy
        self._views = views
        self._cursors = cursors
        self._keys = {side: {view.uid: key for key, view in views[side].items()} for side in Side}
        """By uid, the keys of known objects."""

    def are_decided(self) -> bool:
        """Whether an absent copy is really absent: no object waits that may be it."""
        return all(why is not NoOriginal.UNDECIDED for why, _ in self.waiting.values())

    def saw(self, side: Side, uid: str, key: Key) -> None:
        """An object is known."""
        self._keys[side][uid] = key

    def lost(self, side: Side, uid: str) -> None:
        """An object is gone, or another one has taken its place."""
        self._keys[side].pop(uid, None)

    def identify(self, raw: Json, *, leaving: bool) -> Key | None:
        """The key of the pair that an object is the copy of; None: of none, or it waits. `leaving`: it is gone."""
        uid = str(raw["metadata"]["uid"])
        found = self.original_of(raw)
        if found in (NoOriginal.UNDECIDED, NoOriginal.DUPLICATE) and not leaving:
            self.waiting[uid] = found, raw
        else:
            self.waiting.pop(uid, None)
        return found if isinstance(found, Key) else None

    def key_of(self, raw: Json) -> Key | None:
        """The key of the pair that an object, of which only the metadata may be shown, is the copy of."""
        found = self.original_of(raw) if has_sound_texts(raw) else None
        return found if isinstance(found, Key) else None

    def is_stranger(self, raw: Json) -> bool:
        """Whether an object is no copy of ours, or waits in this version."""
        metadata = raw["metadata"]
        if not has_sound_texts(raw):
            return False
        _, waits = self.waiting.get(str(metadata["uid"]), (None, raw | {"metadata": {}}))
        same = waits["metadata"].get("resourceVersion") == metadata["resourceVersion"]
        return same or self.original_of(raw) in (NoOriginal.LOCAL, NoOriginal.FOREIGN)

    def original_of(self, raw: Json) -> Key | NoOriginal:
        """Whose copy an object is."""
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
            listed=not policy.names_copies or all((policy.upstream, place) in self._cursors for place in policy.places),
        )
        if found is NoOriginal.LOCAL and unnamed is not None and not policy.names_copies:
            found = unnamed
        if not isinstance(found, Key) or stored is not None:
            return found
        other = self._views[downstream].get(found)
        if other is not None and policy.copy_name(found, other) != own:
            return NoOriginal.DUPLICATE
        if uid in self.waiting and found not in self._views[policy.upstream]:
            return self.waiting[uid][0]  # the marks alone do not show that we have made it: it is never deleted
        return found
