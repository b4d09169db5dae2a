"""Whether upstream serves a kind, and still the same one, by discovery and by its CRD (S5.5a)."""

from enum import Enum

from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.model import Json
from crsyncer.core.watching.watch import listed_at


class Served(Enum):
    """Whether a kind is served for real: one that is being deleted still lists and watches (S5.5)."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """Discovery is forbidden, for which gateways have several status codes, or something else answers in its place."""
    NOT_FOUND = "not found"
    """Discovery does not show the group and version: they are gone, or a gateway hides discovery."""
    OTHER = "other"
    """The CRD was re-created (new uid); its former objects went with the old one."""


def served_in_discovery(endpoint: Endpoint, status: int, body: Json) -> Served:
    """Read the answer of `/apis/GROUP/VERSION`.

    A CRD that is being deleted loses the verb `create` in discovery at once (measured on API server 1.36).
    A resource of another scope is another kind: none of its objects can have a copy (S1.7).
    """
    if status == 404:
        return Served.NOT_FOUND
    if status != 200 or "resources" not in body:
        return Served.UNKNOWN
    resource = _resource(endpoint.plural, body)
    same = resource is not None and bool(resource.get("namespaced")) == endpoint.namespaced
    return Served.YES if same and not is_terminating(endpoint, body) else Served.NO


def is_terminating(endpoint: Endpoint, body: Json) -> bool:
    """Whether discovery shows the kind as one that is being deleted."""
    resource = _resource(endpoint.plural, body)
    return resource is not None and "create" not in (resource.get("verbs") or [])


def is_alive(plural: str, status: int, body: Json) -> bool | None:
    """Whether the answer of discovery shows a resource that is not being deleted; None: it says neither."""
    if status == 404:
        return False
    if status != 200 or "resources" not in body:
        return None
    resource = _resource(plural, body)
    return resource is not None and "create" in (resource.get("verbs") or ())


def _resource(plural: str, body: Json) -> Json | None:
    return next((r for r in body.get("resources") or [] if r.get("name") == plural), None)


def crd_in(status: int, body: Json) -> tuple[int, Json]:
    """The answer to a request for a CRD, where a list of that name was asked for instead."""
    if status != 200 or not listed_at(body):
        return status, body
    return next(((200, item) for item in body["items"] or []), (404, {"reason": "NotFound"}))


def served_by_crd(status: int, body: Json, uid: str) -> Served | None:
    """Read the answer to a request for a kind's CRD; None: it proves nothing.

    `uid` is that of the CRD whose objects our copies are of, "" where it is not known. A CRD that is deleted has a
    deletionTimestamp until the last of its objects is gone; one that is made anew has another uid (measured on API
    server 1.36). A 404 proves nothing where no uid is known: a kind may be served without a CRD.
    """
    if status == 404 and uid and body.get("reason") == "NotFound":
        return Served.NO
    metadata = body.get("metadata") or {}
    if status != 200 or not metadata.get("uid"):
        return None
    if "deletionTimestamp" in metadata:
        return Served.NO
    return Served.YES if uid in ("", metadata["uid"]) else Served.OTHER


def served_by_both(served: Served, crd: Served | None) -> Served:
    """Combine discovery's answer with the CRD's (None: not readable).

    NO from discovery wins, then NO or OTHER from the CRD. Where discovery is UNKNOWN the CRD's answer counts, else
    discovery's.
    """
    if crd is None or served is Served.NO or (crd is Served.YES and served is not Served.UNKNOWN):
        return served
    return crd
