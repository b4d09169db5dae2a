"""The fleet as the controller has seen it: what is wanted of each replica, kept up to date event by event.

An event costs in proportion to what it concerns: a label of one Robot its replicas, a property those that use it, a
strip those of its kind. Of replicas only rows are kept (F3.9).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Key
from crsyncer.core.watching.watch import newer
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.index import Index
from crsyncer.fleet.domain.names import SOURCE, replica_name, source_id
from crsyncer.fleet.domain.properties import Properties, Undefined, config_map_properties
from crsyncer.fleet.domain.read_objects import (
    meaning,
    not_served,
    placement_of,
    replica_key,
    robot_of,
    row_of,
    source_of,
)
from crsyncer.fleet.domain.rendering import UNSHOWN
from crsyncer.fleet.domain.renderings import Renderings, uses_properties
from crsyncer.fleet.domain.replica_plan import Removal, contains, decide_replica, name_taken
from crsyncer.fleet.domain.selection import may_be_source
from crsyncer.fleet.domain.values import (
    PlacedKind,
    Placement,
    RenderFailed,
    ReplicaKey,
    ReplicaPlan,
    Robot,
    Row,
    Source,
    SourceKey,
    Verdict,
    Wait,
    Wanted,
)


class Fleet:
    """All that was seen. Each event returns the Change that follows from it. No I/O and no clock."""

    def __init__(self, *, home: str) -> None:
        self.index = Index(home=home)
        self.rows: dict[ReplicaKey, Row] = {}
        self.listed: set[str] = set()
        """The inputs and the kinds that are listed consistently."""
        self.dead: set[str] = set()
        """The inputs and the kinds that the cloud does not serve (S5.5a)."""
        self.rewound: set[str] = set()
        """The inputs and the kinds that were not listed since the cloud was restored."""
        self.rows_by_robot: dict[str, set[ReplicaKey]] = defaultdict(set)
        self.bound: Counter[str] = Counter()
        """By the uid of a placement: how many replicas bear it, terminating ones aside."""
        self._renderings = Renderings()
        self._places: dict[str, dict[Key, ReplicaKey]] = defaultdict(dict)
        """By kind and name: the replica there."""
        self._others: dict[str, dict[Key, str]] = defaultdict(dict)
        """By kind and name: the SOURCEID that an object claims which is no replica."""

    def is_ready(self, resource: str) -> bool:
        """Whether all is listed that a decision about a replica of that kind depends on (F1.1)."""
        return self.listed.issuperset(Input) and resource in self.listed

    def all_keys(self) -> set[ReplicaKey]:
        """All replicas that are selected or there."""
        return {key for text in self.index.placements for key in self.index.keys(text)} | self.rows.keys()

    def wanted(self, key: ReplicaKey) -> Wanted | None:
        """What shall be there; None: nobody wants the replica, or its kind is not known."""
        governor, kind = self.index.governor(key), self.index.kinds.get(key.resource)
        if governor is None or kind is None:
            return None
        placement, source = governor
        namespace, name = replica_name(source, key.robot, key.target, namespaced=kind.namespaced)
        strategy = self.index.sources_of(placement.text)[source]
        found = self.index.source(source, placement)
        rendering = self._renderings.rendered(placement, found, self.index.robots[key.robot])
        if kind.sensitive and isinstance(rendering, RenderFailed):
            rendering = replace(rendering, message=UNSHOWN)
        return Wanted(source, key.source_id, key.robot, placement, kind, namespace, name, strategy, rendering)

    def decide(self, key: ReplicaKey, *, removal: Removal, may_write: bool = True) -> ReplicaPlan:
        """What must be done about one replica now."""
        return self.decide_wanted(key, self.wanted(key), removal=removal, may_write=may_write)

    def decide_wanted(
        self, key: ReplicaKey, wanted: Wanted | None, *, removal: Removal, may_write: bool = True
    ) -> ReplicaPlan:
        """The same where it is known what is wanted."""
        row, ready = self.rows.get(key), self.is_ready(key.resource)
        if wanted is not None and (reason := self.obstacle(wanted)):
            return Wait(reason)
        if wanted is not None and row is None and ready and self._claim(wanted) not in (None, wanted.source_id):
            return name_taken(wanted)
        return decide_replica(wanted=wanted, row=row, listed=ready, removal=removal, may_write=may_write)

    def replica_at(self, resource: str, place: Key) -> ReplicaKey | None:
        """The replica of this name; None: it is none."""
        return self._places[resource].get(place)

    def places(self, resource: str) -> list[Key]:
        """The names of all objects of a kind that are known. Sources are known on when their CRD is gone."""
        sources = [Key(key.namespace, key.name) for key in self.index.sources if key.resource == resource]
        return list({*self._places[resource], *self._others[resource], *sources})

    def properties_of(self, robot: Robot) -> Properties:
        """All properties of a robot, without those of a ConfigMap that is too large."""
        return self._renderings.properties_of(robot)

    def is_handed_over(self, wanted: Wanted) -> bool:
        """Whether an object that is no replica yet was handed over by its label (F3.7)."""
        return self._claim(wanted) == wanted.source_id

    def _claim(self, wanted: Wanted) -> str | None:
        return self._others[wanted.kind.resource].get(Key(wanted.namespace, wanted.name))

    def obstacle(self, wanted: Wanted) -> str:
        """Why nothing is written although it is wanted; empty: nothing stands against it."""
        if wanted.placement.problem:
            return f"its placement cannot be followed: {wanted.placement.problem}"
        if wanted.kind.verdict is not Verdict.PLACEABLE:
            return wanted.kind.message
        dead = {Input.STRIPS, wanted.kind.resource} & self.dead
        return not_served(min(dead)) if dead else ""

    # Events. What is not seen any more for want of a list is no event: nothing follows from it (F1.1).

    def robot_shown(self, raw: Json) -> Change:
        """A Robot was added or changed. One that terminates is gone (F2.1)."""
        robot = robot_of(raw)
        return self._robot(robot.name, None if robot.terminating else robot)

    def robot_gone(self, name: str) -> Change:
        """A Robot was deleted."""
        return self._robot(name, None)

    def _robot(self, name: str, robot: Robot | None) -> Change:
        old = self.index.robots.get(name)
        before, after = self.index.put_robot(name, robot)
        change = Change(placements=before | after)
        for text in before | after:
            placement = self.index.placements[text]
            if text not in after:
                change.left.add((placement.uid, name))
            elif text in before and (old == robot or not (placement.overrides or placement.expand)):
                continue
            change.keys.update(self.index.keys(text, robots=[name]))
        if robot is None and old is not None:
            change.lost_robots.add(name)
        if (old is None) is not (robot is None):
            named = (text for text, each in self.index.placements.items() if name in each.robot_names)
            change.placements.update(named)
        return change

    def properties_shown(self, raw: Json) -> Change:
        """A ConfigMap with a robot's properties was added or changed."""
        name = raw["metadata"]["name"]
        try:
            return self._properties(name, config_map_properties(raw))
        except Undefined as problem:
            return self._properties(name, problem)

    def properties_gone(self, name: str) -> Change:
        """A ConfigMap with a robot's properties was deleted."""
        return self._properties(name, {})

    def _properties(self, name: str, found: Properties | Undefined) -> Change:
        change = Change()
        if self._renderings.put_properties(name, found):
            for text, placement in self.index.placements.items():
                if uses_properties(placement) and name in self.index.robots_of(text):
                    change.keys.update(self.index.keys(text, robots=[name]))
                    change.placements.add(text)
        return change

    def placement_shown(self, raw: Json) -> Change:
        """A placement was added or changed.

        One that cannot be read goes on with the spec that was read last, and nothing of its is written: an edit that
        this controller does not understand removes nothing. Another uid is another placement.
        """
        new = placement_of(raw)
        old = self.index.placements.get(new.text)
        if old is not None and old.uid != new.uid:
            change = self.placement_gone(new.namespace, new.name)
            return change.add(self.placement_shown(raw))
        if new.problem and old is not None:
            new = replace(
                old, generation=new.generation, terminating=new.terminating, finalized=new.finalized,
                release=new.release, status=new.status, problem=new.problem,
            )  # fmt: skip
        if old is not None and _spec(old) == _spec(new):
            self.index.placements[new.text] = new
            return Change(placements={new.text})
        before = set(self.index.keys(new.text))
        self.index.put_placement(new.text, new)
        after = set(self.index.keys(new.text))
        return Change(keys=before | after, placements={new.text}, edited=before - after)

    def placement_gone(self, namespace: str, name: str) -> Change:
        """A placement was deleted. Unless its deletion was seen before, this is no edit (F5.2)."""
        text = f"{namespace}/{name}"
        keys = set(self.index.keys(text))
        self.index.put_placement(text, None)
        self._renderings.forget(text)
        return Change(keys=keys, placements={text})

    def strip_shown(self, raw: Json) -> Change:
        """A FieldStrip was added or changed."""
        return self._stripped(self._renderings.put_strip(raw))

    def strip_gone(self, name: str) -> Change:
        """A FieldStrip was deleted."""
        return self._stripped(self._renderings.drop_strip(name))

    def strip_warnings(self, name: str) -> list[str]:
        """`status.warnings` of a FieldStrip that is known."""
        return self._renderings.strip_warnings(name)

    def _stripped(self, resources: set[str]) -> Change:
        change = Change()
        for resource in resources:
            change.add(self._of_kind(resource))
        return change

    def _of_kind(self, resource: str) -> Change:
        """All replicas of a kind, and the placements that have sources of it."""
        change = Change(keys=set(self._places[resource].values()))
        for text in self.index.placements:
            keys = set(self.index.keys(text, resource=resource))
            if keys or any(key.resource == resource for key in self.index.sources_of(text)):
                change.placements.add(text)
                change.keys |= keys
        return change

    def kind_shown(self, kind: PlacedKind) -> Change:
        """A kind is as its CRD, or discovery, shows it."""
        if self.index.kinds.get(kind.resource) == kind:
            return Change()
        change = self._of_kind(kind.resource)
        self.index.kinds[kind.resource] = kind
        return change.add(self._of_kind(kind.resource))

    def kind_gone(self, resource: str) -> Change:
        """A CRD was deleted: its kind is not served, and nothing of it is lost (F2.3). Its objects went with it."""
        kind = self.index.kinds[resource]
        message = not_served(resource)
        change = self.kind_shown(replace(kind, verdict=Verdict.NOT_SERVED, version="", message=message))
        for place in list(self._places[resource]):
            change.add(self._place_gone(place, resource))
        self._others[resource].clear()
        self.listed.discard(resource)
        return change

    def inputs_listed(self, *names: str) -> Change:
        """Inputs or kinds were listed consistently. With the last one, everything is decided for the first time."""
        was = {resource for resource in self.index.kinds if self.is_ready(resource)}
        self.listed.update(names)
        self.rewound.difference_update(names)
        now = {resource for resource in self.index.kinds if self.is_ready(resource)}
        return self._stripped(now - was)

    def served(self, name: str, *, is_served: bool) -> Change:
        """Whether the cloud serves an input or a kind, as discovery answers (S5.5a)."""
        if (name not in self.dead) is is_served:
            return Change()
        self.dead ^= {name}
        affected = {name} if name in self.index.kinds else self.index.kinds.keys()
        return self._stripped(set(affected))

    def object_shown(self, raw: Json, resource: str) -> Change:
        """An object of a placed kind was added or changed: a replica, a source, or anything else."""
        row = row_of(raw, resource, stamped=self._renderings.stamped)
        if row is not None:
            return self._row_shown(raw, row, resource)
        place = key_of(raw)
        change = self._place_gone(place, resource)
        claimed = (raw["metadata"].get("labels") or {}).get(SOURCE, "")
        if self._others[resource].get(place) != claimed:
            self._others[resource][place] = claimed
            change.keys |= self._keys_at(place, resource)
        source = source_of(raw, resource)
        is_source = may_be_source(raw) and not source.terminating
        return change.add(self._source(source.key, source if is_source else None))

    def object_gone(self, resource: str, namespace: str, name: str) -> Change:
        """An object of a placed kind was deleted."""
        place = Key(namespace, name)
        change = self._place_gone(place, resource)
        if self._others[resource].pop(place, None) is not None:
            change.keys |= self._keys_at(place, resource)
        return change.add(self._source(SourceKey(resource, namespace, name), None))

    def is_seen(self, resource: str, place: Key, metadata: Json) -> bool:
        """Whether a replica was seen in this version or a newer one: an answer to a write may precede its event.

        Versions tell nothing before a kind is listed, and from a restore of the cloud on until it is listed again (S8).
        """
        key = self._places[resource].get(place)
        if key is None or resource not in self.listed or resource in self.rewound:
            return False
        row, version = self.rows[key], metadata["resourceVersion"]
        is_newer = row.resource_version == version or newer(row.resource_version, version)
        return is_newer and row.uid == metadata["uid"]

    def written(self, raw: Json, resource: str) -> Change:
        """The API server's answer to a write of ours: its content is what the server made of it (F3.5)."""
        place, metadata = key_of(raw), raw["metadata"]
        if not self.is_seen(resource, place, metadata):
            row = row_of(raw, resource, admitted=True, stamped=self._renderings.stamped)
            return Change() if row is None else self._keep(row, resource)
        key = self._places[resource][place]
        old = self.rows[key]
        content = old.content
        if old.resource_version != metadata["resourceVersion"]:  # somebody has changed it since
            row = row_of(raw, resource)
            content = old.admitted if row is None or row.marks.number != old.marks.number else row.content
        if old.admitted == content:
            return Change()
        self.rows[key] = replace(old, admitted=content)
        return Change(keys={key})

    def _row_shown(self, raw: Json, row: Row, resource: str) -> Change:
        """A replica. A write that nobody here has seen the answer of must contain the rendering, or it has drifted.

        So a kind's sources are to be shown before its replicas. While it is listed from the beginning, what is known of
        a replica may be from a time when its sources were not.
        """
        old, is_listed = self.rows.get(key := replica_key(row, resource)), resource in self.listed
        if is_listed and old is not None and (old.uid, old.marks.number) == (row.uid, row.marks.number):
            return self._keep(replace(row, admitted=old.admitted), resource)
        wanted = self.wanted(key)
        made = None if wanted is None or isinstance(wanted.rendering, RenderFailed) else wanted.rendering
        is_admitted = made is None or made.stamp != row.marks.stamp or row.content == made.stamp or contains(raw, made)
        return self._keep(replace(row, admitted=row.content if is_admitted else ""), resource)

    def _keep(self, row: Row, resource: str) -> Change:
        key, place = replica_key(row, resource), Key(row.namespace, row.name)
        change = self._place_gone(place, resource, unless=key)
        if self._others[resource].pop(place, None) is not None:
            change.add(self._source(SourceKey(resource, *place), None))
        old = self.rows.get(key)
        is_same = old is not None and _writing(old) == _writing(row)
        if old is not None:
            self.bound[old.marks.placement] -= not old.terminating
            change.add(self._of_row(key, old, is_same=is_same))  # the placement that it leaves may wait for that (F5.3)
        self.bound[row.marks.placement] += not row.terminating
        self.rows[key], self._places[resource][place] = row, key
        self.rows_by_robot[key.robot].add(key)
        return change.add(self._of_row(key, row, is_same=is_same))

    def _of_row(self, key: ReplicaKey, row: Row, *, is_same: bool = False) -> Change:
        governor, marked = self.index.governor(key), self.index.placement(row.marks.placement)
        texts = {each.text for each in (marked, governor and governor[0]) if each is not None}
        rewritten = set() if marked is None or is_same else {(marked.text, key.robot)}
        return Change(keys={key}, placements=texts, rewritten=rewritten)

    def _place_gone(self, place: Key, resource: str, *, unless: ReplicaKey | None = None) -> Change:
        """Forget the replica at a place, unless it is still that one."""
        key = self._places[resource].get(place)
        if key is None or key == unless:
            return Change()
        del self._places[resource][place]
        self.rows_by_robot[key.robot].discard(key)
        if not self.rows_by_robot[key.robot]:
            del self.rows_by_robot[key.robot]
        row = self.rows.pop(key)
        self.bound[row.marks.placement] -= not row.terminating
        return self._of_row(key, row)

    def _source(self, key: SourceKey, source: Source | None) -> Change:
        old = self.index.sources.get(key)
        if old is None and source is None:
            return Change()
        before, after = self.index.put_source(key, source)
        if old is not None and source is not None and before == after and meaning(old) == meaning(source):
            return Change()
        change = Change(placements=before | after)
        for text in before | after:
            change.keys.update(self.index.keys_of(key, text, self.index.robots_of(text)))
        if before and not after:
            change.lost_sources.add((key.resource, source_id(key)))
        return change

    def _keys_at(self, place: Key, resource: str) -> set[ReplicaKey]:
        """The replicas whose place this is."""
        parts = place.name.split("-")
        robots = {"-".join(parts[number:]) for number in range(1, len(parts))}
        robots = {name for name in (*robots, place.namespace.removeprefix("robot-")) if name in self.index.robots}
        found = {key for name in robots for text in self.index.placements for key in self._near(text, name, resource)}
        return {key for key in found if (wanted := self.wanted(key)) and (wanted.namespace, wanted.name) == place}

    def _near(self, text: str, robot: str, resource: str) -> Iterable[ReplicaKey]:
        return self.index.keys(text, robots=[robot], resource=resource) if robot in self.index.robots_of(text) else ()


def _writing(row: Row) -> tuple[str, str, int, bool]:
    """What a robot's acknowledgement of a replica depends on (F9.5)."""
    return row.marks.placement, row.uid, row.marks.number, row.terminating


def _spec(placement: Placement) -> Placement:
    return replace(placement, generation=0, finalized=False, release="", status={})
