"""What a list-watch delivers into."""

from typing import Protocol

from crsyncer.core.model import Edition, Freshness, Json
from crsyncer.core.watch import Anchor, EventType


class Sink(Protocol):
    """Takes what a list-watch delivers, in the server's order."""

    def cursor(self) -> str | None:
        """The resourceVersion to go on from; None: a list is needed."""
        ...

    def newest(self) -> int:
        """The highest resourceVersion that is known of an object, from a write's answer before its event perhaps."""
        ...

    def moved(self, resource_version: str | None) -> None:
        """Everything up to here has been delivered; None: the cursor is worth nothing."""
        ...

    def anchor(self) -> Anchor | None:
        """The newest object that was delivered up to the cursor; None where there is none."""
        ...

    def copies(self) -> int:
        """How many objects a digest could find unchanged; 0: what is stored is not known to be of this collection."""
        ...

    def relisted(self, reason: str) -> None:
        """The collection is about to be listed, for a reason: count it."""
        ...

    def listing(self) -> None:
        """A list begins, from the first page: forget what an earlier one showed."""
        ...

    def has(self, edition: Edition, listed_at: str) -> bool:
        """A list of this resourceVersion shows a version of an object: whether it is the one that is known."""
        ...

    def item(self, raw: Json, listed_at: str) -> None:
        """A list of this resourceVersion shows an object."""
        ...

    def listed(self, resource_version: str, *, consistent: bool) -> None:
        """The list has come to its end; if it is `consistent`, what it did not show is gone."""
        ...

    def event(self, event_type: EventType, raw: Json) -> None:
        """The watch shows a change."""
        ...

    def resumed(self) -> None:
        """The watch goes on from a cursor."""
        ...

    def freshness_changed(self, freshness: Freshness) -> None:
        """What is known of the collection is fresher now, or less fresh."""
        ...

    def went_back(self) -> None:
        """The cluster is older than the cursor: it was restored."""
        ...

    def rebooted(self) -> bool:
        """Whether the side's machine has booted since the cursor, so that a list is needed all the same."""
        ...

    def noticed(self) -> None:
        """The phase has changed."""
        ...
