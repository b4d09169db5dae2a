"""What people do to objects of kinds that may have other names in the cloud, in histories of policies."""

from collections.abc import Callable

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from tests.model.histories.policy_references import GOALS, objects_of, spec_of
from tests.model.simulation.plane import Plane
from tests.model.simulation.storage import Where, copied


class Edits:
    """The verbs of people in one world."""

    def kind(self, plane: Plane, resource: str = GOALS) -> str:
        """What a side calls a kind, by its full name."""
        return plane.names.get(resource, resource)

    def create(self, plane: Plane, name: str, x: int, *refers: int, wanted: dict[str, str], kind: str = "") -> None:
        """Create a primary, or an object of another `kind`, that refers to these."""
        plane.create(name, kind=kind or self.kind(plane), spec={"x": x, **spec_of(*refers)}, labels=wanted)

    def edit(self, plane: Plane, resource: str, where: Where, change: Callable[[Json], None]) -> None:
        """Change an object."""
        body: Json = copied(objects_of(plane, resource)[where])
        change(body)
        _ask(plane, Call("update", "PUT", f"{self._path(plane, resource, where[0])}/{where[1]}", body=body))

    def finalize(self, plane: Plane, resource: str, where: Where, wanted: list[str]) -> None:
        """Let these finalizers, or none, keep an object."""
        self.edit(plane, resource, where, lambda found: found["metadata"].update(finalizers=wanted))

    def put(self, plane: Plane, resource: str, where: Where, data: Json, wanted: dict[str, str]) -> None:
        """Create an object with these data and labels, or have it get them."""
        if where not in objects_of(plane, resource):
            body = {"metadata": {"name": where[1], "labels": wanted}, "data": data}
            _ask(plane, Call("create", "POST", self._path(plane, resource, where[0]), body=body))
            return

        def change(found: Json) -> None:
            found["data"] = data
            found["metadata"]["labels"] = wanted

        self.edit(plane, resource, where, change)

    def delete(self, plane: Plane, resource: str, where: Where) -> None:
        """Delete an object."""
        _ask(plane, Call("delete", "DELETE", f"{self._path(plane, resource, where[0])}/{where[1]}"))

    def _path(self, plane: Plane, resource: str, place: str) -> str:
        plural, _, group = self.kind(plane, resource).partition(".")
        namespace = f"/namespaces/{place}" if place else ""
        return f"{f'/apis/{group}/v1' if group else '/api/v1'}{namespace}/{plural}"


def _ask(plane: Plane, call: Call) -> None:
    reply = plane.server.answer(call)
    if reply.status >= 300:
        raise RuntimeError(f"{call.verb} {call.path}: {reply.status} {reply.body}")
    plane.signal.ring()
