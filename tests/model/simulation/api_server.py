"""What API servers answer, as far as the agent asks: tried against real ones by tests/contract."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from crsyncer.core.model import Json
from crsyncer.core.reports.text import rfc3339
from crsyncer.core.requests.calls import PARTIAL, PARTIAL_LIST, PARTIAL_LIST_KIND, Call
from crsyncer.ports import Reply
from tests.model.simulation.answers import GO_ON, NAMESPACE_TERMINATING, NOT_SERVED, failure
from tests.model.simulation.json_patch import Conflict, patched
from tests.model.simulation.schema import admitted, violations
from tests.model.simulation.selectors import selected
from tests.model.simulation.storage import Storage, Where, copied

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer by which a CRD waits for its objects to be deleted."""
ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TOKENS = 100
_EDITABLE = ("labels", "annotations", "finalizers", "ownerReferences")
_ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_DYING_VERBS = ["delete", "deletecollection", "get", "list", "watch"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A collection as it is served."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool
    status: bool
    """It has the status subresource."""
    dying: bool = False
    """Its CRD is being deleted."""
    schema: Json = field(default_factory=lambda: ANYTHING, compare=False)

    @property
    def resource(self) -> str:
        """Under which name the storage has it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """As objects name it."""
        return f"{self.group}/{self.version}" if self.group else self.version


_BUILT_IN = (
    Kind("", "v1", "namespaces", "Namespace", namespaced=False, status=True),
    Kind("", "v1", "configmaps", "ConfigMap", namespaced=True, status=False),
    Kind("", "v1", "secrets", "Secret", namespaced=True, status=False),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True, status=False),
    Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, True),
)


@dataclass(frozen=True, slots=True)
class Address:
    """What a path names."""

    kind: Kind
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def where(self) -> Where:
        """The object's place in its collection."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class _Page:
    """What a continue token stands for: the rest of a list, or (None) whatever is there now from `start` on."""

    items: list[tuple[Where, Json]] | None
    start: str
    revision: int = 0
    until: float = math.inf


class ApiServer:
    """One API server over a storage. Every answer is a value of its own, which the asker may change."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.path = ""
        """The path in its URL."""
        self.built_in = list(_BUILT_IN)
        """The kinds without a CRD."""
        self.pages_last = math.inf
        """For how many seconds (event loop time) a continue token is good; etcd forgets older revisions."""
        self._pages: dict[str, _Page] = {}
        self._tokens = 0
        self._built: dict[str, tuple[str, Json] | None] = {}
        """By which CRD, uid and spec, a kind's storage was made."""
        self._oldest: dict[str, int] = {}
        self._served: tuple[list[Json], list[Kind]] = ([], [])
        """The CRDs, and the kinds that they define."""
        for name in ("kube-system", "default"):
            self.make_namespace(name)

    def make_namespace(self, name: str) -> None:
        """Have a namespace."""
        if ("", name) not in self.storage.of("namespaces"):
            self._create(Address(_BUILT_IN[0], ""), {"metadata": {"name": name}})

    # The kinds

    def kinds(self) -> list[Kind]:
        """Everything that is served."""
        crds = list(self.storage.of(CRDS).values())
        known, found = self._served
        if len(known) != len(crds) or any(one is not other for one, other in zip(known, crds, strict=True)):
            found = [kind for crd in crds for kind in _kinds_of(crd)]
            self._served = crds, found
        return [*self.built_in, *found]

    def definition(self, kind: Kind) -> Json | None:
        """The spec of a kind's CRD; None: it has none, or is gone."""
        found = self.storage.of(CRDS).get(("", kind.resource))
        return None if found is None else found["spec"]

    def address(self, path: str) -> Address | None:
        """What a path names; None when nothing is served there."""
        parts = path.strip("/").split("/")
        group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        name, subresource = [*rest[1:], "", ""][:2]
        for kind in self.kinds():
            if (kind.group, kind.version, kind.plural) == (group, version, rest[0]):
                if namespace and not kind.namespaced:
                    return None
                self._build(kind)
                return Address(kind, namespace, name, subresource)
        return None

    def oldest(self, kind: Kind) -> int:
        """A watch of a kind may begin at this revision or later."""
        return min(self.storage.revision, max(self.storage.oldest, self._oldest.get(kind.resource, 0)))

    def _build(self, kind: Kind) -> None:
        """Make a kind's storage anew, without a past, at the first request to another CRD or spec (measured)."""
        crd = self.storage.of(CRDS).get(("", kind.resource))
        by = None if crd is None else (crd["metadata"]["uid"], crd["spec"])
        if self._built.setdefault(kind.resource, by) != by:
            self._built[kind.resource] = by
            self._oldest[kind.resource] = self.storage.revision

    # Answers

    def answer(self, call: Call) -> Reply:
        """Perform a request other than a watch."""
        if call.path == "/version":
            return Reply(200, {"major": "1", "minor": "36"})
        parts = call.path.strip("/").split("/")
        if parts[0] == "apis" and len(parts) in (2, 3):
            return self._discover(*parts[1:])
        if parts[0] == "api" and len(parts) == 2:
            return self._discover("", parts[1])
        address = self.address(call.path)
        if address is None:
            return NOT_SERVED
        if address.subresource and not (address.subresource == "status" and address.kind.status):
            return _NOT_FOUND
        body = copied(call.body)
        match call.method:
            case "GET" if address.name:
                reply = self._get(address)
            case "GET":
                return self._list(address, dict(call.query), partial=call.accept == PARTIAL_LIST)
            case "POST":
                reply = self._create(address, body)
            case "PUT":
                reply = self._update(address, body)
            case "PATCH":
                reply = self._patch(address, body)
            case "DELETE":
                reply = self._delete(address, body)
            case _:
                return failure(405, "MethodNotAllowed", "the server does not allow this method")
        if reply.status < 300 and call.accept == PARTIAL:
            metadata = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            return Reply(reply.status, {**metadata, "metadata": reply.body["metadata"]})
        return reply

    def shown(self, kind: Kind, obj: Json) -> Json:
        """An object as it is sent, in the version that was asked for: pruned and completed by its schema of today."""
        return {"apiVersion": kind.api_version, "kind": kind.name, **admitted(kind.schema, copied(obj))}

    def _discover(self, group: str, version: str = "") -> Reply:
        kinds = [kind for kind in self.kinds() if kind.group == group and version in ("", kind.version)]
        if not kinds:
            return NOT_SERVED
        if not version:
            names = sorted({kind.version for kind in kinds})
            return Reply(200, {"kind": "APIGroup", "versions": [{"version": name} for name in names]})
        resources = []
        for kind in kinds:
            verbs = _DYING_VERBS if kind.dying else _ALL_VERBS
            one = {"name": kind.plural, "kind": kind.name, "namespaced": kind.namespaced, "verbs": verbs}
            resources.append(one)
            if kind.status:
                resources.append({**one, "name": f"{kind.plural}/status", "verbs": ["get", "patch", "update"]})
        return Reply(200, {"kind": "APIResourceList", "resources": resources})

    def _get(self, address: Address) -> Reply:
        found = self.storage.of(address.kind.resource).get(address.where)
        return _NOT_FOUND if found is None else Reply(200, self.shown(address.kind, found))

    def _list(self, address: Address, query: Mapping[str, str], *, partial: bool) -> Reply:
        now = asyncio.get_running_loop().time() if math.isfinite(self.pages_last) else 0.0
        token = query.get("continue", "")
        begun = self._pages.get(token)
        if token and begun is None:
            return failure(410, "Expired", "the provided continue parameter is too old")
        if (
            begun is not None
            and begun.items is not None
            and (now > begun.until or begun.revision < self.storage.oldest)
        ):
            offer = self._remember(_Page(None, begun.start))
            expired = failure(410, "Expired", "The provided continue parameter is too old " + GO_ON)
            return Reply(410, {**expired.body, "metadata": {"continue": offer}})
        if begun is not None and begun.items is not None:
            revision, items, until = begun.revision, begun.items, begun.until
        else:
            found = sorted(self.storage.of(address.kind.resource).items(), key=lambda each: "/".join(each[0]))
            selector = query.get("labelSelector", "")
            name = query.get("fieldSelector", "").removeprefix("metadata.name=")
            start = begun.start if begun is not None else ""
            within_reach = [
                (where, o) for where, o in found if within(where, address.namespace) and "/".join(where) >= start
            ]
            items = [(where, o) for where, o in within_reach if selected(o, selector) and name in ("", where[1])]
            revision, until = self.storage.revision, now + self.pages_last
        limit = int(query.get("limit", "0")) or len(items)
        page, rest = [o for _, o in items[:limit]], items[limit:]
        metadata: Json = {"resourceVersion": str(revision)}
        if rest:
            metadata["continue"] = self._remember(_Page(rest, "/".join(rest[0][0]), revision, until))
        if partial:
            typed = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
            shown = [{**typed, "metadata": o["metadata"]} for o in page]
        else:
            shown = [self.shown(address.kind, o) for o in page]
        items_shown = copied(shown) if shown or not partial else None  # as real servers write it
        kind = PARTIAL_LIST_KIND if partial else f"{address.kind.name}List"
        return Reply(200, {"kind": kind, "metadata": metadata, "items": items_shown})

    def _remember(self, page: "_Page") -> str:
        """A continue token."""
        self._tokens += 1
        token = f"token-{self.storage.epoch}-{self._tokens}"
        self._pages[token] = page
        if len(self._pages) > _TOKENS:
            del self._pages[next(iter(self._pages))]
        return token

    def _create(self, address: Address, body: Json) -> Reply:
        kind, metadata = address.kind, body["metadata"]
        if kind.dying:
            return failure(403, "Forbidden", "create not allowed while the definition is terminating")
        namespace = self.storage.of("namespaces").get(("", address.namespace))
        if kind.namespaced and namespace is None:
            return failure(404, "NotFound", f'namespaces "{address.namespace}" not found')
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            return NAMESPACE_TERMINATING
        where = (address.namespace, metadata["name"])
        if metadata.get("resourceVersion") not in (None, "", "0"):
            return _VERSIONED
        if where in self.storage.of(kind.resource):
            return failure(409, "AlreadyExists", f"{where[1]} already exists")
        kept = {k: v for k, v in metadata.items() if k in ("name", "generateName", "managedFields", *_EDITABLE) and v}
        new = {k: v for k, v in admitted(kind.schema, body).items() if k not in ("apiVersion", "kind")}
        if kind.status:
            new.pop("status", None)
        if wrong := violations(kind.schema, new, None):
            return _invalid(kind, where[1], wrong)
        if kind.namespaced:
            kept["namespace"] = address.namespace
        if kind.resource == CRDS:
            kept["finalizers"] = [CLEANUP]
        born = rfc3339(self.storage.unix)
        new["metadata"] = kept | {"uid": self.storage.new_uid(), "generation": 1, "creationTimestamp": born}
        return Reply(201, self.shown(kind, self.storage.put(kind.resource, where, new)))

    def _update(self, address: Address, body: Json) -> Reply:
        old = self.storage.of(address.kind.resource).get(address.where)
        if old is None:
            return _NOT_FOUND
        metadata = body["metadata"]
        if metadata.get("resourceVersion") in (None, "", "0"):  # measured, 1.36
            return failure(422, "Invalid", "metadata.resourceVersion: must be specified", causes=_UNVERSIONED)
        if metadata.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            return failure(409, "Conflict", "Precondition failed: UID in precondition")
        if metadata["resourceVersion"] != old["metadata"]["resourceVersion"]:
            return failure(409, "Conflict", "the object has been modified")
        return self._replace(address, old, body)

    def _patch(self, address: Address, operations: list[Json]) -> Reply:
        old = self.storage.of(address.kind.resource).get(address.where)
        if old is None:
            return _NOT_FOUND
        try:
            new = patched(self.shown(address.kind, old), operations)
        except Conflict:
            return failure(422, "Invalid", "the server rejected our request due to an error in our request")
        return self._replace(address, old, new)

    def _replace(self, address: Address, old: Json, body: Json) -> Reply:
        kind = address.kind
        body = admitted(kind.schema, body)
        if address.subresource:
            new = {**old, "status": body.get("status")}
        else:
            new = {k: v for k, v in body.items() if k not in ("apiVersion", "kind")}
            if kind.status:
                new["status"] = old.get("status")
            asked = body["metadata"]
            given = {k: asked[k] for k in _EDITABLE if asked.get(k)}
            kept = {k: v for k, v in old["metadata"].items() if k not in _EDITABLE}
            new["metadata"] = kept | given
            unchanged = all(new.get(k) == old.get(k) for k in (new.keys() | old.keys()) - {"metadata"})
            if not unchanged:
                new["metadata"]["generation"] = kept["generation"] + 1
        if new.get("status") is None:
            new.pop("status", None)
        if wrong := violations(kind.schema, new, old):
            return _invalid(kind, address.name, wrong)
        if kind.resource == CRDS and new["spec"]["scope"] != old["spec"]["scope"]:
            return _invalid(kind, address.name, [{"field": "spec.scope", "message": "field is immutable"}])
        if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
            self.storage.remove(kind.resource, address.where)
            return Reply(200, self.shown(kind, new))
        return Reply(200, self.shown(kind, self.storage.put(kind.resource, address.where, new)))

    def _delete(self, address: Address, options: Json | None) -> Reply:
        kind = address.kind
        old = self.storage.of(kind.resource).get(address.where)
        if old is None:
            return _NOT_FOUND
        metadata = old["metadata"]
        for name, wanted in ((options or {}).get("preconditions") or {}).items():
            if wanted != metadata[name]:
                return failure(409, "Conflict", f"Precondition failed: {name} in precondition")
        if not metadata.get("finalizers") and kind.resource != "namespaces":  # one has a finalizer in its spec
            self.storage.remove(kind.resource, address.where)
            return Reply(200, {"kind": "Status", "status": "Success", "metadata": {}})
        if "deletionTimestamp" not in metadata:
            dying = {"deletionTimestamp": rfc3339(self.storage.unix), "deletionGracePeriodSeconds": 0}
            generation = {"generation": metadata["generation"] + 1}
            new = {**old, "metadata": {**metadata, **dying, **generation}}
            old = self.storage.put(kind.resource, address.where, new)
        return Reply(200, self.shown(kind, old))


def _kinds_of(crd: Json) -> list[Kind]:
    spec, dying = crd["spec"], "deletionTimestamp" in crd["metadata"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            plural=spec["names"]["plural"],
            name=spec["names"]["kind"],
            namespaced=spec["scope"] == "Namespaced",
            status="status" in (version.get("subresources") or {}),
            dying=dying,
            schema=version["schema"]["openAPIV3Schema"],
        )
        for version in spec["versions"]
        if version["served"]
    ]


def within(where: Where, namespace: str) -> bool:
    """Whether an object is in a namespace, or in any ("")."""
    return not namespace or where[0] == namespace


def _invalid(kind: Kind, name: str, causes: list[Json]) -> Reply:
    why = "; ".join(f"{cause['field']}: Invalid value: {cause['message']}" for cause in causes)
    return failure(422, "Invalid", f'{kind.name}.{kind.group} "{name}" is invalid: {why}', causes=causes)


_UNVERSIONED: list[Json] = [{"field": "metadata.resourceVersion", "message": "must be specified"}]
_VERSIONED = Reply(500, {"kind": "Status", "code": 500, "message": "resourceVersion should not be set on objects"})
"""As a server answers to a POST with a resourceVersion: without a reason (measured, 1.36)."""
_NOT_FOUND = failure(404, "NotFound", "not found")
