"""Kubernetes Events about objects on the robot, as requests (events.k8s.io/v1): what `kubectl describe` shows."""

from dataclasses import dataclass
from datetime import UTC, datetime

from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Side
from crsyncer.core.pair.actions import HoldReason
from crsyncer.core.reports.event_ring import Event
from crsyncer.core.reports.facts import HOLD_RULES, Action, Fact
from crsyncer.core.requests.calls import MERGE_PATCH, PARTIAL, Call

GROUP = "events.k8s.io"
_CONTROLLER = "crsyncer.cloudrobotics.com/agent"
_TIMEOUT_SECONDS = 5.0
_REASONS = {Action.HELD: "Held", Action.DEAD_LETTER: "DeadLetter", Action.REVERTED: "Reverted"}
_FOR_CLUSTER_SCOPED = "default"
"""Where Events about objects without a namespace are (Kubernetes API reference, Event)."""


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object on the robot that an Event is about. `uid` is empty where it is not there."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def reason_of(fact: Fact) -> str | None:
    """The reason of the Event for a fact; None: there is none. Most facts are ordinary work."""
    if fact.action is Action.HELD and fact.rule == HOLD_RULES[HoldReason.CONTESTED]:
        return "RateLimited"
    return _REASONS.get(fact.action)


def create_event(event: Event, regarding: Regarding, *, instance: str) -> Call:
    """Create the Event. `instance` is the agent's name."""
    fact = event.fact
    where = "in the cloud: " if fact.side is Side.CLOUD else ""
    about = {
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "namespace": regarding.namespace,
        "name": regarding.name,
        "uid": regarding.uid,
    }
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Event",
        "metadata": {"name": _name(fact, regarding), "namespace": _namespace(regarding)},
        "eventTime": _micro_time(event.last),
        "reportingController": _CONTROLLER,
        "reportingInstance": instance,
        "action": "Sync",
        "reason": reason_of(fact),
        "type": "Normal" if fact.action is Action.REVERTED else "Warning",
        "regarding": {field: value for field, value in about.items() if value},
        "note": f"{fact.action}: {where}{fact.message} ({fact.rule})" + (", and other objects" if event.many else ""),
    }
    return Call("create", "POST", _path(regarding), body=body, accept=PARTIAL, timeout=_TIMEOUT_SECONDS)


def count_event(event: Event, regarding: Regarding) -> Call:
    """Count on in the Event: of it, the server lets only the series be changed."""
    body = {"series": {"count": max(2, event.count), "lastObservedTime": _micro_time(event.last)}}
    path = f"{_path(regarding)}/{_name(event.fact, regarding)}"
    return Call("patch", "PATCH", path, body=body, content_type=MERGE_PATCH, accept=PARTIAL, timeout=_TIMEOUT_SECONDS)


def _name(fact: Fact, regarding: Regarding) -> str:
    """The same for the same fact about the same object, also after a restart."""
    return f"crsyncer-{digest([regarding.uid, regarding.kind, regarding.name, fact.action, fact.rule, fact.message])}"


def _namespace(regarding: Regarding) -> str:
    return regarding.namespace or _FOR_CLUSTER_SCOPED


def _path(regarding: Regarding) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{_namespace(regarding)}/events"


def _micro_time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
