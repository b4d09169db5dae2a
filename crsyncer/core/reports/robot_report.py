"""What a robot reports to its fleet, where, and by which requests (F9). The controller reads the same digests."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from crsyncer.core.accounts.robot_account import robot_namespace, signed
from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import UPSTREAM_UID, digest
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Json, Key, Record, ReplicaMark, View
from crsyncer.core.requests.calls import Call, Collection, delete_options, discovery, write

ROBOT_SYNC_STATES = Collection("fleet.crsyncer.cloudrobotics.com", "v1alpha1", "robotsyncstates")
DISCOVERY = discovery(ROBOT_SYNC_STATES.group, ROBOT_SYNC_STATES.version)
MOST_PLACEMENTS = 500
"""How many placements a report has at most."""
_KIND = "RobotSyncState"


class Acknowledgement(NamedTuple):
    """A replica whose content the robot's copy has: its uid, and its marks in that version."""

    uid: str
    mark: ReplicaMark


def acknowledgements(
    upstream: Mapping[Key, View],
    copies: Mapping[Key, View],
    records: Mapping[Key, Record],
    *,
    before: Mapping[Key, Acknowledgement],
) -> dict[Key, Acknowledgement]:
    """What to report of the replicas of one kind, as they are seen now, after what was reported `before`.

    A version whose content the copy does not have yet leaves it at the version before: that is what the copy has. No
    removal is reported: what terminates does not count, as for the controller (F9.6).
    """
    found = {}
    for key, view in upstream.items():
        if view.replica is None or view.terminating:
            continue
        if _is_applied(view, copies.get(key), records.get(key)):
            found[key] = Acknowledgement(view.uid, view.replica)
        elif key in before and before[key].uid == view.uid:
            found[key] = before[key]
    return found


def _is_applied(upstream: View, copy: View | None, record: Record | None) -> bool:
    """Whether the copy was given this content. It counts when somebody has changed the copy since.

    The copy's stamp says so, or where somebody has changed that, the record of the write.
    """
    if copy is None or upstream.failure:
        return False
    stamp = copy.stamp
    if stamp is not None and (stamp.upstream_uid != upstream.uid or stamp.digest == upstream.content):
        return stamp.upstream_uid == upstream.uid
    return record is not None and (record.upstream_uid, record.applied) == (upstream.uid, upstream.content)


def applied_digest(replicas: Iterable[tuple[str, int]]) -> str:
    """The digest of replicas of one placement on one robot: the uid of each, and the number of its last write."""
    return digest(sorted(list(each) for each in replicas))


def applied_map(found: Iterable[Acknowledgement]) -> dict[str, str]:
    """What a report has of these replicas: by the uid of the placement, their digest. The first uids are taken."""
    replicas = defaultdict(list)
    for uid, mark in found:
        replicas[mark.placement].append((uid, mark.number))
    return {placement: applied_digest(replicas[placement]) for placement in sorted(replicas)[:MOST_PLACEMENTS]}


def report_place(robot: str, namespaces: Namespaces, chosen: str | None) -> str | None:
    """The namespace of a robot's report: its own where the settings name that, else the one `chosen` (None: none)."""
    own = robot_namespace(robot)
    return own if chosen is not None and own in namespaces.cloud else chosen


def is_served(body: Json) -> bool:
    """Whether discovery (DISCOVERY) shows that reports can be made."""
    found = body.get("resources") or []
    return any(each.get("name") == ROBOT_SYNC_STATES.plural and "create" in (each.get("verbs") or []) for each in found)


def list_reports(robot: str, namespace: str) -> Call:
    """List the reports of a robot, in the one form that gateways accept (S2.1)."""
    reports = replace(ROBOT_SYNC_STATES, namespace=namespace, selector=f"{ROBOT_LABEL}={robot}")
    return Call("list", "GET", reports.path, reports.query())


def own_report(body: Json, robot: str) -> Json | None:
    """The report that a list shows; None: there is none."""
    return next((each for each in body.get("items") or [] if each["metadata"]["name"] == robot), None)


def is_foreign(report: Json) -> bool:
    """Whether a report is the copy of an object on the robot, which the engine syncs like any other kind."""
    return UPSTREAM_UID in (report["metadata"].get("annotations") or {})


def beat_of(report: Json) -> int:
    """The beat of a report; 0: it has none."""
    found = (report.get("spec") or {}).get("beat")
    return found if type(found) is int else 0


def write_report(robot: str, namespace: str, spec: Json, *, metadata: Json | None) -> Call:
    """Replace the report that has these metadata, uid and resourceVersion among them; None: create it."""
    marked = signed((metadata or {}) | {"name": robot, "namespace": namespace}, robot)
    api_version = f"{ROBOT_SYNC_STATES.group}/{ROBOT_SYNC_STATES.version}"
    return write(ROBOT_SYNC_STATES, {"apiVersion": api_version, "kind": _KIND, "metadata": marked, "spec": spec})


def delete_report(robot: str, namespace: str, uid: str) -> Call:
    """Delete the report with this uid."""
    return Call("delete", "DELETE", ROBOT_SYNC_STATES.item(Key(namespace, robot)), body=delete_options(uid))
