"""The latest facts, each once: what repeats is counted, and of a flood of objects only the first are named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from crsyncer.core.model import Key, Side
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.reports.text import brief

_STORM_SECONDS = 90.0
"""Facts that follow each other more quickly are one storm: a try that fails is repeated after 60 s at most."""
_FIRST_NEWS_SECONDS, _LAST_NEWS_SECONDS = 60.0, 1800.0
"""How long a storm goes on until it is news again: first, then doubled, and at most."""
_FLOOD = 10
"""So many objects with the same action are named; those that follow in the storm are counted together."""
KEPT = 100
"""How many events the store keeps."""


@dataclass(frozen=True, slots=True)
class Event:
    """A fact and its repetitions: the latest one, when the first and the latest were (Unix time, seconds), how many."""

    fact: Fact
    first: float
    last: float
    count: int = 1
    many: bool = False
    """Several objects are counted together; the fact names the latest."""


_Identity = tuple[Side, str, Key | None, Action, str, bool]


class EventRing:
    """At most `size` events. Each has a slot, a number below `size`; a new event takes that of the oldest."""

    def __init__(self, size: int, events: Mapping[int, Event] | None = None) -> None:
        """`events` are those of an earlier run, by slot."""
        self._size = size
        self._events = dict(sorted((events or {}).items(), key=lambda found: found[1].last))
        """By slot, the latest last."""
        self._slots = {_identity(event.fact, many=event.many): slot for slot, event in self._events.items()}
        self._news: dict[int, tuple[float, float]] = {}
        """When an event was news the last time, and how long a storm lasts until it is news again, in seconds."""
        self._unsaved: set[int] = set()

    def __getitem__(self, slot: int) -> Event:
        """The event of a slot."""
        return self._events[slot]

    @property
    def events(self) -> list[Event]:
        """All events, the latest last."""
        return list(self._events.values())

    def note(self, fact: Fact, now: float) -> int | None:
        """Note a fact. The slot of its event where that is news, None where it is one more of a storm.

        `now` is Unix time, in seconds. The event keeps a short message without content of the object.
        """
        if fact.message:
            fact = replace(fact, message=brief(fact.message))
        many = self._is_flood(fact, now)
        identity = _identity(fact, many=many)
        slot = self._slots.get(identity)
        if slot is None:
            slot = self._free_slot()
            event = Event(fact, now, now, many=many)
            is_news = True
        else:
            old = self._events.pop(slot)
            event = Event(fact, old.first, now, old.count + 1, old.many)
            is_news = not _is_recent(old.last, now)
        self._events[slot], self._slots[identity] = event, slot
        noted, interval = self._news.get(slot, (now, 0.0))
        if is_news or not interval:
            interval = _FIRST_NEWS_SECONDS
        elif now >= noted + interval:
            interval = min(2 * interval, _LAST_NEWS_SECONDS)
        else:
            self._unsaved.add(slot)
            return None
        self._news[slot] = now, interval
        self._unsaved.discard(slot)
        return slot

    def take_unsaved(self) -> list[int]:
        """The slots whose events were counted on since they were news."""
        found, self._unsaved = sorted(self._unsaved), set()
        return found

    def _is_flood(self, fact: Fact, now: float) -> bool:
        """Whether the fact is about one object too many to be named."""
        if fact.key is None or _identity(fact, many=False) in self._slots:
            return False
        together = self._slots.get(_identity(fact, many=True))
        if together is not None and _is_recent(self._events[together].last, now):
            return True
        alike = _identity(fact, many=True)
        recent = (event for event in self._events.values() if not event.many and _is_recent(event.last, now))
        return sum(_identity(event.fact, many=True) == alike for event in recent) >= _FLOOD

    def _free_slot(self) -> int:
        if len(self._events) < self._size:
            return next(slot for slot in range(self._size) if slot not in self._events)
        slot = next(iter(self._events))
        oldest = self._events.pop(slot)
        del self._slots[_identity(oldest.fact, many=oldest.many)]
        return slot


def dump_event(event: Event) -> list[Any]:
    """An event as the store keeps it."""
    fact = event.fact
    key = None if fact.key is None else [fact.key.namespace, fact.key.name]
    counted = (event.first, event.last, event.count, event.many)
    return [fact.side, fact.resource, key, fact.action, fact.rule, fact.message, *counted]


def load_events(value: Callable[[str], Any]) -> dict[int, Event]:
    """The events of a store, by slot; `value` is what it keeps under a name."""
    found = {slot: _load_event(value(event_name(slot))) for slot in range(KEPT)}
    return {slot: event for slot, event in found.items() if event is not None}


def event_name(slot: int) -> str:
    """Under which name the store keeps the event of a slot."""
    return f"event:{slot}"


def _load_event(stored: Any) -> Event | None:
    """The event again; None where there is none, or another version of the agent has written it."""
    try:
        side, resource, key, action, rule, message, *counted = stored
        fact = Fact(Side(side), resource, None if key is None else Key(*key), Action(action), rule, message)
        return Event(fact, *counted)
    except (TypeError, ValueError):
        return None


def _identity(fact: Fact, *, many: bool) -> _Identity:
    """By which facts are the same: the message may differ."""
    return (fact.side, fact.resource, None if many else fact.key, fact.action, fact.rule, many)


def _is_recent(last: float, now: float) -> bool:
    """Whether it was so recently that a storm goes on; a clock that was set back ends it."""
    return 0 <= now - last <= _STORM_SECONDS
