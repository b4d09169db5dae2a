"""Whether another agent acts in this one's name: two robots with one identity, such as those of a copied disk."""

import re
from dataclasses import dataclass

from crsyncer.core.model import Json, Key
from crsyncer.core.text import unix

NAME = "crsyncer-"
"""What the names of agents begin with; eight hexadecimal digits follow.

API servers note who wrote a field, by the first part of the User-Agent.

Source: Kubernetes documentation, "Server-Side Apply", field management: other verbs than apply count as well.
"""
_NAME = re.compile(NAME + "[0-9a-f]{8}")
_REMEMBERED_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Twin:
    """Another live agent, as last noticed. `time` is the server's, `until` ours; Unix time, in seconds."""

    name: str
    resource: str
    key: Key
    time: float
    until: float


class Twins:
    """Notices another live agent by what it writes to objects that are this robot's alone. `own` is our name.

    Agents that ran before leave their names on objects: a restart changes nothing of them. So a name counts only where
    it writes after we have seen the object, and after we met the server, by the server's own clock: what a predecessor
    wrote last may reach us late.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._times: dict[tuple[str, Key], float] = {}
        self._twin: Twin | None = None

    def saw(self, resource: str, key: Key, raw: Json, *, known: bool, met: float, now: float) -> bool:
        """An object is seen in the cloud; True when that shows a twin that was not noticed before.

        `known`: we had seen it before. `met`: when we met the server, by its clock; `now`: ours; in seconds.
        """
        name, time = _last_write(raw, self._own)
        before = self._times.get((resource, key), 0.0)
        if not name or time <= before:
            return False
        self._times[resource, key] = time
        if not known or time <= met:
            return False
        new = self.twin(now) is None
        self._twin = Twin(name, resource, key, time, now + _REMEMBERED_SECONDS)
        return new

    def forget(self, resource: str, key: Key | None = None) -> None:
        """An object has left our sight, or (None) its kind is not synced any more: whoever writes to it then may."""
        if key is not None:
            self._times.pop((resource, key), None)
            return
        self._times = {known: time for known, time in self._times.items() if known[0] != resource}
        if self._twin is not None and self._twin.resource == resource:
            self._twin = None

    def twin(self, now: float) -> Twin | None:
        """The twin that was noticed within the last ten minutes."""
        return self._twin if self._twin is not None and now < self._twin.until else None


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
