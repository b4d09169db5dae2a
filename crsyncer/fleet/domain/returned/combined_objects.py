"""The CombinedStatus objects: what they must contain, and how that is written (F7.3, section 2)."""

from collections.abc import Generator
from dataclasses import dataclass
from sys import maxsize

from crsyncer.core.content.object_content import digest, json_size
from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.returned.combining import MOST_OBJECT_BYTES, Result, shown_results
from crsyncer.fleet.domain.returned.due import Due
from crsyncer.fleet.domain.returned.evaluations import Evaluations
from crsyncer.fleet.domain.values import API_VERSION, Nothing, Placement, SourceKey, Wait

STATUS_COLLECTORS = "StatusCollectors"
COMBINED_STATUSES = "CombinedStatuses"
_FIELDS = ("source", "placement", "results")


@dataclass(frozen=True, slots=True)
class Put:
    """Create the object, or replace it as it was seen."""

    body: Json


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete the object as it was seen."""


CombinedPlan = Nothing | Put | Drop | Wait


@dataclass(frozen=True, slots=True)
class _Stored:
    """A CombinedStatus as the API server has it: no more than a comparison needs."""

    resource: str
    """The full name of its source's kind."""
    content: str


class CombinedObjects:
    """One CombinedStatus for each placement with collectors and each of its sources, beside the placement.

    Nothing is written before StatusCollectors and CombinedStatuses are listed consistently, and the replicas of a
    source's kind are listed and evaluated (F1.1).
    """

    def __init__(self, fleet: Fleet, evaluations: Evaluations) -> None:
        self._unlisted = {STATUS_COLLECTORS, COMBINED_STATUSES}
        self._fleet = fleet
        self._evaluations = evaluations
        self._stored: dict[Key, _Stored] = {}

    def shown(self, raw: Json) -> Due:
        """A CombinedStatus was added or changed, or one was written: its body, then."""
        metadata, source = raw["metadata"], raw.get("source")
        key = Key(metadata["namespace"], metadata["name"])
        named = source if isinstance(source, dict) else {}
        resource = f"{named.get('resource')}.{named.get('group') or ''}".removesuffix(".")
        self._stored[key] = _Stored(resource, _content(raw))
        return Due(combined={key})

    def gone(self, namespace: str, name: str) -> Due:
        """A CombinedStatus was deleted."""
        key = Key(namespace, name)
        self._stored.pop(key, None)
        return Due(combined={key})

    def listed(self, name: str) -> Due:
        """Something was listed consistently; all objects that were waiting for the last list are due."""
        self._unlisted.discard(name)
        return Due(combined=set() if self._unlisted else self._stored.keys() | self._evaluations.combined())

    def plan(self, key: Key, *, most: int = maxsize) -> Generator[None, None, CombinedPlan]:
        """What must be done about one CombinedStatus, found in parts, of so many robots each.

        wanted           stored    do
        not known yet    any       wait
        no               no        nothing
        no               yes       drop
        yes              no        put
        yes              differs   put
        yes              agrees    nothing
        """
        if self._unlisted:
            return Wait(f"{min(self._unlisted)} are not listed")
        results = None
        if (asked := self._wanted(key)) is not None:
            results = yield from self._evaluations.results(asked[0].text, asked[1], most=most)
        stored, found = self._stored.get(key), self._wanted(key)  # between two parts anything may change
        resource = stored.resource if stored is not None else ""
        if found is None:
            if stored is None:
                return Nothing()
            if not self._fleet.is_ready(resource):
                return Wait(f"{resource} is not listed")
            return Drop()
        placement, source = found
        if results is None or not self._fleet.is_ready(source.resource):
            return Wait("not all replicas are evaluated")
        body = _body(key, placement, source, results)
        return Nothing() if stored is not None and stored.content == _content(body) else Put(body)

    def _wanted(self, key: Key) -> tuple[Placement, SourceKey] | None:
        """The placement and the source that an object is for; None: nobody wants it."""
        identity, _, uid = key.name.partition(".")
        placement, source = self._fleet.index.placement(uid), self._fleet.index.source_of(identity)
        if placement is None or source is None or not placement.collectors or placement.namespace != key.namespace:
            return None
        return (placement, source) if source in self._fleet.index.sources_of(placement.text) else None


def _body(key: Key, placement: Placement, source: SourceKey, results: list[Result]) -> Json:
    plural, _, group = source.resource.partition(".")
    owner = {"apiVersion": API_VERSION, "kind": "RobotPlacement", "name": placement.name, "uid": placement.uid}
    body = {
        "apiVersion": API_VERSION,
        "kind": "CombinedStatus",
        "metadata": {"namespace": key.namespace, "name": key.name, "ownerReferences": [owner]},
        "source": {"group": group, "resource": plural, "name": source.name},
        "placement": placement.name,
    }
    return body | {"results": shown_results(results, MOST_OBJECT_BYTES - json_size(body))}


def _content(raw: Json) -> str:
    return digest([raw.get(field) for field in _FIELDS])
