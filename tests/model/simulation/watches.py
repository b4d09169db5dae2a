"""Watches of a simulated API server: which lines a change means to whoever asked, and when they arrive."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crsyncer.core.model import Json
from tests.model.simulation.api_server import Address, ApiServer, within
from tests.model.simulation.selectors import selected
from tests.model.simulation.storage import Change


@dataclass(slots=True)
class Watch:
    """One open watch. `position` counts the changes of the server's history that were looked at."""

    server: ApiServer
    address: Address
    since: int
    selector: str
    epoch: int
    name: str = ""
    """Only the object of this name; empty: all."""
    definition: Json | None = None
    """Its CRD's spec when it was opened."""
    position: int = 0

    def is_torn_down(self) -> bool:
        """Whether the CRD has another spec since, so that the server makes the kind's storage anew (measured)."""
        spec = self.server.definition(self.address.kind)
        return None not in (spec, self.definition) and spec != self.definition

    def lines(self) -> Iterator[tuple[float, bytes]]:
        """What has happened since the last call, as (when, line)."""
        history = self.server.storage.history
        while self.position < len(history):
            change = history[self.position]
            self.position += 1
            if change.revision > self.since:
                event = self._event(change)
                if event is not None:
                    yield change.time, _line(*event)

    def bookmark(self) -> bytes:
        """Up to where everything was delivered."""
        kind = self.address.kind
        version = {"resourceVersion": str(max(self.since, self.server.storage.revision))}
        return _line("BOOKMARK", {"apiVersion": kind.api_version, "kind": kind.name, "metadata": version})

    def _event(self, change: Change) -> tuple[str, Json] | None:
        if change.resource != self.address.kind.resource:
            return None
        before, after = (o if o is not None and self._wanted(o) else None for o in (change.before, change.after))
        if after is not None:
            shown = self.server.shown(self.address.kind, after)
            return "ADDED" if before is None else "MODIFIED", shown
        if before is None:
            return None
        # The last state that was selected, under the revision that took it away.
        last = self.server.shown(self.address.kind, before)
        last["metadata"]["resourceVersion"] = str(change.revision)
        return "DELETED", last

    def _wanted(self, obj: Json) -> bool:
        where = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        named = self.name in ("", where[1])
        return named and within(where, self.address.namespace) and selected(obj, self.selector)


def open_watch(server: ApiServer, address: Address, query: Mapping[str, str]) -> Watch | None:
    """A watch from a resourceVersion; None when that is too long ago. One of the future is silent until it comes."""
    since = int(query.get("resourceVersion") or 0)
    if since < server.oldest(address.kind):
        return None
    selector, definition = query.get("labelSelector", ""), server.definition(address.kind)
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    return Watch(server, address, since, selector, server.storage.epoch, name, definition)


def _line(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def too_old(server: ApiServer, address: Address, query: Mapping[str, str]) -> Json:
    """What a watch that begins too long ago is answered; it names the oldest version that is remembered (measured)."""
    message = f"too old resource version: {query.get('resourceVersion') or 0} ({server.oldest(address.kind)})"
    return {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": message}


def gone(status: Json) -> bytes:
    """How a watch ends with this answer, inside a 200."""
    return _line("ERROR", status)
