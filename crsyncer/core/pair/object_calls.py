"""The requests about a synced kind and its objects, as values: what the engine asks for, and how it writes.

Gateways accept one form of list and watch, a single label selector, and no GET by name in the cloud (S2.1).
"""

from typing import Any

from crsyncer.core.accounts.access import Act
from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Key, Side, View
from crsyncer.core.pair.project import status_with
from crsyncer.core.reports.text import pointer_segment
from crsyncer.core.requests.calls import PARTIAL, PARTIAL_LIST, Call, Collection, delete_options, json_patch


def collection(policy: KindPolicy, side: Side, namespace: str) -> Collection:
    """A kind's objects on a side that are synced, in one of upstream's namespaces or ("") in all."""
    theirs = policy.key_on(side, Key(namespace, "")).namespace
    return policy.endpoint(side).objects(theirs, policy.selector_on(side))


def _item(endpoint: Endpoint, name: Key) -> str:
    return endpoint.objects(name.namespace).item(name)


def _status_path(endpoint: Endpoint, name: Key) -> str:
    return _item(endpoint, name) + ("/status" if endpoint.status else "")


def _copy(policy: KindPolicy, copy: Key) -> str:
    return _item(policy.endpoint(policy.downstream), copy)


def access_review(act: Act, namespace: str) -> Call:
    """Ask whether we may do something, in one namespace or ("") in all; creates nothing that stays."""
    resource, _, subresource = act.resource.partition("/")
    attributes = {"verb": act.verb, "group": act.group, "resource": resource, "subresource": subresource}
    # A namespace itself is in the namespace of its name, as an API server sees a request for it.
    own = act.name if act.resource == "namespaces" else ""
    attributes |= {"namespace": own if act.cluster else namespace, "name": act.name}
    spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    return Call("create", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body)


def revision(policy: KindPolicy, side: Side) -> Call:
    """The cheapest consistent list: its resourceVersion is the cluster's present one (S8.2)."""
    objects = collection(policy, side, policy.places_on(side)[0])
    query = (("labelSelector", objects.selector or f"{OURS}nothing=nothing"), ("limit", "1"))
    return Call("list", "GET", objects.path, query, accept=PARTIAL_LIST, timeout=20.0)


def first_object(policy: KindPolicy, side: Side) -> Call:
    """The metadata of one object of a kind, whichever is first: in a workspace of kcp it names that (C9.1)."""
    objects = collection(policy, side, policy.places[0])
    return Call("list", "GET", objects.path, objects.query(("limit", "1")), accept=PARTIAL_LIST, timeout=20.0)


# A copy is asked for by its own name, upstream's object by the key of the pair, which is upstream's name.


def get(policy: KindPolicy, copy: Key) -> Call:
    """One copy by name. Never asked of the cloud."""
    return Call("get", "GET", _copy(policy, copy), sensitive=policy.sensitive)


def create(policy: KindPolicy, copy: Key, body: Json) -> Call:
    """Create a copy."""
    place = policy.endpoint(policy.downstream).objects(copy.namespace)
    return Call("create", "POST", place.path, body=body, sensitive=policy.sensitive)


def update(policy: KindPolicy, copy: Key, body: Json) -> Call:
    """Put a copy; uid and resourceVersion in the body are its guards."""
    return Call("update", "PUT", _copy(policy, copy), body=body, sensitive=policy.sensitive)


def delete(
    policy: KindPolicy, copy: Key, uid: str, *, resource_version: str = "", propagation: str = "background"
) -> Call:
    """Delete the copy with this uid, in this version or ("") in any (S5.1)."""
    options = delete_options(uid, resource_version=resource_version, propagation=propagation)
    return Call("delete", "DELETE", _copy(policy, copy), body=options, sensitive=policy.sensitive)


def patch_status(
    policy: KindPolicy, key: Key, uid: str, value: Any, *, upstream: View | None, exact: bool = False
) -> Call:
    """Write a status (None: remove it) by JSON Patch whose first operation tests the uid (S4.2).

    For a filtered kind the second operation tests the robot's label: an object that was given to another robot keeps
    its status. `exact`: only over the very version that `upstream` is. In subtree mode, where upstream has no status
    yet, the parent is created as well, and the same test keeps keys that somebody else has just added beside it.
    """
    operations: list[Json] = [{"op": "test", "path": "/metadata/uid", "value": uid}]
    if policy.filtered:
        label = f"/metadata/labels/{pointer_segment(ROBOT_LABEL)}"
        operations.append({"op": "test", "path": label, "value": policy.robot})
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": upstream.resource_version if upstream else ""}
    if exact:
        operations.append(same)
    if policy.subtree is None:
        operations.append(_write("/status", value))
    elif value is not None and upstream is not None and not upstream.has_status:
        operations.append(same)
        operations.append(_write("/status", {policy.subtree: value}))
    else:
        operations.append(_write(f"/status/{pointer_segment(policy.subtree)}", value))
    path = _status_path(policy.endpoint(policy.upstream), key)
    return json_patch(path, operations)


def _write(path: str, value: Any) -> Json:
    return {"op": "remove", "path": path} if value is None else {"op": "add", "path": path, "value": value}


def takes_metadata(policy: KindPolicy, side: Side) -> bool:
    """Whether a side may take an object's metadata, too, from what is put to give it a status.

    A kind that is no CRD's does (measured: labels and annotations that are not put are gone), and where the status is
    part of the main resource everything is taken (S4.6).
    """
    return not policy.endpoint(side).status or not policy.has_crd or policy.projected is not None


def put_status(policy: KindPolicy, key: Key, uid: str, value: Any, *, upstream: Json) -> Call:
    """Write a status by PUT, where `patch` is forbidden, guarded by uid and resourceVersion of the last observation.

    Only what identifies the object travels along, or where that is not enough the whole object.
    """
    metadata, endpoint = upstream["metadata"], policy.endpoint(policy.upstream)
    if not takes_metadata(policy, policy.upstream):
        guards = {"name": metadata["name"], "uid": uid, "resourceVersion": metadata["resourceVersion"]}
        if endpoint.namespaced:
            guards["namespace"] = metadata["namespace"]
        body: Json = {"apiVersion": endpoint.api_version, "kind": endpoint.kind, "metadata": guards}
    else:
        body = {k: v for k, v in upstream.items() if k != "status"}
        body["metadata"] = metadata | {"uid": uid}
    status = status_with(upstream, policy, value)
    if status is not None:
        body["status"] = status
    return Call("update", "PUT", _status_path(endpoint, key), body=body, accept=PARTIAL)


def seed_status(
    policy: KindPolicy, copy: Key, *, uid: str, resource_version: str, status: Json | None, whole: Json | None = None
) -> Call:
    """Give a copy upstream's status (S4.4, C5.5), or none. It conflicts with any write to the copy since.

    `whole` is the copy in that very version, where that is needed (`takes_metadata`).
    """
    endpoint = policy.endpoint(policy.downstream)
    guards = {"name": copy.name, "uid": uid, "resourceVersion": resource_version}
    if endpoint.namespaced:
        guards["namespace"] = copy.namespace
    body = (whole or {"metadata": guards}) | {"apiVersion": endpoint.api_version, "kind": endpoint.kind}
    body.pop("status", None)
    if status is not None:
        body["status"] = status
    return Call("update", "PUT", _status_path(endpoint, copy), body=body)
