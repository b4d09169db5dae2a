"""Shared mode: a copy's status goes to a RobotObjectStatus of the robot's own, not to upstream's object (F10.3)."""

from dataclasses import replace
from typing import Any

from crsyncer.core.accounts.robot_account import own_marks, signed
from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import digest
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Gap, Json, Key, Observation, OwnStatus, Record, View
from crsyncer.core.pair.project import status_digest, status_with
from crsyncer.core.requests.calls import PARTIAL, Call, Collection, delete_options, write

OWN_STATUSES = Collection("fleet.crsyncer.cloudrobotics.com", "v1alpha1", "robotobjectstatuses")
_KIND = "RobotObjectStatus"


def receiver(upstream: View, record: Record) -> tuple[View, Record]:
    """Upstream's object and what is known of it, as far as statuses go: as whichever object takes them shows it.

    That of a shared object is the robot's own. What the one has acknowledged says nothing of the other.
    """
    if upstream.shared:
        own = record.own
        status = own.status if own is not None and own.upstream_uid == upstream.uid else ""
        upstream = replace(upstream, status=status, has_status=False, odd_status=False)
    if upstream.shared is not record.returned:
        record = replace(record, acknowledged="", upstream_status=upstream.status, unanswered=())
    return upstream, record


def is_obsolete(own: OwnStatus, upstream: Observation, downstream: Observation, place: str | None) -> bool:
    """Whether a robot's own object has to go: no status belongs in it any more, or not in its namespace.

    While the deletion of the copy is held, or waits, it stays: upstream's object may come back. Without a copy there is
    no status, so an absence that a resumed watch shows is enough.
    """
    if own.namespace != place:
        return True
    found, copy = upstream.found, downstream.found
    if found is not Gap.ABSENT:
        found = upstream.of(own.upstream_uid)
    if isinstance(found, View) or found is Gap.UNSEEN:
        return isinstance(found, View) and not found.shared
    if isinstance(copy, View):
        return copy.stamp is None or copy.stamp.upstream_uid != own.upstream_uid
    return copy is Gap.ABSENT


def own_name(policy: KindPolicy, key: Key) -> str:
    """What the robot's own object of an upstream object is called: SOURCEID-ROBOT (F3.2)."""
    return f"{digest([policy.in_cloud.resource, key.namespace, key.name])}-{policy.robot}"


def own_key(raw: Json, policy: KindPolicy) -> Key | None:
    """The upstream object that one of the robot's own objects is about; None: it is of another kind."""
    source = (raw.get("spec") or {}).get("source") or {}
    key = Key(str(source.get("namespace") or ""), str(source.get("name") or ""))
    return key if raw["metadata"]["name"] == own_name(policy, key) else None


def seen_status(raw: Json, policy: KindPolicy) -> OwnStatus:
    """What a list shows of one of the robot's own objects."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    own = OwnStatus(metadata["namespace"], str((spec.get("source") or {}).get("uid") or ""))
    found = status_digest({"status": spec.get("returned")}, policy)
    return as_answered(own._replace(status=found), metadata, policy.robot)


def as_answered(own: OwnStatus, metadata: Json, robot: str) -> OwnStatus:
    """The object with these metadata. Its version counts only where a PUT of ours alone keeps all of them."""
    plain = all((metadata.get(field) or {}) == texts for field, texts in own_marks(robot).items())
    plain = plain and not metadata.get("finalizers") and not metadata.get("ownerReferences")
    return own._replace(uid=metadata["uid"], resource_version=metadata["resourceVersion"] if plain else "")


def own_statuses(robot: str, namespace: str) -> Collection:
    """All of a robot's own objects there, in the one form of a list that gateways accept (S2.1)."""
    return replace(OWN_STATUSES, namespace=namespace, selector=f"{ROBOT_LABEL}={robot}")


def write_own(
    policy: KindPolicy, key: Key, own: OwnStatus, *, value: Any, metadata: Json | None, last_update: str
) -> Call:
    """Have the robot's own object return a status, or (None) none; it is created where its uid is not known.

    `metadata` are those to keep, where it has others than ours.
    """
    name = own_name(policy, key)
    guards: Json = {"uid": own.uid, "resourceVersion": own.resource_version} if own.uid else {}
    cloud = policy.in_cloud
    source = {"group": cloud.group, "resource": cloud.plural, "namespace": key.namespace, "name": key.name}
    spec: Json = {"source": source | {"uid": own.upstream_uid}, "lastUpdate": last_update}
    returned = status_with({}, policy, value)
    if returned is not None:
        spec["returned"] = returned
    body = {
        "apiVersion": f"{OWN_STATUSES.group}/{OWN_STATUSES.version}",
        "kind": _KIND,
        "metadata": signed(metadata or guards, policy.robot) | {"name": name, "namespace": own.namespace},
        "spec": spec,
    }
    return write(OWN_STATUSES, body, accept=PARTIAL)


def delete_own(policy: KindPolicy, key: Key, own: OwnStatus) -> Call:
    """Delete the robot's own object, the very one that was seen."""
    path = OWN_STATUSES.item(Key(own.namespace, own_name(policy, key)))
    return Call("delete", "DELETE", path, body=delete_options(own.uid))
