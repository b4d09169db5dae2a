"""Watches a collection on the robot whose objects configure the agent: its CRDs, its SyncPolicies."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from crsyncer.core.model import Cursor, Freshness, Json, Key, ObjectVersion
from crsyncer.core.requests.calls import Collection
from crsyncer.core.watching.pages import PageLimit
from crsyncer.core.watching.restore_detection import DISTRUSTED
from crsyncer.core.watching.watch import EventType, version_of
from crsyncer.runtime.collection_state import CollectionState, Rewind
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.listwatch import ListWatch


class ConfigurationWatch:
    """A list-watch and its handler. Cursor and versions are kept in memory only: such objects are few, and near.

    `shown(name, object)` is called for each object that is new or has changed, `gone(name)` when one is deleted,
    `listed()` whenever the collection is known as it is now, `phase_changed()` when the list-watch has another phase.
    """

    def __init__(
        self,
        connection: Connection,
        collection: Collection,
        *,
        page: int,
        watch_timeout: int,
        shown: Callable[[str, Json], None],
        gone: Callable[[str], None],
        listed: Callable[[], None],
        phase_changed: Callable[[], None],
    ) -> None:
        self.objects: dict[Key, ObjectVersion] = {}
        """Every object of the collection."""
        self.cursor: Cursor | None = None
        self.phase_changed = phase_changed
        self._shown = shown
        self._gone = gone
        self._listed = listed
        self.listwatch = ListWatch(
            CollectionState(connection, collection, handler=self),
            page=PageLimit(page),
            by_name=True,
            watch_timeout=watch_timeout,
        )

    def members(self) -> Iterator[tuple[Key, ObjectVersion]]:
        """Every object."""
        return iter(self.objects.items())

    def key_of(self, raw: Json) -> Key | None:
        """The server's own; None for an answer that is none."""
        version = version_of(raw)
        return version.key if version is not None else None

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
            self.objects[key] = version
            self._shown(key.name, raw)

    def absent(self, key: Key) -> None:
        """An object is gone."""
        self.objects.pop(key, None)
        self._gone(key.name)

    def freshness_changed(self, freshness: Freshness) -> None:
        """What was configured stays in force while it cannot be watched."""
        if freshness is not Freshness.STORED:
            self._listed()

    def rewound(self, how: Rewind) -> None:  # noqa: ARG002
        """The list that follows shows every object as it is now."""
        self.objects = {key: replace(each, resource_version=DISTRUSTED) for key, each in self.objects.items()}
