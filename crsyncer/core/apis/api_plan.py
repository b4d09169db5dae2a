"""What becomes of a CRD that travels: its revision, its entry in the APISet, and the CRD that follows it (C8).

Values in, a plan out: whoever carries it out makes the revision first, then the entry, then the CRD, each guarded by
what was observed. CRDs and revisions are never deleted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from crsyncer.core.accounts.access import Act, Need
from crsyncer.core.apis.revise import Change, Revision, breaking, follow
from crsyncer.core.apis.travel_names import name_on
from crsyncer.core.content.object_content import ROBOT, digest
from crsyncer.core.kinds.sync_policy import API_VERSION, Api
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import API_REVISIONS, API_SETS, CRD_COLLECTION, Collection

_ROBOT_NAME = re.compile("[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?")


class ApiState(StrEnum):
    """What `kinds[].api` shows (C8.4)."""

    CURRENT = "current"
    PAUSED = "paused"
    HELD = "held"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of a CRD that travels, also by the next agent."""

    entry: str = ""
    """The revision that the entry named when the CRD followed it last. Another one was written by hand."""
    admitted: str = ""
    """What the server made of the CRD when it followed a revision: it is not fought."""
    released: str = ""
    """The revision that an operator lets pass."""
    held: str = ""
    """Why the entry or the CRD stays; empty: nothing is held."""
    held_revision: str = ""
    """The revision that an operator can let pass; empty: a release is no help."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What there is: of the source as far as it is known, of the other side as it is now."""

    own: Revision | None
    """The revision of the source's CRD; None: it is not known, or there is none."""
    source_missing: bool
    """The source has no such CRD."""
    target: Json | None
    """The CRD on the other side."""
    api_set: Json | None
    """Our APISet there."""
    revisions: Mapping[str, Revision | None]
    """The revisions there that `own` and the entry name; None: its content is not what its name stands for."""


@dataclass(frozen=True, slots=True)
class ApiPlan:
    """What to show and to write; what is None is not written."""

    state: ApiState
    revision: str
    """The one that the entry names, or will name; empty: none."""
    message: str
    memory: Memory
    """What is to be remembered once everything is written."""
    new_revision: Revision | None = None
    api_set: Json | None = None
    crd: Json | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What the APISet names for a kind."""

    revision: str = ""
    """Empty: it has no entry for the kind."""
    problem: str = ""
    """Why the entry is nonsense; empty: it is not."""


def api_set_name(target: Side, robot: str) -> str:
    """The name of our APISet on a side."""
    return "crsyncer" if target is Side.ROBOT else f"crsyncer-{robot}"


def name_problem(api: Api, robot: str) -> str:
    """Why a CRD cannot travel to the cloud for a robot of this name; empty: it can."""
    if api.source is Side.CLOUD or _ROBOT_NAME.fullmatch(robot):
        return ""
    name = f'the robot name is "{robot}"' if robot else "the robot has no name"
    return f'spec.api.source is robot, but {name}; allowed: lower-case letters, digits, "-" and "."'


def is_foreign(crd: Json, robot: str) -> bool:
    """Whether a CRD in the cloud was not made by this robot, which then leaves it as it is (C8.2)."""
    return (crd["metadata"].get("annotations") or {}).get(ROBOT) != robot


def revision_object(revision: Revision) -> Json:
    """The body of an APIRevision."""
    metadata = {"name": revision.name}
    return {"apiVersion": API_VERSION, "kind": "APIRevision", "metadata": metadata, "spec": revision.spec}


def read_entry(api_set: Json | None, resource: str) -> Entry:
    """What our APISet names for a kind, such as goals.lab.example.com."""
    spec: Any = (api_set or {}).get("spec") or {}
    apis: Any = spec.get("apis") or [] if isinstance(spec, dict) else None
    if not isinstance(apis, list):
        return Entry(problem="its spec.apis is no list")
    found = [each.get("revision") for each in apis if _is_for(each, resource)]
    if not found:
        return Entry()
    name = found[0]
    if len(found) > 1 or not isinstance(name, str) or name.partition(".")[2] != resource:
        return Entry(problem=f"its entry for {resource} does not name one revision of this kind")
    return Entry(name)


def api_needs(api: Api, side: Side, *, resource: str, robot: str) -> tuple[Need, ...]:
    """What a CRD that travels needs on a side. On the robot, CRDs are listed and watched anyway."""

    def one(verb: str, collection: Collection, name: str = "") -> Need:
        act = Act(verb, collection.group, collection.plural, name, cluster=True)
        return Need((act,), unless=f"the CRD {resource} does not travel")

    watched = [
        one(verb, CRD_COLLECTION, name_on(side, resource, api)) for verb in ("list", "watch") if side is Side.CLOUD
    ]
    if side is api.source:
        return tuple(watched)
    ours = api_set_name(side, robot)
    return (
        *watched,
        *(one(verb, CRD_COLLECTION, name_on(side, resource, api)) for verb in ("get", "update")),
        *(one(verb, API_SETS, ours) for verb in ("get", "list", "watch", "update")),
        one("get", API_REVISIONS),
        *(one("create", collection) for collection in (API_REVISIONS, API_SETS, CRD_COLLECTION)),
    )


def names_to_read(own: Revision | None, api_set: Json | None, resource: str, memory: Memory) -> list[str]:
    """The revisions that a plan depends on."""
    names = ("" if own is None else own.name, read_entry(api_set, resource).revision, _lost_entry(api_set, memory))
    return list(dict.fromkeys(filter(None, names)))


def plan_api(seen: Observed, api: Api, *, resource: str, robot: str, memory: Memory) -> ApiPlan:
    """What is to be done for the CRD of a kind; `resource` is its name on the robot."""
    target = api.source.other
    there = name_on(target, resource, api)
    place = f"the {target}'s APISet {api_set_name(target, robot)}"
    entry = read_entry(seen.api_set, there)
    if entry.problem:
        return _stays(f"{place}: {entry.problem}", memory)
    wanted = None if api.paused else seen.own
    if wanted is not None and wanted.name in seen.revisions and seen.revisions[wanted.name] is None:
        return _stays(f"the {target}'s APIRevision {wanted.name} has another content than its name stands for", memory)
    obstacle = partial(_obstacle, seen.target, api=api, robot=robot, memory=memory)
    held = stuck = ("", "")
    if wanted is not None and wanted.name != entry.revision:
        held = obstacle(wanted)
    followed = seen.revisions.get(entry.revision or _lost_entry(seen.api_set, memory))
    if wanted is not None and not held[0]:
        followed = wanted
    name = followed.name if followed is not None else entry.revision
    if followed is None and entry.revision and not held[0]:
        held = (f"{place}: its entry names {entry.revision}, which is no revision", "")
    elif followed is not None and (followed is not wanted or name == entry.revision):
        # Whoever wrote the entry by hand wants just this revision, and knows what it takes away (C8.4).
        stuck = obstacle(followed, by_hand=memory.entry not in ("", name))
    crd = None
    if followed is not None and not stuck[0]:
        crd = _new_crd(seen.target, followed, target, robot, memory)
    why, releasable = held if held[0] else stuck
    if not why and seen.own is None and not seen.source_missing and not api.paused:
        why, releasable = memory.held, memory.held_revision  # until the source is seen, it is as it was
    missing = f"the {api.source} has no CRD {name_on(api.source, resource, api)}" if seen.source_missing else ""
    stays = followed is None or bool(stuck[0])
    return ApiPlan(
        ApiState.HELD if why else ApiState.UNREADABLE if missing else _usual(api, name),
        name,
        why or missing,
        replace(
            memory,
            entry=(memory.entry or name) if stays else name,
            released="" if not stays and name == memory.released else memory.released,
            held=why,
            held_revision=releasable,
        ),
        new_revision=wanted if wanted is not None and wanted.name not in seen.revisions else None,
        api_set=_with_entry(seen.api_set, target, there, name, robot) if name != entry.revision else None,
        crd=crd,
    )


def shown_before(api: Api, memory: Memory) -> tuple[ApiState, str, str]:
    """State, revision and message until the first look, by what is remembered."""
    return ApiState.HELD if memory.held else _usual(api, memory.entry), memory.entry, memory.held


def admission(revision: str, spec: Json) -> str:
    """What a server made of a CRD that follows a revision."""
    return f"{revision} {digest(spec)}"


def _usual(api: Api, revision: str) -> ApiState:
    if api.paused:
        return ApiState.PAUSED
    return ApiState.CURRENT if revision else ApiState.UNREADABLE  # until the source is listed, and there is no entry


def _stays(message: str, memory: Memory) -> ApiPlan:
    """Everything stays, until somebody puts right what is there."""
    return ApiPlan(ApiState.HELD, memory.entry, message, replace(memory, held=message, held_revision=""))


def _obstacle(
    crd: Json | None, revision: Revision, *, api: Api, robot: str, memory: Memory, by_hand: bool = False
) -> tuple[str, str]:
    """Why the CRD must not follow a revision (empty: it may, or does already), and what a release would let pass.

    `by_hand`: somebody has chosen just this revision.
    """
    if crd is None or _follows(crd, revision, memory):
        return "", ""
    if api.source is Side.ROBOT and is_foreign(crd, robot):
        return f"the cloud's CRD was not made by {robot}, so it does not follow {revision.name}", ""
    found = breaking(crd, revision)
    never = [each for each in found if each.change is Change.SCOPE]
    if by_hand or api.allow_breaking or memory.released == revision.name:
        found = tuple(never)
    if not found:
        return "", ""
    return f"{revision.name} is breaking: {'; '.join(map(str, found))}", "" if never else revision.name


def _follows(crd: Json, revision: Revision, memory: Memory) -> bool:
    return follow(crd, revision)["spec"] == crd["spec"] or memory.admitted == admission(revision.name, crd["spec"])


def _new_crd(crd: Json | None, revision: Revision, target: Side, robot: str, memory: Memory) -> Json | None:
    """The CRD to write; None: it is as it has to be, or is being deleted and made anew afterwards."""
    new = follow(crd, revision)
    if crd is None:
        marks = {"annotations": {ROBOT: robot}} if target is Side.CLOUD else {}
        return {**new, "metadata": {**new["metadata"], **marks}}
    if "deletionTimestamp" in crd["metadata"] or _follows(crd, revision, memory):
        return None
    return new


def _lost_entry(api_set: Json | None, memory: Memory) -> str:
    """The revision that our APISet named before somebody deleted the whole APISet; empty: it is there."""
    return memory.entry if api_set is None else ""


def _is_for(entry: Any, resource: str) -> bool:
    return isinstance(entry, dict) and f"{entry.get('resource')}.{entry.get('group')}" == resource


def _with_entry(api_set: Json | None, target: Side, resource: str, revision: str, robot: str) -> Json:
    """The APISet with the entry of a kind; those of other kinds stay as they are."""
    plural, _, group = resource.partition(".")
    entry = {"group": group, "resource": plural, "revision": revision}
    whole = api_set or {"apiVersion": API_VERSION, "kind": "APISet", "metadata": {"name": api_set_name(target, robot)}}
    spec = whole.get("spec") or {}
    others = [each for each in spec.get("apis") or [] if not _is_for(each, resource)]
    return {**whole, "spec": {**spec, "apis": [*others, entry]}}
