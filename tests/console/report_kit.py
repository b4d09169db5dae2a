"""Facts about a sound agent, to be changed by tests."""

from dataclasses import replace

from crsyncer.console.report import (
    Facts,
    HoldFacts,
    KindFacts,
    OutboxFacts,
    SideFacts,
    StoredFacts,
    StoredKind,
    StoreFacts,
)
from crsyncer.core.model import Side

NOW = 1_795_248_000.0  # 2026-11-21T08:00:00Z
GOALS = "goals.lab.example.com"


def side(state="connected", **changes) -> SideFacts:
    return replace(
        SideFacts(state, NOW - 3600, "https://cloud.example.com", last_ok=NOW - 2, identity="uid-1"), **changes
    )


def kind(resource=GOALS, **changes) -> KindFacts:
    full = KindFacts(
        resource,
        "v1",
        "Namespaced",
        "cloud",
        "syncing",
        filtered=True,
        objects={Side.CLOUD: 12, Side.ROBOT: 12},
        cursor={Side.CLOUD: "1234", Side.ROBOT: "987"},
        relists={Side.CLOUD: 1, Side.ROBOT: 1},
    )
    return replace(full, **changes)


def hold(reason="MassDeletion", **changes) -> HoldFacts:
    return replace(HoldFacts("h1", GOALS, reason, 215, NOW - 300, names=("default/a",)), **changes)


def facts(cloud=None, robot=None, **changes) -> Facts:
    whole = Facts(
        version="0.1.0",
        robot="robot-1",
        pid=812,
        since=NOW - 3600,
        sides={Side.CLOUD: cloud or side(), Side.ROBOT: robot or side(server="https://robot.example.com")},
        store=StoreFacts("/state/state.db", 65536, 1),
        kinds=(kind(),),
        writes={Side.ROBOT: {"create": 12}},
    )
    return replace(whole, **changes)


STORED = StoredFacts(
    StoreFacts("/state/state.db", 4096, 1),
    OutboxFacts(3, NOW - 60, 0),
    {GOALS: StoredKind({Side.CLOUD: 9, Side.ROBOT: 8}, {Side.CLOUD: "77", Side.ROBOT: None}, 3)},
    last_write=NOW - 30,
)
