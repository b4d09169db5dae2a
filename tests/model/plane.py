"""One cluster as its users and controllers see it, past the link: in plain verbs, at once."""

from collections.abc import Mapping
from typing import Any

from crsyncer.core.calls import CRDS as CRDS_PATH
from crsyncer.core.calls import JSON_PATCH, Call
from crsyncer.core.model import Json, Side
from crsyncer.ports import Reply
from tests.model.api_server import CLEANUP, CRDS, ApiServer
from tests.model.connection import Signal
from tests.model.storage import Snapshot, copied

GROUP = "lab.example.com"
NAMESPACE = "default"


class Plane:
    """One cluster. Verbs are about objects of `kind`, a plural; they raise AssertionError when they are refused."""

    def __init__(self, side: Side, server: ApiServer, signal: Signal) -> None:
        self.side = side
        self.server = server
        self._signal = signal

    # Objects

    def create(self, name: str, *, kind: str = "goals", **fields: Any) -> Json:
        """Create an object: `create("a", spec={...}, labels={...}, finalizers=[...])`."""
        metadata: Json = {"name": name}
        for key in ("labels", "annotations", "finalizers"):
            if fields.get(key):
                metadata[key] = fields[key]
        body = {k: v for k, v in fields.items() if k not in ("labels", "annotations", "finalizers")}
        return self._ask(Call("create", "POST", self._path(kind), body={"metadata": metadata, **body})).body

    def get(self, name: str, *, kind: str = "goals") -> Json | None:
        """The object now; None when there is none."""
        found = self.objects(kind).get(name)
        return None if found is None else copied(found)

    def set(self, name: str, *, kind: str = "goals", **fields: Any) -> None:
        """Set top-level fields; None removes one."""
        body = self._present(name, kind) | fields
        self._put(name, kind, {k: v for k, v in body.items() if v is not None})

    def label(self, name: str, *, kind: str = "goals", **labels: str | None) -> None:
        """Set labels; None removes one. `robot` is short for the label of the robot's name."""
        self._metadata(name, kind, "labels", {_LABELS.get(k, k): v for k, v in labels.items()})

    def annotate(self, name: str, annotations: Mapping[str, str | None], *, kind: str = "goals") -> None:
        """Set annotations; None removes one."""
        self._metadata(name, kind, "annotations", annotations)

    def finalize(self, name: str, *finalizers: str, kind: str = "goals") -> None:
        """Let these finalizers, or none, keep the object."""
        body = self._present(name, kind)
        body["metadata"]["finalizers"] = list(finalizers)
        self._put(name, kind, body)

    def set_status(self, name: str, status: Any, *, kind: str = "goals") -> None:
        """Replace the whole status, as a controller would; None removes it."""
        path = f"{self._path(kind)}/{name}"
        address = self.server.address(path)
        if status is None and "status" not in self._present(name, kind):
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

    def delete(self, name: str, *, kind: str = "goals") -> None:
        """Delete an object; its finalizers may keep it for a while."""
        self._ask(Call("delete", "DELETE", f"{self._path(kind)}/{name}"))

    def objects(self, kind: str = "goals") -> dict[str, Json]:
        """All objects of a kind by name, as stored."""
        return {name: o for (_, name), o in self.server.storage.of(f"{kind}.{GROUP}").items()}

    def newest(self, kind: str) -> int:
        """The resourceVersion of the object that was changed last."""
        return max((int(o["metadata"]["resourceVersion"]) for o in self.objects(kind).values()), default=0)

    # Kinds

    def apply(self, crd: Json) -> None:
        """Create or replace a CRD."""
        found = self.server.storage.of(CRDS).get(("", crd["metadata"]["name"]))
        if found is None:
            self._ask(Call("create", "POST", CRDS_PATH, body=crd))
        else:
            version = {"resourceVersion": found["metadata"]["resourceVersion"], "finalizers": [CLEANUP]}
            body = {**crd, "metadata": {**crd["metadata"], **version}}
            self._ask(Call("update", "PUT", f"{CRDS_PATH}/{crd['metadata']['name']}", body=body))

    def delete_kind(self, kind: str = "goals") -> None:
        """Delete a CRD: the kind can be listed and watched until the last of its objects is gone."""
        self._ask(Call("delete", "DELETE", f"{CRDS_PATH}/{kind}.{GROUP}"))

    def sweep(self, kind: str = "goals", *, group: str = GROUP) -> bool:
        """Carry the deletion of a CRD on, where there is one: its objects first; whether it is over."""
        name = ("", f"{kind}.{group}")
        storage = self.server.storage
        crd = storage.of(CRDS).get(name)
        if crd is None or "deletionTimestamp" not in crd["metadata"]:
            return True
        for where in list(storage.of(name[1])):
            self.server.answer(Call("delete", "DELETE", f"/apis/{group}/v1/namespaces/{where[0]}/{kind}/{where[1]}"))
        if not storage.of(name[1]):
            storage.remove(CRDS, name)
        self._signal.ring()
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
        self._signal.ring()

    def rebuild(self, *, revision: int = 10) -> None:
        """Another, empty cluster answers here now; it has the same kinds."""
        crds = [copied(crd) for crd in self.server.storage.of(CRDS).values()]
        self.server.storage.rebuild(revision=revision)
        for name in ("kube-system", NAMESPACE):
            self.server.make_namespace(name)
        for crd in crds:
            crd["metadata"] = {k: crd["metadata"][k] for k in ("name", "annotations") if k in crd["metadata"]}
            self.apply(crd)
        self._signal.ring()

    def restart(self) -> None:
        """The API server starts again."""
        self.server.storage.restart()
        self._signal.ring()

    def compact(self) -> None:
        """What has happened so far is not known to watches that begin from now on."""
        self.server.storage.oldest = self.server.storage.revision

    def others_write(self, revisions: int) -> None:
        """Something happens that is none of ours."""
        self.server.storage.skip(revisions)

    def _path(self, kind: str) -> str:
        return f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{kind}"

    def _present(self, name: str, kind: str) -> Json:
        found = self.get(name, kind=kind)
        assert found is not None, f"the {self.side} has no {name}"
        return found

    def _metadata(self, name: str, kind: str, part: str, change: Mapping[str, str | None]) -> None:
        body = self._present(name, kind)
        merged = {**body["metadata"].get(part, {}), **change}
        body["metadata"][part] = {k: v for k, v in merged.items() if v is not None}
        self._put(name, kind, body)

    def _put(self, name: str, kind: str, body: Json) -> None:
        self._ask(Call("update", "PUT", f"{self._path(kind)}/{name}", body=body))

    def _ask(self, call: Call) -> Reply:
        reply = self.server.answer(call)
        assert reply.status < 300, f"{self.side} {call.verb} {call.path}: {reply.status} {reply.body.get('message')}"
        self._signal.ring()
        return reply


_LABELS = {"robot": "cloudrobotics.com/robot-name"}
