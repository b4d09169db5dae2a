"""The condition Ready of a SyncPolicy object, as a request (C1.5)."""

from dataclasses import dataclass
from typing import Any

from crsyncer.core.content.object_content import is_deeper_than
from crsyncer.core.kinds.merge_settings import DEEPEST
from crsyncer.core.model import Json
from crsyncer.core.reports.text import rfc3339
from crsyncer.core.requests.calls import SYNC_POLICIES, Call, json_patch

_TYPE = "Ready"
_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ShownStatus:
    """A version of a SyncPolicy object, and what of its status matters here."""

    name: str
    uid: str
    resource_version: str
    has_status: bool
    conditions: tuple[Any, ...] = ()
    """Those of everybody."""

    @property
    def ready(self) -> Json:
        """Ours; empty: there is none."""
        ours = (each for each in self.conditions if isinstance(each, dict) and each.get("type") == _TYPE)
        return next(ours, {})


def shown_status(raw: Json) -> ShownStatus:
    """What an API server shows of a SyncPolicy."""
    metadata, status = raw["metadata"], raw.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return ShownStatus(
        metadata["name"],
        metadata["uid"],
        metadata["resourceVersion"],
        has_status=isinstance(status, dict),
        conditions=tuple(conditions) if isinstance(conditions, list) else (),
    )


def write_ready(shown: ShownStatus, problem: str, *, now: float) -> Call | None:
    """Show whether the policy is followed; None: the object shows it already, or cannot.

    `now` is Unix time, in seconds. The request changes just the version that was shown, because the conditions of
    others are in the same list.
    """
    wanted = {
        "type": _TYPE,
        "status": "False" if problem else "True",
        "reason": "Misconfigured" if problem else "Active",
        "message": problem,
    }
    before = shown.ready
    if wanted.items() <= before.items() or is_deeper_than(list(shown.conditions), DEEPEST):
        return None
    since = before.get("lastTransitionTime") if before.get("status") == wanted["status"] else None
    ours = wanted | {"lastTransitionTime": since or rfc3339(now)}
    conditions = [ours if each is before else each for each in shown.conditions]
    if not before:
        conditions.append(ours)
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": shown.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": shown.resource_version},
        {
            "op": "add",
            "path": "/status/conditions" if shown.has_status else "/status",
            "value": conditions if shown.has_status else {"conditions": conditions},
        },
    ]
    return json_patch(f"{SYNC_POLICIES.path}/{shown.name}/status", operations, timeout=_TIMEOUT_SECONDS)
