"""What the status document has of kinds and copies that are not synced any more, and that nobody gave up (S1.8)."""

import json
from collections.abc import Iterator

from crsyncer.console.explained.explain_policy import ON, Step
from crsyncer.console.screens.report import object_fields
from crsyncer.core.content.annotations import OURS, SYNCER
from crsyncer.core.kinds.stopped_kind import unknown_annotations
from crsyncer.core.model import Json, Key
from crsyncer.core.reports.text import count, rfc3339
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.kinds.kinds import Kinds


def missing_rows(kinds: Kinds) -> Iterator[Json]:
    """What the rows of the kinds say whose CRDs are gone from the robot, also where a SyncPolicy names them."""
    for resource, kind in kinds.stopped.stopped.items():
        if kind.missing:
            copies = kinds.stopped.copies(resource)
            left = (
                f"; {count(copies, 'copy')} {ON[kind.downstream]} {'stays' if copies == 1 else 'stay'}"
                if copies
                else ""
            )
            yield {
                "resource": resource,
                "specSource": kind.upstream.value,
                "state": "kind-missing",
                "message": f"the robot has no CRD of it any more, so nothing of it is synced{left}",
                "rule": "S1.8",
                "held": copies,
            }


def stopped_rows(kinds: Kinds) -> Iterator[Json]:
    """The kinds whose annotation or SyncPolicy was removed, while copies of them are there."""
    for resource, kind in sorted(kinds.stopped.stopped.items()):
        if not kind.missing and (copies := kinds.stopped.copies(resource)):
            source, policy = kind.upstream.value, kind.policy or None
            yield {"resource": resource, "specSource": source, "policy": policy, "copies": copies}


def former_name_rows(kinds: Kinds) -> Iterator[Json]:
    """What was synced for a former name of the robot, while copies belong to it."""
    for name, kind in sorted(kinds.stopped.former.items()):
        if copies := kinds.stopped.copies(name):
            _, _, resource = name.partition("/")
            found = {"robot": kind.robot, "resource": resource, "specSource": kind.upstream.value}
            yield found | {"since": rfc3339(kind.since), "copies": copies, "statuses": kind.statuses}


def former_copy_rows(kinds: Kinds) -> Iterator[Json]:
    """The copies that an edit of what is selected, or of the projection, left behind, and that do not go (C1.7)."""
    running = [entry.kind for entry in kinds.entries.values() if entry.kind is not None]
    for kind in running:
        for place, copy, obstacle in kind.left_behind.undeleted():
            yield object_fields(kind.policy.resource, copy.name) | {
                "side": kind.policy.downstream.value,
                "kind": place.resource,
                "since": rfc3339(obstacle.since),
                "message": obstacle.message,
                "forbidden": obstacle.is_forbidden,
                "terminating": obstacle.is_terminating,
            }


def unknown_annotation_rows(kinds: Kinds) -> Iterator[Json]:
    """The annotations of the robot's CRDs that are under our prefixes and mean nothing."""
    for resource, text in sorted(kinds.crds.items()):
        annotations = json.loads(text)["metadata"]["annotations"] if SYNCER in text or OURS in text else {}
        for name, meant in unknown_annotations(annotations).items():
            yield {"resource": resource, "name": name, "value": annotations[name], "meant": meant or None}


def notes(kinds: Kinds, resource: str) -> Iterator[Step]:
    """Why a kind that has no row is not synced, as far as something was removed or misspelt."""
    for row in unknown_annotation_rows(kinds):
        if row["resource"] == resource:
            meant = f"; did you mean {row['meant']}?" if row["meant"] else ""
            yield "S1.8", False, f"the robot's CRD has the annotation {row['name']}, which means nothing{meant}"
    for row in stopped_rows(kinds):
        if row["resource"] == resource:
            left = count(row["copies"], "object")
            text = f"the kind was synced until its annotation or SyncPolicy was removed; {left} left follow nothing"
            yield "S1.8", False, text


def notes_on_object(kinds: Kinds, kind: Kind, key: Key) -> Iterator[Step]:
    """What is not synced any more of a kind that runs: under a former name of the robot, or where a copy was before."""
    where = ON[kind.policy.downstream]
    for row in former_name_rows(kinds):
        if row["resource"] == kind.policy.resource:
            verb = "belongs" if row["copies"] == 1 else "belong"
            text = f"{count(row['copies'], 'copy')} {where} {verb} to {row['robot']}, the robot's former name"
            yield "S1.8", True, text
    for place, copy, obstacle in kind.left_behind.undeleted():
        if copy.original == key and place != kind.policy.endpoint(kind.policy.downstream):
            named = f"{place.resource} {copy.name}"
            yield "C1.7", None, f"its former copy {where}, {named}, is not deleted: {obstacle.message}"
