"""Records what the agent did or refused: one log line for each fact, and the latest for `crsyncer events`."""

import logging
from collections.abc import Callable

from crsyncer.core.reports.event_ring import KEPT, Event, EventRing, dump_event, event_name, load_events
from crsyncer.core.reports.facts import UNLISTED, Action, Fact
from crsyncer.ports import MetaStore

log = logging.getLogger(__name__)

_LEVELS = {
    Action.SENT: logging.DEBUG,
    Action.CONFLICT: logging.DEBUG,
    Action.FAILED: logging.WARNING,
    Action.REFUSED: logging.WARNING,
    Action.DEAD_LETTER: logging.WARNING,
    Action.HELD: logging.WARNING,
}


class Recorder:
    """The one place that facts are reported to; what repeats is counted, and reported again only now and then.

    An event is put into the store with whatever else is written at that moment, when it is news: `kill -9` costs no
    event, only the latest part of its count. `clock` is Unix time, in seconds.
    """

    def __init__(self, store: MetaStore, *, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._listed = EventRing(KEPT, load_events(store.get_meta))
        self._unlisted = EventRing(KEPT)
        self.listeners: list[Callable[[Event], None]] = []
        """Told of every event that is news."""

    @property
    def events(self) -> list[Event]:
        """The latest events, the latest last."""
        return self._listed.events

    def record(self, fact: Fact) -> None:
        """Something was done or refused."""
        ring = self._unlisted if fact.action in UNLISTED else self._listed
        slot = ring.note(fact, self._clock())
        if slot is None:
            return
        event = ring[slot]
        if ring is self._listed:
            self._save(slot)
        log.log(
            _LEVELS.get(fact.action, logging.INFO),
            "%s%s",
            fact.action,
            f": {fact.message}" if fact.message else "",
            extra={
                "side": fact.side,
                "resource": fact.resource,
                "key": fact.key,
                "action": fact.action,
                "rule": fact.rule,
                "count": event.count if event.count > 1 else None,
            },
        )
        for listener in self.listeners:
            listener(event)

    def save(self) -> None:
        """Put what was only counted since into the store: the agent stops."""
        for slot in self._listed.take_unsaved():
            self._save(slot)

    def _save(self, slot: int) -> None:
        self._store.put_meta(event_name(slot), dump_event(self._listed[slot]))
