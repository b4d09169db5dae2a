"""RobotPlacementDecisions as they are stored, and what they say of each robot (F6.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import API_VERSION, Placement, RobotState

MOST_ROBOTS = 500
_PACE_SECONDS = 5.0
_MESSAGE = 256
_STATES = tuple(RobotState)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a Decision says of one robot."""

    state: RobotState
    since: str
    """When the state was entered, or when it was begun. RFC 3339."""
    stamp: str = ""
    """Of a robot that is Ready: of its content. Else that of the content which was begun and never Ready; "": none."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A Decision as it is stored."""

    namespace: str
    name: str
    placement: str
    """The name of its placement."""
    placement_uid: str
    number: int
    """The N of its name; -1: its name is not PLACEMENT-N."""
    robots: Mapping[str, Decided] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its placement, as NAMESPACE/NAME."""
        return f"{self.namespace}/{self.placement}"


def decision_of(raw: Json) -> Decision:
    """A Decision. Items that are not sound are ignored: those robots are decided anew."""
    metadata, placement = raw["metadata"], raw.get("placement")
    owner = placement if isinstance(placement, dict) else {}
    name, of = metadata["name"], str(owner.get("name") or "")
    number = name.removeprefix(f"{of}-")
    items = raw.get("robots")
    return Decision(
        namespace=metadata["namespace"],
        name=name,
        placement=of,
        placement_uid=str(owner.get("uid") or ""),
        number=int(number) if number != name and number.isascii() and number.isdigit() else -1,
        robots={each["name"]: _decided(each) for each in (items if isinstance(items, list) else ()) if _is_sound(each)},
    )


def _is_sound(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str) and item.get("state") in _STATES


def _decided(item: Json) -> Decided:
    texts = {key: text for key in ("since", "stamp", "message") if isinstance(text := item.get(key), str)}
    return Decided(state=RobotState(item["state"]), **{"since": "", **texts})


def decision_pace(robots: int) -> float:
    """How many seconds lie between two writes of a Decision that nothing waits for, by the placement's robots (F6.3).

    All Decisions of a placement together are written at most once a second: one of 500 robots takes 42 ms of an API
    server's CPU, as long as twenty replicas (measured, 1.36).
    """
    return max(_PACE_SECONDS, robots / MOST_ROBOTS)


def decision_body(placement: Placement, number: int, robots: Mapping[str, Decided]) -> Json:
    """The Decision N of a placement, without an owner reference: it outlives a placement that vanishes (F5.2)."""
    return {
        "apiVersion": API_VERSION,
        "kind": "RobotPlacementDecision",
        "metadata": {"namespace": placement.namespace, "name": f"{placement.name}-{number}"},
        "placement": {"name": placement.name, "uid": placement.uid},
        "robots": [_item(name, each) for name, each in sorted(robots.items())],
    }


def _item(name: str, decided: Decided) -> Json:
    texts = {"since": decided.since, "stamp": decided.stamp, "message": decided.message[:_MESSAGE]}
    return {"name": name, "state": str(decided.state), **{key: text for key, text in texts.items() if text}}
