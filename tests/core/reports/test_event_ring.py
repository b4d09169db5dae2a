"""The ring of events: what repeats is counted, a flood is one event, the oldest gives way."""

import json
from dataclasses import replace
from itertools import pairwise

from crsyncer.core.model import Key, Side
from crsyncer.core.reports.event_ring import Event, EventRing, dump_event, event_name, load_events
from crsyncer.core.reports.facts import Action, Fact

GOALS = "goals.lab.example.com"
NOW = 1_000_000.0


def fact(name: str | None = "a", action: Action = Action.UPDATED, message: str = "") -> Fact:
    return Fact(Side.ROBOT, GOALS, None if name is None else Key("default", name), action, "S3.2", message)


def shown(ring: EventRing) -> list[tuple[str, int]]:
    return [(event.fact.key.name if event.fact.key else "-", event.count) for event in ring.events]


def test_an_equal_fact_raises_the_count_and_keeps_the_newest_message():
    ring = EventRing(3)
    for second, message in enumerate(("one", "two", "three")):
        ring.note(fact(message=message), NOW + second)
    assert ring.events == [Event(fact(message="three"), NOW, NOW + 2, 3)]


def test_another_object_action_or_rule_is_another_event_and_the_latest_comes_last():
    ring = EventRing(9)
    for each in (fact("a"), fact("b"), fact("a", Action.HELD), replace(fact("a"), rule="S5"), fact(None), fact("a")):
        ring.note(each, NOW)
    assert shown(ring) == [("b", 1), ("a", 1), ("a", 1), ("-", 1), ("a", 2)]


def test_the_oldest_event_gives_its_slot_to_a_new_one():
    ring = EventRing(2)
    slots = [ring.note(fact(name), NOW + n) for n, name in enumerate("abac")]
    assert slots == [0, 1, None, 1]
    assert shown(ring) == [("a", 2), ("c", 1)]
    assert ring[1].fact == fact("c")
    assert ring.note(fact("b"), NOW + 9) == 0


def test_a_storm_is_news_at_first_and_then_ever_more_rarely():
    ring = EventRing(3)
    news = [second for second in range(0, 4 * 3600, 30) if ring.note(fact(), NOW + second) is not None]
    assert news[:6] == [0, 60, 180, 420, 900, 1860]
    assert {later - earlier for earlier, later in pairwise(news[5:])} == {1800}
    assert ring.take_unsaved() == [0]
    assert ring.take_unsaved() == []


def test_what_happens_again_after_a_quiet_time_is_news_at_once():
    ring = EventRing(3)
    assert [ring.note(fact(), NOW + second) for second in (0, 91, 91.5, 200)] == [0, 0, None, 0]


def test_a_clock_that_was_set_back_ends_a_storm():
    ring = EventRing(3)
    assert [ring.note(fact(), NOW + second) for second in (0, 1, -5000, -4999)] == [0, None, 0, None]


def test_of_a_flood_ten_objects_are_named_and_the_others_counted_together():
    ring = EventRing(100)
    news = [ring.note(fact(f"o-{number}"), NOW + number / 10) for number in range(1000)]
    assert len(ring.events) == 11
    assert ring.events[-1] == Event(fact("o-999"), NOW + 1, NOW + 99.9, 990, many=True)
    assert len([slot for slot in news if slot is not None]) == 12  # the flood once more after a minute
    ring.note(fact("o-5"), NOW + 100)  # who is named is counted there
    assert ring.events[-1].count == 2
    ring.note(fact("late"), NOW + 500)
    assert ring.events[-1] == Event(fact("late"), NOW + 500, NOW + 500)


def test_other_actions_and_kinds_are_no_part_of_a_flood():
    ring = EventRing(100)
    for number in range(10):
        ring.note(fact(f"o-{number}"), NOW)
    ring.note(fact("x", Action.DELETED), NOW)
    ring.note(replace(fact("x"), resource="tasks.lab.example.com"), NOW)
    ring.note(fact(None), NOW)
    assert not any(event.many for event in ring.events)


def test_events_survive_in_the_store_as_they_were():
    ring, stored = EventRing(100), {}
    for number in range(12):
        ring.note(fact(f"o-{number}", message=f"m {number}"), NOW + number)
    ring.note(fact(None, Action.HELD), NOW + 20)
    for slot, event in enumerate(ring.events):
        stored[event_name(slot)] = json.loads(json.dumps(dump_event(event)))
    again = EventRing(100, load_events(stored.get))
    assert again.events == ring.events
    assert again.note(fact(None, Action.HELD), NOW + 21) is not None
    assert again.events[-1].count == 2


def test_a_value_that_another_version_wrote_is_left_out_and_its_slot_is_used():
    stored = {
        event_name(0): ["robot", GOALS, ["default", "a"], "danced", "S0", "", NOW, NOW, 1, False],
        event_name(1): "nonsense",
        event_name(2): dump_event(Event(fact("c"), NOW, NOW)),
    }
    ring = EventRing(3, load_events(stored.get))
    assert shown(ring) == [("c", 1)]
    assert [ring.note(fact(name), NOW) for name in "ab"] == [0, 1]
