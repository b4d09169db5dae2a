"""The replicas of a placement for one robot, as the controller would make them."""

import secrets
from dataclasses import dataclass, field

from crsyncer.cli.fleet.cloud import not_given
from crsyncer.cli.fleet.placed_kinds import PlacedKinds
from crsyncer.cli.fleet.stored import Objects
from crsyncer.core.content.object_content import concealed, content_of
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError, SyncError
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import REPLICA, is_robot_name
from crsyncer.fleet.domain.properties import Undefined, config_map_properties
from crsyncer.fleet.domain.read_objects import placement_of, robot_of, strip_of
from crsyncer.fleet.domain.replica_plan import new_body
from crsyncer.fleet.domain.selection import may_be_source, selects_robot
from crsyncer.fleet.domain.transport.keys import ROOT, on_shard
from crsyncer.fleet.domain.values import PlacedKind, Placement, Reason, RenderFailed, Robot


@dataclass(slots=True)
class Replicas:
    """What would be written, what cannot be, and what else there is to say; a line each."""

    bodies: list[Json] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def replicas_of(objects: Objects, namespace: str, name: str, robot_name: str) -> Replicas:
    """The replicas of a placement for a robot. Raises SyncError where there is no such placement or robot."""
    raws = await objects.placements(namespace)
    placements = {each.name: each for each in map(placement_of, raws)}
    placement = placements.get(name)
    if placement is None:
        known = ", ".join(sorted(placements)) or "none"
        raise SyncError(f"there is no RobotPlacement {namespace}/{name}", hint=f"those in {namespace}: {known}")
    if placement.problem:
        raise SyncError(f"RobotPlacement {placement.text} cannot be followed: {placement.problem}")
    raw_robot = await _robot(objects, robot_name)
    robot, found = robot_of(raw_robot), Replicas()
    if placement.terminating or not selects_robot(placement, robot):
        what = "is being deleted" if placement.terminating else f"does not select robot {robot_name}"
        found.notes.append(f"RobotPlacement {placement.text} {what}: there are no replicas")
        return found
    if placement.shared and robot.shard == ROOT:
        found.notes.append(f"robot {robot_name} has the sources themselves, which it shares: there are no replicas")
        return found
    fleet = Fleet(home=objects.settings.controller_namespace, shards={ROOT, robot.shard})
    fleet.robot_shown(raw_robot)
    if (properties := await objects.properties(robot.name)) is not None:
        try:
            config_map_properties(properties)
        except Undefined as error:
            found.failures.append(f"robot {robot.name}: {Reason.RENDER_FAILED}: {error}")
            return found
        fleet.properties_shown(properties)
    for raw in await objects.strips():
        try:
            strip_of(raw)
        except ConfigError as error:
            raise ConfigError(f"FieldStrip {raw['metadata']['name']}: {error}") from None
        fleet.strip_shown(raw)
    kinds_there = _kinds_there(objects, robot, found)
    await _show_sources(objects, fleet, placement, found)
    for raw, each in zip(raws, placements.values(), strict=True):
        if not each.problem:
            fleet.placement_shown(raw)
    for source in fleet.index.sources_of(placement.text):
        if (kind := fleet.index.kinds.get(source.resource)) is None:
            continue  # it cannot be placed
        [key] = fleet.index.keys_of(source, placement.text, [robot.name])
        governor, named = fleet.index.governor(key), f"{kind.resource} {source.text}"
        if governor is not None and governor[0].text != placement.text:
            found.notes.append(f"{named} is governed by the older RobotPlacement {governor[0].text}")
            continue
        if robot.shard != ROOT:
            there = kind if kinds_there is None else await kinds_there.kind(kind.group, kind.plural)
            there = there.at_shard(robot.shard)
            if not _is_placeable(objects, there, placement, found):
                continue
            fleet.kind_shown(there)
        wanted = fleet.wanted(key)
        assert wanted is not None  # noqa: S101 it is governed, and its kind is known
        if isinstance(wanted.rendering, RenderFailed):
            found.failures.append(f"{named}: {wanted.rendering.reason}: {wanted.rendering.message}")
        else:
            found.bodies.append(_shown(new_body(wanted, wanted.rendering), kind))
    if not found.bodies and not found.failures and not found.notes:
        found.notes.append(f"RobotPlacement {placement.text} matches no object: there are no replicas")
    return found


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
    return PlacedKinds(send, (), inventory=objects.settings.robots)


async def _robot(objects: Objects, name: str) -> Json:
    if not is_robot_name(name):
        raise SyncError(f"{Reason.BAD_ROBOT_NAME}: {name}", hint="a DNS label of at most 57 characters")
    raw = await objects.robot(name)
    if raw is None:
        where = f"{objects.settings.robots} in {objects.settings.robots_namespace}"
        raise SyncError(f"there is no robot {name}", hint=f"robots are the {where}")
    return raw


async def _show_sources(objects: Objects, fleet: Fleet, placement: Placement, found: Replicas) -> None:
    """The kinds that a placement names, and their sources; of a kind that cannot be placed none, and a failure."""
    kinds = objects.kinds
    for named in dict.fromkeys(entry.kind for entry in placement.entries):
        kind = await kinds.kind(named.group, named.resource)
        if _is_placeable(objects, kind, placement, found):
            fleet.kind_shown(kind)
            for raw in filter(may_be_source, await objects.sources(kind, placement)):
                fleet.object_shown(raw, kind.resource)
    for template in placement.templates:
        kind = await kinds.kind(template.kind.group, template.kind.resource, [template.object])
        if _is_placeable(objects, kind, placement, found):
            fleet.kind_shown(kind)


def _is_placeable(objects: Objects, kind: PlacedKind, placement: Placement, found: Replicas) -> bool:
    found_problem, home = kind.problem_for(shared=placement.shared), objects.settings.controller_namespace
    problem = "" if found_problem is None else ": ".join(found_problem)
    if not problem and not kind.namespaced and placement.namespace != home:
        problem = f"NotAllowed: only placements in {home} may select cluster-scoped objects"
    line = f"{on_shard(kind.name)}: {problem}"
    if problem and line not in found.failures:
        found.failures.append(line)
    return not problem


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
