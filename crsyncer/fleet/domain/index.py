"""Who selects what: robots, sources and placements, kept up to date one by one (F2)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from crsyncer.core.model import Key
from crsyncer.fleet.domain.names import is_robot_name, source_id
from crsyncer.fleet.domain.read_objects import template_source
from crsyncer.fleet.domain.selection import entry_for, governing, selects_robot
from crsyncer.fleet.domain.transport.keys import ROOT, at, split
from crsyncer.fleet.domain.values import (
    PlacedKind,
    Placement,
    ReplicaKey,
    Robot,
    Source,
    SourceKey,
    Strategy,
    Target,
    Verdict,
)


class Index:
    """Placements by robot and by source, and the reverse. Placements are called NAMESPACE/NAME."""

    def __init__(self, *, home: str, shards: Callable[[], Collection[str]] = tuple) -> None:
        self._shards = shards
        """Those beside the root."""
        self._home = home
        """The controller's namespace: only placements there may select cluster-scoped kinds (F2.2)."""
        self.robots: dict[str, Robot] = {}
        self.badly_named: set[str] = set()
        """The Robots with a name that no robot can have: nothing selects them."""
        self.placements: dict[str, Placement] = {}
        self.kinds: dict[str, PlacedKind] = {}
        """Those of the root by their resource, those of other shards as `at` names them."""
        self.sources: dict[SourceKey, Source] = {}
        """All objects that may be sources."""
        self._robots_of: dict[str, set[str]] = {}
        self._sources_of: dict[str, dict[SourceKey, Strategy]] = {}
        """By placement: the sources that it selects, its templates among them."""
        self._placements_of: dict[SourceKey, set[str]] = defaultdict(set)
        self._ids: dict[str, SourceKey] = {}
        """The selected sources by SOURCEID."""
        self._texts: dict[str, str] = {}
        """Placements by uid."""
        self._counts: Counter[str] = Counter()
        """Selected sources by kind."""

    def placement(self, uid: str) -> Placement | None:
        """The placement of a uid."""
        return self.placements.get(self._texts.get(uid, ""))

    def robots_of(self, placement: str) -> set[str]:
        """The robots that a placement selects."""
        return self._robots_of.get(placement, set())

    def placements_of_robot(self, robot: str) -> list[str]:
        """The placements that select a robot."""
        return [text for text, robots in self._robots_of.items() if robot in robots]

    def named_kinds(self) -> set[str]:
        """The kinds that placements name."""
        return {name for placement in self.placements.values() for name in placement.kinds}

    def naming(self, robot: str) -> set[str]:
        """The placements that name a robot, whether there is such a Robot or not."""
        return {text for text, each in self.placements.items() if robot in each.robot_names}

    def sources_of(self, placement: str) -> Mapping[SourceKey, Strategy]:
        """The sources that a placement selects, with its strategy for each."""
        return self._sources_of.get(placement, {})

    def placements_of(self, source: SourceKey) -> set[str]:
        """The placements that select a source."""
        return self._placements_of.get(source, set())

    def is_selected(self, found: str) -> bool:
        """Whether a placement selects the source of that SOURCEID."""
        return found in self._ids

    def count(self, resource: str) -> int:
        """How many sources of a kind are selected."""
        return self._counts[resource]

    def source(self, key: SourceKey, placement: Placement) -> Source:
        """A source that a placement selects."""
        if not key.placement:
            return self.sources[key]
        return next(template_source(placement, each) for each in placement.templates if each.name == key.name)

    def keys(self, placement: str, *, robots: Iterable[str] | None = None, resource: str = "") -> Iterator[ReplicaKey]:
        """The replicas that a placement selects, of these robots and this kind alone if given."""
        chosen = self.robots_of(placement) if robots is None else robots
        for source in self.sources_of(placement):
            if not resource or source.resource == resource:
                yield from self.keys_of(source, placement, chosen)

    def keys_of(self, source: SourceKey, placement: str, robots: Iterable[str]) -> Iterator[ReplicaKey]:
        """The replicas of a source by a placement, of these robots; in mode Shared its copies, of any robots."""
        target, identity = self._target(source, self.placements[placement]), source_id(source)
        if target is Target.SHARED:
            yield from (ReplicaKey(source.resource, identity, "", target, shard) for shard in self._shards())
        elif target is not None:
            for robot in robots:
                yield ReplicaKey(source.resource, identity, robot, target, self.shard_of(robot))

    def returned(
        self, placement: str, robots: Iterable[str], *, source: SourceKey | None = None
    ) -> Iterator[ReplicaKey]:
        """What these robots return of all sources or one: of their replicas, or of the object that they share."""
        for each in self.sources_of(placement) if source is None else (source,):
            if self._target(each, self.placements[placement]) is not Target.SHARED:
                yield from self.keys_of(each, placement, robots)
                continue
            identity = source_id(each)
            for robot in robots:
                yield ReplicaKey(each.resource, identity, robot, Target.SHARED, self.shard_of(robot))

    def near(self, place: Key, kind: str) -> Iterator[ReplicaKey]:
        """The replicas that may have this name, of a kind of one shard."""
        shard, resource = split(kind)
        parts, source = place.name.split("-"), SourceKey(resource, *place)
        robots = {"-".join(parts[number:]) for number in range(1, len(parts))}
        robots = {name for name in (*robots, place.namespace.removeprefix("robot-")) if self.shard_of(name) == shard}
        for text, placement in self.placements.items():
            if not placement.shared:
                yield from self.keys(text, robots=robots & self.robots_of(text), resource=resource)
            elif source in self.sources_of(text):
                yield from (key for key in self.keys_of(source, text, ()) if key.shard == shard)

    def shard_of(self, robot: str) -> str:
        """The API server that has a robot's replicas; of one without a Robot the root."""
        known = self.robots.get(robot)
        return ROOT if known is None else known.shard

    def kind_of(self, key: ReplicaKey) -> PlacedKind | None:
        """The kind of a replica as its shard serves it; None: the root does not know it."""
        home = self.kinds.get(key.resource)
        if home is None or key.shard == ROOT:
            return home
        if (found := self.kind_at(key.shard, key.resource)) is not None:
            return found
        message = f"shard {key.shard} does not serve {key.resource}, or was not asked yet"
        return replace(home, shard=key.shard, verdict=Verdict.NOT_SERVED, version="", message=message)

    def kind_at(self, shard: str, resource: str) -> PlacedKind | None:
        """A kind as a shard beside the root serves it: it must have the same scope. None: it is not known."""
        home, found = self.kinds.get(resource), self.kinds.get(at(shard, resource))
        if home is None or found is None or found.verdict is not Verdict.PLACEABLE:
            return found
        if found.namespaced is home.namespaced:
            return found
        scope = "namespaced" if found.namespaced else "cluster-scoped"
        message = f"shard {shard}: {resource} is {scope} there, which it is not at the root"
        return replace(found, verdict=Verdict.NOT_PLACEABLE, message=message)

    def problem_of(self, kind: PlacedKind, *, shared: bool) -> tuple[Verdict, str] | None:
        """Why a kind of one API server must not be placed in a mode, there or at the root; None: it may."""
        found = (each.problem_for(shared=shared) for each in (self.kinds[kind.resource], kind))
        return next((problem for problem in found if problem is not None), None)

    def source_of(self, found: str) -> SourceKey | None:
        """The selected source of that SOURCEID."""
        return self._ids.get(found)

    def selecting(self, key: ReplicaKey) -> Iterator[Placement]:
        """The placements that select a replica's source, its robot and its target, where it is on the robot's shard."""
        source = self._ids.get(key.source_id)
        is_elsewhere = bool(key.robot) and key.shard != self.shard_of(key.robot)
        if source is None or source.resource != key.resource or is_elsewhere:
            return
        for text in self._placements_of[source]:
            is_there = key.robot in self._robots_of[text] if key.robot else key.shard in self._shards()
            if is_there and self._target(source, self.placements[text]) is key.target:
                yield self.placements[text]

    def governor(self, key: ReplicaKey) -> tuple[Placement, SourceKey] | None:
        """The placement that governs a replica, and the source; None: nobody wants it (F2.4)."""
        if key.robot and key.target is Target.SHARED:
            return None  # what a robot returns is nothing that is written
        found = governing(self.selecting(key))
        return None if found is None else (found, self._ids[key.source_id])

    def is_governed(self, key: ReplicaKey) -> bool:
        """Whether there is such a placement for a replica that is there."""
        return next(self.selecting(key), None) is not None

    def shared_governor(self, source: SourceKey) -> Placement | None:
        """The placement by which robots share a source; None: there is none (F2.4)."""
        found = (self.placements[text] for text in self.placements_of(source))
        return governing(each for each in found if self._target(source, each) is Target.SHARED)

    def _target(self, source: SourceKey, placement: Placement) -> Target | None:
        """Where the replicas of a source are; None: the placement must not place it (F2.2)."""
        kind = self.kinds.get(source.resource)
        is_namespaced = kind is None or kind.namespaced
        if not is_namespaced and placement.namespace != self._home:
            return None
        if placement.shared:
            return Target.SHARED
        return placement.target if is_namespaced else Target.SAME

    def put_kind(self, kind: PlacedKind) -> None:
        """Take up a kind as its API server has it: templates of one that may not be placed are no sources (F2.3)."""
        self.kinds[kind.name] = kind
        for text, placement in list(self.placements.items()):
            if any(each.kind.full_name == kind.name for each in placement.templates):
                self.put_placement(text, placement)

    def put_robot(self, name: str, robot: Robot | None) -> tuple[set[str], set[str]]:
        """Take up a robot, or that it is gone (None). The placements that selected it, and those that do now."""
        if robot is None:
            self.robots.pop(name, None)
            self.badly_named.discard(name)
        else:
            self.robots[name] = robot
            if not is_robot_name(name):
                self.badly_named.add(name)
        before, after = set(), set()
        for text, placement in self.placements.items():
            selected = self._robots_of[text]
            if name in selected:
                before.add(text)
            if robot is not None and name not in self.badly_named and selects_robot(placement, robot):
                after.add(text)
                selected.add(name)
            else:
                selected.discard(name)
        return before, after

    def put_source(self, key: SourceKey, source: Source | None) -> tuple[set[str], set[str]]:
        """Take up an object, or that it is gone (None). The placements that selected it, and those that do now."""
        if source is None or source.terminating:
            self.sources.pop(key, None)
        else:
            self.sources[key] = source
        before, after = set(self.placements_of(key)), set()
        for text, placement in self.placements.items():
            found = self.sources.get(key)
            entry = None if found is None else entry_for(placement, key, found.labels, home=self._home)
            if entry is not None:
                after.add(text)
                self._sources_of[text][key] = entry.strategy
            else:
                self._sources_of[text].pop(key, None)
        self._select(key, after)
        return before, after

    def forget_sources(self, resource: str) -> list[SourceKey]:
        """Hold the objects of a kind no longer, of which no placement names any; which that were."""
        found = [key for key in self.sources if key.resource == resource]
        for key in found:
            del self.sources[key]
        return found

    def put_placement(self, text: str, placement: Placement | None) -> None:
        """Take up a placement, or that it is gone (None)."""
        old = self.placements.pop(text, None)
        if old is not None:
            self._texts.pop(old.uid, None)
        before = set(self._sources_of.pop(text, ()))
        self._robots_of.pop(text, None)
        found: dict[SourceKey, Strategy] = {}
        if placement is not None:
            self.placements[text] = placement
            self._texts[placement.uid] = text
            chosen = {name for name, robot in self.robots.items() if selects_robot(placement, robot)}
            self._robots_of[text] = chosen - self.badly_named
            self._sources_of[text] = found = self._found(placement)
        for key in before | found.keys():
            self._select(key, (self.placements_of(key) - {text}) | ({text} if key in found else set()))

    def _found(self, placement: Placement) -> dict[SourceKey, Strategy]:
        found = {
            key: entry.strategy
            for key, source in self.sources.items()
            if (entry := entry_for(placement, key, source.labels, home=self._home)) is not None
        }
        if not placement.terminating:
            found |= {
                template_source(placement, each).key: each.strategy
                for each in placement.templates
                if not self._is_refused(each.kind.full_name, placement)
            }
        return found

    def _is_refused(self, resource: str, placement: Placement) -> bool:
        kind = self.kinds.get(resource)
        problem = None if kind is None else kind.problem_for(shared=placement.shared)
        return problem is not None and problem[0] is Verdict.NOT_PLACEABLE

    def _select(self, key: SourceKey, placements: set[str]) -> None:
        """Remember which placements select a source."""
        was = key in self._placements_of
        if placements:
            self._placements_of[key] = placements
            self._ids[source_id(key)] = key
            self._counts[key.resource] += not was
        elif was:
            del self._placements_of[key]
            del self._ids[source_id(key)]
            self._counts[key.resource] -= 1
