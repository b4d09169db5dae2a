"""Answers that a test may put into the mouth of an API server, or of whatever stands in front of it."""

from crsyncer.core.model import Json
from crsyncer.ports import Reply

UNAUTHORIZED = Reply(401, {"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"})
FORBIDDEN = Reply(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "it is forbidden"})
NAMESPACE_TERMINATING = Reply(
    403,
    {
        "kind": "Status",
        "code": 403,
        "reason": "Forbidden",
        "message": "unable to create new content in namespace default because it is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]},
    },
)
"""To whoever creates an object in a namespace that is being deleted, as the namespace's own deletion asks for."""
NOT_SERVED = Reply(404, {}, "404 page not found")
"""As text/plain: nothing is served under this path."""
CONFLICT = Reply(409, {"kind": "Status", "code": 409, "reason": "Conflict", "message": "it has been modified"})
EXPIRED = Reply(410, {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
INTERNAL_ERROR = Reply(500, {"kind": "Status", "code": 500, "reason": "InternalError", "message": "storm"})
UNAVAILABLE = Reply(503, {}, "upstream connect error")
GARBAGE = Reply(200, {}, "<html>Welcome to the hotel's network</html>")
"""A 200 whose body is no JSON: a captive portal."""
NO_LISTS = (GARBAGE, Reply(200, {"items": []}))
"""Answers to a request for a list that are none: they do not show that there is nothing (S5)."""
GO_ON = (
    "to display a consistent list result. You can start a new list without the continue parameter, or use the continue "
    "token in this response to retrieve the remainder of the results."
)
"""The end of the message of a 410 for a continue token."""


def invalid(message: str = "it is invalid") -> Reply:
    """A schema violation."""
    details = {"causes": [{"field": "spec", "message": message}]}
    return Reply(422, {"kind": "Status", "code": 422, "reason": "Invalid", "message": message, "details": details})


def too_many(retry_after: float | None = None) -> Reply:
    """Too many requests: come back after so many seconds."""
    body = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "slow down"}
    return Reply(429, body, retry_after=retry_after)


def failure(status: int, reason: str, message: str, *, causes: list[Json] | None = None) -> Reply:
    """A refusal with its reason, and what it finds wrong in which field."""
    details: Json = {"causes": causes} if causes else {}
    body = {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}
    return Reply(status, body | {"details": details})
