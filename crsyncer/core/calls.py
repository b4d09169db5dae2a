"""The requests that the agent makes of an API server, as values.

Gateways accept one form of list and watch, a single label selector, and no GET by name in the cloud (S2.1).
"""

from dataclasses import dataclass
from typing import Any

from crsyncer.core.access import Act
from crsyncer.core.model import Json, Key, Side, View
from crsyncer.core.policy import OURS, Policy
from crsyncer.core.project import status_with

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Ask for metadata only: 931 bytes come back instead of 2,165 (measured)."""
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PARTIAL_LIST_KIND = "PartialObjectMetadataList"
"""What such a list says it is; who does not know the Accept header answers with whole objects."""
REPLAY_SECONDS = (1, 5)
"""How long a server is given to repeat what it has in memory, and how long when it seemed to have nothing to repeat."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAGE_BYTES = 4 * 1024 * 1024
"""A list page is not read beyond this, uncompressed: decoding it takes tens of MiB. One object is never larger."""
CRD_PAGE = 25
"""CRDs on the first page: they are large, some have schemas of hundreds of kilobytes."""


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request. `verb` is the Kubernetes verb, for counters.

    `timeout` is in seconds, for the whole answer, `gap` for each wait for more of it (None: `timeout` alone counts);
    `most` is the number of bytes, uncompressed, beyond which an answer is not read.
    """

    verb: str
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    timeout: float = 30.0
    gap: float | None = None
    most: int = 8 * 1024 * 1024


VERSION = Call("get", "GET", "/version", timeout=20.0)
"""What every server answers to everybody who is authenticated; says nothing about its revision."""
CRD_REVISION = Call("list", "GET", CRDS, (("limit", "1"),), accept=PARTIAL_LIST, timeout=20.0)


def crd(resource: str) -> Call:
    """A CRD's metadata: what tells clusters apart where kube-system cannot be read (S8.1)."""
    return Call("get", "GET", f"{CRDS}/{resource}", accept=PARTIAL, timeout=20.0)


def collection(policy: Policy, namespace: str) -> str:
    """The path of a kind's collection, in one namespace or ("") in all."""
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{policy.group}/{policy.version}{scope}/{policy.plural}"


def kind_of(call: Call) -> str:
    """Which kind a request is about, whichever object and namespace; "" where it is about none."""
    _, _, *parts = call.path.split("/")
    if "namespaces" in parts[2:3] and len(parts) > 4:
        del parts[2:4]
    return "/".join(parts[:3])


def _item(policy: Policy, key: Key) -> str:
    return f"{collection(policy, key.namespace)}/{key.name}"


def _status_path(policy: Policy, side: Side, key: Key) -> str:
    return _item(policy, key) + ("/status" if policy.status_endpoint[side] else "")


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


def list_page(path: str, selector: str, *, limit: int, resume: str = "", accept: str = JSON) -> Call:
    """One page, of `limit` objects, of a consistent list. `resume` is the continue token of the page before.

    A thin line may take minutes for a page, so only each wait for more of it is bounded tightly; a continue token lives
    for five to ten minutes (Kubernetes documentation, "API concepts": etcd forgets older revisions).
    """
    query = [("limit", str(limit))]
    if selector:
        query.insert(0, ("labelSelector", selector))
    if resume:
        query.append(("continue", resume))
    return Call("list", "GET", path, tuple(query), accept=accept, timeout=600.0, gap=60.0, most=PAGE_BYTES)


def single(policy: Policy, key: Key) -> Call:
    """One whole object, by the right to list. Only where a gateway is not to be expected (S2.1)."""
    query = [("fieldSelector", f"metadata.name={key.name}")]
    if policy.selector:
        query.insert(0, ("labelSelector", policy.selector))
    return Call("list", "GET", collection(policy, key.namespace), tuple(query))


def replay(path: str, selector: str, *, before: str, seconds: int) -> Call:
    """A short watch for what came right after a resourceVersion, metadata only: 860 bytes (measured)."""
    query = [("watch", "true"), ("resourceVersion", before), ("timeoutSeconds", str(seconds))]
    if selector:
        query.insert(0, ("labelSelector", selector))
    return Call("watch", "GET", path, tuple(query), accept=PARTIAL)


def watch(path: str, selector: str, *, resource_version: str, timeout_seconds: int) -> Call:
    """A watch with bookmarks that the server ends after `timeout_seconds`."""
    query = [
        ("watch", "true"),
        ("resourceVersion", resource_version),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(timeout_seconds)),
    ]
    if selector:
        query.insert(0, ("labelSelector", selector))
    return Call("watch", "GET", path, tuple(query))


def revision(policy: Policy, namespace: str) -> Call:
    """The cheapest consistent list: its resourceVersion is the cluster's present one (S8.2)."""
    nothing = f"{OURS}nothing=nothing"
    one = ("limit", "1")
    query = (("labelSelector", policy.selector), one) if policy.selector else (("labelSelector", nothing), one)
    return Call("list", "GET", collection(policy, namespace), query, accept=PARTIAL_LIST, timeout=20.0)


def group_versions(policy: Policy) -> Call:
    """Which versions of the group are served."""
    return Call("discover", "GET", f"/apis/{policy.group}", timeout=10.0)


def discovery(policy: Policy, version: str) -> Call:
    """What is served of a group and version: kinds, scopes, subresources, verbs (S1.5, S5.5)."""
    return Call("discover", "GET", f"/apis/{policy.group}/{version}", timeout=10.0)


def get(policy: Policy, key: Key) -> Call:
    """One object by name. Never asked of the cloud."""
    return Call("get", "GET", _item(policy, key))


def create(policy: Policy, namespace: str, body: Json) -> Call:
    """Create an object."""
    return Call("create", "POST", collection(policy, namespace), body=body)


def update(policy: Policy, key: Key, body: Json) -> Call:
    """Put an object; uid and resourceVersion in the body are its guards."""
    return Call("update", "PUT", _item(policy, key), body=body)


def delete(policy: Policy, key: Key, uid: str, *, resource_version: str = "") -> Call:
    """Delete the object with this uid, in this version or ("") in any, in the background (S5.1)."""
    conditions = {"uid": uid, "resourceVersion": resource_version}
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {name: value for name, value in conditions.items() if value},
        "propagationPolicy": "Background",
    }
    return Call("delete", "DELETE", _item(policy, key), body=options)


def create_namespace(name: str) -> Call:
    """Create a namespace that is missing downstream (S1.7)."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Call("create", "POST", "/api/v1/namespaces", body=body)


def patch_status(policy: Policy, key: Key, uid: str, value: Any, *, upstream: View | None, exact: bool = False) -> Call:
    """Write a status (None: remove it) by JSON Patch whose first operation tests the uid (S4.2).

    `exact`: only over the very version that `upstream` is. In subtree mode, where upstream has no status yet, the
    parent is made as well, and the same test makes sure that nobody else's neighbours are overwritten in that moment.
    """
    operations: list[Json] = [{"op": "test", "path": "/metadata/uid", "value": uid}]
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": upstream.resource_version if upstream else ""}
    if exact:
        operations.append(same)
    if policy.subtree is None:
        operations.append(_write("/status", value))
    elif value is not None and upstream is not None and not upstream.has_status:
        operations.append(same)
        operations.append(_write("/status", {policy.subtree: value}))
    else:
        pointer = policy.subtree.replace("~", "~0").replace("/", "~1")
        operations.append(_write(f"/status/{pointer}", value))
    path = _status_path(policy, policy.upstream, key)
    return Call("patch", "PATCH", path, body=operations, content_type=JSON_PATCH, accept=PARTIAL)


def _write(path: str, value: Any) -> Json:
    return {"op": "remove", "path": path} if value is None else {"op": "add", "path": path, "value": value}


def put_status(policy: Policy, key: Key, uid: str, value: Any, *, upstream: Json) -> Call:
    """Write a status by PUT, where `patch` is refused: uid and resourceVersion of the last sighting are the guards.

    With the subresource, only what identifies the object travels along; without, the whole object has to (S4.6).
    """
    metadata = upstream["metadata"]
    if policy.status_endpoint[policy.upstream]:
        guards = {"name": metadata["name"], "uid": uid, "resourceVersion": metadata["resourceVersion"]}
        if policy.namespaced:
            guards["namespace"] = metadata["namespace"]
        body: Json = {"apiVersion": policy.api_version, "kind": policy.kind, "metadata": guards}
    else:
        body = {k: v for k, v in upstream.items() if k != "status"}
        body["metadata"] = metadata | {"uid": uid}
    status = status_with(upstream, policy, value)
    if status is not None:
        body["status"] = status
    return Call("update", "PUT", _status_path(policy, policy.upstream, key), body=body, accept=PARTIAL)


def seed_status(policy: Policy, key: Key, *, uid: str, resource_version: str, status: Json) -> Call:
    """Give a fresh copy upstream's status (S4.4); refused as soon as anybody has written to it."""
    guards = {"name": key.name, "uid": uid, "resourceVersion": resource_version}
    if policy.namespaced:
        guards["namespace"] = key.namespace
    body = {"apiVersion": policy.api_version, "kind": policy.kind, "metadata": guards, "status": status}
    return Call("update", "PUT", _status_path(policy, policy.downstream, key), body=body)
