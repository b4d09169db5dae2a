"""What a list-watch proves a history with is what a look at all known objects finds (S8.2, S8.3, S9.4)."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.adapters.memory_meta import MemoryMeta
from crsyncer.adapters.metrics import Metrics
from crsyncer.core.model import Cursor, Freshness, Json, Key
from crsyncer.core.requests.calls import VERSION, Collection
from crsyncer.core.watching.restore_detection import DISTRUSTED, newest_up_to
from crsyncer.core.watching.revisions import Revisions, number_of
from crsyncer.core.watching.watch import EventType, ListReason, newer, version_of
from crsyncer.ports import Cluster
from crsyncer.runtime.collection_state import CollectionState, Rewind
from crsyncer.runtime.connection import Connection

NAMES = "abcd"
KEYS = [Key(namespace, name) for namespace in ("here", "there") for name in NAMES]
keys = st.sampled_from(KEYS)


UNASKED = cast("Cluster", SimpleNamespace(server="https://unasked"))
"""A cluster to which nothing is sent."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of an object."""

    uid: str
    resource_version: str
    unselected: bool = False


class Kept:
    """A handler whose objects also change without its list-watch, as those of the agent do by its own writes.

    `namespace` is that of its collection; the objects of others are known as well.
    """

    def __init__(self, namespace: str) -> None:
        self.cursor: Cursor | None = None
        self.objects: dict[Key, Seen] = {}
        self.revisions = Revisions()
        self.namespace = namespace
        self.gone: list[Key] = []

    def members(self) -> Iterator[tuple[Key, Seen]]:
        return ((key, each) for key, each in self.objects.items() if self.is_member(key))

    def is_member(self, key: Key) -> bool:
        return self.namespace in ("", key.namespace) and not self.objects[key].unselected

    def key_of(self, raw: Json) -> Key | None:
        version = version_of(raw)
        return version.key if version is not None else None

    def is_stranger(self, raw: Json) -> bool:  # noqa: ARG002
        return False

    def identify(self, raw: Json, event_type: EventType | None) -> Key | None:  # noqa: ARG002
        return self.key_of(raw)

    def shown(self, key: Key, raw: Json, event_type: EventType | None) -> None:
        if event_type is EventType.DELETED:
            self.objects.pop(key, None)
        else:
            self.knows(key, raw["metadata"]["resourceVersion"])

    def knows(self, key: Key, version: str, *, unselected: bool = False) -> None:
        self.objects[key] = Seen(f"uid of {key}", version, unselected)
        self.revisions.saw(key, version)

    def absent(self, key: Key) -> None:
        self.gone.append(key)
        del self.objects[key]

    def freshness_changed(self, freshness: Freshness) -> None:
        """Nobody asks."""

    def rewound(self, how: Rewind) -> None:  # noqa: ARG002
        self.objects = {key: replace(each, resource_version=DISTRUSTED) for key, each in self.objects.items()}
        self.revisions.rewound()

    def phase_changed(self) -> None:
        """There is none."""


def highest(state: CollectionState, handler: Kept) -> int:
    """The rule of `highest_revision`, which looks at all objects."""
    versions = [each.resource_version for each in handler.objects.values()]
    if handler.cursor is not None and handler.cursor.identity == state.connection.history_identity:
        versions.append(handler.cursor.resource_version)
    return max(map(number_of, versions), default=0)


def check(state: CollectionState, handler: Kept) -> None:
    """What is kept is what the rules say, which look at all objects."""
    members = [(each.uid, each.resource_version) for _, each in handler.members()]
    seen = state._seen
    up_to = [seen, *(each for each in members if each[1] != DISTRUSTED)]
    assert state.checkpoint() == newest_up_to(state.cursor() or "", up_to)
    assert state.highest_revision() == highest(state, handler)


def raw(key: Key, version: str) -> Json:
    """An object as a server shows it."""
    return {
        "metadata": {
            "namespace": key.namespace, "name": key.name, "uid": f"uid of {key}", "resourceVersion": version,
        }
    }  # fmt: skip


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["changed", "deleted", "written", "lost", "forgotten", "unselected"]), keys),
        st.tuples(st.sampled_from(["bookmark", "expired", "restored", "rebuilt", "older"]), st.none()),
        st.tuples(st.just("listed"), st.tuples(st.sets(keys), st.booleans(), st.booleans())),
        st.tuples(st.just("unchecked"), keys),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=500)
@given(st.sampled_from(["", "here"]), STEPS)
def test_S8_2_checkpoint_and_highest_revision_are_those_that_a_look_at_all_objects_finds(namespace, steps):
    connection = Connection(
        "root",
        cluster=UNASKED,
        store=MemoryMeta(),
        observer=Metrics(),
        probe_calls=lambda: [VERSION],
        crds=dict,
        clock=time.time,
    )
    handler = Kept(namespace)
    state = CollectionState(connection, Collection("g.example.com", "v1", "goals", namespace), handler=handler)
    revision = 10
    for what, which in steps:
        revision += 2
        version = str(revision)
        match what:
            case "changed" | "unchecked":
                state.watch_shows(EventType.MODIFIED, raw(which, version))
                state.set_cursor(version)
            case "deleted":
                state.watch_shows(EventType.DELETED, raw(which, version))
                state.set_cursor(version)
            case "written":  # by ourselves: its answer comes before its event
                handler.knows(which, version)
            case "unselected":
                handler.knows(which, version, unselected=True)
            case "lost" | "forgotten":
                handler.objects.pop(which, None)
            case "bookmark":
                state.set_cursor(version)
            case "older":  # the list of a robot whose machine has lost its last writes
                state.rebooted()
                state.set_cursor(str(revision - 9))
            case "expired":
                state.drop_cursor()
            case "restored":
                state.restored()
            case "rebuilt":
                state.rebuilt()
            case "listed":
                shown, consistent, keeps_cursor = which
                if not keeps_cursor:
                    state.drop_cursor()
                state.list_wanted(ListReason.EXPIRED)
                state.list_begins()
                gone = [key for key, each in handler.members() if key not in shown]
                revision += len(shown)
                version = str(revision)
                for number, key in enumerate(sorted(shown)):
                    known = handler.objects.get(key, Seen("", DISTRUSTED)).resource_version
                    shows = str(revision - number) if known == DISTRUSTED else known
                    state.list_shows(raw(key, shows), version)
                    check(state, handler)
                gone = [key for key in gone if not newer(handler.objects[key].resource_version, version)]
                handler.gone = []
                state.list_ends(version, consistent=consistent)
                assert handler.gone == (gone if consistent else [])
                state.set_cursor(version)
        if what != "unchecked":
            check(state, handler)
