"""Requests to an API server, as values; lists and watches of any collection."""

from dataclasses import dataclass, replace
from typing import Any

from crsyncer.core.model import Key

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Ask for metadata only: 931 bytes come back instead of 2,165 (measured)."""
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PARTIAL_LIST_KIND = "PartialObjectMetadataList"
"""The kind of such a list; a server that does not know the Accept header answers with whole objects."""
REPLAY_SECONDS = (1, 5)
"""The seconds that a server has to repeat events from its memory, at the first try and at the second."""
PAGE_BYTES = 4 * 1024 * 1024
"""A list page is not read beyond this, uncompressed: decoding it takes tens of MiB. One object is never larger."""
CRD_PAGE = 25
"""CRDs on the first page: they are large, some have schemas of hundreds of kilobytes."""


@dataclass(frozen=True, slots=True)
class Collection:
    """The objects of one resource, in one namespace or ("") in all, that match a label selector ("": all match).

    With `name` it is the one object of that name.
    """

    group: str
    version: str
    plural: str
    namespace: str = ""
    selector: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        """The path of the collection; that of an object follows with its name."""
        root = f"/apis/{self.group}" if self.group else "/api"
        scope = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{root}/{self.version}{scope}/{self.plural}"

    def item(self, key: Key) -> str:
        """The path of one object. The namespace of the `key` counts only for a collection of all namespaces."""
        place = self if self.namespace else replace(self, namespace=key.namespace)
        return f"{place.path}/{key.name}"

    @property
    def resource(self) -> str:
        """The full name of the resource, such as goals.lab.example.com: that of its CRD, where it has one."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def query(self, *parameters: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        """The parameters of a list or watch; the selectors come first."""
        if self.name:
            parameters = (("fieldSelector", f"metadata.name={self.name}"), *parameters)
        return (("labelSelector", self.selector), *parameters) if self.selector else parameters


CRD_COLLECTION = Collection("apiextensions.k8s.io", "v1", "customresourcedefinitions")
CRDS = CRD_COLLECTION.path
SYNC_POLICIES = Collection("crsyncer.cloudrobotics.com", "v1alpha1", "syncpolicies")
API_REVISIONS = Collection(SYNC_POLICIES.group, SYNC_POLICIES.version, "apirevisions")
API_SETS = Collection(SYNC_POLICIES.group, SYNC_POLICIES.version, "apisets")


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
    sensitive: bool = False
    """It is about one object, which is a Secret on a side: a refusal may quote it, and is not told (C5.6)."""
    by_token_maker: bool = False
    """Sent by the account that makes the tokens of the working account, where there is one."""


VERSION = Call("get", "GET", "/version", timeout=20.0)
"""Answered by every server to every authenticated client; shows no resourceVersion."""
CRD_REVISION = Call("list", "GET", CRDS, (("limit", "1"),), accept=PARTIAL_LIST, timeout=20.0)


def crd(resource: str) -> Call:
    """A CRD's metadata: its uid identifies the cluster where kube-system cannot be read (S8.1)."""
    return Call("get", "GET", f"{CRDS}/{resource}", accept=PARTIAL, timeout=20.0)


def crd_listed(resource: str) -> Call:
    """The same by the right to list CRDs."""
    query = (("fieldSelector", f"metadata.name={resource}"),)
    return Call("list", "GET", CRDS, query, accept=PARTIAL_LIST, timeout=20.0)


def group_versions(group: str) -> Call:
    """Which versions of a group are served."""
    return Call("discover", "GET", f"/apis/{group}", timeout=10.0)


def discovery(group: str, version: str) -> Call:
    """What is served of a group ("": the core group) and version: kinds, scopes, subresources, verbs (S1.5, S5.5)."""
    return Call("discover", "GET", f"/apis/{group}/{version}" if group else f"/api/{version}", timeout=10.0)


def kind_of(call: Call) -> str:
    """Which kind a request is about, whichever object and namespace; "" where it is about none."""
    _, root, *parts = call.path.split("/")
    parts = ["", *parts] if root == "api" else parts
    if "namespaces" in parts[2:3] and len(parts) > 4:
        del parts[2:4]
    return "/".join(parts[:3]).removeprefix("/")


def list_page(collection: Collection, *, limit: int, resume: str = "", accept: str = JSON) -> Call:
    """One page, of `limit` objects, of a consistent list. `resume` is the continue token of the page before.

    A thin line may take minutes for a page, so only each wait for more of it is bounded tightly; a continue token lives
    for five to ten minutes (Kubernetes documentation, "API concepts": etcd compacts older revisions).
    """
    query = collection.query(("limit", str(limit)), *([("continue", resume)] if resume else ()))
    return Call("list", "GET", collection.path, query, accept=accept, timeout=600.0, gap=60.0, most=PAGE_BYTES)


def list_one(collection: Collection, key: Key) -> Call:
    """One whole object, by the right to list. Gateways in the cloud do not accept this request (S2.1).

    The namespace of the `key` counts only for a collection of all namespaces.
    """
    query = collection.query(("fieldSelector", f"metadata.name={key.name}"))
    place = collection if collection.namespace else replace(collection, namespace=key.namespace)
    return Call("list", "GET", place.path, query)


def replay(collection: Collection, *, before: str, seconds: int) -> Call:
    """A short watch for what came right after a resourceVersion, metadata only: 860 bytes (measured)."""
    query = collection.query(("watch", "true"), ("resourceVersion", before), ("timeoutSeconds", str(seconds)))
    return Call("watch", "GET", collection.path, query, accept=PARTIAL)


def watch(collection: Collection, *, resource_version: str, timeout_seconds: int) -> Call:
    """A watch with bookmarks that the server ends after `timeout_seconds`."""
    query = collection.query(
        ("watch", "true"),
        ("resourceVersion", resource_version),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(timeout_seconds)),
    )
    return Call("watch", "GET", collection.path, query)


def write(collection: Collection, body: Any, *, accept: str = JSON) -> Call:
    """Create an object; or replace it, where the body has the resourceVersion that guards this."""
    metadata = body["metadata"]
    key = Key(metadata.get("namespace", ""), metadata["name"])
    if "resourceVersion" in metadata:
        return Call("update", "PUT", collection.item(key), body=body, accept=accept)
    return Call("create", "POST", replace(collection, namespace=key.namespace).path, body=body, accept=accept)


def json_patch(path: str, operations: list[Any], *, timeout: float = 30.0) -> Call:
    """Change an object by a JSON Patch, whose first operations guard it; its metadata come back."""
    return Call("patch", "PATCH", path, body=operations, content_type=JSON_PATCH, accept=PARTIAL, timeout=timeout)


def create_namespace(name: str) -> Call:
    """Create a namespace that is missing downstream (S1.7)."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Call("create", "POST", "/api/v1/namespaces", body=body)


def delete_options(uid: str, *, resource_version: str = "", propagation: str = "") -> dict[str, Any]:
    """The body of a deletion: of the object with this uid, in this version or ("") in any.

    `propagation` is what becomes of its dependents: background, foreground, orphan, or "" as the server has it.
    """
    conditions = {"uid": uid, "resourceVersion": resource_version}
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {name: value for name, value in conditions.items() if value},
    }
    return options | ({"propagationPolicy": propagation.capitalize()} if propagation else {})
