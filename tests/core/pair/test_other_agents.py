"""Row 48: which traces show that another agent is alive, and which are only history."""

import pytest

from crsyncer.core.model import Key
from crsyncer.core.pair.other_agents import DuplicateAgent, DuplicateAgents
from tests.core.builders import goal

KEY = Key("default", "a")
OWN, OTHER, THIRD = (f"crsyncer-0000000{number}" for number in (1, 2, 3))
SINCE = 1000.0
"""1970-01-01T00:16:40Z"""


def written(*traces: tuple[object, object]) -> dict:
    return goal(metadata={"managedFields": [{"manager": manager, "time": time} for manager, time in traces]})


def saw(duplicates: DuplicateAgents, raw: dict, *, known: bool = True, now: float = 5.0) -> bool:
    return duplicates.saw("goals.x", KEY, raw, known=known, since=SINCE, now=now)


def test_whoever_writes_after_we_have_seen_the_object_is_a_duplicate_for_ten_minutes():
    duplicates = DuplicateAgents(OWN)
    assert not saw(duplicates, written((OTHER, "1970-01-01T00:17:00Z")), known=False)
    assert duplicates.current(5.0) is None
    assert saw(duplicates, written((OWN, "1970-01-01T00:20:00Z"), (OTHER, "1970-01-01T00:18:00Z")))
    assert duplicates.current(6.0) == DuplicateAgent(OTHER, "goals.x", KEY, 1080.0, 605.0)
    assert not saw(duplicates, written((OTHER, "1970-01-01T00:19:00Z")), now=100.0), "it is known already"
    assert duplicates.current(699.0) is not None
    assert duplicates.current(700.0) is None
    assert saw(duplicates, written((OTHER, "1970-01-01T00:20:00Z")), now=800.0)


@pytest.mark.parametrize(
    "raw",
    [
        goal(),
        goal(metadata={"managedFields": None}),
        goal(metadata={"managedFields": [None, {}, {"manager": 7, "time": "1970-01-01T00:18:00Z"}]}),
        written(
            (OWN, "1970-01-01T00:18:00Z"),
            ("crsyncer-sandbox", "1970-01-01T00:18:00Z"),
            ("crsyncer", "1970"),
        ),
        written((OTHER, None), (OTHER, "soon"), (OTHER, 7)),
        goal(metadata={"managedFields": [{"manager": OTHER}]}),
    ],
)
def test_others_ourselves_and_what_makes_no_sense_are_no_duplicates(raw: dict):
    assert not saw(DuplicateAgents(OWN), raw)


def test_what_was_written_before_we_met_the_server_is_history_however_late_it_comes():
    duplicates = DuplicateAgents(OWN)
    assert not saw(duplicates, written((OTHER, "1970-01-01T00:16:00Z")))
    assert not saw(duplicates, written((OTHER, "1970-01-01T00:16:40Z")))
    assert saw(duplicates, written((THIRD, "1970-01-01T00:16:30Z"), (OTHER, "1970-01-01T00:16:41Z")))
    later = written((OTHER, "1970-01-01T00:16:50Z"), (THIRD, "1970-01-01T00:16:45Z"))
    assert not saw(duplicates, later), "the same one again"
    found = duplicates.current(5.0)
    assert found is not None
    assert (found.name, found.time) == (OTHER, 1010.0)


def test_an_object_that_was_away_is_a_new_one():
    duplicates = DuplicateAgents(OWN)
    assert not saw(duplicates, written((OTHER, "1970-01-01T00:18:00Z")), known=False)
    duplicates.forget("goals.x", KEY)
    duplicates.forget("goals.x", KEY)
    assert not saw(duplicates, written((OTHER, "1970-01-01T00:19:00Z")), known=False)
    assert not saw(duplicates, written((OTHER, "1970-01-01T00:19:00Z")))


def test_a_kind_that_is_not_synced_any_more_takes_its_duplicate_with_it_and_no_other_kinds():
    for resource, remains in (("goals.x", False), ("tasks.x", True)):
        duplicates = DuplicateAgents(OWN)
        assert saw(duplicates, written((OTHER, "1970-01-01T00:18:00Z")))
        duplicates.forget(resource)
        assert (duplicates.current(5.0) is not None) is remains
        assert saw(duplicates, written((OTHER, "1970-01-01T00:18:00Z")), now=5.0) is not remains, (
            "seen again, not twice"
        )
