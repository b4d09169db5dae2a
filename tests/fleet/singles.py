"""A fleet whose sources get the status of their only robot, as a controller reads and writes them (F6.2)."""

from typing import Any

from crsyncer.core.model import Json
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.returned.singletons import Read
from crsyncer.fleet.domain.values import Patch, SourceKey
from tests.fleet.made import GOALS, goal, raw_placement
from tests.fleet.returns import Returns


class Singles(Returns):
    """An API server that keeps the statuses of sources and of placements; `writes` names each write in order."""

    def __init__(self, *robots: str, **options: Any) -> None:
        self.sources: dict[str, Json] = {}
        self.listed_by: dict[str, list[Json]] = {}
        self.writes: list[str] = []
        super().__init__(*robots, **options)

    def placement(self, name: str = "all", **spec: Any) -> None:
        spec.setdefault("statusReturn", "Singleton")
        super().placement(name, status={"singletons": self.listed_by.get(name, [])}, **spec)

    def terminate(self, name: str = "all") -> None:
        raw = raw_placement(name, terminating=True, **{"robotSelectors": [{}], **self.placements[name]})
        status = {"singletons": self.listed_by.get(name, [])}
        self.change(self.fleet.placement_shown(raw | {"status": status}))

    def goal(self, name: str = "dock", **content: Any) -> None:
        raw = goal(name, **content)
        kept = self.sources.get(name, {})
        self.sources[name] = raw | {field: value for field, value in kept.items() if field == "status"}
        self._show(name)

    def goal_gone(self, name: str = "dock") -> None:
        self.sources.pop(name)
        super().goal_gone(name)

    def _show(self, name: str) -> None:
        self.change(self.fleet.object_shown(self.sources[name], GOALS))
        self.due.add(self.singletons.source_shown(self.sources[name], GOALS))

    def status(self, name: str = "dock") -> Any:
        return self.sources[name].get("status")

    def sync(self) -> list[str]:
        """Write what is due until nothing is; the writes."""
        self.writes = []
        while sources := self.settle().singletons:
            for source in sorted(sources):
                self.act(source)
            for name, placement in self.placements.items():
                entries = self.singletons.entries(f"site/{name}")
                if entries != self.listed_by.get(name, []):
                    self.listed_by[name] = entries
                    self.writes.append(f"{name} lists {' '.join(each['robot'] for each in entries) or 'nothing'}")
                    if self.fleet.index.placements[f"site/{name}"].terminating:
                        self.terminate(name)
                    else:
                        self.placement(name, **placement)
        return self.writes

    def act(self, source: SourceKey) -> None:
        match self.singletons.plan(source):
            case Patch((test, change)):
                raw = self.sources[source.name]
                assert test == {"op": "test", "path": "/metadata/uid", "value": raw["metadata"]["uid"]}
                assert change["path"] == "/status"
                listed = {each["source"] for entries in self.listed_by.values() for each in entries}
                assert f"{GOALS}/{source.name}" in listed, "a status is written before it is listed"
                self.writes.append(f"{source.name} {change['op']}")
                self.sources[source.name] = {name: value for name, value in raw.items() if name != "status"}
                if change["op"] == "add":
                    self.sources[source.name]["status"] = change["value"]
                    self.due.add(self.singletons.source_shown(self.sources[source.name], GOALS))
                else:
                    self.due.add(self.singletons.removed(self.sources[source.name], GOALS))
            case Read(place):
                self.replica_shown(place, self.raws[place])

    def successor(self) -> "Singles":
        """What a new leader finds."""
        new = Singles()
        new.sources, new.listed_by = self.sources, self.listed_by
        for name, robot in self.fleet.index.robots.items():
            new.robot(name, **robot.labels)
        for name, spec in self.placements.items():
            new.placement(name, **spec)
        for name in self.sources:
            new._show(name)
        for place, raw in self.raws.items():
            new.show(place, raw)
        for name in (*Input, GOALS):
            new.due.add(new.combined.listed(name)).add(new.singletons.listed())
        return new
