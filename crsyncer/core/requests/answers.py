"""The meaning of an API server's answer, by one question: did it happen? (S10)"""

from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.watching.backoff import capped
from crsyncer.errors import Conflict, Expired, Never, NotAllowed, NotServed, SyncError, Throttled, Unsure

TOO_LARGE = "request is too large"
"""The message of etcd for an object that it will not store: a 500, as if a retry could help."""
NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause of the 403 for an object that would be new in a namespace that is being deleted: every account gets it.

Source: k8s.io/apiserver, pkg/admission/plugin/namespace/lifecycle/admission.go.
"""
TRIES_BEFORE_DEAD = 5
"""The number of tries after which an error that looks temporary makes the object a dead letter."""


def causes_of(body: Json) -> list[Json]:
    """The causes that a refusal names, as far as they can be read: whoever answers may send anything."""
    details = body.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []


def is_inconclusive(status: int) -> bool:
    """Whether an answer shows nothing about its request: the server serves no request at present, does not accept the
    credential, or something else answers in its place, such as a login page (3xx).
    """
    return status == 401 or isinstance(judge(status, {}), Unsure)


def is_discovery(body: Json) -> bool:
    """Whether an answer shows versions or resources: a portal or proxy may answer in the server's place, with a 200."""
    return "versions" in body or "resources" in body


def judge(
    status: int, body: Json, *, text: str = "", retry_after: float | None = None, patch: bool = False
) -> SyncError | None:
    """None when a request happened; else the error that says whether it may have. `body` is {} where it was no object.

    Without a Status object, a 404 is about the path. A JSON `patch` whose `test` fails answers 422 like a schema
    violation, but names no causes.
    """
    message, causes = str(body.get("message") or text or f"answered {status}")[:500], causes_of(body)
    match status:
        case _ if 200 <= status < 300:
            return None
        case 404 if not body:
            return NotServed(message)
        case 410:
            return Expired(message)
        case 404 | 409:
            return Conflict(message)
        case 422 if patch and not causes:
            return Conflict(message)
        case 403 if any(cause.get("reason") == NAMESPACE_TERMINATING for cause in causes):
            return Unsure(message)
        case 401 | 403:
            return NotAllowed(message, status=status)
        case _ if status == 429 or (status == 503 and retry_after is not None):
            return Throttled(message, retry_after=capped(retry_after, default=1.0))
        case _ if 400 <= status < 500 and status != 408:
            return Never(message)
        case _:
            return Unsure(message)


def without_words(body: Json) -> Json:
    """A refusal without what it says in words, which may quote the object (C5.6). It means the same as before."""
    kept: Json = {name: body[name] for name in ("kind", "apiVersion", "status", "reason", "code") if name in body}
    causes = [{"reason": cause.get("reason")} for cause in causes_of(body)]
    return kept | {"details": {"causes": causes}} if causes else kept


def shown(body: Json, uid: str = "") -> Json:
    """The metadata of the object that a 2xx answer shows, of this uid if one is given.

    Raises Unsure when it shows none: a portal or proxy may have answered in the server's place.
    """
    metadata: Any = body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("uid") or uid not in ("", metadata["uid"]):
        message = "the answer does not show the object that was asked for"
        raise Unsure(message, hint="does an API server answer at this address?")
    return metadata


def is_still_there(body: Json, uid: str) -> bool:
    """Whether an object whose deletion was answered with 2xx is there: its own finalizers keep it.

    Raises Unsure where the answer shows neither it nor a success.
    """
    return body.get("status") != "Success" and bool(shown(body, uid))


def lasting(error: SyncError, *, tries: int, unchanged: bool = False) -> SyncError:
    """The error as Never, where the same answer came in so many tries that asking again will not help.

    That is so of an object that is too large for the server's storage, which answers 500, and of a conflict over an
    object that is `unchanged`. A path where nothing is served may be served again soon: that is about no object.
    """
    contradicts = isinstance(error, Conflict) and not isinstance(error, NotServed)
    repeats = TOO_LARGE in str(error) or (unchanged and contradicts)
    return Never(str(error)) if repeats and tries >= TRIES_BEFORE_DEAD else error
