"""Random events of a fleet, and what is shown of it."""

from typing import Any

from hypothesis import strategies as st

from crsyncer.fleet.domain.change import Change
from crsyncer.fleet.domain.fleet import Fleet
from tests.fleet.made import GOALS, KIND, goal, raw_placement, raw_robot


def strip(name: str = "s", path: str = "/spec/x", resource: str = "goals") -> Any:
    return {
        "metadata": {"name": name},
        "spec": {"group": "lab.example.com", "resource": resource, "remove": [path]},
    }


def config_map(name: str = "r1", **data: str) -> Any:
    return {"metadata": {"name": name, "namespace": "crsyncer-properties"}, "data": data}


NAMES = st.sampled_from(["r1", "r2", "r3"])
WORDS = st.sampled_from(["a", "b"])
SELECT = st.sampled_from([[], [{}], [{"matchLabels": {"k": "a"}}], [{"matchLabels": {"k": "b"}}]])
GOAL_NAMES = st.sampled_from(["dock", "lift"])
STEP = {"path": "/spec/p", "property": {"name": "p"}}
PLACEMENTS = st.fixed_dictionaries(
    {"robotSelectors": SELECT},
    optional={
        "robotNames": st.lists(NAMES, max_size=2, unique=True),
        "expand": st.booleans(),
        "target": st.sampled_from(["PerRobot", "Same"]),
        "overrides": st.just([{"robotSelector": {"matchLabels": {"k": "a"}}, "steps": [STEP]}]),
        "templates": st.just(
            [{"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"y": 1}}}]
        ),
        "resources": st.sampled_from(
            [[], [{"group": "lab.example.com", "resource": "goals", "selectors": [{"matchLabels": {"k": "a"}}]}]]
        ),
    },
)
EVENTS = st.one_of(
    st.tuples(st.just("robot"), NAMES, WORDS),
    st.tuples(st.just("robot"), NAMES, st.none()),
    st.tuples(st.just("goal"), GOAL_NAMES, st.one_of(st.none(), st.tuples(WORDS, st.integers(0, 1)))),
    st.tuples(st.just("placement"), st.sampled_from(["p", "q"]), st.one_of(st.none(), PLACEMENTS)),
    st.tuples(st.just("property"), NAMES, st.one_of(st.none(), WORDS)),
    st.tuples(st.just("strip"), WORDS, st.one_of(st.none(), st.sampled_from(["/spec/x", "/spec/p"]))),
    st.tuples(st.just("kind"), st.just("k"), st.booleans()),
)


def apply(fleet: Fleet, event: Any) -> Change:
    match event:
        case ("robot", name, None):
            return fleet.robot_gone(name)
        case ("robot", name, label):
            return fleet.robot_shown(raw_robot(name, k=label))
        case ("goal", name, None):
            return fleet.object_gone(GOALS, "site", name)
        case ("goal", name, (label, value)):
            raw = goal(name, spec={"x": value})
            raw["metadata"]["labels"] = {"k": label}
            return fleet.object_shown(raw, GOALS)
        case ("placement", name, None):
            return fleet.placement_gone("site", name)
        case ("placement", name, spec):
            return fleet.placement_shown(raw_placement(name, **spec))
        case ("property", name, None):
            return fleet.properties_gone(name)
        case ("property", name, value):
            return fleet.properties_shown(config_map(name, p=value))
        case ("strip", name, None):
            return fleet.strip_gone(name)
        case ("strip", name, path):
            return fleet.strip_shown(strip(name, path))
        case _:
            return fleet.kind_shown(KIND) if event[2] else fleet.kind_gone(GOALS)
