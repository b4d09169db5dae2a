"""What all collections of one cluster know of its history, together: a restore that one of them notices is theirs, too.

Revisions number the writes of a whole cluster, so the newest object that any collection has seen proves the history of
all of them (S8.2), and a cluster that was restored was restored for each of them (S8.3).
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from crsyncer.core.model import Cursor
from crsyncer.core.requests.calls import Collection
from crsyncer.core.watching.restore_detection import Checkpoint
from crsyncer.core.watching.watch import newer
from crsyncer.ports import MetaStore

_RESTORES = "~"


def cluster_of(identity: str) -> str:
    """The cluster in the identity of a history."""
    return identity.partition(_RESTORES)[0]


class State(Protocol):
    """What is known of a collection."""

    collection: Collection

    def cursor(self) -> str | None:
        """The resourceVersion up to which it was seen; None: a list is needed."""
        ...

    def highest_revision(self) -> int:
        """The highest revision of this history that is known from it; 0: none."""
        ...


class Member(Protocol):
    """One collection that is watched."""

    @property
    def state(self) -> State:
        """What is known of it."""
        ...

    @property
    def listed_at(self) -> float:
        """When it was listed last, in event loop time: its objects are those of the history that the list showed."""
        ...

    def checkpoint(self) -> Checkpoint | None:
        """The newest object that was seen before its watch ended: a later one may belong to another history."""
        ...

    def restored(self) -> None:
        """Another collection shows that the cluster was restored: nothing resumes, and everything is listed."""
        ...


@dataclass(frozen=True, slots=True)
class _Proof:
    """The server repeats the object of the version `checked`, by answers that came after the doubt at `since`.

    `revision` is the highest one that was known then; `since` is event loop time.
    """

    checked: str
    revision: int
    since: float


class KnownHistory:
    """The history of one cluster, as far as it is known.

    Once a watch has ended, the next answers may be those of another history. A proof says for all collections together
    whether they are (`ResumeCheck`).
    """

    def __init__(self, name: str, store: MetaStore) -> None:
        self.members: list[Member] = []
        self.lock = asyncio.Lock()
        """Held while the history is being proven."""
        self.doubted_at = 0.0
        """When a watch ended last, or the connection, in event loop time: what came later may be another history."""
        self._proof: _Proof | None = None
        self._store = store
        self._revision_name, self._restores_name = f"revision:{name}", f"restores:{name}"
        self._restores: int = store.get_meta(self._restores_name) or 0
        """How many restores of the cluster have been noticed."""

    @contextmanager
    def joined(self, member: Member) -> Iterator[None]:
        """A collection is watched."""
        self.members.append(member)
        try:
            yield
        finally:
            self.members.remove(member)

    def identity(self, cluster: str | None) -> str:
        """What tells this history of a cluster from those before its restores: each cursor is of one of them."""
        return f"{cluster}{_RESTORES}{self._restores}" if cluster and self._restores else cluster or ""

    def doubt(self) -> None:
        """A watch has ended, or the connection was lost."""
        self.doubted_at = asyncio.get_running_loop().time()

    def is_proven(self, member: Member) -> bool:
        """Whether the history was proven since the last doubt, and by all that this collection knows."""
        proof, checkpoint = self._proof, member.checkpoint()
        if proof is None or proof.since < self.doubted_at or proof.revision < member.state.highest_revision():
            return False
        return checkpoint is None or not newer(checkpoint.resource_version, proof.checked)

    def proven(self, checked: str, *, revision: int, since: float) -> None:
        """The server repeats the object of this version, and its revision is not below this one."""
        self._proof = _Proof(checked, revision, since)

    def newest(self, *, listed_by: float = math.inf) -> tuple[Collection, Checkpoint] | None:
        """The newest object of all collections, or of those that were not listed after a time.

        What a list showed after a doubt belongs to the history that the server has now, and proves nothing about the
        one before.
        """
        listed = [each for each in self.members if each.listed_at <= listed_by]
        known = ((each.state.collection, each.checkpoint()) for each in listed)
        found = ((collection, checkpoint) for collection, checkpoint in known if checkpoint is not None)
        return max(found, key=lambda each: int(each[1].resource_version), default=None)

    def has_cursor(self) -> bool:
        """Whether any collection goes on from a cursor."""
        return any(each.state.cursor() is not None for each in self.members)

    def highest_revision(self, identity: str) -> int:
        """The highest revision that is known of the history of this identity; 0: none."""
        known, revision = self._store.get_meta(self._revision_name) or ("", 0)
        return max([revision if known == identity else 0, *(each.state.highest_revision() for each in self.members)])

    def remember(self, cursor: Cursor, identity: str) -> None:
        """A collection forgets a cursor, but not how far this history had come."""
        version = cursor.resource_version
        if cursor.identity == identity and version.isdigit() and int(version) > self.highest_revision(identity):
            self._store.put_meta(self._revision_name, [identity, int(version)])

    def restored(self, *, noticed_by: State | None = None) -> None:
        """The cluster was restored; `noticed_by` has drawn its conclusions already.

        The cursors of collections that are not watched at present are of another history from now on.
        """
        self._restores += 1
        self._store.put_meta(self._restores_name, self._restores)
        for member in list(self.members):
            if member.state is not noticed_by:
                member.restored()
