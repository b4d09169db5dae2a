"""Shared mode: what a robot's agent writes is what the controller counts (F10.3)."""

from crsyncer.core.model import Key, OwnStatus
from crsyncer.core.pair.own_status import write_own
from tests.core.builders import policy
from tests.fleet.made import GOALS
from tests.fleet.shared_made import copied, made, show, status_of, view


def test_F10_3_the_status_that_an_agent_returns_of_its_shards_copy_counts() -> None:
    fleet = made()
    fleet.object_shown(copied(fleet), f"b/{GOALS}")
    own = OwnStatus("default", "copy")
    written = write_own(
        policy(robot="rb"),
        Key("site", "dock"),
        own,
        value={"phase": "Ready"},
        metadata=None,
        last_update="2026-11-01T00:00:00Z",
    )
    assert show(fleet, written.body) == {view()}
    assert status_of(fleet, view()).status == {"phase": "Ready"}
