"""Detects another live agent with this robot's name, such as one on a copied disk."""

import re
from dataclasses import dataclass

from crsyncer.core.model import Json, Key
from crsyncer.core.reports.text import unix

NAME = "crsyncer-"
"""The prefix of the names of agents; eight hexadecimal digits follow.

API servers note the writer of a field, by the first part of the User-Agent.

Source: Kubernetes documentation, "Server-Side Apply", field management: other verbs than apply count as well.
"""
_NAME = re.compile(NAME + "[0-9a-f]{8}")
_REMEMBERED_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class DuplicateAgent:
    """Another live agent, as last noticed. `time` is the server's, `until` ours; Unix time, in seconds."""

    name: str
    resource: str
    key: Key
    time: float
    until: float


class DuplicateAgents:
    """Notices another live agent by its writes to objects that only this robot writes. `own` is our name.

    Agents that ran before leave their names on objects: a restart changes nothing of them. So a name counts only where
    it writes after we have seen the object, and after we first connected, by the server's own clock: the last write of
    a predecessor may arrive late.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._times: dict[tuple[str, Key], float] = {}
        self._current: DuplicateAgent | None = None

    def saw(self, resource: str, key: Key, raw: Json, *, known: bool, since: float, now: float) -> bool:
        """An object is seen in the cloud; True when that shows a duplicate that was not noticed before.

        `known`: it had been seen before. `since`: when this agent first connected, by the server's clock; `now`: by its
        own clock; in seconds.
        """
        name, time = _last_write(raw, self._own)
        before = self._times.get((resource, key), 0.0)
        if not name or time <= before:
            return False
        self._times[resource, key] = time
        if not known or time <= since:
            return False
        new = self.current(now) is None
        self._current = DuplicateAgent(name, resource, key, time, now + _REMEMBERED_SECONDS)
        return new

    def forget(self, resource: str, key: Key | None = None) -> None:
        """An object does not match any more, or (None) its kind is not synced any more: others may write to it."""
        if key is not None:
            self._times.pop((resource, key), None)
            return
        self._times = {known: time for known, time in self._times.items() if known[0] != resource}
        if self._current is not None and self._current.resource == resource:
            self._current = None

    def current(self, now: float) -> DuplicateAgent | None:
        """The duplicate that was noticed within the last ten minutes."""
        return self._current if self._current is not None and now < self._current.until else None


def _last_write(raw: Json, own: str) -> tuple[str, float]:
    """Which other agent wrote to an object last, and when (the server's Unix time, in seconds); "": none."""
    newest = ("", 0.0)
    entries = raw["metadata"].get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        name = entry.get("manager") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name == own:
            continue
        try:
            time = unix(entry["time"])
        except (KeyError, TypeError, ValueError):
            continue
        if time > newest[1]:
            newest = (name, time)
    return newest
