"""A fleet whose robots return statuses: events as an API server tells them, and what is due after them."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from crsyncer.adapters.expressions import CelProgram, Expressions
from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Key
from crsyncer.errors import ConfigError
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import source_id
from crsyncer.fleet.domain.replica_plan import new_body
from crsyncer.fleet.domain.returned.combined_objects import (
    COMBINED_STATUSES,
    STATUS_COLLECTORS,
    CombinedObjects,
    Drop,
    Put,
)
from crsyncer.fleet.domain.returned.due import Due
from crsyncer.fleet.domain.returned.evaluations import Evaluations
from crsyncer.fleet.domain.returned.singletons import Singletons
from crsyncer.fleet.domain.values import (
    PlacedKind,
    Rendering,
    ReplicaKey,
    SourceKey,
    Target,
)
from tests.fleet.made import GOALS, KIND, goal, key, raw_placement, raw_robot

SOURCE = SourceKey(GOALS, "site", "dock")
Result = TypeVar("Result")


def done(work: Generator[None, None, Result]) -> Result:
    """The result of a work that is done in parts."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result


class Counting(Expressions):
    """The real expressions, which count evaluated rows."""

    def __init__(self) -> None:
        self.rows = 0

    def bind(self, *arguments: Any) -> Any:
        self.rows += 1
        return super().bind(*arguments)


class Without(Expressions):
    """An installation without the extra."""

    def program(self, text: str, variables: Any) -> CelProgram:
        raise ConfigError(f"{text[:4]} needs cel-expr-python for {len(variables)} variables", hint="install it")


class Returns:
    """A fleet of goals for robots; `objects` are CombinedStatuses as the API server has them."""

    def __init__(self, *robots: str, kind: PlacedKind = KIND, expressions: Callable[[], Expressions] | None = None):
        self.fleet = Fleet(home="default")
        self.expressions = Counting()
        self.acked: set[tuple[str, str]] = set()
        self.online: set[str] = set()
        self.raws: dict[ReplicaKey, Json] = {}
        self.objects: dict[Key, Json] = {}
        self.collectors: dict[str, Json] = {}
        self.placements: dict[str, Json] = {}
        self.unwritten: set[Key] = set()
        self.evaluations = Evaluations(
            self.fleet,
            expressions=expressions or (lambda: self.expressions),
            is_acked=lambda text, robot: (text, robot) in self.acked,
            is_online=lambda robot: robot in self.online,
        )
        self.combined = CombinedObjects(self.fleet, self.evaluations)
        self.singletons = Singletons(self.fleet)
        self.due = Due()
        self.change(self.fleet.kind_shown(kind))
        for name in robots:
            self.robot(name)
        self.listed(*Input, GOALS, STATUS_COLLECTORS, COMBINED_STATUSES)

    def change(self, change: Change) -> None:
        self.due.add(self.evaluations.changed(change)).add(self.singletons.changed(change))

    def listed(self, *names: str) -> None:
        self.change(self.fleet.inputs_listed(*names))
        for name in names:
            self.due.add(self.combined.listed(name)).add(self.singletons.listed())

    def robot(self, name: str, **labels: str) -> None:
        self.change(self.fleet.robot_shown(raw_robot(name, **labels)))
        self.evaluations.robot_changed(name)

    def robot_gone(self, name: str) -> None:
        self.change(self.fleet.robot_gone(name))

    def report(self, name: str, *, online: bool) -> None:
        (self.online.add if online else self.online.discard)(name)
        self.evaluations.robot_changed(name)

    def ack(self, robot: str, *, placement: str = "site/all", acked: bool = True) -> None:
        (self.acked.add if acked else self.acked.discard)((placement, robot))
        self.evaluations.acked_changed(placement, robot)

    def placement(self, name: str = "all", *, status: Json | None = None, **spec: Any) -> None:
        spec.setdefault("robotSelectors", [{}])
        self.placements[name] = spec
        raw = raw_placement(name, **spec)
        self.change(self.fleet.placement_shown(raw | ({"status": status} if status else {})))

    def placement_gone(self, name: str = "all") -> None:
        self.placements.pop(name, None)
        self.change(self.fleet.placement_gone("site", name))

    def goal(self, name: str = "dock", **content: Any) -> None:
        raw = goal(name, **content)
        self.change(self.fleet.object_shown(raw, GOALS))
        self.due.add(self.singletons.source_shown(raw, GOALS))

    def goal_gone(self, name: str = "dock") -> None:
        self.change(self.fleet.object_gone(GOALS, "site", name))
        self.due.add(self.singletons.source_gone(SourceKey(GOALS, "site", name)))

    def collector(self, name: str = "c", **spec: Any) -> None:
        self.collectors[name] = spec
        self.due.add(self.evaluations.collector_shown({"metadata": {"name": name}, "spec": spec}))

    def collector_gone(self, name: str) -> None:
        del self.collectors[name]
        self.due.add(self.evaluations.collector_gone(name))

    def replica(
        self, robot: str, status: Any = None, *, name: str = "dock", target: Target = Target.PER_ROBOT, **metadata: Any
    ) -> ReplicaKey:
        """A replica as the controller writes it, and what the robot returned."""
        found = key(robot, name=name, target=target)
        wanted = self.fleet.wanted(found)
        assert wanted is not None
        assert isinstance(wanted.rendering, Rendering)
        body = new_body(wanted, wanted.rendering)
        body["metadata"] |= {"uid": f"uid-{robot}-{name}", "resourceVersion": "11", "generation": 1, **metadata}
        self.show(found, body | ({} if status is None else {"status": status}))
        return found

    def show(self, found: ReplicaKey, raw: Json) -> None:
        self.raws[found] = raw
        self.change(self.fleet.object_shown(raw, GOALS))
        assert self.fleet.replica_at(GOALS, key_of(raw)) in (found, None)
        self.replica_shown(found, raw)

    def replica_shown(self, found: ReplicaKey, raw: Json) -> None:
        self.due.add(self.singletons.replica_shown(found, raw)).add(self.evaluations.replica_shown(found, raw))

    def replica_gone(self, found: ReplicaKey) -> None:
        metadata = self.raws.pop(found)["metadata"]
        self.change(self.fleet.object_gone(GOALS, metadata["namespace"], metadata["name"]))

    def settle(self) -> Due:
        """Evaluate and read all; what has been due since the last time."""
        while self.evaluations.is_stale or self.evaluations.unread:
            self.due.add(self.evaluations.evaluate_stale(2))
            for found in list(self.evaluations.unread):
                self.replica_shown(found, self.raws[found])
        due, self.due = self.due, Due()
        self.unwritten |= due.combined
        return due

    def write(self) -> list[str]:
        """Write the CombinedStatuses that are due; the verbs."""
        self.settle()
        verbs, places = [], sorted(self.unwritten)
        self.unwritten.clear()
        for place in places:
            match plan := done(self.combined.plan(place)):
                case Put(body):
                    self.objects[place] = body
                    self.due.add(self.combined.shown(body))
                case Drop():
                    del self.objects[place]
                    self.due.add(self.combined.gone(*place))
                case _:
                    continue
            verbs.append(type(plan).__name__)
        return verbs

    def result(self, name: str = "dock", *, placement: str = "all", place: int = 0) -> Json:
        """What one collector shows in the object of a source."""
        self.write()
        found: Json = self.objects[combined(name, placement=placement)]["results"][place]
        return found

    def rows(self, name: str = "dock", *, placement: str = "all", place: int = 0) -> list[list[Any]]:
        """The values of all cells; None: Null."""
        rows = self.result(name, placement=placement, place=place)["rows"]
        return [[cell.get("value") for cell in row] for row in rows]


def combined(name: str = "dock", *, placement: str = "all") -> Key:
    return Key("site", f"{source_id(SourceKey(GOALS, 'site', name))}.uid-{placement}")


def column(name: str, definition: str) -> Json:
    return {"name": name, "def": definition}


COUNT = {"name": "n", "type": "COUNT"}
NAME = column("robot", "inventory.name")
PHASE = column("phase", "returned.status.phase")
