"""One cluster as its users and controllers see it, past the link: in plain verbs, at once."""

from collections.abc import Mapping
from typing import Any

from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import CRDS as CRDS_PATH
from crsyncer.core.requests.calls import JSON_PATCH, Call
from crsyncer.ports import Reply
from tests.model.simulation.api_server import CLEANUP, CRDS, ApiServer
from tests.model.simulation.connection import Signal
from tests.model.simulation.storage import Snapshot, copied

GROUP = "lab.example.com"
NAMESPACE = "default"


class Plane:
    """One cluster. Verbs are about objects of `kind`, a plural or full name; they raise AssertionError when refused.

    Where no namespace is named, it is the one called `home`.
    """

    def __init__(self, side: Side, server: ApiServer, signal: Signal, *, home: str = NAMESPACE) -> None:
        self.side = side
        self.home = home
        self.server = server
        self.signal = signal
        self.names: dict[str, str] = {}
        """What it calls kinds at present that the robot calls otherwise: full names by the robot's (C7)."""

    # Objects

    def create(self, name: str, *, kind: str = "goals", namespace: str = "", **fields: Any) -> Json:
        """Create an object: `create("a", spec={...}, labels={...}, finalizers=[...])`."""
        metadata: Json = {"name": name}
        for key in _METADATA:
            if fields.get(key):
                metadata[key] = fields[key]
        body = {k: v for k, v in fields.items() if k not in _METADATA}
        path = self._path(kind, namespace)
        return self._ask(Call("create", "POST", path, body={"metadata": metadata, **body})).body

    def get(self, name: str, *, kind: str = "goals", namespace: str = "") -> Json | None:
        """The object now, as stored; None when there is none."""
        found = self.objects(kind, namespace).get(name)
        return None if found is None else copied(found)

    def set(self, name: str, *, kind: str = "goals", namespace: str = "", **fields: Any) -> None:
        """Set top-level fields; None removes one."""
        body = self._present(name, kind, namespace) | fields
        self._put(name, kind, {k: v for k, v in body.items() if v is not None}, namespace)

    def label(self, name: str, *, kind: str = "goals", namespace: str = "", **labels: str | None) -> None:
        """Set labels; None removes one. `robot` is short for the label of the robot's name."""
        self._metadata(name, kind, namespace, "labels", {_LABELS.get(k, k): v for k, v in labels.items()})

    def annotate(
        self, name: str, annotations: Mapping[str, str | None], *, kind: str = "goals", namespace: str = ""
    ) -> None:
        """Set annotations; None removes one."""
        self._metadata(name, kind, namespace, "annotations", annotations)

    def finalize(self, name: str, *finalizers: str, kind: str = "goals", namespace: str = "") -> None:
        """Let these finalizers, or none, keep the object."""
        body = self._present(name, kind, namespace)
        body["metadata"]["finalizers"] = list(finalizers)
        self._put(name, kind, body, namespace)

    def set_status(self, name: str, status: Any, *, kind: str = "goals", namespace: str = "") -> None:
        """Replace the whole status, as a controller would; None removes it."""
        path = f"{self._path(kind, namespace)}/{name}"
        address = self.server.address(path)
        if status is None and "status" not in self._present(name, kind, namespace):
            return
        change = {"op": "remove"} if status is None else {"op": "add", "value": status}
        call = Call(
            "patch",
            "PATCH",
            f"{path}/status" if address is not None and address.kind.status else path,
            body=[{**change, "path": "/status"}],
            content_type=JSON_PATCH,
        )
        self._ask(call)

    def delete(self, name: str, *, kind: str = "goals", namespace: str = "") -> None:
        """Delete an object; its finalizers may keep it for a while."""
        self._ask(Call("delete", "DELETE", f"{self._path(kind, namespace)}/{name}"))

    def objects(self, kind: str = "goals", namespace: str = "") -> dict[str, Json]:
        """The objects of a kind by name, as stored: those in a namespace, or those that are in none."""
        found = self.server.storage.of(_full_name(kind)).items()
        return {name: o for (place, name), o in found if place in ("", namespace or self.home)}

    def newest(self, resource: str) -> int:
        """The resourceVersion of the object of a kind, by its full name, that was changed last."""
        found = self.server.storage.of(resource).values()
        return max((int(o["metadata"]["resourceVersion"]) for o in found), default=0)

    # Kinds

    def apply(self, crd: Json) -> None:
        """Create or replace a CRD, which may so get other annotations, versions, subresources or another schema."""
        found = self.server.storage.of(CRDS).get(("", crd["metadata"]["name"]))
        if found is None:
            self._ask(Call("create", "POST", CRDS_PATH, body=crd))
        else:
            version = {"resourceVersion": found["metadata"]["resourceVersion"], "finalizers": [CLEANUP]}
            body = {**crd, "metadata": {**crd["metadata"], **version}}
            self._ask(Call("update", "PUT", f"{CRDS_PATH}/{crd['metadata']['name']}", body=body))

    def annotate_kind(self, annotations: Mapping[str, str | None], *, kind: str = "goals") -> None:
        """Set annotations of a CRD; None removes one."""
        found = copied(self.server.storage.of(CRDS)["", _full_name(kind)])
        merged = {**found["metadata"].get("annotations", {}), **annotations}
        found["metadata"]["annotations"] = {k: v for k, v in merged.items() if v is not None}
        self.apply(found)

    def delete_kind(self, kind: str = "goals") -> None:
        """Delete a CRD: the kind can be listed and watched until the last of its objects is gone."""
        self._ask(Call("delete", "DELETE", f"{CRDS_PATH}/{_full_name(kind)}"))

    def drop_kind(self, kind: str = "goals") -> None:
        """Delete a CRD, and its objects with it."""
        self.delete_kind(kind)
        assert self.sweep(kind)

    def sweep(self, kind: str = "goals", *, group: str = GROUP) -> bool:
        """Carry the deletion of a CRD on, where there is one: its objects first; whether it is over."""
        name = ("", f"{kind}.{group}")
        storage = self.server.storage
        crd = storage.of(CRDS).get(name)
        if crd is None or "deletionTimestamp" not in crd["metadata"]:
            return True
        version = next(v["name"] for v in crd["spec"]["versions"] if v["served"])
        for where in list(storage.of(name[1])):
            place = f"/namespaces/{where[0]}" if where[0] else ""
            self.server.answer(Call("delete", "DELETE", f"/apis/{group}/{version}{place}/{kind}/{where[1]}"))
        if not storage.of(name[1]):
            storage.remove(CRDS, name)
        self.signal.ring()
        return not storage.of(name[1])

    # The cluster

    def snapshot(self) -> Snapshot:
        """Make a backup."""
        return self.server.storage.snapshot()

    def restore(self, snapshot: Snapshot, *, overtaken_by: int = -1) -> None:
        """Go back to a backup; with `overtaken_by`, others have written so much since that it is ahead of before."""
        before = self.server.storage.revision
        self.server.storage.restore(snapshot)
        if overtaken_by >= 0:
            self.server.storage.skip(before - self.server.storage.revision + overtaken_by)
        self.signal.ring()

    def rebuild(self, *, revision: int = 10) -> None:
        """Another, empty cluster answers here now; it has the same kinds."""
        crds = [copied(crd) for crd in self.server.storage.of(CRDS).values()]
        self.server.storage.rebuild(revision=revision)
        for name in dict.fromkeys(("kube-system", NAMESPACE, self.home)):
            self.server.make_namespace(name)
        for crd in crds:
            crd["metadata"] = {k: crd["metadata"][k] for k in ("name", "annotations") if k in crd["metadata"]}
            self.apply(crd)
        self.signal.ring()

    def become_workspace(self, cluster: str) -> None:
        """The server is a workspace of kcp from now on, which is this logical cluster and has no kube-system (C9)."""
        namespaces = self.server.storage.of("namespaces")
        namespaces.pop(("", "kube-system"), None)
        default = copied(namespaces["", "default"])
        default["metadata"]["annotations"] = {"kcp.io/cluster": cluster}
        self.server.storage.put("namespaces", ("", "default"), default)
        self.server.path = "/clusters/root:robots"

    def move_shard(self, *, revision: int, oldest: int = 0) -> None:
        """kcp moves the workspace to another shard, whose revision and oldest revision these are."""
        self.server.storage.move(revision=revision, oldest=oldest)
        self.signal.ring()

    def restart(self) -> None:
        """The API server starts again."""
        self.server.storage.restart()
        self.signal.ring()

    def compact(self) -> None:
        """What has happened so far is not known to watches that begin from now on."""
        self.server.storage.oldest = self.server.storage.revision

    def others_write(self, revisions: int) -> None:
        """Something happens that is none of ours."""
        self.server.storage.skip(revisions)

    def make_namespace(self, name: str) -> None:
        """Have a namespace."""
        self.server.make_namespace(name)
        self.signal.ring()

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace: nothing new can be made there until its objects and it are gone."""
        self._ask(Call("delete", "DELETE", f"/api/v1/namespaces/{name}"))

    def sweep_namespace(self, name: str) -> bool:
        """Carry the deletion of a namespace on, its objects first; whether it is over."""
        storage, left = self.server.storage, False
        for kind in filter(lambda each: each.namespaced, self.server.kinds()):
            for where in [where for where in storage.of(kind.resource) if where[0] == name]:
                self.delete(where[1], kind=kind.resource, namespace=name)
                left |= where in storage.of(kind.resource)
        if not left:
            storage.remove("namespaces", ("", name))
        self.signal.ring()
        return not left

    def _path(self, kind: str, namespace: str = "") -> str:
        served = next((k for k in self.server.kinds() if k.resource == _full_name(kind)), None)
        assert served is not None, f"the {self.side} serves no {kind}"
        place = f"/namespaces/{namespace or self.home}" if served.namespaced else ""
        root = f"/apis/{served.group}" if served.group else "/api"
        return f"{root}/{served.version}{place}/{served.plural}"

    def _present(self, name: str, kind: str, namespace: str = "") -> Json:
        found = self.get(name, kind=kind, namespace=namespace)
        assert found is not None, f"the {self.side} has no {name}"
        return found

    def _metadata(self, name: str, kind: str, namespace: str, part: str, change: Mapping[str, str | None]) -> None:
        body = self._present(name, kind, namespace)
        merged = {**body["metadata"].get(part, {}), **change}
        body["metadata"][part] = {k: v for k, v in merged.items() if v is not None}
        self._put(name, kind, body, namespace)

    def _put(self, name: str, kind: str, body: Json, namespace: str = "") -> None:
        self._ask(Call("update", "PUT", f"{self._path(kind, namespace)}/{name}", body=body))

    def _ask(self, call: Call) -> Reply:
        reply = self.server.answer(call)
        assert reply.status < 300, f"{self.side} {call.verb} {call.path}: {reply.status} {reply.body.get('message')}"
        self.signal.ring()
        return reply


def _full_name(kind: str) -> str:
    return kind if "." in kind or kind in _CORE else f"{kind}.{GROUP}"


_CORE = ("configmaps", "namespaces", "secrets")
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "managedFields")
_LABELS = {"robot": "cloudrobotics.com/robot-name"}
