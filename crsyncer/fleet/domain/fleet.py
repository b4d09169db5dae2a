"""The fleet as the controller has seen it: what is wanted of each replica, kept up to date event by event.

An event costs in proportion to what it concerns: a label of one Robot its replicas, a property those that use it, a
strip those of its kind. Of replicas only rows are kept (F3.9).
"""

from collections.abc import Collection
from dataclasses import replace

from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.change import ALL_INPUTS, Change, Input
from crsyncer.fleet.domain.index import Index
from crsyncer.fleet.domain.names import SOURCE, source_id
from crsyncer.fleet.domain.properties import Properties, Undefined, config_map_properties
from crsyncer.fleet.domain.read_objects import not_served, placement_of, replica_key, robot_of, row_of, source_of
from crsyncer.fleet.domain.rendering import UNSHOWN
from crsyncer.fleet.domain.renderings import ALL_ROBOTS, Renderings, uses_properties
from crsyncer.fleet.domain.replica_plan import Removal, contains, decide_replica, name_taken
from crsyncer.fleet.domain.selection import is_left_marked, may_be_source
from crsyncer.fleet.domain.shared.robot_statuses import RobotStatuses
from crsyncer.fleet.domain.transport.keys import ROOT, split
from crsyncer.fleet.domain.transport.replica_rows import Rows, writing
from crsyncer.fleet.domain.transport.shards import is_foreign, misplaced
from crsyncer.fleet.domain.transport.transports import TRANSPORTS
from crsyncer.fleet.domain.values import (
    Blocked,
    PlacedKind,
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

    def __init__(self, *, home: str, shards: Collection[str] = (ROOT,)) -> None:
        self.index = Index(home=home, shards=lambda: self.shards - {ROOT})
        self.shards = frozenset(shards)
        """The shards that may be named, the root among them."""
        self.unread = set(self.shards - {ROOT})
        """The shards of which nobody knows yet which kinds they serve."""
        self._rows = Rows(self.is_foreign)
        self.rows, self.rows_by_robot, self.bound = self._rows.all, self._rows.by_robot, self._rows.bound
        self.listed: set[str] = set()
        """The inputs and the kinds that are listed consistently."""
        self.dead: set[str] = set()
        """The inputs and the kinds that the cloud does not serve (S5.5a)."""
        self.rewound: set[str] = set()
        """The inputs and the kinds that were not listed since the cloud was restored."""
        self._renderings = Renderings()
        self.statuses = RobotStatuses(self.index, self.rows)
        """What robots return of sources that they share (F10.3)."""

    def is_ready(self, kind: str) -> bool:
        """Whether all is listed that a decision about a replica of that kind depends on: its sources, too (F1.1)."""
        return self.listed >= ALL_INPUTS and kind in self.listed and split(kind)[1] in self.listed

    def is_known(self, key: ReplicaKey) -> bool:
        """Whether a look at a replica says something. On a shard that cannot be listed it is due, and not written."""
        return self.is_ready(key.kind) or (key.shard != ROOT and self.is_ready(key.resource))

    def is_unseen(self, key: ReplicaKey) -> bool:
        """Whether it is not known if a replica is there."""
        kind = self.index.kinds.get(key.kind)
        return key.shard in self.unread or (kind is not None and bool(kind.version) and key.kind not in self.listed)

    def misplaced(self, key: ReplicaKey) -> Blocked | None:
        """Why a replica that is wanted is not written to its robot's shard; None: it may be (F10.2)."""
        others = self.rows_by_robot.get(key.robot, ()) if key.robot else ()  # a copy is on every shard
        return misplaced(key, shards=self.shards, is_there=key in self.rows, others=others)

    def is_foreign(self, key: ReplicaKey) -> bool:
        """Whether a replica is on another shard than its Robot's."""
        return is_foreign(key, self.index.robots.get(key.robot))

    def all_keys(self) -> set[ReplicaKey]:
        """All replicas that are selected or there."""
        return {key for text in self.index.placements for key in self.index.keys(text)} | self.rows.keys()

    def wanted(self, key: ReplicaKey) -> Wanted | None:
        """What shall be there; None: nobody wants the replica, or its kind is not known."""
        governor, kind = self.index.governor(key), self.index.kind_of(key)
        if governor is None or kind is None:
            return None
        placement, source = governor
        namespace, name = TRANSPORTS[key.target].address(source, key.robot, namespaced=kind.namespaced)
        strategy = self.index.sources_of(placement.text)[source]
        found = self.index.source(source, placement)
        rendering = self._renderings.rendered(placement, found, self.index.robots.get(key.robot, ALL_ROBOTS))
        if kind.sensitive and isinstance(rendering, RenderFailed):
            rendering = replace(rendering, message=UNSHOWN)
        return Wanted(source, key.source_id, key.robot, placement, kind, namespace, name, strategy, rendering)

    def decide(
        self, key: ReplicaKey, wanted: Wanted | None, *, removal: Removal, may_write: bool = True
    ) -> ReplicaPlan:
        """What must be done about one replica now, of which `wanted` shall be there."""
        row, ready = self.rows.get(key), self.is_ready(key.kind)
        if wanted is not None and (problem := self.misplaced(key)) is not None:
            return problem
        if wanted is not None and (reason := self.obstacle(wanted)):
            return Wait(reason)
        place = None if wanted is None or row is not None or not ready else Key(wanted.namespace, wanted.name)
        if wanted is not None and place is not None and self._rows.is_taken(key, place):
            return name_taken(wanted)
        return decide_replica(wanted=wanted, row=row, listed=ready, removal=removal, may_write=may_write)

    def replica_at(self, kind: str, place: Key) -> ReplicaKey | None:
        """The replica of this name; None: it is none."""
        return self._rows.key_at(kind, place)

    def places(self, kind: str) -> list[Key]:
        """The names of all objects of a kind that are known. Sources are known on when their CRD is gone."""
        sources = [Key(key.namespace, key.name) for key in self.index.sources if key.resource == kind]
        return list(self._rows.places(kind).union(sources))

    def properties_of(self, robot: Robot) -> Properties:
        """All properties of a robot, without those of a ConfigMap that is too large."""
        return self._renderings.properties_of(robot)

    def is_handed_over(self, wanted: Wanted) -> bool:
        """Whether an object that is no replica yet was handed over by its label (F3.7)."""
        return self._rows.claim(wanted.kind.name, Key(wanted.namespace, wanted.name)) == wanted.source_id

    def obstacle(self, wanted: Wanted) -> str:
        """Why nothing is written although it is wanted; empty: nothing stands against it."""
        if wanted.placement.problem:
            return f"its placement cannot be followed: {wanted.placement.problem}"
        if (problem := self.index.problem_of(wanted.kind, shared=wanted.placement.shared)) is not None:
            return problem[1]
        dead = self.dead and {Input.STRIPS, wanted.kind.resource, wanted.kind.name} & self.dead
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
        old, foreign, returned = self.index.robots.get(name), self._rows.foreign(name), self.statuses.of(name)
        before, after = self.index.put_robot(name, robot)
        change = Change(keys=self._rows.moved(name, foreign), placements=before | after, returned=returned)
        shards = {each.shard for each in (old, robot) if each is not None}
        for text in before | after:
            placement = self.index.placements[text]
            if len(shards) > 1:
                change.rewritten.add((text, name))
            if text not in after:
                change.left.add((placement.uid, name))
            uses_robots = len(shards) > 1 or bool(placement.overrides) or placement.expand
            if placement.shared or (text in before & after and (old == robot or not uses_robots)):
                continue
            keys = list(self.index.keys(text, robots=[name]))
            change.keys.update(key._replace(shard=shard) for shard in shards for key in keys)
        if robot is None and old is not None:
            change.lost_robots.add(name)
        if (old is None) is not (robot is None):
            change.placements.update(self.index.naming(name))
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
        if old is not None and old.orders == new.orders:
            self.index.placements[new.text] = new
            return Change(placements={new.text})
        before, sources = set(self.index.keys(new.text)), self.index.sources_of(new.text).keys()
        self.index.put_placement(new.text, new)
        after = set(self.index.keys(new.text))
        returned = self.statuses.of(*map(source_id, sources | self.index.sources_of(new.text).keys()))
        return Change(keys=before | after, placements={new.text}, edited=before - after, returned=returned)

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

    def _of_kind(self, name: str) -> Change:
        """All replicas of a kind, and the placements that name it. The root's are those of all shards."""
        shard, resource = split(name)
        change = Change(keys=set(self._rows.of_kind(name)))
        for text, placement in self.index.placements.items():
            if resource in placement.kinds:
                change.placements.add(text)
                keys = self.index.keys(text, resource=resource)
                change.keys.update(keys if shard == ROOT else (key for key in keys if key.shard == shard))
        return change

    def kind_shown(self, kind: PlacedKind) -> Change:
        """A kind is as its CRD, or discovery, shows it."""
        if self.index.kinds.get(kind.name) == kind:
            return Change()
        change = self._of_kind(kind.name)
        self.index.put_kind(kind)
        return change.add(self._of_kind(kind.name))

    def kind_gone(self, name: str) -> Change:
        """A CRD was deleted: its kind is not served, and nothing of it is lost (F2.3). Its objects went with it."""
        gone = replace(self.index.kinds[name], verdict=Verdict.NOT_SERVED, version="", message=not_served(name))
        change = self.kind_shown(gone)
        for key in list(self._rows.of_kind(name)):
            change.add(self._of_row(key, self._rows.drop(name, key)))
        self._rows.forget_claims(name)
        self.listed.discard(name)
        return change

    def inputs_listed(self, *names: str) -> Change:
        """Inputs or kinds were listed consistently. With the last one, everything is decided for the first time."""
        was = {kind for kind in self.index.kinds if self.is_ready(kind)}
        self.listed.update(names)
        self.rewound.difference_update(names)
        now = {kind for kind in self.index.kinds if self.is_ready(kind)}
        return self._stripped(now - was)

    def served(self, name: str, *, is_served: bool) -> Change:
        """Whether the cloud serves an input or a kind, as discovery answers (S5.5a)."""
        if (name not in self.dead) is is_served:
            return Change()
        self.dead ^= {name}
        affected = {name} if name in self.index.kinds else self.index.kinds.keys()
        return self._stripped(set(affected))

    def object_shown(self, raw: Json, name: str) -> Change:
        """An object of a placed kind was added or changed: a replica, at the root a source, or anything else."""
        shard, resource = split(name)
        row = row_of(raw, resource, stamped=self._renderings.stamped)
        if row is not None and (row.robot or shard != ROOT):
            return self._row_shown(raw, row, name)
        place = key_of(raw)
        change = self._place_gone(place, name)
        claimed = (raw["metadata"].get("labels") or {}).get(SOURCE, "")
        if self._rows.claims(name, place, claimed):
            change.keys |= self._keys_at(place, name)
        if shard != ROOT:
            return change
        source = source_of(raw, resource)
        is_source = (may_be_source(raw) or is_left_marked(raw)) and not source.terminating
        return change.add(self._source(source.key, source if is_source else None))

    def object_gone(self, kind: str, namespace: str, name: str) -> Change:
        """An object of a placed kind was deleted."""
        place = Key(namespace, name)
        change = self._place_gone(place, kind)
        if self._rows.unclaim(kind, place):
            change.keys |= self._keys_at(place, kind)
        return change.add(self._source(SourceKey(kind, namespace, name), None))

    def is_seen(self, kind: str, place: Key, metadata: Json) -> bool:
        """Whether a replica was seen in this version or a newer one: an answer to a write may precede its event.

        Versions tell nothing before a kind is listed, and from a restore of the cloud on until it is listed again (S8).
        """
        return kind in self.listed and kind not in self.rewound and self._rows.has(kind, place, metadata)

    def written(self, raw: Json, kind: str) -> Change:
        """The API server's answer to a write of ours: its content is what the server made of it (F3.5)."""
        place, metadata = key_of(raw), raw["metadata"]
        key = self._rows.key_at(kind, place)
        if key is None or not self.is_seen(kind, place, metadata):
            row = row_of(raw, split(kind)[1], admitted=True, stamped=self._renderings.stamped)
            return Change() if row is None else self._put_row(row, kind)
        if not self._rows.admit(key, raw):
            return Change()
        return Change(keys={key})

    def _row_shown(self, raw: Json, row: Row, kind: str) -> Change:
        """A replica. A write that nobody here has seen the answer of must contain the rendering, or it has drifted.

        So a kind's sources are to be shown before its replicas. While it is listed from the beginning, what is known of
        a replica may be from a time when its sources were not.
        """
        old, is_listed = self.rows.get(key := replica_key(row, kind)), kind in self.listed
        if is_listed and old is not None and (old.uid, old.marks.number) == (row.uid, row.marks.number):
            return self._put_row(replace(row, admitted=old.admitted), kind)
        wanted = self.wanted(key)
        made = None if wanted is None or isinstance(wanted.rendering, RenderFailed) else wanted.rendering
        is_admitted = wanted is not None  # where nobody wants it, it is compared by its digest once somebody does
        if made is not None:
            is_admitted = made.stamp != row.marks.stamp or row.content == made.stamp or contains(raw, made)
        return self._put_row(replace(row, admitted=row.content if is_admitted else ""), kind)

    def _put_row(self, row: Row, kind: str) -> Change:
        """Take up a replica as it is now, in place of what was known of it and of its name."""
        key, place = replica_key(row, kind), Key(row.namespace, row.name)
        old = self.rows.get(key)
        is_same = old is not None and writing(old) == writing(row)
        change = self._place_gone(place, kind, unless=key)
        if self._rows.unclaim(kind, place):
            change.add(self._source(SourceKey(kind, *place), None))
        if old is not None and old.marks.placement != row.marks.placement:
            change.add(self._of_row(key, old, is_same=is_same))  # the placement that it leaves may wait for that (F5.3)
        self._rows.put(kind, key, row)
        return change.add(self._of_row(key, row, is_same=is_same))

    def _of_row(self, key: ReplicaKey, row: Row, *, is_same: bool = False) -> Change:
        governor, marked = self.index.governor(key), self.index.placement(row.marks.placement)
        texts = {each.text for each in (marked, governor and governor[0]) if each is not None}
        rewritten = set() if marked is None or is_same or not key.robot else {(marked.text, key.robot)}
        keys = {key, key._replace(shard=self.index.shard_of(key.robot))} if self.is_foreign(key) else {key}
        returned = set() if key.robot or is_same else self.statuses.of(key.source_id)
        keys.update(self._rows.waiting(key.kind, row))
        return Change(keys=keys, placements=texts, rewritten=rewritten, returned=returned)

    def _place_gone(self, place: Key, kind: str, *, unless: ReplicaKey | None = None) -> Change:
        """Forget the replica at a place, unless it is still that one."""
        key = self._rows.key_at(kind, place)
        return Change() if key is None or key == unless else self._of_row(key, self._rows.drop(kind, key))

    def _source(self, key: SourceKey, source: Source | None) -> Change:
        old = self.index.sources.get(key)
        if old is None and source is None:
            return Change()
        before, after = self.index.put_source(key, source)
        is_same = old is not None and source is not None and old.seen == source.seen
        if is_same and before == after:
            return Change()
        change = Change(placements=before | after, returned=self.statuses.of(source_id(key)))
        for text in before | after:
            change.keys.update(self.index.keys_of(key, text, self.index.robots_of(text)))
        if before and not after:
            change.lost_sources.add((key.resource, source_id(key)))
        return change

    def _keys_at(self, place: Key, kind: str) -> set[ReplicaKey]:
        """The replicas whose place this is."""
        near = set(self.index.near(place, kind))
        return {key for key in near if (wanted := self.wanted(key)) and (wanted.namespace, wanted.name) == place}
