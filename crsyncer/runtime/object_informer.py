"""Lists and watches one collection, and keeps of each object in memory what a list-watch needs: uid and version."""

from collections.abc import Callable, Iterator
from sys import intern

from crsyncer.core.model import Cursor, Freshness, Json, Key, ObjectVersion
from crsyncer.core.requests.calls import Collection
from crsyncer.core.watching.pages import PageLimit
from crsyncer.core.watching.restore_detection import DISTRUSTED
from crsyncer.core.watching.revisions import Revisions
from crsyncer.core.watching.watch import EventType, version_of
from crsyncer.ports import Observer
from crsyncer.runtime.collection_state import CollectionState, Rewind
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.listwatch import ListWatch


def _nothing(_how: Rewind) -> None:
    """Who keeps no more than the informer has nothing to do at a rewind."""


class ObjectInformer:
    """A list-watch and its handler. Cursor and versions are in memory only, so that each start begins with a list.

    `shown(key, object)` is called for each object that is new or has changed, `gone(key)` when one is deleted,
    `listed()` whenever the collection is known as it is now, `phase_changed()` when the list-watch has another phase,
    `rewound(how)` when the server may show older objects, or fewer, than are known; the list that follows shows all.
    `page` is the number of objects on the first page, `watch_timeout` is in seconds, `by_name` is as of PagedList.
    """

    def __init__(
        self,
        connection: Connection,
        collection: Collection,
        *,
        page: int,
        watch_timeout: int,
        shown: Callable[[Key, Json], None],
        gone: Callable[[Key], None],
        listed: Callable[[], None],
        phase_changed: Callable[[], None],
        rewound: Callable[[Rewind], None] = _nothing,
        by_name: bool = True,
        observer: Observer | None = None,
    ) -> None:
        self.objects: dict[Key, ObjectVersion] = {}
        """Every object of the collection."""
        self.revisions = Revisions()
        self.cursor: Cursor | None = None
        self.freshness = Freshness.STORED
        """How fresh the objects are; only a confirmed collection is known to be whole."""
        self.phase_changed = phase_changed
        self._shown = shown
        self._gone = gone
        self._listed = listed
        self._rewound = rewound
        self.listwatch = ListWatch(
            CollectionState(connection, collection, handler=self, observer=observer),
            page=PageLimit(page),
            by_name=by_name,
            watch_timeout=watch_timeout,
        )

    async def run(self) -> None:
        """List and watch, forever."""
        await self.listwatch.run()

    def members(self) -> Iterator[tuple[Key, ObjectVersion]]:
        """Every object."""
        return iter(self.objects.items())

    def is_member(self, key: Key) -> bool:
        """Whether it is known."""
        return key in self.objects

    def key_of(self, raw: Json) -> Key | None:
        """The server's own; None for an answer that is none. That of a known object is the very one in `objects`."""
        version = version_of(raw)
        if version is None:
            return None
        known = self.objects.get(version.key)
        return Key(*map(intern, version.key)) if known is None else known.key  # thousands share a namespace or a name

    def is_stranger(self, raw: Json) -> bool:  # noqa: ARG002
        """Every object is known."""
        return False

    def identify(self, raw: Json, event_type: EventType | None) -> Key | None:  # noqa: ARG002
        """The object's key; None for an answer that is none."""
        return self.key_of(raw)

    def shown(self, key: Key, raw: Json, event_type: EventType | None) -> None:
        """An object has changed, or a list shows it."""
        version = version_of(raw)
        if event_type is EventType.DELETED or version is None:
            self.absent(key)
        else:
            known = self.objects.get(key)  # each object's texts are in memory once, not again for each new version
            uid = known.uid if known is not None and known.uid == version.uid else version.uid
            self.objects[key] = ObjectVersion(key, uid, version.resource_version)
            self.revisions.saw(key, version.resource_version)
            self._shown(key, raw)

    def absent(self, key: Key) -> None:
        """An object is gone."""
        self.objects.pop(key, None)
        self._gone(key)

    def freshness_changed(self, freshness: Freshness) -> None:
        """What is known stays in force while it cannot be watched."""
        self.freshness = freshness
        if freshness is not Freshness.STORED:
            self._listed()

    def rewound(self, how: Rewind) -> None:
        """The list that follows shows every object as it is now."""
        self.objects = {key: ObjectVersion(key, each.uid, DISTRUSTED) for key, each in self.objects.items()}
        self.revisions.rewound()
        self._rewound(how)
