"""Answers to writes, by one question: did it happen? (S10)"""

from typing import Any

from crsyncer.core.backoff import granted
from crsyncer.core.model import Json
from crsyncer.errors import Never, NotAllowed, Refused, SyncError, Throttled, Unsure

TOO_LARGE = "request is too large"
"""The message of etcd for an object that it will not store: a 500, as if a retry could help."""
REFUSALS_BEFORE_DEAD = 5
"""The number of tries before an answer that could pass makes the object a dead letter."""


def judge(
    status: int, body: Json, *, text: str = "", retry_after: float | None = None, patch: bool = False
) -> SyncError | None:
    """None when it happened; else the error that says whether it may have.

    A JSON `patch` whose `test` fails answers 422 like a schema violation, but names no causes.
    """
    if 200 <= status < 300:
        return None
    message = str(body.get("message") or text or f"answered {status}")[:500]
    if status in (404, 409, 410):
        return Refused(message)
    if status in (401, 403):
        return NotAllowed(message, status=status)
    if status == 422 and patch and not (body.get("details") or {}).get("causes"):
        return Refused(message)
    if status == 429 or (status == 503 and retry_after is not None):
        return Throttled(message, retry_after=granted(retry_after, default=1.0))
    if 400 <= status < 500 and status != 408:
        return Never(message)
    return Unsure(message)


def shown(body: Json, uid: str = "") -> Json:
    """The metadata of the object that a 2xx answer shows, of this uid if one is given.

    Raises Unsure when it shows none: a portal or proxy may have answered in the server's place.
    """
    metadata: Any = body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("uid") or uid not in ("", metadata["uid"]):
        message = "the answer does not show the object that was asked for"
        raise Unsure(message, hint="does an API server answer at this address?")
    return metadata


def lasting(error: SyncError, *, tries: int, unchanged: bool = False) -> SyncError:
    """The error as Never, where the same answer came in so many tries that asking again will not help.

    That is so of an object that is too large for the server's storage, which answers 500, and of what is refused over
    an object that is `unchanged`.
    """
    repeats = TOO_LARGE in str(error) or (unchanged and isinstance(error, Refused))
    return Never(str(error)) if repeats and tries >= REFUSALS_BEFORE_DEAD else error
