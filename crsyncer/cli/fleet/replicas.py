"""The replicas of a placement for one robot, as the controller would make them."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from crsyncer.cli.fleet.cloud import not_given
from crsyncer.cli.fleet.placed_kinds import PlacedKinds
from crsyncer.cli.fleet.stored import Objects
from crsyncer.core.content.object_content import concealed, content_of
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError, SyncError
from crsyncer.fleet.domain.names import REPLICA, is_robot_name, source_id
from crsyncer.fleet.domain.properties import Undefined, config_map_properties
from crsyncer.fleet.domain.read_objects import placement_of, robot_of, source_of, strip_of, template_source
from crsyncer.fleet.domain.rendering import UNSHOWN, Strips, render
from crsyncer.fleet.domain.replica_plan import new_body
from crsyncer.fleet.domain.selection import entry_for, governing, may_be_source, selects_robot
from crsyncer.fleet.domain.transport.keys import ROOT, on_shard
from crsyncer.fleet.domain.transport.transports import TRANSPORTS
from crsyncer.fleet.domain.values import (
    PlacedKind,
    Placement,
    Reason,
    RenderFailed,
    Robot,
    Source,
    Strategy,
    Target,
    Wanted,
)


@dataclass(slots=True)
class Replicas:
    """What would be written, what cannot be, and what else there is to say; a line each."""

    bodies: list[Json] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def replicas_of(objects: Objects, namespace: str, name: str, robot_name: str) -> Replicas:
    """The replicas of a placement for a robot. Raises SyncError where there is no such placement or robot."""
    placements = {each.name: each for each in map(placement_of, await objects.placements(namespace))}
    placement = placements.get(name)
    if placement is None:
        known = ", ".join(sorted(placements)) or "none"
        raise SyncError(f"there is no RobotPlacement {namespace}/{name}", hint=f"those in {namespace}: {known}")
    if placement.problem:
        raise SyncError(f"RobotPlacement {placement.text} cannot be followed: {placement.problem}")
    robot = await _robot(objects, robot_name)
    found = Replicas()
    if placement.terminating or not selects_robot(placement, robot):
        what = "is being deleted" if placement.terminating else f"does not select robot {robot_name}"
        found.notes.append(f"RobotPlacement {placement.text} {what}: there are no replicas")
        return found
    if placement.shared and robot.shard == ROOT:
        found.notes.append(f"robot {robot_name} has the sources themselves, which it shares: there are no replicas")
        return found
    sound = (each for each in placements.values() if not each.problem)
    rivals = [each for each in sound if each.shared or selects_robot(each, robot)]
    owner, target = ("", Target.SHARED) if placement.shared else (robot.name, placement.target)
    try:
        properties = config_map_properties(await objects.properties(robot.name) or {})
    except Undefined as error:
        found.failures.append(f"robot {robot.name}: {Reason.RENDER_FAILED}: {error}")
        return found
    strips, kinds = _strips(await objects.strips()), _kinds_there(objects, robot, found)
    home = objects.settings.controller_namespace
    async for kind, source, strategy in _sources(objects, placement, home, found):
        governs = governing(
            each for each in rivals if each is placement or _selects(each, placement, kind, source, home)
        )
        if governs is not None and governs is not placement:
            found.notes.append(f"{_named(kind, source)} is governed by the older RobotPlacement {governs.text}")
            continue
        there = kind if kinds is None else (await kinds.kind(kind.group, kind.plural)).at_shard(robot.shard)
        if not _is_placeable(there, placement, home, found):
            continue
        made = render(source, placement, strips.get(kind.resource, ()), robot=robot, config_map=properties)
        if isinstance(made, RenderFailed):
            message = UNSHOWN if kind.sensitive else made.message
            found.failures.append(f"{_named(kind, source)}: {made.reason}: {message}")
            continue
        where = TRANSPORTS[target].address(source.key, owner, namespaced=kind.namespaced)
        wanted = Wanted(source.key, source_id(source.key), owner, placement, there, *where, strategy, made)
        found.bodies.append(_shown(new_body(wanted, made), kind))
    if not found.bodies and not found.failures and not found.notes:
        found.notes.append(f"RobotPlacement {placement.text} matches no object: there are no replicas")
    return found


def _selects(other: Placement, placement: Placement, kind: PlacedKind, source: Source, home: str) -> bool:
    """Whether another placement wants the same replica: of the same source, at the same target (F2.4)."""
    is_elsewhere = kind.namespaced and other.target is not placement.target and not placement.shared
    if source.key.placement or is_elsewhere or other.shared is not placement.shared:
        return False
    return entry_for(other, source.key, source.labels, home=home) is not None


def _kinds_there(objects: Objects, robot: Robot, found: Replicas) -> PlacedKinds | None:
    """The kinds as a robot's shard serves them; None: as the root does. Raises SyncError of a shard of no use."""
    if robot.shard == ROOT or objects.send is None:
        return None
    if (send := objects.shards.get(robot.shard)) is None:
        missing = not_given(robot.shard)
        found.notes.append(f"{missing}, its kinds count as those of the root; {missing.hint}")
        return None
    if isinstance(send, SyncError):
        raise send
    return PlacedKinds(send, ())


async def _robot(objects: Objects, name: str) -> Robot:
    if not is_robot_name(name):
        raise SyncError(f"{Reason.BAD_ROBOT_NAME}: {name}", hint="a DNS label of at most 57 characters")
    raw = await objects.robot(name)
    if raw is None:
        where = f"{objects.settings.robots} in {objects.settings.robots_namespace}"
        raise SyncError(f"there is no robot {name}", hint=f"robots are the {where}")
    return robot_of(raw)


def _strips(raws: Sequence[Json]) -> Mapping[str, Strips]:
    """By kind the paths that FieldStrips remove."""
    found: dict[str, Strips] = {}
    for raw in raws:
        try:
            resource, paths = strip_of(raw)
        except ConfigError as error:
            raise ConfigError(f"FieldStrip {raw['metadata']['name']}: {error}") from None
        found[resource] = (*found.get(resource, ()), *paths)
    return found


async def _sources(
    objects: Objects, placement: Placement, home: str, found: Replicas
) -> AsyncIterator[tuple[PlacedKind, Source, Strategy]]:
    """The sources of a placement, with their kinds; of a kind that cannot be placed none, and a failure."""
    named, kinds = dict.fromkeys((entry.group, entry.plural) for entry in placement.entries), objects.kinds
    for group, plural in named:
        kind = await kinds.kind(group, plural)
        if _is_placeable(kind, placement, home, found):
            for raw in await objects.sources(kind, placement):
                source = source_of(raw, kind.resource)
                entry = entry_for(placement, source.key, source.labels, home=home)
                if entry is not None and may_be_source(raw) and not source.terminating:
                    yield kind, source, entry.strategy
    for template in placement.templates:
        kind = await kinds.kind(template.group, template.plural, [template.object])
        if _is_placeable(kind, placement, home, found):
            yield kind, template_source(placement, template), template.strategy


def _is_placeable(kind: PlacedKind, placement: Placement, home: str, found: Replicas) -> bool:
    found_problem = kind.problem_for(shared=placement.shared)
    problem = "" if found_problem is None else ": ".join(found_problem)
    if not problem and not kind.namespaced and placement.namespace != home:
        problem = f"NotAllowed: only placements in {home} may select cluster-scoped objects"
    line = f"{on_shard(kind.name)}: {problem}"
    if problem and line not in found.failures:
        found.failures.append(line)
    return not problem


def _named(kind: PlacedKind, source: Source) -> str:
    return f"{kind.resource} {source.key.text}"


def _shown(body: Json, kind: PlacedKind) -> Json:
    """A replica as it is shown; of a Secret only digests of its values, also of those in annotations (F2.3)."""
    if not kind.sensitive:
        return body
    key = secrets.token_bytes(32)  # nobody can try out which values have these digests
    metadata = body["metadata"]
    annotations = {
        name: text if name == REPLICA else concealed(text, key) for name, text in metadata["annotations"].items()
    }
    names = {name: body[name] for name in ("apiVersion", "kind")}
    return {**names, "metadata": {**metadata, "annotations": annotations}, **concealed(content_of(body), key)}
