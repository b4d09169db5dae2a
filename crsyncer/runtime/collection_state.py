"""The state of one list-watch: its cursor, whether the cursor still holds, and the objects that a list must show."""

import logging
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum, StrEnum
from itertools import islice
from typing import Protocol

from crsyncer.core.model import Cursor, Freshness, Json, Key, ObjectVersion
from crsyncer.core.requests.calls import Collection
from crsyncer.core.watching.restore_detection import DISTRUSTED, Checkpoint, are_too_many, is_foreign, newest_up_to
from crsyncer.core.watching.revisions import Known, Revisions, number_of
from crsyncer.core.watching.watch import EventType, ListReason, newer, version_of
from crsyncer.ports import Observer
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.known_history import cluster_of

log = logging.getLogger(__name__)


class Rewind(Enum):
    """Why a server may show less than is known, or older things."""

    REBOOTED = "its machine booted, and may have lost its last writes"
    RESTORED = "it is older than our cursor"
    REBUILT = "it is another cluster, and an operator has accepted it"


class Handler(Protocol):
    """Keeps the objects and the cursor of a collection, and reacts to changes, in the server's order."""

    cursor: Cursor | None
    """Up to where events are in `objects`; kept together with them."""

    @property
    def objects(self) -> Mapping[Key, Known]:
        """The objects that are known, maybe those of other namespaces too."""
        ...

    @property
    def revisions(self) -> Revisions:
        """The highest version of `objects`, and kept together with them."""
        ...

    def members(self) -> Iterator[tuple[Key, Known]]:
        """Those of them that the collection may have."""
        ...

    def is_member(self, key: Key) -> bool:
        """Whether a known object is one of them."""
        ...

    def key_of(self, raw: Json) -> Key | None:
        """The key in `objects` of an object of which at least sound metadata are shown; None: it has none."""
        ...

    def is_stranger(self, raw: Json) -> bool:
        """Whether an object of which sound metadata are shown has no key, and need not be looked at for that."""
        ...

    def identify(self, raw: Json, event_type: EventType | None) -> Key | None:
        """The key of an object that a watch or (None) a list is about to show; None for one to ignore."""
        ...

    def shown(self, key: Key, raw: Json, event_type: EventType | None) -> None:
        """A watch shows that an object was added, changed or deleted; None: a list shows the object."""
        ...

    def absent(self, key: Key) -> None:
        """A consistent list does not show a known object."""
        ...

    def freshness_changed(self, freshness: Freshness) -> None:
        """The observations of the collection are fresher now, or less fresh."""
        ...

    def rewound(self, how: Rewind) -> None:
        """Whatever the server shows from now on counts as newer: every known version becomes DISTRUSTED."""
        ...

    def phase_changed(self) -> None:
        """The list-watch has another phase, or another message."""
        ...


class CollectionState:
    """The bookkeeping of one list-watch. `fingerprint`: everything else that decides what is kept of an object. `name`
    is what metrics and logs call the collection; empty: its own name.

    `selective`: the handler keeps only some of the objects that it is shown, so that it does not know one proves
    nothing.
    """

    def __init__(
        self,
        connection: Connection,
        collection: Collection,
        *,
        handler: Handler,
        fingerprint: str = "",
        name: str = "",
        observer: Observer | None = None,
        selective: bool = False,
    ) -> None:
        self.connection = connection
        self.collection = collection
        self.name = name or collection.resource
        self.handler = handler
        self.relists = 0
        self.expiries = 0
        """Lists because the cursor had expired: the server was restarted, or the CRD changed."""
        self.resumes = 0
        self._path = collection.path
        self._fingerprint = fingerprint
        self._observer = observer
        self.selective = selective
        cursor = handler.cursor
        self._seen = ("", "") if cursor is None else (cursor.seen_uid, cursor.seen_version)
        """uid and resourceVersion of the last event's object; empty: none in this history."""
        self._listed: set[Key] = set()
        self._new_versions: set[str] = set()
        """Versions after the cursor that the list shows."""
        self._comparable = self.cursor() is not None
        """Whether the known objects are of this very collection, so that a digest may show the same."""
        self._incomplete = False
        """Whether the last list was not consistent: objects that were deleted before the cursor may still be known."""
        self._former: tuple[str, Checkpoint | None] = ("", None)
        """Of a list that an agent before this one did not end: its history, and the newest object that it showed."""
        if cursor is not None and not cursor.is_finished and cursor.path == self._path:
            self._former = cursor.identity, self._newest_up_to(cursor.resource_version)

    # The cursor

    def cursor(self) -> str | None:
        """The resourceVersion to go on from, of whichever boot; None: a list is needed.

        A stored cursor counts where it is of this cluster, path and selector (S6.2).
        """
        cursor = self.handler.cursor
        if cursor is None or (cursor.path, cursor.fingerprint) != (self._path, self._fingerprint):
            return None
        return cursor.resource_version if cursor.identity == self.connection.history_identity else None

    def set_cursor(self, resource_version: str) -> None:
        """Everything up to here has been delivered."""
        self.handler.cursor = self._cursor(resource_version)

    def drop_cursor(self) -> None:
        """A list is needed; a restore before its end is noticed all the same."""
        if self.handler.cursor is not None:
            self.handler.cursor = self.handler.cursor.unfinished()

    def forget_cursor(self) -> None:
        """The cursor belongs to a CRD that is gone; another of its name is served."""
        self._compare_identity()
        self._forget_seen()
        self.drop_cursor()

    def highest_revision(self) -> int:
        """The highest revision that is known of this history: a consistent answer is never older.

        A write's answer may show an object's version before the watch does.
        """
        revisions, delivered = self.handler.revisions, self._reached()
        if revisions.bound > delivered:
            revisions.newest(self.handler.objects)
        return max(delivered, int(revisions.bound))

    def _reached(self) -> int:
        """The revision of the cursor where it is of this history, whether a watch may resume there or not; 0: none."""
        cursor = self.handler.cursor
        is_known = cursor is not None and cursor.identity == self.connection.history_identity
        return number_of(cursor.resource_version) if cursor is not None and is_known else 0

    def checkpoint(self) -> Checkpoint | None:
        """The newest known object up to the cursor, the last event's one included.

        Before a list has ended, what the store had of one that did not end: what is shown now may be another history.
        """
        cursor, (identity, former) = self.cursor(), self._former
        if cursor is None:
            return former if identity == self.connection.history_identity else None
        return self._newest_up_to(cursor)

    def _newest_up_to(self, cursor: str) -> Checkpoint | None:
        if not cursor.isdigit():
            return None
        if self.handler.revisions.bound <= number_of(self._seen[1]) <= int(cursor):
            return newest_up_to(cursor, [self._seen])
        newest = self.handler.revisions.newest(self.handler.objects)
        if self.handler.revisions.bound <= int(cursor) and (newest is None or self.handler.is_member(newest)):
            known = None if newest is None else self.handler.objects[newest]
            return newest_up_to(cursor, [self._seen, *(() if known is None else [(known.uid, known.resource_version)])])
        members = ((known.uid, known.resource_version) for _, known in self.handler.members())
        return newest_up_to(cursor, [self._seen, *(each for each in members if each[1] != DISTRUSTED)])

    # Histories

    def notice_restore(self) -> None:
        """The cluster is older than what is known here: so it is for all of its collections (S8.3)."""
        self.restored()
        self.connection.history.restored(noticed_by=self)

    def restored(self) -> None:
        """The cluster is older than the cursor (S8.3)."""
        self._rewind(Rewind.RESTORED)
        self.handler.cursor = None

    def rebuilt(self) -> None:
        """An operator accepts another cluster: its objects count as newer, whatever their resourceVersions."""
        self._rewind(Rewind.REBUILT)

    def rebooted(self) -> bool:
        """Whether the cursor is of an earlier boot: then everything has to be shown again (S8.4)."""
        cursor = self.handler.cursor
        if cursor is None or cursor.boot in ("", self.connection.boot):
            return False
        self._rewind(Rewind.REBOOTED)
        return True

    # Lists

    def count(self) -> int:
        """How many objects are known."""
        return sum(1 for _ in self.handler.members()) if self.collection.namespace else len(self.handler.objects)

    def are_comparable(self, least: int) -> bool:
        """Whether there are so many objects that a digest could find unchanged."""
        known = self.handler.members() if self.collection.namespace else iter(self.handler.objects.items())
        return self._comparable and sum(1 for _ in islice(known, least)) == least

    def list_wanted(self, reason: StrEnum) -> None:
        """The collection is about to be listed."""
        self.relists += 1
        self.expiries += reason is ListReason.EXPIRED
        if self._observer is not None:
            self._observer.relist(self.connection.name, self.name, reason)
        self._compare_identity()

    def list_begins(self) -> None:
        """A list begins at its first page: forget what an earlier one showed."""
        self._listed, self._new_versions = set(), set()

    def page_arrives(self, listed_at: str) -> None:
        """A page of a list of this resourceVersion is about to show objects: with some of them, the store tells how new
        they are, so that an agent which is killed before the list ends notices a restore before its next start.
        """
        if self.cursor() is None and number_of(listed_at) > self._reached():
            self.handler.cursor = self._cursor(listed_at).unfinished()

    def version_of(self, raw: Json) -> ObjectVersion | None:
        """Which version of which object some metadata is of; None where a server sent something else, or a stranger."""
        version = version_of(raw)
        key = None if version is None else self.handler.key_of(raw)
        if version is None or key is None:
            return None
        return version if key is version.key else ObjectVersion(key, version.uid, version.resource_version)

    def is_stranger(self, raw: Json) -> bool:
        """Whether some metadata are of an object that is not to be kept."""
        return version_of(raw) is not None and self.handler.is_stranger(raw)

    def is_current(self, version: ObjectVersion, listed_at: str) -> bool:
        """A digest of this resourceVersion shows a version of an object: whether it is the one that is known."""
        if version.key in self.handler.objects:  # else it is fetched, and may turn out not to be ours
            self._compare(version, listed_at)
        self._note_listed(version)
        return self.knows(version)

    def list_shows(self, raw: Json, listed_at: str) -> None:
        """A list of this resourceVersion shows an object."""
        key = self.handler.identify(raw, None)
        if key is not None:
            version = ObjectVersion(key, raw["metadata"]["uid"], raw["metadata"]["resourceVersion"])
            self._compare(version, listed_at)
            self._note_listed(version)
            self.handler.shown(key, raw, None)

    def list_ends(self, resource_version: str, *, consistent: bool) -> None:
        """Objects that a consistent list does not show are gone, unless we have made them since the list was taken."""
        self._comparable = True
        missing = self.missing(self._listed, resource_version) if consistent else []
        versions = [self.handler.objects[key].resource_version for key in missing]
        cursor, shown = self.cursor() or "", self._new_versions
        if not self._incomplete and are_too_many(versions, shown=shown, listed_at=resource_version, cursor=cursor):
            self.notice_restore()
        self._incomplete = not consistent
        for key in missing:
            self.handler.absent(key)
        self._listed, self._new_versions = set(), set()
        self._former = "", None

    def missing(self, listed: AbstractSet[Key], listed_at: str) -> list[Key]:
        """The known objects that a list of this resourceVersion should have shown. All of them are looked at."""
        if self.handler.objects.keys() <= listed:
            return []
        known = self.handler.members()
        return [key for key, each in known if key not in listed and not newer(each.resource_version, listed_at)]

    def knows(self, version: ObjectVersion) -> bool:
        """Whether just this version of an object is the known one."""
        known = self.handler.objects.get(version.key)
        return known is not None and (known.uid, known.resource_version) == (version.uid, version.resource_version)

    # Watches

    def watch_resumes(self) -> None:
        """A watch goes on from the cursor."""
        self.resumes += 1
        if self._observer is not None:
            self._observer.resume(self.connection.name, self.name)

    def watch_shows(self, event_type: EventType, raw: Json) -> None:
        """A watch shows a change."""
        seen = (str(raw["metadata"].get("uid", "")), raw["metadata"]["resourceVersion"])
        if seen == self._seen:
            return  # a duplicate: the cursor is past it, so no replay would repair a crash in a second handling
        if self._observer is not None:
            self._observer.event(self.connection.name, self.name, event_type)
        self._seen = seen
        key = self.handler.identify(raw, event_type)
        if key is not None:
            self.handler.shown(key, raw, event_type)

    def _note_listed(self, version: ObjectVersion) -> None:
        self._listed.add(version.key)
        if newer(version.resource_version, self.cursor() or ""):
            self._new_versions.add(version.resource_version)

    def _compare(self, shown: ObjectVersion, listed_at: str) -> None:
        """Notice a restored cluster by a version that a list shows (S8.3)."""
        known = self.handler.objects.get(shown.key)
        if known is None and self.selective:
            return
        if is_foreign(
            shown.resource_version,
            known=None if known is None else known.resource_version,
            is_known=self.knows(shown),
            listed_at=listed_at,
            cursor=self.cursor() or "",
        ):
            self.notice_restore()

    def _compare_identity(self) -> None:
        known = self.handler.cursor
        if known is None or known.identity == self.connection.history_identity:
            return
        if cluster_of(known.identity) == self.connection.cluster_identity:
            self.restored()  # other collections noticed that while the list-watch was stopped
        else:
            self.rebuilt()  # an operator accepted the cluster while the list-watch was stopped

    def _cursor(self, version: str) -> Cursor:
        return Cursor(
            self.connection.history_identity,
            self._path,
            self._fingerprint,
            version,
            self.connection.boot,
            *self._seen,
        )

    def _rewind(self, how: Rewind) -> None:
        log.info("%s %s is listed anew: %s", self.connection.name, self.name, how.value)
        if how is not Rewind.REBOOTED:
            self._forget_seen()
        self.handler.rewound(how)

    def _forget_seen(self) -> None:
        """What was seen last is of another history, or of another CRD."""
        self._seen, self._former = ("", ""), ("", None)
