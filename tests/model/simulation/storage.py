"""What an API server stores: objects, one growing revision, and the changes that watches are served from."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crsyncer.core.model import Json
from tests.model.simulation.clock import EPOCH

Where = tuple[str, str]
"""Namespace ("" = cluster-scoped) and name."""


def copied(value: Any) -> Any:
    """A deep copy of a JSON value."""
    return json.loads(json.dumps(value))


@dataclass(frozen=True, slots=True)
class Change:
    """One write. `after` is None for a deletion; `before` for a creation; `time` is seconds since the world began."""

    revision: int
    time: float
    resource: str
    before: Json | None
    after: Json | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A backup."""

    revision: int
    objects: Mapping[str, Mapping[Where, Json]]


class Storage:
    """Stored objects are never changed in place: whoever has one keeps that version."""

    def __init__(self, name: str, *, revision: int, now: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._now = now
        self.revision = revision
        self.oldest = revision
        """A watch may begin here or later; before that, what has happened is not known any more."""
        self.epoch = 0
        """Counts how often the server started; every open watch ends with it."""
        self.history: list[Change] = []
        self.listeners: list[Callable[[Change], None]] = []
        """Told of every change, but not of what a restore or a rebuild undoes."""
        self.rewinds: list[Callable[[int], None]] = []
        """Told when a restore or a rebuild has undone changes: of the revision up to which the past is the same."""
        self._objects: dict[str, dict[Where, Json]] = {}
        self._uids = 0

    @property
    def unix(self) -> float:
        """What the server takes for the time, in seconds."""
        return EPOCH + self._now()

    def of(self, resource: str) -> dict[Where, Json]:
        """All objects of a resource."""
        return self._objects.setdefault(resource, {})

    def new_uid(self) -> str:
        """A uid that was never there before, whatever was restored."""
        self._uids += 1
        return f"{self.name}-{self._uids}"

    def put(self, resource: str, where: Where, new: Json) -> Json:
        """Store a version of an object, unless nothing has changed; what is stored then."""
        old = self.of(resource).get(where)
        if old is not None:
            version = old["metadata"]["resourceVersion"]
            if old == {**new, "metadata": {**new["metadata"], "resourceVersion": version}}:
                return old
        self.revision += 1
        stored: Json = copied(new)
        stored["metadata"]["resourceVersion"] = str(self.revision)
        self.of(resource)[where] = stored
        self._note(Change(self.revision, self._now(), resource, old, stored))
        return stored

    def remove(self, resource: str, where: Where) -> Json:
        """Delete an object for good; its last version."""
        old = self.of(resource).pop(where)
        self.revision += 1
        self._note(Change(self.revision, self._now(), resource, old, None))
        return old

    def _note(self, change: Change) -> None:
        self.history.append(change)
        for listener in self.listeners:
            listener(change)

    def skip(self, revisions: int) -> None:
        """Others, of whom nobody here asks, write something."""
        self.revision += revisions

    def compact(self) -> None:
        """Forget how it came to what there is."""
        self.oldest, self.history = self.revision, []

    def snapshot(self) -> Snapshot:
        """Make a backup."""
        return Snapshot(self.revision, {resource: dict(found) for resource, found in self._objects.items()})

    def restart(self) -> None:
        """The API server starts again: what its cache had of the past is gone, and every watch has ended."""
        self.compact()
        self.epoch += 1

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a backup, revision and all."""
        self.revision = snapshot.revision
        self._objects = {resource: dict(found) for resource, found in snapshot.objects.items()}
        self.restart()
        self._rewound(snapshot.revision)

    def move(self, *, revision: int, oldest: int) -> None:
        """Other storage takes over, which others have written to: it has every object, uid and all, in a new version.

        A watch of it may begin at `oldest` or later.
        """
        former, self._objects = self._objects, {}
        self.revision = revision
        self.restart()
        self.oldest = oldest
        for resource, found in former.items():
            for where, obj in found.items():
                self.revision += 1
                new = copied(obj)
                new["metadata"]["resourceVersion"] = str(self.revision)
                self.of(resource)[where] = new
                self.history.append(Change(self.revision, self._now(), resource, None, new))

    def rebuild(self, *, revision: int) -> None:
        """Another cluster answers here now, and it is empty."""
        self.revision, self._objects = revision, {}
        self.restart()
        self._rewound(0)

    def _rewound(self, shared: int) -> None:
        for listener in self.rewinds:
            listener(shared)
